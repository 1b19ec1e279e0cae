"""MarginSearchCV finds what GridSearchCV finds."""

import _thread
import sysconfig
import threading
import time
import tracemalloc
import warnings

import numpy as np
import pytest
import sklearn
from joblib import effective_n_jobs
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import DataConversionWarning, FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer, recall_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler, scale

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    FuzzyPairwiseClassifier,
    LDMClassifier,
    LpNormSVC,
    MultiMarginSVC,
    ODMClassifier,
    SemiSupervisedMarginSVC,
    TopKSVC,
    ULDMClassifier,
    WestonWatkinsSVC,
)
from skmargin._runtime.shared_rows import SharedRows, converted, converted_whole, sharing_rows, window
from skmargin.model_selection import MarginSearchCV, default_grid
from skmargin.model_selection._folds import windows
from skmargin.model_selection._racing import rejected
from skmargin.solvers.primal.rows import RowProducts
from skmargin.solvers.tuning import DEFAULT

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals

X, Y = load_iris(return_X_y=True)
X = MinMaxScaler().fit_transform(X)
Y = np.array(["setosa", "versicolor", "virginica"])[Y]

SEARCHES = {
    "crammer-singer": (CrammerSingerSVC(tol=1e-6), {"C": [10.0, 0.1, 1.0]}),
    "crammer-singer-rbf": (CrammerSingerSVC(kernel="rbf", tol=1e-5), {"C": [0.1, 1.0], "gamma": ["scale", 0.5]}),
    "weston-watkins": (WestonWatkinsSVC(tol=1e-6), {"C": [1.0, 10.0]}),
    "widths-only": (WestonWatkinsSVC(kernel="rbf", tol=1e-5), {"gamma": [0.1, 1.0, 5.0]}),
    "top-k": (TopKSVC(fit_intercept=False, tol=1e-6), {"C": [0.1, 1.0], "k": [1, 2]}),
    "lp-norm": (LpNormSVC(tol=1e-5), {"C": [1.0, 10.0], "p": [1.5, 2.0]}),
    "lp-norm-losses": (
        LpNormSVC(tol=1e-5, random_state=0),
        {"C": [0.1, 1.0], "p": [1.5, 4.0], "loss": ["squared_hinge", "log_loss"]},
    ),
    "lp-norm-paper": (LpNormSVC(tol=1e-5, solver="paper", random_state=0), {"C": [0.1, 1.0], "p": [1.5, 1.8]}),
    "multi-margin": (MultiMarginSVC(tol=1e-5), {"C": [0.1, 1.0]}),
    "multi-margin-svrg": (MultiMarginSVC(solver="svrg", tol=1e-2, random_state=0), {"C": [0.001, 0.01, 0.1]}),
    "m3-adam": (M3SVC(solver="adam", tol=0.5, random_state=0), {"alpha": [1e-2, 1e-1]}),
    "m3": (M3SVC(tol=1e-5), {"alpha": [1e-2, 1e-1], "p": [2, 4]}),
    "m3-poly": (M3SVC(kernel="poly", tol=1e-5), {"alpha": [1e-2, 1e-1]}),
    "uldm": (ULDMClassifier(), {"alpha": [1e-10, 1e-4, 1e-1], "gamma": [0.5, 2.0]}),
    "uldm-linear": (ULDMClassifier(kernel="linear"), {"alpha": [0.0, 1e-4, 1e-1]}),
    "uldm-basis": (ULDMClassifier(basis="random", n_basis=20, random_state=0), {"alpha": [1e-6, 1e-2]}),
    "lssvc": (LSSVC(multi_class="ovr"), {"C": [0.1, 1.0, 10.0]}),
    "ldm": (LDMClassifier(tol=1e-6, random_state=0), {"C": [0.1, 10.0]}),
    "ldm-linear": (LDMClassifier(kernel="linear", tol=1e-6, random_state=0), {"C": [0.1, 10.0], "lambda1": [0.5, 1.0]}),
    "ldm-least-squares": (LDMClassifier(loss="least_squares"), {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}),
    "odm": (ODMClassifier(tol=1e-6, random_state=0), {"C": [10.0, 100.0], "mu": [0.0, 0.5]}),
    "odm-rbf": (ODMClassifier(kernel="rbf", mu=0.0, tol=1e-5, random_state=0), {"C": [10.0, 100.0]}),
    "semi-supervised": (SemiSupervisedMarginSVC(tol=1e-8, random_state=0), {"C": [0.1, 1.0]}),
    "fuzzy-pairwise": (FuzzyPairwiseClassifier(CrammerSingerSVC(tol=1e-6)), {"estimator__C": [0.1, 1.0]}),
    "uldm-inner-widths": (ULDMClassifier(gamma=[0.1, 1.0], cv=3), {"alpha": [1e-6, 1e-1]}),
    "uldm-inner-strengths": (ULDMClassifier(alpha=[1e-6, 1e-2], cv=3), {"gamma": [0.1, 1.0]}),
    "uldm-kmeans": (ULDMClassifier(basis="kmeans++", n_basis=20, random_state=0), {"alpha": [1e-6, 1e-2]}),
    "uldm-pipeline": (
        make_pipeline(StandardScaler(), ULDMClassifier()),
        {"standardscaler__with_std": [True, False], "uldmclassifier__alpha": [1e-8, 1e-2]},
    ),
    "pipeline": (
        make_pipeline(StandardScaler(), CrammerSingerSVC(tol=1e-6)),
        {"standardscaler__with_std": [True, False], "crammersingersvc__C": [0.1, 1.0]},
    ),
    "several-grids": (LSSVC(), [{"C": [1.0, 2.0]}, {"kernel": ["linear"], "C": [1.0]}]),
    "not-ours": (LogisticRegression(), {"C": [0.1, 1.0]}),
}


