"""LpNormSVC against cvxpy, the machine of Crammer and Singer, and itself along C and p."""

from inspect import signature

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import CrammerSingerSVC, LpNormSVC
from skmargin.solvers.block_norm import interior_point as lp_interior
from skmargin.solvers.block_norm.ascent import _as_kernel_state
from skmargin.solvers.block_norm.interior_point import Root, class_weights, curvature, solve_interior
from skmargin.solvers.dual.state import DualLists, DualState
from skmargin.solvers.tuning import DEFAULT


@parametrize_with_checks([LpNormSVC(), LpNormSVC(p=3.0), LpNormSVC(kernel="rbf")])
def test_scikit_learn(estimator, check):
    check(estimator)


def toy(n=30, d=8, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


# cvxpy before 1.8 writes the norm with second-order cones, which is exact for these p.
EXACT = {"approx": False} if "approx" in signature(cp.pnorm).parameters else {}


def optimum(X, y, C, p, weight=None, intercept=False):
    """The problem written a second time, for cvxpy; X may be a factor of a kernel matrix."""
    n, k = len(y), y.max() + 1
    weight = np.ones(n) if weight is None else weight
    W, b, xi = cp.Variable((X.shape[1], k)), cp.Variable(k), cp.Variable(n, nonneg=True)
    F = X @ W + (np.ones((n, 1)) @ cp.reshape(b, (1, k), order="C") if intercept else 0)
    E = np.eye(k)[y]
    own = cp.sum(cp.multiply(F, E), axis=1, keepdims=True) @ np.ones((1, k))
    constraints = [cp.reshape(xi, (n, 1), order="C") @ np.ones((1, k)) >= (1 - E) - own + F]
    penalty = 0.5 * cp.square(cp.pnorm(cp.norm(W, 2, axis=0), p, **EXACT))
    problem = cp.Problem(cp.Minimize(penalty + C * weight @ xi), constraints)
    return problem.solve(solver="CLARABEL", tol_gap_rel=1e-8, tol_gap_abs=1e-8, tol_feas=1e-8)


def objective(clf, X, y, C, p, weight=1.0):
    F = clf.decision_function(X)
    own = F[np.arange(len(y)), y]
    F[np.arange(len(y)), y] = -np.inf
    norms = np.linalg.norm(clf.coef_, axis=1)
    return 0.5 * (norms**p).sum() ** (2 / p) + C * (weight * np.maximum(0, 1 - own + F.max(axis=1))).sum()


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0, 8.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("d", "C"), [(3, 10.0), (8, 0.1), (8, 100.0)])
def test_optimum_is_that_of_cvxpy(p, intercept, d, C):
    X, y = toy(d=d)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y))
    best = optimum(X, y, C, p, weight, intercept)
    for rows in (X, sparse.csr_array(X)):
        clf = LpNormSVC(C=C, p=p, fit_intercept=intercept, tol=1e-7).fit(rows, y, weight)
        assert clf.objective_ == pytest.approx(best, rel=1e-6)
        assert 0 <= clf.dual_gap_ <= 1e-7
        assert objective(clf, X, y, C, p, weight) == pytest.approx(clf.objective_, rel=1e-7)


@pytest.mark.parametrize("p", [1.05, 1.5, 4.0, 50.0])
@pytest.mark.parametrize("C", [0.1, 1e3])
@pytest.mark.parametrize("intercept", [False, True])
def test_interior_point_steps_agree_with_block_ascent(p, C, intercept):
    """Each is near the optimum where the bound of the other one says so."""
    X, y = toy(60, 4, 3, seed=2)
    point = solve_interior(X, y, np.full(60, C), 3, p, fit_intercept=intercept, tol=1e-8, max_iter=100)
    clf = LpNormSVC(C=C, p=p, fit_intercept=intercept, tol=1e-7).fit(X, y)
    assert clf.dual_gap_ <= 1e-7
    assert point.objective == pytest.approx(clf.objective_, rel=3e-7)
    assert (point.alpha >= 0).all() and (point.alpha.sum(axis=1) <= C * (1 + 1e-9)).all()
    M = np.random.default_rng(0).normal(size=(3, 4))
    step = 1e-5 * np.random.default_rng(1).normal(size=(3, 4))
    r = max(p, p / (p - 1))
    slopes = [class_weights(m, r)[:, None] * m for m in (M + step, M - step)]
    np.testing.assert_allclose((slopes[0] - slopes[1]).ravel() / 2, curvature(M, r) @ step.ravel(), atol=1e-10)


