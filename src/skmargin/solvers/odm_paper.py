"""The optimal margin distribution machine by the published outer loop, for comparison (linear machines).

Zhang & Zhou (2017) make the upper part of the objective T (odm.py) convex by freezing the score M_i of the closest
rival::

    repeat  M_i = max_{l != y_i} f_il
            W = argmin 1/2 ||W||^2 + sum_i cap_i [ (1 - theta - gamma_i)_+^2 + mu (f_{i,y_i} - M_i - 1 - theta)_+^2 ]

Each of these problems is solved to a certified gap by their dual block ascent, with the block corrected
(_core/paper_blocks.hpp).  The loop is as printed: it does not majorise T, which may rise, and where it ends need not be
a stationary point of T.  Frozen scores do not know a shift of all scores, so the intercept is penalised: it is the
weight of a constant feature one, as in the paper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from skmargin._core import _ext

from .dual_blocks import _arrays
from .odm import FLOOR, Descent, Effort, Machine
from .odm_linear import LinearPoint, no_duals


def solve_paper(X: Any, machine: Machine, effort: Effort, start: LinearPoint | None = None) -> Descent:
    """Freeze and minimise until T stands still, from zero or from the class vectors of ``start``."""
    (n, d), k = X.shape, machine.n_classes
    X = _with_constant(X) if machine.fit_intercept else X
    rows = _arrays(X, np.float64)
    W = np.zeros((k, X.shape[1])) if start is None else np.column_stack([start.W, start.b])[:, : X.shape[1]]
    zeta, beta = np.zeros((n, k)), np.zeros(n)

    def true_objective() -> float:
        return 0.5 * float(np.vdot(W, W)) + machine.loss(X @ W.T)

    objectives, n_iter, gap = [true_objective()], 0, np.inf
    call = _ext.csr_paper if sparse.issparse(X) else _ext.dense_paper
    converged = False
    while len(objectives) <= effort.max_outer and n_iter < effort.max_iter and not converged:
        F = X @ W.T
        frozen = F[np.arange(n), machine.rivals(F)].astype(np.float64)
        out = call(
            *rows, machine.y, machine.cap, k, float(machine.mu), float(machine.theta), frozen, zeta, beta,
            FLOOR * effort.tol, effort.max_iter - n_iter, effort.seed + n_iter,
        )  # fmt: skip
        W, zeta, beta = out["W"], out["zeta"], out["beta"]
        n_iter += out["passes"]
        gap = out["gap"] / out["primal"]
        objectives.append(true_objective())
        converged = gap <= effort.tol and abs(objectives[-1] - objectives[-2]) <= effort.tol * objectives[-1]
    b = W[:, d].copy() if machine.fit_intercept else np.zeros(k)
    point = LinearPoint(W[:, :d], b, no_duals(n), b, machine.y, machine.cap)
    return Descent(point, np.array(objectives), gap, np.nan, n_iter, converged)


def _with_constant(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
