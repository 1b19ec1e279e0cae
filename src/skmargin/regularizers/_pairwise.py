"""What penalties on the distances ``D_jl = ||w_j - w_l||`` of all pairs of class vectors share.

All squared distances come from the Gram matrix ``W'W``.  With ``S`` the derivative by a distance, divided by the
distance, and ``Lap(S) = diag(S 1) - S``

    gradient     W Lap(S)
    Hessian V    V Lap(S) + W Lap(change of S),   which depends on Q_jl = (w_j - w_l)'(v_j - v_l)

so that nothing larger than (d, k) or (k, k) is made and no pair is looped over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from .._numbers import WITH_SQUARE, checked


def differences(G: np.ndarray) -> np.ndarray:
    """``G_jj + G_ll - G_jl - G_lj``: inner products of differences from inner products of vectors."""
    n = np.diagonal(G)
    out = n[:, None] + n[None, :] - G - G.T
    np.fill_diagonal(out, 0.0)
    return out


def power(D2: np.ndarray, exponent: float) -> np.ndarray:
    """``D2 ** exponent`` with 0 ** negative = 0 (it only ever multiplies a vanishing difference); diagonal 0.

    Numbers without a finite inverse count as 0.
    """
    out = np.zeros_like(D2)
    np.power(D2, exponent, out=out, where=np.finfo(D2.dtype).tiny <= D2)
    np.fill_diagonal(out, 0.0)
    return out


def laplacian(S: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """``diag(S 1) - S``."""
    L = -S
    np.fill_diagonal(L, S.sum(axis=1))
    return L.astype(dtype, copy=False)


def centred(W: np.ndarray) -> np.ndarray:
    """The class vectors less their mean."""
    return W - W.mean(axis=1, keepdims=True)


class PairwisePenalty(ABC):
    """A penalty on the distances ``sqrt(D^2 + tau^2)`` of all pairs; ``tau > 0`` removes kinks at zero distance."""

    degree: float
    """The value grows at most like this power of the distances."""

    def __init__(self, alpha: float, tau: float) -> None:
        self.alpha = checked("alpha", alpha, positive=True)  # its conjugate divides by it
        self.tau = checked("tau", tau, most=WITH_SQUARE)

    @abstractmethod
    def _value(self, D2: np.ndarray) -> float:
        """The value at squared distances (k, k) with ``tau^2`` added."""

    @abstractmethod
    def _slopes(self, D2: np.ndarray) -> np.ndarray:
        """``S`` there."""

    @abstractmethod
    def _change(self, D2: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """The map from ``Q`` to the change of ``S``."""

    @abstractmethod
    def _curvatures(self, D2: np.ndarray) -> tuple[np.ndarray, float]:
        """``T`` and ``c`` with ``sum_{j<l} T_jl u_jl u_jl' - c g g'`` in the Hessian, ``g`` the gradient."""

    @abstractmethod
    def smoothed(self, level: float) -> PairwisePenalty:
        """A penalty without kinks below the distance ``level``; itself where it is that smooth already."""

    @abstractmethod
    def conjugate(self, parts: np.ndarray) -> tuple[float, float]:
        """Factor ``<= 1`` that brings the parts into the conjugate's domain, and a bound of the conjugate there."""

    def _squared(self, W: np.ndarray) -> np.ndarray:
        """``D2 + tau^2`` in float64, from centred vectors: close vectors far from the origin keep their digits."""
        V = centred(W)
        D2 = np.maximum(differences((V.T @ V).astype(np.float64, copy=False)), 0.0)
        return D2 + self.tau**2

    def value(self, W: np.ndarray) -> float:
        """Value at ``W``."""
        return self._value(self._squared(W))

    def value_of_gram(self, G: np.ndarray) -> float:
        """The value of class vectors with these inner products (k, k)."""
        return self._value(np.maximum(differences(G), 0.0) + self.tau**2)

    def value_gradient(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient (d, k)."""
        D2 = self._squared(W)
        return self._value(D2), W @ laplacian(self._slopes(D2), W.dtype)

    def hessian(self, W: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """The map ``V -> Hessian(W) V``."""
        D2 = self._squared(W)
        first, change = laplacian(self._slopes(D2), W.dtype), self._change(D2)

        def product(V: np.ndarray) -> np.ndarray:
            return V @ first + W @ laplacian(change(differences(W.T @ V)), W.dtype)

        return product

    def explicit_hessian(self, W: np.ndarray) -> np.ndarray:
        """The Hessian as a matrix over ``W.ravel()``: for small problems only."""
        d, k = W.shape
        D2 = self._squared(W)
        first, (second, shared) = laplacian(self._slopes(D2), D2.dtype), self._curvatures(D2)
        apart = W.T[:, None, :] - W.T[None, :, :]  # (k, k, d): the small problems of this method only
        outer = (second[:, :, None] * apart)[:, :, :, None] * apart[:, :, None, :]
        H = np.kron(np.eye(d), first).reshape(d, k, d, k) - outer.transpose(2, 0, 3, 1)
        H[:, np.arange(k), :, np.arange(k)] += outer.sum(axis=1)
        H = H.reshape(d * k, d * k)
        if shared:
            g = (W @ first).ravel()
            H -= shared * np.outer(g, g)
        return H

    def class_metric(self, W: np.ndarray) -> np.ndarray:
        """``Lap(S)``, new: the Hessian without the change of ``S``."""
        return laplacian(self._slopes(self._squared(W)), np.dtype(np.float64))

    def split(self, W: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Lengths of a flow ``u_jl`` with ``Z = sum_{j<l} u_jl (e_j - e_l)'`` (the columns of ``Z`` sum to zero).

        The flow is the gradient's own, ``S_jl (w_j - w_l)``, plus the rest ``r = Z - grad`` spread evenly, ``(r_j -
        r_l) / k``; the lengths come from the Gram matrices of ``W`` and ``r``.
        """
        k = W.shape[1]
        W = W.astype(np.float64, copy=False)
        D2 = self._squared(W)
        S = self._slopes(D2)
        V = centred(W)
        r = Z - V @ laplacian(S, V.dtype)
        with np.errstate(over="ignore"):  # no bound then
            u2 = S**2 * (D2 - self.tau**2) + 2 / k * S * differences(V.T @ r) + differences(r.T @ r) / k**2
        return np.sqrt(np.maximum(u2[np.triu_indices(k, 1)], 0.0))
