"""How far a solve is, told from inside it: a share from 0 to 1, to whoever listens in this thread.

Iterations that go on until a relative gap is small count its digits: a gap of 0.03 is half of the way to 0.001.  What
is made of several solves gives each its `part` of the way.  Loops of the core tell by themselves, every 50 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import log
from threading import Lock
from typing import Any

# Who is told, in this thread, which share of a solve is done.
_listener: ContextVar[Callable[[float], None] | None] = ContextVar("listener", default=None)


def tell(share: float = 0.0) -> None:
    """Say that this share of the work is done; an exception that was sent to this thread is raised here.

    Long loops of the core call it too (base/arrays.hpp).
    """
    listener = _listener.get()
    if listener is not None:
        listener(share)


def tell_gap(gap: float, tol: float) -> None:
    """Say that this relative gap was reached on the way to ``tol``."""
    if 0 < gap < 1 and 0 < tol < 1:
        tell(min(1.0, log(gap) / log(tol)))


def say(message: str) -> None:
    """Print a line for those who asked for it with ``verbose``; all lines begin alike, to be found among others."""
    print(f"[skmargin] {message}")


@contextmanager
def listening(listener: Callable[[float], None] | None) -> Iterator[None]:
    """Who is told of the work that is done here."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """The work that is done here is this part of the whole; an empty part says nothing of its own."""
    outer = _listener.get()
    with listening(None if outer is None else lambda share: outer(begin + (end - begin) * share)):
        yield


def counted(work: Callable[[Any], Any], total: int) -> Callable[[Any], Any]:
    """``work`` that tells how many of ``total`` items are done, from whatever thread."""
    listener, lock, done = _listener.get(), Lock(), 0
    if listener is None:
        return work

    def told(item: Any) -> Any:
        nonlocal done
        with listening(None):
            result = work(item)
        with lock:
            done += 1
            listener(done / total)
        return result

    return told
