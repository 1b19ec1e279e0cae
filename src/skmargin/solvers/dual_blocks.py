"""Linear machines by block ascent on the dual.

    primal  min_{W,b}  1/2 ||W||^2 + sum_i value_i(f_{i,y_i} - f_il),   f_i = W x_i + b
    dual    max_alpha  sum_i dual_i(alpha_i) - 1/2 ||W||^2,   W = sum_i x_i c_i',
            c_{i,y_i} = sum_l alpha_il,  c_il = -alpha_il,  with a free intercept also sum_i c_i = 0

given    X (dense or CSR), classes 0..k-1, the weight ``cap`` = C s_i of each sample, a loss ("max": Crammer-Singer,
         "sum": Weston-Watkins, "top": the K largest hinges), and perhaps the state of an earlier solve
returned W, b, the duals, P and the certified duality gap

The loops are in ``_core/linear_blocks.hpp``, ``_core/face.hpp`` and ``_core/newton.hpp``; here the gear is chosen:
dense or sparse rows, float32 as long as it is exact enough and then float64; Newton steps where block ascent crawls
although W is small.  Crammer & Singer (2001), Weston & Watkins (1998), Keerthi et al. (2008).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from skmargin._core import _ext

SINGLE_TOL = 1e-3  # float32 stalls between 1e-5 and 1e-4; down to here its gap is that of float64 to one per cent
TINY = 20_000  # n d k up to which a solve to rounding costs less than the call itself
ROUNDING = 1e-14
NEWTON_PARAMETERS, NEWTON_STEPS = 1000, 40  # largest d k for the Newton gear; steps it usually takes
SPARSE_BELOW = 0.25  # share of non-zeros from which dense rows are faster


@dataclass(frozen=True)
class DualState:
    """A dual point with its primal point and certificate; plain arrays, ready to start the next solve from."""

    W: np.ndarray  # (k, d)
    b: np.ndarray  # (k,) intercepts, f = W x + b
    start: np.ndarray  # CSR arrays of the duals: row starts, rivals, numbers
    rivals: np.ndarray
    alpha: np.ndarray
    multipliers: np.ndarray  # (k,) of the free intercept
    cap: np.ndarray  # (n,) C s_i that the duals belong to
    objective: float
    gap: float  # relative duality gap (P - D)/P, certified
    n_iter: int

    def rescaled(self, cap: np.ndarray) -> DualState:
        """The same point for other weights: duals stay feasible when they shrink or grow with their bounds.

        Where all bounds grow, the duals grow only up to the best point of their ray, ``t = sum(alpha) / ||W||^2``: rows
        that can be separated have the same solution for every large C.
        """
        ratio = cap / self.cap
        size = float(np.square(self.W, dtype=np.float64).sum())
        if ratio.min() >= 1 and size > 0:
            ratio = np.minimum(ratio, max(1.0, float(self.alpha.sum()) / size))
        return replace(self, alpha=self.alpha * np.repeat(ratio, np.diff(self.start)), cap=cap)


def solve_linear(
    X: Any,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    loss: str,
    K: int = 1,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: DualState | None = None,
    verbose: int = 0,
) -> DualState:
    """Solve to a relative duality gap of ``tol``; see the head of this file."""
    n, k = len(y), n_classes
    X = _suitable_rows(X)
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel() if fit_intercept else None
    if state is not None:
        state = state.rescaled(cap)
        duals, multipliers = (state.start, state.rivals, state.alpha), state.multipliers
    else:
        duals = np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        multipliers = np.zeros(k)

    tiny = n * X.shape[1] * k <= TINY
    budget = np.inf if tiny or sparse.issparse(X) else newton_flops(n, X.shape[1], k)
    passes, solution = 0, None
    for dtype, stage_tol, may_stall in _stages(X, k, tol):
        solve = _ext.csr_blocks if sparse.issparse(X) else _ext.dense_blocks
        out = solve(
            *_arrays(X, dtype), y, cap, k, loss, K, mean, multipliers, *duals,
            float(stage_tol), max(1, max_iter - passes), float(budget), may_stall, _face_pays(X, k), seed + passes,
        )  # fmt: skip
        passes += out["passes"]
        start, rivals, alpha = out["duals"]
        stage = DualState(
            out["W"], out["b"], start, rivals, alpha, out["multipliers"], cap, out["primal"], _relative(out), passes
        )  # fmt: skip
        polishing = stage_tol < tol and solution is not None
        if solution is None or not polishing or stage.gap < solution.gap:
            solution = stage
        duals, multipliers = out["duals"], out["multipliers"]
        budget -= out["work"]
        if verbose:
            print(
                f"[skmargin] {'sparse' if sparse.issparse(X) else 'dense'} rows, {np.dtype(dtype).name}: "
                f"{passes} passes, objective {out['primal']:.6g}, relative gap {_relative(out):.1e}"
            )
        if passes >= max_iter or budget <= 0 or (dtype is np.float32 and _relative(out) <= 0.9 * tol):
            break
    assert solution is not None
    if solution.gap > tol and (tiny or budget <= 0):
        solution = _newton(X, y, solution, k, loss, K, fit_intercept, tol, max_iter, seed, verbose)
    return solution


def newton_flops(n: int, d: int, k: int) -> float:
    """Price of the Newton gear in flops of the block passes: what these may spend before it takes over.

    Spending as much on the first gear as the second is expected to cost is at most twice as dear as knowing in advance
    which is better.  Too many parameters or too little data for it: no limit.
    """
    if d * k > NEWTON_PARAMETERS:
        return np.inf
    start = 26 * n * d * k + 900 * n * k  # measured, as the rest
    step = 0.022 * ((k - 1) * (d + 1)) ** 3 + 1.4 * n * d * k
    return start + NEWTON_STEPS * step


def _newton(
    X: Any, y: np.ndarray, blocks: DualState, k: int, loss: str, K: int, fit_intercept: bool, tol: float, max_iter: int,
    seed: int, verbose: int,
) -> DualState:  # fmt: skip
    """The semismooth Newton gear (_core/newton.hpp); the better of its result and that of the block passes."""
    with threadpool_limits(1, "blas"):  # the products are small: threads would only wait for each other
        out = _ext.newton(
            np.ascontiguousarray(X, dtype=np.float64),
            y,
            blocks.cap,
            k,
            loss,
            K,
            fit_intercept,
            tol,
            max_iter,
            None,
            None,
            seed,
        )
    gap = out["gap"] / max(out["objective"], np.finfo(float).tiny)
    if verbose:
        print(f"[skmargin] Newton: {out['n_newton']} steps, objective {out['objective']:.6g}, relative gap {gap:.1e}")
    if not gap < blocks.gap:
        return blocks
    return DualState(
        out["W"], out["b"], out["indptr"], out["classes"], out["alpha"], out["b"], blocks.cap, out["objective"], gap,
        blocks.n_iter + out["n_newton"],
    )  # fmt: skip


def _relative(out: dict[str, Any]) -> float:
    return max(0.0, out["gap"]) / max(out["primal"], np.finfo(float).tiny)  # rounding can take a gap below zero


def _suitable_rows(X: Any) -> Any:
    """Dense rows for dense data and CSR for sparse data, whatever container the user chose."""
    n, d = X.shape
    if sparse.issparse(X):
        return X.toarray() if X.nnz > SPARSE_BELOW * n * d else X
    if d >= 32 and np.count_nonzero(X) < SPARSE_BELOW * n * d:
        return sparse.csr_array(X)
    return X


def _stages(X: Any, k: int, tol: float) -> list[tuple[type, float, bool]]:
    """Number types, the gap to reach with each, and whether it may give up where it makes no progress."""
    size = X.shape[0] * X.shape[1]
    if size * k <= TINY:
        return [(np.float64, tol, False), (np.float64, min(tol, ROUNDING), True)]
    if X.dtype == np.float32 and tol >= SINGLE_TOL:
        return [(np.float32, tol, False)]
    if size < 3e5 and not sparse.issparse(X):
        return [(np.float64, tol, False)]
    return [(np.float32, max(0.9 * tol, 0.9 * SINGLE_TOL), True), (np.float64, tol, False)]


def _arrays(X: Any, dtype: type) -> tuple[Any, ...]:
    if sparse.issparse(X):
        return X.indptr, X.indices, X.data.astype(dtype, copy=False), X.shape[1]
    return (np.ascontiguousarray(X, dtype=dtype),)


def _face_pays(X: Any, k: int) -> bool:
    """A face step clears and reads all of W: not for text, where W is larger than X."""
    stored = X.nnz if sparse.issparse(X) else X.size
    return X.shape[1] * k <= 4 * stored
