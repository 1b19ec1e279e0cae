"""Long tasks on threads, which Ctrl-C stops.

Threads share every array.  Signals reach the main thread only, so the workers are stopped by an exception that is sent
to them: it is raised at their next line of Python, and loops of the core run such a line every 50 ms.  A call of LAPACK
cannot be interrupted: a single task that makes such calls runs on a second thread while the main one waits for Ctrl-C.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext

from sklearn import config_context, get_config

from .threads import blas_threads, one_openmp_thread

GRACE_SECONDS = 0.15  # wait for stopped workers; one inside a long call of LAPACK ends after that call


def run(tasks: Iterable[Callable[[], None]], n_threads: int, *, uninterruptible: bool = False) -> None:
    """Run all tasks; the first exception, or Ctrl-C, stops the others and is raised.

    ``uninterruptible`` tasks make calls of LAPACK that last longer than Ctrl-C may wait.
    """
    tasks = list(tasks)
    n_threads = max(1, min(n_threads, len(tasks)))
    if n_threads == 1 and not (uninterruptible and threading.current_thread() is threading.main_thread()):
        for task in tasks:
            task()
        return
    workers = _Workers()
    several = n_threads > 1
    with blas_threads(1) if several else nullcontext():
        pool = ThreadPoolExecutor(
            n_threads, thread_name_prefix="skmargin", initializer=one_openmp_thread if several else None
        )
        futures = _submitted(pool, workers, tasks)
        try:
            _wait(futures)
        except BaseException:
            for future in futures:
                future.cancel()
            workers.stop()
            wait(futures, timeout=GRACE_SECONDS)
            raise
        finally:
            pool.shutdown(wait=False)


def _submitted(pool: ThreadPoolExecutor, workers: _Workers, tasks: list[Callable[[], None]]) -> set[Future[None]]:
    """The tasks, handed to the threads; what no thread has memory for is said as such."""
    futures: set[Future[None]] = set()
    try:
        for task in tasks:
            futures.add(pool.submit(workers.call, task))
    except RuntimeError as error:  # can't start new thread
        for future in futures:
            future.cancel()
        workers.stop()
        pool.shutdown(wait=False)
        raise MemoryError(f"no memory for a thread ({error})") from error
    return futures


def _wait(futures: set[Future[None]]) -> None:
    while futures:
        # A wait without a limit cannot be interrupted on Windows.
        done, futures = wait(futures, timeout=0.05, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()


class _Workers:
    """The threads that are inside a task."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy: set[int] = set()
        self._config = get_config()  # scikit-learn's settings belong to a thread

    def call(self, task: Callable[[], None]) -> None:
        me = threading.get_ident()
        try:
            with self._lock:
                self._busy.add(me)
            with config_context(**self._config):
                task()
        finally:
            with self._lock:  # held while exceptions are sent: none reaches a thread that has left
                self._busy.discard(me)

    def stop(self) -> None:
        with self._lock:
            for thread in self._busy:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
