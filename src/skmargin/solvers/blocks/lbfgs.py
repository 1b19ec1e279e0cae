"""Limited-memory BFGS on the smoothed problem, for rows in blocks with very many columns: a round sums k d numbers.

    smooth  phi_w(W, b) = 1/2 ||W||^2 + C sum_i s_i loss_w(W x_i + b)
    step    two-loop recursion over the last pairs, from a diagonal that a sample of the rows gives
    gap     P - D = sum of residuals + 1/2 ||gradient||^2, after the intercept is repaired as in repair.py; the duals of
            all rounds raise one bound: their gradients point to all sides, and the best average of them does not

The width follows the residuals, as in newton.py: their sum shrinks with its square, and they may use `gap_share` of
``tol``.  A larger width comes first: the problem is the easier the wider it is.

given    rows in blocks (CSR), a problem, a first point
returned the point, its objective and certified gap
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from scipy import sparse

from ..._runtime.progress import print_line, report_gap
from ...rows.blocks import Block, BlockRows
from ...rows.moments import Overview
from ..tuning import DEFAULT
from .descent import SavePoint
from .gradient import GradientPass, balanced, of_scores
from .newton import BlockState
from .passes import BlockProblem, PassSums

# Set by hand on one generated text (50,000 x 20,000, 20 classes); a wrong one costs rounds, never the certificate.
MEMORY = 20  # pairs
PROBE_WIDTH = 0.1  # of the round that tells the others
FIRST_WIDTH = 8.0  # times the last one
NARROWER = 0.5  # from one width to the next, once the gradient is small beside the residuals
SUFFICIENT = 1e-4  # share of the slope by which a step must lower the objective
MOST_ROUNDS = 400


def solve_gradients(
    rows: BlockRows,
    problem: BlockProblem,
    seen: Overview,
    start: tuple[np.ndarray, np.ndarray],
    *,
    tol: float,
    max_rounds: int = MOST_ROUNDS,
    verbose: int = 0,
    save: SavePoint | None = None,
) -> BlockState:
    """Solve to a relative duality gap of ``tol``; see the head of this file.

    ``save`` is given each point that is better than those before.
    """
    run = _Run(rows, problem, seen, tol, verbose)
    return run.descend(start, max_rounds, save)


class _Run:
    """The state of a solve: the point, the pairs, the width; a round over the rows is a sum."""

    def __init__(self, rows: BlockRows, problem: BlockProblem, seen: Overview, tol: float, verbose: int) -> None:
        self.rows, self.problem, self.seen, self.tol, self.verbose = rows, problem, seen, tol, verbose
        self.sample = sample = seen.first
        self.block = Block(sample.X, sample.y, sample.inflated(), 0)
        self.free = problem.intercept == "free"
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=MEMORY)
        self.rounds = 0
        self.bound = Bound((problem.n_classes, rows.n_features))

    def descend(self, start: tuple[np.ndarray, np.ndarray], max_rounds: int, save: SavePoint | None) -> BlockState:
        """Steps at widths that fall until the gap is certified, or rounds are used up."""
        theta = np.column_stack(start)
        if not self.free:
            theta[:, -1] = 0.0
        here = best = self._round(theta, PROBE_WIDTH)
        width = min(1.0, FIRST_WIDTH * self._wanted(here))
        inverse = self._diagonal(theta, width)
        here = self._round(theta, width)
        while True:
            theta, width, sums, _, gradient = here
            objective = self._primal(here)
            best = here if objective <= self._primal(best) else best
            self._raise_bound(here)
            gap = self._primal(best) - self.bound.value
            report_gap(min(1.0, gap / objective), self.tol)
            if self.verbose:
                half = 0.5 * float(np.square(gradient[:, :-1]).sum())
                print_line(
                    f"blocks: round {self.rounds}, objective {objective:.6g}, width {width:.2g}, residuals "
                    f"{sums.residual / objective:.1e}, gradient {half / objective:.1e}, gap {gap / objective:.1e}"
                )
            if gap <= self.tol * self._primal(best) or self.rounds >= max_rounds:
                break
            wanted = self._wanted(here)
            if gap <= 2 * sums.residual and wanted < 0.95 * width:
                width = max(wanted, NARROWER * width)
                inverse = self._diagonal(theta, width)
                here = self._round(theta, width)  # the pairs stay: curvature changes little beside what they tell
                continue
            following = self._step(here, inverse)
            if following is None:
                break
            here = following
            if save is not None:
                save(here[0][:, :-1], here[0][:, -1])
        theta, width, *_ = best
        objective = self._primal(best)
        gap = min(1.0, (objective - self.bound.value) / objective)
        single = self.block.X.dtype == np.float32
        return BlockState(
            theta[:, :-1].copy(), theta[:, -1].copy(), width, objective, gap, self.rounds, self.problem.C,
            self.seen.sizes(), single,
        )  # fmt: skip

    def _step(self, here: Any, inverse: np.ndarray) -> Any:
        """The next point, or None where no step lowers the objective."""
        theta, width, _, value, gradient = here
        direction = -self._times_inverse(gradient, inverse)
        slope = float(np.vdot(direction, gradient))
        if slope >= 0:
            self.pairs.clear()
            direction = -inverse * gradient
            slope = float(np.vdot(direction, gradient))
        length = 1.0
        for _ in range(12):
            trial = self._round(theta + length * direction, width)
            now = float(np.vdot(trial[4], direction))
            if trial[3] <= value + SUFFICIENT * length * slope:
                move, change = length * direction, trial[4] - gradient
                curvature = float(np.vdot(move, change))
                if curvature > 1e-10 * float(np.vdot(change, change)):
                    self.pairs.append((move.astype(np.float32), change.astype(np.float32), curvature))
                return trial
            # The cubic's minimum would need the same two slopes; the secant of the slopes is as good near a minimum.
            length *= float(np.clip(slope / (slope - now), 0.1, 0.5)) if now > slope else 0.5
        return None

    def _times_inverse(self, gradient: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        """The two-loop recursion (Nocedal 1980)."""
        q, factors = gradient.copy(), []
        for move, change, curvature in reversed(self.pairs):
            factors.append(float(np.vdot(move, q)) / curvature)
            q -= factors[-1] * change
        scale = 1.0
        if self.pairs:
            _, change, curvature = self.pairs[-1]
            scale = curvature / max(float(np.vdot(change, inverse * change)), np.finfo(float).tiny)
        q *= scale * inverse
        for (move, change, curvature), factor in zip(self.pairs, reversed(factors), strict=True):
            q += (factor - float(np.vdot(change, q)) / curvature) * move
        return q

    def _round(self, theta: np.ndarray, width: float) -> tuple[np.ndarray, float, PassSums, float, np.ndarray]:
        sums = self.rows.map_sum(self._task(theta, width))
        self.rounds += 1
        gradient = -sums.gradient
        gradient[:, :-1] += theta[:, :-1]
        if not self.free:
            gradient[:, -1] = 0.0
        return theta, width, sums, self._half(theta) + sums.smooth, gradient

    def _task(self, theta: np.ndarray, width: float) -> GradientPass:
        return GradientPass(self.problem, theta[:, :-1].astype(self.block.X.dtype), theta[:, -1], width)

    @staticmethod
    def _half(theta: np.ndarray) -> float:
        return 0.5 * float(np.square(theta[:, :-1]).sum())

    def _diagonal(self, theta: np.ndarray, width: float) -> np.ndarray:
        """Inverse of the diagonal of the Hessian, as the sample tells it."""
        task = of_scores(self.problem, width)
        X, d = self.block.X, theta.shape[1] - 1
        scores = np.asarray(X @ theta[:, :-1].T) + theta[:, -1]
        start, _, alpha = task.duals(self.block._replace(X=scores))
        cap = self.problem.C * self.block.weight
        inside = (alpha > 0) & (alpha < np.repeat(cap, np.diff(start)))
        row = np.repeat(np.arange(len(cap)), np.diff(start))[inside]
        curved = np.bincount(row, minlength=len(cap)) * cap / (2 * width)
        squares = X.astype(np.float64)
        squares = squares.power(2) if sparse.issparse(squares) else np.square(squares)
        diagonal = np.ones((len(theta), d + 1))
        diagonal[:, :-1] += 2 * np.asarray(curved @ squares) / len(theta)
        diagonal[:, -1] = max(1e-12, 2 * float(curved.sum()) / len(theta)) if self.free else 1.0
        return 1 / diagonal

    def _wanted(self, here: Any) -> float:
        """The width at which the residuals are their share of ``tol``."""
        _, width, sums, *_ = here
        return width * float(
            np.sqrt(DEFAULT.blocks.gap_share * self.tol * self._primal(here) / max(sums.residual, 1e-300))
        )

    def _primal(self, here: Any) -> float:
        return self._half(here[0]) + here[2].loss

    def _raise_bound(self, here: Any) -> None:
        """Let the duals of a round raise the lower bound: those of the bound move towards them as far as it pays."""
        theta, width, sums, *_ = here
        W, gradient, residual = theta[:, :-1], sums.gradient[:, :-1], sums.residual
        if self.free:
            block = Block(self.sample.X, self.sample.y, self.sample.weight, 0)
            scores = np.asarray(block.X @ W.T) + theta[:, -1]
            caps = self.problem.C * self.sample.total
            found = balanced(self.problem, width, block, scores, sums.gradient[:, -1], caps)
            if found is None:
                return
            more, moved = found  # of the sample: more residual, and other coefficients
            residual, gradient = residual + more, gradient + (block.X.T @ moved).T
        # P - D = residual + 1/2 ||W - gradient||^2, and D is linear in the duals but for the square of the gradient.
        terms = np.array([self._primal(here), -residual, -self._half(theta), float(np.vdot(W, gradient))])
        linear = float(terms.sum() - 8 * np.finfo(float).eps * np.abs(terms).sum())  # less its rounding
        self.bound.rise(linear, gradient)


class Bound:
    """A lower bound of the minimum: duals of which only their linear part and ``sum_i c_i x_i'`` are kept.

    The average of duals is one: the bound of the best point between the duals so far and new ones is a parabola.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.linear, self.gradient = 0.0, np.zeros(shape)

    @property
    def value(self) -> float:
        """The bound; zero for no duals."""
        return self.linear - 0.5 * float(np.vdot(self.gradient, self.gradient))

    def rise(self, linear: float, gradient: np.ndarray) -> None:
        """Move towards other duals."""
        change = gradient - self.gradient
        slope = linear - self.linear - float(np.vdot(change, self.gradient))
        share = float(np.clip(slope / max(float(np.vdot(change, change)), 1e-300), 0.0, 1.0))
        self.linear += share * (linear - self.linear)
        self.gradient = self.gradient + share * change
