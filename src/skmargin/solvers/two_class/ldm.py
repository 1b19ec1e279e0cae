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
``g = l1 p + u - l2 p (t - m_t)`` is dual feasible with ``D = sum u - 1/2 ||X'(y g)||^2 - l2/2 var(t)``.  Where few rows
of many features do not get there, K = X X' and w = X'a.

The dual is solved by `box`, whose certificate is that of the rounded Kt.  Published is that of the coefficients:
N = B'B, B = sqrt(p) (I - y (p y)'), and for every u in its box, every z with z'sqrt(p) y = 0 and every w, f = X w,

    z~ = sqrt(l2) B f,   w~ = X'(c - sqrt(l2) B'z)
    P(w) - D(u, z) = sum_i [C s_i (1 - d_i)_+ - u_i (1 - d_i)] + 1/2 ||z~ - z||^2 + 1/2 ||w - w~||^2

where no part is negative.  At the optimum z = z~ and w = w~; steps of refinement bring the last two parts near zero, so
that ``a = c - sqrt(l2) B'z`` keeps the digits that ``c - l2 N f`` loses to a large l2.  What rounding may do to P
and to each part is added (ldm_certificate.py); a machine that is worth less than zero gives way to zero, which is worth
C S.

Least squares: the stationarity condition is that of ridge regression on the labels times one number (m1 the mean
margin of that regression): strength 1/kappa, kappa = C + l2/S, S = sum s, factor (C + l1/S)/(kappa - l2 m1/S).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from scipy import linalg, sparse

from ..._core import _ext
from ..._types import Rows
from ...rows.arrays import core_rows
from ...rows.gram import inner_products, refuse_indefinite, row_blocks
from ..certificate import NEGLIGIBLE
from ..tuning import DEFAULT, Tuning
from .box import EXACT, Box, Solve, maximise, polish
from .lapack import cholesky, cholesky_solve, cholesky_solve_rows, is_indefinite
from .ldm_certificate import (
    LdmPoint,
    LDMProblem,
    Rounding,
    gap_of_rows,
    kernel_scores,
    linear_rounding,
    linear_scores,
    row_lengths,
)
from .ridge_spectrum import RidgeSolution, dense
from .row_sources import products
from .weighted_rows import WeightedRows

REFINEMENTS = 5  # a limit that is not met: one is usual


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


def _published(
    problem: LDMProblem, coef: np.ndarray, certificate: tuple[float, float, float], n_iter: int, g: np.ndarray
) -> LDMState:
    """The machine with this certificate, or zero, if that has a lower objective."""
    objective, gap, size = certificate
    zero = problem.C * float(problem.weight.sum())
    if objective > zero:
        coef, objective, gap, size = np.zeros_like(coef), zero, gap - (objective - zero), zero
    return LDMState(coef, objective, max(0.0, gap) / size, n_iter, g, problem)


def check_definite(K: np.ndarray, rounding: float) -> None:
    """Refuse a kernel matrix with an eigenvalue below ``-rounding`` times the largest one."""
    if is_indefinite(K.copy(), rounding):  # a small part of the work of a fit; all eigenvalues would double it
        w = linalg.eigvalsh(K, check_finite=False)
        refuse_indefinite(w[0], w[-1], rounding)


def _spread_factor(scaled: np.ndarray, l2: float) -> np.ndarray:
    """Cholesky factor of ``I + l2 sqrt(p) K sqrt(p)``, given the product."""
    A = l2 * scaled
    A[np.diag_indices_from(A)] += 1
    cholesky(A)
    return A


def _scaled(K: np.ndarray, root: np.ndarray) -> np.ndarray:
    scaled = K * root
    scaled *= root[:, None]
    return scaled


def modified_kernel(K: np.ndarray, problem: LDMProblem) -> np.ndarray:
    """``(K^-1 + l2 N)^-1`` without inverting K."""
    if problem.l2 == 0:
        return K
    p = problem.p
    root = np.sqrt(p)
    Kt = _scaled(K, root)
    A = _spread_factor(Kt, problem.l2)
    cholesky_solve_rows(A, Kt)
    axis = root * problem.y
    left = float(axis @ cholesky_solve(A, axis))  # 1 - l2 g'v, of which a large l2 would leave no digit
    del A
    Kt /= root
    Kt /= root[:, None]
    g = p * problem.y
    v = 0.5 * (Kt @ g + g @ Kt)
    v *= np.sqrt(problem.l2 / left)
    for rows in row_blocks(*Kt.shape):  # in place: symmetric to the last digit, and the correction
        rest = slice(rows.start, None)
        block = 0.5 * (Kt[rows, rest] + Kt[rest, rows].T) + np.outer(v[rows], v[rest])
        Kt[rows, rest] = block
        Kt[rest, rows] = block.T
    return Kt


