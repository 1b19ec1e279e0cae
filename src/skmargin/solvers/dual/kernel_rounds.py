"""A kernel machine in the making: its samples, one round on a working set, the next set, the certificate.

The problem and the method are those of kernel.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._core import _ext
from ...rows.kernel_rows import KernelRows
from .kernel_state import KernelState, coefficients
from .linear import relative_gap

FIRST, GROWTH = 1 / 32, 0.5  # share of the samples in the first set; rows added in a round, as a share of those kept
LEAST = 200  # smallest first set and smallest growth
WORTH = 0.9  # of the mean gap: a sample below does not get a row yet
LEFT = 0.02  # share of the gap that stays outside a working set
LONGER = np.array([0.5, 0.25, 0.125])  # lengths tried for the class vectors: so much of the final gap they may cost
FEW_STEPS = 32  # of a sample in a round, up to which the scores that they moved are as good as a fresh sum of rows
LINE = 64  # bytes of a line of the cache
PROXIMAL = 0.06  # t of the multipliers, in mean curvatures: smaller steps above, slow balance below
DEVIATIONS = 2  # standard ones, of a rounding error that a sample may have
ROUNDING = 0.05  # share of the final gap by which float32 may change the objective


def _aligned_zeros(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Zeros that begin with a line of the cache: steps write to them a fifth faster than to an array of NumPy."""
    size = shape[0] * shape[1]
    whole = np.zeros(size + LINE // dtype.itemsize, dtype=dtype)
    start = -whole.ctypes.data % LINE // dtype.itemsize
    return whole[start : start + size].reshape(shape)


class KernelWork:
    """Duals, scores and gaps of all samples, and one round on a working set."""

    def __init__(
        self,
        rows: KernelRows,
        y: np.ndarray,
        cap: np.ndarray,
        k: int,
        loss: tuple[str, int, float, float, np.ndarray],
        fit_intercept: bool,
        tol: float,
        state: KernelState | None,
    ) -> None:
        self.rows, self.y, self.cap, self.loss, self.tol = rows, y, cap, loss, tol
        self.longer, self.saved = 0 * LONGER, 0 * LONGER
        n = rows.n
        square, room = float(np.abs(rows.diagonal).mean()), float(cap.sum())
        # Rows that cannot move a score by a margin leave only the intercepts: steps long enough that one sample can.
        self.t = (n / room if square * room < 1e-4 else PROXIMAL * square) if fit_intercept else 0.0
        # A larger curvature than that of a row of (nearly) no length is still an ascent step.
        self.curvature = np.maximum(rows.diagonal, np.maximum(1e-12 * square, 1e-7 / cap))
        self.alpha = np.zeros((n, k)) if state is None else np.array(state.alpha, dtype=np.float64)
        self.b = np.zeros(k) if state is None or not fit_intercept else np.array(state.b, dtype=np.float64)
        self.g, self.free = np.empty(n), np.empty(n, dtype=np.uint8)
        self.n_iter = self.n_updates = 0
        self.computed_before = rows.n_computed
        self.drift = np.zeros(k)
        self.restart()

    def restart(self) -> None:
        """Scores and gaps from the duals alone."""
        c = coefficients(self.alpha, self.y)
        self.F = np.zeros((len(self.b), self.rows.n), dtype=self.rows.dtype)
        self.moved = np.zeros(len(self.b))
        support = np.flatnonzero(c.any(axis=1))
        self.rows.keep(support)
        self._add(support, c[support])
        self.tot = c.sum(axis=0)
        self.measure()
        if len(support):
            self.tune()
            self.measure()

    def _add(self, samples: np.ndarray, coef: np.ndarray) -> None:
        self.rows.add(self.F, samples, coef)
        self.moved = self.moved + np.sqrt(np.maximum(self.rows.diagonal[samples], 0)) @ np.abs(coef)

    def rounding(self) -> float:
        """Computes the scores from nothing, without the rounding of all steps; by how much the objective changes."""
        before, F = self.objective, self.F
        self.restart()
        self.drift = np.sqrt(np.square(self.F - F).mean(axis=1, dtype=np.float64))
        return abs(self.objective - before)

    def noise(self) -> float:
        """What the losses may have on top of those computed, since the scores are rounded.

        A loss with a kink near the scores of its sample rises for one sign of the error and does not fall for another;
        what other losses gain or lose adds up at random.  In float32 the numbers of the kernel matrix are rounded, each
        by itself, and their sums by as much as two of them differ, for the own class and for a rival; float64 rounds
        sums whose parts may be as large as all that was ever added to them.
        """
        square, eps = np.maximum(self.rows.diagonal, 0), np.finfo(self.rows.dtype).eps
        if self.rows.dtype == np.float32:
            number = eps**2 * (square @ coefficients(self.alpha, self.y) ** 2)
            number, drift = number + number.max(), self.drift**2 + self.drift.max() ** 2
            error = DEVIATIONS * np.sqrt(square * number[self.y] + drift[self.y])
        else:
            error = eps * np.sqrt(square) * self.moved[self.y]
        now, up, down = (self.losses(sign * error) for sign in (0, 1, -1))
        return float(0.5 * (up + down - 2 * now).sum() + 0.5 * np.linalg.norm(up - down))

    def losses(self, error: float | np.ndarray = 0.0) -> np.ndarray:
        """Of every sample, for class vectors of the best length and with an error of the score of its own class."""
        F = self.F.astype(np.float64)
        F[self.y, np.arange(self.rows.n)] += error
        F *= self.stretch
        b, values, nothing = self.stretch * self.b, np.empty_like(self.g), np.zeros(0)
        zeros, free = np.zeros_like(self.alpha), np.empty_like(self.free)  # without duals the gap is the loss
        _ext.kernel_gaps(F, zeros, self.y, self.cap, b, values, free, nothing, nothing, self.loss)
        return values

    def measure(self) -> None:
        """Gaps of all samples, the primal objective for the best length of the class vectors, the duality gap."""
        self.gap, value, dual, product = _ext.kernel_gaps(
            self.F, self.alpha, self.y, self.cap, self.b, self.g, self.free, self.longer, self.saved, self.loss
        )
        self.norm = product - self.tot @ self.b
        self.bound = dual + 0.5 * self.norm - product  # of all objectives, where the duals are balanced
        self.objective = value + 0.5 * self.norm
        change = self.saved + (self.longer + 0.5 * self.longer**2) * self.norm
        best = int(change.argmin())
        self.stretch = 1.0
        if change[best] < -0.5 * self.objective:  # a small rest would be mostly rounding
            self.take(1 + self.longer[best])
        elif change[best] < 0 < self.norm:
            self.stretch += self.longer[best]
            self.objective += change[best]
            self.gap = max(0.0, self.gap + change[best])

    def take(self, stretch: float) -> None:
        """Class vectors of this length."""
        self.stretch = stretch
        self.objective = float(self.losses().sum()) + 0.5 * stretch**2 * self.norm
        self.gap = max(0.0, self.objective - self.bound)

    def beware(self) -> float:
        """Adds what rounding may hide to the gap, and tells it, for the length with the least objective at the worst.

        Little longer class vectors take the scores of all samples away from the kinks.
        """
        trials = []
        for stretch in {self.stretch, *(1 + self.longer)}:
            self.take(stretch)
            trials.append((self.objective + self.noise(), stretch))
        worst, stretch = min(trials)
        self.take(stretch)
        self.gap = max(0.0, worst - self.bound)
        return worst - self.objective

    def tune(self) -> None:
        """Lengths to try, from the last objective; the band loss, without kinks, has no use for them."""
        tries = self.norm > 0 and self.loss[0] != "band"
        self.longer = LONGER * (min(1.0, self.tol * self.objective / self.norm) if tries else 0.0)

    def first_set(self, rng: np.random.Generator) -> np.ndarray:
        """Random samples; support vectors of a start are there from the beginning."""
        n = self.rows.n
        if self.alpha.any():
            return self.select()
        size = min(n, self.rows.limit, max(LEAST, int(FIRST * n)))
        return np.sort(rng.choice(n, size, replace=False))

    def ascend(self, W: np.ndarray, target: float, max_passes: int, seed: int) -> bool:
        """Block ascent on W, then scores and gaps of all samples.  True if W stopped short of its target."""
        rows = self.rows
        rows.keep(W)
        matrix, row, column = rows.within(W)
        whole = len(column) > 0  # the steps move the scores of all samples
        F = _aligned_zeros((len(self.F), matrix.shape[1]), rows.dtype)
        F[:, : rows.n if whole else len(W)] = self.F if whole else self.F[:, W]
        alpha = self.alpha[W]
        trials = slice(None if self.stretch > 1 else 0)  # what saves nothing now will not soon
        gap, passes, updates = _ext.kernel_ascent(
            matrix,
            row,
            column,
            F,
            alpha,
            self.y[W],
            self.cap[W],
            self.curvature[W],
            self.b,
            self.tot,
            self.t,
            self.longer[trials],
            self.saved[trials],
            self.norm,
            target,
            max_passes,
            seed,
            self.loss_of(W),
        )
        self.n_iter += passes
        self.n_updates += updates
        if whole and updates <= FEW_STEPS * len(W) and rows.dtype == np.float32:
            self.F, self.alpha[W] = F, alpha
        else:
            del F
            changed = np.flatnonzero((alpha != self.alpha[W]).any(axis=1))
            W, alpha = W[changed], alpha[changed]
            step = coefficients(alpha - self.alpha[W], self.y[W])
            self.alpha[W] = alpha
            self._add(W, step)
        self.tune()
        self.measure()
        return gap > target and passes < max_passes

    def loss_of(self, W: np.ndarray) -> tuple[str, int, float, float, np.ndarray]:
        """The loss of the samples ``W``."""
        name, K, mu, theta, rivals = self.loss
        return name, K, mu, theta, rivals[W] if len(rivals) else rivals

    def select(self) -> np.ndarray:
        """The next working set."""
        if self.rows.n <= min(LEAST, self.rows.limit):
            return np.arange(self.rows.n)
        kept = self.rows.has()
        order = np.flatnonzero(self.g)
        order = order[np.argsort(self.g[order])]
        total = self.g.sum()
        order = order[np.cumsum(self.g[order]) > LEFT * total]  # what is left out carries nearly nothing of the gap
        has = kept[order]
        size = max(LEAST, int(GROWTH * kept.sum()))
        chosen = self.free.astype(bool)
        chosen[order[has]] = True
        new = order[~has]
        chosen[new[self.g[new] > WORTH * total / self.rows.n][-size:]] = True
        W = np.flatnonzero(chosen)
        if len(W) > self.rows.limit:
            W = np.sort(W[np.argpartition(self.g[W], -self.rows.limit)[-self.rows.limit :]])
        return W

    def certify(self, goal: Callable[[], float], last: bool) -> bool:
        """Whether the gap holds for duals that satisfy every constraint; with an intercept they are balanced first.

        It must not be rounding either: where the losses of float32 are, rows become float64; what the sums of float64
        may hide is part of the gap, and where that is too much, passes are of no use any more.
        """
        before, hidden = (self.alpha, self.F, self.tot, self.b, self.moved), 0.0
        if self.t > 0:
            self.balance()
        if self.noise() > ROUNDING * goal():
            if self.rows.dtype == np.float32:
                self.rows.promote()
            self.restart()
            hidden = self.beware()
        if self.gap <= goal() or hidden > goal() or last:
            return True
        self.alpha, self.F, self.tot, self.b, self.moved = before
        if self.F.dtype == self.rows.dtype:
            self.measure()
        else:
            self.restart()
        return False

    def balance(self) -> None:
        """Duals that satisfy sum_i c_il = 0, and intercepts that suit them."""
        alpha, F = self.alpha, self.F
        self.alpha, self.F = alpha.copy(), F.copy()
        _ext.kernel_balance(self.F, self.alpha, self.y, self.cap, self.b, self.loss)
        step = coefficients(self.alpha - alpha, self.y)
        changed = np.flatnonzero(step.any(axis=1))
        self._add(changed, step[changed])
        self.tot = np.zeros_like(self.tot)
        if self.free.any():  # what moved the scores of all samples alike is taken back
            inside = self.free.astype(bool)
            self.b = self.b - (self.F - F)[:, inside].mean(axis=1)
        self.measure()

    def result(self) -> KernelState:
        """The machine as it is."""
        gap = relative_gap(self.objective, self.gap)
        computed = self.rows.n_computed - self.computed_before
        return KernelState(
            self.alpha, self.b, self.objective, gap, self.n_iter, self.F, self.n_updates, computed, self.stretch
        )
