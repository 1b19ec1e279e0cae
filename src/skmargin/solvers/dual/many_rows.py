"""The method for many rows and few parameters (solvers/blocks), for rows in memory.

It has no list of duals: a state that comes from it says the width at which they are a function of W and b.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._runtime.progress import print_line
from ..._types import Rows
from ...rows.arrays import moments
from ..blocks.newton import BlockState, Refused
from ..blocks.passes import BlockProblem
from ..blocks.plan import duals_of, solve_in_memory
from ..tuning import BlocksTuning
from .state import DualLists, DualState, LinearProblem

SampleSolver = Callable[[Any, np.ndarray, np.ndarray], DualState]  # rows, classes, caps


def block_problem(problem: LinearProblem) -> BlockProblem:
    """The same machine for rows in blocks, whose weights are the caps."""
    return BlockProblem(
        problem.n_classes, problem.loss, top_k=min(problem.top_k, problem.n_classes - 1),
        intercept="free" if problem.fit_intercept else "none",
    )  # fmt: skip


def solve_many_rows(
    problem: LinearProblem,
    solve_sample: SampleSolver,
    tol: float,
    max_iter: int,
    seed: int,
    state: DualState | None,
    n_jobs: int | None,
    verbose: int,
    otherwise: float,
    tuning: BlocksTuning,
) -> DualState | None:
    """The solution, or the best point with its duals; None where this method does not suit.

    ``otherwise`` is what the block passes are expected to cost.
    """
    blocks = block_problem(problem)

    def first_point(X: Rows, y: np.ndarray, cap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = solve_sample(X, y, cap)
        return found.W, found.b

    found = solve_in_memory(
        problem.X, problem.y, problem.cap, blocks, first_point, tol=tol, max_iter=max_iter, seed=seed,
        start=None if state is None else (state.W, state.b), n_jobs=n_jobs, verbose=verbose,
        otherwise=otherwise, tuning=tuning,
    )  # fmt: skip
    if isinstance(found, BlockState):
        return without_duals(found, problem.cap)
    assert isinstance(found, Refused)
    if verbose:
        print_line(f"blocks: {found.reason}; other methods go on")
    point = found.state
    if point is None:
        return None
    duals = DualLists(*duals_of(problem.X, problem.y, problem.cap, blocks, point))
    b = point.b + point.W @ moments(problem.X)[0]
    return DualState(point.W, point.b, duals, b - b.mean(), problem.cap, point.objective, point.gap, point.n_iter)


def without_duals(found: BlockState, cap: np.ndarray) -> DualState:
    """A state whose duals are a function of its point."""
    return DualState(
        found.W, found.b, DualLists.zero(len(cap)), found.b, cap, found.objective, found.gap, found.n_iter, found.width
    )
