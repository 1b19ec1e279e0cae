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


class Lent:
    """An array of rows (or the numbers of CSR rows, one dimension) and the forms that were made of it."""

    def __init__(self, rows: np.ndarray) -> None:
        self._lock = Lock()
        self._bases: list[np.ndarray] = [rows]
        self._made: dict[tuple[int, Any], np.ndarray] = {}

    def form(self, window: np.ndarray, key: Any, make: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
        """``make(window)`` as a window of ``make`` of the whole; None where it is not a window of this array."""
        with self._lock:
            for base in self._bases:
                start = _first_row(window, base)
                if start is None:
                    continue
                name = (base.ctypes.data, key)
                if name not in self._made:
                    self._made[name] = made = make(base)
                    self._bases.append(made)  # forms may be made of it in turn
                return self._made[name][start : start + len(window)]
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


def form_of(rows: np.ndarray, key: Any, make: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """``make(rows)``, which must treat every row on its own; shared where the rows were lent."""
    lent = _lent.get()
    found = None if lent is None else lent.form(rows, key, make)
    return make(rows) if found is None else found


def _first_row(window: np.ndarray, base: np.ndarray) -> int | None:
    """Where the rows of a window begin in ``base``; None where it is none."""
    same = window.dtype == base.dtype and window.shape[1:] == base.shape[1:] and window.strides == base.strides
    if not same or window.size == 0:
        return None
    row, rest = divmod(window.ctypes.data - base.ctypes.data, base.strides[0])
    return row if rest == 0 and 0 <= row <= len(base) - len(window) else None
