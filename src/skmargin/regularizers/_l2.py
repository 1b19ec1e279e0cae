"""Squared length of the class vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._numbers import checked


class L2:
    """``alpha ||W||^2``."""

    def __init__(self, alpha: float) -> None:
        self.alpha = checked("alpha", alpha, positive=True)  # its conjugate divides by it

    def value(self, W: np.ndarray) -> float:
        return self.alpha * float(np.vdot(W, W))

    def value_gradient(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        return self.value(W), 2 * self.alpha * W

    def hessian(self, W: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda V: 2 * self.alpha * V

    def explicit_hessian(self, W: np.ndarray) -> np.ndarray:
        return 2 * self.alpha * np.eye(W.size)

    def class_metric(self, W: np.ndarray) -> np.ndarray:
        return 2 * self.alpha * np.eye(W.shape[1])

    def smoothed(self, level: float) -> L2:
        return self

    def split(self, W: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return Z

    def conjugate(self, parts: np.ndarray) -> tuple[float, float]:
        return 1.0, float(np.vdot(parts, parts)) / (4 * self.alpha)
