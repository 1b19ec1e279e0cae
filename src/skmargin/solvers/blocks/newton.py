"""Smoothed Newton steps over blocks of rows: few parameters, any number of rows.

    primal  min_{W,b}  P = 1/2 ||W||^2 + C sum_i s_i loss(f_i),  f_i = W x_i + b
    smooth  phi_w: each loss less w times a strictly convex function of its duals (_core/blocks/smooth_losses.hpp)
    step    (R + L + lambda L0) s = -gradient of phi_w                                       (system.py)
    gap     P - D = sum of residuals + 1/2 ||gradient||^2, after the intercept is repaired   (repair.py)

There is no state for each row: duals are a function of (W, b, w), and a pass is one sum over rows, wherever they lie.
The residuals shrink with the square of w, so that a small multiple of sqrt(tol) is enough, and a handful of steps.

plan    a sample of the rows gives the prior L0 and, by steps from zero, the first point         (first_point.py)
stages  steps on all rows                                                                        (descent.py)
certify in double precision from the rows as given

given    rows in blocks, a problem, a function that solves the sample where steps from zero fail, perhaps the point of
         an earlier solve
returned the point, its objective and certified gap; or why this method does not suit
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skmargin._runtime.progress import report_gap
from skmargin._runtime.threads import blas_threads
from skmargin.rows.blocks import BlockRows
from skmargin.rows.moments import Sample, Sizes

from ..tuning import DEFAULT, BlocksTuning
from .descent import Descent, PassResult, SavePoint, Stage
from .first_point import FirstPoint, SampleSolver
from .passes import BlockProblem
from .repair import Repair

DOUBLE_TOL = 9e-6  # below it rounding needs passes in float64: a solver is asked for a little less than tol


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


def solve_blocks(
    rows: BlockRows,
    problem: BlockProblem,
    solve_sample: SampleSolver,
    *,
    tol: float = 1e-3,
    max_passes: int = DEFAULT.blocks.most_passes,
    seed: int = 0,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    force: bool = False,
    verbose: int = 0,
    save: SavePoint | None = None,
    worth: float = np.inf,
    tuning: BlocksTuning = DEFAULT.blocks,
) -> BlockState | Refused:
    """Solve to a relative duality gap of ``tol``; see the head of this file.

    ``start`` is a point (W, b) of a related problem; ``force`` goes on whatever the sample says; ``save`` is given each
    point that is better than those before; ``worth`` is what the other methods are expected to cost, beside this one
    where its steps are hard.
    """
    with blas_threads(1):
        descent = Descent(problem, rows.n_features, problem.C * float(rows.class_weights.sum()), tol, tuning)
        descent.single, descent.verbose, descent.save, descent.worth = tol >= DOUBLE_TOL, verbose, save, worth
        first = FirstPoint(rows, problem, descent, seed, tuning)
        first.find(solve_sample, start)
        reason = first.unsuitable()
        if reason and not force:
            return Refused(reason)
        if first.separable:
            first.find_anyway(solve_sample)
        certify = Certify(rows, descent, first.sample, first.seen.sizes())
        stage = Stage(rows, first.width, max_passes, max_passes, certify=certify)
        here, state = descent.run(stage)
        if isinstance(state, BlockState):
            return state
        return Refused(f"not certified after {descent.passes} passes", certify.state(here, 1.0))


class Certify:
    """The certificate of a point on all rows."""

    def __init__(self, rows: BlockRows, descent: Descent, sample: Sample, sizes: Sizes) -> None:
        self.rows, self.descent, self.sample, self.sizes = rows, descent, sample, sizes

    def __call__(self, here: PassResult) -> BlockState | None:
        """The state, if the gap of this point is below ``tol`` in double precision."""
        descent, tol = self.descent, self.descent.tol
        bound = here.sums.residual + descent.half(here.gradient)
        report_gap(min(1.0, bound / max(here.objective, np.finfo(float).tiny)), tol)
        if bound > tol * here.objective:
            return None
        task = descent.task(here.W, here.width, 0.0)
        repair = Repair(task, self.sample)
        gap = repair.gap(here.sums)
        if gap > tol * here.objective:
            return None
        if not descent.single:
            return self.state(here, gap / here.objective)
        sums = self.rows.map_sum(task.at(single=False))
        descent.passes += 1
        objective = descent.half(here.W) + sums.loss
        gap = repair.gap(sums)
        if gap > tol * objective:
            descent.single = False  # float32 was too coarse for these rows
            return None
        return self.state(here, gap / objective, objective)

    def state(self, here: PassResult, gap: float, objective: float | None = None) -> BlockState:
        """What is found at a point."""
        descent = self.descent
        descent.W = here.W
        objective = here.objective if objective is None else objective
        return BlockState(
            *descent.published(), here.width, objective, gap, descent.passes, descent.problem.C, self.sizes
        )  # fmt: skip
