"""Sum hinge of Weston and Watkins, smoothed as in Nie et al. (2024), equation 25."""

from __future__ import annotations

import numpy as np

from .._numbers import WITH_SQUARE, checked
from ._smooth import Own


class SmoothedSumHinge:
    """``sum_{l != y} g(1 - f_y + f_l)`` with ``g(t) = (t + sqrt(t^2 + delta^2)) / 2``.

    ``0 <= g(t) - max(0, t) <= delta / 2``; ``delta = 0`` is the hinge itself, whose slope is 0 at its kink.

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.losses import SmoothedSumHinge
    >>> F = np.array([[2.0, 1.5, 0.0]])
    >>> SmoothedSumHinge(delta=0.0).value(F, (np.array([0]), np.array([0])), np.ones(1))
    0.5
    """

    duals_share_a_bound = False

    def __init__(self, delta: float) -> None:
        self.delta = checked("delta", delta, most=WITH_SQUARE)

    def _hinges(self, F: np.ndarray, own: Own) -> tuple[np.ndarray, np.ndarray]:
        """``g(t)`` and ``root = sqrt(t^2 + delta^2)``; the own class has ``t = -inf``, hence neither value nor slope.

        ``g(t) = max(0, t) + delta^2 / (2 (|t| + root))``: far below the margin ``t + root`` would be rounding alone.
        """
        t = F - (F[own] - 1)[:, None]
        t[own] = -np.inf
        g = np.maximum(t, 0)
        root, square = t * t, F.dtype.type(self.delta**2)
        root += square
        np.sqrt(root, out=root)
        if square:
            np.abs(t, out=t)
            t += root
            g += np.divide(0.5 * square, t, out=t)
        return g, root

    def value(self, F: np.ndarray, own: Own, s: np.ndarray) -> float:
        return float(s @ self._hinges(F, own)[0].sum(axis=1))

    def value_slopes(self, F: np.ndarray, own: Own, s: np.ndarray) -> tuple[float, np.ndarray]:
        g, root = self._hinges(F, own)
        value = float(s @ g.sum(axis=1))
        smooth = bool(F.dtype.type(self.delta**2))
        np.divide(g, root, out=g, where=smooth or root > 0)  # g'(t) = (1 + t / root) / 2
        g *= s.astype(F.dtype, copy=False)[:, None]
        g[own] = -g.sum(axis=1)
        return value, g

    def curvature(self, F: np.ndarray, own: Own, s: np.ndarray) -> SumHingeCurvature:
        _, root = self._hinges(F, own)
        h = self.delta / root
        h *= h
        h /= root  # in this order nothing overflows
        h *= (0.5 * s).astype(F.dtype, copy=False)[:, None]
        return SumHingeCurvature(h, own)

    def smoothed(self, level: float) -> SmoothedSumHinge:
        return self if self.delta >= level else SmoothedSumHinge(level)

    def dual_value(self, A: np.ndarray, s: np.ndarray) -> float:
        total = A.sum(axis=1)
        if self.delta:
            B = A * (1 - A)
            np.maximum(B, 0, out=B)
            total = total + self.delta * np.sqrt(B, out=B).sum(axis=1)
        return float(s @ total)

    def feasible_factor(self, A: np.ndarray) -> float:
        return 1.0 / max(1.0, float(A.max()))


class SumHingeCurvature:
    """``sum_{l != y} h_l (e_l - e_y)(e_l - e_y)'`` for each sample."""

    def __init__(self, h: np.ndarray, own: Own) -> None:
        self.h, self.own = h, own

    def product(self, R: np.ndarray) -> np.ndarray:
        U = R - R[self.own][:, None]
        U *= self.h
        U[self.own] = -U.sum(axis=1)
        return U

    def sizes(self) -> np.ndarray:
        return 2 * self.h.sum(axis=1)

    def pairs(self) -> np.ndarray:
        return self.h

    def factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        diagonal, own = self.h.copy(), np.zeros_like(self.h)
        diagonal[self.own] = self.h.sum(axis=1)
        own[self.own] = 2
        return diagonal, own, self.h
