"""The Newton system of a pass: identity plus the Laplacian of weighted class pairs, and a damping of the same kind.

    (R + L + lambda tr(L)/tr(L0) L0) s = -g

R is the penalty (for the free intercept next to nothing), L the second derivative of the smoothed losses, L0 a prior
that knows all features: what it was at W = 0.  Neither sees a vector that is common to all classes, so the last class
is fixed and the step centred afterwards (_core/newton/pair_laplacian.hpp has the same form).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from skmargin._core import _ext

FREE = 1e-9  # penalty of the free intercept, times the sum of the caps


def assemble(laplacian: np.ndarray, k: int) -> np.ndarray:
    """The upper triangle of the matrix ((k - 1) D)^2 of upper triangles (pairs, D, D)."""
    size = (k - 1) * laplacian.shape[1]
    H = np.empty((size, size))
    _ext.pair_matrix(laplacian, k, H)
    return H


class NewtonSystem:
    """Solves for steps at one point, with more damping if need be."""

    def __init__(self, laplacian: np.ndarray, penalty: np.ndarray, prior: np.ndarray, k: int) -> None:
        self.k, self.D, self.penalty = k, len(penalty), penalty
        self.L, self.prior = assemble(laplacian, k), prior
        self.ratio = float(np.trace(self.L)) / max(float(np.trace(prior)), np.finfo(float).tiny)

    def step(self, gradient: np.ndarray, damping: float) -> np.ndarray:
        """The step from a point with this gradient (k, D)."""
        k, D = self.k, self.D
        lift = 0.0
        while True:
            factor, info = lapack.dpotrf(self._matrix(damping, lift).T, lower=1, overwrite_a=1)
            if info == 0:
                break
            lift = max(100 * lift, 1e-14)  # weights or features that differ by 1e8 can spoil definiteness
            if lift > 1e6:
                return np.zeros((k, D))
        s, _ = lapack.dpotrs(factor, -gradient[: k - 1].ravel(), lower=1)
        step = np.vstack([s.reshape(k - 1, D), np.zeros((1, D))])
        return step - step.mean(axis=0)

    def _matrix(self, damping: float, lift: float) -> np.ndarray:
        H = self.L.copy()
        if damping > 0:
            H += (damping * self.ratio) * self.prior
        places = np.arange(self.D)  # the penalty, without what all classes share
        centring = np.eye(self.k - 1) - 1 / self.k
        H.reshape(self.k - 1, self.D, self.k - 1, self.D)[:, places, :, places] += (
            centring * self.penalty[:, None, None]
        )
        H.flat[:: len(H) + 1] *= 1 + lift
        return H
