"""Driver of the smooth primal solvers: smoothing by continuation, single precision first, a certificate to stop.

The problem of `objective` may have kinks (hinge, distances to a power below 2).  It is replaced by a sequence
of smoother ones, each started from the last: a coarse one is solved in few iterations, and the level falls as soon as
the smoothing, and no longer the solver, is what keeps the certified gap of the *given* problem from closing.  The run
ends when that relative gap is below ``tol``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from ..._runtime.progress import print_line, report_gap
from ..tuning import Tuning
from .lbfgs import lbfgs
from .line_search import line_search
from .newton import explicit_is_cheap, newton_cg
from .objective import Certificate, Point, PrimalObjective
from .pairs import Pairs

Solver = Callable[[PrimalObjective, Point], Iterator[tuple[Point, np.ndarray]]]

SOLVERS: dict[str, Solver] = {"lbfgs": lbfgs, "newton-cg": newton_cg}
_MAX_SLOW_STEPS, _PROGRESS = 60, 1e-5  # Newton steps in a row that lower the objective by less than this share
_LOWEST = 1e-12  # level of smoothing that is rounding
_FAR = 100  # distance of the rows from zero, in units of their spread, beyond which float32 is too coarse


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
    tuning = objective.tuning
    narrow = level < tuning.primal.first_level * tuning.primal.level_factor and Pairs(objective, start).are_few()
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
    tuning = objective.tuning
    run = _Run(solver, 0.1 / objective.row_size, max_iter, verbose, tuning)
    level = tuning.primal.first_level
    if theta is None:
        theta = np.zeros(objective.shape)
    else:  # a good start would be lost on a coarse level
        finest = min(tol, tuning.common.start_tol)
        stage = run.stage(objective, finest)
        start = _scaled(stage, stage.point(theta))
        theta = start.theta
        level = max(finest, level * stage.certificate(start, objective).relative)
    single = objective.rows.X.size * objective.n_classes >= tuning.common.pass_work
    near = float(np.linalg.norm(objective.centre)) <= _FAR * objective.row_size
    if single and near and not explicit_is_cheap(objective):
        goal = max(tol, tuning.common.float32_tol)
        state = run.descend(objective.astype(np.float32), theta.astype(np.float32), level, goal, True)
        theta, level = state.theta.astype(np.float64), state.level
    return run.descend(objective, theta, level, tol, False)


def _scaled(objective: PrimalObjective, point: Point) -> Point:
    """A point with a smaller value among the multiples of this one: another strength or power asks for another size."""
    slope = objective.slope(point, point.theta, point.F)
    D = point.theta if slope < 0 else -point.theta
    return (line_search(objective, point, D, -abs(slope)) if slope else None) or point


class _End(Enum):
    """Why a stage ended."""

    DONE = "certified, out of iterations or out of precision"
    LOWER_LEVEL = "the smoothing is what keeps the gap from closing"
    OTHER_METHOD = "L-BFGS has cost what Newton steps would have cost"


@dataclass
class _Descent:
    """What the stages of one descent have in common: the problem to certify, and how the gap went."""

    target: PrimalObjective
    tol: float
    may_stall: bool  # may end where single precision makes no more progress
    dual: float = -np.inf  # the best bound holds for all points
    best_gap: float = np.inf
    checks_without_progress: int = 0
    lowest: float = np.inf  # objective, and checks since it fell by more than rounding
    checks_without_fall: int = 0

    def state(self, certificate: Certificate, point: Point, level: float, n_iter: int) -> PrimalState:
        """A point with its certificate, whose bound is the best so far."""
        certificate.dual = self.dual = max(self.dual, certificate.dual)
        return PrimalState(point.theta, certificate, level, n_iter)

    def count(self, gap: float, objective: float) -> None:
        """Note the gap and the objective of a check."""
        fell = objective < (1 - _PROGRESS) * self.lowest or gap < 0.9 * self.best_gap
        self.checks_without_fall = 0 if fell else self.checks_without_fall + 1
        self.lowest = objective if fell else self.lowest
        self.checks_without_progress = 0 if gap < 0.9 * self.best_gap else self.checks_without_progress + 1
        self.best_gap = min(self.best_gap, gap)


@dataclass
class _Run:
    solver: str
    unit: float
    max_iter: int
    verbose: int
    tuning: Tuning
    n_iter: int = 0
    n_lbfgs: int = 0

    def method(self, stage: PrimalObjective, start: Point, level: float) -> Solver:
        """Of `SOLVERS`, or where L-BFGS has had its share the steps of the whole Hessian."""
        if self._lbfgs_failed(stage):
            return partial(newton_cg, explicit=True)
        return SOLVERS[choose_solver(stage, start, level) if self.solver == "auto" else self.solver]

    def _lbfgs_failed(self, objective: PrimalObjective) -> bool:
        """Whether L-BFGS has cost what Newton steps with the whole Hessian, if that is possible, would have cost."""
        size, tuning = objective.shape[0] * objective.shape[1], self.tuning
        slow = self.n_lbfgs > tuning.primal.lbfgs_steps * size
        return self.solver == "auto" and tuning.common.can_factor(size) and slow

    def stage(self, target: PrimalObjective, level: float) -> PrimalObjective:
        """The problem without kinks narrower than ``level``; distances have their own unit."""
        return target.with_pieces(target.loss.smoothed(level), target.penalty.smoothed(level * self.unit))

    def descend(
        self, target: PrimalObjective, theta: np.ndarray, level: float, tol: float, may_stall: bool
    ) -> PrimalState:
        """Lower the level of smoothing until the target is certified, out of iterations, or out of precision."""
        descent = _Descent(target, tol, may_stall)
        while True:
            state, end = self.solve_stage(descent, theta, level)
            if end is _End.DONE:
                return state
            theta, descent.checks_without_progress = state.theta, 0
            if end is _End.LOWER_LEVEL:
                level = max(level * self.tuning.primal.level_factor, _LOWEST)

    def solve_stage(self, descent: _Descent, theta: np.ndarray, level: float) -> tuple[PrimalState, _End]:
        """Iterate on one level of smoothing; where it ends, and why."""
        target = descent.target
        stage = self.stage(target, level)
        exact = stage.loss is target.loss and stage.penalty is target.penalty
        start = stage.point(theta)
        method = self.method(stage, start, level)
        every = self.tuning.common.check_every if method is lbfgs else 1
        for step, (point, _) in enumerate(method(stage, start)):
            self.n_iter += step > 0
            self.n_lbfgs += method is lbfgs
            cold = step == 0 and not theta.any()  # nothing is known at zero
            if (step % every or cold) and self.n_iter < self.max_iter:
                continue
            certificate, *own = stage.certificates(point, *((target,) if exact else (target, stage)))
            state = descent.state(certificate, point, level, self.n_iter)
            self._report(state, descent.tol)
            end = self._end(descent, state, stage, exact, method is lbfgs)
            if end is not None:
                return state, end
            share = self.tuning.primal.solver_share
            if own and step and own[0].primal - own[0].dual <= share * (certificate.primal - certificate.dual):
                return state, _End.LOWER_LEVEL
        # No step decreases the value: all that this precision can do.
        state = descent.state(stage.certificate(point, target), point, level, self.n_iter)
        done = exact or descent.may_stall or level <= _LOWEST or state.gap <= descent.tol
        return state, _End.DONE if done else _End.LOWER_LEVEL

    def _end(
        self, descent: _Descent, state: PrimalState, stage: PrimalObjective, exact: bool, by_lbfgs: bool
    ) -> _End | None:
        """Whether a checked point ends the stage; None: it goes on."""
        if state.gap <= descent.tol or self.n_iter >= self.max_iter:
            return _End.DONE
        descent.count(state.gap, state.certificate.primal)
        if not by_lbfgs and descent.checks_without_fall >= _MAX_SLOW_STEPS:
            descent.checks_without_fall = 0
            return _End.DONE if exact or state.level <= _LOWEST else _End.LOWER_LEVEL
        if descent.may_stall and self._stalled(descent, exact):
            return _End.DONE
        if by_lbfgs and self._lbfgs_failed(stage):
            return _End.DONE if descent.may_stall else _End.OTHER_METHOD
        return None

    def _stalled(self, descent: _Descent, exact: bool) -> bool:
        """Whether single precision has done what it can: the objective stands still, or near the end the gap does.

        Rounded slopes can leave the gap wide for ever: where the penalty is a norm, their dual point is scaled until
        it is feasible, by a factor that says how large their rounding is beside ``alpha``.
        """
        near = exact and descent.best_gap < 0.1 and descent.checks_without_progress >= self.tuning.common.patience
        return near or descent.checks_without_fall >= self.tuning.common.patience

    def _report(self, state: PrimalState, tol: float) -> None:
        report_gap(state.gap, tol)
        if self.verbose:
            print_line(
                f"smoothing {state.level:.1e}: {self.n_iter} iterations, objective {state.certificate.primal:.6g}, "
                f"relative gap {state.gap:.1e}"
            )
