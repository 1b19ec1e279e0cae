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

The dual is solved by `box_dual`.

Least squares: the stationarity condition is that of ridge regression on the labels times one number (m1 the mean
margin of that regression): strength 1/kappa, kappa = C + l2/S, S = sum s, factor (C + l1/S)/(kappa - l2 m1/S).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from skmargin._core import _ext

from ..kernels.gram import row_blocks
from .box_dual import Box, Solve, maximise
from .lapack import cholesky, cholesky_solve, cholesky_solve_rows
from .linear_system import Solution, dense
from .weighted_rows import WeightedRows

FEW_FEATURES = 2000
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
    """Coefficients (of rows or features), objective, relative duality gap and passes.

    ``dual`` is ``g = l1 p + u``, with rows that have no box ``l1 p + u - l2 p (t - mu)``, where the next solve can
    start (`LDMState.start`).
    """

    coef: np.ndarray
    objective: float
    gap: float
    n_iter: int
    dual: np.ndarray
    problem: LDMProblem
    mu: float = 1.0

    def start(self, problem: LDMProblem) -> np.ndarray:
        """The dual point for another C, other weights or other lambdas: u grows with its bounds."""
        u = self.dual - self.problem.l1 * self.problem.p
        return problem.l1 * problem.p + u * (problem.C * problem.weight / (self.problem.C * self.problem.weight))


def modified_kernel(K: np.ndarray, problem: LDMProblem) -> np.ndarray:
    """``(K^-1 + l2 N)^-1`` without inverting K."""
    if problem.l2 == 0:
        return K
    p = problem.p
    root = np.sqrt(p)
    Kt = K * root
    Kt *= root[:, None]
    A = problem.l2 * Kt
    A[np.diag_indices_from(A)] += 1
    try:
        cholesky(A)
    except linalg.LinAlgError as error:
        raise ValueError(f"The kernel matrix is not positive semi-definite ({error}).") from error
    cholesky_solve_rows(A, Kt)
    del A
    Kt /= root
    Kt /= root[:, None]
    g = p * problem.y
    v = 0.5 * (Kt @ g + g @ Kt)
    v *= np.sqrt(problem.l2 / (1 - problem.l2 * (g @ v)))
    for rows in row_blocks(*Kt.shape):  # in place: symmetric to the last digit, and the correction
        rest = slice(rows.start, None)
        block = 0.5 * (Kt[rows, rest] + Kt[rest, rows].T) + np.outer(v[rows], v[rest])
        Kt[rows, rest] = block
        Kt[rest, rows] = block.T
    return Kt


def solve_kernel(
    K: np.ndarray, problem: LDMProblem, tol: float, max_iter: int, seed: int, state: LDMState | None = None
) -> LDMState:
    """Hinge LDM on a kernel matrix; ``f = K coef``."""
    p, y = problem.p, problem.y
    Kt = np.ascontiguousarray(modified_kernel(K, problem))
    box = Box(
        y,
        problem.C * problem.weight,
        problem.l1 * p,
        curvature=Kt.diagonal(),
        pass_cost=Kt.size,
        product=lambda c: Kt @ c,
        shifted=lambda theta: _shifted_kernel(Kt, theta),
        patience=len(y),
        block=lambda free: Kt[np.ix_(free, free)],
        ascend=lambda *task: _ext.gram_box(Kt, *task),
    )
    start = box.lin if state is None else box.lin + np.clip(state.start(problem) - box.lin, 0, box.cap)
    g, primal, gap, passes = maximise(box, tol, max_iter, seed, start)
    f = Kt @ (y * g)
    coef = y * g - problem.l2 * (p * f - p * y * ((p * y) @ f))
    return LDMState(coef, primal, gap, passes, g, problem)


def solve_features(
    X: Any, problem: LDMProblem, tol: float, max_iter: int, seed: int, state: LDMState | None = None
) -> LDMState:
    """Hinge LDM on features, dense or sparse; ``f = X coef``."""
    too_large = sparse.issparse(X) and X.shape[0] * X.shape[1] > DENSE_NUMBERS
    if too_large or X.shape[1] > FEW_FEATURES:
        return _solve_rows(X, problem, tol, max_iter, seed, state)
    p, y = problem.p, problem.y
    weighted = WeightedRows(X, np.arange(len(y)), np.sqrt(p))
    G, h = weighted.inner((np.sqrt(p) * y)[None])
    G = problem.l2 * (G - np.outer(h, h))
    G[np.diag_indices_from(G)] += 1
    L = linalg.cholesky(G, lower=True, overwrite_a=True, check_finite=False)
    rows = np.empty(X.shape)
    for part in row_blocks(*X.shape):
        rows[part] = linalg.solve_triangular(L, dense(X[part]).T, lower=True, check_finite=False).T
    box = Box(
        y,
        problem.C * problem.weight,
        problem.l1 * p,
        curvature=np.einsum("ij,ij->i", rows, rows),
        pass_cost=rows.size,
        product=lambda c: rows @ (c @ rows),
        shifted=lambda theta: _shifted_rows(rows, theta),
        patience=6 * rows.shape[1],
        block=lambda free: rows[free] @ rows[free].T,
        ascend=lambda *task: _ext.dense_box(rows, *task),
    )
    start = box.lin if state is None else box.lin + np.clip(state.start(problem) - box.lin, 0, box.cap)
    g, primal, gap, passes = maximise(box, tol, max_iter, seed, start)
    coef = linalg.solve_triangular(L.T, (y * g) @ rows, check_finite=False)
    return LDMState(coef, primal, gap, passes, g, problem)


def _shifted_kernel(Kt: np.ndarray, theta: np.ndarray) -> Solve:
    M = Kt.copy()
    M[np.diag_indices_from(M)] += theta
    cholesky(M)
    return lambda x: cholesky_solve(M, x)


def _shifted_rows(rows: np.ndarray, theta: np.ndarray) -> Solve:
    """``(rows rows' + diag(theta))^{-1}`` on the side of the features (Woodbury)."""
    scaled = rows / theta[:, None]
    M = scaled.T @ rows
    M[np.diag_indices_from(M)] += 1
    cholesky(M)
    return lambda x: x / theta - scaled @ cholesky_solve(M, scaled.T @ x)


def _solve_rows(X: Any, problem: LDMProblem, tol: float, max_iter: int, seed: int, state: LDMState | None) -> LDMState:
    p, y, l1, l2 = problem.p, problem.y, problem.l1, problem.l2
    cap, kappa = problem.C * problem.weight, l2 * p
    arrays = (X.indptr, X.indices, X.data, X.shape[1]) if sparse.issparse(X) else (np.ascontiguousarray(X),)
    ascend = _ext.csr_box if sparse.issparse(X) else _ext.dense_box
    toward = np.asarray(X.T @ (p * y))
    mu, g, passes, inner_tol, before = 1.0, l1 * p, 0, 0.3 * tol, (np.nan, np.nan)
    if state is not None:
        mu, g = state.mu, state.start(problem)
        g = g if l2 > 0 else np.clip(g, l1 * p, l1 * p + cap)  # without the variance u is all there is
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
            return LDMState(w, primal, gap, passes, g, problem, mu)
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
