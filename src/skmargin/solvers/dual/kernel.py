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

The primal point is that of the duals times ``stretch`` >= 1: with many free support vectors their small losses, to
which the dual is nearly flat, are most of the gap.

Crammer & Singer (2001), Weston & Watkins (1998), Lapin, Hein & Schiele (2015) for the losses; Fercoq & Richtarik
(2015) for the momentum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._runtime.progress import report_gap
from ...rows.kernel_rows import KernelRows
from .kernel_state import KernelState
from .working_set import FLOAT32_GAP_SHARE, WorkingSetAscent

ROUND_TARGET = 0.85  # a round stops at this share of the final target,
ROUND_DROP, ODM_ROUND_DROP = 0.05, 0.03  # or at this share of the gap it began with; steps of ODM are cheap
CROWDED_ROUND_DROP = 0.3  # the same where memory does not hold all samples that need work


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
    loss : {"max", "sum", "top", "band"}
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
        For ``"band"``; no rivals with ``mu=0``.
    share, reference : float, default=0
        A gap of ``majorizer_share * (majorizer_value - objective)`` is small enough as well.
    spoilt : ndarray of int, optional
        Samples of a start whose duals are far from optimal: they are the first working set.
    max_updates : float, default=inf
        About how many block steps may be taken.

    Returns
    -------
    KernelState
    """
    loss_spec = loss, top_k, mu, theta, np.zeros(0, np.int32) if rivals is None else rivals
    work = WorkingSetAscent(rows, y, cap, n_classes, loss_spec, fit_intercept, tol, state)
    working_set = work.first_set(np.random.default_rng(random_state))

    def goal() -> float:
        return max(tol * work.objective, majorizer_share * (majorizer_value - work.objective))

    if work.gap <= goal():
        # The scores of a start are the only ones: nothing checks their rounding, so they are computed in float64.
        if state is not None and state.double and rows.dtype == np.float32:
            rows.promote()
            work.restart()
        if work.gap <= goal() and work.certify(goal, last=False):
            return work.result()
    target_fraction, left, drop = ROUND_TARGET, max_iter, ODM_ROUND_DROP if loss == "band" else ROUND_DROP
    if stale_samples is not None and len(stale_samples):
        first = stale_samples[: rows.limit]
        work.ascend(first, max(target_fraction * goal(), drop**2 * work.sample_gaps[first].sum()), left, random_state)
        working_set, left = work.select(), max(1, max_iter - work.n_iter)
    float32_checked_at = 0  # pass after which the rounding of float32 was checked
    for seed in range(1, max_iter + 1):
        held = work.sample_gaps[working_set].sum()
        target = max(target_fraction * goal(), drop * held)
        if len(working_set) == rows.limit < rows.n and held > 0:
            # Only a part of the samples that need work: its share of the goal, and less far, since the rest will react.
            target = held * max(target_fraction * goal() / max(held, work.gap), CROWDED_ROUND_DROP)
        usual = work.n_updates / work.n_iter if work.n_iter else len(working_set)  # block steps a pass
        passes = min(left, max(1.0, (max_updates - work.n_updates) / max(1.0, usual)))
        stuck = work.ascend(working_set, target, int(passes), random_state + seed)
        left = max_iter - work.n_iter if work.n_updates < max_updates else 0
        report_gap(work.gap / work.objective if work.objective > 0 else 0.0, tol)
        if work.gap <= goal() or left <= 0:
            dtype = rows.dtype
            if float32_checked_at < work.n_iter and rows.dtype == np.float32:
                if work.recompute_scores() > FLOAT32_GAP_SHARE * goal():
                    rows.promote()
                    work.restart()
                float32_checked_at = work.n_iter
            if (work.gap <= goal() or left <= 0) and work.certify(goal, last=left <= 0):
                break
            if rows.dtype == dtype:
                target_fraction *= 0.3  # the duals were too far from feasible
        elif stuck and rows.dtype == np.float32:
            rows.promote()
            work.restart()
        working_set = work.select()
    return work.result()


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
) -> KernelState:
    """Objective and gap, from the kernel matrix itself, of duals that another solver found.

    ``scores`` (k, n) are those of that solver, without b, and ``bound`` is its lower bound of the objective.
    """
    loss_spec = loss, top_k, 0.0, 0.0, np.zeros(0, np.int32)
    work = WorkingSetAscent(rows, y, cap, len(state.b), loss_spec, fit_intercept, tol, state)
    if fit_intercept:  # far from zero, a sum of c that is not quite zero shifts all scores
        work.b += (scores - work.F).mean(axis=1)
        work.balance()
    work.choose_stretches()
    work.evaluate()
    work.bound = bound
    work.add_rounding_to_gap()
    return replace(work.result(), n_iter=state.n_iter)
