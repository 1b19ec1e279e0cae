"""Progress of a solve, a share from 0 to 1, reported from inside it to the listener of this thread.

Iterations towards a small relative gap count its digits: a gap of 0.03 is half of the way to 0.001.  Work of several
solves gives each its `progress_range`.  Loops of the core report by themselves, every 50 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import log
from threading import Lock
from typing import Any

# Called, in this thread, with the share of the work that is done.
_listener: ContextVar[Callable[[float], None] | None] = ContextVar("listener", default=None)
# Called with each relative gap and its goal, whatever fit they are of.
_gap_listener: ContextVar[Callable[[float, float], None] | None] = ContextVar("gap_listener", default=None)


def report(share: float = 0.0) -> None:
    """Report that this share of the work is done; an exception that was sent to this thread is raised here.

    Long loops of the core call it too (base/arrays.hpp).
    """
    listener = _listener.get()
    if listener is not None:
        listener(share)


def report_gap(gap: float, tol: float) -> None:
    """Report that this relative gap was reached on the way to ``tol``."""
    listener = _gap_listener.get()
    if listener is not None:
        listener(gap, tol)
    if 0 < gap < 1 and 0 < tol < 1:
        report(min(1.0, log(gap) / log(tol)))


def print_line(message: str) -> None:
    """Print a line of ``verbose`` output; all of them have one prefix."""
    print(f"[skmargin] {message}")


@contextmanager
def listening(listener: Callable[[float], None] | None) -> Iterator[None]:
    """Report the work that is done here to ``listener``; None: to nobody."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def listening_to_gaps(listener: Callable[[float, float], None]) -> Iterator[None]:
    """Report each relative gap that is reached here, and its goal, to ``listener``."""
    token = _gap_listener.set(listener)
    try:
        yield
    finally:
        _gap_listener.reset(token)


@contextmanager
def progress_range(begin: float, end: float) -> Iterator[None]:
    """The work that is done here is this range of the whole; an empty range reports nothing."""
    outer = _listener.get()
    with listening(None if outer is None else lambda share: outer(begin + (end - begin) * share)):
        yield


def counting(work: Callable[[Any], Any], total: int) -> Callable[[Any], Any]:
    """``work`` of one item, which then reports how many of ``total`` items are done; for any thread."""
    listener, lock, done = _listener.get(), Lock(), 0
    if listener is None:
        return work

    def counted(item: Any) -> Any:
        nonlocal done
        with listening(None):
            result = work(item)
        with lock:
            done += 1
            listener(done / total)
        return result

    return counted
