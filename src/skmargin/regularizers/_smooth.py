"""What a smooth primal solver asks of a penalty on the class vectors ``W`` (d, k; one column a class)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np


class SmoothPenalty(Protocol):
    """A differentiable convex penalty."""

    degree: float
    """The value grows at most like this power of the class vectors."""

    def value(self, W: np.ndarray) -> float:
        """Value at ``W``."""

    def value_of_gram(self, G: np.ndarray) -> float:
        """The value of class vectors with these inner products (k, k)."""

    def value_gradient(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient (d, k)."""

    def hessian(self, W: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """The map ``V -> Hessian(W) V``."""

    def explicit_hessian(self, W: np.ndarray) -> np.ndarray:
        """The Hessian as a matrix over ``W.ravel()``: for small problems only."""

    def class_metric(self, W: np.ndarray) -> np.ndarray:
        """``M`` (k, k), new, such that the Hessian is within a factor of ``V -> V M``."""

    def smoothed(self, level: float) -> SmoothPenalty:
        """A penalty without kinks below the distance ``level``; itself where it is that smooth already."""

    def split(self, W: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """``Z`` written over the terms of the penalty, exactly optimal where ``Z`` is the gradient at ``W``."""

    def conjugate(self, parts: np.ndarray) -> tuple[float, float]:
        """Factor ``<= 1`` that brings the parts into the conjugate's domain, and a bound of the conjugate there."""
