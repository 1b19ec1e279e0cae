"""How many threads the matrix library has, and work on threads of our own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import threadpoolctl
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = Lock()
_open: dict[object, int] = {}  # the limits in force, in the order in which they began
_first_limiter: Any = None  # restores the numbers of threads from before the first of them


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks at every library of the process, which takes longer than a small solve


@cache
def _blas() -> ThreadpoolController:
    return _libraries().select(user_api="blas")


@contextmanager
def _control() -> Iterator[None]:
    """Let this thread set the number: threadpoolctl 3.8 silently ignores it while another thread that set one lives.

    Here a thread may end a limit that another began; `_lock` keeps them in order.
    """
    openblas = getattr(threadpoolctl, "OpenBLASController", None)
    free = getattr(openblas, "clear_controlling_thread", lambda force: None)
    free(force=True)
    try:
        yield
    finally:
        free(force=True)


def _set(count: int) -> Any:
    with _control():
        return _blas().limit(limits=count)


def blas_count() -> int:
    """Number of threads that BLAS has now."""
    return max((library.num_threads for library in _blas().lib_controllers), default=1)


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """While this is open BLAS has so many threads; on small products several would only wait for each other.

    The number belongs to the process, not to a thread: where limits overlap the last one to begin is in force, and the
    last one to end gives back what was there before the first.  Each by itself would give back what another had set.
    """
    global _first_limiter
    me = object()
    try:
        with _lock:
            limiter = _set(count)
            _first_limiter = limiter if not _open else _first_limiter
            _open[me] = count
        yield
    finally:
        with _lock:
            _open.pop(me, None)  # an interrupt may come first
            if _open:
                _set(next(reversed(_open.values())))
            elif _first_limiter is not None:
                with _control():
                    _first_limiter.restore_original_limits()


def one_openmp_thread() -> None:
    """Give the calling thread, for its life, no team of OpenMP: one of several workers would wait for its own team.

    The number of BLAS belongs to the process, that of OpenMP (gradient boosting, nearest neighbours) to each thread.
    """
    for library in _libraries().select(user_api="openmp").lib_controllers:
        library.set_num_threads(1)


def thread_count(n_jobs: int | None) -> int:
    """Threads for `on_threads`: ``n_jobs`` as joblib counts it, one for None."""
    return int(effective_n_jobs(n_jobs))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(effective_n_jobs(-1), thread_name_prefix="skmargin")


def on_threads(work: Callable[[Item], Result], items: Iterable[Item], count: int) -> list[Result]:
    """``work`` of each item, by so many threads, this one among them.

    Unlike the threads of BLAS, which divide a product by their number, they leave the bits of a result as they are:
    items are the same for every number of threads.
    """
    queue = deque(enumerate(items))
    results: list[Any] = [None] * len(queue)

    def take_items() -> None:
        while queue:
            try:
                place, item = queue.popleft()
            except IndexError:  # another thread took the last one
                return
            results[place] = work(item)

    def submit(context: Context) -> Future[None]:
        return _pool().submit(lambda: context.run(take_items))

    # In free-threaded Python a thread keeps the context in which it started alive: threads of the pool start in an
    # empty one, and run the work in that of the call.
    others = [Context().run(submit, copy_context()) for _ in range(min(count, len(queue)) - 1)]
    try:
        take_items()
        for other in others:
            if not other.cancel():  # one that has not begun has nothing left to do, and after a fork never would
                other.result()
    finally:
        queue.clear()  # after an exception, or Ctrl-C, the others end with the item they are at
    return results
