"""Clocks, thread pinning, and peak memory."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

T = TypeVar("T")


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Run on ``threads`` cores with as many BLAS and OpenMP threads."""
    can_pin = hasattr(os, "sched_setaffinity")
    if can_pin:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(before)[-threads:])  # interrupts tend to go to the first core
    try:
        with threadpool_limits(threads):
            yield
    finally:
        if can_pin:
            os.sched_setaffinity(0, before)


def timed(work: Callable[[], T], threads: int) -> tuple[T, float]:
    """Result and seconds: CPU time for one thread (blind to other programs), wall time for more.

    To be called in `pinned`.  What that does, and a garbage collection, would leave nothing of a small problem in the
    cache.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    gc.disable()
    try:
        start = clock()
        result = work()
        return result, clock() - start
    finally:
        gc.enable()


def reset_peak_memory() -> None:
    """Give free memory back and start a new high-water mark of the resident memory (Linux with glibc only)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def memory(field: str) -> float:
    """Resident memory in MiB: ``field`` is "VmRSS" (now) or "VmHWM" (high-water mark); Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))
