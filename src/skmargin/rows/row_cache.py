"""Rows of a kernel matrix one at a time, for solvers that change the scores with every step."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from .._types import Rows
from .gram import Kernel, gram_diagonal
from .kernel_rows import _KernelProducts


class RowCache:
    """Row i of the kernel matrix of ``X`` where it is called with i.

    As many rows as fit into ``cache_size`` (megabytes) are kept; the oldest is dropped where the cache is full.  Rows
    that a solver still needs late in a run are then all cached as soon as they fit.
    """

    def __init__(
        self, X: Rows, kernel: Kernel, gamma: float, degree: float, coef0: float, dtype: DTypeLike, cache_size: float
    ) -> None:
        n = X.shape[0]
        self.diagonal = np.ascontiguousarray(gram_diagonal(X, kernel, gamma, degree, coef0), dtype=dtype)
        self._products = _KernelProducts(X, kernel, gamma, degree, coef0, dtype)
        slots = min(n, max(1, int(cache_size * 2**20 / (n * self.diagonal.itemsize))))
        self._store = np.empty((slots, n), dtype=dtype)
        self._slot, self._owner = [-1] * n, [-1] * slots  # position of a row in the store, and back
        self._oldest = 0

    def prepare(self, rows: np.ndarray) -> None:
        """Compute these rows, as many as fit, in one product; for a cache that is still empty."""
        rows, products = rows[: len(self._owner)], self._products
        products.fill(products.Z[rows], products.norms[rows] if products.dense_rbf else None, self._store[: len(rows)])
        for at, i in enumerate(rows.tolist()):
            self._owner[at], self._slot[i] = i, at
        self._oldest = len(rows) % len(self._owner)

    def __call__(self, i: int) -> np.ndarray:
        """Row ``i``; another call may write over it."""
        at = self._slot[i]
        if at < 0:
            at = self._oldest
            self._oldest = (at + 1) % len(self._owner)
            if self._owner[at] >= 0:
                self._slot[self._owner[at]] = -1
            self._owner[at], self._slot[i] = i, at
            products = self._products
            norms = products.norms[i : i + 1] if products.dense_rbf else None
            products.fill(products.Z[i : i + 1], norms, self._store[at : at + 1])
        row: np.ndarray = self._store[at]
        return row