def solve_kernel_ldm(
    K: np.ndarray,
    problem: LDMProblem,
    tol: float,
    max_iter: int,
    seed: int,
    state: LDMState | None = None,
    tuning: Tuning = DEFAULT,
) -> LDMState:
    """Hinge LDM on a kernel matrix; ``f = K coef``."""
    exact = NEGLIGIBLE * tol / (1 + problem.C)

    def scores(a: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, Rounding]:
        return kernel_scores(K, a, terms, exact)

    try:
        return _solve_gram(K, scores, problem, tol, max_iter, seed, state, tuning)
    except linalg.LinAlgError as error:
        raise ValueError(
            f"lambda2={problem.l2:.3g} is too large for this kernel matrix: its rounding outweighs the penalty."
        ) from error


def _solve_gram(
    K: np.ndarray,
    scores: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, float, Rounding]],
    problem: LDMProblem,
    tol: float,
    max_iter: int,
    seed: int,
    state: LDMState | None,
    tuning: Tuning,
) -> LDMState:
    """Solve on K; ``scores`` gives the coefficients to publish, their scores and ``||w||^2``, and the rounding.

    It is given the coefficients of the rows, and the sizes of what they are sums of.
    """
    y = problem.y
    Kt = np.ascontiguousarray(modified_kernel(K, problem))
    box = Box(
        y,
        problem.C * problem.weight,
        problem.l1 * problem.p,
        curvature=Kt.diagonal(),
        pass_cost=Kt.size,
        product=lambda c: Kt @ c,
        shifted=lambda theta: _shifted_kernel(Kt, theta),
        patience=len(y),
        block=lambda free: Kt[np.ix_(free, free)],
        ascend=partial(_ext.box_ascent, Kt),
        tuning=tuning,
    )
    solver = cache(lambda: _spread_solver(K, problem))

    def machine(c: np.ndarray, enough: float) -> LdmPoint:
        def at(z: np.ndarray) -> tuple[LdmPoint, np.ndarray]:
            gathered = problem.gathered(z)
            coef, f, norm, rounding = scores(c - gathered, np.abs(c) + np.abs(gathered))
            missing = problem.spread(f) - z
            return LdmPoint(coef, f, norm, 0.5 * float(missing @ missing), rounding), missing

        return _refined(at, solver, problem.spread(Kt @ c), enough)

    return _solved(box, machine, problem, tol, max_iter, seed, state)


def _spread_solver(K: np.ndarray, problem: LDMProblem) -> Solve:
    """Solves ``(I + l2 B K B') x = missing`` for vectors orthogonal to ``sqrt(p) y``."""
    root = np.sqrt(problem.p)
    A = _spread_factor(_scaled(K, root), problem.l2)
    axis = root * problem.y
    along = cholesky_solve(A, axis)

    def solve(missing: np.ndarray) -> np.ndarray:
        x = cholesky_solve(A, missing)
        return x - along * ((axis @ x) / (axis @ along))

    return solve


def _refined(
    at: Callable[[np.ndarray], tuple[LdmPoint, np.ndarray]],
    solver: Callable[[], Solve],
    x: np.ndarray,
    enough: float,
) -> LdmPoint:
    """Refine until ``rest`` is ``enough``, relative to the norm; ``at(x)`` gives a machine, and what x misses."""
    best, missing = at(x)
    if not best.rest > enough * best.norm:
        return best
    solve = solver()
    for _ in range(REFINEMENTS):
        x = x + solve(missing)
        before, (other, missing) = best.rest, at(x)
        if not other.rest < before:
            break
        best = other
        if best.rest <= enough * best.norm or best.rest > 0.5 * before:
            break
    return best


def _solved(
    box: Box,
    machine: Callable[[np.ndarray, float], LdmPoint],
    problem: LDMProblem,
    tol: float,
    max_iter: int,
    seed: int,
    state: LDMState | None,
) -> LDMState:
    """Solve the dual and publish ``machine(c, enough)``; where the rounding of Kt shows, go on with its own scores."""
    start = box.lin if state is None else box.lin + np.clip(state.start(problem) - box.lin, 0, box.cap)
    g, _, _, passes = maximise(box, tol, max_iter, seed, start)

    def published(g: np.ndarray, enough: float) -> LDMState:
        one = machine(problem.y * g, enough)
        return _published(problem, one.coef, problem.certificate(g, one), passes, g)

    states = [published(g, EXACT)]
    if states[0].gap > tol:
        states.append(published(g, 0.0))
        found = polish(replace(box, product=lambda c: machine(c, 0.0).f), g, min(one.gap for one in states))
        if found is not None:
            states.append(published(found[0], 0.0))
    return min(states, key=lambda one: (one.gap > tol, one.objective))


