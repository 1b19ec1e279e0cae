"""A rival with a time limit: it runs in a process of its own, which is killed when its time is over."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from typing import Any

STEP = 0.1  # seconds between two looks at the clock


def limited(work: Callable[[], Any], limit: float | None, cpu: bool = False) -> tuple[Any, float]:
    """Result and seconds of ``work()``; None and the seconds it had where it took more than ``limit`` of them.

    ``cpu`` counts the seconds of the processor, for work in one process; otherwise those of the wall.
    """
    context = multiprocessing.get_context("fork")  # the data are there already
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(send, work, time.process_time if cpu else time.perf_counter))
    process.start()
    send.close()
    start = time.perf_counter()
    while not receive.poll(STEP):
        spent = _cpu_seconds(process.pid) if cpu else time.perf_counter() - start
        if limit is not None and spent > limit:
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
            process.join()
            return None, spent
    result = receive.recv()
    os.killpg(process.pid, signal.SIGKILL)  # it would wait minutes for idle workers of its own
    process.join()
    return result


def _child(send: Any, work: Callable[[], Any], clock: Callable[[], float]) -> None:
    os.setsid()
    start = clock()
    result = work()
    send.send((result, clock() - start))


def _cpu_seconds(pid: int | None) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
