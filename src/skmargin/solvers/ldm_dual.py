"""Large margin distribution machine (Zhang & Zhou 2014; Abe 2017, Eqs. 14-18), two classes, no free intercept.

With margins d_i = y_i f_i, weights s, p = s / sum(s)::

    hinge          min 1/2 ||w||^2 - l1 mean(d) + l2/2 var(d) + C sum_i s_i (1 - d_i)_+
    least squares  min 1/2 ||w||^2 - l1 mean(d) + l2/2 var(d) + C/2 sum_i s_i (1 - d_i)^2

var(d) = f'N f, N = diag(p) - (p y)(p y)'.  Eliminating the quadratic part leaves an L1-SVM in another kernel::

    Kt = (K^-1 + l2 N)^-1;   dual  max sum u - 1/2 c'Kt c,  c = y (u + l1 p),  0 <= u_i <= C s_i
    f = Kt c = K a,   a = c - l2 N f

Kernel: Kt by one Cholesky factorisation of I + l2 sqrt(p) K sqrt(p) and one correction of rank one.  Few features:
G = I + l2 X'N X = L L' and dense rows x~ = L^-1 x.  Many features, or sparse rows too many to be dense: the variance is
``min over mu of sum p_i (d_i - mu)^2``, so for a fixed mu every sample has its own loss; mu is found by secant steps
and the certificate is that of the whole problem: for any u in its box and any numbers t with mean m_t,
``g = l1 p + u - l2 p (t - m_t)`` is dual feasible with ``D = sum u - 1/2 ||X'(y g)||^2 - l2/2 var(t)``.

The ascent ends at the gap asked for; where few u are strictly inside their box, `_polish` then solves for them exactly
(margin 1) and moves between box and inside until nothing changes: the primal-dual active set method of Hintermueller,
Ito and Kunisch (2002).  Its point is taken only where its gap is smaller, and small problems go on until it succeeds.

Least squares: the stationarity condition is that of ridge regression on the labels times one number (m1 the mean
margin of that regression): strength 1/kappa, kappa = C + l2/S, S = sum s, factor (C + l1/S)/(kappa - l2 m1/S).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from skmargin._core import _ext

from .linear_system import Solution, dense

FEW_FEATURES = 2000
POLISH_ROWS, POLISH_STEPS = 1000, 20
EXTRA_WORK = 1 << 30  # multiply-adds of ascent beyond the tolerance asked for, where they lead to the exact optimum
EXACT = 1e-14
DENSE_NUMBERS = 1 << 25  # sparse rows are made dense up to so many numbers


@dataclass(frozen=True)
class LDMProblem:
    """Labels -1, +1, weights and parameters."""

    y: np.ndarray
    weight: np.ndarray
    C: float
    l1: float
    l2: float

    @property
    def p(self) -> np.ndarray:
        """Weights that sum to one."""
        return self.weight / self.weight.sum()


@dataclass(frozen=True)
class LDMState:
    """Coefficients (of rows or features), objective, relative duality gap and passes."""

    coef: np.ndarray
    objective: float
    gap: float
    n_iter: int


def modified_kernel(K: np.ndarray, problem: LDMProblem) -> np.ndarray:
    """``(K^-1 + l2 N)^-1`` without inverting K."""
    if problem.l2 == 0:
        return K
    p = problem.p
    root = np.sqrt(p)
    B = root[:, None] * K * root
    A = problem.l2 * B
    A[np.diag_indices_from(A)] += 1
    try:
        factor = linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError as error:
        raise ValueError(f"The kernel matrix is not positive semi-definite ({error}).") from error
    Kt = linalg.cho_solve(factor, B, overwrite_b=True, check_finite=False)
    Kt /= root
    Kt /= root[:, None]
    Kt = 0.5 * (Kt + Kt.T)
    g = p * problem.y
    v = Kt @ g
    Kt += np.outer(v * (problem.l2 / (1 - problem.l2 * (g @ v))), v)
    return Kt


def solve_kernel(K: np.ndarray, problem: LDMProblem, tol: float, max_iter: int, seed: int) -> LDMState:
    """Hinge LDM on a kernel matrix; ``f = K coef``."""
    p, y = problem.p, problem.y
    Kt = np.ascontiguousarray(modified_kernel(K, problem))
    box = _Box(
        y,
        problem.C * problem.weight,
        problem.l1 * p,
        curvature=Kt.diagonal(),
        pass_cost=Kt.size,
        product=lambda c: Kt @ c,
        block=lambda free: Kt[np.ix_(free, free)],
        ascend=lambda *task: _ext.gram_box(Kt, *task),
    )
    g, primal, gap, passes = _maximise(box, tol, max_iter, seed)
    f = Kt @ (y * g)
    return LDMState(y * g - problem.l2 * (p * f - p * y * ((p * y) @ f)), primal, gap, passes)


def solve_features(X: Any, problem: LDMProblem, tol: float, max_iter: int, seed: int) -> LDMState:
    """Hinge LDM on features, dense or sparse; ``f = X coef``."""
    too_large = sparse.issparse(X) and X.shape[0] * X.shape[1] > DENSE_NUMBERS
    if too_large or X.shape[1] > FEW_FEATURES:
        return _solve_rows(X, problem, tol, max_iter, seed)
    p, y = problem.p, problem.y
    X = np.asarray(dense(X), dtype=np.float64)
    h = X.T @ (p * y)
    G = problem.l2 * (X.T @ (p[:, None] * X) - np.outer(h, h))
    G[np.diag_indices_from(G)] += 1
    L = linalg.cholesky(G, lower=True, overwrite_a=True, check_finite=False)
    rows = np.ascontiguousarray(linalg.solve_triangular(L, X.T, lower=True, check_finite=False).T)
    box = _Box(
        y,
        problem.C * problem.weight,
        problem.l1 * p,
        curvature=np.einsum("ij,ij->i", rows, rows),
        pass_cost=rows.size,
        product=lambda c: rows @ (c @ rows),
        block=lambda free: rows[free] @ rows[free].T,
        ascend=lambda *task: _ext.dense_box(rows, *task),
    )
    g, primal, gap, passes = _maximise(box, tol, max_iter, seed)
    return LDMState(linalg.solve_triangular(L.T, (y * g) @ rows, check_finite=False), primal, gap, passes)


@dataclass(frozen=True)
class _Box:
    """The dual ``max sum u - 1/2 c'Kt c``, c = y g, g = lin + u, 0 <= u <= cap; ``product(c)`` is Kt c."""

    y: np.ndarray
    cap: np.ndarray
    lin: np.ndarray
    curvature: np.ndarray
    pass_cost: int
    product: Callable[[np.ndarray], np.ndarray]
    block: Callable[[np.ndarray], np.ndarray]
    ascend: Callable[..., Any]


