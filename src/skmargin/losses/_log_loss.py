"""Multinomial log loss (softmax cross-entropy)."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from ._smooth import Own


class LogLoss:
    """``log sum_l exp(f_l) - f_y``."""

    duals_share_a_bound = True

    def _softmax(self, F: np.ndarray, own: Own) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities, and the loss of each sample."""
        E = F - F.max(axis=1)[:, None]
        mine = E[own]
        np.exp(E, out=E)
        total = E.sum(axis=1)
        E /= total[:, None]
        return E, np.log(total) - mine

    def value(self, F: np.ndarray, own: Own, s: np.ndarray) -> float:
        return float(s @ self._softmax(F, own)[1])

    def value_slopes(self, F: np.ndarray, own: Own, s: np.ndarray) -> tuple[float, np.ndarray]:
        Q, losses = self._softmax(F, own)
        # minus the sum of the others, not q_y - 1: keeps the relative precision of a slope near zero
        Q[own] = 0
        Q[own] = -Q.sum(axis=1)
        Q *= s.astype(F.dtype, copy=False)[:, None]
        return float(s @ losses), Q

    def curvature(self, F: np.ndarray, own: Own, s: np.ndarray) -> SoftmaxCurvature:
        return SoftmaxCurvature(self._softmax(F, own)[0], own, s)

    def smoothed(self, level: float) -> LogLoss:
        return self

    def dual_value(self, A: np.ndarray, own: Own, s: np.ndarray) -> float:
        mine = np.maximum(1 - A.sum(axis=1), 0)
        return -float(s @ (xlogy(A, A).sum(axis=1) + xlogy(mine, mine)))

    def feasible_factor(self, A: np.ndarray) -> float:
        return 1.0 / max(1.0, float(A.sum(axis=1).max()))


class SoftmaxCurvature:
    """``diag(q) - q q'`` for each sample."""

    def __init__(self, Q: np.ndarray, own: Own, s: np.ndarray) -> None:
        self.Q, self.own, self.weight = Q, own, s.astype(Q.dtype, copy=False)[:, None]

    def product(self, R: np.ndarray) -> np.ndarray:
        U = self.Q * R
        U -= self.Q * U.sum(axis=1)[:, None]
        U *= self.weight
        return U

    def sizes(self) -> np.ndarray:
        return ((self.Q * (1 - self.Q)) * self.weight).sum(axis=1)

    def pairs(self) -> np.ndarray:
        h = self.Q * (self.Q[self.own][:, None] * self.weight)
        h[self.own] = 0
        return h

    def factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weighted = self.Q * self.weight
        return weighted, self.Q, weighted
