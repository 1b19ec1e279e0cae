"""The optimal margin distribution machine against its definition, cvxpy, and itself written otherwise."""

import threading
import tracemalloc
import warnings
from _thread import interrupt_main
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import minmax_scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import CrammerSingerSVC, ODMClassifier
from skmargin.solvers.odm import smooth as odm_smooth

SOLVERS = ["mm", "newton", "lbfgs"]
solvers = pytest.mark.parametrize("solver", SOLVERS)


@parametrize_with_checks([ODMClassifier(), ODMClassifier(kernel="rbf")])
def test_scikit_learn(estimator, check):
    check(estimator)


def toy(n=60, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return 2 * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


def objective(F, half_norm, y, C, mu, theta, weight=None):
    """The definition."""
    weight = np.ones(len(y)) if weight is None else weight
    i = np.arange(len(y))
    rival = F.copy()
    rival[i, y] = -np.inf
    gamma = F[i, y] - rival.max(axis=1)
    loss = np.maximum(0, 1 - theta - gamma) ** 2 + mu * np.maximum(0, gamma - 1 - theta) ** 2
    return half_norm + C / (weight.sum() * (1 - theta) ** 2) * (weight @ loss)


@solvers
def test_objective_belongs_to_the_published_coefficients(solver):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    clf = ODMClassifier(C=300, mu=0.7, theta=0.3, solver=solver).fit(X, y, weight)
    expected = objective(X @ clf.coef_.T + clf.intercept_, 0.5 * (clf.coef_**2).sum(), y, 300, 0.7, 0.3, weight)
    assert clf.objective_ == pytest.approx(expected, rel=1e-9)
    assert clf.objective_ == pytest.approx(clf.outer_objectives_[-1], rel=1e-12)
    assert len(clf.outer_objectives_) == clf.n_outer_iter_ + 1


def test_kernel_objective_belongs_to_the_published_coefficients():
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    clf = ODMClassifier(C=1000, kernel="rbf", tol=1e-5).fit(X, y)
    F = clf.decision_function(X)
    c = clf.dual_coef_
    half_norm = 0.5 * np.vdot(c, (F - clf.intercept_)[clf.support_])
    assert clf.objective_ == pytest.approx(objective(F, half_norm, y, 1000, 0.5, 0.2), rel=1e-6)
    assert clf.outer_objectives_[0] > clf.outer_objectives_[-1]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_two_classes_are_the_binary_machine(solver, intercept):
    """With two classes the problem is convex: 1/4 ||v||^2 + losses of the signed scores."""
    X, y = toy(50, 4, 2, seed=1)
    C, mu, theta = 50.0, 0.6, 0.3
    v, b = cp.Variable(4), cp.Variable()
    margin = cp.multiply(np.where(y == 1, 1.0, -1.0), X @ v + (b if intercept else 0))
    loss = cp.sum_squares(cp.pos(1 - theta - margin)) + mu * cp.sum_squares(cp.pos(margin - 1 - theta))
    best = cp.Problem(cp.Minimize(0.25 * cp.sum_squares(v) + C / (50 * (1 - theta) ** 2) * loss)).solve(
        solver="CLARABEL"
    )
    clf = ODMClassifier(C=C, mu=mu, theta=theta, solver=solver, fit_intercept=intercept, tol=1e-7).fit(X, y)
    assert clf.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(clf.coef_[0], v.value, atol=1e-3)


@pytest.mark.parametrize("solver", ["mm", "newton"])
def test_without_the_upper_part_it_is_the_squared_hinge_machine(solver):
    X, y = toy(40, 4, 4)
    C = 80.0
    W, b = cp.Variable((4, 4)), cp.Variable((1, 4))
    F = X @ W + np.ones((40, 1)) @ b
    own = cp.reshape(cp.sum(cp.multiply(F, np.eye(4)[y]), axis=1), (40, 1), order="C")
    hinge = cp.max(cp.pos(1 - own @ np.ones((1, 4)) + F - np.eye(4)[y]), axis=1)
    best = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + C / 40 * cp.sum_squares(hinge))).solve(solver="CLARABEL")
    clf = ODMClassifier(C=C, mu=0, theta=0, solver=solver, tol=1e-8).fit(X, y)
    assert clf.objective_ == pytest.approx(best, rel=1e-6)
    assert clf.n_outer_iter_ == 0
    assert clf.dual_gap_ <= 1e-8


