"""The solver for very many classes (solvers/many_classes) against cvxpy, the other solver, and NumPy in float64."""

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import skmargin
from skmargin.solvers.block_norm.ascent import solve_lp
from skmargin.solvers.dual.linear import solve_linear
from skmargin.solvers.many_classes import plan, solve_many

MACHINES = [("max", 1, 2.0), ("sum", 1, 2.0), ("top", 3, 2.0), ("max", 1, 1.3), ("max", 1, 3.0)]


def text(n, d, k, seed=0, words=8, noise=0.5, dtype=np.float64):
    """Rows of a few words, some of which belong to the class; sizes of classes by a power law, each has a row."""
    rng = np.random.default_rng(seed)
    size = 1 / np.arange(1, k + 1)
    y = np.concatenate([np.arange(k), rng.choice(k, n, p=size / size.sum())])[:n].astype(np.int32)
    own = rng.integers(d, size=(k, words))
    at = np.where(rng.random((n, words)) < noise, rng.integers(d, size=(n, words)), own[y])
    X = sparse.coo_array((rng.uniform(0.5, 1.5, n * words), (np.repeat(np.arange(n), words), at.ravel())), (n, d))
    X = sparse.csr_array(X.tocsr(), dtype=dtype)
    X.sum_duplicates()
    return X, y


def dense_duals(state, n, k):
    return sparse.csr_array((state.alpha, state.rivals, state.start), (n, k)).toarray()


def class_vectors(state):
    W = state.W.toarray() if sparse.issparse(state.W) else np.asarray(state.W)
    return W.astype(float)


def norm(W, p):
    return np.sum(np.linalg.norm(W, axis=1) ** p) ** (1 / p)


def primal(X, y, cap, W, b, loss, top_k, p):
    """The objective, in float64, one number after the other."""
    F = X.astype(float) @ W.T + b
    own = np.arange(len(y)), y
    hinges = np.maximum(0, 1 - F[own][:, None] + F)
    hinges[own] = 0
    hinges = -np.sort(-hinges, axis=1)
    value = {"max": hinges[:, 0], "sum": hinges.sum(axis=1), "top": hinges[:, :top_k].mean(axis=1)}[loss]
    return 0.5 * norm(W, p) ** 2 + cap @ value


def dual(X, y, cap, alpha, loss, top_k, p, intercept):
    """The dual objective; the point must be feasible."""
    own = np.arange(len(y)), y
    assert (alpha >= 0).all() and not alpha[own].any()
    if loss != "max":
        assert (alpha <= (cap if loss == "sum" else cap / top_k)[:, None] * (1 + 1e-12)).all()
    if loss != "sum":
        assert (alpha.sum(axis=1) <= cap * (1 + 1e-12)).all()
    c = -alpha
    c[own] = alpha.sum(axis=1)
    if intercept:
        np.testing.assert_allclose(c.sum(axis=0), 0, atol=1e-11 * alpha.sum())
    return alpha.sum() - 0.5 * norm((X.astype(float).T @ c).T, p / (p - 1)) ** 2


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("k", [2, 3, 40])
def test_certificate_is_that_of_numpy(machine, intercept, k):
    loss, top_k, p = machine
    top_k = min(top_k, k - 1)
    X, y = text(150, 120, k)
    cap = np.random.default_rng(1).uniform(0.2, 2, len(y))
    state = solve_many(X, y, cap, k, loss, top_k, p, fit_intercept=intercept, tol=1e-4)
    assert state.gap <= 1e-4
    P = primal(X, y, cap, class_vectors(state), state.b, loss, top_k, p)
    D = dual(X, y, cap, dense_duals(state, len(y), k), loss, top_k, p, intercept)
    assert state.objective == pytest.approx(P, rel=1e-12)
    assert state.gap == pytest.approx((P - D) / P, abs=1e-11)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rounding_hides_nothing_in_the_bound(seed, intercept):
    """A constant column: its sums over hundreds of rows round in one direction."""
    rng, n, k = np.random.default_rng(seed), 600, 3
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)].astype(np.int32)
    X = sparse.csr_array(np.c_[np.full(n, 0.11), rng.standard_normal((n, 2))])
    state = solve_many(X, y, np.full(n, 1e-3), k, "max", fit_intercept=intercept, tol=1e-12)
    V, total = [[Fraction(0)] * 3 for _ in range(k)], Fraction(0)
    for i, x in enumerate(X.toarray().tolist()):
        for e in range(state.start[i], state.start[i + 1]):
            alpha = Fraction(float(state.alpha[e]))
            total += alpha
            for j, number in enumerate(x):
                V[y[i]][j] += alpha * Fraction(number)
                V[state.rivals[e]][j] -= alpha * Fraction(number)
    exact = total - sum(v * v for vector in V for v in vector) / 2
    assert Fraction(state.objective) * (1 - Fraction(state.gap)) <= exact
    assert state.gap <= 1e-12


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("intercept", [False, True])
def test_optimum_is_that_of_the_other_solver(machine, intercept):
    loss, top_k, p = machine
    X, y = text(300, 200, 30, seed=3)
    cap = np.full(len(y), 0.7)
    ours = solve_many(X, y, cap, 30, loss, top_k, p, fit_intercept=intercept, tol=1e-6)
    if p == 2:
        other = solve_linear(X, y, cap, 30, loss, top_k, fit_intercept=intercept, tol=1e-8)
    else:
        other = solve_lp(X, y, cap, 30, p, fit_intercept=intercept, tol=1e-8)
    assert ours.gap <= 1e-6
    assert ours.objective == pytest.approx(other.objective, rel=2e-6)
    assert ours.objective * (1 - ours.gap) <= other.objective * (1 + 1e-12)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("intercept", [False, True])
