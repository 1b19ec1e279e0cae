"""Smooth primal solvers against cvxpy, finite differences and each other."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from skmargin.losses import LogLoss, SmoothedSumHinge
from skmargin.regularizers import PairwisePower
from skmargin.solvers.primal import lbfgs as primal_lbfgs
from skmargin.solvers.primal import newton as primal_newton
from skmargin.solvers.primal.adam import AdamState, adam_epoch
from skmargin.solvers.primal.driver import choose_solver, minimise
from skmargin.solvers.primal.factor import factorise
from skmargin.solvers.primal.objective import Certificate, PrimalObjective
from skmargin.solvers.primal.pairs import Pairs
from skmargin.solvers.primal.rows import RowProducts
from skmargin.solvers.tuning import DEFAULT


class L2:
    """``alpha ||W||^2``: another penalty than the package's own, with what the solver asks of one and no more."""

    def __init__(self, alpha):
        self.alpha = alpha

    def value(self, W):
        return self.alpha * float(np.vdot(W, W))

    def value_gradient(self, W):
        return self.value(W), 2 * self.alpha * W

    def hessian(self, W):
        return lambda V: 2 * self.alpha * V

    def explicit_hessian(self, W):
        return 2 * self.alpha * np.eye(W.size)

    def class_metric(self, W):
        return 2 * self.alpha * np.eye(W.shape[1])

    def smoothed(self, level):
        return self

    def split(self, W, Z):
        return Z

    def conjugate(self, parts):
        return 1.0, float(np.vdot(parts, parts)) / (4 * self.alpha)


def data(n=30, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)].astype(np.int32)
    X = rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))
    return X, y, rng.uniform(0.5, 2, n)


def cvxpy_optimum(X, y, s, alpha, p, delta=None, eps=0.0, intercept=True):
    """Minimum of the model as published; ``delta=None`` is the log loss."""
    n, k = len(y), int(y.max()) + 1
    W, b = cp.Variable((X.shape[1], k)), cp.Variable((1, k)) if intercept else np.zeros((1, k))
    F = X @ W + np.ones((n, 1)) @ b
    own = cp.sum(cp.multiply(F, np.eye(k)[y]), axis=1)
    if delta is None:
        loss = s @ (cp.log_sum_exp(F, axis=1) - own)
    else:
        loss = 0
        for l in range(k):
            i = np.flatnonzero(y != l)
            t = 1 - own[i] + F[i, l]
            g = cp.pos(t) if delta == 0 else 0.5 * (t + cp.norm(cp.vstack([t, np.full(len(i), delta)]), 2, axis=0))
            loss = loss + s[i] @ g
    pairs = [cp.norm(W[:, j] - W[:, l]) for j in range(k) for l in range(j + 1, k)]
    penalty = sum(D if p == 1 else cp.power(D, p) for D in pairs)
    problem = cp.Problem(cp.Minimize(loss + alpha * penalty + eps * (cp.sum_squares(W) + cp.sum_squares(b))))
    return problem.solve(solver="CLARABEL")


@pytest.mark.parametrize("p", [1, 1.5, 2, 2.5, 4, 8])
@pytest.mark.parametrize("delta", [None, 0.1, 0.0])
def test_optimum_is_that_of_cvxpy(p, delta):
    X, y, s = data()
    loss = LogLoss() if delta is None else SmoothedSumHinge(delta)
    objective = PrimalObjective(X, y, s, 3, loss, PairwisePower(0.5, p))
    state = minimise(objective, tol=1e-7)
    optimum = cvxpy_optimum(X, y, s, 0.5, p, delta)
    assert state.gap <= 1e-7
    assert state.certificate.primal == pytest.approx(optimum, rel=1e-6)
    assert state.certificate.dual <= optimum * (1 + 1e-7)


