"""State of the working-set method of kernel.py: duals and scores, one round, the next set, the certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._core import _ext
from ...rows.kernel_rows import KernelRows
from ..tuning import Tuning
from .state import KernelState, coefficients, relative_gap

STRETCHES = np.array([0.5, 0.25, 0.125])  # lengths tried for the class vectors, as shares of what costs the final gap
CACHE_LINE_BYTES = 64
ROUNDING_DEVIATIONS = 2  # standard deviations of the rounding error that is allowed for
FLOAT32_GAP_SHARE = 0.05  # share of the final gap by which float32 may change the objective


def _aligned_zeros(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Zeros aligned to a cache line: steps write to them a fifth faster than to an array of NumPy."""
    size = shape[0] * shape[1]
    whole = np.zeros(size + CACHE_LINE_BYTES // dtype.itemsize, dtype=dtype)
    start = -whole.ctypes.data % CACHE_LINE_BYTES // dtype.itemsize
    return whole[start : start + size].reshape(shape)


class LossSpec(NamedTuple):
    """The loss as the core takes it: its name, and what belongs to "top" and to "odm"."""

    name: str
    top_k: int = 1
    mu: float = 0.0
    theta: float = 0.0
    rivals: np.ndarray = np.zeros(0, np.int32)  # fixed rivals, one a sample; empty with mu = 0

    def of(self, samples: np.ndarray) -> LossSpec:
        """The loss of some samples."""
        return self._replace(rivals=self.rivals[samples]) if len(self.rivals) else self

    def core(self, y: np.ndarray, cap: np.ndarray, n_classes: int) -> _ext.Problem:
        """The problem of samples with these labels and caps."""
        return _ext.Problem(
            y, cap, n_classes, self.name, top_k=self.top_k, mu=self.mu, theta=self.theta, fixed_rivals=self.rivals
        )


class WorkingSetAscent:
    """Duals, scores and gaps of all samples, and rounds of block ascent on working sets."""

    def __init__(
        self,
        rows: KernelRows,
        y: np.ndarray,
        cap: np.ndarray,
        k: int,
        loss: LossSpec,
        fit_intercept: bool,
        tol: float,
        state: KernelState | None,
        tuning: Tuning,
    ) -> None:
        self.rows, self.y, self.cap, self.loss, self.tol, self.tuning = rows, y, cap, loss, tol, tuning
        self.problem = loss.core(y, cap, k)
        self.extra_lengths, self.savings = 0 * STRETCHES, 0 * STRETCHES
        n = rows.n
        square, total_cap = float(np.abs(rows.diagonal).mean()), float(cap.sum())
        self.proximal = 0.0
        if fit_intercept:
            # Where the rows cannot move a score by a margin, only the intercepts can: one sample must move them enough.
            self.proximal = n / total_cap if square * total_cap < 1e-4 else tuning.kernel.proximal * square
        # A lower bound for rows of (nearly) zero length; a larger curvature still gives an ascent step.
        self.curvature = np.maximum(rows.diagonal, np.maximum(1e-12 * square, 1e-7 / cap))
        self.alpha = np.zeros((n, k)) if state is None else np.array(state.alpha, dtype=np.float64)
        self.b = np.zeros(k) if state is None or not fit_intercept else np.array(state.b, dtype=np.float64)
        self.sample_gaps, self.free = np.empty(n), np.empty(n, dtype=np.uint8)
        self.n_iter = self.n_updates = 0
        self.computed_before = rows.n_computed
        self.score_drift = np.zeros(k)
        self.restart()

    def restart(self) -> None:
        """Compute scores and gaps anew from the duals."""
        c = coefficients(self.alpha, self.y)
        self.F = np.zeros((len(self.b), self.rows.n), dtype=self.rows.dtype)
        self.score_mass = np.zeros(len(self.b))
        support = np.flatnonzero(c.any(axis=1))
        self.rows.keep(support)
        self._add(support, c[support])
        self.coef_sum = c.sum(axis=0)
        self.evaluate()
        if len(support):
            self.choose_stretches()
            self.evaluate()

    def promote(self) -> None:
        """Go on in float64."""
        self.rows.promote()
        self.restart()

    def _add(self, samples: np.ndarray, coef: np.ndarray) -> None:
        self.rows.add(self.F, samples, coef)
        self.score_mass = self.score_mass + np.sqrt(np.maximum(self.rows.diagonal[samples], 0)) @ np.abs(coef)

    def recompute_scores(self) -> float:
        """Compute the scores anew, without the rounding of the steps; returns the change of the objective."""
        before, F = self.objective, self.F
        self.restart()
        self.score_drift = np.sqrt(np.square(self.F - F).mean(axis=1, dtype=np.float64))
        return abs(self.objective - before)

    def rounding_in_losses(self) -> float:
        """Bound on what the rounding of the scores may add to the sum of the losses.

        Near a kink a loss rises for one sign of the error and does not fall for the other; elsewhere gains and losses
        add up at random.  In float32 the entries of the kernel matrix are rounded independently, and sums by as much as
        two computations of them differ, for the own class and a rival.  In float64 the rounding of a sum is
        proportional to all that was ever added to it, the intercept last.
        """
        square, eps = np.maximum(self.rows.diagonal, 0), np.finfo(self.rows.dtype).eps
        if self.rows.dtype == np.float32:
            number = eps**2 * (square @ coefficients(self.alpha, self.y) ** 2)
            number, score_drift = number + number.max(), self.score_drift**2 + self.score_drift.max() ** 2
            error = ROUNDING_DEVIATIONS * np.sqrt(square * number[self.y] + score_drift[self.y])
            values = 0.0
        else:
            steps = eps * self.rows.value_steps
            error = steps * np.sqrt(square) * self.score_mass[self.y] + 4 * eps * float(np.abs(self.b).max())
            sizes = np.sqrt(square) @ np.abs(coefficients(self.alpha, self.y))
            values = steps * float(sizes @ sizes)  # of c'Kc in the objective and in the bound
        now, up, down = (self.losses(sign * error) for sign in (0, 1, -1))
        return values + float(0.5 * (up + down - 2 * now).sum() + 0.5 * np.linalg.norm(up - down))

    def losses(self, error: float | np.ndarray = 0.0) -> np.ndarray:
        """Loss of every sample for the stretched class vectors; ``error`` is added to the score of its own class."""
        F = self.F.astype(np.float64)
        F[self.y, np.arange(self.rows.n)] += error
        F *= self.stretch
        b, values, nothing = self.stretch * self.b, np.empty_like(self.sample_gaps), np.zeros(0)
        zeros, free = np.zeros_like(self.alpha), np.empty_like(self.free)  # without duals the gap is the loss
        _ext.kernel_gaps(
            F, zeros, self.problem, shift=b, gap_of=values, free=free, stretches=nothing, savings=nothing
        )  # fmt: skip
        return values

    def evaluate(self) -> None:
        """Gaps of all samples; objective and duality gap for the best of the lengths tried for the class vectors."""
        sums = _ext.kernel_gaps(
            self.F,
            self.alpha,
            self.problem,
            shift=self.b,
            gap_of=self.sample_gaps,
            free=self.free,
            stretches=self.extra_lengths,
            savings=self.savings,
        )
        self.gap = sums.gap
        self.norm = sums.product - self.coef_sum @ self.b
        self.bound = sums.dual + 0.5 * self.norm - sums.product  # lower bound, valid where sum_i c_il = 0
        self.objective = sums.value + 0.5 * self.norm
        change = self.savings + (self.extra_lengths + 0.5 * self.extra_lengths**2) * self.norm
        best = int(change.argmin())
        self.stretch = 1.0
        if change[best] < -0.5 * self.objective:  # a small difference of large numbers
            self.set_stretch(1 + self.extra_lengths[best])
        elif change[best] < 0 < self.norm:
            self.stretch += self.extra_lengths[best]
            self.objective += change[best]
            self.gap = max(0.0, self.gap + change[best])

    def set_stretch(self, stretch: float) -> None:
        """Objective and gap for class vectors ``stretch`` times as long."""
        self.stretch = stretch
        self.objective = float(self.losses().sum()) + 0.5 * stretch**2 * self.norm
        self.gap = max(0.0, self.objective - self.bound)

    def add_rounding_to_gap(self) -> float:
        """Add to the gap what rounding may hide; returns that amount.

        Of the lengths tried the one with the smallest worst-case objective is taken: slightly longer class vectors move
        scores away from the kinks.
        """
        trials = []
        for stretch in {self.stretch, *(1 + self.extra_lengths)}:
            self.set_stretch(stretch)
            trials.append((self.objective + self.rounding_in_losses(), stretch))
        worst, stretch = min(trials)
        self.set_stretch(stretch)
        self.gap = max(0.0, worst - self.bound)
        return worst - self.objective

    def choose_stretches(self) -> None:
        """Lengths to try next, from the last objective; the loss of ODM has no kinks and needs none."""
        longest = 0.0
        if self.norm > 0 and self.loss.name != "odm":
            longest = min(1.0, self.tol * self.objective / self.norm)
        self.extra_lengths = longest * STRETCHES

    def first_set(self, rng: np.random.Generator) -> np.ndarray:
        """Random samples; from a warm start the set that its gaps select."""
        n = self.rows.n
        if self.alpha.any():
            return self.select()
        size = min(n, self.rows.limit, self.tuning.kernel.min_set)
        return np.sort(rng.choice(n, size, replace=False))

    def ascend(self, W: np.ndarray, target: float, max_passes: int, seed: int) -> bool:
        """Block ascent on W, then scores and gaps of all samples; whether it stalled above its target."""
        rows = self.rows
        rows.keep(W)
        matrix, row, column = rows.within(W)
        whole = len(column) > 0  # matrix has whole rows: steps update the scores of all samples
        F = _aligned_zeros((len(self.F), matrix.shape[1]), rows.dtype)
        F[:, : rows.n if whole else len(W)] = self.F if whole else self.F[:, W]
        alpha = self.alpha[W]
        trials = slice(None if self.stretch > 1 else 0)  # lengths that do not help now will not help soon
        out = _ext.kernel_ascent(
            matrix,
            row,
            column,
            F,
            alpha,
            self.loss.of(W).core(self.y[W], self.cap[W], len(self.F)),
            curvature=self.curvature[W],
            b=self.b,
            tot=self.coef_sum,
            t=self.proximal,
            stretches=self.extra_lengths[trials],
            savings=self.savings[trials],
            norm=self.norm,
            target=target,
            max_iter=max_passes,
            seed=seed,
        )
        self.n_iter += out.n_iter
        self.n_updates += out.n_updates
        if whole and rows.dtype == np.float32:
            self.F, self.alpha[W] = F, alpha
        else:
            del F
            changed = np.flatnonzero((alpha != self.alpha[W]).any(axis=1))
            W, alpha = W[changed], alpha[changed]
            step = coefficients(alpha - self.alpha[W], self.y[W])
            self.alpha[W] = alpha
            self._add(W, step)
        self.choose_stretches()
        self.evaluate()
        return out.gap > target and out.n_iter < max_passes

    def select(self) -> np.ndarray:
        """The next working set."""
        if self.rows.n <= min(self.tuning.kernel.min_set, self.rows.limit):
            return np.arange(self.rows.n)
        kept = self.rows.has()
        order = np.flatnonzero(self.sample_gaps)
        order = order[np.argsort(self.sample_gaps[order])]
        total = self.sample_gaps.sum()
        order = order[np.cumsum(self.sample_gaps[order]) > self.tuning.kernel.gap_left_out * total]
        has = kept[order]
        size = max(self.tuning.kernel.min_set, int(self.tuning.kernel.set_growth * kept.sum()))
        chosen = self.free.astype(bool)
        chosen[order[has]] = True
        new = order[~has]
        chosen[new[self.sample_gaps[new] > total / self.rows.n][-size:]] = True
        W = np.flatnonzero(chosen)
        if len(W) > self.rows.limit:
            W = np.sort(W[np.argpartition(self.sample_gaps[W], -self.rows.limit)[-self.rows.limit :]])
        return W

    def certify(self, goal: Callable[[], float], last: bool) -> bool:
        """Whether the gap holds for feasible duals; with an intercept they are made feasible first.

        Where the rounding of float32 could be a large part of the goal, rows become float64.  What the rounding of
        float64 may hide is added to the gap; where that alone exceeds the goal, more passes are useless.
        """
        before, hidden = (self.alpha, self.F, self.coef_sum, self.b, self.score_mass), 0.0
        if self.proximal > 0:
            self.balance()
        if self.rounding_in_losses() > FLOAT32_GAP_SHARE * goal():
            if self.rows.dtype == np.float32:
                self.rows.promote()
            self.restart()
            hidden = self.add_rounding_to_gap()
        if self.gap <= goal() or hidden > goal() or last:
            return True
        self.alpha, self.F, self.coef_sum, self.b, self.score_mass = before
        if self.F.dtype == self.rows.dtype:
            self.evaluate()
        else:
            self.restart()
        return False

    def balance(self) -> None:
        """Make the duals satisfy sum_i c_il = 0 and shift the intercepts to match."""
        alpha, F = self.alpha, self.F
        self.alpha, self.F = alpha.copy(), F.copy()
        _ext.kernel_circulation(self.F, self.alpha, self.problem, self.b)
        step = coefficients(self.alpha - alpha, self.y)
        changed = np.flatnonzero(step.any(axis=1))
        self._add(changed, step[changed])
        self.coef_sum = np.zeros_like(self.coef_sum)
        if self.free.any():  # a shift common to all samples goes to the intercepts
            inside = self.free.astype(bool)
            self.b = self.b - (self.F - F)[:, inside].mean(axis=1)
        self.evaluate()

    def result(self) -> KernelState:
        """The current point."""
        gap = relative_gap(self.objective, self.gap)
        computed = self.rows.n_computed - self.computed_before
        return KernelState(
            self.alpha, self.b, self.objective, gap, self.n_iter, self.F, self.n_updates, computed, self.stretch
        )
