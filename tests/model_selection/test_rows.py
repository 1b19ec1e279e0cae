"""Searches and paths over rows in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from skmargin import LSSVC, M3SVC, CrammerSingerSVC, LpNormSVC, ULDMClassifier
from skmargin.datasets import open_rows
from skmargin.model_selection import MarginSearchCV, margin_path
from skmargin.rows.files import counted
from skmargin.rows.folds import Folds
from skmargin.rows.labels import row_hash
from skmargin.solvers.blocks import from_rows


@pytest.fixture(autouse=True)
def in_blocks(monkeypatch):
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)


def data(n=4000, d=5, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return rng.normal(size=(n, d)) + rng.normal(size=(k, d))[y], np.array(["a", "b", "c"])[y]


def opened(X, y, reads):
    def blocks():
        reads.append(1)
        yield from ((X[a : a + 700], y[a : a + 700]) for a in range(0, len(X), 700))

    return open_rows(blocks)


def test_a_path_reads_the_rows_a_few_times_for_each_value():
    X, y = data()
    reads: list[int] = []
    rows = opened(X, y, reads)
    values = [0.01, 0.1, 1.0, 10.0]
    models = margin_path(CrammerSingerSVC(random_state=0), rows, None, "C", values)
    assert len(reads) < 3 + 6 * len(values)
    for C, model in zip(values, models, strict=True):
        expected = CrammerSingerSVC(C=C, tol=1e-7).fit(X, y)
        assert model.C == C
        assert model.dual_gap_ <= 1e-3
        assert expected.objective_ * (1 - 1e-6) <= model.objective_ <= expected.objective_ * (1 + 1e-3)


@pytest.mark.parametrize("machine", [CrammerSingerSVC(), M3SVC(loss="log_loss")], ids=str)
def test_a_search_judges_as_one_in_memory_with_the_same_folds(machine):
    X, y = data(seed=1)
    name, values = ("C", [1e-4, 1.0]) if isinstance(machine, CrammerSingerSVC) else ("alpha", [1e4, 1.0])
    search = MarginSearchCV(machine, {name: values}, cv=3).fit(opened(X, y, []))
    fold = (row_hash(np.arange(len(y)), 0) * 3).astype(int)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    expected = MarginSearchCV(machine, {name: values}, cv=splits).fit(X, y)
    assert search.best_params_ == expected.best_params_
    for f in range(3):
        key = f"split{f}_test_score"
        assert np.allclose(search.cv_results_[key], expected.cv_results_[key], atol=0.005)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert np.concatenate(list(search.best_estimator_.predict(opened(X, y, [])))).shape == y.shape
    assert (search.predict(X) == expected.predict(X)).mean() > 0.99


def test_folds_divide_the_rows():
    X, y = data()
    weight = np.arange(1.0, len(y) + 1)
    folds = Folds(counted(open_rows((X, y, weight))), 4)
    outside = (row_hash(np.arange(len(y)), 0) * 4).astype(int)[:, None] != np.arange(4)
    for c, label in enumerate("abc"):
        assert np.array_equal(folds.sizes[:, 0, c], outside[y == label].sum(axis=0))
        assert np.allclose(folds.sizes[:, 1, c], weight[y == label] @ outside[y == label])
    assert np.all(np.abs(folds.sizes[:, 0].sum(axis=1) - 0.75 * len(y)) < 200)


def test_candidates_and_folds_share_their_passes():
    X, y = data()
    reads: list[int] = []
    search = MarginSearchCV(CrammerSingerSVC(random_state=0), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3, refit=False)
    search.fit(opened(X, y, reads))
    assert len(reads) < 12  # one fit takes about six
    one = MarginSearchCV(CrammerSingerSVC(random_state=0), {"C": [0.1]}, cv=3, refit=False).fit(opened(X, y, []))
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(one.cv_results_["mean_test_score"][0], abs=2e-3)


def test_scorings_from_counts():
    X, y = data(seed=2)
    names = ["accuracy", "balanced_accuracy", "f1_macro", "matthews_corrcoef", "precision_weighted"]
    grid, fold = {"C": [1e-3, 1.0]}, (row_hash(np.arange(len(y)), 0) * 3).astype(int)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    machine = CrammerSingerSVC(random_state=0)
    search = MarginSearchCV(machine, grid, cv=3, scoring=names, refit="f1_macro").fit(opened(X, y, []))
    expected = MarginSearchCV(machine, grid, cv=splits, scoring=names, refit="f1_macro").fit(X, y)
    for name in names:
        key = f"mean_test_{name}"
        assert np.allclose(search.cv_results_[key], expected.cv_results_[key], atol=0.005)
    assert search.best_params_ == expected.best_params_


def test_least_squares_machines_need_one_pass_for_all():
    X, y = data()
    reads: list[int] = []
    grid = {"alpha": [1e-6, 1e-3, 1.0]}
    search = MarginSearchCV(ULDMClassifier(kernel="linear"), grid, cv=3, refit=False).fit(opened(X, y, reads))
    assert len(reads) == 5  # opened, counted, sizes of folds, moments, judged
    fold = (row_hash(np.arange(len(y)), 0) * 3).astype(int)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    expected = MarginSearchCV(ULDMClassifier(kernel="linear"), grid, cv=splits, refit=False).fit(X, y)
    assert np.array_equal(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


def test_a_solve_that_fails_ends_the_others():
    X, y = sparse.random(60, 7000, 0.01, "csr", random_state=0), data(60)[1]
    with pytest.raises(ValueError, match="takes rows in blocks and Dask collections of at most 6000 features"):
        MarginSearchCV(LSSVC(kernel="linear"), {"C": [1.0, 2.0]}, cv=2).fit(open_rows(X, y))


def test_what_needs_the_rows_in_memory_is_refused():
    X, y = data(n=300)
    rows = open_rows(X, y)
    grid = {"C": [1.0]}
    with pytest.raises(TypeError, match="LpNormSVC cannot be fitted to rows in blocks"):
        MarginSearchCV(LpNormSVC(), grid).fit(rows)
    with pytest.raises(ValueError, match="cannot be computed on rows in blocks"):
        MarginSearchCV(CrammerSingerSVC(), grid, scoring="roc_auc_ovr").fit(rows)
    with pytest.raises(ValueError, match="cannot be computed on rows in blocks"):
        MarginSearchCV(CrammerSingerSVC(), grid, scoring=lambda model, X, y: 0.0).fit(rows)
    with pytest.raises(ValueError, match="needs one class_weight and one kernel"):
        MarginSearchCV(CrammerSingerSVC(), {"class_weight": [None, "balanced"]}).fit(rows)
    with pytest.raises(ValueError, match="takes a number of folds"):
        MarginSearchCV(CrammerSingerSVC(), grid, cv=[([0], [1])]).fit(rows)
    with pytest.raises(ValueError, match="needs racing=False"):
        MarginSearchCV(CrammerSingerSVC(), grid, racing=True).fit(rows)
    with pytest.raises(ValueError, match="takes labels and weights from the rows"):
        MarginSearchCV(CrammerSingerSVC(), grid).fit(rows, y)
