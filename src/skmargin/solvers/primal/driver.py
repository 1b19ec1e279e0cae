"""Driver of the smooth primal solvers: smoothing by continuation, single precision first, a certificate to stop.

The problem of `objective` may have kinks (hinge, distances to a power below 2).  It is replaced by a sequence
of smoother ones, each started from the last: a coarse one is solved in few iterations, and the level falls as soon as
the smoothing, and no longer the solver, is what keeps the certified gap of the *given* problem from closing.  The run
ends when that relative gap is below ``tol``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..._runtime.progress import print_line, report_gap
from .lbfgs import lbfgs
from .line_search import line_search
from .newton import explicit_is_cheap, newton_cg
from .objective import Certificate, Point, PrimalObjective
from .pairs import Pairs

Solver = Callable[[PrimalObjective, Point], Iterator[tuple[Point, np.ndarray]]]

SOLVERS: dict[str, Solver] = {"lbfgs": lbfgs, "newton-cg": newton_cg}
_LEVELS = (0.5, 0.2)  # first level of smoothing in units of the margin, and the factor from level to level
_LOWEST = 1e-12
_NARROW = 0.1  # level below which pairs far from their margin have no curvature
_FEW_PAIRS = 10_000  # pairs of sample and class with most of the curvature, up to which Newton's method pays
_WARM_LEVEL, _WARM_GAP = 1e-3, 0.3  # level at which a start with at most this gap is continued
_DOMINATED = 0.6  # share of the gap that the solver may still have when the level falls
_SINGLE_WORK = 1_000_000  # multiply-adds of a product with the rows above which single precision pays
_SINGLE_GAP = 1e-4  # single precision cannot certify much less
_FAR = (
    100  # distance of the rows from the origin, in units of their spread, beyond which single precision is too coarse
)
_EXPLICIT_MOST = 1500  # parameters up to which a whole Hessian can replace an L-BFGS that gets nowhere
_PATIENCE = 4  # checks without progress after which single precision has done its part


@dataclass
class PrimalState:
    """Where a run stands: parameters (W over b), what is certified there, and how it got there."""

    theta: np.ndarray
    certificate: Certificate
    level: float
    n_iter: int

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return self.certificate.relative


def choose_solver(objective: PrimalObjective, start: Point, level: float) -> str:
    """Newton where the whole Hessian is cheap or where few pairs have most of it, L-BFGS elsewhere."""
    narrow = level < _NARROW and Pairs(objective, start).n_strong() <= _FEW_PAIRS
    return "newton-cg" if narrow or explicit_is_cheap(objective) else "lbfgs"


def minimise(
    objective: PrimalObjective,
    theta: np.ndarray | None = None,
    *,
    solver: str = "auto",
    tol: float = 1e-3,
    max_iter: int = 2000,
    verbose: int = 0,
) -> PrimalState:
    """Minimise the objective until its relative duality gap is at most ``tol``.

    Parameters
    ----------
    objective : PrimalObjective
        The problem, kinks allowed.
    theta : ndarray of shape (d + 1, k) or (d, k), default=None
        Start; None starts from zero.  A given start skips coarse levels of smoothing.
    solver : {"auto", "lbfgs", "newton-cg"}, default="auto"
        Method.
    tol, max_iter, verbose
        Relative gap to reach, iterations allowed, whether to print the progress.

    Returns
    -------
    state : PrimalState
        The last point; ``state.gap > tol`` tells that ``max_iter`` was not enough.
    """
    run = _Run(solver, 0.1 / objective.row_size, max_iter, verbose)
    level = _LEVELS[0]
    if theta is None:
        theta = np.zeros(objective.shape)
    else:  # a good start would be lost on a coarse level
        stage = run.stage(objective, _WARM_LEVEL)
        start = _scaled(stage, stage.point(theta))
        theta, good = start.theta, stage.certificate(start, objective).relative < _WARM_GAP
        level = _WARM_LEVEL if good else _LEVELS[0] * _LEVELS[1] ** 2
    single = objective.rows.X.size * objective.n_classes >= _SINGLE_WORK
    near = float(np.linalg.norm(objective.centre)) <= _FAR * objective.row_size
    if single and near and not explicit_is_cheap(objective):
        state = run.descend(objective.astype(np.float32), theta.astype(np.float32), level, max(tol, _SINGLE_GAP), True)
        theta, level = state.theta.astype(np.float64), state.level
    return run.descend(objective, theta, level, tol, False)


def _scaled(objective: PrimalObjective, point: Point) -> Point:
    """A point with a smaller value among the multiples of this one: another strength or power asks for another size."""
    slope = objective.slope(point, point.theta, point.F)
    D = point.theta if slope < 0 else -point.theta
    return (line_search(objective, point, D, -abs(slope)) if slope else None) or point


@dataclass
class _Run:
    solver: str
    unit: float
    max_iter: int
    verbose: int
    n_iter: int = 0
    n_lbfgs: int = 0

    def method(self, stage: PrimalObjective, start: Point, level: float) -> Solver:
        """Of `SOLVERS`, or where L-BFGS has had its share the steps of the whole Hessian."""
        if self._lbfgs_failed(stage):
            return partial(newton_cg, explicit=True)
        return SOLVERS[choose_solver(stage, start, level) if self.solver == "auto" else self.solver]

    def _lbfgs_failed(self, objective: PrimalObjective) -> bool:
        """Whether L-BFGS has cost what Newton steps with the whole Hessian, if that is possible, would have cost."""
        size = objective.shape[0] * objective.shape[1]
        return self.solver == "auto" and size <= _EXPLICIT_MOST and self.n_lbfgs > 100 + 2 * size

    def stage(self, target: PrimalObjective, level: float) -> PrimalObjective:
        """The problem without kinks narrower than ``level``; distances have their own unit."""
        return target.with_pieces(target.loss.smoothed(level), target.penalty.smoothed(level * self.unit))

    def descend(
        self, target: PrimalObjective, theta: np.ndarray, level: float, tol: float, may_stall: bool
    ) -> PrimalState:
        """Lower the level of smoothing until the target is certified, out of iterations, or out of precision."""
        best, stalled, dual = np.inf, 0, -np.inf
        while True:
            stage = self.stage(target, level)
            exact = stage.loss is target.loss and stage.penalty is target.penalty
            start = stage.point(theta)
            method = self.method(stage, start, level)
            failed = False
            every = 10 if method is lbfgs else 1
            for step, (point, _) in enumerate(method(stage, start)):
                self.n_iter += step > 0
                self.n_lbfgs += method is lbfgs
                cold = step == 0 and not theta.any()  # nothing is known at zero
                if (step % every or cold) and self.n_iter < self.max_iter:
                    continue
                certificate, *own = stage.certificates(point, *((target,) if exact else (target, stage)))
                certificate.dual = dual = max(dual, certificate.dual)
                state = PrimalState(point.theta, certificate, level, self.n_iter)
                report_gap(state.gap, tol)
                if self.verbose:
                    print_line(
                        f"smoothing {level:.1e}: {self.n_iter} iterations, objective {certificate.primal:.6g}, "
                        f"relative gap {state.gap:.1e}"
                    )
                if state.gap <= tol or self.n_iter >= self.max_iter:
                    return state
                stalled = 0 if state.gap < 0.9 * best else stalled + 1
                best = min(best, state.gap)
                if may_stall and exact and best < 0.1 and stalled >= _PATIENCE:
                    return state
                failed = method is lbfgs and self._lbfgs_failed(stage)
                if failed and may_stall:
                    return state
                if failed:
                    break
                if own and step and own[0].primal - own[0].dual <= _DOMINATED * (certificate.primal - certificate.dual):
                    break
            else:  # no step decreases the value: all that this precision can do
                certificate = stage.certificate(point, target)
                certificate.dual = dual = max(dual, certificate.dual)
                state = PrimalState(point.theta, certificate, level, self.n_iter)
                if exact or may_stall or level <= _LOWEST or state.gap <= tol:
                    return state
            theta, stalled = point.theta, 0
            level = level if failed else max(level * _LEVELS[1], _LOWEST)
