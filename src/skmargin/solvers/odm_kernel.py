"""Inner problems of the kernel optimal margin distribution machine (odm.py), by two gears.

`KernelInner`   block ascent on a growing working set (kernel_blocks.py)
`FactorInner`   the linear machine on the rows of a factor R of the kernel matrix, K = R R', by Newton steps: few rows
                or a kernel matrix of low rank, where block ascent crawls

Newton steps see centred rows of R, whose scores keep digits that those of the published coefficients, K c + b, lose
where K is large and c nearly cancels.  So their gap only steers; objective and gap told are those of K c + b, and what
its rounding may hide is part of the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skmargin._core import _ext
from skmargin.kernels._rows import KernelRows

from .dual_blocks import COLD_STEPS, all_but_reserve, newton_step, relative_gap
from .kernel_blocks import KernelState, coefficients, solve_kernel
from .kernel_factor import can_factor, factor
from .odm import Descent, Effort, Machine, best_of
from .odm_linear import NEWTON_PARAMETERS, LinearPoint, NewtonInner
from .primal_factor import pivoted

PATIENCE = 100  # block steps for each row after which a small kernel matrix is factored
CARE = 1.0, 1e-2, 1e-4  # of Newton steps, until what is published reaches the gap as well


@dataclass(frozen=True)
class KernelPoint:
    """Duals, intercepts and scores of the training rows, for the weights ``cap``."""

    state: KernelState
    y: np.ndarray
    cap: np.ndarray


class KernelInner:
    """Block ascent."""

    def __init__(self, rows: KernelRows, machine: Machine, seed: int, start: KernelPoint | None = None) -> None:
        self.rows, self.machine, self.seed, self.n_iter = rows, machine, seed, 0
        self.budget = PATIENCE * rows.n if can_factor(rows) else np.inf  # block steps left before the next gear
        self.R: np.ndarray | None = None
        self.state: KernelState | None = None
        self.ratio: Any = 1.0  # by which the weights have grown since
        if start is not None:
            self.ratio = (machine.cap / start.cap)[:, None]
            self._set(replace(start.state, b=machine.intercepts(start.state.b)))

    def _set(self, state: KernelState) -> None:
        self.state, (self.scores, self.half_norm) = state, scores_and_half_norm(state, self.machine.y)

    def solve(self, mu: float, rivals: np.ndarray, tol: float, share: float, reference: float, max_iter: int) -> bool:
        """See `Inner`."""
        machine, state, moved = self.machine, self.state, None
        if state is not None:  # negative duals belong to the fixed rivals
            old = self.ratio * state.alpha
            alpha = np.maximum(0, old)
            if len(rivals):
                alpha[np.arange(len(rivals)), rivals] += np.minimum(0, old).sum(axis=1)
                moved = np.flatnonzero((alpha != old).any(axis=1))
            state, self.ratio = replace(state, alpha=alpha), 1.0
        last = max_iter if self.budget == np.inf else all_but_reserve(max_iter)
        state = solve_kernel(
            self.rows, machine.y, machine.cap, machine.n_classes, "band", mu=mu, theta=machine.theta, rivals=rivals,
            fit_intercept=machine.fit_intercept, tol=tol, share=share, reference=reference,
            max_iter=max(1, last - self.n_iter), random_state=self.seed + self.n_iter, state=state,
            spoilt=moved, max_updates=self.budget,
        )  # fmt: skip
        self.n_iter += state.n_iter
        self.budget -= state.n_updates
        self.objective, self.gap = state.objective, state.gap * state.objective
        self._set(state)
        return self.gap <= max(tol * self.objective, share * (reference - self.objective))

    def next_gear(self) -> KernelInner | FactorInner | None:
        """Block ascent again, for as long as Newton steps on the factor would take, and then these.

        There is nothing after block ascent if there is no factor, or none that is small enough for them.
        """
        if self.budget == np.inf:
            return None
        if self.R is None:
            self.R = small_factor(self.rows, self.machine.n_classes)
            self.budget = np.inf if self.R is None else newton_updates(self.R, self.machine.n_classes)
            return self
        assert self.state is not None
        gear = FactorInner(self.rows, self.R, self.machine, self.seed, self.state)
        gear.n_iter = self.n_iter
        return gear

    def point(self) -> KernelPoint:
        """Where the last solve ended."""
        assert self.state is not None
        return KernelPoint(self.state, self.machine.y, self.machine.cap)

    def zero(self) -> KernelPoint:
        """See `Inner`."""
        return kernel_zero(self.machine)


class FactorInner(NewtonInner):
    """Newton steps on the rows of a factor; the class vectors are those of the duals: only these can be published."""

    of_duals = True

    def __init__(self, rows: KernelRows, R: np.ndarray, machine: Machine, seed: int, start: KernelState) -> None:
        duals = sparse.csr_array(start.alpha)
        arrays = duals.indptr.astype(np.int64), duals.indices.astype(np.int32), duals.data
        W = coefficients(start.alpha, machine.y).T @ R
        super().__init__(R, machine, seed, LinearPoint(W, start.b, arrays, start.b, machine.y, machine.cap))
        self.rows, self.state = rows, start

    def solve(self, mu: float, rivals: np.ndarray, tol: float, share: float, reference: float, max_iter: int) -> bool:
        """See `Inner`."""
        for care in CARE:
            more = super().solve(mu, rivals, care * tol, care * share, reference, max_iter)
            self._publish(mu, rivals)
            reached = self.gap <= max(tol * self.objective, share * (reference - self.objective))
            if reached or not more or self.n_iter >= max_iter:
                return reached
        return False

    def _publish(self, mu: float, rivals: np.ndarray) -> None:
        """Objective, gap and scores of the coefficients, from the kernel matrix itself."""
        rows, machine = self.rows, self.machine
        assert self.duals is not None
        first, rival, numbers = self.duals
        alpha = sparse.csr_array((numbers, rival, first), shape=self.scores.shape).toarray()
        c = coefficients(alpha, machine.y)
        support = np.flatnonzero(c.any(axis=1))
        F = np.zeros(alpha.shape[::-1])
        rows.keep(support)
        rows.add(F, support, c[support])
        # The rounding of sum c moves all scores alike where rows lie far from zero: b takes that back.
        b = (self.scores.T - F).mean(axis=1) if machine.fit_intercept else self.b
        loss, none = ("band", 1, float(mu), float(machine.theta), rivals), np.zeros(0)
        g, free = np.empty(rows.n), np.empty(rows.n, dtype=np.uint8)
        gap, value, _, _ = _ext.kernel_gaps(F, alpha, machine.y, machine.cap, b, g, free, none, none, loss)
        self.state = KernelState(alpha, b, scores=F)
        self.scores, self.half_norm = scores_and_half_norm(self.state, machine.y)
        before, self.objective = self.objective, value + self.half_norm
        # The same number, computed twice: by how much it differs is rounding, which may hide as much of the gap.
        self.gap = gap + abs(self.objective - before)
        gap = relative_gap(self.objective, self.gap)
        self.state = replace(self.state, objective=self.objective, gap=gap, n_iter=self.n_iter)

    def point(self) -> KernelPoint:  # type: ignore[override]
        """Where the last solve ended."""
        return KernelPoint(self.state, self.machine.y, self.machine.cap)

    def zero(self) -> KernelPoint:  # type: ignore[override]
        """See `Inner`."""
        return kernel_zero(self.machine)


def small_factor(rows: KernelRows, k: int) -> np.ndarray | None:
    """A factor of the kernel matrix, if there is one that is small enough for Newton steps."""
    most = NEWTON_PARAMETERS // k
    some = np.linspace(0, rows.n - 1, min(rows.n, 2 * most)).astype(np.intp)
    part = rows.square(some)[:, : len(some)].astype(np.float64)  # has not more than the rank of all, and costs less
    if pivoted(part, rows.dtype)[0].shape[1] > most:
        return None
    R = factor(rows)
    return None if R is None or R.shape[1] > most else R


def newton_updates(R: np.ndarray, k: int) -> float:
    """Block steps, each of which changes n scores of k classes, that cost as much as Newton steps on these rows."""
    n, r = R.shape
    return COLD_STEPS * newton_step(n, r, k) / (2 * n * k)


def scores_and_half_norm(state: KernelState, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Scores (n, k) with the intercepts, and half the squared norm of the class vectors.

    Where K c and b nearly cancel, c'K c = c'(K c + b) - (sum c)'b keeps the digits; sum c is all rounding there.
    """
    assert state.scores is not None
    scores, c = (state.scores.T + state.b).astype(np.float64), coefficients(state.alpha, y)
    return scores, 0.5 * float(np.vdot(c, scores) - c.sum(axis=0, dtype=np.longdouble) @ state.b)


def kernel_zero(machine: Machine) -> KernelPoint:
    """Duals, intercepts and scores that are all zero."""
    n, k = len(machine.y), machine.n_classes
    state = KernelState(np.zeros((n, k)), np.zeros(k), machine.zero_loss, 1.0, 0, np.zeros((k, n)))
    return KernelPoint(state, machine.y, machine.cap)


def solve_kernel_machine(
    rows: KernelRows, machine: Machine, effort: Effort, polish: bool = False, start: KernelPoint | None = None
) -> Descent:
    """The kernel machine; ``start`` belongs to the same rows and labels."""
    return best_of(machine, effort, polish, start, lambda first: KernelInner(rows, machine, effort.seed, first))
