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

from ...rows.kernel_rows import KernelRows
from ..primal.factor import pivoted
from ..tuning import DEFAULT, Tuning
from .kernel import certified
from .linear import solve_linear
from .state import DualLists, DualState, KernelState, coefficients, lower_bound

FACTOR_RTOL = 1e-11  # largest error of a factor, for rows of length one


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


def solve_kernel_factor(
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
    tuning: Tuning = DEFAULT,
) -> KernelState:
    """Go on from ``start``; arguments as for `solve_kernel_dual`.  The better of the result and the start."""
    R = factor(rows)
    if R is None:
        return start
    W = coefficients(start.alpha, y).T @ R
    multipliers = start.b + W @ R.mean(axis=0) if fit_intercept else np.zeros(n_classes)
    duals = DualLists.of_table(start.alpha)
    state = None  # a start with a gap of one is no better than zero, and may be far worse
    if start.gap < 1:
        state = DualState(W, start.b, duals, multipliers, cap, start.objective, start.gap, 0)
    best, n_iter = start, start.n_iter
    for target_fraction in (1.0, 1e-2, 1e-4, 1e-6):
        state = solve_linear(
            R, y, cap, n_classes, loss, top_k, fit_intercept=fit_intercept, tol=target_fraction * tol,
            max_iter=max(1, max_iter - n_iter), seed=seed, state=state, tuning=tuning,
        )  # fmt: skip
        n_iter += state.n_iter
        found = KernelState(state.duals.table(n_classes), state.b, n_iter=n_iter)
        bound = lower_bound(state.objective, state.gap)
        found = certified(
            rows, y, cap, loss, top_k, found, state.W @ R.T, fit_intercept, tol, bound, tuning
        )  # fmt: skip
        best = min(best, found, key=lambda s: s.gap)
        if best.gap <= tol or n_iter >= max_iter:
            break
    return best