def _maximise(box: _Box, tol: float, max_iter: int, seed: int) -> tuple[np.ndarray, float, float, int]:
    """Ascent to ``tol``, polishing, and more ascent in between while that is cheap: g, P, relative gap, passes."""
    zero = np.zeros(len(box.y))
    g, passes = box.lin, 0
    free_passes = EXTRA_WORK // box.pass_cost
    while True:
        g, _, primal, _, gap, used = box.ascend(box.y, box.cap, box.lin, zero, g, tol, max_iter - passes, seed + passes)
        passes += used
        better = _polish(box, g, gap)
        if better is not None:
            g, primal, gap = better
        if gap <= EXACT or passes >= max_iter or used > free_passes:
            return g, primal, gap, passes
        free_passes -= used + 1
        tol = 0.1 * min(tol, gap)


def _polish(box: _Box, g: np.ndarray, gap: float) -> tuple[np.ndarray, float, float] | None:
    """The exact optimum from a good start g: a better g, its objective and relative gap, or None."""
    best = None
    y, cap, lin = box.y, box.cap, box.lin
    A = np.maximum(box.curvature, 1e-300)
    u, d = g - lin, y * box.product(y * g)
    for _ in range(POLISH_STEPS):
        wish = u + (1 - d) / A
        free = np.flatnonzero((wish > 0) & (wish < cap))
        if len(free) > POLISH_ROWS:
            return best
        u = np.where(wish >= cap, cap, 0.0)
        if len(free):
            missing = 1 - y[free] * box.product(y * (lin + u))[free]
            H = y[free, None] * box.block(free) * y[free]
            u[free] = linalg.lstsq(H, missing, cond=1e-12, check_finite=False, lapack_driver="gelsy")[0]
        inside = np.clip(u, 0, cap)
        d_inside = y * box.product(y * (lin + inside))
        hinge = float(cap @ np.maximum(0, 1 - d_inside))
        quadratic, linear = 0.5 * float((lin + inside) @ d_inside), float(lin @ d_inside)
        # sums of the parts of the gap, each of them not negative
        parts = cap * np.maximum(0, 1 - d_inside) - inside * (1 - d_inside)
        new_gap = float(np.maximum(parts, 0).sum()) / max(quadratic + hinge + abs(linear), 1e-300)
        if new_gap < gap:
            best, gap = (lin + inside, quadratic + hinge - linear, new_gap), new_gap
        if new_gap <= EXACT:
            break
        d = d_inside if (inside == u).all() else y * box.product(y * (lin + u))
    return best


