"""Few rows that stand for all rows of a class, wherever no more than means and products of features count.

Of weighted rows with mean m, total weight w and products ``sum_i p_i (x_i - m)(x_i - m)' = R'R`` (R triangular, d x d)
a quadratic function of the scores depends on w, m and R only.  So do these d + 1 rows of weight w / (d + 1)::

    m + sqrt((d + 1) / w) h_t'R,   H with orthonormal columns, each of sum zero (Helmert)

R is made by QR factors of pieces of the rows, which are put together by QR factors: products of features, with half of
the digits, are never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from .._types import Rows
from ..solvers.tuning import DEFAULT
from .blocks import Block, BlockRows, Task


@dataclass(frozen=True)
class ClassMoments(Task[list[Any]]):
    """Task: weight, mean and R of each class; of a class without rows None."""

    name = "class-moments"
    n_classes: int
    n_features: int

    @property
    def lanes(self) -> int:
        """One: the sums are large, and pieces of rows smaller than they are would cost more than they save."""
        return 1

    def zero(self) -> list[Any]:
        """No rows."""
        return [None] * self.n_classes

    def add(self, sums: list[Any], block: Block) -> None:
        """Add a block."""
        step = max(DEFAULT.common.block_of(self.n_features), 2 * self.n_features)
        for c in np.unique(block.y).tolist():
            rows = np.flatnonzero(block.y == c)
            for at in range(0, len(rows), step):
                some = rows[at : at + step]
                sums[c] = _joined(sums[c], _of_rows(block.X[some], block.weight[some]))

    def merge(self, sums: list[Any], others: list[Any]) -> None:
        """Put the classes together."""
        sums[:] = map(_joined, sums, others)


def _of_rows(X: Rows, weight: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    total = float(weight.sum())
    mean = X[0] + (weight / total) @ (X - X[0])  # rows far from zero lose no digits
    return total, mean, _triangle(np.sqrt(weight)[:, None] * (X - mean))


def _joined(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    (w, m, R), (w2, m2, R2) = one, other
    total = w + w2
    apart = m2 - m
    return total, m + (w2 / total) * apart, _triangle(np.vstack([R, R2, np.sqrt(w) * np.sqrt(w2 / total) * apart]))


def _triangle(A: np.ndarray) -> np.ndarray:
    """R of the factors A = QR, with as many rows as it has."""
    return linalg.qr(A, mode="r", overwrite_a=True, check_finite=False)[0][: min(A.shape)]


def equivalent_rows(rows: BlockRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, classes and weights with the moments of all rows of each class."""
    k, d = len(rows.class_counts), rows.n_features
    found = rows.map_sum(ClassMoments(k, d))
    X, y, weight = [], [], []
    for c, (total, mean, R) in enumerate(found):
        count = len(R) + 1
        X.append(mean + np.sqrt(count / total) * (linalg.helmert(count).T @ R))
        y.append(np.full(count, c, dtype=np.int32))
        weight.append(np.full(count, total / count))
    return np.concatenate(X), np.concatenate(y), np.concatenate(weight)
