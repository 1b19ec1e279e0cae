"""The machine of Xu et al. (2017), exactly, as a machine of Weston and Watkins.

Problem (k classes, f_i = W x_i + b)::

    min  1/2 sum_{j<l} ||w_j - w_l||^2 + 1/2 ||W||^2 + 1/2 ||b||^2
             + sum_i cap_i sum_{l != y_i} max(0, 1 - f_{i,y_i} + f_il)

``sum_{j<l} ||w_j - w_l||^2 = k ||W||^2 - ||W 1||^2`` and the losses do not see a vector added to all classes, so the
class vectors sum to zero at the optimum.  The problem is then k + 1 times that of Weston and Watkins with the weights
``cap / (k + 1)`` and the constant feature ``b0 = sqrt(k + 1)``, whose weights times b0 are the intercepts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...rows.arrays import Rows, with_constant
from ..dual.linear import solve_linear
from ..dual.state import DualState
from ..tuning import DEFAULT, Tuning


def solve_multi_margin(
    X: Rows,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: DualState | None = None,
    n_jobs: int | None = 1,
    verbose: int = 0,
    tuning: Tuning = DEFAULT,
) -> DualState:
    """Solve the problem above to a relative duality gap of ``tol``; arguments as for `solve_linear`.

    The state holds class vectors, intercepts and objective of Xu's problem, and the duals of the other one.
    """
    k = n_classes
    constant = float(X.dtype.type(np.sqrt(k + 1)))  # as the rows hold it
    rows = with_constant(X, constant) if fit_intercept else X
    state = solve_linear(
        rows, y, cap / (k + 1), k, "sum", k - 1,
        fit_intercept=False, tol=tol, max_iter=max_iter, seed=seed, state=state, n_jobs=n_jobs, verbose=verbose,
        tuning=tuning,
    )  # fmt: skip
    W, b = state.W, state.b
    if fit_intercept:
        W, b = state.W[:, :-1], constant * state.W[:, -1]
    return replace(state, W=W, b=b, objective=(k + 1) * state.objective)
