"""The factor of a kernel matrix, and machines on it."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skmargin.kernels._rows import KernelRows
from skmargin.solvers.kernel_blocks import KernelState, solve_kernel
from skmargin.solvers.kernel_factor import can_factor, factor, solve_factor


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
    assert can_factor(KernelRows(X, cache_size=100))
    assert not can_factor(KernelRows(X, cache_size=10))


@pytest.mark.parametrize("loss", ["max", "sum", "top"])
@pytest.mark.parametrize("intercept", [False, True])
def test_it_ends_where_long_block_ascent_ends(loss, intercept):
    X, y = load_iris(return_X_y=True)
    y = y.astype(np.int32)
    cap, K = np.full(150, 5.0), {"max": 1, "sum": 2, "top": 2}[loss]
    task = KernelRows(X, "rbf", 0.1, dtype=np.float64), y, cap, 3, loss, K
    blocks = solve_kernel(*task, fit_intercept=intercept, tol=1e-8, max_iter=10**6)
    nothing = KernelState(np.zeros((150, 3)), np.zeros(3))
    # The gap of the duals alone is about the root of the linear one's: with double precision not below 1e-8.
    state = solve_factor(*task, fit_intercept=intercept, tol=1e-7, max_iter=10**5, seed=0, start=nothing)
    assert state.gap <= 1e-7
    assert state.objective == pytest.approx(blocks.objective, rel=2e-7)
