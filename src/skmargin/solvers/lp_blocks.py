"""The machine of Lei et al. (2015), linear or with a kernel, by block ascent on the dual.

    primal  min_{W,b}  1/2 ||W||_{2,p}^2 + sum_i cap_i max(0, 1 - f_{i,y_i} + max_{l != y_i} f_il),   f_i = W x_i + b
            ||W||_{2,p} = (sum_l ||w_l||^p)^(1/p),   1/p + 1/q = 1
    dual    max_alpha  sum_il alpha_il - 1/2 ||V||_{2,q}^2,   alpha_il >= 0,   sum_l alpha_il <= cap_i
            V = sum_i x_i c_i',   c_{i,y_i} = sum_l alpha_il,  c_il = -alpha_il;   with an intercept also sum_i c_i = 0
    link    w_l = (||v_l|| / ||V||_{2,q})^(q-2) v_l

given    X (dense or CSR) or a kernel matrix, classes 0..k-1, the weight ``cap`` = C s_i of each sample, p, and perhaps
         the state of an earlier solve, for the same rows: its duals are feasible for every p and, rescaled, for every C
returned W, b, the duals, P and the certified duality gap P(link(alpha)) - D(alpha)

The block steps are in ``_core/lp_blocks.hpp``, those on the face of the dual in ``_core/lp_face.hpp``.  Where they have
cost as much as interior-point steps would, and few parameters allow those, ``lp_interior`` takes over.

The paper alternates between class weights (its equation 14) and a weighted machine of Crammer and Singer, which is
valid for p <= 2 only; this ascent is valid for every p > 1.  p = 2 is the machine of Crammer and Singer itself, and its
solver is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from skmargin._core import _ext
from skmargin.kernels._rows import KernelRows

from .dual_blocks import (
    ROUNDING,
    TINY,
    DualState,
    _arrays,
    _face_pays,
    _relative,
    _stages,
    _suitable_rows,
    direction_apart,
    mean_row,
    solve_linear,
)
from .kernel_factor import factor
from .lp_interior import solve_interior

Stage = tuple[tuple[Any, ...], float, bool]  # arrays of the rows, gap to reach, whether it may give up
POLISHED = 1e-9  # gap that interior-point steps reach with hardly a doubt
INTERIOR_PARAMETERS, INTERIOR_SIZE = 1000, 10_000_000  # largest d k, and n d k, for interior-point steps


@dataclass(frozen=True)
class LpKernelState(DualState):
    """As `DualState`, but ``W`` (k, 1) holds the weights of the classes: f = sum_i K(x, x_i) c_i W + b."""


def solve_lp(
    X: Any,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    p: float,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: DualState | None = None,
    verbose: int = 0,
) -> DualState:
    """Solve for rows ``X`` to a relative duality gap of ``tol``; see the head of this file."""
    if p == 2:
        return solve_linear(
            X, y, cap, n_classes, "max",
            fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, seed=seed, state=state, verbose=verbose,
        )  # fmt: skip
    X = _suitable_rows(X)
    mean: np.ndarray | None = mean_row(X)
    if not fit_intercept and not direction_apart(X, cap, mean):
        mean = None
    solve = _ext.lp_csr if sparse.issparse(X) else _ext.lp_dense
    if X.shape[0] * X.shape[1] * n_classes <= TINY:
        stages = _tiny(_arrays(X, np.float64), tol)
    else:
        stages = [(_arrays(X, dtype), goal, may_stall) for dtype, goal, may_stall in _stages(X, tol)]
    rows = (lambda: X.toarray() if sparse.issparse(X) else X) if few_parameters(X.shape, n_classes) else None
    face = _face_pays(X, n_classes)
    return DualState(
        *_solve(solve, stages, y, cap, n_classes, p, mean, fit_intercept, face, rows, X.shape[1], tol, max_iter, seed, state, verbose)
    )


def solve_lp_kernel(
    K: np.ndarray,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    p: float,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: LpKernelState | None = None,
    verbose: int = 0,
) -> LpKernelState:
    """Solve for a kernel matrix to a relative duality gap of ``tol``; see the head of this file."""
    mean = np.zeros(len(y)) if fit_intercept else None
    stages = _tiny((K,), tol) if K.size * n_classes <= TINY else [((K,), tol, False)]
    few = few_parameters(K.shape, n_classes)
    rows = (lambda: factor(KernelRows(K, "precomputed", dtype=np.float64))) if few else None
    return LpKernelState(
        *_solve(
            _ext.lp_gram, stages, y, cap, n_classes, p, mean, fit_intercept, True, rows, len(y), tol, max_iter, seed, state, verbose
        )
    )


def _tiny(arrays: tuple[Any, ...], tol: float) -> list[Stage]:
    """What the user asked for, and then rounding, which costs next to nothing here."""
    return [(arrays, tol, False), (arrays, min(tol, ROUNDING), True)]


def few_parameters(shape: tuple[int, int], k: int) -> bool:
    """Whether interior-point steps are within reach."""
    n, d = shape
    return d * k <= INTERIOR_PARAMETERS and n * d * k <= INTERIOR_SIZE


def _solve(
    solve: Any,
    stages: list[Stage],
    y: np.ndarray,
    cap: np.ndarray,
    k: int,
    p: float,
    mean: np.ndarray | None,
    intercept: bool,
    face: bool,
    rows: Callable[[], np.ndarray | None] | None,
    d: int,
    tol: float,
    max_iter: int,
    seed: int,
    state: DualState | None,
    verbose: int,
) -> tuple[Any, ...]:
    """``rows`` gives dense rows for interior-point steps; None where these are out of reach or there are none."""
    duals: tuple[np.ndarray, ...] = np.zeros(len(y) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    multipliers = np.zeros(k)
    if state is not None:
        state = state.rescaled(cap)
        duals, multipliers = (state.start, state.rivals, state.alpha), state.multipliers
    # A step of the interior-point gear costs about (d k)^2 n, a pass at most 4 d k n: with some twenty steps the two
    # gears have cost the same after this many passes.
    most = max_iter if rows is None else min(max_iter, 100 + 5 * d * k)
    passes, best, bound = 0, None, -np.inf  # the bound of one stage holds for all of them
    arrays: tuple[Any, ...] = ()
    for arrays, goal, may_stall in stages:
        out = solve(
            *arrays, y, cap, k, p / (p - 1), mean, intercept, multipliers, *duals,
            goal, max(1, most - passes), may_stall, face, seed + passes,
        )  # fmt: skip
        duals, multipliers = out["duals"], out["multipliers"]
        passes += out["passes"]
        if verbose:
            print(
                f"[skmargin] p={p:g}: {passes} passes, objective {out['primal']:.6g}, relative gap {_relative(out):.1e}"
            )
        bound = max(bound, out["primal"] - out["gap"])
        if best is None or out["primal"] <= best["primal"]:
            best = out
        # Only float32 stages have a goal below tol that is not rounding: where they reach it, that is enough.
        if passes >= most or (tol > goal > ROUNDING and _relative(out) <= goal):
            break
    assert best is not None
    # Where a solve to rounding costs next to nothing, what the user asked for is not all.
    needed = tol if stages[-1][1] == tol else min(tol, POLISHED)
    reached = best["primal"] - bound <= needed * best["primal"] or passes >= max_iter
    Z = None if reached or rows is None else rows()
    if Z is not None:
        with threadpool_limits(1, "blas"):  # the products are small: threads would only wait for each other
            point = solve_interior(
                Z, y, cap, k, p, fit_intercept=intercept, tol=0.1 * needed, max_iter=max_iter - passes
            )
        passes += point.n_iter
        linear = solve is not _ext.lp_gram
        b = point.b + (point.W @ mean if linear and intercept else 0.0)
        out = solve(
            *arrays, y, cap, k, p / (p - 1), mean if intercept else None, intercept, b, *_sparse_duals(point.alpha, cap), tol, 0, False, False, seed
        )  # the certificate
        if verbose:
            print(
                f"[skmargin] p={p:g}: {point.n_iter} interior-point steps, objective {out['primal']:.6g}, "
                f"relative gap {_relative(out):.1e}"
            )
        bound = max(bound, out["primal"] - out["gap"])
        if linear and point.objective < out["primal"]:
            out |= {"W": point.W, "b": point.b, "primal": point.objective}
        if out["primal"] <= best["primal"]:
            best = out
    gap = max(best["primal"] - bound, 0.0) / max(best["primal"], np.finfo(float).tiny)
    b = best["b"] - best["b"].mean()  # a constant added to all intercepts changes nothing: the one with sum zero
    return best["W"], b, *best["duals"], best["multipliers"], cap, best["primal"], gap, passes


def _sparse_duals(alpha: np.ndarray, cap: np.ndarray) -> tuple[np.ndarray, ...]:
    """CSR arrays of positive dual numbers, within their bounds to the last digit."""
    alpha = alpha * np.minimum(1, cap / np.maximum(alpha.sum(axis=1) * (1 + 1e-15), 1e-300))[:, None]
    rows, rivals = np.nonzero(alpha)
    start = np.r_[0, np.cumsum(np.bincount(rows, minlength=len(cap)))]
    return start.astype(np.int64), rivals.astype(np.int32), alpha[rows, rivals]