def both(estimator, grid, X=X, y=Y, n_jobs=None, fit=None, **options):
    fit = fit or {}
    theirs = GridSearchCV(estimator, grid, **{"cv": 5, **options}).fit(X, y, **fit)
    ours = MarginSearchCV(estimator, grid, n_jobs=n_jobs, **options).fit(X, y, **fit)
    return ours, theirs


def assert_same(ours, theirs):
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    for name, values in theirs.cv_results_.items():
        if "time" in name:
            continue
        if name == "params" or name.startswith("param_"):
            assert list(ours.cv_results_[name]) == list(values)
        else:
            assert_allclose(ours.cv_results_[name], values, atol=1e-12, err_msg=name)
    assert ours.best_params_ == theirs.best_params_
    assert ours.n_splits_ == theirs.n_splits_


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


MARGINS = make_scorer(lambda y, scores: np.tanh(scores).sum(), response_method="decision_function")


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


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_kernel_matrices_of_both_precisions(kernel, monkeypatch):
    """A tolerance that allows it is met in single precision; the next candidate needs double."""
    monkeypatch.setattr(CrammerSingerSVC, "_tuning", DEFAULT.changed(kernel={"factor_rows": 130}))
    machine, grid = (
        CrammerSingerSVC(kernel=kernel, gamma=1.0),
        {"tol": [2e-4, 1e-9], "class_weight": [None, "balanced"]},
    )
    spread = make_scorer(lambda y, scores: np.abs(scores).mean(), response_method="decision_function")
    ours, theirs = (search.cv_results_ for search in both(machine, grid, scoring=spread, refit=False))
    for params, found, expected in zip(ours["params"], ours["mean_test_score"], theirs["mean_test_score"], strict=True):
        assert_allclose(found, expected, rtol=0.05 if params["tol"] > 1e-6 else 1e-5)


@pytest.mark.parametrize("routing", [False, True])
def test_weights_of_the_first_steps(routing):
    weight = np.random.default_rng(0).integers(0, 9, len(Y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=routing):
        scaler, machine, fit = StandardScaler(), LSSVC(), {"standardscaler__sample_weight": weight}
        if routing:
            scaler.set_fit_request(sample_weight=True)
            machine.set_fit_request(sample_weight=False)
            fit = {"sample_weight": weight}
        pipeline = make_pipeline(scaler, machine)
        assert_same(*both(pipeline, {"lssvc__C": [0.1, 1.0]}, fit=fit, scoring=MARGINS))


@pytest.mark.parametrize("name", ["crammer-singer-rbf", "uldm", "m3"])
def test_weights_sparse_rows_and_other_splits(name):
    weight = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    groups = np.arange(len(Y)) % 5
    estimator, grid = SEARCHES[name]
    ours, theirs = both(
        estimator, grid, sparse.csr_array(X), cv=GroupKFold(3), fit={"sample_weight": weight, "groups": groups}
    )
    assert_same(ours, theirs)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)  # of the last fit, weighted too
    assert_same(*both(estimator, grid, cv=ShuffleSplit(2, random_state=0)))


