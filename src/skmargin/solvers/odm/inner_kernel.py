"""Inner problems of the kernel optimal margin distribution machine (outer.py), by two methods.

`KernelInner`   block ascent on a growing working set (dual/kernel.py)
`FactorInner`   the linear machine on the rows of a factor R of the kernel matrix, K = R R', by Newton steps: few rows
                or a kernel matrix of low rank, where block ascent is slow

Newton steps see centred rows of R, and class vectors w that need not come from their duals.  What is published has
coefficients c of the rows, f = K c + b: the duals, which are zero for many rows, where their gap is small enough; where
they nearly cancel (large C, K of low rank or far from zero) those of least norm with R'c = w.  Objective and gap are
computed from K c + b, and what its rounding may hide is part of the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from ..._core import _ext
from ...rows.kernel_rows import KernelRows
from ..dual.kernel import solve_kernel_dual
from ..dual.kernel_factor import factor
from ..dual.plan import can_factor, factor_cost, first_method_iterations, newton_step_flops
from ..dual.state import DualLists, KernelState, bound_below, coefficients
from ..primal.factor import pivoted
from ..tuning import Tuning
from .inner_linear import LinearPoint, NewtonInner
from .outer import Limits, OdmProblem, OdmSolution, best_of


@dataclass(frozen=True)
class KernelPoint:
    """Duals, intercepts and scores of the rows, for the weights ``cap``; coefficients that are not the duals."""

    state: KernelState
    y: np.ndarray
    cap: np.ndarray
    own_coef: np.ndarray | None = None

    @property
    def coef(self) -> np.ndarray:
        """Coefficients (n, k) of the rows."""
        return coefficients(self.state.alpha, self.y) if self.own_coef is None else self.own_coef

    def of(self, problem: OdmProblem) -> KernelPoint:
        """The point for this problem: without intercepts where it has none."""
        return replace(self, state=replace(self.state, b=problem.intercepts(self.state.b)))


class KernelInner:
    """Block ascent."""

    def __init__(self, rows: KernelRows, problem: OdmProblem, limits: Limits, start: KernelPoint | None = None) -> None:
        self.rows, self.problem, self.limits, self.n_iter = rows, problem, limits, 0
        tuning = limits.tuning
        factored = can_factor(rows.n, rows.cache_size, tuning)
        # Block steps left before the next method.
        self.budget = factor_cost(rows.n, tuning) if factored else np.inf
        self.R: np.ndarray | None = None
        self.state: KernelState | None = None
        self.ratio: Any = 1.0  # of the weights to those of the start
        if start is not None:
            self.ratio = (problem.cap / start.cap)[:, None]
            self._set(start.of(problem))

    def _set(self, point: KernelPoint) -> None:
        self.state, self._point = point.state, point
        self.scores, self.half_norm = scores_and_half_norm(point)

    def solve(
        self, mu: float, rivals: np.ndarray, tol: float, majorizer_share: float, majorizer_value: float, max_iter: int
    ) -> bool:
        """See `InnerSolver`."""
        problem, state, moved = self.problem, self.state, None
        if state is not None:  # negative duals belong to the fixed rivals
            old = self.ratio * state.alpha
            alpha = np.maximum(0, old)
            if len(rivals):
                alpha[np.arange(len(rivals)), rivals] += np.minimum(0, old).sum(axis=1)
                moved = np.flatnonzero((alpha != old).any(axis=1))
            state, self.ratio = replace(state, alpha=alpha), 1.0
        last = max_iter if self.budget == np.inf else first_method_iterations(max_iter)
        state = solve_kernel_dual(
            self.rows, problem.y, problem.cap, problem.n_classes, "odm", mu=mu, theta=problem.theta, rivals=rivals,
            fit_intercept=problem.fit_intercept, tol=tol,
            majorizer_share=majorizer_share, majorizer_value=majorizer_value,
            max_iter=max(1, last - self.n_iter), random_state=self.limits.seed + self.n_iter, state=state,
            stale_samples=moved, max_updates=self.budget, tuning=self.limits.tuning,
        )  # fmt: skip
        self.n_iter += state.n_iter
        self.budget -= state.n_updates
        self.objective, self.gap = state.objective, state.gap * state.objective
        self._set(KernelPoint(state, problem.y, problem.cap))
        return self.gap <= max(tol * self.objective, majorizer_share * (majorizer_value - self.objective))

    def next_method(self) -> KernelInner | FactorInner | None:
        """First more block ascent, up to the cost of Newton steps on the factor, then these.

        None if there is no factor that is small enough for Newton steps.
        """
        if self.budget == np.inf:
            return None
        if self.R is None:
            k, tuning = self.problem.n_classes, self.limits.tuning
            self.R = small_factor(self.rows, k, tuning)
            self.budget = np.inf if self.R is None else newton_updates(self.R, k, tuning)
            return self
        method = FactorInner(self.rows, self.R, self.problem, self.limits, self._point)
        method.n_iter = self.n_iter
        return method

    def point(self) -> KernelPoint:
        """Where the last solve ended."""
        return self._point

    def zero(self) -> KernelPoint:
        """See `InnerSolver`."""
        return kernel_zero(self.problem)


class FactorInner:
    """Newton steps on the rows of a factor."""

    def __init__(
        self, rows: KernelRows, R: np.ndarray, problem: OdmProblem, limits: Limits, start: KernelPoint
    ) -> None:
        duals, b = DualLists.of_table(start.state.alpha), start.state.b
        point = LinearPoint(start.coef.T @ R, b, duals, b, start.y, start.cap)
        self.newton = NewtonInner(R, problem, limits.seed, point)
        self.rows, self.problem, self.n_iter = rows, problem, 0
        self.objective = self.gap = np.inf
        self._set(start.of(problem))

    def _set(self, point: KernelPoint) -> None:
        self._point = point
        self.scores, self.half_norm = scores_and_half_norm(point)

    def solve(
        self,
        mu: float,
        rivals: np.ndarray,
        tol: float,
        majorizer_share: float,
        majorizer_value: float,
        max_iter: int,
    ) -> bool:
        """See `InnerSolver`."""
        newton = self.newton

        def steps(max_iter: int, from_duals: bool) -> float:
            """Newton steps; the lower bound that they give."""
            newton.from_duals, newton.n_iter = from_duals, self.n_iter
            newton.solve(mu, rivals, tol, majorizer_share, majorizer_value, max_iter)
            self.n_iter = newton.n_iter
            return bound_below(newton.objective, newton.gap)

        def reached() -> bool:
            return self.gap <= max(tol * self.objective, majorizer_share * (majorizer_value - self.objective))

        bound = steps(max_iter, from_duals=False)
        W, scores, objective = newton.W, newton.scores, newton.objective
        if self.n_iter < max_iter:
            bound = max(bound, steps(self.n_iter + first_method_iterations(max_iter - self.n_iter), from_duals=True))
        self._publish(None, newton.scores, newton.objective, mu, rivals, bound)
        if not reached():
            coef = linalg.lstsq(newton.X.T, W.T, check_finite=False)[0]
            of_duals = self._point, self.objective, self.gap
            self._publish(coef, scores, objective, mu, rivals, bound)
            if self.gap > of_duals[2]:
                point, self.objective, self.gap = of_duals
                self._set(point)
        return reached()

    def _publish(
        self,
        own_coef: np.ndarray | None,
        scores: np.ndarray,
        objective: float,
        mu: float,
        rivals: np.ndarray,
        bound: float,
    ) -> None:
        """Objective, gap and scores from the kernel matrix; ``scores`` and ``objective`` are those of the factor."""
        rows, problem, duals = self.rows, self.problem, self.newton.duals
        assert duals is not None
        state = KernelState(duals.table(problem.n_classes), self.newton.b, n_iter=self.n_iter)
        c = KernelPoint(state, problem.y, problem.cap, own_coef).coef
        support = np.flatnonzero(c.any(axis=1))
        F = np.zeros(state.alpha.shape[::-1])
        rows.keep(support)
        rows.add(F, support, c[support])
        # Where rows lie far from zero the rounding of sum c shifts all scores: b compensates that.
        b = (scores.T - F).mean(axis=1) if problem.fit_intercept else self.newton.b
        g, free, none = np.empty(rows.n), np.empty(rows.n, dtype=np.uint8), np.zeros(0)
        value = _ext.kernel_gaps(
            F, state.alpha, problem.core(mu, rivals), shift=b, gap_of=g, free=free, stretches=none, savings=none
        ).value
        self._set(KernelPoint(replace(state, b=b, scores=F), problem.y, problem.cap, own_coef))
        self.objective = value + self.half_norm
        # Two computations of one number differ by their rounding, which may hide as much of the gap.
        self.gap = max(0.0, self.objective - bound) + abs(self.objective - objective)

    def next_method(self) -> None:
        """None: what Newton steps do not reach is beyond rounding."""

    def point(self) -> KernelPoint:
        """Where the last solve ended."""
        return self._point

    def zero(self) -> KernelPoint:
        """See `InnerSolver`."""
        return kernel_zero(self.problem)


def small_factor(rows: KernelRows, k: int, tuning: Tuning) -> np.ndarray | None:
    """A factor of the kernel matrix, if there is one that is small enough for Newton steps."""
    most = tuning.common.most_factored // k
    some = np.linspace(0, rows.n - 1, min(rows.n, 2 * most)).astype(np.intp)
    part = rows.square(some)[:, : len(some)].astype(np.float64)  # its rank is a lower bound, and cheaper
    if pivoted(part, rows.dtype)[0].shape[1] > most:
        return None
    R = factor(rows)
    return None if R is None or R.shape[1] > most else R


def newton_updates(R: np.ndarray, k: int, tuning: Tuning) -> float:
    """Block steps, each of which changes n scores of k classes, that cost as much as Newton steps on these rows."""
    n, r = R.shape
    return tuning.linear.newton_steps * newton_step_flops(n, r, k, tuning) / (2 * n * k)


def scores_and_half_norm(point: KernelPoint) -> tuple[np.ndarray, float]:
    """Scores (n, k) with the intercepts, and half the squared norm of the class vectors.

    Where K c and b nearly cancel, c'K c = c'(K c + b) - (sum c)'b keeps the digits; sum c is all rounding there.
    """
    state, c = point.state, point.coef
    assert state.scores is not None
    scores = (state.scores.T + state.b).astype(np.float64)
    return scores, 0.5 * float(np.vdot(c, scores) - c.sum(axis=0, dtype=np.longdouble) @ state.b)


def kernel_zero(problem: OdmProblem) -> KernelPoint:
    """Duals, intercepts and scores that are all zero."""
    n, k = len(problem.y), problem.n_classes
    state = KernelState(np.zeros((n, k)), np.zeros(k), problem.zero_loss, 1.0, 0, np.zeros((k, n)))
    return KernelPoint(state, problem.y, problem.cap)


def solve_odm_kernel(
    rows: KernelRows, problem: OdmProblem, limits: Limits, polish: bool = False, start: KernelPoint | None = None
) -> OdmSolution:
    """The kernel machine; ``start`` belongs to the same rows and labels."""

    def make(first: KernelPoint | None) -> KernelInner | FactorInner:
        if (
            first is not None and first.own_coef is not None
        ):  # block ascent cannot start from coefficients that are not duals
            R = small_factor(rows, problem.n_classes, limits.tuning)
            if R is not None:
                return FactorInner(rows, R, problem, limits, first)
        return KernelInner(rows, problem, limits, first)

    return best_of(problem, limits, polish, start, make)
