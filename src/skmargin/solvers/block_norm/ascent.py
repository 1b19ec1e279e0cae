"""The machine of Lei et al. (2015), linear or with a kernel, by block ascent on the dual.

    primal  min_{W,b}  1/2 ||W||_{2,p}^2 + sum_i cap_i max(0, 1 - f_{i,y_i} + max_{l != y_i} f_il),   f_i = W x_i + b
            ||W||_{2,p} = (sum_l ||w_l||^p)^(1/p),   1/p + 1/q = 1
    dual    max_alpha  sum_il alpha_il - 1/2 ||V||_{2,q}^2,   alpha_il >= 0,   sum_l alpha_il <= cap_i
            V = sum_i x_i c_i',   c_{i,y_i} = sum_l alpha_il,  c_il = -alpha_il;   with an intercept also sum_i c_i = 0
    link    w_l = (||v_l|| / ||V||_{2,q})^(q-2) v_l

given    X (dense or CSR) or a kernel matrix, classes 0..k-1, the weight ``cap`` = C s_i of each sample, p, and perhaps
         the state of an earlier solve, for the same rows: its duals are feasible for every p and, rescaled, for every C
returned W, b, the duals, P and the certified duality gap P(link(alpha)) - D(alpha)

The block steps are in ``_core/block_norm/class_vectors.hpp``, those on the face of the dual in ``face_newton.hpp``
there.  Where they have cost as much as interior-point steps would, and few parameters allow those, ``interior_point``
takes over.

The paper alternates between class weights (its equation 14) and a weighted machine of Crammer and Singer, which is
valid for p <= 2 only; this ascent is valid for every p > 1.  p = 2 is the machine of Crammer and Singer itself, and its
solver is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, sparse

from ..._core import _ext
from ..._runtime.progress import print_line
from ..._runtime.threads import blas_threads
from ...rows.row_cache import RowCache
from ..dual.kernel_state import coefficients
from ..dual.linear import (
    GAP_FLOOR,
    TINY_PROBLEM,
    DualState,
    core_arrays,
    face_steps_pay,
    float32_suffices,
    moments,
    precision_stages,
    relative_gap,
    solve_linear,
    splits_off_mean,
    suitable_storage,
    total_variance,
)
from .interior_point import half_square, solve_interior

Stage = tuple[tuple[Any, ...], float, bool]  # arrays of the rows, gap to reach, whether it may give up
POLISHED, POLISHING = 1e-12, 50  # gap that interior-point steps reach with hardly a doubt, in so many of them
INTERIOR_PARAMETERS, INTERIOR_SIZE = 1900, 10_000_000  # largest min(n, d) k, and n d k, for interior-point steps


@dataclass(frozen=True)
class LpKernelState(DualState):
    """As `DualState`, but ``W`` (n, k) holds the coefficients of the rows: f = sum_i K(x, x_i) W_i + b."""


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
    n_jobs: int | None = 1,
    verbose: int = 0,
) -> DualState:
    """Solve for rows ``X`` to a relative duality gap of ``tol``; see the head of this file."""
    if p == 2:
        return solve_linear(
            X, y, cap, n_classes, "max", fit_intercept=fit_intercept,
            tol=tol, max_iter=max_iter, seed=seed, state=state, n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
    X = suitable_storage(X)
    centre, square = moments(X)
    mean_cap = float(cap.mean())
    apart = fit_intercept or splits_off_mean(
        mean_cap * total_variance(centre, square), mean_cap * float(centre @ centre)
    )
    mean = centre if apart else None
    solve = _ext.lp_csr if sparse.issparse(X) else _ext.lp_dense
    if X.shape[0] * X.shape[1] * n_classes <= TINY_PROBLEM:
        stages = _tiny(core_arrays(X, np.float64), tol)
    else:
        kinds = precision_stages(X, tol, float32_suffices(centre, square))
        stages = [(core_arrays(X, dtype), goal, may_stall) for dtype, goal, may_stall in kinds]
    rows = (lambda: X.toarray() if sparse.issparse(X) else X) if few_parameters(X.shape, n_classes) else None
    face = face_steps_pay(X, n_classes)
    return _solve(
        solve, stages, y, cap, n_classes, p, mean, fit_intercept, face, rows, min(X.shape), tol, max_iter, seed, state,
        verbose,
    )[0]  # fmt: skip


def solve_lp_kernel(
    matrix: Callable[[np.ndarray | None], np.ndarray | RowCache],
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    p: float,
    *,
    coarse: Callable[[], np.ndarray | RowCache] | None = None,
    factored: Callable[[], np.ndarray | None] | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: LpKernelState | None = None,
    verbose: int = 0,
) -> LpKernelState:
    """Solve for a kernel matrix to a relative duality gap of ``tol``; see the head of this file.

    ``matrix`` gives it in float64, whose objective and gap are returned; its argument are the rows that are sure to be
    needed, None for all.  ``coarse`` gives it in float32, for passes twice as fast that come first.  ``factored`` gives
    R with K = R R' (kernel_factor.py), or None.
    """
    n, k = len(y), n_classes
    mean = np.zeros(n) if fit_intercept else None

    def run(
        K: np.ndarray | RowCache, state: LpKernelState | None, passes: int, R: np.ndarray | None = None
    ) -> LpKernelState:
        single = (K.diagonal if isinstance(K, RowCache) else K).dtype == np.float32
        goal = 0.9 * tol if single else tol
        solve, arrays = (_ext.lp_rows, (K, K.diagonal)) if isinstance(K, RowCache) else (_ext.lp_gram, (K,))
        stages = _tiny(arrays, tol) if n * n * k <= TINY_PROBLEM else [(arrays, goal, single)]
        d = n if R is None else R.shape[1]
        rows = (lambda: R) if R is not None and few_parameters(R.shape, k) else None
        found, interior = _solve(
            solve, stages, y, cap, k, p, mean, fit_intercept, True, rows, d, goal, passes, seed, state, verbose
        )
        return _as_kernel_state(found, interior, y, R, p)

    # The rank of the matrix says whether interior-point steps are within reach.  A factor costs n^3/3, a pass at most
    # 4 n^2 k: it may be tried after this many passes.
    most = max_iter if factored is None else min(max_iter, 100 + n // k)
    factor: np.ndarray | None = None
    support: np.ndarray | None = None
    left, needed = max_iter, tol if n * n * k > TINY_PROBLEM else min(tol, POLISHED)
    if coarse is not None:
        K = coarse()
        state = run(K, state, most)
        left -= state.n_iter
        if factored is not None and state.gap > 0.9 * tol and left > 0:
            factor = factored()
            if factor is None or not few_parameters(factor.shape, k):
                factored, state = None, run(K, state, left)
                left -= state.n_iter
        most = left if factored is None else most - (max_iter - left)
        if factored is None or factor is None:  # nothing but a certificate is to come, or little more
            support = np.flatnonzero(state.W.any(axis=1))
        del K  # before there is another one
    K = matrix(support)
    first = run(K, state, min(most, left))
    left -= first.n_iter
    if factored is None or first.gap <= needed or left <= 0:
        return replace(first, n_iter=max_iter - left)
    second = run(K, first, left, factored() if factor is None else factor)
    return replace(min(first, second, key=lambda s: s.gap), n_iter=max_iter - left + second.n_iter)


def _as_kernel_state(found: DualState, interior: bool, y: np.ndarray, R: np.ndarray | None, p: float) -> LpKernelState:
    """With coefficients of the rows: the duals times the weights of the classes, or those of an interior point.

    The link of the duals is lost where p is large: the ||v_l|| are the (p-1)-th powers of the ||w_l||, and those of
    short w_l vanish beside rounding.  The class vectors of an interior point have coefficients of their own.
    """
    if not interior:
        alpha = sparse.csr_array((found.alpha, found.rivals, found.start), shape=(len(y), len(found.b))).toarray()
        return LpKernelState(**vars(found) | {"W": coefficients(alpha, y) * found.W[:, 0]})
    assert R is not None
    coef = linalg.lstsq(R.T, found.W.T)[0]
    W = coef.T @ R  # what is published, to rounding the interior point
    F = R @ W.T + found.b
    own = np.arange(len(y)), y
    rivals = 1 - F[own][:, None] + F
    rivals[own] = 0
    objective = half_square(W, p) + float(found.cap @ rivals.max(axis=1))
    bound = found.objective * (1 - found.gap)
    gap = max(0.0, objective - bound) / max(objective, np.finfo(float).tiny)
    return LpKernelState(**vars(found) | {"W": coef, "objective": objective, "gap": gap})


def _tiny(arrays: tuple[Any, ...], tol: float) -> list[Stage]:
    """What the user asked for, and then rounding, which costs next to nothing here."""
    return [(arrays, tol, False), (arrays, min(tol, GAP_FLOOR), True)]


def _needed(stages: list[Stage], tol: float) -> float:
    """Where a solve to rounding costs next to nothing, what the user asked for is not all."""
    return tol if stages[-1][1] == tol else min(tol, POLISHED)


def few_parameters(shape: tuple[int, int], k: int) -> bool:
    """Whether interior-point steps are within reach."""
    n, d = shape
    return min(n, d) * k <= INTERIOR_PARAMETERS and n * d * k <= INTERIOR_SIZE


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
    rows: Callable[[], np.ndarray] | None,
    d: int,
    tol: float,
    max_iter: int,
    seed: int,
    state: DualState | None,
    verbose: int,
) -> tuple[DualState, bool]:
    """``rows`` gives dense rows for interior-point steps; None where these are out of reach.

    Returned are the state and whether its class vectors are those of an interior point, not the link of its duals.
    """
    duals: tuple[np.ndarray, ...] = np.zeros(len(y) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    multipliers = np.zeros(k)
    if state is not None:
        state = state.rescaled(cap)
        duals, multipliers = (state.start, state.rivals, state.alpha), state.multipliers
    # A step of the interior-point gear costs about (d k)^2 n, a pass at most 4 d k n: with some twenty steps the two
    # gears have cost the same after this many passes.
    most = max_iter if rows is None else min(max_iter, 100 + 5 * d * k)
    passes, best, bound = 0, None, -np.inf  # the bound of one stage holds for all of them
    rough = False  # so far single precision, on its way to another tolerance: it certifies nothing
    for arrays, goal, may_stall in stages:
        out = solve(
            *arrays, y, cap, k, p / (p - 1), mean, intercept, multipliers, *duals,
            goal, most - passes, may_stall, face, seed + passes,
        )  # fmt: skip
        duals, multipliers = out["duals"], out["multipliers"]
        passes += out["passes"]
        if rough:
            best, bound = None, -np.inf
        rough = goal > tol
        if verbose:
            print_line(
                f"p={p:g}: {passes} passes, objective {out['primal']:.6g}, "
                f"relative gap {relative_gap(out['primal'], out['gap']):.1e}"
            )
        bound = max(bound, out["primal"] - out["gap"])
        if best is None or out["primal"] <= best["primal"]:
            best = out
        # Only float32 stages have a goal below tol that is not rounding: where they reach it, that is enough.
        if passes >= most or (tol > goal > GAP_FLOOR and relative_gap(out["primal"], out["gap"]) <= goal):
            break
    assert best is not None
    needed, interior = _needed(stages, tol), False
    reached = (best["primal"] - bound <= needed * best["primal"] and not rough) or passes >= max_iter
    if rows is not None and not reached:
        left = max_iter - passes
        if best["primal"] - bound <= tol * best["primal"] and not rough:  # what is left is nobody's wish
            left = min(left, POLISHING)
        with blas_threads(1), np.errstate(over="ignore", invalid="ignore"):  # its certificate is what counts
            R = np.asarray(rows(), dtype=np.float64)
            point = solve_interior(R, y, cap, k, p, fit_intercept=intercept, tol=0.1 * needed, max_iter=left)
        passes += point.n_iter
        linear = solve in (_ext.lp_dense, _ext.lp_csr)
        b = point.b + (point.W @ mean if linear and intercept else 0.0)
        out = solve(  # the certificate
            *stages[-1][0], y, cap, k, p / (p - 1), mean if intercept else None, intercept, b,
            *_sparse_duals(point.alpha, cap), tol, 0, False, False, seed,
        )  # fmt: skip
        if verbose:
            print_line(
                f"p={p:g}: {point.n_iter} interior-point steps, objective {out['primal']:.6g}, "
                f"relative gap {relative_gap(out['primal'], out['gap']):.1e}"
            )
        bound = max(-np.inf if rough else bound, out["primal"] - out["gap"])
        if point.objective < out["primal"]:
            out |= {"W": point.W, "b": point.b, "primal": point.objective}
            interior = True
        if rough or out["primal"] <= best["primal"]:
            best = out
        else:
            interior = False
    gap = max(best["primal"] - bound, 0.0) / max(best["primal"], np.finfo(float).tiny)
    b = best["b"] - best["b"].mean()  # a constant added to all intercepts changes nothing: the one with sum zero
    start, rivals, alpha = best["duals"]
    found = DualState(best["W"], b, start, rivals, alpha, best["multipliers"], cap, best["primal"], gap, passes)
    return found, interior


def _sparse_duals(alpha: np.ndarray, cap: np.ndarray) -> tuple[np.ndarray, ...]:
    """CSR arrays of positive dual numbers, within their bounds to the last digit."""
    alpha = alpha * np.minimum(1, cap / np.maximum(alpha.sum(axis=1) * (1 + 1e-15), 1e-300))[:, None]
    rows, rivals = np.nonzero(alpha)
    start = np.r_[0, np.cumsum(np.bincount(rows, minlength=len(cap)))]
    return start.astype(np.int64), rivals.astype(np.int32), alpha[rows, rivals]
