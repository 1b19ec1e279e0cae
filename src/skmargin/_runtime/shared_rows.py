"""Rows that several threads solve on at once: what a solver makes of them row by row is made once for all.

A search lends the array of which its folds are windows.  A solver that wants the rows of a window in another form
(single precision, one more column) then gets the window of that form of the whole array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

Make = Callable[[Any, int], Any]  # of rows and how many of them are different, see `Lent`
Form = tuple[Any, int]  # what was made of all rows, and where the window begins


class Lent:
    """Rows, dense or CSR, and the forms that were made of them or of the numbers of CSR rows.

    The rows behind the first ``n_different`` are these once more, from the beginning.
    """

    def __init__(self, rows: Any, n_different: int | None = None) -> None:
        self._lock = Lock()
        self._bases: list[Any] = []
        self._made: dict[tuple[int, Any], Any] = {}
        self._n_different = rows.shape[0] if n_different is None else n_different
        self._add(rows)

    def _add(self, rows: Any) -> None:
        self._bases += [rows, rows.data] if sparse.issparse(rows) else [rows]

    def form(self, window: Any, key: Any, make: Make, rows_of: Callable[[Any], Any]) -> Form | None:
        """As `whole_form`; None where this is not a window of the rows, or of a form of them."""
        with self._lock:
            for base in self._bases:
                start = _first_row(window, base)
                if start is None:
                    continue
                name = (id(base), key)
                if name not in self._made:
                    self._made[name] = made = make(base, self._n_different)
                    self._add(rows_of(made))  # forms may be made of it in turn
                return self._made[name], start
        return None


_lent: ContextVar[Lent | None] = ContextVar("lent", default=None)


@contextmanager
def lending(lent: Lent | None) -> Iterator[None]:
    """Solvers that run here may share forms of these rows."""
    token = _lent.set(lent)
    try:
        yield
    finally:
        _lent.reset(token)


def form_of(rows: Any, key: Any, make: Callable[[Any], Any]) -> Any:
    """``make(rows)``, which must treat every row on its own; shared where the rows were lent."""
    made, start = whole_form(rows, key, lambda whole, _: make(whole), lambda made: made)
    return window(made, slice(start, start + rows.shape[0]))


def whole_form(rows: Any, key: Any, make: Make, rows_of: Callable[[Any], Any]) -> Form:
    """What ``make`` gives for the lent rows of which these rows are a window, or for them, and where they begin.

    ``rows_of`` gives the array in it that has a row for each row.
    """
    lent = _lent.get()
    found = None if lent is None else lent.form(rows, key, make, rows_of)
    return (make(rows, rows.shape[0]), 0) if found is None else found


def window(rows: Any, part: slice) -> Any:
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
    """Where the rows of a window begin in ``base``; None where it is none."""
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
