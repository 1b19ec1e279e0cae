"""Rows of a kernel matrix on demand, within a bound on memory, and scores from support vectors only.

A solver asks `KernelRows` for two things: the kernel values within a working set (`within`), and to add multiples of
whole rows to the scores of all samples (`add`).  Rows that fit into ``cache_size`` are computed once; the others are
computed again, block by block, when they are added.

Memory is that of the rows kept and little else: dense rows of the data are centred and turned into the number type of
the computation a few at a time, products are finished where they are to stay, and a working set of most samples reads
the rows themselves instead of a copy of their square.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
from scipy import sparse

from .._core import _ext
from .._runtime.threads import blas_count, blas_threads, on_threads, thread_count
from .._types import Rows
from ..solvers.tuning import DEFAULT, Tuning
from .gram import Kernel, finite_width, gram, gram_diagonal, needs_differences, squared_norms, value_steps

FLOAT32_MAX_SQUARE = 32  # gamma times squared distance from the mean up to which float32 keeps the small distances
FLOAT32_MAX_VALUE = 1e30  # kernel values beyond which float32 would overflow in the sums of a fit
SPLIT_SUMS_ABOVE = 1e-4  # rounding error of a score, beside margins of one, from which on long sums are split
ROUNDING_DEVIATIONS = 10  # standard deviations that a rounding error never exceeds


def _parts(size: int, step: int) -> Iterator[slice]:
    """Slices of at most ``step`` that make up ``size``."""
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _centred(X: np.ndarray, rows: np.ndarray, centre: np.ndarray, buffer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, centred in float64 and then rounded to the number type of ``buffer``, and their squared norms."""
    centred, norms = buffer[: len(rows)], np.empty(len(rows), dtype=buffer.dtype)
    _ext.kernel_centre(X, rows, centre, centred, norms)
    return centred, norms


def max_squared_norm(X: Rows) -> float:
    """Largest squared norm of a row, of dense rows after centring: the size of the terms of squared distances."""
    if sparse.issparse(X):
        return float(squared_norms(X, np.float64).max())
    X, centre = np.ascontiguousarray(X), X.mean(axis=0, dtype=np.float64)
    step = DEFAULT.common.block_of(X.shape[1])
    buffer = np.empty((step, X.shape[1]), dtype=np.float32)
    parts = (np.arange(part.start, part.stop) for part in _parts(len(X), step))
    return max(float(_centred(X, rows, centre, buffer)[1].max()) for rows in parts)


def row_dtype(tol: float, kernel: Kernel = "linear", gamma: float = 0.0, square: float = 0.0) -> Any:
    """Number type of kernel rows that resolves a relative gap of ``tol``; ``square`` from `max_squared_norm`.

    Distances are differences of squares: where these are large beside the width of the kernel, float32 loses them.
    """
    near = kernel != "rbf" or gamma * square <= FLOAT32_MAX_SQUARE
    return np.float32 if tol >= 2e-4 and near else np.float64


def _rbf(A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray, gamma: float, out: np.ndarray) -> None:
    """Kernel values of centred rows with squared norms ``a`` and ``b``; ``out`` may be part of longer rows."""
    np.matmul(A, B.T, out=out)
    _ext.kernel_rbf(out, a, b, finite_width(gamma, out.dtype))


