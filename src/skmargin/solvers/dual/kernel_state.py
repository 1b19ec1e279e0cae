"""Result of the solvers of kernel machines (kernel.py, kernel_factor.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .linear import dual_rescaling


@dataclass
class KernelState:
    """Result of `solve_kernel_dual`, and where another call may start.

    ``alpha`` (n, k) are the duals, zero at the own class, ``b`` (k,) the intercepts; ``objective`` is the primal
    value, ``gap`` the certified relative duality gap, ``n_iter`` the passes over working sets, ``scores`` (k, n) those
    of the training rows without b, ``n_updates`` the block steps, ``n_rows_computed`` the rows of the kernel matrix
    that were computed.  The published class vectors and b are ``stretch`` times those of the duals.  ``double``: a
    start from a solve that ended in float64.
    """

    alpha: np.ndarray
    b: np.ndarray
    objective: float = np.inf
    gap: float = np.inf
    n_iter: int = 0
    scores: np.ndarray | None = None
    n_updates: int = 0
    n_rows_computed: int = 0
    stretch: float = 1.0
    double: bool = False

    def machine(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of the rows, and intercepts, to which objective and gap belong."""
        return self.stretch * coefficients(self.alpha, y), self.stretch * self.b

    def rescaled(self, ratio: np.ndarray, y: np.ndarray) -> KernelState:
        """Where to start when the bounds of the duals have changed by these ratios."""
        assert self.scores is not None
        size = float(np.vdot(coefficients(self.alpha, y).T, self.scores))
        alpha = self.alpha * dual_rescaling(ratio, float(self.alpha.sum()), size)[:, None]
        return KernelState(alpha, self.b, double=self.scores.dtype == np.float64)


def coefficients(alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients c of the rows from the duals of the rivals."""
    c = -alpha
    c[np.arange(len(y)), y] = alpha.sum(axis=1)
    return c