def test_widths_named_scale_see_the_weights_of_the_classes():
    spread = make_scorer(lambda y, scores: np.abs(scores).mean(), response_method="decision_function")
    machine = CrammerSingerSVC(kernel="rbf", class_weight="balanced", tol=1e-8)
    ours, theirs = both(machine, {"C": [0.1, 1.0]}, X[20:110], Y[20:110], scoring=spread, refit=False)
    assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-5)


def test_metadata_routing():
    weight = np.random.default_rng(0).integers(1, 3, len(Y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, CrammerSingerSVC(tol=1e-6).set_fit_request(sample_weight=True))
        ours, theirs = both(
            pipeline,
            {"crammersingersvc__C": [0.1, 1.0]},
            n_jobs=2,
            fit={"sample_weight": weight},
            scoring=make_scorer(accuracy_score).set_score_request(sample_weight=True),
        )
        assert_same(ours, theirs)
    name = {"crammersingersvc__sample_weight": weight}
    assert_same(*both(*SEARCHES["pipeline"], fit=name))


@pytest.mark.parametrize("asked", [True, False])
def test_metadata_of_a_single_machine(asked):
    weight = np.random.default_rng(0).integers(1, 9, len(Y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        machine = LSSVC(kernel="linear").set_fit_request(sample_weight=not asked)
        machine.set_score_request(sample_weight=asked)
        assert_same(*both(machine, {"C": [1e-3, 1.0]}, fit={"sample_weight": weight}, return_train_score=True))


def test_metadata_under_other_names():
    weight = np.random.default_rng(0).integers(1, 3, len(Y)).astype(float)
    found = []
    for name, asked in (("sample_weight", True), ("mass", "mass")):
        with sklearn.config_context(enable_metadata_routing=True):
            machine = LSSVC().set_fit_request(sample_weight=asked).set_score_request(sample_weight=asked)
            pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=asked), machine)
            search = MarginSearchCV(pipeline, {"lssvc__C": [0.01, 1.0]}, return_train_score=True)
            found.append(search.fit(X, Y, **{name: weight}).cv_results_)
    for scores in ("mean_test_score", "mean_train_score"):
        assert_array_equal(found[0][scores], found[1][scores])
    plain = MarginSearchCV(make_pipeline(StandardScaler(), LSSVC()), {"lssvc__C": [0.01, 1.0]}).fit(X, Y).cv_results_
    assert (plain["mean_test_score"] != found[0]["mean_test_score"]).any()


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


def test_fits_that_fail():
    estimator, grid = ULDMClassifier(), {"alpha": [-1.0, 1e-4], "kernel": ["rbf", "linear"]}
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        ours, theirs = both(estimator, grid)
    assert_same(ours, theirs)
    with pytest.warns(FitFailedWarning):
        ours, theirs = both(CrammerSingerSVC(tol=1e-6), {"C": [-1.0, 1.0]}, error_score=0.0)
    assert_same(ours, theirs)
    several = {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro", "return_train_score": True}
    with pytest.warns(FitFailedWarning):
        ours, theirs = both(CrammerSingerSVC(tol=1e-6), {"C": [-1.0, 1.0]}, error_score=0.0, **several)
    assert_same(ours, theirs)
    with pytest.raises(ValueError, match="'C' parameter"):
        MarginSearchCV(CrammerSingerSVC(), {"C": [-1.0, 1.0]}, error_score="raise", n_jobs=2).fit(X, Y)
    with pytest.raises(ValueError, match="nothing to fit"):
        MarginSearchCV(CrammerSingerSVC(), []).fit(X, Y)
    with pytest.raises(ValueError, match="nothing to fit"):
        MarginSearchCV(CrammerSingerSVC(), {"C": [1.0]}, cv=[]).fit(X, Y)


def test_scores_that_fail():
    """The fit on the fold whose test rows hold what is not a number succeeds, all others do not."""
    rows = X.copy()
    rows[0, 0] = np.nan
    with pytest.warns(FitFailedWarning, match="8 fits failed"), pytest.warns(UserWarning, match="Scoring failed"):
        ours, theirs = both(CrammerSingerSVC(tol=1e-6), {"C": [0.1, 1.0]}, rows, error_score=0.5, refit=False)
    assert_same(ours, theirs)


@pytest.mark.parametrize("refit", ["accuracy", False])
def test_names_of_a_functions_scores_are_known_though_the_first_fit_failed(refit):
    def scoring(model, rows, labels):
        right = model.predict(rows) == labels
        return {"accuracy": right.mean(), "mistakes": -right.size * (1 - right.mean())}

    grid = {"C": [-1.0, 1.0, 10.0]}
    found = []
    for kind in (GridSearchCV, MarginSearchCV):
        with pytest.warns(FitFailedWarning), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="One or more of the test scores")
            found.append(kind(CrammerSingerSVC(), grid, scoring=scoring, refit=refit, cv=3).fit(X, Y))
    theirs, ours = found
    assert ours.multimetric_
    assert hasattr(ours, "best_score_") == hasattr(theirs, "best_score_") == bool(refit)
    for name in ("mean_test_accuracy", "mean_test_mistakes", "rank_test_accuracy"):
        assert_allclose(ours.cv_results_[name], theirs.cv_results_[name])


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


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_folds_on_threads_are_views_of_one_array(container):
    rows = container(np.arange(40.0).reshape(20, 2) % 7)
    splits = list(KFold(3, shuffle=True, random_state=0).split(rows))
    new_splits, parts, _ = windows(rows, splits)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    for (train, test), (new_train, new_test), part in zip(splits, new_splits, parts, strict=True):
        assert set(train) == set(new_train) and set(test) == set(new_test) and len(train) == len(new_train)
        for found, wanted in zip(part, (new_train, new_test), strict=True):
            assert_array_equal(found.toarray() if sparse.issparse(found) else found, dense[wanted])
    base = lambda part: part.data if sparse.issparse(part) else part  # noqa: E731
    assert np.shares_memory(base(parts[0][0]), base(parts[1][0]))
    assert windows(rows, list(ShuffleSplit(2, random_state=0).split(rows))) is None
    assert windows(rows, [(np.arange(5), np.arange(5, 20)), (np.arange(5, 20), np.arange(5))]) is not None
    assert windows(rows, [(np.arange(4), np.arange(5, 20)), (np.arange(5, 20), np.arange(5))]) is None


def peak_memory(estimator, grid, rows, n_jobs):
    """Memory at the peak of a search, in units of the rows."""
    search = MarginSearchCV(estimator, grid, cv=5, n_jobs=n_jobs, refit=False)
    # Where Python has no lock it keeps a table for each thread, up to 1 MiB, which is not ours but counted.
    tables = (n_jobs + effective_n_jobs(-1)) * 2**20 if sysconfig.get_config_var("Py_GIL_DISABLED") else 0
    tracemalloc.start()
    try:
        search.fit(rows, np.arange(len(rows)) % 3)
        return (tracemalloc.get_traced_memory()[1] - tables) / rows.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("estimator", "density", "dtype"),
    [
        (CrammerSingerSVC(), 1.0, np.float32),
        (CrammerSingerSVC(), 1.0, np.float64),  # solved in single precision
        (WestonWatkinsSVC(), 0.1, np.float64),  # and as sparse rows
        (MultiMarginSVC(), 1.0, np.float64),  # and with one more column
        (MultiMarginSVC(), 0.1, np.float64),
    ],
)
def test_memory_does_not_grow_with_the_threads_by_the_rows(estimator, density, dtype):
    rng = np.random.default_rng(0)
    rows = rng.random((1000, 2000), dtype=np.float32).astype(dtype)
    rows[rng.random(rows.shape) >= density] = 0
    # The peak of small arrays that threads hold at the same moment varies; copies of the rows would be in every run.
    one, five = (min(peak_memory(estimator, {"C": [1e-4, 1e-3]}, rows, n) for _ in range(3)) for n in (1, 5))
    assert five - one < 0.5 * density