DATA = {"iris": load_iris, "wine": load_wine, "digits": load_digits}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(("C", "mu", "theta"), [(16, 0.8, 0.2), (1024, 0.5, 0.4), (2**14, 0.2, 0.6)])
def test_objective_never_rises(name, C, mu, theta):
    X, y = DATA[name](return_X_y=True)
    X = minmax_scale(X)[::2]
    for settings in ({"solver": "mm"}, {"solver": "auto"}, {"kernel": "rbf"}):
        clf = ODMClassifier(C, mu, theta, random_state=0, max_iter=50_000, max_outer=50, **settings).fit(X, y[::2])
        assert np.all(np.diff(clf.outer_objectives_) <= 0)


@pytest.mark.parametrize("seed", range(5))
def test_objective_never_rises_on_random_data(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 6)), np.r_[np.arange(5), rng.integers(0, 5, 75)]
    C, mu, theta = 10 ** rng.uniform(0, 3), rng.uniform(0.05, 1), rng.uniform(0, 0.7)
    for rows in (X, sparse.csr_array(X * (X > 0.5))):
        clf = ODMClassifier(C, mu, theta, solver="mm", max_outer=50, max_iter=100_000, random_state=seed).fit(rows, y)
        assert np.all(np.diff(clf.outer_objectives_) <= 0)


@pytest.mark.parametrize("C", [10, 1000])
def test_end_is_a_local_minimum(C):
    """No direction descends from the end: neither random ones nor those towards the start."""
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    clf = ODMClassifier(C=C, tol=1e-9, solver="newton").fit(X, y)
    rng = np.random.default_rng(0)
    W, b = clf.coef_, clf.intercept_
    for _ in range(200):
        step = 1e-3 * rng.normal(size=W.shape) * np.abs(W).mean()
        there = objective(X @ (W + step).T + b, 0.5 * ((W + step) ** 2).sum(), y, C, 0.5, 0.2)
        assert there >= clf.objective_ * (1 - 1e-9)


def test_solvers_agree_where_no_margin_is_large():
    X, y = load_digits(return_X_y=True)
    X = X[:500] / 16
    values = [ODMClassifier(C=16, solver=s, tol=1e-5, random_state=0).fit(X, y[:500]).objective_ for s in SOLVERS]
    np.testing.assert_allclose(values, values[0], rtol=1e-3)  # lbfgs smooths


