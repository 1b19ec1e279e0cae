"""Multinomial log loss (softmax cross-entropy)."""

from __future__ import annotations

import numpy as np
from scipy.special import xlog1py, xlogy

from ._smooth import Own


class LogLoss:
    """``log sum_l exp(f_l) - f_y``.

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.losses import LogLoss
    >>> F = np.array([[2.0, 0.0, 0.0]])
    >>> round(LogLoss().value(F, (np.array([0]), np.array([0])), np.ones(1)), 4)
    0.2395
    """

    duals_share_a_bound = True

    def _powers(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``exp(f - max f)`` and the largest scores."""
        top = F.max(axis=1)
        E = F - top[:, None]
        return np.exp(E, out=E), top

    def _losses(self, F: np.ndarray, own: Own) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The losses; the powers with 0 in the own place, their sums, and what belongs there.

        Where the own score is the largest the loss is ``log1p`` of the sum: small losses keep their digits.
        """
        E, top = self._powers(F)
        E[own] = 0
        mine = F[own] - top
        others, power = E.sum(axis=1), np.exp(mine)
        return np.log1p(others + (power - 1)) - mine, E, others, power

    def value(self, F: np.ndarray, own: Own, s: np.ndarray) -> float:
        return float(s @ self._losses(F, own)[0])

    def value_slopes(self, F: np.ndarray, own: Own, s: np.ndarray) -> tuple[float, np.ndarray]:
        losses, Q, others, power = self._losses(F, own)
        scale = s.astype(F.dtype, copy=False) / (others + power)
        Q *= scale[:, None]
        Q[own] = -others * scale  # not q_y - 1: keeps the relative precision of a slope near zero
        return float(s @ losses), Q

    def curvature(self, F: np.ndarray, own: Own, s: np.ndarray) -> SoftmaxCurvature:
        Q, _ = self._powers(F)
        Q /= Q.sum(axis=1)[:, None]
        return SoftmaxCurvature(Q, own, s)

    def smoothed(self, level: float) -> LogLoss:
        return self

    def dual_value(self, A: np.ndarray, s: np.ndarray) -> float:
        others = np.minimum(A.sum(axis=1), 1)
        return -float(s @ (xlogy(A, A).sum(axis=1) + xlog1py(1 - others, -others)))

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
