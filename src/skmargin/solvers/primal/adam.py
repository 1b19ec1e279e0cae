"""Adam (Kingma and Ba 2014) on mini-batches, the way Nie et al. (2024) train their model.

Each step follows ``(sum of all weights / weight of the batch) * gradient of the batch's loss + gradient of the
penalty``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...losses import SmoothLoss
from ...regularizers import SmoothPenalty

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
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    loss: SmoothLoss,
    penalty: SmoothPenalty,
    *,
    fit_intercept: bool,
    eps: float,
    learning_rate: float,
    batch_size: int,
    total: float,
    rng: np.random.RandomState,
) -> AdamState:
    """One pass over the rows in random order; ``total`` is the weight that the whole loss stands for."""
    theta, first, second, t = state.theta.copy(), state.first.copy(), state.second.copy(), state.n_steps
    order = rng.permutation(len(y))
    for start in range(0, len(y), batch_size):
        rows = order[start : start + batch_size]
        Xb, sb, own = X[rows], weight[rows], (np.arange(len(rows)), y[rows])
        W = theta[:-1] if fit_intercept else theta
        F = Xb @ W
        if fit_intercept:
            F += theta[-1]
        _, P = loss.value_slopes(F, own, sb * (total / float(sb.sum())))
        G = 2 * eps * theta
        G[: len(W)] += Xb.T @ P + penalty.value_gradient(W)[1]
        if fit_intercept:
            G[-1] += P.sum(axis=0)
        t += 1
        first += (1 - _BETA1) * (G - first)
        second += (1 - _BETA2) * (G * G - second)
        theta -= (learning_rate / (1 - _BETA1**t)) * first / (np.sqrt(second / (1 - _BETA2**t)) + _EPS)
    return AdamState(theta, first, second, t)
