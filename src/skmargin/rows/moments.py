"""Mean and variance of each feature, and samples of the rows, as tasks over blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._types import Rows
from .blocks import LANES, Block, BlockRows, Task, chunks
from .labels import row_hash


@dataclass(frozen=True)
class Moments(Task[dict[str, np.ndarray]]):
    """Task: mean of the weighted rows and their squared distances from it, feature by feature.

    Means of parts are put together as Chan, Golub and LeVeque (1979) do: rows far from zero lose no digits.
    """

    name = "moments"
    n_features: int

    def zero(self) -> dict[str, np.ndarray]:
        """No rows."""
        return {"weight": np.zeros(1), "mean": np.zeros(self.n_features), "square": np.zeros(self.n_features)}

    def add(self, sums: dict[str, np.ndarray], block: Block) -> None:
        """Add a block."""
        d = self.n_features
        for rows in chunks(len(block.y), d):
            part = block.cut(rows.start, rows.stop)
            total = part.weight.sum()
            if sparse.issparse(part.X):
                weight = np.repeat(part.weight, np.diff(part.X.indptr))
                mean = np.bincount(part.X.indices, weight * part.X.data, minlength=d) / total
                apart = part.X.data - mean[part.X.indices]
                rest = total - np.bincount(part.X.indices, weight, minlength=d)  # of the zeros, which are not stored
                square = np.bincount(part.X.indices, weight * apart**2, minlength=d) + rest * mean**2
            else:
                X = np.asarray(part.X)
                share = (part.weight / total).astype(X.dtype)  # a weight itself may be no number of float32
                near = X[0]
                X = X - near
                shift = share @ X
                mean = near + shift
                X *= X
                square = total * (share @ X - shift**2)
            self.merge(sums, {"weight": np.array([total]), "mean": mean, "square": np.maximum(0.0, square)})

    def merge(self, sums: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> None:
        """Put the moments of more rows to those of some."""
        old, new = sums["weight"][0], others["weight"][0]
        if new == 0:
            return
        apart = others["mean"] - sums["mean"]
        sums["square"] += others["square"] + apart**2 * (old * new / (old + new))
        sums["mean"] += apart * (new / (old + new))
        sums["weight"][0] += new


@dataclass(frozen=True)
class Sample:
    """Rows with their weights, as given."""

    X: Rows
    y: np.ndarray
    weight: np.ndarray
    total: np.ndarray  # (k,) weight of each class among all rows

    def inflated(self) -> np.ndarray:
        """Weights so that each class weighs as much as it does among all rows."""
        here = np.bincount(self.y, self.weight, minlength=len(self.total))
        return self.weight * (self.total / np.maximum(here, np.finfo(float).tiny))[self.y]


@dataclass(frozen=True)
class Draw(Task[list[tuple[np.ndarray, Block]]]):
    """Task: rows whose random number is below the limit of their class."""

    name = "draw"
    limit: np.ndarray  # (k,)
    seed: int

    def zero(self) -> list[tuple[np.ndarray, Block]]:
        """No rows."""
        return []

    def add(self, sums: list[tuple[np.ndarray, Block]], block: Block) -> None:
        """Draw from a block."""
        number = row_hash(block.first + np.arange(len(block.y)), self.seed)
        chosen = np.flatnonzero(number < self.limit[block.y])
        if len(chosen):
            some = Block(block.X[chosen], block.y[chosen], block.weight[chosen], block.first)
            sums.append((number[chosen], some))


@dataclass(frozen=True)
class Together(Task[list[Any]]):
    """Task: several tasks in one pass."""

    tasks: tuple[Task[Any], ...]

    @property
    def name(self) -> str:
        """The names of what it does."""
        return "-".join(dict.fromkeys(task.name for task in self.tasks))

    @property
    def lanes(self) -> int:
        """Fewer where there are many: each holds the sums of all."""
        return max(1, min(2 * LANES // len(self.tasks), *(task.lanes for task in self.tasks)))

    def zero(self) -> list[Any]:
        """Empty sums of each."""
        return [task.zero() for task in self.tasks]

    def add(self, sums: list[Any], block: Block) -> None:
        """Add a block to each."""
        for task, one in zip(self.tasks, sums, strict=True):
            task.add(one, block)

    def merge(self, sums: list[Any], others: list[Any]) -> None:
        """Add sums of each."""
        for task, one, other in zip(self.tasks, sums, others, strict=True):
            task.merge(one, other)


class Sizes(NamedTuple):
    """The mean of the rows, and the roots of the mean squares of their distances from it and of their lengths."""

    centre: np.ndarray
    spread: float
    length: float


@dataclass(frozen=True)
class Overview:
    """What one pass tells of the rows."""

    mean: np.ndarray  # (d,) weighted
    variance: np.ndarray  # (d,)
    first: Sample  # of which each class has its share of the rows, but at least a few
    second: Sample  # likewise, without a row in common

    def sizes(self) -> Sizes:
        """How long rows are in the mean."""
        spread = float(self.variance.sum())
        return Sizes(self.mean, float(np.sqrt(spread)), float(np.sqrt(spread + self.mean @ self.mean)))


def overview(rows: BlockRows, sizes: tuple[int, int], least: int, seed: int) -> Overview:
    """Moments and samples in one pass.

    Of a class that has too few rows for both samples the second one gets those of the first as well.
    """
    known = getattr(rows, "overviews", {})
    key = sizes, least, seed, rows.class_weights.tobytes()
    if key not in known:
        known[key] = _new_overview(rows, sizes, least, seed)
    return known[key]


def _new_overview(rows: BlockRows, sizes: tuple[int, int], least: int, seed: int) -> Overview:
    counts, n = rows.class_counts, rows.n_rows
    first, second = (np.minimum(counts, np.maximum(least, np.ceil(size * counts / n))) for size in sizes)
    wanted = first + second
    limit = np.where(wanted >= counts, 1.0, (wanted + 6 * np.sqrt(wanted) + 10) / np.maximum(counts, 1))
    found, drawn = rows.map_sum(Together((Moments(rows.n_features), Draw(np.minimum(1.0, limit), seed))))
    number, y, weight, X = _together(drawn)
    parts: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    for c in range(len(counts)):
        here = np.flatnonzero(y == c)
        here = here[np.argsort(number[here], kind="stable")]
        a, b = int(first[c]), int(second[c])
        parts[0].append(here[:a])
        parts[1].append(here[a : a + b] if len(here) > a else here)

    def sample(places: list[np.ndarray]) -> Sample:
        at = np.sort(np.concatenate(places))
        return Sample(X[at], y[at], weight[at], rows.class_weights)

    variance = found["square"] / found["weight"]
    return Overview(found["mean"], variance, sample(parts[0]), sample(parts[1]))


def _together(drawn: list[tuple[np.ndarray, Block]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Random numbers, classes, weights and rows of a sample."""
    columns = [np.concatenate(column) for column in zip(*((n, b.y, b.weight) for n, b in drawn), strict=True)]
    return columns[0], columns[1], columns[2], _stack([block.X for _, block in drawn])


def _stack(parts: list[Any]) -> Any:
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate([np.asarray(part) for part in parts])