def test_linear_kernel_is_the_linear_machine():
    X, y = toy(70, 4, 4)
    linear = ODMClassifier(C=200, tol=1e-6, solver="newton", random_state=0).fit(X, y)
    kernel = ODMClassifier(C=200, tol=1e-6, kernel="precomputed", random_state=0).fit(X @ X.T, y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=3e-6)
    np.testing.assert_allclose(kernel.decision_function(X @ X.T), linear.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("settings", [{"solver": "mm"}, {"solver": "newton"}, {"kernel": "rbf"}])
def test_weights_are_repetitions(settings):
    X, y = toy(60, 4, 3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    base = ODMClassifier(C=50, tol=1e-7, class_weight="balanced", gamma=0.2, random_state=0, **settings)
    weighted = clone(base).fit(X, y, sample_weight=times)
    repeated = clone(base).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=3e-3)


@pytest.mark.parametrize("settings", [{"solver": "mm"}, {"solver": "newton"}, {"solver": "lbfgs"}, {"kernel": "rbf"}])
def test_warm_start(settings):
    X, y = load_digits(return_X_y=True)
    X, y = X[:400, 10:40] / 16, y[:400]
    clf = ODMClassifier(C=500, warm_start=True, random_state=0, tol=1e-3, **settings).fit(X, y)
    first, before = clf.n_iter_, clf.objective_
    clf.fit(X, y)
    assert clf.n_iter_ < 0.7 * first
    assert clf.objective_ <= before
    clf.set_params(C=1000).fit(X, y)
    assert clf.objective_ == pytest.approx(clone(clf).fit(X, y).objective_, rel=2e-2)
    clf.set_params(mu=0.0).fit(X, y)  # other duals are allowed now
    assert clf.objective_ == pytest.approx(clone(clf).fit(X, y).objective_, rel=2e-3)
    clf.fit(X[:300], y[:300])  # other data: a fresh start, no error
    if settings.get("solver") != "lbfgs":
        assert clf.dual_gap_ <= 1e-3


@pytest.mark.parametrize("settings", [{"solver": "mm"}, {"solver": "newton"}, {"solver": "lbfgs"}, {"kernel": "rbf"}])
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_a_warm_start_forgets_the_intercept(settings, mu):
    X, y = load_iris(return_X_y=True)
    clf = ODMClassifier(mu=mu, warm_start=True, random_state=0, **settings).fit(X, y)
    clf.set_params(fit_intercept=False).fit(X, y)
    assert not clf.intercept_.any()
    assert clf.objective_ == pytest.approx(clone(clf).fit(X, y).objective_, rel=2e-2)


ALL = [
    {"solver": "mm"}, {"solver": "newton"}, {"solver": "lbfgs"}, {"solver": "paper"}, {"kernel": "rbf"},
    {"kernel": "rbf", "solver": "paper"},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:ODMClassifier did not reach")
@pytest.mark.parametrize("settings", ALL)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_warm_start_begins_where_the_last_fit_ended(settings, fit_intercept):
    X, y = load_iris(return_X_y=True)
    clf = ODMClassifier(warm_start=True, fit_intercept=fit_intercept, tol=1e-2, random_state=0, **settings)
    ended = clf.fit(X + 10, y).objective_
    assert clf.fit(X + 10, y).outer_objectives_[0] == pytest.approx(ended, rel=1e-5)


@pytest.mark.filterwarnings("ignore:ODMClassifier did not reach")
@pytest.mark.parametrize("settings", ALL)
@pytest.mark.parametrize("max_iter", [1, 3, 20])
def test_no_solver_takes_more_iterations_than_it_may(settings, max_iter):
    X, y = load_wine(return_X_y=True)
    clf = ODMClassifier(C=1e4, tol=1e-12, max_iter=max_iter, random_state=0, **settings).fit(X / X.max(axis=0), y)
    assert 1 <= clf.n_iter_ <= max_iter


@pytest.mark.parametrize("solver", ["mm", "newton"])
def test_majorisers_that_were_too_few_are_blamed(solver):
    X, y = load_wine(return_X_y=True)
    clf = ODMClassifier(C=1e4, mu=0.8, tol=1e-9, max_outer=1, solver=solver, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"max_outer=1 majorisers.* Increase max_iter, max_outer or tol"):
        clf.fit(X / X.max(axis=0), y)
    assert clf.n_outer_iter_ <= 1


def test_rounding_certifies_nothing():
    rng = np.random.default_rng(4)
    X, y = 1e7 * rng.normal(size=(20, 3)), np.r_[np.arange(4), rng.integers(0, 4, 16)]
    X[:2] = 0
    settings = {"C": 2e6, "mu": 0.0, "theta": 0.9, "fit_intercept": False, "random_state": 0}
    newton = ODMClassifier(solver="newton", **settings).fit(X, y)
    assert newton.dual_gap_ <= 1e-3  # whatever the steps to rounding make of it
    kernel = ODMClassifier(kernel="poly", degree=1, gamma=1.0, **settings).fit(X, y)  # its duals cancel
    assert kernel.objective_ * (1 - kernel.dual_gap_) <= newton.objective_
    W = X[kernel.support_].T @ kernel.dual_coef_
    F = X @ W
    own, i = F[np.arange(20), y], np.arange(20)
    F[i, y] = -np.inf
    value = 0.5 * np.sum(W**2) + 1e5 / 0.1**2 * np.sum(np.maximum(0, 0.1 - own + F.max(axis=1)) ** 2)
    assert value == pytest.approx(kernel.objective_, rel=1e-3)
    assert value == pytest.approx(newton.objective_, rel=2e-3)


@solvers
def test_more_starts_are_not_worse(solver):
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    one = ODMClassifier(C=4096, mu=0.2, theta=0.6, solver=solver, random_state=0, max_outer=50).fit(X, y)
    many = clone(one).set_params(n_init=4).fit(X, y)
    assert many.objective_ <= one.objective_
    assert np.all(np.diff(many.outer_objectives_[1:]) <= 0)


@pytest.mark.parametrize("solver", ["mm", "newton"])
def test_more_starts_leave_a_bad_minimum(solver):
    X, y = load_wine(return_X_y=True)
    settings = {"C": 1e4, "mu": 0.2, "theta": 0.6, "solver": solver, "random_state": 0}
    one, four = (ODMClassifier(n_init=n, **settings).fit(X / X.max(axis=0), y).objective_ for n in (1, 4))
    assert four < 0.8 * one


@pytest.mark.parametrize(("mu", "n_runs"), [(0.5, 4), (0.0, 1)])
def test_the_best_of_several_smooth_descents_is_kept(mu, n_runs, monkeypatch):
    X, y = load_iris(return_X_y=True)
    descend, runs = odm_smooth._descend, []

    def worse_and_better(*task):
        end = descend(*task)
        runs.append(replace(end, objectives=end.objectives * (1.5, 2.0, 0.5, 1.0)[len(runs)]))
        return runs[-1]

    monkeypatch.setattr(odm_smooth, "_descend", worse_and_better)
    clf = ODMClassifier(C=100.0, mu=mu, solver="lbfgs", n_init=4, random_state=0).fit(X, y)
    best = min(runs, key=lambda run: run.objective)
    assert len(runs) == n_runs
    np.testing.assert_array_equal(clf.coef_, best.point.W)


@pytest.mark.parametrize("name", DATA)
def test_defaults_do_well(name):
    """No worse than Crammer and Singer's machine at its default, on features of one scale."""
    X, y = DATA[name](return_X_y=True)
    X = minmax_scale(X)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    odm, rival = (
        cross_val_score(machine, X, y, cv=folds).mean()
        for machine in (ODMClassifier(random_state=0), CrammerSingerSVC(random_state=0))
    )
    assert odm >= rival - 0.01


def test_memory_of_a_kernel_fit():
    """Bounded by cache_size, one block of rows that is not kept, and a few arrays of n k numbers."""
    X, y = toy(5000, 6, 3)
    full, cache = 4 * len(y) ** 2 / 2**20, 10
    tracemalloc.start()
    clf = ODMClassifier(C=500, kernel="rbf", gamma=0.02, cache_size=cache, tol=1e-2).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert clf.dual_gap_ <= 1e-2
    assert peak < cache + 16 + 20 * 8 * len(y) * 3 / 2**20 < 0.5 * full


@pytest.mark.parametrize("settings", [{"solver": "mm"}, {"solver": "newton"}, {"solver": "paper"}, {"kernel": "rbf"}])
def test_interrupt_leaves_it_unfitted_and_useful(settings):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 80)), rng.integers(0, 10, 3000)
    clf = ODMClassifier(C=1e8, tol=1e-12, max_iter=10**6, random_state=0, **settings)
    threading.Timer(0.5, interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)
    X, y = toy()
    again = clf.set_params(C=10, tol=1e-3).fit(X, y)
    assert np.array_equal(again.predict(X), clone(clf).fit(X, y).predict(X))


