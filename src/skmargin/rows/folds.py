"""Folds of rows in blocks: a row belongs to a fold by its number alone, so that no list of rows is needed.

Solves on several folds, and several on one fold, share their passes: the rows are read once for all of them.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from .._runtime.side_by_side import Ask, side_by_side
from .blocks import Block, BlockRows, Sums, Task
from .labels import row_hash
from .moments import Together

Result = TypeVar("Result")


@dataclass(frozen=True)
class OfFold(Task[Any]):
    """Task: another task on the rows of a fold, or on all others."""

    task: Task[Any]
    fold: int
    n_folds: int
    held_out: bool

    @property
    def name(self) -> str:
        """That of the task."""
        return self.task.name

    @property
    def lanes(self) -> int:
        """Those of the task."""
        return self.task.lanes

    def zero(self) -> Any:
        """Empty sums."""
        return self.task.zero()

    def add(self, sums: Any, block: Block) -> None:
        """Add the rows of a block that belong here."""
        numbers = block.first + np.arange(len(block.y))
        inside = (row_hash(numbers, 0) * self.n_folds).astype(np.int64) == self.fold
        at = np.flatnonzero(inside == self.held_out)
        if len(at):
            self.task.add(sums, Block(block.X[at], block.y[at], block.weight[at], block.first))

    def merge(self, sums: Any, others: Any) -> None:
        """As the task does."""
        self.task.merge(sums, others)


@dataclass(frozen=True)
class ClassSizes(Task[np.ndarray]):
    """Task: rows of each class, and their weight."""

    name = "count"
    n_classes: int

    def zero(self) -> np.ndarray:
        """No rows."""
        return np.zeros((2, self.n_classes))

    def add(self, sums: np.ndarray, block: Block) -> None:
        """Add a block."""
        sums[0] += np.bincount(block.y, minlength=self.n_classes)
        sums[1] += np.bincount(block.y, block.weight, self.n_classes)


class TrainingRows:
    """The rows outside of a fold, as a solver takes them; a pass is asked for, and made together with others."""

    in_memory = False

    def __init__(self, rows: BlockRows, fold: int, sizes: np.ndarray, overviews: dict[Any, Any], ask: Ask) -> None:
        self.fold, self.overviews, self._ask = fold, overviews, ask
        self.remote, self.n_features, self.n_blocks = rows.remote, rows.n_features, rows.n_blocks
        self.class_counts, self.class_weights = sizes[0].astype(np.int64), sizes[1]
        self.n_rows = int(self.class_counts.sum())
        self.n_bytes = getattr(rows, "n_bytes", 8 * self.n_rows * self.n_features)

    def map_sum(self, task: Task[Sums]) -> Sums:
        """The sums of a task over all rows."""
        sums: Sums = self._ask((self.fold, task))
        return sums


class Folds:
    """Rows that are divided into folds."""

    def __init__(self, rows: BlockRows, n_folds: int) -> None:
        self.rows, self.n_folds = rows, n_folds
        self.overviews: list[dict[Any, Any]] = [{} for _ in range(n_folds)]
        k = len(rows.class_counts)
        held = self.map_sum([(fold, ClassSizes(k)) for fold in range(n_folds)], held_out=True)
        self.sizes = np.sum(held, axis=0) - np.array(held)  # (folds, 2, k) of the rows outside of each

    def map_sum(self, asked: Sequence[tuple[int, Task[Any]]], held_out: bool) -> list[Any]:
        """The sums of tasks over (or without) their folds, in one pass; a task that is asked for twice is done once."""
        unique: dict[int, dict[bytes, Task[Any]]] = {}
        marks = [(fold, pickle.dumps(task)) for fold, task in asked]
        for (fold, mark), (_, task) in zip(marks, asked, strict=True):
            unique.setdefault(fold, {})[mark] = task
        tasks = [OfFold(Together(tuple(some.values())), fold, self.n_folds, held_out) for fold, some in unique.items()]
        found = self.rows.map_sum(Together(tuple(tasks)))
        place = {
            fold: dict(zip(some, sums, strict=True)) for (fold, some), sums in zip(unique.items(), found, strict=True)
        }
        # A solver may change what it gets; lists hold rows, of which it changes the order only.
        return [copy.copy(s) if isinstance(s, list) else copy.deepcopy(s) for s in (place[f][m] for f, m in marks)]

    def solve(self, works: Sequence[tuple[int, Callable[[TrainingRows], Result]]]) -> list[Result]:
        """What functions of the rows outside of their folds return; they run side by side and share passes."""

        def on(fold: int, work: Callable[[TrainingRows], Result]) -> Callable[[Ask], Result]:
            return lambda ask: work(TrainingRows(self.rows, fold, self.sizes[fold], self.overviews[fold], ask))

        return side_by_side([on(*one) for one in works], lambda asked: self.map_sum(asked, held_out=False))