@pytest.mark.parametrize("p", [1.5, 4.0])
@pytest.mark.parametrize("shape", [(60, 4), (20, 50)])
def test_pieces_that_let_ctrl_c_through_make_the_same_interior_point(p, shape, monkeypatch):
    X, y = toy(*shape, 3, seed=2)
    X[5] = X[4]  # a row that adds no axis
    y[5] = y[4]

    def solve(tuning):
        return solve_interior(X, y, np.ones(len(y)), 3, p, fit_intercept=True, tol=1e-8, max_iter=100, tuning=tuning)

    whole, heard = solve(DEFAULT), []
    monkeypatch.setattr(lp_interior, "report", lambda: heard.append(True))
    pieces = solve(DEFAULT.changed(common={"product_work": 4e4, "least_block": 6}))
    assert pieces.objective == pytest.approx(whole.objective, rel=1e-7)
    np.testing.assert_allclose(pieces.W, whole.W, atol=1e-4)
    assert len(heard) > 4 * pieces.n_iter


@pytest.mark.parametrize("p", [1.2, 5.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_kernel_optimum_is_that_of_cvxpy(p, intercept):
    X, y = toy(seed=3)
    factor = np.linalg.cholesky(rbf_kernel(X, gamma=0.1) + 1e-12 * np.eye(len(y)))
    best = optimum(factor, y, 0.5, p, None, intercept)
    clf = LpNormSVC(C=0.5, p=p, kernel="rbf", gamma=0.1, fit_intercept=intercept, tol=1e-6).fit(X, y)
    assert clf.objective_ == pytest.approx(best, rel=2e-6)
    assert clf.dual_gap_ <= 1e-6
    given = LpNormSVC(C=0.5, p=p, kernel="precomputed", fit_intercept=intercept, tol=1e-6)
    K = rbf_kernel(X, gamma=0.1)
    np.testing.assert_allclose(given.fit(K, y).decision_function(K), clf.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("p", [1.05, 20.0, 50.0])
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_kernel_of_low_rank(p, C, intercept):
    """Block ascent crawls there, and for large p the link of the best duals is lost in rounding."""
    X, y = toy(120, 6, 9, seed=5)
    settings = {"C": C, "p": p, "fit_intercept": intercept, "tol": 1e-6}
    K = X @ X.T
    given = LpNormSVC(kernel="precomputed", **settings).fit(K, y)
    assert given.objective_ == pytest.approx(optimum(X, y, C, p, None, intercept), rel=2e-6)
    assert 0 <= given.dual_gap_ <= 1e-6
    F = given.decision_function(K)
    own = F[np.arange(len(y)), y]
    F[np.arange(len(y)), y] = -np.inf
    coef = np.zeros((len(y), 9))
    coef[given.support_] = given.dual_coef_
    norms = np.linalg.norm(coef.T @ X, axis=1)
    value = 0.5 * norms.max() ** 2 * ((norms / norms.max()) ** p).sum() ** (2 / p)
    assert value + C * np.maximum(0, 1 - own + F.max(axis=1)).sum() == pytest.approx(given.objective_, rel=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "poly", laplacian_kernel])
@pytest.mark.parametrize("p", [1.3, 6.0])
def test_small_cache_gives_the_same_machine(kernel, p):
    X, y = load_digits(return_X_y=True)
    X, y = X[:60] / 16, y[:60]
    whole = LpNormSVC(p=p, kernel=kernel, tol=1e-4, random_state=0).fit(X, y)
    for size in (1e-6, 0.002) if kernel == "rbf" else (0.002,):  # one row, eight rows
        part = clone(whole).set_params(cache_size=size).fit(X, y)
        assert part.dual_gap_ <= 1e-4
        np.testing.assert_allclose(part.decision_function(X), whole.decision_function(X), atol=2e-3)
    if kernel == "rbf":
        part.fit(sparse.csr_array(X), y)
        np.testing.assert_allclose(part.decision_function(X), whole.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("p", [3.0, 10.0, 50.0])
def test_direction_of_the_mean_set_apart(p):
    """Rows with a long mean and no intercept: multipliers for its direction, and the certificate is exact."""
    X, y = toy(80, 16, 5, seed=1)
    X = X + 3
    for C in (0.1, 10.0):
        best = optimum(X, y, C, p)
        for rows in (X, sparse.csr_array(X)):
            clf = LpNormSVC(C=C, p=p, fit_intercept=False, tol=1e-6).fit(rows, y)
            assert clf.objective_ == pytest.approx(best, rel=2e-6)
            assert clf.dual_gap_ <= 1e-6
            assert objective(clf, X, y, C, p) == pytest.approx(clf.objective_, rel=1e-7)


def test_two_is_crammer_singer():
    X, y = load_digits(return_X_y=True)
    ours, theirs = (
        LpNormSVC(C=0.1, p=2, random_state=0).fit(X / 16, y),
        CrammerSingerSVC(C=0.1, random_state=0).fit(X / 16, y),
    )
    assert np.array_equal(ours.coef_, theirs.coef_) and ours.objective_ == theirs.objective_
    K = X[:200] @ X[:200].T / 256
    ours = LpNormSVC(C=0.1, p=2, kernel="precomputed", tol=1e-5).fit(K, y[:200])
    theirs = CrammerSingerSVC(C=0.1, kernel="precomputed", tol=1e-5).fit(K, y[:200])
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=2e-5)
    ours = LpNormSVC(C=0.1, p=2.001, kernel="precomputed", tol=1e-5).fit(K, y[:200])  # no longer the same solver
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=2e-3)


@pytest.mark.parametrize("p", [1.05, 1.2, 2.5, 10.0, 50.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_every_p_is_certified(p, container):
    X, y = load_digits(return_X_y=True)
    X = X[:500] / 16
    clf = LpNormSVC(C=0.1, p=p, random_state=0).fit(container(X), y[:500])
    assert clf.dual_gap_ <= 1e-3
    assert objective(clf, X, y[:500], 0.1, p) == pytest.approx(clf.objective_, rel=1e-5)
    assert np.array_equal(clf.coef_, clone(clf).fit(container(X), y[:500]).coef_)


@pytest.mark.parametrize("p", [1.2, 3.0, 10.0, 50.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_features_of_mixed_scales(p, intercept):
    """Multipliers that are all of C beside others of 1e-6: rounding in the first must not spoil the second."""
    y = np.arange(20) % 6
    for seed in (4, 6, 7, 9):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 12)) * 10 ** rng.uniform(-3, 3, 12)
        for C in (1.0, 100.0, 1e4):
            clf = LpNormSVC(C=C, p=p, fit_intercept=intercept, tol=1e-5, random_state=0).fit(X, y)
            assert clf.dual_gap_ <= 1e-5
            assert objective(clf, X, y, C, p) == pytest.approx(clf.objective_, rel=1e-6)


@pytest.mark.parametrize("p", [1.1, 1.5, 3.0, 50.0])
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_interior_point_steps_know_no_scale(p, size):
    """Weak and strong penalties, and more features than rows: few steps to a gap near rounding."""
    for n, d, k in ((40, 6, 5), (12, 40, 4)):
        X, y = toy(n, d, k, seed=3)
        point = solve_interior(size * X, y, np.ones(n), k, p, fit_intercept=True, tol=1e-9, max_iter=100)
        clf = LpNormSVC(C=1, p=p, tol=1e-8).fit(size * X, y)
        assert point.n_iter < 60
        assert point.objective == pytest.approx(clf.objective_, rel=1e-7)


def test_roots_of_the_curvature():
    M = np.random.default_rng(0).normal(size=(3, 4))
    for r in (2.0, 3.0, 11.0):
        J = Root(M, r).times(np.eye(12).reshape(3, 4, 12)).reshape(12, 12)
        np.testing.assert_allclose(J @ J.T, curvature(M, r), atol=1e-12)
        np.testing.assert_allclose(Root(M, r).transposed_times(np.eye(12).reshape(3, 4, 12)).reshape(12, 12), J.T)


def test_tiny_problems_are_not_polished_for_ever():
    rng = np.random.default_rng(0)
    for X, k in ((0.016 * rng.normal(size=(74, 18)), 6), (rng.normal(size=(12, 150)), 10)):
        for p in (1.1, 10.0):
            clf = LpNormSVC(C=1e-4 if k == 6 else 1e3, p=p, random_state=0).fit(X, np.arange(len(X)) % k)
            assert clf.dual_gap_ <= 1e-8 and clf.n_iter_ < 2000


@pytest.mark.parametrize(("n", "cache"), [(75, 500), (520, 500), (520, 1)])
@pytest.mark.parametrize("kernel", ["precomputed", "rbf"])
def test_kernel_objective_is_that_of_the_published_coefficients(n, cache, kernel):
    """In double precision, whatever the passes were made in."""
    y, C = np.arange(n) % 8, 1000.0 if n == 75 else 1.0
    X = np.random.default_rng(78).normal(size=(n, 5))
    K = rbf_kernel(X, gamma=0.3)
    clf = LpNormSVC(C=C, p=10, kernel=kernel, gamma=0.3, cache_size=cache, random_state=0)
    clf.fit(K if kernel == "precomputed" else X, y)
    coef = np.zeros((n, 8))
    coef[clf.support_] = clf.dual_coef_
    scores = K @ coef
    norms = np.sqrt(np.einsum("il,il->l", coef, scores))
    F, own = scores + clf.intercept_, (np.arange(n), y)
    hinges = 1 - F[own][:, None] + F
    hinges[own] = 0
    value = 0.5 * (norms**10).sum() ** 0.2 + C * hinges.max(axis=1).sum()
    assert clf.objective_ == pytest.approx(value, rel=1e-9)
    assert clf.dual_gap_ <= 1e-3
    if n == 75:
        exact = clone(clf).set_params(tol=1e-6).fit(K if kernel == "precomputed" else X, y)
        assert clf.objective_ * (1 - clf.dual_gap_) <= exact.objective_


def test_small_p_concentrates_the_norms():
    X, y = load_digits(return_X_y=True)
    spread = []
    for p in (1.1, 2.0, 8.0):
        norms = np.linalg.norm(LpNormSVC(C=0.01, p=p).fit(X[:500] / 16, y[:500]).coef_, axis=1)
        spread.append(norms.max() / norms.mean())
    assert spread[0] > spread[1] > spread[2]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_warm_start_along_C_and_p(kernel):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    clf = LpNormSVC(C=0.1, p=1.5, warm_start=True, random_state=0, kernel=kernel, tol=1e-4).fit(X, y)
    first = clf.n_iter_
    assert clf.fit(X, y).n_iter_ < max(2, first / 2)
    for change in ({"C": 0.05}, {"C": 0.2}, {"p": 1.7}, {"p": 3.0}):
        clf.set_params(**change).fit(X, y)
        assert clf.objective_ == pytest.approx(clone(clf).fit(X, y).objective_, rel=2e-4)
    clf.fit(X[:300], y[:300])  # other data: a fresh start, no error
    assert clf.dual_gap_ <= 1e-4


@pytest.mark.parametrize("p", [1.3, 4.0])
def test_weights_are_repetitions(p):
    X, y = toy(40, 6, 3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    base = LpNormSVC(C=0.2, p=p, tol=1e-6, class_weight="balanced", random_state=0)
    weighted = clone(base).fit(X, y, sample_weight=times)
    repeated = clone(base).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)


@pytest.mark.parametrize("p", [1.1, 6.0])
def test_edges(p):
    X, y = toy(30, 3, 3)
    X = np.vstack([X, np.zeros(3), X[:2]])  # a zero row, duplicate rows
    names = np.array(["a", "b", "ü<c>"])[np.r_[y, 0, y[:2]]]
    X.setflags(write=False)
    for intercept in (False, True):
        clf = LpNormSVC(C=0.1, p=p, fit_intercept=intercept).fit(X, names)
        assert set(clf.predict(X)) <= set(names) and clf.dual_gap_ <= 1e-3
    nothing = LpNormSVC(p=p).fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
    assert np.all(nothing.coef_ == 0)
    single = LpNormSVC(C=0.1, p=p).fit(X.astype(np.float32), names)
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    two = LpNormSVC(C=0.1, p=p).fit(X, names == "a")
    assert two.coef_.shape == (1, 3)


def test_many_classes():
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(1000, 20)), 2, axis=0), np.repeat(np.arange(1000), 2)
    for p in (1.5, 4.0):
        clf = LpNormSVC(p=p, tol=1e-2).fit(X, y)
        assert clf.dual_gap_ <= 1e-2 and clf.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": 1.0}, "'p' parameter .* Got 1.0"),
        ({"p": 51}, "'p' parameter .* Got 51"),
    ],
)
def test_bad_parameters(change, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        LpNormSVC(**change).fit(X, y)


def test_float32_rows_have_the_objective_of_their_machine():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 4
    X = (rng.standard_normal((40, 25)) + rng.standard_normal((4, 25))[y]).astype(np.float32)
    clf = LpNormSVC(C=1e4, p=1.5, tol=1e-6, random_state=0).fit(X, y)
    F, own = X.astype(float) @ clf.coef_.T + clf.intercept_, (np.arange(40), y)
    hinges = np.maximum(0, 1 - F[own][:, None] + F)
    hinges[own] = 0
    norm = (np.linalg.norm(clf.coef_, axis=1) ** 1.5).sum() ** (1 / 1.5)
    assert clf.objective_ == pytest.approx(0.5 * norm**2 + 1e4 * hinges.max(axis=1).sum(), rel=1e-6)


@pytest.mark.parametrize("p", [1.2, 3.0])
def test_rows_of_zeros(p):
    """No class vector can have a length: the losses at zero are the optimum."""
    y = np.arange(12) % 4
    clf = LpNormSVC(p=p, fit_intercept=False).fit(np.zeros((12, 3)), y)
    assert clf.objective_ == pytest.approx(12) and clf.dual_gap_ <= clf.tol
    assert not clf.coef_.any()


def test_a_start_near_the_optimum_is_no_reason_to_believe_float32():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 50))
    y = (X @ rng.normal(size=(50, 3)) + 3 * rng.normal(size=(8000, 3))).argmax(axis=1)
    X += 3
    clf = LpNormSVC(C=1e-3, tol=1e-10, random_state=0, warm_start=True).fit(X, y)
    best = clf.objective_
    clf.set_params(tol=1e-9).fit(X, y)
    F = X @ clf.coef_.T + clf.intercept_
    own = np.arange(len(y)), y
    hinges = 1 - F[own][:, None] + F
    hinges[own] = 0
    penalty = 0.5 * (np.linalg.norm(clf.coef_, axis=1) ** clf.p).sum() ** (2 / clf.p)
    assert clf.objective_ == pytest.approx(penalty + clf.C * hinges.max(axis=1).sum(), rel=1e-12)
    assert clf.objective_ <= best * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore:LpNormSVC stopped")
