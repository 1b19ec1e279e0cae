"""The plan of the smoothed Newton method: a sample of the rows gives the first point, the prior and the width.

S  the sample: steps from W = 0 at large widths on a few of its rows, where every row couples most classes and few
rows tell as much as many; then on all of it, at ever smaller widths
V  fresh rows say at which width the residuals are their share of ``tol``, and whether this method suits: rows that
can be separated have an empty band
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skmargin._runtime.progress import print_line
from skmargin.rows.blocks import ArrayRows, Block, BlockRows, chunks
from skmargin.rows.moments import Overview, Sample, overview

from ..._types import Rows
from ..tuning import BlocksTuning
from .descent import Descent, PassResult, Stage
from .passes import BlockProblem, Frame, SmoothPass
from .system import assemble

SampleSolver = Callable[[Sample, np.ndarray], tuple[np.ndarray, np.ndarray]]  # (rows, caps) -> W, b


class FirstPoint:
    """Takes a descent to its first point on all rows."""

    def __init__(
        self, rows: BlockRows, problem: BlockProblem, descent: Descent, seed: int, tuning: BlocksTuning
    ) -> None:
        self.rows, self.problem, self.descent, self.seed = rows, problem, descent, seed
        self.tuning = tuning
        self.separable = False
        self.width = 0.0  # for all rows

    def find(self, solve_sample: SampleSolver, start: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Draw the samples, find the point and the width."""
        if start is None and isinstance(self.rows, ArrayRows):  # rows that can be separated are refused at first sight
            some = self.rows.every(max(1, self.rows.n_rows // self.tuning.first_rows))
            self._take(overview(some, (some.n_rows, 0), 0, self.seed))
            went_well = self._from_zero()
            if self.separable or self.descent.too_hard():
                return
            first = self.descent.published()
            self._take(self._overview())
            self.descent.start_at(*first)
        else:
            self._take(self._overview())
            went_well = start is None and self._from_zero()
            if self.separable:
                return
        if start is not None:
            self.descent.start_at(*start)
        elif not (went_well and self._on_sample()) and not self.descent.too_hard():
            self.descent.start_at(*solve_sample(self.sample, self.problem.C * self.sample.inflated()))
        if not (self.separable or self.descent.too_hard()):
            self._choose_width()

    def find_anyway(self, solve_sample: SampleSolver) -> None:
        """Go on although the sample can be separated."""
        self._take(self._overview())
        self.descent.start_at(*solve_sample(self.sample, self.problem.C * self.sample.inflated()))
        self._choose_width()

    def unsuitable(self) -> str:
        """Why this method should not go on; empty if it should."""
        if self.separable:
            return "the rows can be separated, or nearly so"
        if self.descent.too_hard():
            return f"{self.descent.rejected} steps on the sample went wrong"
        if self.descent.verbose:
            print_line(
                f"blocks: sample of {len(self.sample.y)} rows, width {self.width:.2g}, {self.expected:.3g} pairs in "
                f"the band for each parameter, {self.descent.rejected} steps went wrong"
            )
        if self.expected < self.tuning.least_pairs:
            return f"{self.expected:.3g} pairs in the band for each parameter"
        return ""

    # ---- samples ----

    def _overview(self) -> Overview:
        """One pass over all rows."""
        tuning = self.tuning
        parameters = (self.descent.k - 1) * self.descent.D
        largest = max(tuning.sample_rows, tuning.sample_rows_parameter * parameters)
        size = min(largest, max(tuning.sample_rows // 2, int(tuning.sample_share * self.rows.n_rows)))
        return overview(self.rows, (size, tuning.sample_rows), tuning.class_rows, self.seed)

    def _take(self, seen: Overview) -> None:
        """Take the samples of an overview, and all that follows from them."""
        self.seen, self.sample = seen, seen.first
        self.descent.frame, self.second = frame_of(seen, self.problem)
        self.fresh = Block(seen.second.X, seen.second.y, seen.second.inflated(), 0)
        given = self.sample.X, self.sample.y, self.sample.inflated()
        self.sample_block = Block(*given, 0)
        self.sample_rows = ArrayRows(*given, self.descent.k, getattr(self.rows, "n_jobs", 1))
        self.descent.prior = self._prior()

    def _prior(self) -> np.ndarray:
        """The curvature of Weston and Watkins' loss at zero, with what features unseen in the sample would add."""
        p, k, descent = self.problem, self.descent.k, self.descent
        wide = 2.0 * k
        task = SmoothPass(
            BlockProblem(k, "sum", p.C, 1, intercept=p.intercept, constant=p.constant),
            descent.frame, np.zeros((k, descent.D)), wide, wide, single=descent.single,
        )  # fmt: skip
        sums = task.zero()
        task.add(sums, self.sample_block)
        assert sums.laplacian is not None
        weights = p.C * self.rows.class_weights
        place = 0
        for m in range(1, k):
            for l in range(m):
                diagonal = np.einsum("jj->j", sums.laplacian[place])
                floor = 0.5 * self.second * (weights[l] + weights[m]) / (2 * wide)
                diagonal[: descent.d] = np.maximum(diagonal[: descent.d], floor)
                place += 1
        return assemble(sums.laplacian, k)

    # ---- steps ----

    def _from_zero(self) -> bool:
        """Steps at large widths; whether they went well."""
        descent, tuning = self.descent, self.tuning
        descent.W = np.zeros((descent.k, descent.D))
        self.loss_at_zero = self._loss_at_zero() / float(self.sample.total.sum())
        few = self.sample_rows.every(max(1, len(self.sample.y) // tuning.first_rows))
        end = self._steps(few, tuning.first_width, tuning.coarse_width)
        self.separable = self._loss() <= self._enough()
        return end.width <= tuning.coarse_width

    def _on_sample(self) -> bool:
        """Steps on the whole sample at ever smaller widths; whether they went well."""
        descent, tuning = self.descent, self.tuning
        end = self._steps(self.sample_rows, tuning.coarse_width / 2, tuning.narrow_width)
        self.separable = self._loss() <= self._enough()
        reached = end.width <= 2 * tuning.narrow_width
        if reached and not self.separable and end.most_in_band:
            reached = self._follow_ties(end)
        else:
            reached = reached and self._loss() < self.loss_at_zero * float(self.sample.total.sum())
        descent.lam = 0.0
        return self.separable or reached

    def _steps(self, rows: ArrayRows, first: float, width: float, more: int = 1) -> PassResult:
        """As many steps as it takes to halve the width down to its goal, and one more; or several times as many."""
        steps = 2 + max(0, int(np.ceil(np.log2(first / width))))
        passes = self.tuning.most_trials
        return self.descent.run(Stage(rows, width, more * passes, more * steps, first, self._enough()))[0]

    def _follow_ties(self, end: PassResult) -> bool:
        """Go on to the final width on the sample, where most rows tie: the solution shrinks with the width."""
        self.descent.most_in_band = True
        share = self.tuning.gap_share * self.descent.tol * end.objective / max(end.sums.residual, 1e-300)
        goal = end.width * min(1.0, share)
        return self._steps(self.sample_rows, end.width / 2, goal, 2).width <= 2 * goal

    def _loss_at_zero(self) -> float:
        """Rows of a class do not differ there: one of each tells."""
        sample = self.sample
        classes, first = np.unique(sample.y, return_index=True)
        return self.descent.sum(Block(sample.X[first], sample.y[first], sample.total[classes], 0), 1.0).loss

    def _loss(self) -> float:
        return self.descent.sum(self.sample_block, 1.0).loss

    def _enough(self) -> float:
        """Loss of the sample below which the band is all but empty."""
        return self.tuning.separable_loss * self.loss_at_zero * float(self.sample.total.sum())

    def _choose_width(self) -> None:
        """What fresh rows say, and the width at which their residuals are their share of ``tol``.

        Rows of the sample sit on their kinks and would not tell.  How many of the rows lie in the band is asked at a
        width that does not depend on ``tol``.
        """
        descent, width = self.descent, self.tuning.narrow_width
        half = descent.half(descent.W)
        parameters = (descent.k - 1) * descent.D
        for look in range(2):
            found = descent.sum(self.fresh, width, width)
            if look == 0:
                self.expected = found.pairs * self.rows.n_rows / max(1, len(self.fresh.y)) / parameters
            goal = self.tuning.gap_share * descent.tol * (half + found.loss)
            ratio = float(np.sqrt(goal / max(found.residual, 1e-12 * goal, np.finfo(float).tiny)))
            width = float(np.clip(width * np.clip(ratio, 0.01, 5.0), 1e-6, 1.0))
        self.width = width
        descent.most_in_band = found.pairs > len(self.fresh.y)


def frame_of(seen: Overview, problem: BlockProblem) -> tuple[Frame, np.ndarray]:
    """Mean and scale of the features, the latter so that a typical row has reach 1; and the mean square of each."""
    d = len(seen.mean)
    centre = np.zeros(d)
    if problem.intercept == "free":
        centre = seen.mean.astype(np.float32).astype(np.float64)
    second = seen.variance + (seen.mean - centre) ** 2
    spread = np.sqrt(second)
    inverse = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
    sample = seen.first
    parts = (_dense(sample.X[rows]) for rows in chunks(len(sample.y), d))
    middle = float(np.median(np.concatenate([row_sizes((part - centre) * inverse) for part in parts])))
    return Frame(centre, inverse / middle if middle > 0 else inverse), second


def row_sizes(X: np.ndarray) -> np.ndarray:
    """The length of each row."""
    return np.sqrt(np.square(X).sum(axis=1))


def _dense(X: Rows) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)