LINEAR_ULDM = ULDMClassifier(kernel="linear")


@pytest.mark.parametrize(
    ("estimator", "grid", "shape", "dtype", "shared"),
    [
        (M3SVC(), {"alpha": [10.0, 1.0]}, (5000, 400), np.float32, 1.6),  # the rows close to their margins
        (M3SVC(loss="log_loss"), {"alpha": [1.0, 0.1]}, (5000, 400), np.float64, 2.4),  # and in single precision
        (M3SVC(), {"alpha": [1.0, 0.1]}, (200, 4000), np.float64, 1.65),  # one factor for all folds, and a few rows
        (LINEAR_ULDM, {"alpha": [1e-3, 1e-2]}, (8000, 200), np.float64, 1.6),
        (LINEAR_ULDM, {"alpha": [1e-12, 1e-2]}, (8000, 200), np.float64, 1.6),  # triangles of QR factors
        (LINEAR_ULDM, {"alpha": [1e-3, 1e-2]}, (200, 4000), np.float64, 1.6),
        (LINEAR_ULDM, {"fit_intercept": [True, False]}, (8000, 200), np.float64, 1.6),  # fits one by one
        (LSSVC(kernel="linear"), {"C": [1e-3, 1e-2]}, (8000, 200), np.float32, 1.6),
    ],
)
def test_a_thread_needs_pieces_of_the_rows_only(estimator, grid, shape, dtype, shared, monkeypatch):
    # the sizes of pieces are constants: here small beside the rows, as they are beside large ones
    primal = {"chunk_bytes": 1 << 18, "copy_bytes": 1 << 18, "pairs": 50, "most_pairs": 50}
    pieces = {"piece_numbers": 1 << 14, "whole_numbers": 1 << 14}
    monkeypatch.setattr(type(estimator), "_tuning", DEFAULT.changed(primal=primal, two_class=pieces))
    rows = np.random.default_rng(0).random(shape, dtype=np.float32).astype(dtype)
    of_a_thread = 0.3 if dtype == np.float64 else 0.5
    for n_jobs in (1, 5):  # however the threads meet
        assert peak_memory(estimator, grid, rows, n_jobs) < shared + n_jobs * of_a_thread


