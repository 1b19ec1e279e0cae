"""The machine of Xu et al. (2017) with unlabelled rows: labels and class vectors are found together.

Problem (labelled rows L, unlabelled rows U with labels z_i to be found)::

    min_{W,b,z}  penalty(W, b) + sum_{i in L} cap_i loss(f_i, y_i) + r sum_{i in U} cap_i loss(f_i, z_i)
                 loss(f, l) = sum_{j != l} max(0, 1 - f_l + f_j)

not convex, since z is free.  Two half steps, neither of which can raise the objective, take turns until labels repeat:

    z    the label of least loss: the largest score; or, with balance, the cheapest ones with class counts within bounds
         (``labels``)
    W,b  the convex machine for these labels, from the last one (``half_steps``)

The weight r of the unlabelled rows grows in stages (1/100, 1/10, 1), after a start on the labelled rows alone.
Xu et al., section 5, with the labelled losses that its equation 25 leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._runtime.progress import progress_range, report
from ..tuning import DEFAULT, Tuning
from .half_steps import ConvexSteps, Step
from .labels import balanced_labels, label_losses

STAGES = (0.01, 0.1, 1.0)


@dataclass(frozen=True)
class SemiSupervisedState:
    """Result of `solve_semi_supervised`."""

    machine: Step
    labels: np.ndarray  # (n,) of every row
    labeled_iter: np.ndarray  # (n,) round that gave the label: 0 for the rows labelled from the start
    trajectory: np.ndarray  # (steps, 2): weight r of the stage, objective with that r, after each half step
    n_iter: int


def solve_semi_supervised(
    steps: ConvexSteps,
    y: np.ndarray,
    cap: np.ndarray,
    shares: tuple[np.ndarray, np.ndarray] | None,
    *,
    stages: tuple[float, ...] = STAGES,
    tuning: Tuning = DEFAULT,
) -> SemiSupervisedState:
    """Solve the problem above.

    Parameters
    ----------
    steps : ConvexSteps
        How the convex half step is solved.
    y : ndarray of shape (n,), int32
        Labels 0..k-1, or -1 where there is none.
    cap : ndarray of shape (n,)
        Weight of the loss of each row, positive.
    shares : pair of ndarray of shape (k,), or None
        Least and largest share of each class in the mass of the unlabelled rows; None leaves them free.
    stages : tuple of float
        Weights r of the unlabelled rows, one after the other.
    tuning : Tuning
        Constants that steer speed.

    Returns
    -------
    SemiSupervisedState
    """
    free = y < 0
    labeled, unlabeled = np.flatnonzero(~free), np.flatnonzero(free)
    with progress_range(0, 0):
        machine = _finite(steps.first(labeled, y, cap))
    n_iter, labeled_iter = machine.n_iter, np.zeros(len(y), dtype=np.intp)
    if len(unlabeled) == 0:
        return SemiSupervisedState(machine, y, labeled_iter, np.array([[1.0, machine.objective]]), n_iter)

    def relabel(losses: np.ndarray) -> np.ndarray:
        if shares is None:
            return losses.argmin(axis=1)
        return balanced_labels(losses, cap[unlabeled], *shares, tuning)

    labels = y.copy()
    labels[unlabeled] = relabel(label_losses(steps.scores(machine, unlabeled)))
    labeled_iter[unlabeled] = 1
    changed = np.zeros(len(y), dtype=bool)
    trajectory, rounds = [], 1
    for stage, r in enumerate(stages):
        report((stage + 1) / (len(stages) + 1))
        weights = np.where(free, r * cap, cap)
        reached = np.inf
        for last in [False] * (tuning.multi_margin.rounds - 1) + [True]:
            with progress_range(0, 0):
                candidate = _finite(steps.next(labels, weights, machine, changed))
            n_iter += candidate.n_iter
            changed = np.zeros(len(y), dtype=bool)
            if candidate.objective > reached:  # a solver ends near the optimum only
                machine = steps.kept(machine, candidate, reached)
                break
            machine = candidate
            trajectory.append((r, machine.objective))
            losses = label_losses(steps.scores(machine, unlabeled))
            new = relabel(losses)
            fall = weights[unlabeled] @ (_at(losses, labels[unlabeled]) - _at(losses, new))
            if fall <= 0 or last:
                break
            reached = machine.objective - fall
            trajectory.append((r, reached))
            rounds += 1
            changed[unlabeled] = new != labels[unlabeled]
            labels[unlabeled], labeled_iter[changed] = new, rounds
    return SemiSupervisedState(machine, labels, labeled_iter, np.array(trajectory), n_iter)


def _finite(step: Step) -> Step:
    if not np.isfinite(step.objective):
        raise ValueError("The machine met numbers beyond double precision; scale the features or C.")
    return step


def _at(losses: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.take_along_axis(losses, labels[:, None], axis=1)[:, 0]
