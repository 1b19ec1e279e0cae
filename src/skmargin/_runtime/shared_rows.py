"""How folds share rows: what a solver converts row by row is converted once for all threads.

A search shares the array of which its folds are windows (model_selection/_folds.py).  A solver that needs the rows of a
window converted (to float32, with one more column) gets a window of the whole array converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from .._types import RowsLike

Make = Callable[[Any, int], Any]  # of rows and how many of them are different, see `SharedRows`
Converted = tuple[Any, int]  # all rows converted, and where the window begins in them


class SharedRows:
    """Rows, dense or CSR, and what they (or the numbers of CSR rows) were converted to.

    The rows behind the first ``n_different`` are these repeated, from the beginning.
    """

    def __init__(self, rows: RowsLike, n_different: int | None = None) -> None:
        self._lock = Lock()
        self._bases: list[Any] = []
        self._made: dict[tuple[int, Any], Any] = {}
        self._n_different = rows.shape[0] if n_different is None else n_different
        self._add(rows)

    def _add(self, rows: RowsLike) -> None:
        self._bases += [rows, rows.data] if sparse.issparse(rows) else [rows]

    def converted(self, window: Any, key: Any, make: Make, rows_of: Callable[[Any], Any]) -> Converted | None:
        """As `converted_whole`; None where this is not a window of the rows, or of a conversion of them."""
        with self._lock:
            for base in self._bases:
                start = _first_row(window, base)
                if start is None:
                    continue
                name = (id(base), key)
                if name not in self._made:
                    self._made[name] = made = make(base, self._n_different)
                    self._add(rows_of(made))  # which may be converted in turn
                return self._made[name], start
        return None


_shared: ContextVar[SharedRows | None] = ContextVar("shared_rows", default=None)


@contextmanager
def sharing_rows(shared: SharedRows | None) -> Iterator[None]:
    """Solvers that run here share conversions of these rows."""
    token = _shared.set(shared)
    try:
        yield
    finally:
        _shared.reset(token)


def converted(rows: RowsLike, key: Any, make: Callable[[Any], Any]) -> Any:
    """``make(rows)``, which must treat every row on its own; shared where the rows are shared."""
    made, start = converted_whole(rows, key, lambda whole, _: make(whole), lambda made: made)
    return window(made, slice(start, start + rows.shape[0]))


def converted_whole(rows: RowsLike, key: Any, make: Make, rows_of: Callable[[Any], Any]) -> Converted:
    """``make`` of the shared rows of which these rows are a window, or of themselves, and where they begin in it.

    ``rows_of`` gives the array in the result that has one row for each row.
    """
    shared = _shared.get()
    found = None if shared is None else shared.converted(rows, key, make, rows_of)
    return (make(rows, rows.shape[0]), 0) if found is None else found


def window(rows: RowsLike, part: slice) -> Any:
    """Consecutive rows without a copy, dense or CSR."""
    if not sparse.issparse(rows):
        return rows[part]
    start = rows.indptr[part.start : part.stop + 1]
    data = slice(start[0], start[-1])
    # given arrays, the constructor would copy small ones
    out = type(rows)((part.stop - part.start, rows.shape[1]), dtype=rows.dtype)
    out.data, out.indices, out.indptr = rows.data[data], rows.indices[data], start - start[0]
    return out


def _first_row(window: Any, base: Any) -> int | None:
    """Where the rows of a window begin in ``base``; None where it is not a window of it."""
    if sparse.issparse(window) or sparse.issparse(base):
        return _first_csr_row(window, base) if sparse.issparse(window) and sparse.issparse(base) else None
    same = window.dtype == base.dtype and window.shape[1:] == base.shape[1:] and window.strides == base.strides
    if not same or window.size == 0:
        return None
    row, rest = divmod(window.ctypes.data - base.ctypes.data, base.strides[0])
    return row if rest == 0 and 0 <= row <= len(base) - len(window) else None


def _first_csr_row(window: Any, base: Any) -> int | None:
    first = _first_row(window.data, base.data)
    if first is None or _first_row(window.indices, base.indices) != first or window.shape[1] != base.shape[1]:
        return None
    n = window.shape[0]
    last = int(np.searchsorted(base.indptr, first, "right"))
    for row in range(int(np.searchsorted(base.indptr, first)), min(last, base.shape[0] - n + 1)):  # rows may be empty
        if np.array_equal(base.indptr[row : row + n + 1] - first, window.indptr):
            return row
    return None
