"""Losses of the smallest margin (Lei et al. 2015, problem 10), with what the solvers of this folder ask of them.

The loss of a sample is ``cap phi(xi)`` with ``xi = target - (f_y - max_{l != y} f_l)``, and its dual, a function of the
sum S of the sample's dual numbers, is minus the conjugate::

    name           target  phi(xi)            dual                                      domain
    hinge          1       max(0, xi)         S                                         0 <= S <= cap
    squared_hinge  1       max(0, xi)^2       S - S^2 / (4 cap)                         0 <= S
    log_loss       0       log(1 + exp(xi))   -S log(S/cap) - (cap - S) log(1 - S/cap)  0 <= S <= cap
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import entr, expit

from ..._core import _ext

Name = Literal["hinge", "squared_hinge", "log_loss"]


@dataclass(frozen=True)
class MarginLoss:
    """One of the losses above."""

    name: str

    @property
    def core(self) -> str:
        """Its name in the core, where the square of the hinge is a case of the optimal margin distribution."""
        return {"hinge": "max", "squared_hinge": "odm", "log_loss": "logistic"}[self.name]

    @property
    def target(self) -> float:
        """The margin at which ``xi`` is zero."""
        return 0.0 if self.name == "log_loss" else 1.0

    @property
    def smooth(self) -> bool:
        """Whether phi has a slope everywhere."""
        return self.name != "hinge"

    def problem(self, y: np.ndarray, cap: np.ndarray, n_classes: int) -> _ext.Problem:
        """What the core knows of a problem with this loss, but for the rows."""
        return _ext.Problem(y, cap, n_classes, self.core)

    def excess(self, F: np.ndarray, y: np.ndarray) -> np.ndarray:
        """``xi`` (n,) of the scores (n, k)."""
        own = np.arange(len(y)), y
        rivals = F - F[own][:, None]
        rivals[own] = -np.inf
        xi: np.ndarray = self.target + rivals.max(axis=1)
        return xi

    def value(self, xi: np.ndarray) -> np.ndarray:
        """``phi(xi)``."""
        if self.name == "log_loss":
            return np.logaddexp(0.0, xi)
        hinge = np.maximum(xi, 0.0)
        return hinge if self.name == "hinge" else hinge**2

    def slope(self, xi: np.ndarray) -> np.ndarray:
        """``phi'(xi)`` of a smooth loss, of the squared hinge where xi > 0."""
        return np.asarray(expit(xi)) if self.name == "log_loss" else 2 * xi

    def linearised(self, S: np.ndarray, xi: np.ndarray, cap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The equation ``S = cap phi'(xi)`` of a smooth loss as ``dS = curvature dxi - missed``: these two.

        That of the logarithm is ``logit(S / cap) = xi``: sums that have to fall by powers of ten do so in a few steps.
        """
        if self.name == "squared_hinge":
            return 2 * cap, S - 2 * cap * xi
        curvature = S * (cap - S) / cap
        return curvature, curvature * (np.log(S) - np.log(cap - S) - xi)

    def dual(self, S: np.ndarray, cap: np.ndarray) -> np.ndarray:
        """Minus the conjugate, by the table above; S within its bounds but for rounding."""
        if self.name == "squared_hinge":
            return S - S**2 / (4 * cap)
        if self.name == "hinge":
            return S
        share = np.clip(S / cap, 0.0, 1.0)
        return np.asarray(cap * (entr(share) + entr(1 - share)))

    def feasible(self, alpha: np.ndarray, cap: np.ndarray) -> np.ndarray:
        """Dual numbers (n, k) with their sums within their bounds, to the last digit."""
        if self.name == "squared_hinge":
            return alpha
        limit = cap / np.maximum(alpha.sum(axis=1) * (1 + 1e-15), 1e-300)
        return alpha * np.minimum(1, limit)[:, None]


HINGE = MarginLoss("hinge")
