"""What a smooth primal solver asks of a loss.

A loss sees the scores ``F`` (n, k) of all samples, the index ``own = (arange(n), y)`` of each sample's own score, and
the weights ``s`` (n,).  It must not change when one number is added to all scores of a sample, and must grow with
the scores of the other classes: the slopes are then ``s_i A_il >= 0`` for ``l != y_i`` and minus their sum for ``l =
y_i``. ``A`` (zero in the own column) is the dual point from which the solver certifies a fit.

Arrays keep the memory order of ``F``: column-major for dense rows (long inner loops), row-major for sparse ones.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

Own = tuple[np.ndarray, np.ndarray]


class Curvature(Protocol):
    """Second derivative of a loss in the scores, at fixed scores."""

    def product(self, R: np.ndarray) -> np.ndarray:
        """Change of the slopes when the scores move along ``R`` (n, k)."""

    def sizes(self) -> np.ndarray:
        """Trace of each sample's matrix (n,): how much the sample counts in the second derivative."""

    def pairs(self) -> np.ndarray:
        """``h`` (n, k) such that the matrix of sample i is at least ``sum_l h_il (e_l - e_y)(e_l - e_y)'``."""

    def factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``c, a, b`` (n, k) such that the matrix of sample i is ``diag(c_i) - (a_i b_i' + b_i a_i') / 2``."""


class SmoothLoss(Protocol):
    """A differentiable convex loss of the scores."""

    duals_share_a_bound: bool
    """Whether the row sums of ``A`` are at most 1; else its entries are, each by itself."""

    def value(self, F: np.ndarray, own: Own, s: np.ndarray) -> float:
        """Weighted sum of the losses."""

    def value_slopes(self, F: np.ndarray, own: Own, s: np.ndarray) -> tuple[float, np.ndarray]:
        """Weighted sum of the losses and its derivative in the scores (n, k)."""

    def curvature(self, F: np.ndarray, own: Own, s: np.ndarray) -> Curvature:
        """Second derivative at ``F``."""

    def smoothed(self, level: float) -> SmoothLoss:
        """A loss without kinks narrower than ``level``; itself where it is that smooth already."""

    def dual_value(self, A: np.ndarray, s: np.ndarray) -> float:
        """Weighted sum of minus the conjugate at the dual point ``A``."""

    def feasible_factor(self, A: np.ndarray) -> float:
        """Largest number ``<= 1`` by which ``A`` may be multiplied to be a dual point."""
