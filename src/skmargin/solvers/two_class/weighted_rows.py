"""``A = sqrt(p) Phi``: some rows of explicit features times the roots of their weights, read piece by piece.

Machines on pairs of classes, folds and threads share ``Phi``; none of them copies its rows, only pieces of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..._types import Rows
from ..tuning import DEFAULT, Tuning
from .lapack import triangular_rows
from .ridge_spectrum import dense, scale_rows


class WeightedRows:
    """Products with ``A`` (n, N): the rows ``Phi[rows]``, dense or sparse, times ``root`` (n,).

    Without ``rows``, ``Phi`` is ``A`` itself, and one piece.
    """

    def __init__(self, Phi: Rows, rows: np.ndarray | None, root: np.ndarray, tuning: Tuning = DEFAULT) -> None:
        self.tuning = tuning
        self.Phi, self.rows, self.root, self.sparse = Phi, rows, root, sparse.issparse(Phi)
        self.shape = (len(root), Phi.shape[1])

    def piece(self, part: slice, columns: slice = slice(None)) -> Any:
        """Some rows of ``A``, all columns of them or some."""
        Phi = self.Phi if columns == slice(None) else self.Phi[:, columns]
        if self.rows is None:
            return Phi[part]
        some = Phi[self.rows[part]]
        if self.sparse or some.dtype != np.float64:
            return scale_rows(some, self.root[part])
        some *= self.root[part, None]
        return some

    @cached_property
    def _whole(self) -> Any:
        return self.piece(slice(0, self.shape[0]))

    def pieces(self, least: int = 1) -> Iterator[tuple[slice, Any]]:
        """Pieces of at least so many rows, and where they are; a single one is kept."""
        n, N = self.shape
        width = self.Phi.nnz // max(1, self.Phi.shape[0]) if self.sparse else N
        whole = self.rows is None or n * width <= self.tuning.common.cache_numbers
        step = n if whole else max(least, self.tuning.common.cache_numbers // max(1, width))
        for start in range(0, n, step):
            part = slice(start, min(n, start + step))
            yield part, self._whole if step >= n else self.piece(part)

    def columns(self) -> Iterator[tuple[slice, Any]]:
        """Pieces of columns; sparse rows, which are small beside the square of their number, are one piece."""
        n, N = self.shape
        whole = self.sparse or self.rows is None or n * N <= self.tuning.common.cache_numbers
        step = N if whole else max(self.tuning.common.least_block, self.tuning.common.cache_numbers // max(1, n))
        for start in range(0, N, step):
            part = slice(start, min(N, start + step))
            yield part, self._whole if step >= N else self.piece(slice(0, n), part)

    def times(self, W: np.ndarray) -> np.ndarray:
        """``A W``."""
        out = np.empty((self.shape[0], W.shape[1]))
        for part, A in self.pieces():
            out[part] = A @ W
        return out

    def inner(self, x: np.ndarray, buffer: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """``A'A``, written to ``buffer`` where it is given, and ``x A`` for the rows of ``x``."""
        N = self.shape[1]
        M, right = np.empty((N, N)) if buffer is None else buffer, np.zeros((len(x), N))
        for part, A in self.pieces(self.tuning.common.least_block):
            if part.start:
                M += dense(A.T @ A)
            elif self.sparse:
                M[:] = dense(A.T @ A)
            else:
                np.matmul(A.T, A, out=M)
            right += np.asarray(A.T @ x[:, part].T).T
        return M, right

    def outer(self) -> np.ndarray:
        """``A A'``."""
        M = np.zeros((self.shape[0], self.shape[0]))
        for _, A in self.columns():
            M += dense(A @ A.T)
        return M

    def gathered(self, u: np.ndarray) -> np.ndarray:
        """``u A`` for the rows of ``u``, where these are few."""
        out = np.empty((len(u), self.shape[1]))
        for part, A in self.columns():
            out[:, part] = np.asarray(A.T @ u.T).T
        return out

    def dense(self) -> np.ndarray:
        """A fresh copy."""
        return np.array(dense(self.piece(slice(0, len(self.root)))), order="C")

    def triangle(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``R`` (N, N), ``c`` and ``rest``, where ``A = Q R`` and ``x = c Q' + e`` with ``e e' = rest``.

        For more rows than columns: the factor of all rows so far takes its place above the next ones.
        """
        n, N = self.shape
        size = N + len(x)
        buffer = np.empty((size, min(n, 3 * size)))  # columns behind each other, as LAPACK wants them
        start = kept = 0
        while start < n:
            stop = min(n, start + buffer.shape[1] - kept)
            part = slice(start, stop)
            used = kept + stop - start
            buffer[:N, kept:used], buffer[N:, kept:used] = dense(self.piece(part)).T, x[:, part]
            triangular_rows(buffer, used)
            start, kept = stop, min(size, used)
        rest = buffer[N:, N:kept]
        return np.ascontiguousarray(buffer[:N, :N].T), np.ascontiguousarray(buffer[N:, :N]), rest @ rest.T