def test_theta_controls_the_support_vectors():
    X, y = load_digits(return_X_y=True)
    counts = [
        len(ODMClassifier(C=2000, theta=theta, kernel="rbf").fit(X[:500] / 16, y[:500]).support_)
        for theta in (0.0, 0.3, 0.6)
    ]
    assert counts[0] > counts[1] > counts[2]


def test_float32_sparse_and_wide_indices():
    X, y = toy(300, 6, 4)
    reference = ODMClassifier(C=100, tol=1e-6).fit(X, y)
    single = ODMClassifier(C=100, tol=1e-5).fit(X.astype(np.float32), y)
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    assert single.objective_ == pytest.approx(reference.objective_, rel=1e-4)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for solver in SOLVERS:
        assert ODMClassifier(C=100, tol=1e-4, solver=solver).fit(wide, y).objective_ == pytest.approx(
            reference.objective_, rel=2e-3
        )


def test_same_seed_same_bits():
    X, y = load_digits(return_X_y=True)
    fits = [ODMClassifier(C=100, random_state=7, n_init=2).fit(X[:400] / 16, y[:400]).coef_ for _ in range(2)]
    assert np.array_equal(*fits)


@solvers
def test_edges(solver):
    X, y = toy(30, 3, 3)
    X = np.vstack([X, np.zeros(3), X[:2]])  # a zero row, duplicate rows
    names = np.array(["a", "b", "ü<c>"])[np.r_[y, 0, y[:2]]]
    X.setflags(write=False)
    for intercept in (False, True):
        clf = ODMClassifier(C=30, fit_intercept=intercept, solver=solver).fit(X, names)
        assert set(clf.predict(X)) <= set(names)
    nothing = ODMClassifier(solver=solver).fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
    assert np.all(nothing.coef_ == 0)


