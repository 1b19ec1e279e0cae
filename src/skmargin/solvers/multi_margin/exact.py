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
from typing import Any

import numpy as np
from scipy import sparse

from ..._runtime.shared_rows import converted
from ..blocks.newton import BlockState
from ..blocks.passes import BlockProblem
from ..blocks.plan import solve_in_memory, suits
from ..dual.linear import SAMPLE_TOL, DualState, solve_linear


def with_constant(X: Any, value: float) -> Any:
    """``X`` with one more column, of this value; sparse rows stay sparse."""

    def make(rows: Any) -> Any:
        column = np.full((rows.shape[0], 1), value, dtype=rows.dtype)
        if sparse.issparse(rows):
            return sparse.csr_array(sparse.hstack([rows, sparse.csr_array(column)], format="csr"))
        return np.hstack([rows, column])

    return converted(X, value, make)


def block_problem(k: int, C: float, fit_intercept: bool) -> BlockProblem:
    """The machine of Weston and Watkins for rows in blocks; its objective is that of Xu's divided by k + 1."""
    intercept = "penalized" if fit_intercept else "none"
    return BlockProblem(k, "sum", C / (k + 1), k - 1, intercept=intercept, constant=float(np.sqrt(k + 1)))


def _many_rows(
    X: Any, y: np.ndarray, cap: np.ndarray, k: int, fit_intercept: bool, tol: float, max_iter: int, seed: int,
    state: DualState | None, n_jobs: int | None, verbose: int,
) -> DualState | None:  # fmt: skip
    """By smoothed Newton steps (solvers/blocks), which need no copy of the rows with a constant feature."""

    def solve_sample(X: Any, y: np.ndarray, caps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = solve_multi_margin(
            X, y, (k + 1) * caps, k, fit_intercept=fit_intercept, tol=SAMPLE_TOL, seed=seed, n_jobs=n_jobs
        )
        return found.W, found.b

    found = solve_in_memory(
        X, y, cap / (k + 1), replace(block_problem(k, 1.0, fit_intercept), C=1.0), solve_sample, tol=tol,
        max_iter=max_iter, seed=seed, start=None if state is None else (state.W, state.b), n_jobs=n_jobs,
        verbose=verbose,
    )  # fmt: skip
    if not isinstance(found, BlockState):
        return None
    nothing = np.zeros(len(y) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    return DualState(
        found.W, found.b, *nothing, np.zeros(k), cap / (k + 1), (k + 1) * found.objective, found.gap, found.n_iter,
        found.width,
    )  # fmt: skip


def solve_multi_margin(
    X: Any,
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
) -> DualState:
    """Solve the problem above to a relative duality gap of ``tol``; arguments as for `solve_linear`.

    The state holds class vectors, intercepts and objective of Xu's problem, and the duals of the other one.
    """
    k = n_classes
    if suits(X, k, True):
        found = _many_rows(X, y, cap, k, fit_intercept, tol, max_iter, seed, state, n_jobs, verbose)
        if found is not None:
            return found
    if state is not None and state.width > 0:
        state = None
    constant = float(X.dtype.type(np.sqrt(k + 1)))  # as the rows hold it
    rows = with_constant(X, constant) if fit_intercept else X
    state = solve_linear(
        rows, y, cap / (k + 1), k, "sum", k - 1,
        fit_intercept=False, tol=tol, max_iter=max_iter, seed=seed, state=state, n_jobs=n_jobs, verbose=verbose,
    )  # fmt: skip
    W, b = state.W, state.b
    if fit_intercept:
        W, b = state.W[:, :-1], constant * state.W[:, -1]
    return replace(state, W=W, b=b, objective=(k + 1) * state.objective)
