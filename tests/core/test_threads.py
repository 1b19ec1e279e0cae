"""The number of threads of BLAS, which belongs to the whole process."""

from threadpoolctl import ThreadpoolController

from skmargin._core.threads import blas_threads


def numbers():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


def test_limits_that_overlap_leave_the_threads_as_they_were():
    with blas_threads(3):
        before, first, second = numbers(), blas_threads(1), blas_threads(2)
        first.__enter__()
        assert set(numbers()) <= {1}
        second.__enter__()
        first.__exit__(None, None, None)  # as a fit on another thread that began earlier
        assert set(numbers()) <= {2}
        second.__exit__(None, None, None)
        assert numbers() == before