@pytest.mark.parametrize(("eps", "intercept"), [(0.05, True), (0.0, False), (0.05, False)])
@pytest.mark.parametrize("delta", [None, 0.1])
def test_intercepts_and_the_ridge_of_the_paper(eps, intercept, delta):
    X, y, s = data(seed=1)
    loss = LogLoss() if delta is None else SmoothedSumHinge(delta)
    state = minimise(PrimalObjective(X + 1, y, s, 3, loss, PairwisePower(0.2, 4), intercept, eps), tol=1e-7)
    optimum = cvxpy_optimum(X + 1, y, s, 0.2, 4, delta, eps, intercept)
    assert state.certificate.primal == pytest.approx(optimum, rel=1e-6)
    assert state.gap <= 1e-7


@pytest.mark.parametrize("X_type", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", [SmoothedSumHinge(0.1), LogLoss()])
@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_gradient_and_hessian_products(X_type, loss, eps):
    X, y, s = data(k=4)
    objective = PrimalObjective(X_type(X), y, s, 4, loss, PairwisePower(0.3, 4), True, eps)
    rng = np.random.default_rng(0)
    theta, D = rng.normal(size=(2, *objective.shape))
    h = 1e-6
    up, down = objective.point(theta + h * D), objective.point(theta - h * D)
    point = objective.point(theta)
    slope = (up.value - down.value) / (2 * h)
    assert np.vdot(objective.gradient(point), D) == pytest.approx(slope, rel=1e-7)
    assert objective.slope(point, D, objective.scores(D)) == pytest.approx(slope, rel=1e-7)
    product = objective.hessian(point)(D)
    numeric = (objective.gradient(up) - objective.gradient(down)) / (2 * h)
    np.testing.assert_allclose(product, numeric, rtol=1e-5, atol=1e-5)
    if X_type is np.asarray:
        explicit = (objective.explicit_hessian(point) @ D.ravel()).reshape(D.shape)
        np.testing.assert_allclose(explicit, product, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg"])
@pytest.mark.parametrize("loss", [SmoothedSumHinge(0.05), LogLoss()])
def test_solvers_dense_and_sparse_agree(solver, loss):
    tuning = DEFAULT.changed(primal={"explicit_work": 0})  # conjugate gradients also for this small problem
    X, y, s = data(n=60, d=6)
    X[np.abs(X) < 0.5] = 0
    values = [
        minimise(
            PrimalObjective(rows, y, s, 3, loss, PairwisePower(0.2, 4), tuning=tuning), solver=solver, tol=1e-7
        ).certificate
        for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X))
    ]
    for value in values:
        assert value.relative <= 1e-7
        assert value.primal == pytest.approx(cvxpy_optimum(X, y, s, 0.2, 4, getattr(loss, "delta", None)), rel=1e-6)


def test_l2_penalty_and_choice_of_solver():
    X, y, s = data()
    objective = PrimalObjective(X, y, s, 3, LogLoss(), L2(0.25))
    assert choose_solver(objective, objective.point(np.zeros(objective.shape)), 0.5) == "newton-cg"
    state = minimise(objective, tol=1e-8)
    W = cp.Variable((4, 3))
    b = cp.Variable((1, 3))
    F = X @ W + np.ones((30, 1)) @ b
    own = cp.sum(cp.multiply(F, np.eye(3)[y]), axis=1)
    optimum = cp.Problem(cp.Minimize(s @ (cp.log_sum_exp(F, axis=1) - own) + 0.25 * cp.sum_squares(W))).solve(
        "CLARABEL"
    )
    assert state.certificate.primal == pytest.approx(optimum, rel=1e-6)
    wide = PrimalObjective(
        np.ones((5, 3000)), np.array([0, 1, 0, 1, 0]), np.ones(5), 2, SmoothedSumHinge(1e-2), L2(1.0)
    )
    start = wide.point(np.zeros(wide.shape))
    assert choose_solver(wide, start, 0.5) == "lbfgs"
    assert choose_solver(wide, start, 0.02) == "newton-cg"


