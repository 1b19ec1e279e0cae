"""Newton steps on the smoothed problem, over some of the rows or all: what a pass sums up decides the next step.

Widths fall as steps succeed.  A step is damped by the prior curvature where one before it failed, and a width stays
where it is until a step succeeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skmargin._runtime.progress import print_line
from skmargin.rows.blocks import Block, BlockRows

from ..tuning import BlocksTuning
from .passes import BlockProblem, Frame, PassSums, SmoothPass
from .system import FREE, NewtonSystem

SINGLE_DIGITS = 1e-6  # gain of a step, relative to the objective, below which float32 may not see it: its rounding

SavePoint = Callable[..., None]  # W, b, and the duals of a method that has any


@dataclass(frozen=True)
class Stage:
    """Steps on some rows or on all."""

    rows: BlockRows
    width: float  # to reach
    passes: int  # at most
    steps: int
    first: float | None = None  # width to begin with, if not that to reach: each step then halves it
    enough: float = -1.0  # sum of the losses at which to stop
    certify: Callable[[PassResult], Any] | None = None  # on all rows: the state that ends the steps, or None


@dataclass(frozen=True)
class PassResult:
    """A point and the sums of a pass there."""

    W: np.ndarray
    width: float
    hessian: float
    objective: float
    smooth: float
    gradient: np.ndarray
    sums: PassSums

    @property
    def most_in_band(self) -> bool:
        """Whether most rows lie in the band."""
        return self.sums.pairs > self.sums.values[4]


class Descent:
    """The point, and all that a step needs to know; a round over the rows is a sum."""

    def __init__(self, problem: BlockProblem, n_features: int, caps: float, tol: float, tuning: BlocksTuning) -> None:
        self.problem, self.tol, self.tuning = problem, tol, tuning
        self.k, self.d = problem.n_classes, n_features
        self.D = self.d + (problem.feature != 0)
        self.W = np.zeros((self.k, self.D))
        self.frame = Frame(np.zeros(self.d), np.zeros(self.d))
        self.prior = np.zeros(0)  # curvature that steps are damped with
        self.penalty = np.ones(self.D)
        self.damped = self.penalty
        if problem.intercept == "free":
            self.penalty[-1] = 0.0
            self.damped = self.penalty.copy()
            self.damped[-1] = FREE * caps
        self.single = True  # passes in float32
        self.most_in_band = False  # whether most rows lie in the band
        self.lam = 0.0
        self.passes = 0  # over all rows
        self.rejected = 0  # steps on some of them
        self.worth = np.inf  # what the other methods are expected to cost, beside this one where its steps are hard
        self.verbose = 0
        self.save: SavePoint | None = None

    # ---- points ----

    def start_at(self, W: np.ndarray, b: np.ndarray) -> None:
        """Take a point as passes do: centred features, centred classes, the constant feature last."""
        W = np.asarray(W, dtype=np.float64)
        W = W - W.mean(axis=0)
        if self.problem.feature:
            b = b + W @ self.frame.mean
            W = np.column_stack([W, (b - b.mean()) / self.problem.feature])
        self.W = np.ascontiguousarray(W)

    def published(self) -> tuple[np.ndarray, np.ndarray]:
        """W and b for the features as given."""
        W = self.W[:, : self.d].copy()
        if not self.problem.feature:
            return W, np.zeros(self.k)
        return W, self.problem.feature * self.W[:, self.d] - W @ self.frame.mean

    def too_hard(self) -> bool:
        """Whether steps go wrong on a problem that the other methods are expected to solve at a lower price."""
        return self.rejected > 1 + self.worth  # one may fail by chance

    # ---- passes ----

    def task(self, W: np.ndarray, width: float, hessian: float) -> SmoothPass:
        """A pass at a point."""
        return SmoothPass(self.problem, self.frame, W, width, hessian, self.single)

    def half(self, W: np.ndarray) -> float:
        """The penalty."""
        return 0.5 * float((np.square(W) * self.penalty).sum())

    def sum(self, block: Block, width: float, hessian: float = 0.0) -> PassSums:
        """The sums of one block at the present point."""
        task = self.task(self.W, width, hessian)
        sums = task.zero()
        task.add(sums, block)
        return sums

    def _pass(self, stage: Stage, W: np.ndarray, width: float, hessian: float) -> PassResult:
        sums = stage.rows.map_sum(self.task(W, width, hessian))
        self.passes += stage.certify is not None
        half = self.half(W)
        gradient = W * self.penalty - sums.gradient
        return PassResult(W, width, hessian, half + sums.loss, half + sums.smooth, gradient, sums)

    # ---- steps ----

    def run(self, stage: Stage) -> tuple[PassResult, Any]:
        """Steps at widths down to that of the stage: the last sums, and the state if it is certified, else None."""
        halves, certify = stage.first is not None, stage.certify
        goal = stage.width
        width = goal if stage.first is None else max(goal, stage.first)
        hessian = 2 * width if halves or self.most_in_band else max(width, self.tuning.narrow_width)
        here = self._pass(stage, self.W, width, hessian)
        done = certify(here) if certify else None
        # Long, but one loop: how a step went decides the widths, the damping and the number type of the next one.
        accepted = failures = 0
        passes = 1
        system = self._system(here)
        while (
            here.sums.loss > stage.enough
            and done is None
            and passes < stage.passes
            and accepted < stage.steps
            and failures < self.tuning.most_trials
            and not self.too_hard()
        ):
            if certify:
                goal = self._adjusted(goal, here, accepted)
            next_width = max(goal, 0.5 * here.width) if halves else goal
            next_hessian = 2 * next_width if halves else max(next_width, 0.4 * hessian)
            if failures:
                next_width, next_hessian = here.width, hessian
            step = system.step(here.gradient, self.lam)
            slope = float((here.gradient * step).sum())
            if not certify and next_width == here.width and abs(slope) < self.tuning.small_gain * here.objective:
                self.W = here.W + step  # what such a step changes is less than what the other rows will
                return here, None
            trial = self._pass(stage, here.W + step, next_width, next_hessian)
            passes += 1
            now = float((trial.gradient * step).sum())
            if self._accept(here, trial, slope, now):
                self._relax(now / slope if slope else 0.0)
                here, hessian = trial, next_hessian
                self.W = here.W
                accepted, failures = accepted + 1, 0
                if self.save is not None:
                    self.save(*self.published())
                done = certify(here) if certify else None
                if done is None:
                    system = self._system(here)
            elif certify and self.single and abs(slope) < SINGLE_DIGITS * here.objective:
                self.single = False  # what is left to gain is below the rounding of float32
                here = self._pass(stage, here.W, here.width, hessian)
                passes, failures = passes + 1, 0
                done, system = certify(here), self._system(here)
            else:
                self._damp(now, abs(slope))
                failures += 1
                self.rejected += not certify
            self._print(trial, certify is not None)
        return here, done

    def _accept(self, here: PassResult, trial: PassResult, slope: float, now: float) -> bool:
        """Whether the smoothed value fell.

        Where the width has changed or its fall is lost in the rounding of float32, its derivative along the step tells.
        """
        if not np.isfinite(trial.smooth):
            return False
        fell = trial.smooth - here.smooth
        if trial.width != here.width or (self.single and abs(slope) < SINGLE_DIGITS * here.objective):
            fell = 0.5 * (slope + now)
        return fell <= 0.1 * slope or (fell < 0 and now <= 0.3 * abs(slope))

    def _relax(self, ratio: float) -> None:
        """After a step; ``ratio`` of the slopes at its end and its beginning, below zero where it was too long."""
        self.lam *= 0.1 if ratio > 0.4 else 0.25 if ratio > -0.5 else 0.5
        if self.lam < 1e-4:
            self.lam = 0.0

    def _damp(self, now: float, slope: float) -> None:
        """After a step that failed.

        A model that is right but for its size would need a damping of the slope at its end, beside that at first.
        """
        least = self.tuning.damping * float(np.clip(now / max(slope, 1e-300), 1e-2, 1.0))
        self.lam = max(least, (10 if now >= 3 * slope else 4) * self.lam)

    def _system(self, here: PassResult) -> NewtonSystem:
        assert here.sums.laplacian is not None
        if here.most_in_band:
            here.sums.laplacian *= here.hessian / here.width
        return NewtonSystem(here.sums.laplacian, self.damped, self.prior, self.k)

    def _adjusted(self, goal: float, here: PassResult, accepted: int) -> float:
        """The width at which the residuals are their share of ``tol``, which they tell by themselves."""
        wanted = self.tuning.gap_share * self.tol * here.objective
        f = np.sqrt(wanted / max(here.sums.residual, 1e-300)) * here.width / goal
        return goal * float(np.clip(f, 0.3, 2.0)) if accepted < 2 or f < 0.8 else goal

    def _print(self, trial: PassResult, final: bool) -> None:
        if self.verbose:
            half = 0.5 * float((np.square(trial.gradient) * self.penalty).sum())
            print_line(
                f"blocks: {f'pass {self.passes}' if final else 'some of the rows'}, objective "
                f"{trial.objective:.6g}, width {trial.width:.2g}, residuals {trial.sums.residual / trial.objective:.1e}"
                f", gradient {half / trial.objective:.1e}, damping {self.lam:.1g}"
            )