def test_shared_rows():
    rows = np.arange(40.0).reshape(20, 2)
    single = lambda whole: whole.astype(np.float32)  # noqa: E731
    shared = SharedRows(rows)
    with sharing_rows(shared):
        first, second = converted(rows[3:9], "f", single), converted(rows[5:20], "f", single)
        assert np.shares_memory(first, second) and first.dtype == np.float32
        assert_array_equal(first, rows[3:9])
        assert_array_equal(converted(first[1:3], "wide", lambda r: np.hstack([r, r])), np.hstack([rows[4:6]] * 2))
        wide = converted(rows[4:6], "wide", lambda r: np.hstack([r, r]))  # of other rows than the one before
        assert wide.dtype == np.float64
        between, of_another_type = rows.ravel()[1:13].reshape(6, 2), rows.view(np.int64)[3:9]
        for other in (rows[::2], rows[:, :1], rows[3:9].copy(), between, of_another_type):  # no windows
            assert not np.shares_memory(converted(other, "f", single), first)
            assert_array_equal(converted(other, "f", single), other)
    assert not np.shares_memory(converted(rows[3:9], "f", single), first)


def test_lent_sparse_rows_with_empty_ones():
    dense = np.arange(24.0).reshape(12, 2) * (np.arange(12) % 3 > 0)[:, None]
    rows = sparse.csr_array(dense)
    wide = lambda some: sparse.csr_array(sparse.hstack([some, np.ones((some.shape[0], 1))], format="csr"))  # noqa: E731
    with sharing_rows(SharedRows(rows, 9)):
        forms = [converted(window(rows, slice(a, a + 5)), "wide", wide) for a in range(8)]
        for a, form in enumerate(forms):
            assert np.shares_memory(form.data, forms[max(a - 1, 0)].data)
            assert_array_equal(form.toarray(), np.hstack([dense[a : a + 5], np.ones((5, 1))]))
        single = converted(forms[3].data, "f", lambda numbers: numbers.astype(np.float32))
        assert np.shares_memory(single, converted(forms[4].data, "f", lambda numbers: numbers.astype(np.float32)))
        made, start = converted_whole(
            window(rows, slice(4, 6)), "count", lambda whole, n: (whole, n), lambda made: made[0]
        )
        assert (made[0] is rows, made[1], start) == (True, 9, 4)
        part = window(rows, slice(1, 6))
        for columns, n_columns in ((1 - part.indices, 2), (part.indices, 3)):  # other columns, and more of them
            other = sparse.csr_array((part.data, columns, part.indptr), shape=(5, n_columns), copy=False)
            other.data = part.data
            assert_array_equal(converted(other, "wide", wide).toarray(), wide(other).toarray())
    assert not np.shares_memory(converted(window(rows, slice(0, 5)), "wide", wide).data, forms[0].data)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_in_another_precision_are_shared(container):
    splits = list(KFold(3).split(np.zeros((20, 2))))
    shared = windows(container(np.arange(40.0).reshape(20, 2)), splits)
    with sharing_rows(shared.shared):
        first, second = (RowProducts(train).astype(np.float32) for train, _ in shared.parts[:2])
    numbers = lambda rows: rows.X.data if rows.sparse else rows.X  # noqa: E731
    assert first.dtype == np.float32 and np.shares_memory(numbers(first), numbers(second))
    for found, (train, _) in zip((first, second), shared.parts, strict=False):
        assert_array_equal(found.times(np.eye(2)), RowProducts(train).times(np.eye(2)))


