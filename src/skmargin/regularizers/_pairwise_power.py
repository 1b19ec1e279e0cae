"""Distances between class vectors to the power p (Nie et al. 2024, equations 17 to 24).

    R(W) = alpha sum_{j<l} rho(||w_j - w_l||),   rho(D) = (D^2 + tau^2)^(p/2) - tau^p

``tau = 0`` is the published penalty; ``tau > 0`` removes the kink (p = 1) or the infinite curvature (p < 2) at ``D =
0``.  In the words of `PairwisePenalty`, ``S = alpha p D2^(p/2-1)``, and its change is ``alpha p (p-2) D2^(p/2-2) Q``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._numbers import checked
from ._pairwise import PairwisePenalty, centred, laplacian, power


def _square_sum(V: np.ndarray) -> float:
    return float(np.einsum("ij,ij->i", V, V).sum(dtype=np.float64))


class PairwisePower(PairwisePenalty):
    """``alpha sum_{j<l} ||w_j - w_l||^p``, smoothed by ``tau`` near zero distance.

    With ``p = 2`` it is ``alpha k ||V||^2``, V the vectors less their mean: no Gram matrix is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.regularizers import PairwisePower
    >>> PairwisePower(alpha=1.0, p=2.0).value(np.array([[0.0, 3.0], [0.0, 4.0]]))
    25.0
    """

    def __init__(self, alpha: float, p: float, tau: float = 0.0) -> None:
        super().__init__(alpha, tau)
        self.p = self.degree = checked("p", p, 1)

    def _value(self, D2: np.ndarray) -> float:
        terms = D2 ** (self.p / 2) - self.tau**self.p
        np.fill_diagonal(terms, 0.0)
        return 0.5 * self.alpha * float(terms.sum())

    def _slopes(self, D2: np.ndarray) -> np.ndarray:
        return self.alpha * self.p * power(D2, self.p / 2 - 1)

    def _curvatures(self, D2: np.ndarray) -> tuple[np.ndarray, float]:
        return self.alpha * self.p * (self.p - 2) * power(D2, self.p / 2 - 2), 0.0

    def _change(self, D2: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        second, _ = self._curvatures(D2)
        return lambda Q: second * Q

    def value(self, W: np.ndarray) -> float:
        """Value at ``W``."""
        return self.alpha * W.shape[1] * _square_sum(centred(W)) if self.p == 2 else super().value(W)

    def value_gradient(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient (d, k)."""
        if self.p != 2:
            return super().value_gradient(W)
        scale, V = self.alpha * W.shape[1], centred(W)
        return scale * _square_sum(V), W.dtype.type(2 * scale) * V

    def hessian(self, W: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """The map ``V -> Hessian(W) V``."""
        if self.p != 2:
            return super().hessian(W)
        first = laplacian(self._slopes(self._squared(W)), W.dtype)
        return lambda V: V @ first

    def smoothed(self, level: float) -> PairwisePower:
        """With ``tau`` at least ``level`` where there is a kink."""
        return self if self.p >= 2 or self.tau >= level else PairwisePower(self.alpha, self.p, level)

    def split(self, W: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Lengths of a flow over the pairs that sums up to ``Z``."""
        if self.p == 2:  # all of Z spread evenly is best, and only the sum of the squares counts
            return np.array([np.sqrt(_square_sum(Z) / W.shape[1])])
        return super().split(W, Z)

    def conjugate(self, parts: np.ndarray) -> tuple[float, float]:
        """Bound by the flow, ``sum_{j<l} (alpha rho)*(||u_jl||)`` with tau = 0; the best flow gives the conjugate."""
        a, p = self.alpha, self.p
        if p == 1:  # the conjugate is 0 up to alpha and infinite beyond
            return min(1.0, a / max(float(parts.max()), a)), 0.0
        with np.errstate(over="ignore"):  # no bound then
            return 1.0, (p - 1) * a * float(((parts / (a * p)) ** (p / (p - 1))).sum())
