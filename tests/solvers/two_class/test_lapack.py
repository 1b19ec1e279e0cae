"""LAPACK without the interpreter lock: right answers, in place, and other threads run on."""

import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import LinAlgError

from skmargin._core import _ext
from skmargin.solvers.two_class.lapack import cholesky, cholesky_solve, eigen, is_indefinite


def matrix(n, dtype=np.float64):
    A = np.random.default_rng(n).normal(size=(n, n))
    return (A @ A.T + np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 40, 150])
def test_factorisations(n, dtype):
    A, digits = matrix(n, dtype), {"rtol": 2e-4 if dtype is np.float32 else 1e-9, "atol": 1e-9}
    size = {**digits, "atol": digits["rtol"] * np.abs(A).max()}
    room = A.copy()
    w, Q = eigen(room)
    assert np.shares_memory(Q, room) and Q.dtype == dtype and (np.diff(w) >= 0).all()
    assert_allclose((Q * w) @ Q.T, A, **size)
    X = np.random.default_rng(0).normal(size=(n, 20)).astype(dtype)
    factor = A.copy()
    cholesky(factor)
    for right in (X, X[:, 0]):
        assert_allclose(A @ cholesky_solve(factor, right), right, rtol=1e-3, atol=1e5 * n * np.finfo(dtype).eps)


def test_refusals():
    with pytest.raises(LinAlgError, match="order 2"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))
    read_only = matrix(3)
    read_only.flags.writeable = False
    for bad in (matrix(4)[:2, :2], read_only):
        with pytest.raises(ValueError, match="contiguous and writeable"):
            eigen(bad)


def tridiagonal(A):
    x = np.ones((2, len(A)))
    return _ext.ridge_symmetric(A, x, np.zeros((2, 2)), np.ones(1), "shifted", 1.0, True, 0.0)


@pytest.mark.parametrize("work", [eigen, tridiagonal])
def test_other_threads_run_on(work):
    copies = [matrix(800) for _ in range(3)]
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(1e-4)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    for copy in copies:
        work(copy)
    during = len(ticks) - before
    stop.set()
    thread.join()
    assert during > 10  # about one for each call where the lock is held


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e250])
@pytest.mark.parametrize("share", [-1.0, -2e-6, -5e-7, 0.0])
def test_the_sign_of_the_least_eigenvalue(share, size):
    _, Q = np.linalg.eigh(matrix(60))
    values = np.r_[share, np.zeros(9), np.logspace(-12, 0, 50)]
    A = (Q * (size * values)) @ Q.T
    assert is_indefinite(A + A.T, 1e-6) == (share < -1e-6)


def test_the_sign_of_matrices_without_a_positive_diagonal():
    assert not is_indefinite(np.zeros((3, 3)), 1e-6)
    assert is_indefinite(-np.eye(3), 1e-6)
    assert is_indefinite(np.array([[0.0, 1.0], [1.0, 0.0]]), 1e-6)
