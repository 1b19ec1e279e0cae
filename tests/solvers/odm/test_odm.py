"""The inner problems of the optimal margin distribution machine: blocks against KKT, optima against cvxpy."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from skmargin._core import _ext
from skmargin.rows.kernel_rows import KernelRows
from skmargin.solvers.dual.state import coefficients
from skmargin.solvers.odm.inner_kernel import KernelInner, solve_odm_kernel
from skmargin.solvers.odm.inner_linear import LinearInner, NewtonInner
from skmargin.solvers.odm.outer import NO_RIVALS, Limits, OdmProblem, majorize_minimize
from skmargin.solvers.odm.smooth import smoothed

BANDS = [(0.5, 0.2), (1.0, 0.0), (0.1, 0.8)]

LIMITS = Limits(1e-8, 10_000, 20, 1, 0)


def toy(n=30, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)].astype(np.int32)
    return rng.normal(size=(k, d))[y] * 2 + rng.normal(size=(n, d)), y


def some_rivals(X, y, k):
    """The closest rivals of nearest means: neither those of an optimum nor arbitrary."""
    means = np.array([X[y == c].mean(axis=0) for c in range(k)])
    distance = ((X[:, None, :] - means) ** 2).sum(axis=2)
    distance[np.arange(len(y)), y] = np.inf
    return distance.argmin(axis=1).astype(np.int32)


def violation(a, d, alpha, A, kappa, mu, theta):
    """Largest violation of the KKT conditions of a block at the signed duals ``a``, in units of the scores."""
    d = d + A * ((a - alpha) + (a - alpha).sum())  # after the step
    zeta, beta = np.maximum(0, a), max(0.0, -a[0])
    assert np.all(a[1:] >= 0)
    slope = d + kappa * zeta.sum() - (1 - theta)
    lower = np.where(zeta > 0, np.abs(slope), np.maximum(0, -slope)).max()
    if mu == 0:
        assert beta == 0
        return lower
    upper = -d[0] + kappa * beta / mu + 1 + theta
    return max(lower, abs(upper) if beta > 0 else max(0.0, -upper))


def test_ten_thousand_blocks_satisfy_kkt():
    rng = np.random.default_rng(0)
    both = 0
    for trial in range(10_000):
        m = int(rng.integers(1, 9)) if trial % 100 else 90
        mu, theta = rng.choice([0.0, 0.05, 0.5, 1.0]), rng.choice([0.0, 0.2, 0.8])
        A, kappa = 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-2, 2)
        d, alpha = 3 * rng.normal(size=m), np.maximum(0, rng.normal(size=m))
        if trial % 3 == 0:  # ties
            d, alpha = np.round(d), np.zeros(m)
        if mu > 0:
            alpha[0] = rng.normal()
        if trial % 7 == 0:  # a row of (nearly) no length
            A = 1e-7 * kappa
        a = _ext.odm_block(1 / (2 * kappa), mu, theta, A, d, alpha)
        scale = 1 + A * np.abs(a).max() * m + np.abs(d).max()
        assert violation(a, d, alpha, A, kappa, mu, theta) <= 1e-8 * scale
        both += a[0] < 0
    assert both > 1000  # the upper part was met


@pytest.mark.parametrize(("mu", "theta"), BANDS)
def test_blocks_against_cvxpy(mu, theta):
    rng = np.random.default_rng(1)
    for _ in range(5):
        m, A, kappa = 4, 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-1, 1)
        d, alpha = 3 * rng.normal(size=m), np.abs(rng.normal(size=m))
        zeta, beta = cp.Variable(m, nonneg=True), cp.Variable(nonneg=True)
        a = zeta - cp.multiply(np.eye(m)[0], beta)
        S = cp.sum(zeta)
        cost = A / 2 * (cp.square(cp.sum(a) - alpha.sum()) + cp.sum_squares(a - alpha)) + d @ a
        cost += -(1 - theta) * S + kappa / 2 * cp.square(S) + (1 + theta) * beta + kappa / (2 * mu) * cp.square(beta)
        cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        ours = _ext.odm_block(1 / (2 * kappa), mu, theta, A, d, alpha)
        np.testing.assert_allclose(ours, a.value, atol=1e-4)


def inner_optimum(X, machine, mu, rivals):
    """min Q, written a second time."""
    y, k, n = machine.y, machine.n_classes, len(machine.y)
    W, b = cp.Variable((X.shape[1], k)), cp.Variable((1, k))
    F = X @ W + (np.ones((n, 1)) @ b if machine.fit_intercept else 0)
    own = cp.sum(cp.multiply(F, np.eye(k)[y]), axis=1)
    low = cp.max(
        cp.pos(
            1
            - machine.theta
            - cp.reshape(own, (n, 1), order="C") @ np.ones((1, k))
            + F
            - (1 - machine.theta) * np.eye(k)[y]
        ),
        axis=1,
    )
    cost = 0.5 * cp.sum_squares(W) + machine.cap @ cp.square(low)
    if mu > 0:
        rival = cp.sum(cp.multiply(F, np.eye(k)[rivals]), axis=1)
        cost += mu * (machine.cap @ cp.square(cp.pos(own - rival - 1 - machine.theta)))
    return cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)


def solved(inner, *problem):
    """Solve with all methods, as the outer loop does."""
    while not inner.solve(*problem):
        inner = inner.next_method()
        assert inner is not None
    return inner


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("mu", "theta"), [(0.0, 0.3), *BANDS])
@pytest.mark.parametrize(("k", "C"), [(2, 3.0), (2, 1e5), (3, 30.0), (3, 1e4), (6, 100.0), (6, 1e5)])
def test_inner_optimum_is_that_of_cvxpy(intercept, mu, theta, k, C):
    X, y = toy(30, 4, k, seed=k)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y))
    machine = OdmProblem(y, C * weight / weight.sum(), k, mu, theta, intercept)
    rivals = some_rivals(X, y, k) if mu > 0 else NO_RIVALS
    best = inner_optimum(X, machine, mu, rivals)
    for inner in (
        LinearInner(X, machine, Limits(1e-8, 10_000, 20, 1, 0)),
        LinearInner(sparse.csr_array(X), machine, Limits(1e-8, 10_000, 20, 1, 0)),
        NewtonInner(X, machine),
        KernelInner(KernelRows(X, "linear", 1.0, 3, 0.0, np.float64, 100), machine, LIMITS),
    ):
        inner = solved(inner, mu, rivals, 1e-7, 0, 0, 10_000)
        assert inner.objective == pytest.approx(best, rel=1e-6)
        assert 0 <= inner.gap <= 1e-7 * inner.objective


@pytest.mark.parametrize("C", [5.0, 1000.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_kernel_inner_optimum_is_that_of_cvxpy(intercept, C):
    X, y = toy(30, 4, 4, seed=3)
    rivals = some_rivals(X, y, 4)
    machine = OdmProblem(y, np.full(30, C), 4, 0.5, 0.2, intercept)
    factor = np.linalg.cholesky(rbf_kernel(X, gamma=0.3) + 1e-12 * np.eye(30))
    inner = KernelInner(KernelRows(X, "rbf", 0.3, 3, 0.0, np.float64, 100), machine, LIMITS)
    inner = solved(inner, 0.5, rivals, 1e-8, 0, 0, 10_000)
    assert inner.objective == pytest.approx(inner_optimum(factor, machine, 0.5, rivals), rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_newton_method_of_a_kernel_has_the_objective_of_its_coefficients(intercept, mu):
    X, y = toy(30, 4, 4, seed=3)
    rivals = some_rivals(X, y, 4) if mu > 0 else NO_RIVALS
    machine = OdmProblem(y, np.full(30, 1e5), 4, mu, 0.9, intercept)
    inner = KernelInner(KernelRows(X, "rbf", 0.3, 3, 0.0, np.float64, 100), machine, LIMITS)
    assert not inner.solve(mu, rivals, 1e-3, 0, 0, 10)
    assert inner.next_method() is inner  # the factor is known now, but not what Newton steps on it cost
    inner = inner.next_method()
    assert inner.solve(mu, rivals, 1e-3, 0, 0, 10_000)
    state = inner.point().state
    c, K = inner.point().coef, rbf_kernel(X, gamma=0.3)
    assert np.array_equal(c, coefficients(state.alpha, y))  # nothing cancels: the duals, which may be zero
    F = K @ c + state.b
    i = np.arange(30)
    high = np.maximum(0, F[i, y] - F[i, rivals] - 1.9) if mu > 0 else 0.0
    value = 0.5 * np.vdot(c, K @ c) + OdmProblem(y, machine.cap, 4, 0.0, 0.9).loss(F) + 1e5 * mu * np.sum(high**2)
    assert inner.objective == pytest.approx(value, rel=1e-6)
    assert 0 <= inner.gap <= 1e-3 * inner.objective


@pytest.mark.parametrize(("offset", "C"), [(1.0, 1e2), (1e2, 1e4), (1e3, 1e6), (1e5, 1e6)])
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_newton_method_of_a_kernel_tells_what_rounding_leaves(offset, C, mu):
    """Rows far from zero: coefficients cancel, and their scores are not those of centred rows any more."""
    X, y = toy(60, 3, 3, seed=1)
    X += offset
    K = X @ X.T
    machine = OdmProblem(y, np.full(60, C / 60), 3, mu, 0.2, True)
    inner = KernelInner(KernelRows(K, "precomputed", 1.0, 3, 0.0, np.float64, 100), machine, LIMITS)
    end = majorize_minimize(machine, inner, Limits(1e-7, 10_000, 20, 1, 0))
    c, exact = end.point.coef.astype(np.longdouble), K.astype(np.longdouble)
    F = exact @ c
    value = 0.5 * np.vdot(c, F) + machine.loss(F + end.point.state.b)
    assert abs(value - end.objective) <= 3 * max(end.gap, 1e-8) * end.objective
    assert end.converged or offset > 1e3


@pytest.mark.parametrize("C", [1e4, 1e8, 1e10])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_kernel_of_low_rank_is_solved_like_its_features(intercept, C):
    """Duals grow with C and cancel: coefficients of least norm take their place."""
    X, y = toy(120, 3, 3, seed=1)
    machine = OdmProblem(y, np.full(120, C / 120), 3, 0.0, 0.2, intercept)
    best = majorize_minimize(machine, NewtonInner(X, machine), Limits(1e-9, 10_000, 20, 1, 0)).objective
    inner = KernelInner(KernelRows(X @ X.T, "precomputed", 1.0, 3, 0.0, np.float64, 100), machine, LIMITS)
    end = majorize_minimize(machine, inner, Limits(1e-6, 10_000, 20, 1, 0))
    assert end.converged
    assert end.objective <= best * (1 + 2e-6)
    c = end.point.coef
    F = X @ (X.T @ c)
    value = 0.5 * np.sum((X.T @ c) ** 2) + machine.loss(F + end.point.state.b)
    assert value == pytest.approx(end.objective, rel=2e-6)
    for factor in (1, 3):  # a warm start
        other = replace(machine, cap=factor * machine.cap)
        again = solve_odm_kernel(inner.rows, other, Limits(1e-6, 10_000, 20, 1, 0), start=end.point)
        cold = majorize_minimize(other, NewtonInner(X, other), Limits(1e-9, 10_000, 20, 1, 0)).objective
        assert again.converged
        assert again.objective <= cold * (1 + 2e-6)


def test_a_bound_above_the_objective_is_no_certificate():
    """Two numbers that rounding has changed places of are as wrong as they are apart."""
    machine = OdmProblem(np.array([0, 1], np.int32), np.ones(2), 2, 0.5, 0.1)
    method = Spoilt(np.array([[0.9, 0.0], [0.0, 0.9]]))
    method.objective, method.gap = 1e-3, 0.0
    end = majorize_minimize(machine, method, Limits(1e-3, 100, 5, 1, 0))
    assert end.objective < method.objective
    assert not end.converged
    assert end.gap > 1e-3


class Spoilt:
    """A method that ends at the scores it is given."""

    def __init__(self, scores, next_method=None):
        self.scores, self.next_method, self.half_norm, self.n_iter = scores, lambda: next_method, 0.0, 1
        self.objective, self.gap = np.inf, np.inf

    def solve(self, *problem):
        return False

    def point(self):
        return self.scores[0, 0]

    def zero(self):
        return 0.0


@pytest.mark.parametrize(("first", "second", "best"), [(0.5, -9.0, 0.5), (-9.0, 0.5, 0.5), (-9.0, -8.0, 0.0)])
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_the_best_end_of_all_methods_is_kept(first, second, best, mu):
    """Two classes, one sample of each, both with the same margin; zero is better than a negative one."""
    machine = OdmProblem(np.array([0, 1], np.int32), np.ones(2), 2, mu, 0.1)
    ends = [v * np.array([[1.0, 0.0], [0.0, 1.0]]) for v in (first, second)]
    method = Spoilt(ends[0], Spoilt(ends[1]))
    end = majorize_minimize(machine, method, Limits(1e-3, 100, 5, 1, 0))
    assert end.point == best
    assert end.objective == min(machine.zero_loss, *(machine.loss(F) for F in ends))
    assert not end.converged
    assert end.stuck


def test_inexact_solve_stops_early_and_majorises():
    X, y = toy(200, 5, 4)
    machine = OdmProblem(y, np.full(200, 0.5), 4, 0.5, 0.2, True)
    for inner in (LinearInner(X, machine, Limits(1e-10, 10_000, 20, 1, 0)), NewtonInner(X, machine)):
        inner = solved(inner, 0.0, NO_RIVALS, 1e-3, 0, 0, 1000)
        before = inner.half_norm + machine.loss(inner.scores)
        inner = solved(inner, 0.5, machine.rivals(inner.scores), 1e-10, 0.1 / 0.9, before, 1000)
        assert inner.half_norm + machine.loss(inner.scores) <= inner.objective <= before
        assert inner.gap <= 0.1 * (before - inner.objective + inner.gap) * (1 + 1e-9)


def test_gradient_of_the_smoothed_loss():
    _, y = toy(12, 3, 4)
    machine = OdmProblem(y, np.random.default_rng(0).uniform(0.5, 2, 12), 4, 0.7, 0.1)
    F, step = 2 * np.random.default_rng(1).normal(size=(12, 4)), np.random.default_rng(2).normal(size=(12, 4))
    _, Q = smoothed(machine, F, 0.7, 0.3)
    h = 1e-6
    slope = (smoothed(machine, F + h * step, 0.7, 0.3)[0] - smoothed(machine, F - h * step, 0.7, 0.3)[0]) / (2 * h)
    assert np.vdot(Q, step) == pytest.approx(slope, rel=1e-6)
    assert smoothed(machine, F, 0.7, 1e-4)[0] == pytest.approx(machine.loss(F), rel=1e-3)


@pytest.mark.parametrize(("mu", "theta"), [(0.0, 0.3), *BANDS])
@pytest.mark.parametrize(("k", "C"), [(2, 30.0), (4, 100.0)])
def test_published_inner_optimum_is_that_of_cvxpy(mu, theta, k, C):
    X, y = toy(30, 4, k, seed=k)
    X[3] = 0
    frozen = np.random.default_rng(0).normal(size=30)
    machine = OdmProblem(y, np.random.default_rng(1).uniform(0.2, 3, 30) * C / 30, k, mu, theta, False)
    W = cp.Variable((4, k))
    F = X @ W
    own = cp.sum(cp.multiply(F, np.eye(k)[y]), axis=1)
    hinge = (1 - theta) * (1 - np.eye(k)[y]) - cp.reshape(own, (30, 1), order="C") @ np.ones((1, k)) + F
    cost = 0.5 * cp.sum_squares(W) + machine.cap @ cp.square(cp.max(cp.pos(hinge), axis=1))
    cost += mu * (machine.cap @ cp.square(cp.pos(own - frozen - 1 - theta)))
    best = cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10)
    S, options = sparse.csr_array(X), _ext.Options(tol=1e-8, max_iter=100_000)
    zero = {"zeta": np.zeros((30, k)), "beta": np.zeros(30)}
    for rows in (_ext.Rows(X), _ext.Rows(S.indptr, S.indices, S.data, 4)):
        out = _ext.published_odm(rows, machine.core(mu), options, frozen_scores=frozen, **zero)
        assert out["objective"] == pytest.approx(best, rel=1e-6)
        assert 0 <= out["gap"] <= 1e-8 * out["objective"]
    K, F, zeta, beta, rng = X @ X.T, np.zeros((k, 30)), np.zeros((30, k)), np.zeros(30), np.random.default_rng(0)
    for _ in range(100_000):
        given = {"frozen_scores": frozen, "zeta": zeta, "beta": beta}
        task = rng.permutation(30), np.arange(30), np.diag(K).copy(), F, machine.core(mu)
        primal, gap = _ext.kernel_published_odm(K, *task, **given)
        if gap <= 1e-8 * primal:
            break
    assert primal == pytest.approx(best, rel=1e-6)


def test_core_refuses_wrong_rivals():
    X, y = toy()
    machine = OdmProblem(y, np.ones(30), 3, 0.5, 0.2)
    for inner in (
        LinearInner(X, machine, Limits(1e-3, 10_000, 20, 1, 0)),
        KernelInner(KernelRows(X, "rbf", 1.0, 3, 0.0, np.float64, 10), machine, LIMITS),
    ):
        for rivals in (y, np.full(30, 7, np.int32)):
            with pytest.raises(ValueError, match="rival"):
                inner.solve(0.5, rivals, 1e-3, 0, 0, 10)
