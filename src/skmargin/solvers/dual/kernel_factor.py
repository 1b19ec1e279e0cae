"""Kernel machines on few rows as linear machines on a factor of the kernel matrix.

    K = R R'  (Cholesky with pivots, as many columns as the rank):  f = K c + b = R w + b  with  w_l = R'c_l,  and
    c_l'K c_l = ||w_l||^2: the rows of R are the data of a linear machine with the same duals

Block ascent on kernel rows is slow where C is large against the kernel's width; the linear solver then has steps on the
face of its dual and Newton steps.  A kernel machine can publish c only, so its gap is that of w = R'c: about the square
root of the gap of the linear solver, whose w need not come from its duals.  Objective and gap are computed from the
kernel matrix (`certified`), not from its factor.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ...rows.kernel_rows import KernelRows
from ..primal.factor import pivoted
from .kernel import certified
from .kernel_state import KernelState, coefficients
from .linear import DualState, solve_linear

FACTOR_ROWS, FACTOR_BYTES = 2000, 64  # largest matrix that is factored; memory for each of its numbers
FACTOR_STEP_COST = 100.0, 3e-4  # block steps of the same cost, for each of n and n^3 (measured)
FACTOR_RTOL = 1e-11  # largest error of a factor, for rows of length one


def can_factor(rows: KernelRows) -> bool:
    """Whether time and ``cache_size`` allow a factor."""
    return rows.n <= min(FACTOR_ROWS, np.sqrt(rows.cache_size * 2**20 / FACTOR_BYTES))


def factor_cost(n: int) -> float:
    """Block steps that cost as much as `solve_factor`: what the first gear may spend, as in `newton_step_flops`."""
    return FACTOR_STEP_COST[0] * n + FACTOR_STEP_COST[1] * n**3


def factor(rows: KernelRows) -> np.ndarray | None:
    """R with K = R R', of as many columns as the rank of K; None if K is not positive semi-definite."""
    if rows.dtype == np.float32:
        rows.promote()
    K = rows.square(np.arange(rows.n))[:, : rows.n]
    length = np.sqrt(np.maximum(np.diagonal(K), np.finfo(float).tiny))
    R, _ = pivoted(np.array(K, order="C"))
    if R.shape[1] == 0:
        return None
    K -= R @ R.T
    K /= length
    K /= length[:, None]
    return R if np.abs(K, out=K).max() <= FACTOR_RTOL else None


def solve_factor(
    rows: KernelRows,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    loss: str,
    top_k: int,
    *,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    seed: int,
    start: KernelState,
) -> KernelState:
    """Go on from ``start``; arguments as for `solve_kernel_dual`.  The better of the result and the start."""
    R = factor(rows)
    if R is None:
        return start
    W = coefficients(start.alpha, y).T @ R
    duals = sparse.csr_array(start.alpha)
    multipliers = start.b + W @ R.mean(axis=0) if fit_intercept else np.zeros(n_classes)
    state = DualState(
        W, start.b, duals.indptr.astype(np.int64), duals.indices.astype(np.int32), duals.data, multipliers, cap,
        start.objective, start.gap, 0,
    )  # fmt: skip
    best, n_iter = start, start.n_iter
    for target_fraction in (1.0, 1e-2, 1e-4, 1e-6):
        state = solve_linear(
            R, y, cap, n_classes, loss, top_k, fit_intercept=fit_intercept, tol=target_fraction * tol,
            max_iter=max(1, max_iter - n_iter), seed=seed, state=state,
        )  # fmt: skip
        n_iter += state.n_iter
        duals = sparse.csr_array((state.alpha, state.rivals, state.start), shape=(rows.n, n_classes)).toarray()
        found = certified(
            rows, y, cap, loss, top_k, KernelState(duals, state.b, n_iter=n_iter), state.W @ R.T, fit_intercept, tol,
            state.objective * (1 - state.gap),
        )  # fmt: skip
        best = min(best, found, key=lambda s: s.gap)
        if best.gap <= tol or n_iter >= max_iter:
            break
    return best
