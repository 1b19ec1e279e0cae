"""Whether the smoothed Newton method is worth a try for rows in memory, and the try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from skmargin.rows.blocks import ArrayRows, Block
from skmargin.rows.moments import Sample

from ..._types import Rows
from ..tuning import DEFAULT, BlocksTuning
from .newton import BlockState, Refused, solve_blocks
from .passes import BlockProblem, Frame, SmoothPass


def expected_flops(n: int, d: int, k: int, passes: int, tuning: BlocksTuning) -> float:
    """What so many passes and the way to them are expected to cost, in flops of the block passes."""
    on_samples = 2 * tuning.usual_passes * tuning.sample_rows
    return tuning.pass_flops * (passes * n + on_samples) * k * (d + 1) + tuning.fixed_flops


def suits(X: Rows, k: int, otherwise: float, tuning: BlocksTuning = DEFAULT.blocks) -> bool:
    """Whether this method is worth a try; ``otherwise`` is what the block passes are expected to cost."""
    n, d = X.shape
    parameters = (k - 1) * (d + 1)
    if n < tuning.rows_per_parameter * parameters or parameters > tuning.most_parameters:
        return False
    if sparse.issparse(X) and X.nnz < tuning.least_filled * n * d:
        return False
    expected = expected_flops(n, d, k, tuning.usual_passes, tuning)
    return n >= tuning.sure_rows or tuning.underestimated * otherwise > expected


def solve_in_memory(
    X: Rows,
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
    otherwise: float,
    tuning: BlocksTuning = DEFAULT.blocks,
) -> BlockState | Refused:
    """`solve_blocks` for arrays; ``cap`` holds C times the weights, and ``solve_sample`` takes X, y and such caps.

    ``otherwise`` is what the block passes are expected to cost.
    """
    rows, k = ArrayRows(X, y, cap, problem.n_classes, n_jobs), problem.n_classes
    most = expected_flops(rows.n_rows, rows.n_features, k, tuning.most_passes, tuning)

    def of_sample(sample: Sample, caps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return solve_sample(sample.X, sample.y, caps)

    return solve_blocks(
        rows, problem, of_sample, tol=tol, max_passes=min(tuning.most_passes, max_iter), seed=seed, start=start,
        verbose=verbose, worth=otherwise / most, tuning=tuning,
    )  # fmt: skip


def duals_of(
    X: Rows, y: np.ndarray, cap: np.ndarray, problem: BlockProblem, state: BlockState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The duals of a point, one list for each row: row starts, rivals, numbers.

    They satisfy every bound; the constraint of the free intercept only as well as the point is a solution.
    """
    W = np.column_stack([state.W, state.b / problem.feature]) if problem.feature else state.W
    d = X.shape[1]
    task = SmoothPass(problem, Frame(np.zeros(d), np.zeros(d), reaches=False), W, state.width, single=False)
    return task.duals(Block(X, y, cap, 0))
