"""Kernel machines with a margin loss: block ascent on a working set that grows where the duality gap is.

Problem (f_i = sum_j K(x_i, x_j) c_j + b, one number a class; b is not penalised, or absent)::

    min  1/2 sum_l c_l' K c_l + sum_i loss_i(d_i),      d_il = f_{i,y_i} - f_il for the rivals l != y_i

Dual (alpha_il for the rivals; c_il = -alpha_il, c_{i,y_i} = sum_l alpha_il)::

    max  sum_i dual_i(alpha_i) - 1/2 sum_l c_l' K c_l      [with b: sum_i c_il = 0 for every class l]

Every sample has its own gap ``g_i = loss_i(d_i) - dual_i(alpha_i) + alpha_i'd_i >= 0`` and the duality gap is their
sum.  It is the stopping rule, the selection rule and the shrinking rule in one::

    W = a few random samples
    repeat
        rows of K for W, the square K_WW (where W is most samples, within the rows themselves)
        block ascent on W (_core/kernel/block_ascent.hpp) until sum_W g_i <= max(0.85 tol P, 0.05 of what it was),
            or not so far where memory holds only a part of the samples that should be in W;
            passes that do not get there soon gather momentum (_core/kernel/momentum.hpp)
        F += K dc for the samples that changed; steps on whole rows have done so
        g over all samples, P;    stop if sum g_i <= tol P
        W = the samples of all but two per cent of the gap, of those without a row only such as have about the mean gap
            and not more than half as many as have a row  u  support vectors inside their bounds

Free intercept (method of multipliers): blocks see the scores F + b + t tot and the curvature K_ii + t with
tot = sum_i c_i, and b += t tot after every pass.  The gap is certified with duals that satisfy the constraint exactly:
made a circulation between the classes (_core/intercept/circulation.hpp), which are then the duals returned; what this
changes in the scores of all samples alike is taken back by b.

The primal point is that of the duals, or a little longer (``stretch``): with many free support vectors their small
losses, which the dual hardly feels any more, are most of the gap.

Crammer & Singer (2001), Weston & Watkins (1998), Lapin, Hein & Schiele (2015) for the losses; Fercoq & Richtarik
(2015) for the momentum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._runtime.progress import tell_gap
from ...rows.kernel_rows import KernelRows
from .kernel_rounds import ROUNDING, KernelWork
from .kernel_state import KernelState

INNER = 0.85  # how far a round goes: this share of the final target,
DROP, BAND_DROP = 0.05, 0.03  # or of the gap it found; steps of the band loss are cheap beside rows
CROWDED_DROP = 0.3  # where memory does not hold all samples that need work


def solve_kernel(
    rows: KernelRows,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    loss: str,
    K: int = 1,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    random_state: int = 0,
    state: KernelState | None = None,
    mu: float = 0.0,
    theta: float = 0.0,
    rivals: np.ndarray | None = None,
    share: float = 0.0,
    reference: float = 0.0,
    spoilt: np.ndarray | None = None,
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
        Crammer-Singer, Weston-Watkins, the mean of the ``K`` largest hinges, or the loss of the optimal margin
        distribution machine with fixed rivals (_core/losses/odm.hpp).
    K : int, default=1
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
        A gap of ``share * (reference - objective)`` is small enough as well.
    spoilt : ndarray of int, optional
        Samples of a start whose duals are far off, and with them all scores: they are the first working set.
    max_updates : float, default=inf
        About how many block steps may be taken.

    Returns
    -------
    KernelState
    """
    named = loss, K, mu, theta, np.zeros(0, np.int32) if rivals is None else rivals
    work = KernelWork(rows, y, cap, n_classes, named, fit_intercept, tol, state)
    working_set = work.first_set(np.random.default_rng(random_state))

    def goal() -> float:
        return max(tol * work.objective, share * (reference - work.objective))

    if work.gap <= goal():
        # Of a start there are no other scores to put these to the test.
        if state is not None and state.double and rows.dtype == np.float32:
            rows.promote()
            work.restart()
        if work.gap <= goal() and work.certify(goal, last=False):
            return work.result()
    care, left, drop = INNER, max_iter, BAND_DROP if loss == "band" else DROP
    if spoilt is not None and len(spoilt):
        first = spoilt[: rows.limit]
        work.ascend(first, max(care * goal(), drop**2 * work.g[first].sum()), left, random_state)
        working_set, left = work.select(), max(1, max_iter - work.n_iter)
    fresh = 0  # pass after which float32 was put to the test
    for seed in range(1, max_iter + 1):
        held = work.g[working_set].sum()
        target = max(care * goal(), drop * held)
        if len(working_set) == rows.limit < rows.n and held > 0:
            # A part of all that needs work: its share of the goal, and not far, since the others will answer.
            target = held * max(care * goal() / max(held, work.gap), CROWDED_DROP)
        usual = work.n_updates / work.n_iter if work.n_iter else len(working_set)  # steps of a pass
        passes = min(left, max(1.0, (max_updates - work.n_updates) / max(1.0, usual)))
        stuck = work.ascend(working_set, target, int(passes), random_state + seed)
        left = max_iter - work.n_iter if work.n_updates < max_updates else 0
        tell_gap(work.gap / work.objective if work.objective > 0 else 0.0, tol)
        if work.gap <= goal() or left <= 0:
            dtype = rows.dtype
            if fresh < work.n_iter and rows.dtype == np.float32:
                if work.rounding() > ROUNDING * goal():
                    rows.promote()
                    work.restart()
                fresh = work.n_iter
            if (work.gap <= goal() or left <= 0) and work.certify(goal, last=left <= 0):
                break
            if rows.dtype == dtype:
                care *= 0.3  # the duals are not balanced well enough
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
    K: int,
    state: KernelState,
    scores: np.ndarray,
    fit_intercept: bool,
    tol: float,
    bound: float,
) -> KernelState:
    """The machine of duals that another solver found, with objective and gap from the kernel matrix itself.

    ``scores`` (k, n) are those that the solver had in mind, without b, and ``bound`` its lower bound of all objectives.
    """
    named = loss, K, 0.0, 0.0, np.zeros(0, np.int32)
    work = KernelWork(rows, y, cap, len(state.b), named, fit_intercept, tol, state)
    if fit_intercept:  # where rows lie far from zero, a sum of c that is not quite zero moves all scores alike
        work.b += (scores - work.F).mean(axis=1)
        work.balance()
    work.tune()
    work.measure()
    work.bound = bound
    work.beware()
    return replace(work.result(), n_iter=state.n_iter)
