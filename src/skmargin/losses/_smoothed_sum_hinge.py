"""Sum hinge of Weston and Watkins, smoothed as in Nie et al. (2024), equation 25."""

from __future__ import annotations

import numpy as np

from ._smooth import Own


class SmoothedSumHinge:
    """``sum_{l != y} g(1 - f_y + f_l)`` with ``g(t) = (t + sqrt(t^2 + delta^2)) / 2``.

    ``0 <= g(t) - max(0, t) <= delta / 2``; ``delta = 0`` is the hinge itself, which has values and a dual but no
    curvature.
    """

    duals_share_a_bound = False

    def __init__(self, delta: float) -> None:
        self.delta = delta

    def _margins_roots(self, F: np.ndarray, own: Own) -> tuple[np.ndarray, np.ndarray]:
        t = F - (F[own] - 1)[:, None]
        root = t * t
        root += self.delta**2
        return t, np.sqrt(root, out=root)

    def _value(self, t: np.ndarray, root: np.ndarray, own: Own, s: np.ndarray) -> float:
        total = t.sum(axis=1) + root.sum(axis=1) - t[own] - root[own]
        return 0.5 * float(s @ total)

    def value(self, F: np.ndarray, own: Own, s: np.ndarray) -> float:
        return self._value(*self._margins_roots(F, own), own, s)

    def value_slopes(self, F: np.ndarray, own: Own, s: np.ndarray) -> tuple[float, np.ndarray]:
        t, root = self._margins_roots(F, own)
        value = self._value(t, root, own, s)
        t /= root
        t += 1
        t *= (0.5 * s).astype(F.dtype, copy=False)[:, None]
        t[own] = 0
        t[own] = -t.sum(axis=1)
        return value, t

    def curvature(self, F: np.ndarray, own: Own, s: np.ndarray) -> SumHingeCurvature:
        _, h = self._margins_roots(F, own)
        np.power(h, -3, out=h)
        h *= (0.5 * self.delta**2 * s).astype(F.dtype, copy=False)[:, None]
        h[own] = 0
        return SumHingeCurvature(h, own)

    def smoothed(self, level: float) -> SmoothedSumHinge:
        return self if self.delta >= level else SmoothedSumHinge(level)

    def dual_value(self, A: np.ndarray, own: Own, s: np.ndarray) -> float:
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
