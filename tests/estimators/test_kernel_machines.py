"""Crammer-Singer, Weston-Watkins and top-k machines with kernels: certificates, memory, what is no kernel."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from skmargin import M3SVC, CrammerSingerSVC, LpNormSVC, MultiMarginSVC, ODMClassifier, TopKSVC, WestonWatkinsSVC
from skmargin.solvers.tuning import DEFAULT

MACHINES = [CrammerSingerSVC(), WestonWatkinsSVC(), TopKSVC(k=2)]
NAMES = ["max", "sum", "top2"]
machines = pytest.mark.parametrize("machine", MACHINES, ids=NAMES)


def toy(n=40):
    return make_classification(
        n, 4, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, flip_y=0.2, random_state=0
    )


@machines
def test_a_long_row_among_those_of_a_kernel(machine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, :3] + 0.7 * rng.normal(size=(60, 3))).argmax(axis=1)
    X[0] *= 3e8
    linear = clone(machine).fit(X, y)
    kernel = clone(machine).set_params(kernel="poly", degree=1, gamma=1.0).fit(X, y)
    assert kernel.objective_ * (1 - kernel.dual_gap_) <= linear.objective_ * (1 + 1e-9)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=2e-3)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("gamma", [1e-3, 0.1])
def test_kernel_machines_with_a_large_C_and_uneven_weights_converge(intercept, gamma):
    X, y = make_classification(150, 10, n_informative=6, n_classes=4, flip_y=0.1, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = {0: 1e-3, 1: 1.0, 2: 1.0, 3: 100.0}
    for machine in MACHINES:
        clf = clone(machine).set_params(C=1e3, kernel="rbf", gamma=gamma, fit_intercept=intercept, tol=1e-6)
        assert clf.set_params(class_weight=weights).fit(X, y).dual_gap_ <= 1e-6


@pytest.mark.parametrize(
    "machine", [*MACHINES, LpNormSVC(), MultiMarginSVC(), ODMClassifier(mu=0.0)], ids=[*NAMES, "lp", "xu", "odm"]
)
def test_rows_of_weight_zero_are_no_columns_of_a_kernel_matrix(machine):
    X, y = toy(60)
    kept = np.arange(60) % 3 > 0
    K = X @ X.T
    clf = clone(machine).set_params(kernel="precomputed", tol=1e-7, random_state=0)
    weighted, fewer = clone(clf).fit(K, y, sample_weight=kept), clf.fit(K[np.ix_(kept, kept)], y[kept])
    assert kept[weighted.support_].all()
    assert weighted.objective_ == pytest.approx(fewer.objective_, rel=1e-6)
    np.testing.assert_allclose(weighted.decision_function(K), fewer.decision_function(K[:, kept]), atol=2e-3)


@pytest.mark.parametrize("intercept", [False, True])
def test_passes_go_on_where_a_kernel_has_no_factor(intercept, monkeypatch):
    X, y = load_iris(return_X_y=True)
    settings = {"kernel": "rbf", "fit_intercept": intercept, "tol": 1e-4, "random_state": 0}
    usual = CrammerSingerSVC(**settings).fit(X, y)
    monkeypatch.setattr("skmargin.solvers.dual.kernel_factor.factor", lambda rows: None)
    clf = CrammerSingerSVC(**settings)
    clf._tuning = DEFAULT.changed(kernel={"factor_steps": 0.0})
    clf.fit(X, y)
    assert clf.dual_gap_ <= 1e-4
    assert clf.objective_ == pytest.approx(usual.objective_, rel=2e-4)
    with pytest.warns(ConvergenceWarning, match="max_iter=3 with"):
        assert clf.set_params(max_iter=3, tol=1e-9).fit(X, y).n_iter_ == 3


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_memory_for_a_small_part_of_the_support_vectors(fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 20))
    y = (X[:, :4] + rng.standard_normal((1000, 4))).argmax(axis=1)
    large, small = (
        CrammerSingerSVC(kernel="rbf", cache_size=size, fit_intercept=fit_intercept, random_state=0).fit(X, y)
        for size in (100, 0.3)
    )
    assert len(small.support_) > 900
    assert small.dual_gap_ <= small.tol
    assert small.n_iter_ < 10 * large.n_iter_


def value(clf, K, y):
    """The objective of what a Crammer-Singer or Weston-Watkins machine publishes, in more digits than it has."""
    c, K = np.zeros((len(y), len(clf.classes_)), np.longdouble), K.astype(np.longdouble)
    c[clf.support_] = clf.dual_coef_
    F, own = K @ c, (np.arange(len(y)), y)
    norm, F = (c * F).sum(), F + clf.intercept_
    hinges = np.maximum(0, 1 - F[own][:, None] + F)
    hinges[own] = 0
    losses = hinges.max(axis=1) if isinstance(clf, CrammerSingerSVC) else hinges.sum(axis=1)
    return float(norm / 2 + clf.C * losses.sum())


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
@pytest.mark.parametrize("gamma", [0.1, 10.0])
def test_kernels_much_narrower_than_the_data_are_certified(container, gamma):
    X, y = load_wine(return_X_y=True)  # features that were not scaled: squares far above the distances of neighbours
    clf = CrammerSingerSVC(C=1e4, kernel="rbf", gamma=gamma, random_state=0).fit(container(X), y)
    assert clf.dual_gap_ <= clf.tol
    assert value(clf, rbf_kernel(X, gamma=gamma), y) == pytest.approx(clf.objective_, rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*relative duality gap:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("machine", [CrammerSingerSVC, WestonWatkinsSVC])
@pytest.mark.parametrize(
    ("load", "scale", "shift", "degree", "C", "reaches"),
    [
        (load_wine, 1e4, 0, 1, 1e10, True),  # the objective was the small rest of a large one
        (load_wine, 1e4, 0, 2, 1e4, True),
        (load_wine, 1, 1e3, 2, 1e10, True),
        (load_wine, 1, 1e5, 1, 1e7, False),
        (load_iris, 1e4, 0, 1, 1e4, False),  # float64 cannot say it, and did not know
        (load_iris, 1, 0, 2, 1e10, True),  # only longer class vectors have a small gap
        (load_iris, 1, 1e3, 1, 1e7, False),
    ],
)
def test_no_objective_is_hidden_by_rounding(machine, load, scale, shift, degree, C, reaches):
    """Kernels of low rank, long rows or rows far from zero, and a C that turns rounding into losses."""
    X, y = load(return_X_y=True)
    X = scale * (X - X.mean(axis=0)) / X.std(axis=0) + shift
    K = (X.astype(np.longdouble) @ X.T + (degree > 1)) ** degree
    clf = machine(C=C, kernel="poly", gamma=1.0, coef0=float(degree > 1), degree=degree, random_state=0).fit(X, y)
    told, true = clf.objective_, value(clf, K, y)
    assert true <= told * (1 + clf.dual_gap_ + 1e-4) or clf.dual_gap_ == 1
    assert clf.dual_gap_ <= clf.tol or not reaches


@pytest.mark.parametrize("first", [1e-6, 1e-2])
def test_a_long_step_along_C_leaves_no_rounding_behind(first):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    clf = CrammerSingerSVC(C=first, kernel="rbf", gamma=0.05, warm_start=True, random_state=0).fit(X, y)
    clf.set_params(C=100).fit(X, y)
    assert clf.dual_gap_ <= clf.tol
    assert value(clf, rbf_kernel(X, gamma=0.05), y) == pytest.approx(clf.objective_, rel=2e-5)


@pytest.mark.parametrize(
    ("change", "K", "message"),
    [
        ({}, np.ones((6, 12)), "square"),
        ({}, np.ones((6, 5)), "square"),
        ({}, np.eye(6) + np.eye(6, k=1), "symmetric"),
        ({}, -np.eye(6), r"K\(x, x\) = -1"),
        ({"kernel": lambda A, B: A[:, :1] + 2 * B[:, :1].T}, np.eye(6), "symmetric"),
        ({"kernel": lambda A, B: np.ones((3, 3))}, np.eye(6), r"shape \(6, 6\)"),
        ({"kernel": lambda A, B: A @ B.T + 0j}, np.eye(6), "real numbers"),
        ({"kernel": lambda A, B: A @ B.T * np.nan}, np.eye(6), "NaN"),
        ({"kernel": "poly", "degree": 0.5}, np.outer([1, -1, 1, -1, 1, -1], np.ones(6)), "kernel='poly' gives NaN"),
        ({"kernel": "poly", "degree": 500}, 10 * np.eye(6), "kernel='poly' gives NaN"),
    ],
)
@machines
def test_what_is_no_kernel_is_refused(machine, change, K, message):
    clf = clone(machine).set_params(kernel="precomputed", gamma=1.0).set_params(**change)
    with pytest.raises(ValueError, match=message):
        clf.fit(K, np.arange(6) % 3, sample_weight=np.r_[np.ones(5), 0.0] if K.shape[1] == 5 else None)


def test_kernel_functions_may_give_sparse_matrices():
    X, y = toy()
    clf = CrammerSingerSVC(kernel=lambda A, B: sparse.csr_array(A @ B.T), tol=1e-6).fit(X, y)
    assert clf.objective_ == pytest.approx(CrammerSingerSVC(tol=1e-6).fit(X, y).objective_, rel=1e-5)


def test_kernel_values_beyond_float32():
    X, y = toy(300)
    clf = WestonWatkinsSVC(kernel="poly", gamma=1.0, degree=3, C=1e-43).fit(1e7 * X, y)
    assert np.isfinite(clf.dual_coef_).all() and clf.dual_gap_ <= 1e-3


@pytest.mark.parametrize("machine", [CrammerSingerSVC(), LpNormSVC(), MultiMarginSVC(), M3SVC()])
def test_one_pair_of_rows_makes_a_large_matrix_indefinite(machine):
    K, y = np.eye(700), np.arange(700) % 2
    machine = clone(machine).set_params(kernel="precomputed")
    K[0, 1] = K[1, 0] = 1.5  # no product of rows of length one; not both of them among 500 rows of the same distance
    with pytest.warns(UserWarning, match="not positive semi-definite on these rows"):
        assert machine.fit(K, y).dual_gap_ is None
    K[0, 1] = K[1, 0] = 0.5
    assert machine.fit(K, y).dual_gap_ <= 1e-3
