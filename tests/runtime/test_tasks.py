"""Tasks on threads that Ctrl-C stops."""

import threading
import time
from _thread import interrupt_main

import pytest
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from skmargin._runtime.tasks import run


@pytest.mark.perf
@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupt_waits_a_quarter_of_a_second_at_most(count):
    """For tasks inside a call during which they hear nothing."""
    called, ended, began = [], threading.Event(), threading.Barrier(count + 1)

    def task():
        began.wait(timeout=60)
        ended.wait(timeout=2)

    def interrupt():
        began.wait(timeout=60)
        called.append(time.perf_counter())
        interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run([task] * count, count, uninterruptible=True)
    waited = time.perf_counter() - called[0]
    ended.set()
    thread.join()
    assert waited < 0.25


def test_workers_have_no_teams_of_openmp():
    """Several workers, each of which waits for a team of its own, are slower than one by far."""
    found, all_here = [], threading.Barrier(2)

    def task():
        all_here.wait(timeout=60)
        found.append(_openmp_effective_n_threads())

    before = _openmp_effective_n_threads()
    run([task, task], 2)
    assert found == [1, 1] and _openmp_effective_n_threads() == before
