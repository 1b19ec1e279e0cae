"""The machine of Lei et al. (2015), linear or with a kernel, by block ascent on the dual.

    primal  min_{W,b}  1/2 ||W||_{2,p}^2 + sum_i cap_i max(0, 1 - f_{i,y_i} + max_{l != y_i} f_il),   f_i = W x_i + b
            ||W||_{2,p} = (sum_l ||w_l||^p)^(1/p),   1/p + 1/q = 1
    dual    max_alpha  sum_il alpha_il - 1/2 ||V||_{2,q}^2,   alpha_il >= 0,   sum_l alpha_il <= cap_i
            V = sum_i x_i c_i',   c_{i,y_i} = sum_l alpha_il,  c_il = -alpha_il;   with an intercept also sum_i c_i = 0
    link    w_l = (||v_l|| / ||V||_{2,q})^(q-2) v_l

given    X (dense or CSR) or a kernel matrix, classes 0..k-1, the weight ``cap`` = C s_i of each sample, p, and perhaps
         the state of an earlier solve, for the same rows: its duals are feasible for every p and, rescaled, for every C
returned W, b, the duals, P and the certified duality gap P(link(alpha)) - D(alpha)

The steps are in ``_core/lp_blocks.hpp``.  The paper alternates between class weights (its equation 14) and a weighted
machine of Crammer and Singer, which is valid for p <= 2 only; this ascent is valid for every p > 1.  p = 2 is the
machine of Crammer and Singer itself, and its solver is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skmargin._core import _ext

from .dual_blocks import ROUNDING, TINY, DualState, _arrays, _relative, _stages, _suitable_rows, solve_linear

Stage = tuple[tuple[Any, ...], float, bool]  # arrays of the rows, gap to reach, whether it may give up


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
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel() if fit_intercept else None
    solve = _ext.lp_csr if sparse.issparse(X) else _ext.lp_dense
    stages = [(_arrays(X, dtype), goal, may_stall) for dtype, goal, may_stall in _stages(X, n_classes, tol)]
    return DualState(*_solve(solve, stages, y, cap, n_classes, p, mean, max_iter, seed, state, verbose))


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
    stages: list[Stage] = [((K,), tol, False)]
    if K.size * n_classes <= TINY:
        stages.append(((K,), min(tol, ROUNDING), True))
    return LpKernelState(*_solve(_ext.lp_gram, stages, y, cap, n_classes, p, mean, max_iter, seed, state, verbose))


def _solve(
    solve: Any,
    stages: list[Stage],
    y: np.ndarray,
    cap: np.ndarray,
    k: int,
    p: float,
    mean: np.ndarray | None,
    max_iter: int,
    seed: int,
    state: DualState | None,
    verbose: int,
) -> tuple[Any, ...]:
    duals = np.zeros(len(y) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    multipliers = np.zeros(k)
    if state is not None:
        state = state.rescaled(cap)
        duals, multipliers = (state.start, state.rivals, state.alpha), state.multipliers
    passes, best, bound = 0, None, -np.inf  # the bound of one stage holds for all of them
    for arrays, goal, may_stall in stages:
        out = solve(
            *arrays, y, cap, k, p / (p - 1), mean, multipliers, *duals,
            goal, max(1, max_iter - passes), may_stall, seed + passes,
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
        if passes >= max_iter:
            break
    assert best is not None
    gap = max(best["primal"] - bound, 0.0) / max(best["primal"], np.finfo(float).tiny)
    b = best["b"] - best["b"].mean()  # a constant added to all intercepts changes nothing: the one with sum zero
    return best["W"], b, *best["duals"], best["multipliers"], cap, best["primal"], gap, passes
