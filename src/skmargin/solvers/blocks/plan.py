"""Whether the smoothed Newton method is worth a try for rows in memory, and the try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from skmargin.rows.blocks import ArrayRows, Block
from skmargin.rows.moments import Sample

from .newton import MOST_PASSES, BlockState, Refused, solve_blocks
from .passes import BlockProblem, Frame, SmoothPass

LEAST_ROWS, ROWS_PER_PARAMETER = 30_000, 60  # below them rows tell too little of the curvature
MOST_PARAMETERS = 2_000  # (k - 1) (d + 1): each step solves a dense system of so many unknowns
SURE_ROWS = 100_000  # from here on it is faster however small C is
LEAST_FILLED = 0.05  # share of non-zeros of sparse rows, which passes write out
# What it costs, in flops of the block passes: passes over all rows and over the sample, a product, a step, the rest.
PASSES, SAMPLE_WORK, PRODUCT_FLOPS, STEP_FLOPS, FIXED_FLOPS = 6, 240_000, 15.0, 42.0, 1e9
UNDERESTIMATED = 7.0  # by how much block passes take longer than their estimate says (measured where both take as long)


def expected_flops(n: int, d: int, k: int, passes: int = PASSES) -> float:
    """What this method is expected to cost, in flops of the block passes (measured)."""
    parameters = (k - 1) * (d + 1)
    return PRODUCT_FLOPS * (passes * n + SAMPLE_WORK) * k * (d + 1) + STEP_FLOPS * parameters**3 + FIXED_FLOPS


def suits(X: Any, k: int, otherwise: float = np.inf) -> bool:
    """Whether this method is worth a try; ``otherwise`` is what the block passes are expected to cost."""
    n, d = X.shape
    parameters = (k - 1) * (d + 1)
    if n < max(LEAST_ROWS, ROWS_PER_PARAMETER * parameters) or parameters > MOST_PARAMETERS:
        return False
    if sparse.issparse(X) and X.nnz < LEAST_FILLED * n * d:
        return False
    return n >= SURE_ROWS or UNDERESTIMATED * otherwise > expected_flops(n, d, k)


def solve_in_memory(
    X: Any,
    y: np.ndarray,
    cap: np.ndarray,
    problem: BlockProblem,
    solve_sample: Callable[[Any, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    *,
    tol: float,
    max_iter: int,
    seed: int,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    n_jobs: int | None = 1,
    verbose: int = 0,
    otherwise: float = np.inf,
) -> BlockState | Refused:
    """`solve_blocks` for arrays; ``cap`` holds C times the weights, and ``solve_sample`` takes X, y and such caps.

    ``otherwise`` is what the block passes are expected to cost.
    """
    rows = ArrayRows(X, y, cap, problem.n_classes, n_jobs)

    def of_sample(sample: Sample, caps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return solve_sample(sample.X, sample.y, caps)

    return solve_blocks(
        rows, problem, of_sample, tol=tol, max_passes=min(MOST_PASSES, max_iter), seed=seed, start=start,
        verbose=verbose, worth=otherwise / expected_flops(*X.shape, problem.n_classes, MOST_PASSES),
    )  # fmt: skip


def duals_of(
    X: Any, y: np.ndarray, cap: np.ndarray, problem: BlockProblem, state: BlockState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The duals of a point, one list for each row: row starts, rivals, numbers.

    They satisfy every bound; the constraint of the free intercept only as well as the point is a solution.
    """
    W = np.column_stack([state.W, state.b / problem.feature]) if problem.feature else state.W
    d = X.shape[1]
    task = SmoothPass(problem, Frame(np.zeros(d), np.zeros(d), reaches=False), W, state.width, single=False)
    return task.duals(Block(X, y, cap, 0))
