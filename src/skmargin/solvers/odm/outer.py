"""The optimal margin distribution machine by majorising and minimising.

Problem (gamma_i = f_{i,y_i} - max_{l != y_i} f_il is the margin, cap_i = C s_i / (sum s (1 - theta)^2); the intercept
is not penalised, or absent)::

    min  T = 1/2 ||W||^2 + sum_i cap_i [ (1 - theta - gamma_i)_+^2 + mu (gamma_i - 1 - theta)_+^2 ]

The second part is not convex.  With a fixed rival r_i it is, and larger or equal::

    Q = 1/2 ||W||^2 + sum_i cap_i [ (1 - theta - gamma_i)_+^2 + mu (f_{i,y_i} - f_{i,r_i} - 1 - theta)_+^2 ]  >=  T,

with equality where r_i is the closest rival.  So::

    W = argmin of T with mu = 0 (convex)
    repeat  r_i = closest rival under W
            W = argmin of Q from the last duals, until Q - D <= max(rho (T_old - Q), floor tol Q)   (OdmTuning)
            stop if T_old - D <= tol T_old      (the old W minimises its own majoriser)

T never rises: T(W) <= Q(W) <= T_old by the inner stopping test; a step that rounding makes worse is not taken.  The
best end of all methods is kept; zero, where every rival ties and T = Q, replaces an end with a larger objective.
Duals (_core/losses/odm.hpp): alpha_il >= 0, but of any sign for the fixed rival.  Where a rival is replaced its
negative dual goes over to the new one, which is feasible.

This file is the outer loop; inner_linear.py and inner_kernel.py solve the inner problems, by block ascent and, where
that is slow and the parameters are few, by Newton steps.

given    rows or kernel rows, classes 0..k-1, cap, mu, theta, perhaps the state of an earlier solve
returned the scores' parameters, T after each outer step, the certified gap of the last inner problem

Zhang & Zhou, Multi-class optimal margin distribution machine, ICML 2017; they freeze the score of the rival instead of
its index, which does not majorise: the objective may rise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..._core import _ext
from ..._runtime.progress import progress_range, report_gap
from ..dual.state import GAP_FLOOR, bound_below, relative_gap
from ..tuning import DEFAULT, Tuning

NO_RIVALS = np.zeros(0, np.int32)  # with mu = 0


@dataclass(frozen=True)
class OdmProblem:
    """The problem without its rows: labels, weights of the losses, parameters."""

    y: np.ndarray
    cap: np.ndarray
    n_classes: int
    mu: float
    theta: float
    fit_intercept: bool = True

    def core(self, mu: float, rivals: np.ndarray | None = None) -> _ext.Problem:
        """What the core knows of it, with this weight of the upper part and these fixed rivals there."""
        return _ext.Problem(
            self.y, self.cap, self.n_classes, "odm", mu=mu, theta=self.theta, fixed_rivals=rivals
        )  # fmt: skip

    def rivals(self, F: np.ndarray) -> np.ndarray:
        """The closest rival of each sample under the scores ``F`` (n, k)."""
        return closest_rivals(F, self.y)

    def intercepts(self, b: np.ndarray) -> np.ndarray:
        """Intercepts of a start, or zeros where the problem has none."""
        return b if self.fit_intercept else np.zeros_like(b)

    @property
    def zero_loss(self) -> float:
        """Sum of the losses where all scores are zero."""
        return float(self.cap.sum()) * (1 - self.theta) ** 2

    def loss(self, F: np.ndarray, closest: np.ndarray | None = None) -> float:
        """Sum of the losses under the scores ``F`` (n, k); ``closest``: their `rivals`, if known."""
        i = np.arange(len(F))
        margin = F[i, self.y].astype(np.float64) - F[i, self.rivals(F) if closest is None else closest]
        low, high = np.maximum(0, 1 - self.theta - margin), np.maximum(0, margin - 1 - self.theta)
        with np.errstate(over="ignore"):  # infinite: another point is better
            return float(self.cap @ (low * low + self.mu * high * high))


def closest_rivals(F: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The rival with the largest score of each sample, for the scores ``F`` (n, k)."""
    F = F.copy()
    F[np.arange(len(F)), y] = -np.inf
    return F.argmax(axis=1).astype(np.int32)