@pytest.mark.parametrize("solver", ["auto", "mm", "newton"])
@pytest.mark.parametrize("constant", [1.0, 0.1, -7.3, 1e3])
def test_constant_features_say_nothing(solver, constant):
    """Rounding of the mean of 30 equal numbers is no feature."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = ODMClassifier(C=2, mu=0, theta=0.5, solver=solver).fit(np.full((30, 1), constant), np.arange(30) % 7)
    assert clf.objective_ <= 2 * (1 + 1e-12)
    assert clf.dual_gap_ <= clf.tol


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_constant_kernel_says_nothing(mu):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = ODMClassifier(C=2e4, mu=mu, theta=0.9, kernel="poly", coef0=1.0)
        clf.fit(np.zeros((63, 1)), np.arange(63) % 4)
    assert clf.objective_ <= 2e4 * (1 + 1e-12)


@pytest.mark.parametrize("settings", [{"solver": "mm"}, {"solver": "newton"}, {"kernel": "poly", "coef0": 1.0}])
@pytest.mark.parametrize("mu", [0.0, 0.5])
@pytest.mark.parametrize("max_iter", [1, 2, 5, 20])
def test_never_worse_than_nothing(settings, mu, max_iter):
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 7
    clf = ODMClassifier(C=1e3, theta=0.9, mu=mu, max_iter=max_iter, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y)
    assert clf.objective_ <= 1e3 * (1 + 1e-12)
    F = clf.decision_function(X)
    if "kernel" in settings:
        half_norm = 0.5 * np.vdot(clf.dual_coef_, (F - clf.intercept_)[clf.support_])
    else:
        half_norm = 0.5 * (clf.coef_**2).sum()
    assert clf.objective_ == pytest.approx(objective(F, half_norm, y, 1e3, mu, 0.9), rel=1e-8)


def test_strong_losses_of_a_kernel_machine():
    """The duals alone are published: the gap has to be that of their class vectors."""
    y = np.arange(30) % 2
    for seed in (0, 6, 13, 22, 49):
        X = np.random.default_rng(seed).normal(size=(30, 3))
        clf = ODMClassifier(C=1e4, theta=0.9, kernel="poly", coef0=1.0, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            clf.fit(X, y)
        eigenvalues, U = np.linalg.eigh(polynomial_kernel(X, gamma=clf._gamma, coef0=1.0))
        R = U * np.sqrt(np.maximum(0, eigenvalues))
        linear = ODMClassifier(C=1e4, theta=0.9, tol=1e-6, random_state=0).fit(R, y)
        assert clf.objective_ == pytest.approx(linear.objective_, rel=1e-3)


def test_many_classes():
    X = np.repeat(np.random.default_rng(0).normal(size=(150, 20)), 2, axis=0)
    y = np.repeat(np.arange(150), 2)
    clf = ODMClassifier(C=3000, tol=1e-2).fit(X, y)
    assert clf.score(X, y) > 0.9
    assert clf.dual_gap_ <= 1e-2


def test_pandas_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = ODMClassifier(C=100).fit(X, y)
    assert list(clf.feature_names_in_) == list(X.columns)
    assert isinstance(clf.predict(pd.DataFrame(X)), np.ndarray)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 0.0}, "'C' parameter .* Got 0.0"),
        ({"mu": 1.5}, "'mu' parameter .* Got 1.5"),
        ({"theta": 1.0}, "'theta' parameter .* Got 1.0"),
        ({"solver": "sgd"}, "'solver' parameter .* 'sgd'"),
        ({"n_init": 0}, "'n_init' parameter .* Got 0"),
        ({"max_outer": 0}, "'max_outer' parameter .* Got 0"),
        ({"kernel": "rbf", "solver": "lbfgs"}, "solver='lbfgs' fits kernel='linear' only"),
    ],
)
def test_bad_parameters(change, message):
    X, y = toy()
    with pytest.raises(ValueError, match=message):
        ODMClassifier().set_params(**change).fit(X, y)


def test_bad_data():
    X, y = toy()
    with pytest.raises(ValueError, match="two classes"):
        ODMClassifier().fit(X, y, sample_weight=(y == 1).astype(float))
    spoilt = X.copy()
    spoilt[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ODMClassifier().fit(spoilt, y)


@solvers
def test_warning_says_what_was_asked(solver):
    X, y = make_classification(300, 20, n_informative=10, n_classes=5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="within max_iter=2 passes"):
        ODMClassifier(C=1e4, max_iter=2, solver=solver).fit(X, y)


def test_warning_blames_no_limit_that_was_not_met():
    X, y = toy()
    with pytest.warns(ConvergenceWarning, match="nothing moved any more") as caught:
        for C in np.logspace(2, 5, 7):  # by rounding the gap may be zero once
            ODMClassifier(C=C, tol=1e-18).fit(X, y)
    assert not any("max_iter" in str(warning.message) for warning in caught)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_published_outer_loop(container):
    """Where no margin leaves the band it is the same machine (penalised intercept); elsewhere it ends higher."""
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    with_constant = np.column_stack([X, np.ones(len(X))])
    low = ODMClassifier(C=1, mu=0.8, theta=0.2, solver="paper", tol=1e-7).fit(container(X), y)
    ours = ODMClassifier(C=1, mu=0.8, theta=0.2, fit_intercept=False, tol=1e-7).fit(with_constant, y)
    assert low.objective_ == pytest.approx(ours.objective_, rel=1e-6)
    assert low.dual_gap_ <= 1e-7
    high = ODMClassifier(C=256, mu=0.8, theta=0.2, solver="paper", max_outer=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        high.fit(container(X), y)
    assert np.diff(high.outer_objectives_[2:]).max() > 0
    ours.set_params(C=256).fit(with_constant, y)
    assert high.objective_ > 1.5 * ours.objective_


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cache_size", [200, 1e-3])
def test_published_outer_loop_with_a_kernel(fit_intercept, cache_size):
    """The kernel x'z is the linear machine, step by step; every row kept, or none."""
    X, y = load_wine(return_X_y=True)
    X, weight = minmax_scale(X)[::2], np.random.default_rng(0).uniform(0.5, 2, 89)
    settings = {"mu": 0.8, "theta": 0.2, "solver": "paper", "fit_intercept": fit_intercept, "tol": 1e-7, "max_outer": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it goes round in circles
        for C in (1, 64):
            linear = ODMClassifier(C, **settings).fit(X, y[::2], weight)
            kernel = ODMClassifier(C, kernel=lambda A, B: A @ B.T, cache_size=cache_size, **settings)
            kernel.fit(X, y[::2], weight)
            np.testing.assert_allclose(kernel.outer_objectives_, linear.outer_objectives_, rtol=1e-5)
            assert kernel.objective_ == kernel.outer_objectives_[-1] and kernel.dual_gap_ <= 1e-7
            np.testing.assert_allclose(kernel.dual_coef_.T @ kernel.support_vectors_, linear.coef_, atol=1e-3)
            np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "laplacian", "precomputed"])
