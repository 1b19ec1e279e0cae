"""`MarginSearchCV` on Dask collections: the folds, scores and choice of rows in memory, and few passes for all."""

import numpy as np
import pytest
from dask_data import arrays

from skmargin import LSSVC, CrammerSingerSVC, LDMClassifier
from skmargin.model_selection import MarginSearchCV
from skmargin.rows.labels import row_hash
from skmargin.rows.workers import DaskRows

N, PART = 24_000, 6000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.choice(3, N, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(3, 5))[y] + rng.normal(size=(N, 5))
    return X, np.array(["ant", "bee", "cat"])[y], rng.uniform(0.5, 2.0, N)


@pytest.mark.parametrize("machine", [CrammerSingerSVC(tol=1e-5, random_state=0), LSSVC(kernel="linear")], ids=str)
def test_the_choice_of_the_rows_in_memory(rows, client, monkeypatch, machine):
    X, y, weight = rows
    Xd, yd, wd = arrays(X, y, weight, part=PART)
    passes = []
    inner = DaskRows.map_sum
    monkeypatch.setattr(DaskRows, "map_sum", lambda self, task: passes.append(task) or inner(self, task))
    grid, scoring = {"C": [1e-2, 0.1, 1.0]}, ["accuracy", "f1_macro"]
    search = MarginSearchCV(machine, grid, cv=3, scoring=scoring, refit="f1_macro").fit(Xd, yd, sample_weight=wd)
    assert len(passes) < 25  # nine fits and a last one
    fold = (row_hash(np.arange(N), 0) * 3).astype(int)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    expected = MarginSearchCV(machine, grid, cv=splits, scoring=scoring, refit="f1_macro")
    expected.fit(X, y, sample_weight=weight)
    for name in scoring:
        key = f"mean_test_{name}"
        np.testing.assert_allclose(search.cv_results_[key], expected.cv_results_[key], atol=0.006)
    assert expected.cv_results_["mean_test_f1_macro"][search.best_index_] > expected.best_score_ - 0.006
    assert isinstance(search.best_estimator_.coef_, np.ndarray)
    assert np.mean(search.predict(Xd).compute() == expected.predict(X)) > 0.99


def test_what_cannot_be_searched_is_refused_in_one_sentence(rows):
    Xd, yd = arrays(*rows[:2], part=PART)
    grid = {"C": [1.0]}
    with pytest.raises(TypeError, match="LDMClassifier cannot be fitted to Dask collections"):
        MarginSearchCV(LDMClassifier(), {"C": [1.0]}).fit(Xd, yd)
    with pytest.raises(ValueError, match="scoring='score' cannot be computed on Dask collections"):
        MarginSearchCV(CrammerSingerSVC(), grid, scoring="roc_auc_ovr").fit(Xd, yd)
    with pytest.raises(ValueError, match=r"on Dask collections takes sample_weight only, got \['groups'\]"):
        MarginSearchCV(CrammerSingerSVC(), grid).fit(Xd, yd, groups=yd)
    with pytest.raises(ValueError, match="on Dask collections takes a number of folds"):
        MarginSearchCV(CrammerSingerSVC(), grid, cv=[([0], [1])]).fit(Xd, yd)
    with pytest.raises(ValueError, match="The class 'cat' has too few rows for cv=3"):
        few = np.flatnonzero((rows[1] != "cat") | (np.arange(N) == np.flatnonzero(rows[1] == "cat")[0]))
        MarginSearchCV(CrammerSingerSVC(), grid, cv=3).fit(*arrays(rows[0][few], rows[1][few], part=PART))
