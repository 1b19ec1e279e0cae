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

from ..._types import Rows
from ...rows.arrays import moments, total_variance, with_constant
from ..blocks.newton import BlockState
from ..blocks.passes import BlockProblem
from ..blocks.plan import solve_in_memory, suits
from ..dual.linear import solve_linear
from ..dual.many_rows import without_duals
from ..dual.plan import block_flops
from ..dual.state import DualState
from ..tuning import DEFAULT, Tuning


def block_problem(k: int, C: float, fit_intercept: bool) -> BlockProblem:
    """The machine of Weston and Watkins for rows in blocks; its objective is that of Xu's divided by k + 1."""
    intercept = "penalized" if fit_intercept else "none"
    return BlockProblem(k, "sum", C / (k + 1), k - 1, intercept=intercept, constant=float(np.sqrt(k + 1)))


def pairwise_penalty(W: np.ndarray, b: np.ndarray) -> float:
    """The first three terms of the problem above."""
    square = np.vdot(W, W)
    return 0.5 * float((len(W) + 1) * square - np.square(W.sum(axis=0)).sum() + b @ b)


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
    (n, d), k = X.shape, n_classes
    strength = float(np.add.reduce(cap)) / ((k + 1) * n) * total_variance(*moments(X))
    otherwise = block_flops(n, d, k, strength, tuning)
    if suits(X, k, otherwise, tuning.blocks):  # without a copy of the rows with a constant feature

        def of_sample(X: Rows, y: np.ndarray, caps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = solve_multi_margin(
                X, y, (k + 1) * caps, k, fit_intercept=fit_intercept,
                tol=tuning.common.start_tol, seed=seed, n_jobs=n_jobs, tuning=tuning,
            )  # fmt: skip
            return found.W, found.b

        blocks = replace(block_problem(k, 1.0, fit_intercept), C=1.0)
        found = solve_in_memory(
            X, y, cap / (k + 1), blocks, of_sample, tol=tol, max_iter=max_iter, seed=seed,
            start=None if state is None else (state.W, state.b), n_jobs=n_jobs, verbose=verbose,
            otherwise=otherwise, tuning=tuning.blocks,
        )  # fmt: skip
        if isinstance(found, BlockState):
            return without_duals(replace(found, objective=(k + 1) * found.objective), cap / (k + 1))
    if state is not None and state.width > 0:
        state = None
    # As the rows hold it, and with a square that is no smaller: a bound of that problem is one of Xu's as well.
    constant = float(np.nextafter(X.dtype.type(np.sqrt(k + 1)), X.dtype.type(np.inf)))
    rows = with_constant(X, constant) if fit_intercept else X
    state = solve_linear(
        rows, y, cap / (k + 1), k, "sum", k - 1,
        fit_intercept=False, tol=tol, max_iter=max_iter, seed=seed, state=state, n_jobs=n_jobs, verbose=verbose,
        tuning=tuning,
    )  # fmt: skip
    W, b = state.W, state.b
    if fit_intercept:
        W, b = state.W[:, :-1], constant * state.W[:, -1]
        state = replace(state, score_size=np.inf)  # its objective is not Xu's to the last digit
    return replace(state, W=W, b=b, objective=(k + 1) * state.objective)