def test_optimum_is_that_of_cvxpy(machine, intercept):
    loss, top_k, p = machine
    X, y = text(40, 25, 6, seed=4, words=4)
    cap = np.random.default_rng(2).uniform(0.5, 2, len(y))
    W, b = cp.Variable((6, 25)), cp.Variable(6)
    F = X.toarray() @ W.T + np.ones((len(y), 1)) @ cp.reshape(b, (1, 6), order="C")
    losses = []
    for i, label in enumerate(y):
        rivals = cp.pos(1 - F[i, label] + F[i, [l for l in range(6) if l != label]])
        value = {"max": cp.max, "sum": cp.sum, "top": lambda r: cp.sum_largest(r, top_k) / top_k}[loss](rivals)
        losses.append(cap[i] * value)
    penalty = cp.pnorm(cp.norm(W, 2, axis=1), p, approx=False)
    task = cp.Problem(cp.Minimize(0.5 * cp.square(penalty) + cp.sum(losses)), [] if intercept else [b == 0])
    optimum = task.solve(solver="CLARABEL")
    state = solve_many(X, y, cap, 6, loss, top_k, p, fit_intercept=intercept, tol=1e-7)
    assert state.gap <= 1e-7
    assert state.objective == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_thousand_classes_with_one_row_and_rows_of_zeros(intercept):
    X, y = text(3000, 2000, 1000, seed=5, words=20, noise=0.3, dtype=np.float32)
    X = X.tolil()
    X[[3, 700, 2999]] = 0
    X = sparse.csr_array(X, dtype=np.float32)
    assert (np.bincount(y, minlength=1000) == 1).sum() > 100
    cap = np.ones(len(y))
    state = solve_many(X, y, cap, 1000, "max", fit_intercept=intercept, tol=1e-3)
    assert state.gap <= 1e-3
    P = primal(X, y, cap, class_vectors(state), state.b, "max", 1, 2.0)
    D = dual(X, y, cap, dense_duals(state, len(y), 1000), "max", 1, 2.0, intercept)
    assert state.objective == pytest.approx(P, rel=1e-10)
    assert state.gap == pytest.approx((P - D) / P, abs=1e-9)
    other = solve_linear(X, y, cap, 1000, "max", fit_intercept=intercept, tol=1e-4)
    assert state.objective == pytest.approx(other.objective, rel=1.2e-3)


@pytest.mark.parametrize("machine", MACHINES)
def test_threads_leave_the_bits_as_they_are(machine):
    loss, top_k, p = machine
    X, y = text(2500, 300, 200, seed=6, dtype=np.float32)
    one, two = (solve_many(X, y, np.ones(len(y)), 200, loss, top_k, p, tol=1e-2, n_jobs=j) for j in (1, 2))
    for a, b in ((one.W, two.W), (one.b, two.b), (one.alpha, two.alpha), (one.rivals, two.rivals)):
        np.testing.assert_array_equal(a, b)
    assert one.objective == two.objective
    assert one.gap == two.gap


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("intercept", [False, True])
def test_warm_start_is_shorter_and_certified(machine, intercept):
    loss, top_k, p = machine
    X, y = text(400, 200, 50, seed=7)
    cap = np.ones(len(y))
    settings = {"fit_intercept": intercept, "tol": 1e-4}
    first = solve_many(X, y, cap, 50, loss, top_k, p, **settings)
    again = solve_many(X, y, cap, 50, loss, top_k, p, state=first, **settings)
    assert again.n_iter < first.n_iter
    other = solve_many(X, y, 1.5 * cap, 50, loss, top_k, p, state=first, **settings)
    cold = solve_many(X, y, 1.5 * cap, 50, loss, top_k, p, **settings)
    assert max(again.gap, other.gap) <= 1e-4
    assert other.objective == pytest.approx(cold.objective, rel=1.1e-4)


def test_scores_that_lie_close_together_need_few_passes():
    """A strong penalty: lists hold few of the rivals that an intercept which moves brings into play."""
    X, y = text(2000, 1000, 500, seed=9, words=20, noise=0.7, dtype=np.float32)
    cap = np.full(len(y), 0.1)
    state = solve_many(X, y, cap, 500, "max", 1, 1.2, tol=1e-2)
    assert state.gap <= 1e-2
    assert state.n_iter <= 16


def test_few_passes_give_an_honest_gap():
    X, y = text(400, 200, 50, seed=8)
    cap = np.ones(len(y))
    for intercept in (False, True):
        state = solve_many(X, y, cap, 50, "max", fit_intercept=intercept, tol=1e-9, max_iter=3)
        assert state.n_iter == 3
        assert 1e-9 < state.gap < 1
        best = solve_linear(X, y, cap, 50, "max", fit_intercept=intercept, tol=1e-9)
        assert state.objective * (1 - state.gap) <= best.objective <= state.objective


def test_plan_takes_it_for_sparse_rows_and_very_many_classes_only():
    X, _ = text(20, 10_000, 4)
    assert not plan.suits(X, 1000)
    assert plan.suits(X, 2000)
    assert plan.suits(X[:, :100], 30_000)
    with skmargin.config_context(max_dense_bytes=8 * 10_000 * 1000 - 1):
        assert plan.suits(X, 1000)
    assert not plan.suits(X.toarray(), 30_000)
