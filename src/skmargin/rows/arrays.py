"""Rows in memory, dense or CSR: the storage that suits them, the arrays that the core takes, moments, a constant."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._core import _ext
from .._runtime.shared_rows import converted
from .._types import Rows
from ..solvers.tuning import DEFAULT, Tuning


def suitable_storage(X: Rows, tuning: Tuning = DEFAULT) -> Rows:
    """Dense rows for dense data and CSR for sparse data, whatever container the user chose."""
    n, d = X.shape
    if sparse.issparse(X):
        return X.toarray() if X.nnz > tuning.common.sparse_below * n * d else X
    # The start of each row is a number as well.
    if (stored := _stored_below(X, tuning.common.sparse_below * n * d - n)) is None:
        return X
    if stored > np.iinfo(np.int32).max:
        return sparse.csr_array(X)
    return sparse.csr_array(_ext.to_csr(np.ascontiguousarray(X), stored), shape=X.shape)


def _stored_below(X: np.ndarray, most: float) -> int | None:
    """How many numbers are not zero; None from ``most`` on, which some of the rows tell."""
    stored, step = 0, 1 + len(X) // 16
    for start in range(0, len(X), step):
        stored += int(np.count_nonzero(X[start : start + step]))
        if stored >= most:
            return None
    return stored


def core_rows(X: Rows, dtype: type) -> _ext.Rows:
    """The rows as the core takes them."""
    if sparse.issparse(X):
        return _ext.Rows(X.indptr, X.indices, _as(X.data, dtype), X.shape[1])
    return _ext.Rows(np.ascontiguousarray(_as(X, dtype)))


def _as(numbers: np.ndarray, dtype: type) -> np.ndarray:
    return numbers if numbers.dtype == dtype else converted(numbers, dtype, lambda whole: whole.astype(dtype))


def stored_numbers(X: Rows) -> int:
    """How many numbers the rows hold."""
    return int(X.nnz if sparse.issparse(X) else X.size)


def with_constant(X: Rows, value: float = 1.0) -> Rows:
    """``X`` with one more column, of this value: its weight is a penalised intercept.  Sparse rows stay sparse."""

    def make(rows: Rows) -> Rows:
        column = np.full((rows.shape[0], 1), value, dtype=rows.dtype)
        if sparse.issparse(rows):
            return sparse.csr_array(sparse.hstack([rows, sparse.csr_array(column)], format="csr"))
        return np.hstack([rows, column])

    return converted(X, ("constant", value), make)


def moments(X: Rows) -> tuple[np.ndarray, float]:
    """The mean of the rows and the mean of their squared norms, in double precision."""
    if not sparse.issparse(X):
        return _ext.moments(np.ascontiguousarray(X))
    n, d = X.shape
    chunk = max(d, 1 << 13)  # SciPy's mean would copy the rows
    parts = (slice(at, min(at + chunk, X.nnz)) for at in range(0, X.nnz, chunk))
    total = sum((np.bincount(X.indices[p], X.data[p], minlength=d) for p in parts), start=np.zeros(d))
    return total / n, sum_of_squares(X.data) / n


def total_variance(mean: np.ndarray, square: float) -> float:
    """Mean squared distance of a row from the mean of the rows, from what `moments` gives."""
    return max(0.0, square - sum_of_squares(mean))


def sum_of_squares(numbers: np.ndarray) -> float:
    """In double precision; not by BLAS, which would wait for its threads."""
    return float(np.einsum("i,i->", numbers, numbers, dtype=np.float64))
