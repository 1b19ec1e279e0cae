"""Products with the rows of the data on several cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..._runtime.shared_rows import converted, window
from ..._runtime.threads import on_threads, thread_count
from ..._types import Rows
from ..tuning import DEFAULT, Tuning

Map = Callable[[np.ndarray], np.ndarray]


class RowProducts:
    """Products with the rows, ``X W`` and ``X'P``, by ``n_jobs`` threads.

    ``kept``: with these of the rows only.  They are not copied as a whole but gathered chunk by chunk in every product,
    so that a thread needs no more than a chunk beside the array that it shares with others.
    ``dtype``: of the arithmetic.  Where it is wider than that of the rows they are widened in the same way.

    Large products are cut into blocks that do not depend on the number of threads: the same bits on every machine.
    The caller holds BLAS at one thread (`blas_threads`): its own threads spin and wait for each other on a busy
    machine.
    """

    def __init__(
        self,
        X: Rows,
        kept: np.ndarray | None = None,
        dtype: DTypeLike | None = None,
        tuning: Tuning = DEFAULT,
        n_jobs: int | None = 1,
    ) -> None:
        self.n_jobs = n_jobs
        self.dtype, self.tuning = np.dtype(dtype or X.dtype), tuning
        if X.dtype != self.dtype and X.size <= tuning.common.cache_numbers:
            X = X.astype(self.dtype)
        self.X, self.kept, self.sparse = X, kept, sparse.issparse(X)
        self.shape: tuple[int, int] = (X.shape[0] if kept is None else len(kept), X.shape[1])
        self.gathers = kept is not None or X.dtype != self.dtype
        # X'P adds to the rows of a table (d, k) in any order: where that one is the larger one, X' by rows is faster
        self.transposes = self.sparse and X.shape[1] > X.shape[0]

    def some(self, kept: np.ndarray) -> RowProducts:
        """Some of all rows."""
        few = not self.sparse and len(kept) * self.shape[1] <= self.tuning.common.cache_numbers
        if few or self.transposes:
            return RowProducts(self.X[kept], dtype=self.dtype, tuning=self.tuning, n_jobs=self.n_jobs)
        return RowProducts(self.X, kept, self.dtype, self.tuning, self.n_jobs)

    @cached_property
    def _transposed(self) -> RowProducts:
        return RowProducts(self.X.T.tocsr(), dtype=self.dtype, tuning=self.tuning, n_jobs=self.n_jobs)

    def astype(self, dtype: DTypeLike) -> RowProducts:
        """All rows in another precision (shared where the rows are shared)."""
        if np.result_type(self.X, dtype) == dtype:
            return RowProducts(self.X, dtype=dtype, tuning=self.tuning, n_jobs=self.n_jobs)
        numbers = self.X.data if self.sparse else self.X
        other = converted(numbers, dtype, lambda whole: whole.astype(dtype))
        if not self.sparse:
            return RowProducts(other, tuning=self.tuning, n_jobs=self.n_jobs)
        X = type(self.X)(self.X.shape, dtype=dtype)  # its constructor would copy small parts of arrays
        X.data, X.indices, X.indptr = other, self.X.indices, self.X.indptr
        return RowProducts(X, tuning=self.tuning, n_jobs=self.n_jobs)

    # -- products -----------------------------------------------------------------------------------------------------

    def times(self, W: np.ndarray) -> np.ndarray:
        """``X W`` (n, k): column-major for dense rows, so that sums over classes run along the samples."""
        out = np.empty((self.shape[0], W.shape[1]), dtype=W.dtype, order="C" if self.sparse else "F")
        W = np.ascontiguousarray(W) if self.sparse else W

        def block(rows: slice) -> None:
            for part, X in self._gathered(self._parts(rows, self.gathers)):
                _times(X, W, out[part])

        self._run(block, self._blocks(W.shape[1]))
        return out

    def transposed_times(self, P: np.ndarray) -> np.ndarray:
        """``X'P`` (d, k)."""
        if self.transposes:
            return self._transposed.times(P)

        def block(rows: slice) -> np.ndarray:
            parts = self._parts(rows, self.gathers)
            return _total(X.T @ P[part] for part, X in self._gathered(parts))

        return _total(self._run(block, self._blocks(P.shape[1])))

    def parts(self) -> list[slice]:
        """The chunks of :meth:`congruence`."""
        if self.transposes:
            return [slice(0, self.shape[0])]
        return [part for rows in self._blocks(1) for part in self._parts(rows, True)]

    def congruence(self, W: np.ndarray, inner: Sequence[Map]) -> tuple[np.ndarray, np.ndarray]:
        """``X'U`` and the sums of the columns of ``U``, where ``U = inner[c](X W)`` in the rows of chunk c.

        The rows of a chunk are still in the cache when they are needed again.
        """
        parts = self.parts()
        if len(parts) == 1:
            U = inner[0](self.times(W))
            return self.transposed_times(U), U.sum(axis=0)

        def block(numbers: slice) -> tuple[np.ndarray, np.ndarray]:
            G, total = None, np.zeros(W.shape[1])
            for step, (part, X) in zip(inner[numbers], self._gathered(parts[numbers]), strict=True):
                F = np.empty((part.stop - part.start, W.shape[1]), W.dtype, order="C" if self.sparse else "F")
                _times(X, W, F)
                U = step(F)
                total += U.sum(axis=0)
                G = X.T @ U if G is None else np.add(G, X.T @ U, out=G)
            assert G is not None
            return G, total

        found = self._run(block, _blocks(len(parts), self._work(W.shape[1]) // self.tuning.common.pass_work))
        return _total(G for G, _ in found), _total(total for _, total in found).astype(W.dtype)

    def gram(self, centre: np.ndarray, dtype: DTypeLike | None = None) -> np.ndarray:
        """Inner products of the rows, all less ``centre``, in this number type or in that of the rows."""
        n, d = self.shape
        kept = slice(None) if self.kept is None else self.kept
        if self.sparse:
            X = self.X[kept].astype(self.dtype, copy=False)
            u = X @ centre
            return (X @ X.T).toarray() - u[:, None] - u + centre @ centre
        K = np.zeros((n, n), dtype or self.dtype)
        step = self.tuning.common.block_of(n)
        for start in range(0, d, step):
            columns = slice(start, start + step)
            X = np.subtract(self.X[:, columns][kept], centre[columns], dtype=K.dtype)
            K += X @ X.T
        return K

    def _run(self, work: Callable[[slice], Any], blocks: list[slice]) -> list[Any]:
        return on_threads(work, blocks, thread_count(self.n_jobs))

    # -- pieces -------------------------------------------------------------------------------------------------------

    def _work(self, n_columns: int) -> int:
        size = self.X.nnz if self.sparse else self.X.size
        return int(size * n_columns * (self.shape[0] / max(1, self.X.shape[0])))

    def _blocks(self, n_columns: int) -> list[slice]:
        """Blocks of rows of a product, for the threads."""
        blocks = _blocks(self.shape[0], self._work(n_columns) // self.tuning.common.pass_work)
        if not self.sparse or self.kept is not None or len(blocks) == 1:
            return blocks
        wanted = np.linspace(0, self.X.nnz, len(blocks) + 1)[1:-1]  # as many numbers in each
        cuts = [0, *np.searchsorted(self.X.indptr, wanted).tolist(), self.shape[0]]
        return [slice(a, b) for a, b in pairwise(cuts)]

    def _parts(self, rows: slice, cut: bool) -> Iterator[slice]:
        """Some rows, cut into chunks; those of sparse rows have more numbers than ``X'P`` has rows."""
        if not cut:
            yield rows
            return
        width = self.X.nnz // max(1, self.X.shape[0]) if self.sparse else self.shape[1]
        most = self.tuning.common.cache_numbers
        step = max(1, (max(most, 4 * self.shape[1]) if self.sparse else most) // max(1, width))
        for start in range(rows.start, rows.stop, step):
            yield slice(start, min(start + step, rows.stop))

    def _gathered(self, parts: Iterable[slice]) -> Iterator[tuple[slice, Any]]:
        """The rows of some chunks, one after the other in the same place."""
        buffer = np.empty((0, self.shape[1]), self.dtype)
        for part in parts:
            if self.sparse or not self.gathers:  # SciPy widens the numbers in its products
                yield part, window(self.X, part) if self.kept is None else self.X[self.kept[part]]
            else:
                n = part.stop - part.start
                if len(buffer) < n:
                    buffer = np.empty((n, self.shape[1]), self.dtype)
                if self.kept is not None and self.X.dtype == self.dtype:
                    np.take(self.X, self.kept[part], axis=0, out=buffer[:n], mode="clip")  # others make a copy
                else:
                    buffer[:n] = self.X[part if self.kept is None else self.kept[part]]
                yield part, buffer[:n]


def _times(X: Rows, W: np.ndarray, out: np.ndarray) -> None:
    if sparse.issparse(X):
        out[:] = X @ W
    else:
        np.matmul(W.T, X.T, out=out.T)


def _total(parts: Iterable[np.ndarray]) -> np.ndarray:
    parts = iter(parts)
    total = next(parts)
    for part in parts:
        total += part
    return total


def _blocks(n: int, wanted: int) -> list[slice]:
    """``n`` places in ``wanted`` (1 to 8) slices."""
    if wanted <= 1:
        return [slice(0, n)]
    cuts = np.linspace(0, n, min(max(wanted, 1), 8, max(n, 1)) + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(cuts)]
