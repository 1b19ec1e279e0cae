"""Adam (Kingma and Ba 2014), the method by which Nie et al. (2024) train their model.

Each step follows the gradient of the objective divided by the total weight times the number of classes, the mean that
the authors take, with the loss of a batch in the place of the loss of all rows.  Where the objective has a kink a
subgradient serves.  One batch of all rows and `random_start` are the authors' run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._runtime.progress import print_line, report
from ..._types import Rows
from ...losses import SmoothLoss
from ...regularizers import SmoothPenalty
from .driver import PrimalState
from .objective import PrimalObjective

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


@dataclass
class AdamState:
    """Parameters (W over b), running moments and number of steps."""

    theta: np.ndarray
    first: np.ndarray
    second: np.ndarray
    n_steps: int = 0

    @classmethod
    def start(cls, theta: np.ndarray) -> AdamState:
        """State before the first step."""
        return cls(theta, np.zeros_like(theta), np.zeros_like(theta))


def adam_epoch(
    state: AdamState,
    X: Rows,
    y: np.ndarray,
    weight: np.ndarray,
    loss: SmoothLoss,
    penalty: SmoothPenalty,
    *,
    fit_intercept: bool,
    eps: float,
    learning_rate: float,
    batch_size: int | None,
    total: float,
    rng: np.random.RandomState,
) -> AdamState:
    """One pass over the rows in random order; ``total`` is the weight that the whole loss stands for.

    ``batch_size=None`` makes one step with all rows.
    """
    theta, first, second, t = state.theta.copy(), state.first.copy(), state.second.copy(), state.n_steps
    scale = 1 / (total * theta.shape[1])
    for Xb, yb, sb in _batches(X, y, weight, batch_size, rng):
        own = (np.arange(len(yb)), yb)
        W = theta[:-1] if fit_intercept else theta
        F = Xb @ W
        if fit_intercept:
            F += theta[-1]
        _, P = loss.value_slopes(F, own, sb * (total / float(sb.sum())))
        G = 2 * eps * theta
        G[: len(W)] += Xb.T @ P + penalty.value_gradient(W)[1]
        if fit_intercept:
            G[-1] += P.sum(axis=0)
        G *= scale
        t += 1
        first += (1 - _BETA1) * (G - first)
        second += (1 - _BETA2) * (G * G - second)
        theta -= (learning_rate / (1 - _BETA1**t)) * first / (np.sqrt(second / (1 - _BETA2**t)) + _EPS)
    return AdamState(theta, first, second, t)


def _batches(
    X: Rows, y: np.ndarray, weight: np.ndarray, batch_size: int | None, rng: np.random.RandomState
) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Rows, labels and weights of one batch after the other."""
    if batch_size is None:
        yield X, y, weight
        return
    order = rng.permutation(len(y))
    for start in range(0, len(y), batch_size):
        rows = order[start : start + batch_size]
        yield X[rows], y[rows], weight[rows]


def random_start(shape: tuple[int, int], n_features: int, rng: np.random.RandomState) -> np.ndarray:
    """Uniform between ``-1/sqrt(n_features)`` and its negative: the first weights of a linear layer of PyTorch."""
    bound = 1 / np.sqrt(n_features)
    return rng.uniform(-bound, bound, size=shape)


def run_adam(
    objective: PrimalObjective,
    theta: np.ndarray,
    *,
    learning_rate: float,
    batch_size: int | None,
    tol: float,
    max_iter: int,
    rng: np.random.RandomState,
    verbose: int = 0,
) -> PrimalState:
    """Epochs from ``theta`` (for the features as given) until the relative duality gap is ``tol``, or ``max_iter``.

    A smoother problem makes the bound only: its slopes are a better dual point than subgradients.
    """
    loss, penalty, level = objective.loss, objective.penalty, min(tol, objective.tuning.common.start_tol)
    smooth = objective.with_pieces(loss.smoothed(level), penalty.smoothed(level / objective.row_size))
    rows = objective.rows.X
    adam = AdamState.start(theta.astype(rows.dtype, copy=False))
    for epoch in range(1, max_iter + 1):
        adam = adam_epoch(
            adam, rows, objective.own[1], objective.weight, loss, penalty,
            fit_intercept=objective.fit_intercept, eps=objective.eps, learning_rate=learning_rate,
            batch_size=batch_size, total=objective.total, rng=rng,
        )  # fmt: skip
        if epoch % objective.tuning.common.check_every == 0 or epoch == max_iter:
            point = smooth.point(objective.centred(adam.theta.astype(np.float64, copy=False)))
            state = PrimalState(point.theta, smooth.certificate(point, objective), 0.0, epoch)
            report(epoch / max_iter)
            if verbose:
                print_line(
                    f"Adam: {epoch} epochs, objective {state.certificate.primal:.6g}, relative gap {state.gap:.1e}"
                )
            if state.gap <= tol:
                break
    return state
