"""Kernel machines with a margin loss: block ascent on a working set that grows where the duality gap is.

Problem (f_i = sum_j K(x_i, x_j) c_j + b, one number a class; b is not penalised, or absent)::

    min  1/2 sum_l c_l' K c_l + sum_i loss_i(d_i),      d_il = f_{i,y_i} - f_il for the rivals l != y_i

Dual (alpha_il for the rivals; c_il = -alpha_il, c_{i,y_i} = sum_l alpha_il)::

    max  sum_i dual_i(alpha_i) - 1/2 sum_l c_l' K c_l      [with b: sum_i c_il = 0 for every class l]

Every sample has its own gap ``g_i = loss_i(d_i) - dual_i(alpha_i) + alpha_i'd_i >= 0`` and the duality gap is their
sum.  It is the stopping rule, the selection rule and the shrinking rule in one::

    W = a few random samples
    repeat
        rows of K for W, and K_WW (read from the rows themselves where W is most samples)
        block ascent on W (_core/kernel/block_ascent.hpp) until sum_W g_i <= max(0.85 tol P, 0.05 of its first value),
            or less far where memory holds only a part of the samples that should be in W;
            slow passes add momentum (_core/kernel/momentum.hpp)
        F += K dc for the samples that changed (steps on whole rows have done so)
        g over all samples, P;    stop if sum g_i <= tol P
        W = the samples that carry all but two per cent of the gap; of those without a row only samples with about the
            mean gap, at most half as many as have a row; and all support vectors strictly inside their bounds

Free intercept (method of multipliers): blocks see the scores F + b + t s and the curvature K_ii + t with
s = sum_i c_i, and b += t s after every pass (t is ``proximal``).  The gap is certified with duals that satisfy the
constraint exactly: they are made a circulation between the classes (_core/intercept/circulation.hpp) and returned; a
change of the scores that is common to all samples is compensated by b.

The primal point is that of the duals times a scalar ``stretch`` >= 1: with many free support vectors their small
losses, to which the dual is nearly flat, are most of the gap.

Crammer & Singer (2001), Weston & Watkins (1998), Lapin, Hein & Schiele (2015) for the losses; Fercoq & Richtarik
(2015) for the momentum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._runtime.progress import report_gap
from ...rows.kernel_rows import KernelRows
from ..tuning import DEFAULT, Tuning
from .state import KernelState
from .working_set import FLOAT32_GAP_SHARE, LossSpec, WorkingSetAscent


def solve_kernel_dual(
    rows: KernelRows,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    loss: str,
    top_k: int = 1,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    random_state: int = 0,
    state: KernelState | None = None,
    mu: float = 0.0,
    theta: float = 0.0,
    rivals: np.ndarray | None = None,
    majorizer_share: float = 0.0,
    majorizer_value: float = 0.0,
    stale_samples: np.ndarray | None = None,
    max_updates: float = np.inf,
    tuning: Tuning = DEFAULT,
) -> KernelState:
    """Minimise the problem above to a certified relative duality gap of ``tol``.

    Parameters
    ----------
    rows : KernelRows
        The kernel matrix; rows that it keeps serve the next call as well.
    y : ndarray of shape (n,), int32
        Labels 0..k-1.
    cap : ndarray of shape (n,)
        ``C`` times the weight of each sample, positive.
    n_classes : int
        Number of classes k.
    loss : {"max", "sum", "top", "odm"}
        Crammer-Singer, Weston-Watkins, the mean of the ``top_k`` largest hinges, or the loss of the optimal margin
        distribution machine with fixed rivals (_core/losses/odm.hpp).
    top_k : int, default=1
        For ``"top"``.
    fit_intercept : bool, default=True
        With an intercept that is not penalised.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=10000
        Largest number of passes over working sets.
    random_state : int, default=0
        Seed of the first set and of the order of visits.
    state : KernelState, optional
        Start: duals that satisfy the bounds (after a change of C, multiplied by the ratio of the two).
    mu, theta, rivals : float, float, ndarray of shape (n,), int32
        For ``"odm"``; no rivals with ``mu=0``.
    majorizer_share, majorizer_value : float, default=0
        A gap of ``majorizer_share * (majorizer_value - objective)`` is small enough as well.
    stale_samples : ndarray of int, optional
        Samples of a start whose duals are far from optimal: they are the first working set.
    max_updates : float, default=inf
        About how many block steps may be taken.
    tuning : Tuning
        Constants that steer speed.

    Returns
    -------
    KernelState
    """
    loss_spec = LossSpec(loss, top_k, mu, theta, np.zeros(0, np.int32) if rivals is None else rivals)
    work = WorkingSetAscent(rows, y, cap, n_classes, loss_spec, fit_intercept, tol, state, tuning)
    rounds = _Rounds(
        work, tol, majorizer_share, majorizer_value, max_iter, max_updates, random_state, tuning, max_iter,
        tuning.common.inner_goal,
    )  # fmt: skip
    working_set = work.first_set(np.random.default_rng(random_state))
    if rounds.start_is_solution(state):
        return work.result()
    if stale_samples is not None and len(stale_samples):
        working_set = rounds.repair(stale_samples)
    for number in range(1, max_iter + 1):
        stalled = rounds.run(working_set, number)
        if rounds.is_over(stalled):
            break
        working_set = work.select()
    return work.result()


@dataclass
class _Rounds:
    """Rounds of block ascent on working sets, each with its target, until the gap is certified."""

    work: WorkingSetAscent
    tol: float
    majorizer_share: float
    majorizer_value: float
    max_iter: int
    max_updates: float
    seed: int
    tuning: Tuning
    passes_left: int
    target_fraction: float  # of the goal at which a round stops
    float32_checked_at: int = 0  # pass after which the rounding of float32 was checked

    def goal(self) -> float:
        """The gap at which to stop."""
        objective = self.work.objective
        return max(self.tol * objective, self.majorizer_share * (self.majorizer_value - objective))

    def start_is_solution(self, state: KernelState | None) -> bool:
        """Whether the start is certified already."""
        work = self.work
        if work.gap > self.goal():
            return False
        if state is not None and state.double and work.rows.dtype == np.float32:
            # The scores of a start are the only ones: nothing checks their rounding, so they are computed in float64.
            work.promote()
        return work.gap <= self.goal() and work.certify(self.goal, last=False)

    def repair(self, stale_samples: np.ndarray) -> np.ndarray:
        """A round on samples whose duals are far from optimal; the next working set."""
        work, first = self.work, stale_samples[: self.work.rows.limit]
        drop = self.tuning.kernel.round_drop**2
        target = max(self.target_fraction * self.goal(), drop * work.sample_gaps[first].sum())
        work.ascend(first, target, self.passes_left, self.seed)
        self.passes_left = max(1, self.max_iter - work.n_iter)
        return work.select()

    def run(self, working_set: np.ndarray, number: int) -> bool:
        """One round; whether it stalled above its target."""
        work = self.work
        gap_of_set = work.sample_gaps[working_set].sum()
        target = max(self.target_fraction * self.goal(), self.tuning.kernel.round_drop * gap_of_set)
        if len(working_set) == work.rows.limit < work.rows.n and gap_of_set > 0:
            # Only a part of the samples that need work: its share of the goal, and half as many digits, since the rest
            # will react.
            share = self.target_fraction * self.goal() / max(gap_of_set, work.gap)
            target = gap_of_set * max(share, np.sqrt(self.tuning.kernel.round_drop))
        updates = work.n_updates / work.n_iter if work.n_iter else len(working_set)  # block steps a pass
        passes = min(self.passes_left, max(1.0, (self.max_updates - work.n_updates) / max(1.0, updates)))
        stalled = work.ascend(working_set, target, int(passes), self.seed + number)
        self.passes_left = self.max_iter - work.n_iter if work.n_updates < self.max_updates else 0
        report_gap(work.gap / work.objective if work.objective > 0 else 0.0, self.tol)
        return stalled

    def is_over(self, stalled: bool) -> bool:
        """Whether the gap is certified, or a limit reached; float32 gives way to float64 where its rounding shows."""
        work, last = self.work, self.passes_left <= 0
        single = work.rows.dtype == np.float32
        if work.gap > self.goal() and not last:
            if stalled and single:
                work.promote()
            return False
        if self.float32_checked_at < work.n_iter and single:
            if work.recompute_scores() > FLOAT32_GAP_SHARE * self.goal():
                work.promote()
            self.float32_checked_at = work.n_iter
        if (work.gap <= self.goal() or last) and work.certify(self.goal, last=last):
            return True
        if single == (work.rows.dtype == np.float32):
            self.target_fraction *= 0.3  # the duals were too far from feasible
        return False


def certified(
    rows: KernelRows,
    y: np.ndarray,
    cap: np.ndarray,
    loss: str,
    top_k: int,
    state: KernelState,
    scores: np.ndarray,
    fit_intercept: bool,
    tol: float,
    bound: float,
    tuning: Tuning = DEFAULT,
) -> KernelState:
    """Objective and gap, from the kernel matrix itself, of duals that another solver found.

    ``scores`` (k, n) are those of that solver, without b, and ``bound`` is its lower bound of the objective.
    """
    loss_spec = LossSpec(loss, top_k)
    work = WorkingSetAscent(rows, y, cap, len(state.b), loss_spec, fit_intercept, tol, state, tuning)
    if fit_intercept:  # far from zero, a sum of c that is not quite zero shifts all scores
        work.b += (scores - work.F).mean(axis=1)
        work.balance()
    work.choose_stretches()
    work.evaluate()
    work.bound = bound
    work.add_rounding_to_gap()
    return replace(work.result(), n_iter=state.n_iter)