def test_first_steps_are_fitted_once_a_fold():
    calls = []
    count = FunctionTransformer(lambda X: (calls.append(len(X)), X)[1])
    grid = {"crammersingersvc__C": [0.1, 1.0, 10.0], "crammersingersvc__class_weight": [None, "balanced"]}
    MarginSearchCV(make_pipeline(count, CrammerSingerSVC()), grid, cv=3, refit=False, n_jobs=2).fit(X, Y)
    assert sorted(calls) == [50, 50, 50, 100, 100, 100]


def test_the_search_leaves_its_estimator_alone():
    estimator = CrammerSingerSVC(kernel="rbf")
    before = clone(estimator).get_params()
    search = MarginSearchCV(estimator, {"C": [0.1, 1.0]}).fit(X, Y)
    assert estimator.get_params() == before and not hasattr(estimator, "classes_")
    assert search.best_estimator_.kernel == "rbf" and not search.best_estimator_.warm_start


def test_racing_keeps_the_winner_and_drops_the_hopeless():
    digits, labels = load_digits(return_X_y=True)
    digits, labels = digits[:600] / 16, labels[:600]
    grid = {"alpha": [1e-6, 1e-2, 1e6], "gamma": [0.05, 100.0]}
    full = MarginSearchCV(ULDMClassifier(), grid).fit(digits, labels)
    raced = MarginSearchCV(ULDMClassifier(), grid, racing=True).fit(digits, labels)
    assert raced.best_params_ == full.best_params_ and raced.best_score_ == full.best_score_
    dropped = np.isnan(raced.cv_results_["mean_test_score"])
    assert dropped.any() and np.isnan(raced.cv_results_["split4_test_score"][dropped]).all()
    assert np.isfinite(raced.cv_results_["split2_test_score"]).all()
    with pytest.warns(FitFailedWarning, match="5 fits failed"):
        MarginSearchCV(LSSVC(), {"C": [-1.0, 1.0]}, racing=True).fit(X, Y)
    with pytest.raises(ValueError, match="All the 10 fits failed"):
        MarginSearchCV(LSSVC(), {"C": [-1.0, -2.0]}, racing=True).fit(X, Y)
    with pytest.raises(ValueError, match="racing=True needs one metric"):
        MarginSearchCV(LSSVC(), {"C": [1.0]}, racing=True, refit=lambda results: 0).fit(X, Y)


def test_racing_drops_whom_the_test_rejects():
    """Test folds are a quarter of the training rows of five folds."""
    noisy = np.where(np.random.default_rng(0).random(len(Y)) < 0.3, Y[::-1], Y)
    grid = {"C": 10.0 ** np.arange(-5, 4, 0.25)}
    full, raced = (MarginSearchCV(LSSVC(), grid, racing=racing).fit(X, noisy).cv_results_ for racing in (False, True))
    table = np.stack([full[f"split{i}_test_score"] for i in range(5)], axis=1)
    for seen in (3, 4):
        table[rejected(table[:, :seen], 0.25), seen:] = np.nan
    found = np.stack([raced[f"split{i}_test_score"] for i in range(5)], axis=1)
    assert_array_equal(found, table)
    assert 0 < np.isnan(found[:, 3]).sum() < np.isnan(found[:, 4]).sum() < len(found)