@pytest.mark.filterwarnings("ignore:kernel=.sigmoid. is not positive semi-definite")
def test_published_outer_loop_with_every_kernel(kernel):
    """Where no margin leaves the band it is the same machine; the objective is that of the published coefficients."""
    X, y = toy(50, 3, 4)
    K = {
        "rbf": rbf_kernel(X, gamma=0.2),
        "poly": polynomial_kernel(X, gamma=0.2, degree=2, coef0=1),
        "sigmoid": np.tanh(0.02 * X @ X.T + 1),
        "laplacian": laplacian_kernel(X, gamma=0.2),
        "precomputed": rbf_kernel(X, gamma=0.1),
    }[kernel]
    gamma = 0.02 if kernel == "sigmoid" else 0.2
    settings = {"gamma": gamma, "degree": 2, "coef0": 1, "mu": 0.8, "theta": 0.2, "fit_intercept": False, "tol": 1e-7}
    rows = K if kernel == "precomputed" else X
    low = ODMClassifier(1, kernel=kernel, solver="paper", **settings).fit(rows, y)
    ours = ODMClassifier(1, kernel=kernel, **settings).fit(rows, y)
    assert low.objective_ == pytest.approx(ours.objective_, rel=1e-6)
    high = ODMClassifier(200, kernel=kernel, solver="paper", warm_start=True, **{**settings, "tol": 1e-3})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        high.fit(rows, y)
        coef = np.zeros((50, 4))
        coef[high.support_] = high.dual_coef_
        expected = objective(K @ coef, 0.5 * np.vdot(coef, K @ coef), y, 200, 0.8, 0.2)
        assert high.objective_ == pytest.approx(expected, rel=1e-6)
        end = high.objective_
        assert high.fit(rows, y).outer_objectives_[0] == pytest.approx(end, rel=1e-6)