def solve_features_ldm(
    X: Rows,
    problem: LDMProblem,
    tol: float,
    max_iter: int,
    seed: int,
    state: LDMState | None = None,
    tuning: Tuning = DEFAULT,
) -> LDMState:
    """Hinge LDM on features, dense or sparse; ``f = X coef``."""
    n, d = X.shape
    many = not tuning.common.can_factor(d)
    if many or (sparse.issparse(X) and n * d > tuning.common.dense_numbers):
        return _solve_many(X, problem, tol, max_iter, seed, state, tuning)
    p, y = problem.p, problem.y
    L = _spread_triangle(X, problem)
    rows, lengths = np.empty(X.shape), row_lengths(X)
    for part in row_blocks(*X.shape):
        rows[part] = linalg.solve_triangular(L, dense(X[part]).T, lower=True, check_finite=False).T
    pairs = cache(lambda: rows @ rows.T)  # fewer rows than features: no detour over these
    box = Box(
        y,
        problem.C * problem.weight,
        problem.l1 * p,
        curvature=np.einsum("ij,ij->i", rows, rows),
        pass_cost=rows.size,
        product=lambda c: rows @ (c @ rows),
        shifted=lambda theta: _shifted_rows(rows, theta) if n >= d else _shifted_kernel(pairs(), theta),
        patience=int(tuning.common.passes_per_parameter * rows.shape[1]),
        block=lambda free: rows[free] @ rows[free].T,
        ascend=partial(_ext.box_ascent, _ext.Rows(rows)),
        tuning=tuning,
    )

    def solve(missing: np.ndarray) -> np.ndarray:
        return linalg.cho_solve((L, True), missing, check_finite=False)

    def machine(c: np.ndarray, enough: float) -> LdmPoint:
        def at(w: np.ndarray) -> tuple[LdmPoint, np.ndarray]:
            f, of_scores = linear_scores(X, lengths, w, problem.enough(tol))
            gathered = problem.gathered(problem.spread(f))
            missing = _back(X, c - gathered) - w
            dz = problem.spread(products(X, solve(missing)))  # z = z~ + dz is the best z for this w
            rest = missing - _back(X, problem.gathered(dz))
            terms = np.abs(c) + np.abs(gathered) + np.sqrt(problem.l2 * p) * np.abs(dz)
            rounding = linear_rounding(lengths, w, terms, of_scores)
            return LdmPoint(w, f, float(w @ w), 0.5 * float(rest @ rest + dz @ dz), rounding), missing

        return _refined(
            at,
            lambda: solve,
            linalg.solve_triangular(L.T, c @ rows, check_finite=False),
            enough,
        )

    return _solved(box, machine, problem, tol, max_iter, seed, state)


def _spread_triangle(X: Rows, problem: LDMProblem) -> np.ndarray:
    """Lower triangle L with ``L L' = G``, from the rows themselves where G is beyond double precision."""
    p, y = problem.p, problem.y
    G, h = WeightedRows(X, np.arange(len(y)), np.sqrt(p)).inner((np.sqrt(p) * y)[None])
    G = problem.l2 * (G - np.outer(h, h))
    G[np.diag_indices_from(G)] += 1
    try:
        return linalg.cholesky(G, lower=True, overwrite_a=True, check_finite=False)
    except linalg.LinAlgError:
        centred = np.sqrt(problem.l2 * p)[:, None] * (dense(X) - np.outer(y, h[0]))
        return linalg.qr(np.vstack([centred, np.eye(len(G))]), mode="economic", check_finite=False)[1].T


def _back(X: Rows, c: np.ndarray) -> np.ndarray:
    """``X'c``; of rows in another number type block by block, since they are converted."""
    if sparse.issparse(X) or X.dtype == c.dtype:
        return np.asarray(X.T @ c)
    return np.sum([c[rows] @ X[rows] for rows in row_blocks(*X.shape)], axis=0)


def _solve_products(
    X: Rows, problem: LDMProblem, tol: float, max_iter: int, seed: int, state: LDMState | None, tuning: Tuning
) -> LDMState:
    """Few rows: ``K = X X'``, whose rounding is that of the steps only, not of ``w = X'a``."""
    lengths = row_lengths(X)

    def scores(a: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, Rounding]:
        w = _back(X, a)
        f, of_scores = linear_scores(X, lengths, w, problem.enough(tol))
        return w, f, float(w @ w), linear_rounding(lengths, w, terms, of_scores)

    return _solve_gram(inner_products(X, None, np.float64), scores, problem, tol, max_iter, seed, state, tuning)


