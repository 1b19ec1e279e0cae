"""The number of threads of BLAS, which belongs to the whole process, and work on threads of our own."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from threading import Barrier

import joblib
import pytest

from skmargin._runtime import tasks, threads
from skmargin._runtime.threads import _libraries, blas_threads, on_threads, thread_count


def numbers():
    return [library.num_threads for library in _libraries().select(user_api="blas").lib_controllers]


def limited(count):
    with blas_threads(count):
        return numbers()  # not every library obeys


def test_limits_that_overlap_leave_the_threads_as_they_were():
    with blas_threads(3):
        before, first, second = numbers(), blas_threads(1), blas_threads(2)
        one, two = limited(1), limited(2)
        first.__enter__()
        assert numbers() == one
        second.__enter__()
        first.__exit__(None, None, None)  # as a fit on another thread that began earlier
        assert numbers() == two
        second.__exit__(None, None, None)
        assert numbers() == before


def test_limits_of_several_threads_leave_the_threads_as_they_were():
    with blas_threads(3), ThreadPoolExecutor(1) as left, ThreadPoolExecutor(1) as right:  # threads that live on
        before, first, second = numbers(), blas_threads(1), blas_threads(2)
        one, two = limited(1), limited(2)
        left.submit(first.__enter__).result()
        assert numbers() == one
        right.submit(second.__enter__).result()
        assert numbers() == two
        left.submit(first.__exit__, None, None, None).result()
        assert numbers() == two
        right.submit(second.__exit__, None, None, None).result()
        assert numbers() == before


def test_tasks_on_threads_leave_the_threads_as_they_were():
    with blas_threads(3), ThreadPoolExecutor(1) as other:
        before, first, seen = numbers(), blas_threads(2), []
        one = limited(1)
        other.submit(first.__enter__).result()

        def task():
            seen.append(numbers())
            other.submit(first.__exit__, None, None, None).result()
            seen.append(numbers())

        tasks.run([task, lambda: None], 2)
        assert seen == [one, one]
        assert numbers() == before


def test_threads_of_our_own_are_counted_as_joblib_counts_them():
    assert thread_count(None) == 1
    assert thread_count(3) == 3
    assert thread_count(-1) == joblib.effective_n_jobs(-1)


def test_items_are_worked_on_at_the_same_time_and_results_keep_their_order():
    meeting = Barrier(2)  # one thread alone would wait there until the limit

    def work(item):
        meeting.wait(timeout=60)
        return 10 * item

    assert on_threads(work, range(4), 2) == [0, 10, 20, 30]


def test_threads_work_in_the_context_of_the_call_and_keep_none_of_it(monkeypatch):
    class Thing:
        pass

    setting = ContextVar("setting", default=None)
    meeting = Barrier(2)

    def work(_):
        meeting.wait(timeout=60)
        return setting.get()

    def call():
        thing = Thing()
        token = setting.set(thing)
        try:
            assert on_threads(work, range(2), 2) == [thing, thing]
        finally:
            setting.reset(token)
        return weakref.ref(thing)

    with ThreadPoolExecutor(1) as pool:  # whose thread begins in the first call
        monkeypatch.setattr(threads, "_pool", lambda: pool)
        thing = call()
        assert on_threads(work, range(2), 2) == [None, None]
        gc.collect()
        assert thing() is None


@pytest.mark.parametrize("count", [1, 2])
def test_an_exception_ends_the_work(count):
    seen = []

    def work(item):
        seen.append(item)
        raise ZeroDivisionError(item)

    with pytest.raises(ZeroDivisionError):
        on_threads(work, range(1000), count)
    assert len(seen) <= count
