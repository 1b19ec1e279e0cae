"""Rows in blocks: all that a solver of many rows does with them is to add up sums over rows.

A `Task` says what is added up.  It has no state: it makes empty sums (``zero``), adds the rows of a block to them
(``add``), and adds sums to each other (``merge``); it can be pickled, and so can its sums.  `BlockRows.map_sum` runs a
task over all rows, wherever they are: in memory, in files, on workers.

The same bits whatever the number of threads: each block is cut into `LANES` parts, of which each has sums of its own,
and these are added in their order at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy import sparse

from skmargin._runtime.threads import on_threads, thread_count

from .._types import Rows
from ..solvers.tuning import DEFAULT
from .maps import refuse_cut_map

LANES = 8  # parts of a block, and the most threads that share it; each holds the sums of a task: it decides the bits

Sums = TypeVar("Sums")


class Block(NamedTuple):
    """Some rows."""

    X: Rows  # (rows, n_features) float32 or float64, C-contiguous or CSR
    y: np.ndarray  # (rows,) int32, classes 0..k-1
    weight: np.ndarray  # (rows,) float64, positive
    first: int  # number of the first row among all

    def cut(self, begin: int, end: int) -> Block:
        """The rows from ``begin`` to ``end``, without a copy of dense ones."""
        return Block(self.X[begin:end], self.y[begin:end], self.weight[begin:end], self.first + begin)


class Task(ABC, Generic[Sums]):
    """What is added up over the rows."""

    @property
    def name(self) -> str:
        """For people who watch it being done elsewhere."""
        return "sum"

    @property
    def lanes(self) -> int:
        """Parts of a block that may be worked on at once; depends on the task only."""
        return LANES

    @abstractmethod
    def zero(self) -> Sums:
        """Empty sums."""

    @abstractmethod
    def add(self, sums: Sums, block: Block) -> None:
        """Add the rows of a block."""

    def merge(self, sums: Sums, others: Sums) -> None:
        """Add the sums of rows that come later: numbers to numbers, and rows that were kept behind each other."""
        merge_sums(sums, others)


def merge_sums(sums: Any, others: Any) -> None:
    """Add arrays, dictionaries of arrays, or objects whose attributes are arrays or None; extend lists."""
    if isinstance(sums, np.ndarray):
        sums += others
    elif isinstance(sums, list):
        sums.extend(others)
    elif sums is not None:
        mine, theirs = (one if isinstance(one, dict) else vars(one) for one in (sums, others))
        for name, total in mine.items():
            merge_sums(total, theirs[name])


class BlockRows(Protocol):
    """Rows with labels 0..k-1 and positive weights, to be added up."""

    n_rows: int
    n_features: int
    n_blocks: int
    in_memory: bool  # whether a pass over some of the rows costs less than one over all
    remote: bool  # whether the rows are on other machines
    class_counts: np.ndarray  # (k,) rows of each class

    @property
    def class_weights(self) -> np.ndarray:
        """Sum of the weights of each class, (k,)."""

    def map_sum(self, task: Task[Sums]) -> Sums:
        """The sums of a task over all rows."""


def map_blocks(blocks: Iterator[Block], task: Task[Sums], n_jobs: int | None, lanes_at_most: int = LANES) -> Sums:
    """The sums of a task over blocks that are given one after the other."""
    lanes = [task.zero() for _ in range(min(task.lanes, lanes_at_most))]
    threads = thread_count(n_jobs)
    for block in blocks:
        cuts = np.linspace(0, len(block.y), len(lanes) + 1).astype(int).tolist()

        def work(lane: int, block: Block = block, cuts: list[int] = cuts) -> None:
            if cuts[lane] < cuts[lane + 1]:
                task.add(lanes[lane], block.cut(cuts[lane], cuts[lane + 1]))

        on_threads(work, range(len(lanes)), threads)
    for lane in lanes[1:]:
        task.merge(lanes[0], lane)
    return lanes[0]


class ArrayRows:
    """Rows of an array in memory or on disk (`numpy.memmap`), or CSR; nothing is copied."""

    in_memory, remote = True, False

    def __init__(
        self, X: Rows, y: np.ndarray, weight: np.ndarray, n_classes: int, n_jobs: int | None = 1, first: int = 0
    ) -> None:
        self.X, self.y, self.weight, self.n_jobs, self.first = X, y, weight, n_jobs, first
        self.n_rows, self.n_features = X.shape
        self.class_counts = np.bincount(y, minlength=n_classes)
        self.class_weights = np.bincount(y, weight, minlength=n_classes)
        self.block_rows = rows_in_block(X)
        self.n_blocks = -(-self.n_rows // self.block_rows)

    def __iter__(self) -> Iterator[Block]:
        whole = Block(self.X, self.y, self.weight, self.first)
        for begin in range(0, self.n_rows, self.block_rows):
            refuse_cut_map(self.X)
            yield whole.cut(begin, min(begin + self.block_rows, self.n_rows))

    def every(self, step: int) -> ArrayRows:
        """A copy of each ``step``-th row, which weighs as much as those that are left out."""
        weight = step * self.weight[::step]
        return ArrayRows(self.X[::step].copy(), self.y[::step].copy(), weight, len(self.class_counts), self.n_jobs)

    def map_sum(self, task: Task[Sums]) -> Sums:
        """The sums of a task over all rows."""
        return map_blocks(iter(self), task, self.n_jobs, max(1, self.n_rows // DEFAULT.blocks.lane_rows))


def rows_in_block(X: Rows) -> int:
    """How many rows a block of such rows has."""
    stored = (X.data.nbytes + X.indices.nbytes) / max(1, X.shape[0]) if sparse.issparse(X) else X[:1].nbytes
    return int(max(LANES, DEFAULT.blocks.piece_bytes // max(1, int(stored))))


def chunks(n: int, n_features: int) -> Iterator[slice]:
    """Rows that are worked on at once, so that they stay in the cache."""
    step = max(1, DEFAULT.common.cache_numbers // 2 // max(1, n_features))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