def test_racing_by_one_of_the_scores_of_a_function():
    def several(model, rows, labels):
        return {"right": model.score(rows, labels), "wrong": 1 - model.score(rows, labels)}

    grid = {"gamma": [1.0, 1e5]}
    by_name = MarginSearchCV(LSSVC(), grid, racing=True).fit(X, Y)
    search = MarginSearchCV(LSSVC(), grid, racing=True, scoring=several, refit="right").fit(X, Y)
    assert_array_equal(search.cv_results_["mean_test_right"], by_name.cv_results_["mean_test_score"])
    assert np.isnan(search.cv_results_["mean_test_wrong"]).any() and search.best_params_ == by_name.best_params_
    with pytest.raises(ValueError, match="racing=True needs one metric"):
        clone(search).set_params(refit=False).fit(X, Y)
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        clone(search).set_params(refit="neither").fit(X, Y)


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_what_was_finished(n_jobs):
    rows, labels = make_classification(3000, 200, n_informative=100, n_classes=8, flip_y=0.5, random_state=0)
    scored = threading.Semaphore(0)

    def score(fitted, rows, labels):
        scored.release()
        return accuracy_score(labels, fitted.predict(rows))

    search = MarginSearchCV(
        CrammerSingerSVC(C=1e3, tol=1e-13), {"max_iter": [1, 10**9]}, n_jobs=n_jobs, scoring=score, cv=3
    )

    def interrupt():
        for _ in range(n_jobs):
            scored.acquire()
        time.sleep(1.0)  # the scores are noted, the endless fits begun
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        search.fit(rows, labels)
    thread.join()
    assert np.isfinite(search.cv_results_["split0_test_score"][0])
    assert np.isnan(search.cv_results_["split0_test_score"][1])
    with pytest.raises(NotFittedError):
        search.predict(rows)


def test_default_grids():
    grid = default_grid(ULDMClassifier(), X)
    assert set(grid) == {"alpha", "gamma"} and min(grid["gamma"]) > 0
    for container in (sparse.csc_array, sparse.coo_array, sparse.lil_matrix, np.ndarray.tolist):
        assert_allclose(default_grid(ULDMClassifier(), container(X))["gamma"], grid["gamma"])
    assert set(default_grid(make_pipeline(StandardScaler(), CrammerSingerSVC()))) == {"crammersingersvc__C"}
    assert MarginSearchCV(LSSVC(kernel="linear"), cv=3).fit(X, Y).best_score_ > 0.7
    with pytest.raises(ValueError, match="give a grid"):
        default_grid(StandardScaler())


def test_values_of_default_grids():
    widths = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
    for kernel in ("rbf", "laplacian"):
        machine = CrammerSingerSVC(kernel=kernel)
        assert_allclose(default_grid(machine, 2 * X)["gamma"], widths / (4 * (2 * X).var()))  # multiples of "scale"
        assert_allclose(default_grid(make_pipeline(machine), 2 * X)["crammersingersvc__gamma"], widths)
        assert_allclose(default_grid(machine)["gamma"], widths)
    assert default_grid(CrammerSingerSVC()) == {"C": [4.0**e for e in range(-3, 7)]}
    assert_allclose(default_grid(ULDMClassifier())["alpha"], np.logspace(-12, -1, 12))
    assert_allclose(default_grid(M3SVC())["alpha"], np.logspace(-5, 1, 7))
    assert default_grid(M3SVC())["p"] == [2, 4]


@pytest.mark.parametrize("estimator", [CrammerSingerSVC(), LSSVC(), make_pipeline(StandardScaler(), LSSVC())], ids=str)
def test_labels_are_asked_for(estimator):
    with pytest.raises(ValueError, match=r"MarginSearchCV requires y: (CrammerSingerSVC|LSSVC|Pipeline) learns from"):
        MarginSearchCV(estimator).fit(X)


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
    "factor_rows", [2000, 100]
)  # the number type of the kernel matrix is fixed, or depends on gamma
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.1])
def test_kernel_searches_take_lists(factor_rows, gamma, monkeypatch):
    monkeypatch.setattr(CrammerSingerSVC, "_tuning", DEFAULT.changed(kernel={"factor_rows": factor_rows}))
    X, y = load_iris(return_X_y=True)
    machine = CrammerSingerSVC(kernel="rbf", gamma=gamma, tol=1e-6, random_state=0)
    search = MarginSearchCV(machine, {"C": [1, 10]}, cv=3)
    assert clone(search).fit(X.tolist(), y.tolist()).best_score_ == search.fit(X, y).best_score_
