"""MarginSearchCV finds what GridSearchCV finds."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from searches import MARGINS, SEARCHES, X, Y, assert_same, both
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from skmargin import (
    LSSVC,
    CrammerSingerSVC,
    MultiMarginSVC,
    ULDMClassifier,
)
from skmargin.model_selection import MarginSearchCV
from skmargin.solvers.tuning import DEFAULT

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", SEARCHES)
def test_equals_grid_search(name, n_jobs):
    ours, theirs = both(*SEARCHES[name], n_jobs=n_jobs, return_train_score=True)
    assert_same(ours, theirs)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.score(X, Y), theirs.score(X, Y))
    assert repr(ours.best_estimator_) == repr(theirs.best_estimator_)


def test_several_metrics_and_refit():
    scoring = {"accuracy": "accuracy", "recall": make_scorer(recall_score, average="macro")}
    ours, theirs = both(*SEARCHES["pipeline"], scoring=scoring, refit="recall", n_jobs=2)
    assert_same(ours, theirs)
    assert ours.multimetric_
    last = lambda results: len(results["params"]) - 1  # noqa: E731
    ours, theirs = both(*SEARCHES["lssvc"], refit=last)
    assert_same(ours, theirs)
    again = MarginSearchCV(LSSVC(), {"C": [1.0]}).fit(X, Y).set_params(refit=False).fit(X, Y)
    assert not hasattr(again, "best_estimator_") and again.best_params_ == {"C": 1.0}


def test_a_scorer_of_the_users_sees_the_whole_estimator():
    def scorer(estimator, X, y):
        assert X.shape[1] == 4 and "standardscaler" in estimator.named_steps
        return {"a": estimator.score(X, y), "b": float(estimator[-1].C)}

    ours, theirs = both(*SEARCHES["pipeline"], scoring=scorer, refit="a")
    assert_same(ours, theirs)

    def strength(estimator, X, y):
        return scorer(estimator, X, y)["b"]

    assert_same(*both(*SEARCHES["pipeline"], scoring={"a": "accuracy", "b": strength}, refit="a"))  # one of each kind


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_scorer_of_the_users_sees_the_rows_of_closed_forms(kernel):
    def scorer(estimator, X, y):
        assert X.shape[1] == 4
        return np.abs(estimator.decision_function(X)).mean()

    assert_same(*both(LSSVC(kernel=kernel), {"C": [0.1, 1.0]}, scoring=scorer))


@pytest.mark.parametrize("name", ["crammer-singer-rbf", "uldm", "uldm-pipeline"])
def test_rows_in_any_order(name):
    """Shared kernel matrices have the rows of one class side by side; the labels here do not."""
    order = np.random.default_rng(0).permutation(len(Y))
    assert_same(*both(*SEARCHES[name], X[order], Y[order]))


@pytest.mark.parametrize("wrap", [lambda machine: machine, lambda machine: make_pipeline(StandardScaler(), machine)])
def test_several_kernels_in_one_grid(wrap):
    machine = wrap(LSSVC())
    prefix = "" if isinstance(machine, LSSVC) else "lssvc__"
    grid = {f"{prefix}kernel": ["rbf", "laplacian", "poly"], f"{prefix}C": [0.1, 1.0]}
    assert_same(*both(machine, grid, scoring=MARGINS))


class Contrary(LSSVC):
    """A subclass with predictions and scores of its own."""

    def predict(self, X):
        return super().predict(X)[::-1]


class Strict(CrammerSingerSVC):
    def score(self, X, y, sample_weight=None):
        return -self.C


@pytest.mark.parametrize("estimator", [Contrary(), Strict(tol=1e-6)], ids=["predict", "score"])
def test_subclasses_with_methods_of_their_own(estimator):
    assert_same(*both(estimator, {"C": [0.1, 1.0, 10.0]}))


STRENGTHS = [10.0**e for e in range(-6, 3)]


@pytest.mark.parametrize(
    "estimator, grid",
    [
        (ULDMClassifier(alpha=STRENGTHS, kernel="linear", cv=3), {"multi_class": ["ovr", "ovo"]}),
        (ULDMClassifier(alpha=STRENGTHS, kernel="linear"), {"cv": [3, 4]}),
        (LSSVC(kernel="linear", basis="random", n_basis=10, random_state=0), {"kernel": ["linear", "rbf"]}),
        (LSSVC(n_basis=10, random_state=0), {"basis": ["random", "all"]}),
        (MultiMarginSVC(tol=1e-2, random_state=0), {"solver": ["svrg"]}),
        (MultiMarginSVC(solver="svrg", tol=1e-2, random_state=0), {"C": [0.01, 0.1]}),
    ],
    ids=["folds", "folds-in-the-grid", "basis", "basis-in-the-grid", "solver-in-the-grid", "solver"],
)
def test_estimators_to_which_the_order_of_the_rows_matters(estimator, grid):
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(Y)) < 0.5, rng.permutation(Y), Y)  # the folds disagree about the parameters
    assert_same(*both(estimator, grid, X, noisy, scoring=MARGINS))


def test_precomputed_kernel():
    K = X @ X.T
    assert_same(*both(CrammerSingerSVC(kernel="precomputed", tol=1e-6), {"C": [0.1, 1.0]}, K))
    with pytest.raises(ValueError, match="X should be a square kernel matrix"):
        MarginSearchCV(CrammerSingerSVC(kernel="precomputed"), {"C": [0.1, 1.0]}).fit(X, Y)


def test_labels_in_a_column():
    search = MarginSearchCV(CrammerSingerSVC(kernel="rbf", tol=1e-6), {"C": [0.1, 1.0]})
    plain = clone(search).fit(X, Y).cv_results_["mean_test_score"]
    with pytest.warns(DataConversionWarning):
        assert_array_equal(clone(search).fit(X, Y[:, None]).cv_results_["mean_test_score"], plain)


def test_code_of_the_user_gets_rows_of_the_kind_it_gave():
    kinds = set()

    def scoring(model, rows, labels):
        kinds.add(type(rows))
        return model.score(rows, labels)

    class Watching(CrammerSingerSVC):
        def predict(self, X):
            kinds.add(type(X))
            return super().predict(X)

    few = np.zeros((len(X), 40))  # rows that a solver would rather have sparse
    few[:, :4] = X
    for rows in (few, sparse.csr_matrix(X)):
        for search in (
            MarginSearchCV(CrammerSingerSVC(), {"C": [1.0]}, scoring=scoring, cv=3),
            MarginSearchCV(Watching(), {"C": [1.0]}, cv=3),
        ):
            kinds.clear()
            search.fit(rows, Y)
            assert kinds == {type(rows)}


def test_the_search_leaves_its_estimator_alone():
    estimator = CrammerSingerSVC(kernel="rbf")
    before = clone(estimator).get_params()
    search = MarginSearchCV(estimator, {"C": [0.1, 1.0]}).fit(X, Y)
    assert estimator.get_params() == before and not hasattr(estimator, "classes_")
    assert search.best_estimator_.kernel == "rbf" and not search.best_estimator_.warm_start


@pytest.mark.parametrize("estimator", [LSSVC(), make_pipeline(StandardScaler(), LSSVC())], ids=["alone", "pipeline"])
@pytest.mark.parametrize("n_splits", [4, 12])
def test_masks_are_folds_as_well_as_positions(estimator, n_splits):
    """A mask is as long as the data: taken for a number of rows it would make racing reject next to nothing."""
    positions = list(KFold(n_splits, shuffle=True, random_state=0).split(X))
    masks = [tuple(np.isin(np.arange(len(X)), part) for part in split) for split in positions]
    name = "C" if isinstance(estimator, LSSVC) else "lssvc__C"
    found = [
        MarginSearchCV(estimator, {name: 10.0 ** np.arange(-5, 4)}, cv=cv, racing=True).fit(X, Y)
        for cv in (positions, masks, [tuple(part.tolist() for part in split) for split in masks])
    ]
    assert np.isnan(found[0].cv_results_["mean_test_score"]).any()
    for search in found[1:]:
        assert_same(search, found[0])


def test_verbose_prints_a_line_for_each_chain(capsys):
    MarginSearchCV(LSSVC(), {"C": [1.0, 2.0]}, cv=2, verbose=1).fit(X, Y)
    assert capsys.readouterr().out.splitlines()[::2] == [
        "[skmargin] MarginSearchCV: 2 folds for each of 2 candidates",
        "[skmargin] MarginSearchCV: 4 of 4 fits, fold 2 of 2, 2 candidates along C",
    ]


def test_kernel_searches_converge_where_fits_do():
    X, y = load_iris(return_X_y=True)
    grid = {"C": [1, 1e4], "gamma": [1e-3, 1e-2]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a matrix rounded to float32 there is no factor
        MarginSearchCV(CrammerSingerSVC(kernel="rbf", random_state=0), grid, cv=3).fit(scale(X), y)


@pytest.mark.parametrize(
    "factor_rows", [1800, 100]
)  # the number type of the kernel matrix is fixed, or depends on gamma
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.1])
def test_kernel_searches_take_lists(factor_rows, gamma, monkeypatch):
    monkeypatch.setattr(CrammerSingerSVC, "_tuning", DEFAULT.changed(common={"call_work": (factor_rows + 1) ** 3 / 6}))
    X, y = load_iris(return_X_y=True)
    machine = CrammerSingerSVC(kernel="rbf", gamma=gamma, tol=1e-6, random_state=0)
    search = MarginSearchCV(machine, {"C": [1, 10]}, cv=3)
    assert clone(search).fit(X.tolist(), y.tolist()).best_score_ == search.fit(X, y).best_score_
