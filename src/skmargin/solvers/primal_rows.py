"""Products with the rows of the data on all cores."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from .lent import form_of

_BLOCK_WORK = 16_000_000  # multiply-adds of one block of a threaded product


class Rows:
    """Products with the rows, ``X W`` and ``X'P``, on all cores.

    Large products are cut into blocks that do not depend on the number of threads: the same bits on every machine.
    The caller holds BLAS at one thread (`blas_threads`): its own threads spin and wait for each other on a busy
    machine.
    """

    def __init__(self, X: Any) -> None:
        self.X, self.sparse = X, sparse.issparse(X)
        self.shape: tuple[int, int] = X.shape
        self.dtype: np.dtype = X.dtype

    @cached_property
    def _transposed(self) -> Any:
        """Sparse ``X'`` by rows: no scatter in ``X'P``, and blocks by rows."""
        return self.X.T.tocsr()

    def astype(self, dtype: Any) -> Rows:
        """The same rows in another precision (shared where they were lent)."""
        numbers = self.X.data if self.sparse else self.X
        other = form_of(numbers, dtype, lambda whole: whole.astype(dtype))
        if not self.sparse:
            return Rows(other)
        X = type(self.X)(self.shape, dtype=dtype)  # its constructor would copy small parts of arrays
        X.data, X.indices, X.indptr = other, self.X.indices, self.X.indptr
        return Rows(X)

    def times(self, W: np.ndarray) -> np.ndarray:
        """``X W`` (n, k): column-major for dense rows, so that sums over classes run along the samples."""
        if self.sparse:
            return self._sparse(self.X, W)
        out = np.empty((W.shape[1], self.shape[0]), dtype=W.dtype)

        def block(rows: slice) -> None:
            np.matmul(W.T, self.X[rows].T, out=out[:, rows])

        _run(block, _blocks(self.shape[0], self.X.size * W.shape[1] // _BLOCK_WORK))
        return out.T

    def transposed_times(self, P: np.ndarray) -> np.ndarray:
        """``X'P`` (d, k)."""
        if self.sparse:
            return self._sparse(self._transposed, P)
        parts = _run(lambda r: self.X[r].T @ P[r], _blocks(self.shape[0], self.X.size * P.shape[1] // _BLOCK_WORK))
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total

    def _sparse(self, A: Any, B: np.ndarray) -> np.ndarray:
        blocks = _blocks(A.nnz, A.nnz * B.shape[1] // _BLOCK_WORK)
        if len(blocks) == 1:
            return A @ B
        cuts = [0, *np.searchsorted(A.indptr, [b.stop for b in blocks[:-1]]).tolist(), A.shape[0]]
        out = np.empty((A.shape[0], B.shape[1]), dtype=B.dtype)
        B = np.ascontiguousarray(B)

        def block(rows: slice) -> None:
            out[rows] = A[rows] @ B

        _run(block, [slice(a, b) for a, b in pairwise(cuts)])
        return out


def _blocks(n: int, wanted: int) -> list[slice]:
    """``n`` places in ``wanted`` (1 to 8) slices."""
    if wanted <= 1:
        return [slice(0, n)]
    cuts = np.linspace(0, n, min(max(wanted, 1), 8, max(n, 1)) + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(cuts)]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(effective_n_jobs(-1), thread_name_prefix="skmargin")


def _run(work: Callable[[slice], Any], blocks: list[slice]) -> list[Any]:
    if len(blocks) == 1 or effective_n_jobs(-1) == 1:
        return [work(block) for block in blocks]
    return list(_pool().map(work, blocks))
