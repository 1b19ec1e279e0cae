"""How many threads the matrix library has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_open: dict[object, int] = {}  # the limits in force, in the order in which they began
_before: Any = None  # knows the numbers of threads before the first of them


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks at every library of the process, which takes longer than a small solve


def _set(count: int) -> Any:
    return _libraries().limit(limits=count, user_api="blas")


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """While this is open BLAS has so many threads; on small products several would only wait for each other.

    The number belongs to the process, not to a thread: where limits overlap the last one to begin is in force, and the
    last one to end gives back what was there before the first.  Each by itself would give back what another had set.
    """
    global _before
    me = object()
    try:
        with _lock:
            limiter = _set(count)
            _before = limiter if not _open else _before
            _open[me] = count
        yield
    finally:
        with _lock:
            _open.pop(me, None)  # an interrupt may come first
            if _open:
                _set(next(reversed(_open.values())))
            elif _before is not None:
                _before.restore_original_limits()