@pytest.mark.parametrize("p", [1.1, 1.5, 5.0])
def test_features_near_the_end_of_double_precision(p):
    rng = np.random.default_rng(0)
    X, y = 1e100 * rng.normal(size=(50, 4)), np.arange(50) % 3
    clf = LpNormSVC(p=p, random_state=0).fit(X, y)  # every other warning is an error
    assert np.isfinite(clf.objective_)


@pytest.mark.parametrize("p", [1.3, 4.0])
def test_an_interior_point_of_a_kernel_is_published_with_its_own_objective(p):
    """By coefficients of the rows; of what was known before only the lower bound counts."""
    rng = np.random.default_rng(0)
    R, y, cap = rng.normal(size=(20, 5)), np.arange(20) % 3, rng.uniform(0.5, 2, 20)
    W, b = rng.normal(size=(3, 5)), rng.normal(size=3)
    nothing = np.zeros(21, np.int64), np.zeros(0, np.int32), np.zeros(0)
    found = DualState(W, b, DualLists(*nothing), b, cap, 10.0, 0.4, 7)
    state = _as_kernel_state(found, True, y, R, p)
    np.testing.assert_allclose(state.W.T @ R, W, atol=1e-12)
    F = R @ W.T + b
    rivals = np.where(np.eye(3, dtype=bool)[y], -np.inf, F).max(axis=1)
    penalty = 0.5 * (np.linalg.norm(W, axis=1) ** p).sum() ** (2 / p)
    value = penalty + cap @ np.maximum(0, 1 - F[np.arange(20), y] + rivals)
    assert state.objective == pytest.approx(value)
    assert state.objective * (1 - state.gap) == pytest.approx(6.0)