@dataclass(frozen=True)
class Iterate:
    """A point, its true objective, and the closest rival of each sample there."""

    objective: float
    point: Any
    closest: np.ndarray


class InnerSolver(Protocol):
    """Solver of the inner problems, which remembers its duals."""

    half_norm: float  # 1/2 ||W||^2
    scores: np.ndarray  # (n, k)
    objective: float
    gap: float  # P - D, certified
    n_iter: int

    def solve(
        self, mu: float, rivals: np.ndarray, tol: float, majorizer_share: float, majorizer_value: float, max_iter: int
    ) -> bool:
        """Minimise Q until its gap is at most ``max(tol Q, majorizer_share (majorizer_value - Q))``; whether it is."""

    def next_method(self) -> InnerSolver | None:
        """The solver that continues after a solve that did not reach its gap; None: there is none."""

    def point(self) -> Any:
        """Where the last solve ended."""

    def zero(self) -> Any:
        """The point whose scores are all zero."""


@dataclass(frozen=True)
class Limits:
    """When to stop, how often to start, the seed, the constants that steer speed."""

    tol: float
    max_iter: int
    max_outer: int
    n_init: int
    seed: int
    tuning: Tuning = DEFAULT


@dataclass(frozen=True)
class OdmSolution:
    """Result of `majorize_minimize`."""

    point: Any
    objectives: np.ndarray  # T at the start and after each outer step
    gap: float | None  # relative gap of the last inner problem; None without a dual
    excess: float  # what the last outer step could have gained at most, relative to T
    n_iter: int
    converged: bool
    stuck: bool = False  # stopped without progress, before any limit

    @property
    def objective(self) -> float:
        """The objective T at the end."""
        return float(self.objectives[-1])


class MajorizeMinimize:
    """The outer loop, with the best point so far."""

    def __init__(self, problem: OdmProblem, inner: InnerSolver, limits: Limits) -> None:
        self.problem, self.inner, self.max_iter, self.tuning = problem, inner, limits.max_iter, limits.tuning
        self.objectives: list[float] = []
        self.gap = self.excess = np.inf
        self.iterate: Iterate | None = None
        self.bound = 0.0  # D of the last inner problem
        self.out_of_steps = False

    def start(self, tol: float, warm: bool) -> None:
        """The solution with mu = 0, unless there is a point already."""
        iterate = self._current() if warm else self.iterate
        if self.problem.mu == 0 or iterate is None:
            iterate, _ = self._solve(0.0, NO_RIVALS, tol, 0.0, 0.0, iterate)
        if self.problem.mu == 0:
            self.excess = self.gap
            self.objectives.clear()
        self._accept(iterate)

    def _current(self) -> Iterate:
        inner, closest = self.inner, self.problem.rivals(self.inner.scores)
        return Iterate(inner.half_norm + self.problem.loss(inner.scores, closest), inner.point(), closest)

    def _solve(
        self,
        mu: float,
        rivals: np.ndarray,
        tol: float,
        majorizer_share: float,
        majorizer_value: float,
        best: Iterate | None = None,
    ) -> tuple[Iterate, bool]:
        """Solve an inner problem; a method that does not reach the gap hands over to the next.

        Returns the best of their ends and ``best``, a known point, and whether the gap was reached.
        """
        Q, self.bound = np.inf if best is None else best.objective, 0.0
        with progress_range(0, 0):  # progress is reported by the outer steps
            while True:
                reached = self.inner.solve(mu, rivals, tol, majorizer_share, majorizer_value, self.max_iter)
                Q = min(Q, self.inner.objective)
                self.bound = max(self.bound, bound_below(self.inner.objective, self.inner.gap))
                iterate = self._current()
                if best is None or iterate.objective <= best.objective or np.isnan(best.objective):
                    best = iterate
                method = None if reached or self.inner.n_iter >= self.max_iter else self.inner.next_method()
                if method is None:
                    break
                self.inner = method
        if reached:  # the bound of an abandoned method may be mostly rounding
            self.bound = bound_below(self.inner.objective, self.inner.gap)
        self.gap = self._to_bound(Q)
        return best, reached

    def _to_bound(self, objective: float) -> float:
        """The relative gap to the bound; a bound above the objective shows the size of its rounding."""
        return relative_gap(objective, abs(objective - self.bound))

    def _accept(self, iterate: Iterate) -> None:
        self.objectives.append(iterate.objective)
        self.iterate = iterate

    def run(self, tol: float, max_outer: int, rivals: np.ndarray | None = None) -> None:
        """Outer steps until none can gain more than the share ``tol`` of T; ``rivals`` are those of the first step."""
        mu, floor, share = self.problem.mu, self.tuning.common.inner_goal * tol, self.tuning.odm.inner_gap
        if mu == 0:  # convex: `start` has solved it
            return
        for _ in range(max_outer):
            T = self.objectives[-1]
            if self.inner.n_iter >= self.max_iter or self.excess <= tol:
                return
            if rivals is not None:  # they do not majorise at the old point
                iterate, _ = self._solve(mu, rivals, self.tuning.common.start_tol, 0.0, 0.0)
                rivals = None
                self.objectives.clear()
                self._accept(iterate)
                continue
            assert self.iterate is not None
            iterate, reached = self._solve(mu, self.iterate.closest, floor, share, T, self.iterate)
            self.excess = self._to_bound(T)
            report_gap(self.excess, tol)
            if iterate is not self.iterate:
                self._accept(iterate)
            if iterate.objective >= T * (1 - GAP_FLOOR):  # rounding, or the inner problem was not solved well enough
                if not reached or floor <= GAP_FLOOR:
                    return
                floor *= 0.1
        self.out_of_steps = True

    def end(self, tol: float) -> OdmSolution:
        """What was reached."""
        assert self.iterate is not None
        zero = self.problem.zero_loss
        if zero < self.iterate.objective < np.inf:
            self.iterate, self.objectives[-1] = replace(self.iterate, objective=zero, point=self.inner.zero()), zero
            self.gap = self.excess = self._to_bound(zero)
        if self.iterate.objective > self.bound:  # its scores may be further off than those of the inner problem
            self.gap = max(self.gap, self._to_bound(self.iterate.objective))
        n_iter, converged = self.inner.n_iter, bool(self.excess <= tol)
        stuck = not (converged or self.out_of_steps or n_iter >= self.max_iter)
        return OdmSolution(
            self.iterate.point, np.array(self.objectives), self.gap, self.excess, n_iter, converged, stuck
        )