class _KernelProducts:
    """Kernel values between given rows and the rows ``Z``, written into a given block.

    The RBF kernel of dense rows is one matrix product and one vectorised pass over it; ``Z`` is centred first, which
    changes no distance and saves the digits that a common offset would cost.
    """

    def __init__(
        self,
        Z: Any,
        kernel: Kernel,
        gamma: float,
        degree: float,
        coef0: float,
        dtype: Any,
        tuning: Tuning = DEFAULT,
    ) -> None:
        self.tuning, self.kernel, self.parameters, self.dtype = tuning, kernel, (gamma, degree, coef0), np.dtype(dtype)
        self.dense_rbf = kernel == "rbf" and not sparse.issparse(Z)
        if self.dense_rbf:
            self.centre = Z.mean(axis=0, dtype=np.float64)
            centred, self.norms = self.prepared(Z)
            self.dense_rbf = not (self.dtype == np.float64 and needs_differences(gamma, self.norms.max(), Z.shape[1]))
            Z = centred if self.dense_rbf else Z
        elif not callable(kernel):
            Z = Z.astype(self.dtype, copy=False)
        self.Z = Z
        self.columns = Z.shape[0]
        self.work = self.columns * max(1, Z.shape[1])  # of one row

    def prepared(self, X: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Centred rows in the number type of the computation, and their squared norms."""
        X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X)
        return _centred(X, np.arange(len(X)), self.centre, np.empty(X.shape, dtype=self.dtype))

    def fill(self, X: Rows, norms: np.ndarray | None, out: np.ndarray) -> None:
        """Write kernel values of the rows ``X`` (prepared, with norms, for dense RBF) into ``out``."""
        step = max(1, int(self.tuning.common.product_work / self.work))
        for rows in _parts(X.shape[0], step):
            if self.dense_rbf:
                assert norms is not None
                _rbf(X[rows], norms[rows], self.Z, self.norms, self.parameters[0], out[rows])
            else:
                out[rows] = gram(X[rows], self.Z, self.kernel, *self.parameters, dtype=self.dtype)


class _Target:
    """Where kernel values go: to ``out``, or with ``columns`` to these columns of it, after ``offset`` was added."""

    def __init__(self, out: np.ndarray, offset: Any, columns: np.ndarray | None) -> None:
        self.out, self.offset, self.columns = out, offset, columns

    def values(self, rows: slice, columns_of_tile: slice) -> np.ndarray:
        """Where to write a tile of them."""
        if self.columns is None:
            return self.out[rows, columns_of_tile]
        return np.empty((rows.stop - rows.start, columns_of_tile.stop - columns_of_tile.start), dtype=self.out.dtype)

    def done(self, rows: slice, columns_of_tile: slice, values: np.ndarray) -> None:
        """The tile has been computed."""
        if self.offset:
            values += self.offset
        if self.columns is not None:
            _ext.kernel_scatter(values, self.columns[columns_of_tile], self.out[rows])


class KernelRows:
    """Rows of the kernel matrix of the training data.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Training rows; for ``kernel="precomputed"`` the symmetric kernel matrix itself.
    kernel, gamma, degree, coef0
        As in `skmargin.rows.gram.gram`; ``gamma`` is a number.
    dtype : dtype, default=float32
        Number type of the values, see `row_dtype`.
    cache_size : float, default=200
        Megabytes for the rows kept and the square of the working set.
    n_jobs : int or None, default=None
        Threads of the matrix products; None means one, -1 all.
    offset : float, default=0.0
        Added to every value: the kernel of rows with one more, constant, feature.
    tuning : Tuning
        Constants that steer speed and memory.

    Attributes
    ----------
    n : int
        Number of training rows.
    diagonal : ndarray of shape (n,)
        Values ``K(x_i, x_i)``, float64.
    limit : int
        Largest working set.
    n_computed : int
        Rows computed so far, repetitions included.
    """

    def __init__(
        self,
        X: Rows,
        kernel: Kernel = "rbf",
        gamma: float = 1.0,
        degree: float = 3,
        coef0: float = 0.0,
        dtype: Any = np.float32,
        cache_size: float = 200,
        n_jobs: int | None = None,
        offset: float = 0.0,
        tuning: Tuning = DEFAULT,
    ) -> None:
        self.X, self.arguments, self.tuning = X, (kernel, gamma, degree, coef0), tuning
        self.cache_size, self.offset = cache_size, offset
        self.threads = thread_count(n_jobs)
        self.n = X.shape[0]
        self.value_steps = value_steps(kernel, X.shape[1], degree)
        self.diagonal = np.asarray(gram_diagonal(X, *self.arguments), dtype=np.float64) + offset
        self._allocate(np.float64 if self.diagonal.max() > FLOAT32_MAX_VALUE else dtype)

    def _allocate(self, dtype: Any) -> None:
        kernel = self.arguments[0]
        if kernel == "precomputed":  # the matrix is its own cache; never copied where the number type allows it
            dtype = np.promote_types(dtype, self.X.dtype)
        self.dtype = np.dtype(dtype)
        n = self.n
        numbers = int(self.cache_size * 2**20 / self.dtype.itemsize)
        self.limit = min(n, max(64, int(np.sqrt(numbers / 2))))
        self.n_computed = 0
        if kernel == "precomputed":
            self._store = np.ascontiguousarray(gram(self.X, None, "precomputed", dtype=self.dtype))
            if self.offset:
                self._store = self._store + self.dtype.type(self.offset)
            self._slot = np.arange(n)
            return
        self._dense_rbf = kernel == "rbf" and not sparse.issparse(self.X) and not self._lost()
        self._Z = self.X
        if self._dense_rbf:
            self._Z, self._centre = np.ascontiguousarray(self.X), self.X.mean(axis=0, dtype=np.float64)
        elif not callable(kernel):
            self._Z = self.X.astype(self.dtype, copy=False)
        # Reserved, not touched: pages get memory when a row is written.
        slots = min(n, max(0, numbers - self.limit**2) // n)
        self._store = np.empty((slots, n), dtype=self.dtype)
        self._slot = np.full(n, -1)  # position of a sample's row in the store
        self._owner = np.full(slots, -1)  # and back

    def _lost(self) -> bool:
        """Whether products would lose distances that the kernel sees, in float64."""
        return self.dtype == np.float64 and needs_differences(
            self.arguments[1], max_squared_norm(self.X), self.X.shape[1]
        )

    def promote(self) -> None:
        """Start again in float64."""
        self._allocate(np.float64)

    def has(self) -> np.ndarray:
        """Whether the row of each sample is kept."""
        return self._slot >= 0

    def _fill(
        self, samples: np.ndarray, out: np.ndarray, columns: np.ndarray | None = None, scatter: bool = False
    ) -> None:
        """Write kernel values of these samples with the samples ``columns`` (all) into ``out``.

        Its columns are these, or with ``scatter`` all samples, of which the others are left as they are.
        """
        target = _Target(out, self.dtype.type(self.offset), columns if scatter else None)
        columns = np.arange(self.n) if columns is None else columns
        with blas_threads(1) if blas_count() > 1 else nullcontext():
            (self._fill_rbf if self._dense_rbf else self._fill_any)(samples, columns, target)

    def _fill_any(self, samples: np.ndarray, columns: np.ndarray, target: _Target) -> None:
        Z = self._Z if len(columns) == self.n else self._Z[columns]
        columns_of_tile = slice(0, len(columns))

        def fill(rows: slice) -> None:
            values = target.values(rows, columns_of_tile)
            values[...] = gram(self._Z[samples[rows]], Z, *self.arguments, dtype=self.dtype)
            target.done(rows, columns_of_tile, values)

        parts = _parts(len(samples), max(1, int(self.tuning.common.product_work / max(1, Z.shape[0] * Z.shape[1]))))
        on_threads(fill, parts, 1 if callable(self.arguments[0]) else self.threads)

    def _fill_rbf(self, samples: np.ndarray, columns: np.ndarray, target: _Target) -> None:
        """A number of the data is prepared much faster than it is used, so that no copy of all of them is kept."""
        d, tuning = self.X.shape[1], self.tuning
        width = tuning.common.tile_of(d)
        left = np.empty((min(len(samples), width), d), dtype=self.dtype)
        buffers: deque[np.ndarray] = deque()  # one for each thread
        for rows in _parts(len(samples), width):
            A, a = _centred(self._Z, samples[rows], self._centre, left)

            def fill(columns_of_tile: slice, rows: slice = rows, A: np.ndarray = A, a: np.ndarray = a) -> None:
                try:
                    right = buffers.pop()
                except IndexError:
                    right = np.empty((min(len(columns), width), d), dtype=self.dtype)
                B, b = _centred(self._Z, columns[columns_of_tile], self._centre, right)
                values = target.values(rows, columns_of_tile)
                for part in _parts(len(A), max(1, int(tuning.common.product_work / max(1, B.size)))):
                    _rbf(A[part], a[part], B, b, self.arguments[1], values[part])
                target.done(rows, columns_of_tile, values)
                buffers.append(right)

            on_threads(fill, _parts(len(columns), width), self.threads)

    def keep(self, samples: np.ndarray) -> None:
        """Compute and keep the rows of these samples, as many as fit; other rows are dropped for them."""
        missing = samples[self._slot[samples] < 0]
        if len(missing) == 0 or len(self._store) == 0:
            return
        free = np.flatnonzero(self._owner < 0)
        if len(free) < len(missing):
            wanted = np.zeros(self.n, dtype=bool)
            wanted[samples] = True
            old = np.flatnonzero(self._owner >= 0)
            old = old[~wanted[self._owner[old]]][: len(missing) - len(free)]
            self._slot[self._owner[old]] = -1
            self._owner[old] = -1
            free = np.flatnonzero(self._owner < 0)
        missing = missing[: len(free)]
        for rows in self._together(free[: len(missing)]):
            group, slots = missing[rows], free[rows]
            if slots[-1] - slots[0] + 1 == len(slots):
                self._write(group, self._store[slots[0] : slots[-1] + 1])
            else:
                block = np.empty((len(slots), self.n), dtype=self.dtype)
                self._write(group, block)
                self._store[slots] = block
            self._slot[group], self._owner[slots] = slots, group
            self.n_computed += len(group)

    def _together(self, slots: np.ndarray) -> Iterator[slice]:
        """Which rows one product writes: neighbours in the store, and where these are few as many as a block holds.

        A product of few rows takes less time than the preparation of the others.
        """
        most = self.tuning.common.block_of(self.n)
        ends = np.append(np.flatnonzero(np.diff(slots) != 1) + 1, len(slots)).tolist()
        begin = 0
        for end, following in zip(ends, [*ends[1:], None], strict=True):
            if following is None or following - begin > most:
                if end > begin:
                    yield slice(begin, end)
                begin = end

    def _write(self, samples: np.ndarray, out: np.ndarray) -> None:
        """Whole rows of these samples; what the kept rows hold already, by symmetry, is copied."""
        kept, rest = np.flatnonzero(self._slot >= 0), np.flatnonzero(self._slot < 0)
        if len(kept) * self._Z.shape[1] <= self.tuning.common.overhead_features * self.n:
            self._fill(samples, out)
            return
        _ext.kernel_mirror(self._store, self._slot[kept], kept, samples, out)
        self._fill(samples, out, rest, scatter=True)

    def within(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Kernel values within a set: a matrix, and the row and the column of each sample in it.

        Two empty arrays instead where these are in the order of the samples.
        """
        slot = self._slot[samples]
        if len(samples) >= self.tuning.kernel.whole_rows * self.n and slot.min() >= 0:
            return self._store, slot, samples
        nothing = np.empty(0, dtype=np.int64)
        return self.square(samples), nothing, nothing

    def square(self, samples: np.ndarray) -> np.ndarray:
        """Kernel values within a set; columns padded with zeros to a multiple of 16."""
        q = len(samples)
        ld = -(-q // 16) * 16
        out = np.empty((q, ld), dtype=self.dtype)
        slot = self._slot[samples]
        if slot.min() >= 0:
            _ext.kernel_gather(self._store, slot, samples, out)
            return out
        for rows in _parts(q, self.tuning.common.block_of(q)):
            kept = np.flatnonzero(slot[rows] >= 0)
            lost = np.flatnonzero(slot[rows] < 0)
            if len(kept):
                block = np.empty((len(kept), ld), dtype=self.dtype)
                _ext.kernel_gather(self._store, slot[rows][kept], samples, block)
                out[rows][kept] = block
            if len(lost):
                block = np.empty((len(lost), q), dtype=self.dtype)
                self._fill(samples[rows][lost], block, samples)
                out[rows][lost, :q] = block
                out[rows][lost, q:] = 0
        return out

    def blocks(self, samples: np.ndarray) -> Iterator[tuple[np.ndarray | slice, np.ndarray, np.ndarray]]:
        """Whole rows of these samples: which of the samples, a block of rows, and the places of theirs in it.

        Rows that are not kept are computed again, as many at a time as products need to be fast.
        """
        slot = self._slot[samples]
        if slot.min(initial=0) >= 0:
            yield slice(None), self._store, slot
            return
        kept, lost = np.flatnonzero(slot >= 0), np.flatnonzero(slot < 0)
        if len(kept):
            yield kept, self._store, slot[kept]
        step = min(len(lost), self.tuning.common.block_of(self.n))
        block = np.empty((step, self.n), dtype=self.dtype)
        for rows in _parts(len(lost), step):
            part = lost[rows]
            self._fill(samples[part], block[: len(part)])
            self.n_computed += len(part)
            yield part, block, np.arange(len(part))

    def add(self, F: np.ndarray, samples: np.ndarray, coef: np.ndarray) -> None:
        """``F[l, :] += sum_r coef[r, l] K(x_r, .)`` over the given samples r, in any order; F has one row a class."""
        coef, lengths = np.ascontiguousarray(coef), np.sqrt(np.maximum(self.diagonal, 0))
        most = lengths.max() * (lengths[samples] @ np.abs(coef)).max(initial=0)  # bound of what is added
        careful = bool(np.finfo(self.dtype).eps * most > SPLIT_SUMS_ABOVE)
        for part, block, slot in self.blocks(samples):
            _ext.kernel_add(F, block, slot, coef[part], careful)


def kernel_scores(
    X: Rows,
    support: Any,
    dual_coef: np.ndarray,
    intercept: np.ndarray,
    kernel: Kernel = "rbf",
    gamma: float = 1.0,
    degree: float = 3,
    coef0: float = 0.0,
    tuning: Tuning = DEFAULT,
) -> np.ndarray:
    """Scores ``K(X, support) dual_coef + intercept``, a block of rows at a time.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows to score; for ``"precomputed"`` their kernel values with the support vectors.
    support : {ndarray, CSR matrix} of shape (n_support, d)
        Support vectors (not used for ``"precomputed"``).
    dual_coef : ndarray of shape (n_support, k)
        Their coefficients.
    intercept : ndarray of shape (k,)
        Added to every row.
    kernel, gamma, degree, coef0
        As in `skmargin.rows.gram.gram`; ``gamma`` is a number.

    Returns
    -------
    scores : ndarray of shape (n, k)
        In the number type of ``X``: float32 rows are scored in float32, unless the numbers are too large for it.
    """
    machine = support, dual_coef, intercept, kernel, gamma, degree, coef0
    if X.dtype == np.float32:
        with np.errstate(over="ignore", invalid="ignore"), suppress(ValueError):
            scores = _Scorer(*machine, np.float32, tuning).scores(X)
            if np.isfinite(scores).all():
                return scores
    return _Scorer(*machine, np.float64, tuning).scores(X)


def kernel_winners(
    X: np.ndarray,
    support: np.ndarray,
    dual_coef: np.ndarray,
    intercept: np.ndarray,
    gamma: float,
    tuning: Tuning = DEFAULT,
) -> np.ndarray:
    """The class with the largest score for each row, of the RBF kernel between dense rows in float64.

    Computed in float32, which takes half the time; where the error of that may decide, again in float64.
    Arguments as for `kernel_scores`; a single column of ``dual_coef`` is the score of class 1 against class 0.
    """
    model = support, dual_coef, intercept, "rbf", gamma, 1, 0.0
    single, double = _Scorer(*model, np.float32, tuning), None
    winners = np.empty(X.shape[0], dtype=np.intp)
    start, step = 0, tuning.common.block_of(len(support))
    while start < X.shape[0]:
        rows = X[start : start + step]
        out = winners[start : start + len(rows)]
        with np.errstate(over="ignore", invalid="ignore"):  # beyond float32: computed again below
            doubtful = _winners(single.scores(rows), single.error(rows), out)
        if len(doubtful):
            double = double or _Scorer(*model, np.float64, tuning)
            _winners(double.scores(rows[doubtful]), np.zeros(len(doubtful)), again := out[doubtful])
            out[doubtful] = again
        start += len(rows)
        if len(doubtful) > 0.3 * len(rows) and double is not None:  # assume the same of the rest
            _winners(double.scores(X[start:]), np.zeros(len(X) - start), winners[start:])
            break
    return winners


def _winners(scores: np.ndarray, error: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write the class with the largest score of each row; where an error of each score by ``error`` could change it."""
    if scores.shape[1] == 1:
        out[:] = scores[:, 0] > 0
        return np.flatnonzero(~(np.abs(scores[:, 0]) > error))
    scores.argmax(axis=1, out=out)
    if not error.any():
        return np.zeros(0, dtype=np.intp)
    best = scores[np.arange(len(scores)), out]
    scores[np.arange(len(scores)), out] = -np.inf
    return np.flatnonzero(~(best - scores.max(axis=1) > 2 * error))


class _Scorer:
    """Scores of rows in one number type."""

    def __init__(
        self,
        support: Any,
        dual_coef: np.ndarray,
        intercept: np.ndarray,
        kernel: Kernel,
        gamma: float,
        degree: float,
        coef0: float,
        dtype: Any,
        tuning: Tuning = DEFAULT,
    ) -> None:
        self.dtype, self.tuning = np.dtype(dtype), tuning
        self.coef = np.ascontiguousarray(dual_coef, dtype=self.dtype)
        self.intercept = intercept.astype(self.dtype)
        self.products = (
            None if kernel == "precomputed" else _KernelProducts(support, kernel, gamma, degree, coef0, dtype, tuning)
        )

    def scores(self, X: Rows) -> np.ndarray:
        scores = np.empty((X.shape[0], self.coef.shape[1]), dtype=self.dtype)
        products = self.products
        if products is None:
            scores[...] = X @ self.coef
        else:
            step = self.tuning.common.block_of(products.columns)
            block = np.empty((min(step, X.shape[0]), products.columns), dtype=self.dtype)
            for start in range(0, X.shape[0], step):
                rows, norms = X[start : start + step], None
                if products.dense_rbf:
                    rows, norms = products.prepared(rows)
                values = block[: rows.shape[0]]
                products.fill(rows, norms, values)
                np.matmul(values, self.coef, out=scores[start : start + step])
        scores += self.intercept
        return scores

    def error(self, X: np.ndarray) -> np.ndarray:
        """Bound on the rounding error of each row's scores, for the RBF kernel of dense rows.

        With the unit u, a sum of m products is wrong by at most m u times the sum of their sizes, and by more than
        `ROUNDING_DEVIATIONS` sqrt(m) u times that sum almost never (Higham & Mary, 2019).  The same holds for inner
        products of d features, hence squared distances, and these errors are independent in the sum over the support
        vectors.
        """
        assert self.products is not None
        unit = 0.5 * np.finfo(self.dtype).eps
        m, d = (min(size, ROUNDING_DEVIATIONS * np.sqrt(size)) + 16 for size in self.products.Z.shape)
        centred = X - self.products.centre
        norms = np.sqrt(np.einsum("ij,ij->i", centred, centred)) + np.sqrt(self.products.norms.max())
        sizes = np.abs(self.coef)
        total, independent = sizes.sum(axis=0).max(), np.sqrt((sizes * sizes).sum(axis=0).max())
        distances = self.products.parameters[0] * norms**2 * d
        return unit * (total * m + independent * 4 * distances + 4 * np.abs(self.intercept).max())