def _solve_rows(X: Any, problem: LDMProblem, tol: float, max_iter: int, seed: int) -> LDMState:
    p, y, l1, l2 = problem.p, problem.y, problem.l1, problem.l2
    cap, kappa = problem.C * problem.weight, l2 * p
    arrays = (X.indptr, X.indices, X.data, X.shape[1]) if sparse.issparse(X) else (np.ascontiguousarray(X),)
    ascend = _ext.csr_box if sparse.issparse(X) else _ext.dense_box
    toward = np.asarray(X.T @ (p * y))
    mu, g, passes, inner_tol, before = 1.0, l1 * p, 0, 0.3 * tol, (np.nan, np.nan)
    while True:
        lin = (l1 + l2 * mu) * p
        g, w, _, _, _, used = ascend(*arrays, y, cap, lin, kappa, g, inner_tol, max_iter - passes, seed + passes)
        passes += used
        d = y * (X @ w)
        m = float(p @ d)
        # the margins t at which the conjugate losses are attained, and the multipliers that belong to them
        t = np.maximum((lin - g) / kappa, np.minimum(1, (lin + cap - g) / kappa)) if l2 > 0 else np.ones(len(y))
        u = np.clip(g - lin + kappa * t, 0, cap)
        m_t = float(p @ t)
        feasible = w - l2 * (mu - m_t) * toward
        hinge = float(cap @ np.maximum(0, 1 - d))
        square = 0.5 * float(w @ w) + 0.5 * l2 * float(p @ (d - m) ** 2)
        primal = square + hinge - l1 * m
        dual = float(u.sum()) - 0.5 * float(feasible @ feasible) - 0.5 * l2 * float(p @ (t - m_t) ** 2)
        gap = max(0.0, primal - dual) / max(square + hinge + abs(l1 * m), 1e-300)
        if gap <= tol or passes >= max_iter:
            return LDMState(w, primal, gap, passes)
        slope = (m - before[1]) / (mu - before[0]) if mu != before[0] else np.nan
        slope = float(np.clip(slope, 0, 1 - 1e-6)) if np.isfinite(slope) else 0.0
        before = (mu, m)
        mu += (m - mu) / (1 - slope)
        if used == 0:  # the rows are done for this mu, but not exactly enough
            inner_tol *= 0.1
            passes += 1


def least_squares_factor(solution: Solution, problem: LDMProblem) -> tuple[Solution, float]:
    """Least-squares LDM from ridge regression of strength ``1/kappa``: the scaled solution and the objective."""
    S = float(problem.weight.sum())
    kappa = problem.C + problem.l2 / S
    m1 = 1 - solution.residual / S
    factor = (problem.C + problem.l1 / S) / (kappa - problem.l2 * m1 / S)
    objective = 0.5 * problem.C * S - 0.5 * (problem.l1 + problem.C * S) * factor * m1
    return Solution(solution.coef * factor, solution.intercept * factor, solution.residual), float(objective.sum())


def with_constant(X: Any) -> Any:
    """X with a column of ones: the penalised intercept."""
    if sparse.issparse(X):
        return sparse.hstack([X, np.ones((X.shape[0], 1), dtype=X.dtype)], format="csr")
    return np.hstack([dense(X), np.ones((X.shape[0], 1), dtype=X.dtype)])