def _solve_many(
    X: Rows, problem: LDMProblem, tol: float, max_iter: int, seed: int, state: LDMState | None, tuning: Tuning
) -> LDMState:
    """Many features: passes over the rows; where these are few and the passes have cost as much, ``K = X X'``."""
    n, numbers = X.shape[0], X.nnz if sparse.issparse(X) else X.size
    patience = max(1, int((n * numbers + 2 * n**3) / (tuning.common.product_speed * max(1, numbers))))
    most = min(max_iter, patience) if n <= tuning.common.direct_rows else max_iter
    found = _solve_rows(X, problem, tol, most, seed, state, tuning.common.float32_tol)
    if found.gap <= tol or found.n_iter >= max_iter:
        return found
    try:
        other = _solve_products(X, problem, tol, max_iter - found.n_iter, seed, found, tuning)
    except linalg.LinAlgError:  # l2 K is beyond double precision
        return found
    return replace(other if other.gap < found.gap else found, n_iter=found.n_iter + other.n_iter)


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


def _solve_rows(
    X: Rows,
    problem: LDMProblem,
    tol: float,
    max_iter: int,
    seed: int,
    state: LDMState | None,
    float32_tol: float,
) -> LDMState:
    p, y, l1, l2 = problem.p, problem.y, problem.l1, problem.l2
    cap, kappa = problem.C * problem.weight, l2 * p
    rows, lengths = core_rows(X, X.dtype if tol >= float32_tol else np.float64), row_lengths(X)
    toward = _back(X, p * y)
    mu, g, passes, inner_tol, before = 1.0, l1 * p, 0, 0.3 * tol, (np.nan, np.nan)
    if state is not None:
        mu, g = state.mu, state.start(problem)
        g = g if l2 > 0 else np.clip(g, l1 * p, l1 * p + cap)  # without the variance u is all there is
    while True:
        lin = (l1 + l2 * mu) * p
        options = _ext.Options(tol=inner_tol, max_iter=max_iter - passes, seed=seed + passes)
        found = _ext.box_ascent(rows, y, cap, lin, kappa, g, options)
        g = found.g
        passes += found.n_iter
        w = _back(X, y * g)  # that of the ascent has the rounding of its steps, which the certificate must not have
        f, of_scores = linear_scores(X, lengths, w, problem.enough(tol))
        m = float(p @ (y * f))
        # the margins t at which the conjugate losses are attained, and the multipliers that belong to them
        t = np.maximum((lin - g) / kappa, np.minimum(1, (lin + cap - g) / kappa)) if l2 > 0 else np.ones(len(y))
        u = np.clip(g - lin + kappa * t, 0, cap)
        m_t = float(p @ t)
        rounding = linear_rounding(lengths, w, np.abs(g) + l2 * abs(mu - m_t) * p, of_scores)
        point = LdmPoint(w, f, float(w @ w), 0.0, rounding)
        certificate = gap_of_rows(problem, point, (u, t), w - l2 * (mu - m_t) * toward)
        relative = certificate[1] / certificate[2] if np.isfinite(certificate[1]) else np.inf
        if relative <= tol or passes >= max_iter or relative == np.inf:
            return replace(_published(problem, w, certificate, passes, g), mu=mu)
        slope = (m - before[1]) / (mu - before[0]) if mu != before[0] else np.nan
        slope = float(np.clip(slope, 0, 1 - 1e-6)) if np.isfinite(slope) else 0.0
        before = (mu, m)
        mu += (m - mu) / (1 - slope)
        if found.n_iter == 0:  # the rows are done for this mu, but not exactly enough
            inner_tol *= 0.1
            passes += 1


def least_squares_factor(solution: RidgeSolution, problem: LDMProblem) -> tuple[RidgeSolution, float]:
    """Least-squares LDM from ridge regression of strength ``1/kappa``: the scaled solution and the objective."""
    S = float(problem.weight.sum())
    kappa = problem.C + problem.l2 / S
    m1 = 1 - solution.residual / S
    factor = (problem.C + problem.l1 / S) / (kappa - problem.l2 * m1 / S)
    objective = 0.5 * problem.C * S - 0.5 * (problem.l1 + problem.C * S) * factor * m1
    return RidgeSolution(solution.coef * factor, solution.intercept * factor, solution.residual), float(objective.sum())
