"""Rows that need not fit into memory: which solver, and what to do where the smoothed Newton method does not suit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skmargin._runtime.progress import print_line
from skmargin.rows.blocks import Block, BlockRows, Task
from skmargin.rows.moments import Sample, overview

from ..tuning import DEFAULT, BlocksTuning
from . import local_rounds
from .descent import SavePoint
from .lbfgs import MOST_ROUNDS, solve_gradients
from .loads import LoadStart, solve_loads, suits_loads
from .newton import BlockState, Refused, solve_blocks
from .passes import BlockProblem

SMALL_BYTES = 1 << 25  # rows that take no more are read into memory at once
MEMORY_SHARE = 0.25  # of the free memory that rows may take where no other solver is left

Loaded = tuple[Any, np.ndarray, np.ndarray]  # rows, classes, weights


@dataclass(frozen=True)
class Collect(Task[list[Block]]):
    """Task: all rows, for those that fit into memory."""

    name = "collect"

    def zero(self) -> list[Block]:
        """No rows."""
        return []

    def add(self, sums: list[Block], block: Block) -> None:
        """Keep a block."""
        sums.append(block._replace(X=block.X.copy()))


def load(rows: BlockRows) -> Loaded:
    """All rows, in their order."""
    blocks: list[Block] = rows.map_sum(Collect())
    blocks.sort(key=lambda block: block.first)
    parts = [block.X for block in blocks]
    X = sparse.csr_array(sparse.vstack(parts, format="csr")) if sparse.issparse(parts[0]) else np.concatenate(parts)
    return X, np.concatenate([b.y for b in blocks]), np.concatenate([b.weight for b in blocks])


def is_small(rows: BlockRows) -> bool:
    """Whether rows are so few that the solvers for rows in memory are the better ones."""
    return bytes_of(rows) <= SMALL_BYTES


def bytes_of(rows: BlockRows) -> int:
    """How much memory the rows would take."""
    return int(getattr(rows, "n_bytes", 8 * rows.n_rows * rows.n_features))


def solve_rows(
    rows: BlockRows,
    problem: BlockProblem,
    solve_sample: Callable[[Sample, np.ndarray], tuple[np.ndarray, np.ndarray]],
    solve_loaded: Callable[[Loaded], Any],
    free_memory: Callable[[], int | None],
    *,
    tol: float,
    max_iter: int,
    seed: int = 0,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    load_start: LoadStart | None = None,
    verbose: int = 0,
    save: SavePoint | None = None,
    tuning: BlocksTuning = DEFAULT.blocks,
) -> Any:
    """The solution: a `BlockState`, or what ``solve_loaded`` makes of rows that were read into memory.

    ``start`` is the point of a related problem, ``load_start`` one with its duals for the method that needs these.
    """
    parameters = (problem.n_classes - 1) * (rows.n_features + 1)
    free = free_memory()
    fits = free is None or bytes_of(rows) <= MEMORY_SHARE * free
    if parameters > tuning.most_parameters:
        if fits and not rows.remote:
            return solve_loaded(load(rows))
        return _solve_many_parameters(
            rows, problem, solve_sample, tol, max_iter, seed, start, load_start, verbose, save, tuning
        )
    given: dict[str, Any] = {
        "tol": tol, "max_passes": min(tuning.most_passes, max_iter), "seed": seed, "verbose": verbose, "save": save,
        "tuning": tuning,
    }  # fmt: skip
    found = solve_blocks(rows, problem, solve_sample, start=start, **given)
    if isinstance(found, BlockState):
        return found
    if verbose:
        print_line(f"blocks: {found.reason}; {'the rows are read into memory' if fits else 'steps on all rows go on'}")
    if fits:
        return solve_loaded(load(rows))
    if found.state is None:
        found = solve_blocks(rows, problem, solve_sample, start=start, force=True, **given)
    if isinstance(found, Refused):
        assert found.state is not None
        return found.state
    return found


def _solve_many_parameters(
    rows: BlockRows, problem: BlockProblem, solve_sample: Any, tol: float, max_iter: int, seed: int, start: Any,
    load_start: LoadStart | None, verbose: int, save: SavePoint | None, tuning: BlocksTuning,
) -> BlockState:  # fmt: skip
    """By block ascent over loads, by local rounds on workers, or by gradients alone: a sum of k d numbers a round."""
    seen = overview(rows, (tuning.sample_rows, tuning.class_rows), tuning.class_rows, seed)
    if suits_loads(rows):
        return solve_loads(
            rows, problem, seen, tol=tol, max_passes=max_iter, seed=seed, start=load_start, verbose=verbose, save=save
        )
    if start is None:
        start = solve_sample(seen.first, problem.C * seen.first.inflated())
    given: dict[str, Any] = {
        "tol": tol, "max_rounds": min(MOST_ROUNDS, max_iter), "verbose": verbose, "save": save,
    }  # fmt: skip
    if rows.remote and local_rounds.suits(problem):
        return local_rounds.solve_local_rounds(rows, problem, seen, load_start or start, seed=seed, **given)
    return solve_gradients(rows, problem, seen, start, **given)
