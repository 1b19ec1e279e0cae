import threading
import time
from _thread import interrupt_main

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from skmargin.solvers.two_class.lapack import eigen
from skmargin.solvers.two_class.pairwise import combine, memberships, n_machines, over_threads, subproblems, winners


def test_memberships_by_their_definition():
    F = np.random.default_rng(0).standard_normal((30, 6))
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    wanted = np.ones((30, 4))
    for i in range(4):
        for (a, b), f in zip(pairs, F.T, strict=True):
            if i in (a, b):
                wanted[:, i] = np.minimum(wanted[:, i], f if i == b else -f)
    assert_array_equal(memberships(F, 4), wanted)
    assert (wanted <= 1).all()
    winner = winners(F, 4, "fuzzy_pairwise")
    beaten = (wanted > 0).any(axis=1)  # a class that wins every duel exists and is the winner
    assert beaten.any()
    assert_array_equal(winner[beaten], winners(F, 4, "ovo")[beaten])


def test_votes_equal_those_of_scikit_learn():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    pairs = SVC(C=0.1, decision_function_shape="ovo").fit(X, y)
    votes = SVC(C=0.1, decision_function_shape="ovr").fit(X, y)
    assert_allclose(combine(-pairs.decision_function(X), 10, "ovo"), votes.decision_function(X))


@pytest.mark.parametrize("method", ["fuzzy_pairwise", "ovo", "ovr"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_duels(method, k):
    codes = np.random.default_rng(1).permutation(np.arange(40) % k)
    parts = subproblems(codes, k, method)
    assert sum(part.Y.shape[1] for part in parts) == n_machines(k, method)
    assert parts[-1].columns.stop == n_machines(k, method)
    for part in parts:
        assert set(np.unique(part.Y)) == {-1.0, 1.0}
    if k == 3 and method == "ovo":
        assert_array_equal(codes[parts[1].rows], np.where(parts[1].Y[:, 0] > 0, 2, 0))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_threads_keep_the_order_and_pass_errors_on(n_jobs):
    assert over_threads(lambda i: i * i, range(7), n_jobs, 10) == [i * i for i in range(7)]
    with pytest.raises(ZeroDivisionError):
        over_threads(lambda i: 1 / i, range(3), n_jobs, 2000)


@pytest.mark.perf
def test_interrupts_do_not_wait_for_lapack():
    A = np.random.default_rng(0).normal(size=(2000, 2000))
    begun = threading.Event()

    def work(_):
        begun.set()
        return eigen(A + A.T)[0]

    def interrupt():
        begun.wait()
        interrupt_main()

    threading.Thread(target=interrupt).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        over_threads(work, [0], 1, len(A))
    interrupted, start = time.perf_counter() - start, time.perf_counter()
    (w,) = over_threads(work, [0], 1, len(A))
    assert interrupted < 0.7 * (time.perf_counter() - start)
    assert w.sum() == pytest.approx(2 * np.trace(A))
