"""Smoothed Newton steps over blocks of rows: few parameters, any number of rows.

    primal  min_{W,b}  P = 1/2 ||W||^2 + C sum_i s_i loss(f_i),  f_i = W x_i + b
    smooth  phi_w: each loss less w times a strictly convex function of its duals (_core/blocks/smooth_losses.hpp)
    step    (R + L + lambda L0) s = -gradient of phi_w                                       (system.py)
    gap     P - D = sum of residuals + 1/2 ||gradient||^2, after the intercept is repaired   (repair.py)

There is no state for each row: duals are a function of (W, b, w), and a pass is one sum over rows, wherever they lie.
The residuals shrink with the square of w, so that a small multiple of sqrt(tol) is enough, and a handful of steps.

plan    a sample S of the rows gives the prior L0 and, by steps from zero, the first point
        fresh rows V give the width, and say whether this method suits: rows that can be separated have an empty band
stages  where there are far more rows than in S: a few steps on an eighth of them, at a larger width
        steps on all rows
certify in double precision from the rows as given

given    rows in blocks, a problem, a function that solves the sample where steps from zero fail, perhaps the point of
         an earlier solve
returned the point, its objective and certified gap; or why this method does not suit
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skmargin._runtime.progress import print_line, report_gap
from skmargin._runtime.threads import blas_threads
from skmargin.rows.blocks import ArrayRows, Block, BlockRows
from skmargin.rows.moments import Overview, Sample, Sizes, overview

from .passes import BlockProblem, Frame, PassSums, SmoothPass
from .repair import Repair
from .system import FREE, NewtonSystem, assemble

SAMPLE_ROWS, ROWS_PER_PARAMETER, CLASS_ROWS = 20_000, 40, 200  # size of S; at least so many of a class
LEAST_RATIO = 3  # of all rows to S: where they are few, steps on S cost as much as those on all
FRESH_ROWS = 20_000  # size of V
GAP_SHARE = 0.6  # share of tol that the residuals may use
LEAST_PAIRS = 4.0  # pairs in the band for each parameter, else the rows can be separated
REPRESENTATIVE = 1.1  # loss of fresh rows beside that of S up to which S tells all
MOST_LOSS = 1.5  # the same, from which on it tells nothing
DOUBLE_TOL = 9e-6  # below it passes are in float64: a solver is asked for a little less than tol
SINGLE_DIGITS = 1e-6  # gain of a step, relative to the objective, below which float32 may not see it
FEW_SAMPLES = 16  # times S, from which on the middle stage pays
MIDDLE_SHARE, MIDDLE_WIDTH, MIDDLE_CURVATURE, MIDDLE_STEPS = 1 / 8, 0.03, 0.1, 4
MIDDLE_BYTES = 1 << 26  # most that a copy of some of the rows of a file takes
CURVATURE_WIDTH = 0.05  # least width of the curvature of the first step on all rows
UNSURE_WIDTH = 0.4  # first width where the sample tells little
SEPARABLE_LOSS = 5e-3  # sum of the losses of S beside that at zero, below which the band is all but empty
NEAR_LOSS = 6.0  # times as much: more steps on a few of the rows tell whether it falls on
ZERO_WIDTH, FIRST_WIDTH = 2.0, 0.05  # first and last width of the steps on S from zero, where all classes tie
COARSE_WIDTH, COARSE_STEPS = 0.5, 3
FIRST_ROWS = 3_000  # of the steps at such widths
FIRST_PASSES, FIRST_STEPS = 16, 5
FIRST_DAMPING = 0.1  # of a step that overshot by as much as it promised, relative to the curvature
MOST_REJECTED = 5  # steps on the sample, after which there will be dozens of passes
WORTH = 7.0  # by how much the estimate of the other methods may be wrong where steps are hard
MOST_PASSES, MOST_TRIALS = 40, 12
NEAR = 1.3  # ratio of two widths that are near enough: each pass tells the next one
SMALL_GAIN = 1e-3  # share of the objective; a step on some of the rows that promises less is their last one
CHUNK = 4096  # rows of the sample that are looked at together


@dataclass(frozen=True)
class BlockState:
    """A point of the smoothed problem with its certificate; there are no duals but as a function of it."""

    W: np.ndarray  # (k, d)
    b: np.ndarray  # (k,)
    width: float
    objective: float
    gap: float  # relative duality gap, certified
    n_iter: int  # passes over all rows
    C: float = 1.0
    sizes: Sizes | None = None  # of the rows
    single: bool = False  # whether objective and gap are those of products in float32


@dataclass(frozen=True)
class Refused:
    """Why this method does not suit, and the best point if there is one."""

    reason: str
    state: BlockState | None = None


SampleSolver = Callable[[Sample, np.ndarray], tuple[np.ndarray, np.ndarray]]  # (rows, caps) -> W, b
SavePoint = Callable[..., None]  # W, b, and the duals of a method that has any


def solve_blocks(
    rows: BlockRows,
    problem: BlockProblem,
    solve_sample: SampleSolver,
    *,
    tol: float = 1e-3,
    max_passes: int = MOST_PASSES,
    seed: int = 0,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    force: bool = False,
    verbose: int = 0,
    save: SavePoint | None = None,
    worth: float = np.inf,
) -> BlockState | Refused:
    """Solve to a relative duality gap of ``tol``; see the head of this file.

    ``start`` is a point (W, b) of a related problem; ``force`` goes on whatever the sample says; ``save`` is given each
    point that is better than those before; ``worth`` is what the other methods are expected to cost, beside this one
    where its steps are hard.
    """
    with blas_threads(1):
        method = SmoothedNewton(rows, problem, tol, seed, verbose)
        method.save, method.worth = save, worth
        method.begin(solve_sample, start)
        reason = method.unsuitable()
        if reason and not force:
            return Refused(reason)
        if method.separable:
            method.begin_anyway(solve_sample)
        return method.run(max_passes)


class SmoothedNewton:
    """The state of a solve, all of it in the driver: a round over the rows is a sum."""

    def __init__(self, rows: BlockRows, problem: BlockProblem, tol: float, seed: int, verbose: int) -> None:
        self.rows, self.problem, self.tol, self.seed, self.verbose = rows, problem, tol, seed, verbose
        self.k, self.d = problem.n_classes, rows.n_features
        self.D = self.d + (problem.feature != 0)
        self.n_parameters = (self.k - 1) * self.D
        self.caps = problem.C * float(rows.class_weights.sum())
        self.single = tol >= DOUBLE_TOL
        self.save: SavePoint | None = None
        self.worth = np.inf
        self.passes = 0
        self.lam = 0.0
        self.separable = self.nearly_separable = False
        self.rejected = 0  # steps on the sample
        self.most_in_band = False  # whether most rows lie in the band

    # ---- plan ----

    def begin(self, solve_sample: SampleSolver, start: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Draw the samples, find the first point, the prior and the width."""
        if start is None and isinstance(self.rows, ArrayRows):  # rows that can be separated are refused at first sight
            some = self.rows.every(max(1, self.rows.n_rows // FIRST_ROWS))
            self._set_samples(overview(some, (some.n_rows, 0), 0, self.seed))
            went_well = self._descend_from_zero()
            if self.nearly_separable:
                rejected = self.rejected
                self._descend_on_sample()
                self.rejected = rejected  # so few rows are too few to tell how hard the steps on all will be
            if self.separable or self._too_hard():
                return
            first = self.published()
            self._set_samples(self._overview())
            self.W = self._point(*first)
        else:
            self._set_samples(self._overview())
            went_well = start is None and self._descend_from_zero()
            if self.separable:
                return
        if start is not None:
            self.W = self._point(*start)
        elif not (went_well and self._descend_on_sample()):
            self.W = self._point(*solve_sample(self.S, self.problem.C * self.S.inflated()))
        if not self.separable:
            self._choose_width()

    def begin_anyway(self, solve_sample: SampleSolver) -> None:
        """Go on although the sample can be separated."""
        self._set_samples(self._overview())
        self.W = self._point(*solve_sample(self.S, self.problem.C * self.S.inflated()))
        self._choose_width()

    def _overview(self) -> Overview:
        """One pass over all rows."""
        largest = max(SAMPLE_ROWS, ROWS_PER_PARAMETER * self.n_parameters)
        size = min(largest, max(SAMPLE_ROWS // 2, self.rows.n_rows // LEAST_RATIO))
        self.middle = self.rows.n_rows > FEW_SAMPLES * size  # a stage on some of the rows pays
        copied = 0.0 if self.rows.in_memory or not self.middle else self._share_to_copy()
        return overview(self.rows, (size, FRESH_ROWS), CLASS_ROWS, self.seed, copied)

    def _set_samples(self, seen: Overview) -> None:
        """Take the samples of an overview, and all that follows from them."""
        self.S, self.V, self.M, self.seen = seen.first, seen.second, seen.large, seen
        self._set_frame(seen)
        self.sample_block, self.fresh_block = (Block(one.X, one.y, one.inflated(), 0) for one in (self.S, self.V))
        self.sample = ArrayRows(*self.sample_block[:3], self.k, getattr(self.rows, "n_jobs", 1))
        self._set_penalty()
        self._make_prior()

    def _descend_from_zero(self) -> bool:
        """Steps from W = 0 at large widths, where every row couples most classes and few rows tell as much as many."""
        self.W, self.representative = np.zeros((self.k, self.D)), False
        self.loss_at_zero = self._loss_at_zero() / float(self.S.total.sum())
        few = min(1.0, FIRST_ROWS / len(self.S.y))
        enough = SEPARABLE_LOSS * self.loss_at_zero * float(self.S.total.sum())
        end, _ = self._descend(
            Stage(self.sample, few, COARSE_WIDTH, 2 * ZERO_WIDTH, FIRST_PASSES, COARSE_STEPS, False, ZERO_WIDTH, enough)
        )
        loss = self._sum(self.sample_block, 1.0).loss
        went_well = end.width <= COARSE_WIDTH
        self.separable, self.nearly_separable = loss <= enough, loss <= NEAR_LOSS * enough
        return went_well

    def _descend_on_sample(self) -> bool:
        """Steps on the whole sample at ever smaller widths; whether they went well."""
        zero = self.loss_at_zero * float(self.S.total.sum())
        enough, first = SEPARABLE_LOSS * zero, COARSE_WIDTH / 2
        end, _ = self._descend(
            Stage(self.sample, 1.0, FIRST_WIDTH, 2 * first, FIRST_PASSES, FIRST_STEPS, False, first, enough)
        )
        loss = self._sum(self.sample_block, 1.0).loss
        reached = end.width <= 2 * FIRST_WIDTH
        self.separable = loss <= enough
        if reached and not self.separable and end.most_in_band:
            reached = self._follow_ties(self.sample, end)
        else:
            reached = reached and loss < zero
        self.lam = 0.0
        return self.separable or reached

    def _follow_ties(self, sample: ArrayRows, end: PassResult) -> bool:
        """Go on to the final width on the sample, where most rows tie: the solution shrinks with the width."""
        self.most_in_band = True
        share = GAP_SHARE * self.tol * end.objective / max(end.sums.residual, 1e-300)
        goal = end.width * min(1.0, share)
        end, _ = self._descend(
            Stage(sample, 1.0, goal, 2 * goal, 2 * FIRST_PASSES, 2 * FIRST_PASSES, False, end.width / 2)
        )
        return end.width <= 2 * goal

    def _loss_at_zero(self) -> float:
        """Rows of a class do not differ there: one of each tells."""
        classes, first = np.unique(self.S.y, return_index=True)
        return self._sum(Block(self.S.X[first], self.S.y[first], self.S.total[classes], 0), 1.0).loss

    def _share_to_copy(self) -> float:
        """The share of rows, too many for memory, that the middle stage holds a copy of."""
        return min(MIDDLE_SHARE, MIDDLE_BYTES / (8 * self.d) / self.rows.n_rows)

    def _set_frame(self, seen: Overview) -> None:
        """Mean and scale of the features, the latter so that a typical row has reach 1."""
        centre = np.zeros(self.d)
        if self.problem.intercept == "free":
            centre = seen.mean.astype(np.float32).astype(np.float64)
        self.second = seen.variance + (seen.mean - centre) ** 2  # mean square
        spread = np.sqrt(self.second)
        inverse = np.divide(1.0, spread, out=np.zeros(self.d), where=spread > 0)
        starts = range(0, len(self.S.y), CHUNK)
        parts = (_dense(self.S.X[at : at + CHUNK]) for at in starts)
        middle = float(np.median(np.concatenate([row_sizes((part - centre) * inverse) for part in parts])))
        self.frame = Frame(centre, inverse / middle if middle > 0 else inverse)

    def _point(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The point as passes take it: centred features, centred classes, the constant feature last."""
        W = np.asarray(W, dtype=np.float64)
        W = W - W.mean(axis=0)
        if not self.problem.feature:
            return np.ascontiguousarray(W)
        b = b + W @ self.frame.mean
        return np.column_stack([W, (b - b.mean()) / self.problem.feature])

    def published(self) -> tuple[np.ndarray, np.ndarray]:
        """W and b for the features as given."""
        W = self.W[:, : self.d].copy()
        if not self.problem.feature:
            return W, np.zeros(self.k)
        return W, self.problem.feature * self.W[:, self.d] - W @ self.frame.mean

    def _set_penalty(self) -> None:
        self.penalty = np.ones(self.D)
        if self.problem.intercept == "free":
            self.penalty[-1] = 0.0
        self.damped = self.penalty.copy()
        if self.problem.intercept == "free":
            self.damped[-1] = FREE * self.caps

    def _make_prior(self) -> None:
        """The curvature of Weston and Watkins' loss at zero, with what features unseen in the sample would add."""
        wide = 2.0 * self.k
        task = SmoothPass(
            BlockProblem(
                self.k, "sum", self.problem.C, 1, intercept=self.problem.intercept, constant=self.problem.constant
            ),
            self.frame, np.zeros((self.k, self.D)), wide, wide, single=self.single,
        )  # fmt: skip
        sums = task.zero()
        task.add(sums, self.sample_block)
        assert sums.laplacian is not None
        weights = self.problem.C * self.rows.class_weights
        place = 0
        for m in range(1, self.k):
            for l in range(m):
                diagonal = np.einsum("jj->j", sums.laplacian[place])
                floor = 0.5 * self.second * (weights[l] + weights[m]) / (2 * wide)
                diagonal[: self.d] = np.maximum(diagonal[: self.d], floor)
                place += 1
        self.prior = assemble(sums.laplacian, self.k)

    def _sum(self, block: Block, width: float, hessian: float = 0.0) -> PassSums:
        task = self._task(self.W, width, hessian)
        sums = task.zero()
        task.add(sums, block)
        return sums

    def _choose_width(self) -> None:
        """What fresh rows say, and the width at which their residuals are their share of ``tol``.

        Rows of S sit on their kinks and would not tell.
        """
        half, width = self._half(self.W), 0.05 * min(1.0, float(np.sqrt(self.tol / 1e-3)))
        for _ in range(6):
            found = self._sum(self.fresh_block, width, width)
            self.fresh_objective = half + found.loss
            goal = GAP_SHARE * self.tol * self.fresh_objective
            ratio = float(np.sqrt(goal / max(found.residual, 1e-12 * goal, np.finfo(float).tiny)))
            width = float(np.clip(width * np.clip(ratio, 0.1, 5.0), 1e-6, 1.0))
            if 1 / NEAR < ratio < NEAR:
                break
        self.width = width
        self.most_in_band = found.pairs > len(self.fresh_block.y)
        self.expected = found.pairs * self.rows.n_rows / max(1, len(self.fresh_block.y)) / self.n_parameters
        of_sample = self._sum(self.sample_block, 1.0).loss
        self.loss_ratio = found.loss / max(of_sample, 1e-9 * found.loss, np.finfo(float).tiny)
        self.representative = self.loss_ratio < REPRESENTATIVE

    def _too_hard(self) -> bool:
        """Whether steps go wrong on a problem that the other methods are expected to solve at a lower price."""
        return (self.rejected > 0 and self.worth < 1) or (self.rejected >= MOST_REJECTED and self.worth < WORTH)

    def unsuitable(self) -> str:
        """Why this method should not go on; empty if it should."""
        if self.separable:
            return "the rows can be separated, or nearly so"
        if self._too_hard():
            return f"{self.rejected} steps on the sample went wrong"
        if self.verbose:
            print_line(
                f"blocks: sample of {len(self.S.y)} rows, width {self.width:.2g}, {self.expected:.3g} pairs in the "
                f"band for each parameter, {self.rejected} steps went wrong, "
                f"loss of fresh rows {self.loss_ratio:.2f} times that of the sample"
            )
        if self.expected < LEAST_PAIRS:
            return f"{self.expected:.3g} pairs in the band for each parameter"
        if self.loss_ratio > (MOST_LOSS if self.worth >= 1 else REPRESENTATIVE):
            return f"fresh rows have {self.loss_ratio:.2f} times the loss of the sample"
        return ""

    # ---- passes ----

    def _task(self, W: np.ndarray, width: float, hessian: float, stage: Stage | None = None) -> SmoothPass:
        share = 1.0 if stage is None else stage.share
        return SmoothPass(self.problem, self.frame, W, width, hessian, share, self.seed + 1, self.single)

    def _half(self, W: np.ndarray) -> float:
        return 0.5 * float((np.square(W) * self.penalty).sum())

    def _pass(self, stage: Stage, W: np.ndarray, width: float, hessian: float) -> PassResult:
        sums = stage.rows.map_sum(self._task(W, width, hessian, stage))
        self.passes += stage.final
        half = self._half(W)
        gradient = W * self.penalty - sums.gradient
        return PassResult(W, width, hessian, half + sums.loss, half + sums.smooth, gradient, sums)

    # ---- stages ----

    def run(self, max_passes: int) -> BlockState | Refused:
        """All stages from the first point."""
        if self.middle:
            rows, share = self.rows, MIDDLE_SHARE
            if self.M is not None:
                rows, share = ArrayRows(self.M.X, self.M.y, self.M.inflated(), self.k), 1.0
            width = max(self.width, MIDDLE_WIDTH)
            self._descend(Stage(rows, share, width, MIDDLE_CURVATURE, MIDDLE_STEPS + MOST_TRIALS, MIDDLE_STEPS, False))
            self.M, self.lam = None, 0.0
        curvature = max(self.width, CURVATURE_WIDTH)
        here, state = self._descend(Stage(self.rows, 1.0, self.width, curvature, max_passes, max_passes, True))
        if state is not None:
            return state
        return Refused(f"not certified after {self.passes} passes", self._state(here, 1.0))

    def _descend(self, stage: Stage) -> tuple[PassResult, BlockState | None]:
        """Newton steps at widths down to that of the stage: the last sums, and the state if it is certified."""
        unsure = not self.representative
        goal, hessian = stage.width, stage.hessian
        width = max(goal, stage.first) if unsure else goal
        if unsure or self.most_in_band:
            hessian = 2 * width
        here = self._pass(stage, self.W, width, hessian)
        done = self._certified(here) if stage.final else None
        # Long, but one loop: how a step went decides the widths, the damping and the number type of the next one.
        accepted = failures = 0
        passes = 1
        system = self._system(here)
        while (
            here.sums.loss > stage.enough
            and done is None
            and passes < stage.passes
            and accepted < stage.steps
            and failures < MOST_TRIALS
        ):
            if stage.final:
                goal = self._adjusted(goal, here, accepted)
            next_width = max(goal, 0.5 * here.width) if unsure else goal
            next_hessian = 2 * next_width if unsure else max(next_width, 0.4 * hessian)
            if failures:
                next_width, next_hessian = here.width, hessian
            step = system.step(here.gradient, self.lam)
            slope = float((here.gradient * step).sum())
            if not stage.final and next_width == here.width and abs(slope) < SMALL_GAIN * here.objective:
                self.W = here.W + step  # what such a step changes is less than what the other rows will
                return here, None
            trial = self._pass(stage, here.W + step, next_width, next_hessian)
            passes += 1
            now = float((trial.gradient * step).sum())
            if self._accept(here, trial, slope, now):
                ratio = now / slope if slope else 0.0
                self.lam *= 0.1 if ratio > 0.4 else 0.25 if ratio > -0.5 else 0.5
                if self.lam < 1e-4:
                    self.lam = 0.0
                here, hessian = trial, next_hessian
                self.W = here.W
                accepted, failures = accepted + 1, 0
                if self.save is not None:
                    self.save(*self.published())
                done = self._certified(here) if stage.final else None
                if done is None:
                    system = self._system(here)
            elif stage.final and self.single and abs(slope) < SINGLE_DIGITS * here.objective:
                self.single = False  # what is left to gain is below the rounding of float32
                here = self._pass(stage, here.W, here.width, hessian)
                passes, failures = passes + 1, 0
                done, system = self._certified(here), self._system(here)
            else:
                # A model that is right but for its size would need a damping of now / |slope|.
                least = FIRST_DAMPING * float(np.clip(now / max(abs(slope), 1e-300), 1e-2, 1.0))
                self.lam = max(least, (10 if now >= 3 * abs(slope) else 4) * self.lam)
                failures += 1
                self.rejected += not stage.final
            self._print(stage, trial)
        return here, done

    def _system(self, here: PassResult) -> NewtonSystem:
        assert here.sums.laplacian is not None
        if here.most_in_band:
            here.sums.laplacian *= here.hessian / here.width
        return NewtonSystem(here.sums.laplacian, self.damped, self.prior, self.k)

    def _adjusted(self, goal: float, here: PassResult, accepted: int) -> float:
        """The width at which the residuals are their share of ``tol``, which they tell by themselves."""
        f = np.sqrt(GAP_SHARE * self.tol * here.objective / max(here.sums.residual, 1e-300)) * here.width / goal
        return goal * float(np.clip(f, 0.3, 2.0)) if accepted < 2 or f < 0.8 else goal

    def _accept(self, here: PassResult, trial: PassResult, slope: float, now: float) -> bool:
        """Whether the smoothed value fell; where the width has changed its derivative along the step has to tell."""
        if not np.isfinite(trial.smooth):
            return False
        fell = trial.smooth - here.smooth
        if trial.width != here.width:
            fell = 0.5 * (slope + now)
        return fell <= 0.1 * slope or (fell < 0 and now <= 0.3 * abs(slope))

    # ---- certificate ----

    def _certified(self, here: PassResult) -> BlockState | None:
        """The state, if the gap of this point is below ``tol`` in double precision."""
        bound = here.sums.residual + 0.5 * float((np.square(here.gradient) * self.penalty).sum())
        report_gap(min(1.0, bound / max(here.objective, np.finfo(float).tiny)), self.tol)
        if bound > self.tol * here.objective:
            return None
        task = self._task(here.W, here.width, 0.0)
        repair = Repair(task, self.S)
        gap = repair.gap(here.sums)
        if gap > self.tol * here.objective:
            return None
        if not self.single:
            return self._state(here, gap / here.objective)
        exact = task.at(single=False)
        sums = self.rows.map_sum(exact)
        self.passes += 1
        objective = self._half(here.W) + sums.loss
        gap = repair.gap(sums)
        if gap > self.tol * objective:
            self.single = False  # float32 was too coarse for these rows
            return None
        return self._state(here, gap / objective, objective)

    def _state(self, here: PassResult, gap: float, objective: float | None = None) -> BlockState:
        self.W = here.W
        objective = here.objective if objective is None else objective
        return BlockState(
            *self.published(), here.width, objective, gap, self.passes, self.problem.C, self.seen.sizes()
        )  # fmt: skip

    def _print(self, stage: Stage, trial: PassResult) -> None:
        if self.verbose:
            half = 0.5 * float((np.square(trial.gradient) * self.penalty).sum())
            print_line(
                f"blocks: {f'pass {self.passes}' if stage.final else 'some of the rows'}, objective "
                f"{trial.objective:.6g}, width {trial.width:.2g}, residuals {trial.sums.residual / trial.objective:.1e}"
                f", gradient {half / trial.objective:.1e}, damping {self.lam:.1g}"
            )


@dataclass(frozen=True)
class Stage:
    """Steps on some rows or on all."""

    rows: BlockRows
    share: float  # of these rows
    width: float  # to reach
    hessian: float  # first width of the curvature
    passes: int  # at most
    steps: int
    final: bool  # on all rows: the gap counts
    first: float = UNSURE_WIDTH  # width to begin with where the point may be far from the solution
    enough: float = -1.0  # sum of the losses at which to stop


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


def row_sizes(X: np.ndarray) -> np.ndarray:
    """The length of each row."""
    return np.sqrt(np.square(X).sum(axis=1))


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)