def majorize_minimize(
    problem: OdmProblem,
    inner: InnerSolver,
    limits: Limits,
    polish: bool = False,
    rivals: np.ndarray | None = None,
    warm: bool = False,
) -> OdmSolution:
    """Solve to ``tol``; ``polish`` then goes on to rounding, which costs next to nothing for tiny problems."""
    loop = MajorizeMinimize(problem, inner, limits)
    loop.start(limits.tol if problem.mu == 0 else max(limits.tol, limits.tuning.common.start_tol), warm)
    loop.run(limits.tol, limits.max_outer, rivals)
    end = loop.end(limits.tol)
    if not polish or not end.converged or end.n_iter >= limits.max_iter:
        return end
    if problem.mu == 0:
        loop.start(min(GAP_FLOOR, limits.tol), warm=False)
    else:
        loop.run(min(GAP_FLOOR, limits.tol), limits.max_outer)
    polished = loop.end(limits.tol)
    return polished if polished.converged else replace(end, n_iter=polished.n_iter)  # rounding made it worse


def best_of(
    problem: OdmProblem, limits: Limits, polish: bool, start: Any, make: Callable[[Any], InnerSolver]
) -> OdmSolution:
    """The best of ``n_init`` descents: the first from ``start`` or mu = 0, the others with random rivals."""
    rng = np.random.default_rng(limits.seed)
    best = None
    for run in range(limits.n_init if problem.mu > 0 else 1):
        rivals = None
        if run > 0:
            rivals = rng.integers(problem.n_classes - 1, size=len(problem.y), dtype=np.int32)
            rivals += rivals >= problem.y
        inner = make(start if run == 0 else None)
        with progress_range(run / limits.n_init, (run + 1) / limits.n_init):
            end = majorize_minimize(problem, inner, limits, polish, rivals, warm=run == 0 and start is not None)
        if best is None or end.objective < best.objective:
            best = end
    assert best is not None
    return best
