"""Distances between class vectors to the power p (Nie et al. 2024, equations 17 to 24).

    R(W) = alpha sum_{j<l} rho(||w_j - w_l||),   rho(D) = (D^2 + tau^2)^(p/2) - tau^p

``tau = 0`` is the published penalty; ``tau > 0`` removes the kink (p = 1) or the infinite curvature (p < 2) at ``D =
0``. All squared distances come from the Gram matrix ``W'W``; with ``S = D2^(p/2-1)`` and ``Lap(S) = diag(S 1) - S``

    gradient     alpha p W Lap(S)
    Hessian V    alpha p [V Lap(S) + W Lap((p-2) D2^(p/2-2) o Q)],   Q_jl = (w_j - w_l)'(v_j - v_l)

so that nothing larger than (d, k) or (k, k) is made and no pair is looped over.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._numbers import WITH_SQUARE, checked


def _differences(G: np.ndarray) -> np.ndarray:
    """``G_jj + G_ll - G_jl - G_lj``: inner products of differences from inner products of vectors."""
    n = np.diagonal(G)
    out = n[:, None] + n[None, :] - G - G.T
    np.fill_diagonal(out, 0.0)
    return out


def _power(D2: np.ndarray, exponent: float) -> np.ndarray:
    """``D2 ** exponent`` with 0 ** negative = 0 (it only ever multiplies a vanishing difference); diagonal 0.

    Numbers without a finite inverse count as 0.
    """
    out = np.zeros_like(D2)
    np.power(D2, exponent, out=out, where=np.finfo(D2.dtype).tiny <= D2)
    np.fill_diagonal(out, 0.0)
    return out


def _laplacian(S: np.ndarray, dtype: np.dtype) -> np.ndarray:
    L = -S
    np.fill_diagonal(L, S.sum(axis=1))
    return L.astype(dtype, copy=False)


def _centred(W: np.ndarray) -> np.ndarray:
    return W - W.mean(axis=1, keepdims=True)


def _square_sum(V: np.ndarray) -> float:
    return float(np.einsum("ij,ij->i", V, V).sum(dtype=np.float64))


class PairwisePower:
    """``alpha sum_{j<l} ||w_j - w_l||^p``, smoothed by ``tau`` near zero distance.

    With ``p = 2`` it is ``alpha k ||V||^2``, V the vectors less their mean: no Gram matrix is needed.
    """

    def __init__(self, alpha: float, p: float, tau: float = 0.0) -> None:
        self.alpha = checked("alpha", alpha, positive=True)  # its conjugate divides by it
        self.p, self.tau = checked("p", p, 1), checked("tau", tau, most=WITH_SQUARE)

    def _squared(self, W: np.ndarray) -> np.ndarray:
        """``D2 + tau^2`` in float64, from centred vectors: close vectors far from the origin keep their digits."""
        V = _centred(W)
        D2 = np.maximum(_differences((V.T @ V).astype(np.float64, copy=False)), 0.0)
        return D2 + self.tau**2

    def _value(self, D2: np.ndarray) -> float:
        terms = D2 ** (self.p / 2) - self.tau**self.p
        np.fill_diagonal(terms, 0.0)
        return 0.5 * self.alpha * float(terms.sum())

    def value(self, W: np.ndarray) -> float:
        if self.p == 2:
            return self.alpha * W.shape[1] * _square_sum(_centred(W))
        return self._value(self._squared(W))

    def value_of_gram(self, G: np.ndarray) -> float:
        """The value of class vectors with these inner products (k, k)."""
        return self._value(np.maximum(_differences(G), 0.0) + self.tau**2)

    def value_gradient(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        if self.p == 2:
            scale, V = self.alpha * W.shape[1], _centred(W)
            return scale * _square_sum(V), W.dtype.type(2 * scale) * V
        D2 = self._squared(W)
        S = self.alpha * self.p * _power(D2, self.p / 2 - 1)
        return self._value(D2), W @ _laplacian(S, W.dtype)

    def hessian(self, W: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        D2 = self._squared(W)
        first = _laplacian(self.alpha * self.p * _power(D2, self.p / 2 - 1), W.dtype)
        second = self.alpha * self.p * (self.p - 2) * _power(D2, self.p / 2 - 2)

        def product(V: np.ndarray) -> np.ndarray:
            return V @ first + W @ _laplacian(second * _differences(W.T @ V), W.dtype)

        return product if self.p != 2 else lambda V: V @ first

    def explicit_hessian(self, W: np.ndarray) -> np.ndarray:
        d, k = W.shape
        D2 = self._squared(W)
        first = _laplacian(self.alpha * self.p * _power(D2, self.p / 2 - 1), D2.dtype)
        second = self.alpha * self.p * (self.p - 2) * _power(D2, self.p / 2 - 2)
        apart = W.T[:, None, :] - W.T[None, :, :]  # (k, k, d): the small problems of this method only
        outer = (second[:, :, None] * apart)[:, :, :, None] * apart[:, :, None, :]
        H = np.kron(np.eye(d), first).reshape(d, k, d, k) - outer.transpose(2, 0, 3, 1)
        H[:, np.arange(k), :, np.arange(k)] += outer.sum(axis=1)
        return H.reshape(d * k, d * k)

    def class_metric(self, W: np.ndarray) -> np.ndarray:
        """``alpha p Lap(S)``: for ``p >= 2`` the Hessian is between it and its ``(p - 1)``-fold."""
        return _laplacian(self.alpha * self.p * _power(self._squared(W), self.p / 2 - 1), np.dtype(np.float64))

    def smoothed(self, level: float) -> PairwisePower:
        return self if self.p >= 2 or self.tau >= level else PairwisePower(self.alpha, self.p, level)

    def split(self, W: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Lengths of a flow ``u_jl`` with ``Z = sum_{j<l} u_jl (e_j - e_l)'`` (the columns of ``Z`` sum to zero).

        The flow is the gradient's own, ``alpha p D2^(p/2-1) (w_j - w_l)``, plus the rest ``r = Z - grad`` spread
        evenly, ``(r_j - r_l) / k``; the lengths come from the Gram matrices of ``W`` and ``r``.
        """
        k = W.shape[1]
        if self.p == 2:  # all of Z spread evenly is best, and only the sum of the squares counts
            return np.array([np.sqrt(_square_sum(Z) / k)])
        W = W.astype(np.float64, copy=False)
        D2 = self._squared(W)
        S = self.alpha * self.p * _power(D2, self.p / 2 - 1)
        V = _centred(W)
        r = Z - V @ _laplacian(S, V.dtype)
        u2 = S**2 * (D2 - self.tau**2) + 2 / k * S * _differences(V.T @ r) + _differences(r.T @ r) / k**2
        return np.sqrt(np.maximum(u2[np.triu_indices(k, 1)], 0.0))

    def conjugate(self, parts: np.ndarray) -> tuple[float, float]:
        """Bound by the flow, ``sum_{j<l} (alpha rho)*(||u_jl||)`` with tau = 0; the best flow gives the conjugate."""
        a, p = self.alpha, self.p
        if p == 1:  # the conjugate is 0 up to alpha and infinite beyond
            return min(1.0, a / max(float(parts.max()), a)), 0.0
        with np.errstate(over="ignore"):  # no bound then
            return 1.0, (p - 1) * a * float(((parts / (a * p)) ** (p / (p - 1))).sum())
