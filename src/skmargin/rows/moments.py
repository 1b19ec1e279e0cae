"""Mean and variance of each feature, and a sample of the rows, as tasks over blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .blocks import LANES, Block, BlockRows

CHUNK = 4096  # rows that are added up at once


@dataclass(frozen=True)
class Moments:
    """Task: sums of the weighted rows and of their squares, counted from ``shift``."""

    shift: np.ndarray
    lanes: int = LANES

    def zero(self) -> dict[str, np.ndarray]:
        """Empty sums."""
        return {"sum": np.zeros(len(self.shift)), "square": np.zeros(len(self.shift)), "weight": np.zeros(1)}

    def add(self, sums: dict[str, np.ndarray], block: Block) -> None:
        """Add a block."""
        d = len(self.shift)
        for at in range(0, len(block.y), CHUNK):
            part = block.cut(at, min(at + CHUNK, len(block.y)))
            if sparse.issparse(part.X):
                values = part.X.data - self.shift[part.X.indices]
                weight = np.repeat(part.weight, np.diff(part.X.indptr))
                rest = part.weight.sum() - np.bincount(part.X.indices, weight, minlength=d)  # zeros that are not stored
                sums["sum"] += np.bincount(part.X.indices, weight * values, minlength=d) - rest * self.shift
                sums["square"] += np.bincount(part.X.indices, weight * values**2, minlength=d) + rest * self.shift**2
            else:
                X = part.X - self.shift.astype(part.X.dtype)
                weight = part.weight.astype(X.dtype)
                sums["sum"] += weight @ X
                X *= X
                sums["square"] += weight @ X
            sums["weight"] += part.weight.sum()

    def merge(self, sums: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> None:
        """Add sums."""
        for name, total in sums.items():
            total += others[name]


def moments(rows: BlockRows, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of each feature.

    ``shift`` is a point near the rows, a row of the sample for instance: rounding is as small as they are close to it.
    """
    sums = rows.map_sum(Moments(shift))
    mean = sums["sum"] / sums["weight"]
    return shift + mean, np.maximum(0.0, sums["square"] / sums["weight"] - mean**2)


def row_hash(rows: np.ndarray, seed: int) -> np.ndarray:
    """A random number in [0, 1) for each row number: the same one wherever the row lies."""
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64((seed + 1) * 0xD1B54A32D192ED03 % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z ^= z >> np.uint64(shift)
            z *= np.uint64(factor)
        z ^= z >> np.uint64(31)
    return z * 2.0**-64


@dataclass(frozen=True)
class Sample:
    """Rows with their weights, as given."""

    X: Any
    y: np.ndarray
    weight: np.ndarray
    total: np.ndarray  # (k,) weight of each class among all rows

    def inflated(self) -> np.ndarray:
        """Weights so that each class weighs as much as it does among all rows."""
        here = np.bincount(self.y, self.weight, minlength=len(self.total))
        return self.weight * (self.total / np.maximum(here, np.finfo(float).tiny))[self.y]


@dataclass(frozen=True)
class Draw:
    """Task: rows whose random number is below the limit of their class."""

    limit: np.ndarray  # (k,)
    seed: int
    lanes: int = LANES

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

    def merge(self, sums: list[tuple[np.ndarray, Block]], others: list[tuple[np.ndarray, Block]]) -> None:
        """Put rows together."""
        sums.extend(others)


def draw_samples(rows: BlockRows, sizes: tuple[int, int], least: int, seed: int) -> tuple[Sample, Sample]:
    """Two samples without a row in common, each class with its share of the rows but at least ``least`` of each.

    Of a class that has too few rows for both the second sample gets those of the first as well.
    """
    counts, n = rows.class_counts, rows.n_rows
    first, second = (np.minimum(counts, np.maximum(least, np.ceil(size * counts / n))) for size in sizes)
    wanted = first + second
    limit = np.where(wanted >= counts, 1.0, (wanted + 6 * np.sqrt(wanted) + 10) / np.maximum(counts, 1))
    drawn = rows.map_sum(Draw(np.minimum(1.0, limit), seed))
    number = np.concatenate([one for one, _ in drawn])
    y = np.concatenate([block.y for _, block in drawn])
    parts: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    for c in range(len(counts)):
        here = np.flatnonzero(y == c)
        here = here[np.argsort(number[here], kind="stable")]
        a, b = int(first[c]), int(second[c])
        parts[0].append(here[:a])
        parts[1].append(here[a : a + b] if len(here) > a else here)
    weight = np.concatenate([block.weight for _, block in drawn])
    X = _stack([block.X for _, block in drawn])

    def sample(places: list[np.ndarray]) -> Sample:
        at = np.sort(np.concatenate(places))
        return Sample(X[at], y[at], weight[at], rows.class_weights)

    return sample(parts[0]), sample(parts[1])


def _stack(parts: list[Any]) -> Any:
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)