def test_single_precision_is_followed_by_double_and_any_thread_count_gives_the_same_bits(monkeypatch):
    from skmargin.solvers.primal import rows as primal_rows

    X, y, s = data(n=300, d=20, k=5)
    problem = X, y, s, 5, SmoothedSumHinge(0.01), PairwisePower(0.01, 4)
    plain = minimise(PrimalObjective(*problem), solver="lbfgs", tol=1e-6)
    tuning = DEFAULT.changed(common={"pass_work": 1000})
    mixed = minimise(PrimalObjective(*problem, tuning=tuning), solver="lbfgs", tol=1e-6)
    assert mixed.theta.dtype == np.float64
    assert mixed.gap <= 1e-6
    assert mixed.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-6)
    results = []
    for threads in (1, 4):
        monkeypatch.setattr(primal_rows, "thread_count", lambda _, n=threads: n)
        for rows in (X, sparse.csr_array(X)):
            blocked = PrimalObjective(rows, y, s, 5, LogLoss(), PairwisePower(0.01, 4), tuning=tuning)
            results.append(minimise(blocked, solver="lbfgs", tol=1e-4).theta)
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], results[3])


@pytest.mark.parametrize("X_type", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", [SmoothedSumHinge(0.1), SmoothedSumHinge(1e-4), LogLoss()])
def test_explicit_hessian_is_the_map(X_type, loss):
    X, y, s = data()
    objective = PrimalObjective(X_type(X), y, s, 3, loss, PairwisePower(0.5, 4))
    theta = np.random.default_rng(1).normal(size=objective.shape)
    point = objective.point(theta)
    H, product = objective.explicit_hessian(point), objective.hessian(point)
    columns = [product(e.reshape(theta.shape)).ravel() for e in np.eye(theta.size)]
    np.testing.assert_allclose(H, np.array(columns), rtol=1e-6, atol=1e-6 * np.abs(H).max())


@pytest.mark.parametrize("X_type", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("penalty", [PairwisePower(0.5, 2), L2(0.5)])
def test_preconditioner_of_all_pairs_is_the_inverse(X_type, penalty):
    X, y, s = data()
    objective = PrimalObjective(X_type(X), y, s, 3, SmoothedSumHinge(0.1), penalty, fit_intercept=False)
    rng = np.random.default_rng(0)
    point = objective.point(rng.normal(size=objective.shape))
    V = rng.normal(size=objective.shape)
    V -= V.mean(axis=1, keepdims=True)
    pairs = Pairs(objective, point)
    np.testing.assert_allclose(pairs.preconditioner(100)(objective.hessian(point)(V)), V, rtol=1e-6, atol=1e-8)
    few = pairs.preconditioner(5)  # still a positive definite map
    for _ in range(20):
        V = rng.normal(size=objective.shape)
        assert np.vdot(V, few(V)) > 0


def test_hessian_without_samples_that_hardly_count(monkeypatch):
    X, y, s = data(n=300)
    objective = PrimalObjective(X, y, s, 3, SmoothedSumHinge(1e-3), PairwisePower(0.5, 4))
    point = minimise(objective, tol=1e-6).theta
    point = objective.point(point)
    V = np.random.default_rng(0).normal(size=objective.shape)
    kept = []
    some_rows = PrimalObjective.some_rows
    monkeypatch.setattr(
        PrimalObjective, "some_rows", lambda self, at, rows: kept.append(len(rows)) or some_rows(self, at, rows)
    )
    whole, part = objective.hessian(point)(V), Pairs(objective, point).hessian()(V)
    assert kept[0] < 150
    np.testing.assert_allclose(part, whole, rtol=0.05, atol=0.05 * np.abs(whole).max())


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(60, 7), (7, 60)])
@pytest.mark.parametrize("chunk", [1, 40, 1 << 18])  # numbers: a row, some, all
def test_products_with_some_of_the_rows(container, shape, chunk):
    tuning = DEFAULT.changed(common={"cache_numbers": chunk, "least_block": 2})
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.5)
    W, centre = rng.normal(size=(shape[1], 3)), rng.normal(size=shape[1])
    whole = RowProducts(container(X), tuning=tuning)
    kept = np.sort(rng.permutation(shape[0])[: shape[0] // 2])
    for rows, A in ((whole, X), (whole.some(kept), X[kept])):
        P = rng.normal(size=(len(A), 3))
        np.testing.assert_allclose(rows.times(W), A @ W, atol=1e-12)
        np.testing.assert_allclose(rows.transposed_times(P), A.T @ P, atol=1e-12)
        np.testing.assert_allclose(rows.gram(centre), (A - centre) @ (A - centre).T, atol=1e-12)
        steps = [lambda F, part=part: P[part] * F for part in rows.parts()]  # noqa: B023
        G, total = rows.congruence(W, steps)
        np.testing.assert_allclose(G, A.T @ (P * (A @ W)), atol=1e-12)
        np.testing.assert_allclose(total, (P * (A @ W)).sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_an_epoch_of_adam_is_that_of_kingma_and_ba(container, intercept):
    """Whole batches, with gradients by differences of the values that they belong to."""
    X, y, s = data(n=12, d=3)
    loss, penalty, eps, total = SmoothedSumHinge(0.1), PairwisePower(0.3, 4), 0.2, 3 * s.sum()
    options = {"fit_intercept": intercept, "eps": eps, "learning_rate": 0.1, "total": total}
    start = np.random.default_rng(0).normal(size=(3 + intercept, 3))
    state = AdamState.start(start)
    task = container(X), y, s, loss, penalty
    for _ in range(3):
        state = adam_epoch(state, *task, batch_size=12, rng=np.random.RandomState(0), **options)

    def value(theta):
        W, b = (theta[:-1], theta[-1]) if intercept else (theta, 0)
        losses = loss.value(X @ W + b, (np.arange(12), y), s)
        return total / s.sum() * losses + penalty.value(W) + eps * np.square(theta).sum()

    theta, m, v = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for t in (1, 2, 3):
        units = 1e-6 * np.eye(theta.size).reshape(-1, *theta.shape)
        g = np.reshape([(value(theta + e) - value(theta - e)) / 2e-6 for e in units], theta.shape)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        theta = theta - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(state.theta, theta, atol=1e-6)
    assert state.n_steps == 3
    orders = [adam_epoch(state, *task, batch_size=5, rng=np.random.RandomState(r), **options) for r in (0, 0, 1)]
    np.testing.assert_array_equal(orders[0].theta, orders[1].theta)
    assert (orders[0].theta != orders[2].theta).any() and orders[0].n_steps == 6


@pytest.mark.parametrize("p", [1, 1.5, 2, 4])
@pytest.mark.parametrize(("eps", "intercept"), [(0.0, True), (0.05, True), (0.05, False)])
@pytest.mark.parametrize("delta", [None, 0.1, 0.0])
def test_no_bound_exceeds_the_minimum(p, eps, intercept, delta):
    """Wherever it is taken: at zero, near the minimum and far from it, by this problem and by a smoother one."""
    X, y, s = data(n=20)
    loss = LogLoss() if delta is None else SmoothedSumHinge(delta)
    target = PrimalObjective(X + 1, y, s, 3, loss, PairwisePower(0.5, p), intercept, eps)
    best = minimise(target, tol=1e-6)
    rng = np.random.default_rng(0)
    stage = target.with_pieces(loss.smoothed(0.3), target.penalty.smoothed(0.3))
    for size in (0.0, 0.01, 0.3, 1.0, 10.0):
        theta = best.theta * (size < 1) + size * rng.normal(size=target.shape)
        certificate = stage.certificate(stage.point(theta), target)
        assert certificate.primal >= best.certificate.primal * (1 - 1e-6)
        assert certificate.dual <= best.certificate.primal * (1 + 1e-9)
        assert 0 <= certificate.relative <= 1


def test_a_relative_gap_lies_between_zero_and_one():
    """Zero is a lower bound of every objective, and only rounding lifts a bound above the value."""
    bounds = {-5.0: 1.0, 0.0: 1.0, 1.5: 0.25, 2.0: 0.0, 2.0 + 1e-12: 0.0}
    assert {dual: Certificate(2.0, dual).relative for dual in bounds} == bounds


def test_values_never_increase():
    X, y, s = data(n=80, d=6, k=4)
    objective = PrimalObjective(X, y, s, 4, SmoothedSumHinge(0.01), PairwisePower(0.01, 4))
    for method in (primal_lbfgs.lbfgs, primal_newton.newton_cg):
        start = objective.point(np.zeros(objective.shape))
        values = [point.value for point, _ in zip_limited(method(objective, start), 60)]
        assert (np.diff(values) <= 1e-9 * values[0]).all()


def zip_limited(iterator, n):
    return (item for item, _ in zip(iterator, range(n), strict=False))


def test_warm_start_and_limit_of_iterations():
    X, y, s = data(n=100, d=8, k=4)
    objective = PrimalObjective(X, y, s, 4, SmoothedSumHinge(0.01), PairwisePower(0.01, 4))
    cold = minimise(objective, solver="lbfgs", tol=1e-5)
    warm = minimise(objective, cold.theta, solver="lbfgs", tol=1e-3)
    assert warm.n_iter < cold.n_iter / 3
    assert minimise(objective, solver="lbfgs", tol=1e-9, max_iter=7).n_iter == 7


@pytest.mark.parametrize("seed", range(3))
def test_a_rare_class_does_not_widen_the_gap_of_a_free_intercept(seed, n=2000, k=5):
    """Close to the minimum, two samples of a class must not cost more than they do without an intercept."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.full(2, k - 1), rng.integers(0, k - 1, n - 2)].astype(np.int32)
    X = rng.normal(size=(k, 20))[y] + rng.normal(size=(n, 20))
    gaps = []
    for intercept in (True, False):
        objective = PrimalObjective(X, y, np.ones(n), k, SmoothedSumHinge(1e-2), PairwisePower(0.1, 4), intercept)
        theta = minimise(objective, tol=1e-7).theta
        theta *= 1 + 1e-4 * np.random.default_rng(0).normal(size=theta.shape)
        gaps.append(objective.certificate(objective.point(theta), objective).relative)
    assert gaps[0] <= 1.5 * gaps[1]


def test_factor_of_a_singular_gram_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 5))
    X[3] = X[2]
    factor = factorise(X @ X.T)
    assert factor.R.shape == (12, 5)
    np.testing.assert_allclose(factor.R @ factor.R.T, X @ X.T, atol=1e-12)
    np.testing.assert_allclose(factor.R[factor.pivots], factor.L)
    V = rng.normal(size=(5, 3))
    W = X[factor.pivots].T @ factor.coefficients(V)
    np.testing.assert_allclose(X @ W, factor.R @ V, atol=1e-10)
    np.testing.assert_allclose(W.T @ W, V.T @ V, atol=1e-10)
    np.testing.assert_allclose(factor.start(X[factor.pivots] @ W), V, atol=1e-10)
    with pytest.raises(ValueError, match="zero"):
        factorise(np.zeros((3, 3)))


def test_a_factor_keeps_its_rows_where_some_are_zero():
    """Rows of length one and zero rows: the order of the pivots was undone where none had been made."""
    z = np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    factor = factorise(np.outer(z, z))
    np.testing.assert_array_equal(factor.R @ factor.R.T, np.outer(z, z))
    np.testing.assert_array_equal(factor.R[factor.pivots], factor.L)