@pytest.mark.parametrize("mu", [0.0, 0.5])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_smooth_solver_with_features_of_different_sizes(mu, container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    y = (X @ rng.normal(size=(8, 4)) + 0.5 * rng.normal(size=(400, 4))).argmax(axis=1)
    X = container(X * 10.0 ** np.arange(-3, 5))
    exact = ODMClassifier(mu=mu, solver="newton", tol=1e-6).fit(X, y)
    smooth = ODMClassifier(mu=mu, solver="lbfgs").fit(X, y)
    assert smooth.objective_ <= 1.001 * exact.objective_


def test_numbers_of_numpy_as_parameters():
    X, y = load_iris(return_X_y=True)
    numbers = {"C": np.float32(1), "mu": np.float64(0.5), "theta": np.float32(0.25), "tol": np.float64(1e-4)}
    for solver in ("mm", "newton", "lbfgs", "paper"):
        assert ODMClassifier(**numbers, solver=solver, max_iter=np.int64(5000)).fit(X, y).score(X, y) > 0.6


@pytest.mark.filterwarnings("ignore:ODMClassifier did not reach")
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_features_near_the_end_of_double_precision(mu):
    rng = np.random.default_rng(0)
    X, y = 1e100 * rng.normal(size=(50, 4)), np.arange(50) % 3
    clf = ODMClassifier(mu=mu, random_state=0).fit(X, y)  # every other warning is an error
    assert np.isfinite(clf.objective_)
