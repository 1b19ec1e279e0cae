"""The number of threads of BLAS, which belongs to the whole process."""

from skmargin._core.threads import _libraries, blas_threads


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
