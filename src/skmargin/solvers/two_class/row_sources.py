"""What a two-class machine is fitted on: a block of a kernel matrix, or explicit features.

``KernelBlocks`` : the machine of some rows has one coefficient a row; ``square(rows)`` is a fresh kernel matrix.
``Features`` : every machine has one coefficient a feature; linear machines, and kernel machines on a basis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ..._types import Rows
from ...rows.gram import row_blocks, squared_norms
from ..tuning import DEFAULT, Tuning


@dataclass(frozen=True)
class KernelBlocks:
    """``block(rows, columns)`` gives a fresh kernel matrix; the two are the same array where it is square."""

    block: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def square(self, rows: np.ndarray) -> np.ndarray:
        """Kernel matrix of some rows, which the caller may overwrite."""
        return self.block(rows, rows)

    def scores(self, rows: np.ndarray, fitted: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Products of ``coef`` (one row for each of the fitted rows) at other rows, in blocks."""
        step = DEFAULT.common.block_of(len(fitted))
        parts = [self.block(rows[i : i + step], fitted) @ coef for i in range(0, len(rows), step)]
        return np.concatenate(parts) if parts else np.empty((0, coef.shape[1]), dtype=coef.dtype)


@dataclass(frozen=True)
class Features:
    """Rows of features, dense or sparse."""

    Phi: Rows
    tuning: Tuning = DEFAULT

    @cached_property
    def squared_norms(self) -> np.ndarray:
        """``||phi_i||^2`` of all rows."""
        return squared_norms(self.Phi)

    def rows(self, rows: np.ndarray) -> Rows:
        """Features of some rows; a view where they are all."""
        return self.Phi if len(rows) == self.Phi.shape[0] else self.Phi[rows]

    def scores(self, rows: np.ndarray, fitted: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Products of ``coef`` (one row for each feature) at other rows."""
        return products(self.Phi[rows], coef)


Source = KernelBlocks | Features


def products(X: Rows, W: np.ndarray) -> np.ndarray:
    """``X W``, dense; of rows in another number type than W block by block, since they are converted."""
    if sparse.issparse(X) or X.dtype == W.dtype:
        return np.asarray(X @ W)
    return np.concatenate([X[rows] @ W for rows in row_blocks(*X.shape)])


def submatrix(K: np.ndarray) -> KernelBlocks:
    """Blocks of a kernel matrix in memory; the whole of it is itself, to be overwritten and not asked for again."""

    def block(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if len(rows) == len(columns) == len(K):
            return K
        return K[rows[:, None], columns]

    return KernelBlocks(block)
