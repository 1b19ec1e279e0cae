"""The largest distance between class vectors: twice one over the minimum margin (Nie et al. 2024, equation 15).

    width = 0, p = infinity in (15b)     R(W) = alpha max_{j<l} D_jl
    width > 0, the p of (15a)            R(W) = alpha width log(mean_{j<l} exp(D_jl / width))

The paper has the sum over the pairs instead of the mean, a constant more; the mean makes the value at ``W = 0`` zero.
``D = sqrt(||w_j - w_l||^2 + tau^2) - tau``, where ``tau = 0`` is the published penalty.  With ``q`` the softmax of
``D / width`` over the pairs and ``rho = D + tau``, ``S = alpha q / rho`` (`PairwisePenalty`).

The conjugate of the second function of the distances ``D >= 0`` is, for lengths ``c`` with ``sum c <= alpha``,
``alpha width (sum q log q + log m)``, where ``q >= c / alpha`` are the m numbers with the sum 1 that are nearest to all
alike: no q is smaller than a level, and those above it are ``c / alpha``.  Beyond the sum it is infinite; for width = 0
it is 0 up to there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._numbers import WITH_SQUARE, checked
from ._pairwise import PairwisePenalty, centred, differences, laplacian, power

# In units of the distance below which kinks are rounded, which is a tenth of a level over the length of the rows: a
# level then rounds the largest distance by about the share by which it rounds the loss, since distances at the
# optimum are ten to some hundred times one over that length.  Of 18 fits 100 takes four times the CPU seconds, 10,000
# takes 1.3 times, and so does a width made of the distance itself (over the logarithm of the number of pairs).
_DISTANCE = 1000.0
_SHARES = (1e-3, 1e-2, 0.1, 1.0, 1e3)  # of the mean conductance in those of all pairs; the last spreads evenly


class PairwiseMaximum(PairwisePenalty):
    """``alpha max_{j<l} ||w_j - w_l||``, or smoothed over ``width``, and by ``tau`` near zero distance.

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.regularizers import PairwiseMaximum
    >>> PairwiseMaximum(alpha=1.0).value(np.array([[0.0, 3.0], [0.0, 4.0]]))
    5.0
    """

    degree = 1.0

    def __init__(self, alpha: float, width: float = 0.0, tau: float = 0.0) -> None:
        super().__init__(alpha, tau)
        self.width = checked("width", width, most=WITH_SQUARE)

    def _shares(self, rho: np.ndarray) -> np.ndarray:
        """``q`` of each pair, symmetric; at a kink the largest distances share alike."""
        top = rho.max()
        q = np.exp((rho - top) / self.width) if self.width else (rho >= top).astype(np.float64)
        np.fill_diagonal(q, 0.0)
        return q / (0.5 * q.sum())

    def _value(self, D2: np.ndarray) -> float:
        rho = np.sqrt(D2[np.triu_indices(len(D2), 1)])
        top = float(rho.max())
        if self.width:
            return self.alpha * (top - self.tau + self.width * float(np.log(np.exp((rho - top) / self.width).mean())))
        return self.alpha * (top - self.tau)

    def _slopes(self, D2: np.ndarray) -> np.ndarray:
        return self.alpha * self._shares(np.sqrt(D2)) * power(D2, -0.5)

    def _curvatures(self, D2: np.ndarray) -> tuple[np.ndarray, float]:
        q = self.alpha * self._shares(np.sqrt(D2))
        return q * (power(D2, -1.0) / self.width - power(D2, -1.5)), 1 / (self.alpha * self.width)

    def _change(self, D2: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        q, inverse = self._shares(np.sqrt(D2)), power(D2, -0.5)

        def change(Q: np.ndarray) -> np.ndarray:
            step = Q * inverse  # of rho; what all pairs share does not change q
            step -= 0.5 * float(np.vdot(q, step))
            return self.alpha * q * (step * inverse / self.width - Q * inverse**3)

        return change

    def class_metric(self, W: np.ndarray) -> np.ndarray:
        """As for all pairs, with the mean slope added to each: pairs far from the largest have none of their own."""
        return laplacian(_raised(self._slopes(self._squared(W)), 1.0), np.dtype(np.float64))

    def split(self, W: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Lengths of a flow over the pairs that makes ``Z``, of some flows those with the least sum.

        The gradient's own flow, ``S_jl (w_j - w_l)``, and the rest ``r`` as the current ``c_jl (phi_j - phi_l)`` of a
        network with the conductances ``c = S``, a share of their mean added: along pairs that carry much already, where
        what is at right angles to the flow hardly makes it longer.
        """
        W = W.astype(np.float64, copy=False)
        D2 = self._squared(W)
        S, V = self._slopes(D2), centred(W)
        r = Z - V @ laplacian(S, V.dtype)
        k, upper = len(S), np.triu_indices(len(S), 1)
        best = np.full(len(upper[0]), np.inf)
        for share in _SHARES:
            c = _raised(S, share)
            L = laplacian(c, V.dtype) + c.max() / k  # what all classes share carries no current
            phi = np.linalg.solve(L, r.T).T
            u2 = S**2 * (D2 - self.tau**2) + 2 * S * c * differences(V.T @ phi) + c**2 * differences(phi.T @ phi)
            lengths = np.sqrt(np.maximum(u2[upper], 0.0))
            if lengths.sum() < best.sum():
                best = lengths
        return best

    def smoothed(self, level: float) -> PairwiseMaximum:
        """With ``tau`` at least ``level`` and ``width``, whose unit are the distances in question, that much larger."""
        width = _DISTANCE * level
        if self.width >= width and self.tau >= level:
            return self
        return PairwiseMaximum(self.alpha, max(self.width, width), max(self.tau, level))

    def conjugate(self, parts: np.ndarray) -> tuple[float, float]:
        """Bound by the flow (head of the file), with tau = 0."""
        factor = min(1.0, self.alpha / max(float(parts.sum()), self.alpha))
        if not self.width:
            return factor, 0.0
        q = _filled(parts * (factor / self.alpha))
        entropy = float(np.sum(q * np.log(np.maximum(q, np.finfo(float).tiny)))) + np.log(len(q))
        return factor, self.alpha * self.width * max(0.0, entropy)


def _raised(S: np.ndarray, share: float) -> np.ndarray:
    """``S`` with a share of its mean over the pairs added to each."""
    k = len(S)
    out = S + share * S.sum() / (k * (k - 1))
    np.fill_diagonal(out, 0.0)
    return out


def _filled(q: np.ndarray) -> np.ndarray:
    """``max(q, t)`` with the level t at which the sum is 1 (that of q is at most 1)."""
    order = np.sort(q)
    above = np.append(np.cumsum(order[::-1])[::-1][1:], 0.0)  # the sum of those larger than each
    levels = (1 - above) / np.arange(1, len(q) + 1)  # if all up to there were filled
    return np.maximum(q, levels[(levels >= order)].min(initial=1.0))
