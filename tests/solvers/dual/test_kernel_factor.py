"""The factor of a kernel matrix, and machines on it."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from skmargin.rows.kernel_rows import KernelRows
from skmargin.solvers.dual.kernel import solve_kernel_dual
from skmargin.solvers.dual.kernel_factor import factor, solve_kernel_factor
from skmargin.solvers.dual.plan import can_factor
from skmargin.solvers.dual.state import KernelState


def given(K):
    return KernelRows(K, "precomputed", dtype=np.float64)


def test_factor_of_a_kernel_matrix():
    X = np.random.default_rng(0).normal(size=(50, 3))
    R = factor(given(X @ X.T))
    assert R.shape == (50, 3)
    np.testing.assert_allclose(R @ R.T, X @ X.T, atol=1e-12)
    assert factor(given(-X @ X.T)) is None
    assert factor(given(np.tanh(X @ X.T))) is None  # of both signs


def test_a_long_row_does_not_hide_the_others():
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[7] *= 3e8
    R, length = factor(given(X @ X.T)), np.linalg.norm(X, axis=1)
    assert R.shape == (50, 3)
    assert (np.abs(R @ R.T - X @ X.T) <= 1e-11 * np.outer(length, length)).all()


def test_memory_bounds_the_matrix():
    X = np.random.default_rng(0).normal(size=(600, 3))
    assert can_factor(len(X), cache_size=100)
    assert not can_factor(len(X), cache_size=10)


@pytest.mark.parametrize("loss", ["max", "sum", "top"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("tol", "max_iter"), [(0.5, 10**4), (1e-2, 10**4), (1e-9, 3)])
def test_what_it_publishes_is_certified(loss, intercept, tol, max_iter):
    """Uneven weights and rough solves: the objective is that of the duals' machine, and the bound holds."""
    X, y = load_iris(return_X_y=True)
    y, cap, K = (
        y.astype(np.int32),
        np.random.default_rng(0).uniform(0.01, 10, 150),
        {"max": 1, "sum": 2, "top": 2}[loss],
    )
    rows = KernelRows(X, "rbf", 0.1, dtype=np.float32)
    task, limits = (rows, y, cap, 3, loss, K), {"fit_intercept": intercept, "seed": 0}
    nothing = KernelState(np.zeros((150, 3)), np.zeros(3))
    best = solve_kernel_factor(*task, **limits, tol=1e-7, max_iter=10**5, start=nothing).objective
    found = solve_kernel_factor(*task, **limits, tol=tol, max_iter=max_iter, start=nothing)
    (W, b), G = found.published(y), rbf_kernel(X, gamma=0.1)
    F, own = G @ W + b, (np.arange(150), y)
    hinges = np.maximum(0, 1 - F[own][:, None] + F)
    hinges[own] = 0
    losses = {"max": hinges.max(axis=1), "sum": hinges.sum(axis=1), "top": hinges.sum(axis=1) / 2}[loss]
    assert found.objective == pytest.approx(0.5 * np.vdot(W, G @ W) + cap @ losses, rel=1e-6)
    assert found.objective * (1 - found.gap) <= best * (1 + 1e-9) <= found.objective * (1 + 1e-6)
    assert found.gap <= tol or found.n_iter >= max_iter
    assert found.n_iter <= max_iter
    if max_iter == 3:
        assert solve_kernel_factor(*task, **limits, tol=1e-9, max_iter=3, start=replace(found, gap=0.0)).gap == 0


@pytest.mark.parametrize("loss", ["max", "sum", "top"])
@pytest.mark.parametrize("intercept", [False, True])
def test_it_ends_where_long_block_ascent_ends(loss, intercept):
    X, y = load_iris(return_X_y=True)
    y = y.astype(np.int32)
    cap, K = np.full(150, 5.0), {"max": 1, "sum": 2, "top": 2}[loss]
    task = KernelRows(X, "rbf", 0.1, dtype=np.float64), y, cap, 3, loss, K
    blocks = solve_kernel_dual(*task, fit_intercept=intercept, tol=1e-8, max_iter=10**6)
    nothing = KernelState(np.zeros((150, 3)), np.zeros(3))
    # The gap of the duals alone is about the root of the linear one's: with double precision not below 1e-8.
    state = solve_kernel_factor(*task, fit_intercept=intercept, tol=1e-7, max_iter=10**5, seed=0, start=nothing)
    assert state.gap <= 1e-7
    assert state.objective == pytest.approx(blocks.objective, rel=2e-7)
