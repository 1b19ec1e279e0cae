"""The kernel solver against cvxpy, LIBSVM and its own certificate computed independently."""

import _thread
import threading
import time
import tracemalloc
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skmargin.rows.gram import gram
from skmargin.rows.kernel_rows import KernelRows
from skmargin.solvers.dual.kernel import solve_kernel_dual
from skmargin.solvers.dual.state import KernelState, coefficients


def make_problem(k, n=50, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)].astype(np.int32)
    X = rng.normal(size=(n, d))
    X[:, 0] += y
    return X, y, rng.uniform(0.2, 3.0, n)


def hinge_losses(f, y, loss, K):
    rows = np.arange(len(y))
    hinge = np.maximum(0, 1 - f[rows, y][:, None] + f)
    hinge[rows, y] = 0
    largest = -np.sort(-hinge, axis=1)
    return {"max": largest[:, 0], "sum": hinge.sum(axis=1), "top": largest[:, :K].sum(axis=1) / K}[loss]


def optimum(gram_matrix, y, cap, k, loss, K, fit_intercept):
    """The primal problem in the words of cvxpy; K = R R' turns the kernel machine into a linear one."""
    n = len(y)
    values, vectors = np.linalg.eigh(gram_matrix)
    V, b = cp.Variable((n, k)), cp.Variable((1, k))
    f = (vectors * np.sqrt(np.maximum(values, 0))) @ V
    if fit_intercept:
        f = f + np.ones((n, 1)) @ b
    own = np.eye(k)[y]
    hinge = cp.multiply(1 - own, cp.pos(1 - cp.sum(cp.multiply(own, f), axis=1, keepdims=True) @ np.ones((1, k)) + f))
    if loss == "max":
        value = cap @ cp.max(hinge, axis=1)
    elif loss == "sum":
        value = cap @ cp.sum(hinge, axis=1)
    else:  # sum of the K largest = min_t K t + sum (h - t)_+
        t = cp.Variable((n, 1))
        value = cap @ cp.sum(cp.pos(hinge - t @ np.ones((1, k))), axis=1) / K + cap @ t[:, 0]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(V) + value))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


def primal_dual(gram_matrix, y, cap, state, loss, K):
    """Primal and dual objectives in float64, from the definition."""
    c, b = state.published(y)
    f = gram_matrix @ c
    norm = 0.5 * np.sum(c * f)
    return norm + cap @ hinge_losses(f + b, y, loss, K), state.alpha.sum() - norm / state.stretch**2


def check_feasible(state, y, cap, loss, K, fit_intercept):
    alpha, scale = state.alpha, 1 + 1e-9
    assert (alpha >= 0).all() and not alpha[np.arange(len(y)), y].any()
    if loss != "max":
        assert (alpha <= scale * (cap if loss == "sum" else cap / K)[:, None]).all()
    if loss != "sum":
        assert (alpha.sum(axis=1) <= scale * cap).all()
    if fit_intercept:
        np.testing.assert_allclose(coefficients(alpha, y).sum(axis=0), 0, atol=1e-9 * alpha.sum())


@pytest.mark.parametrize("loss", ["max", "sum", "top"])
def test_longer_class_vectors_are_certified_and_start_again(loss):
    X, y, weight = make_problem(5, n=200, seed=1)
    cap = 10 * weight
    matrix, rows = gram(X, kernel="rbf", gamma=0.5), KernelRows(X, "rbf", 0.5, dtype=np.float64)
    state = solve_kernel_dual(rows, y, cap, 5, loss, top_k=2, tol=1e-3)
    assert 1 < state.stretch < 1.01
    P, D = primal_dual(matrix, y, cap, state, loss, 2)
    assert state.objective == pytest.approx(P, rel=1e-9)
    assert state.gap == pytest.approx((P - D) / P, rel=1e-6) and state.gap <= 1e-3
    shorter, _ = primal_dual(matrix, y, cap, replace(state, stretch=1.0), loss, 2)
    assert shorter > P
    again = solve_kernel_dual(rows, y, cap, 5, loss, top_k=2, tol=1e-3, state=state)
    assert again.n_iter == 0 and again.gap <= 1e-3


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["max", "sum", "top"])
@pytest.mark.parametrize("k", [2, 3, 7, 12])
def test_agrees_with_cvxpy(k, loss, fit_intercept):
    X, y, weight = make_problem(k, seed=k)
    cap = weight * 10.0 ** (k % 3 - 1)
    matrix = gram(X, kernel="rbf", gamma=0.3)
    best = optimum(matrix, y, cap, k, loss, 2, fit_intercept)

    state = solve_kernel_dual(
        KernelRows(X, "rbf", 0.3, dtype=np.float64), y, cap, k, loss, top_k=2, fit_intercept=fit_intercept, tol=1e-7
    )
    assert state.gap <= 1e-7
    assert state.objective == pytest.approx(best, rel=1e-6)
    P, D = primal_dual(matrix, y, cap, state, loss, 2)
    assert state.objective == pytest.approx(P, rel=1e-9)
    assert P - D <= 1.01e-7 * P
    check_feasible(state, y, cap, loss, 2, fit_intercept)

    single = solve_kernel_dual(
        KernelRows(X, "rbf", 0.3), y, cap, k, loss, top_k=2, fit_intercept=fit_intercept, tol=1e-3
    )
    P, D = primal_dual(matrix, y, cap, single, loss, 2)
    assert P - D <= 1.05e-3 * P  # the certificate of float32 rows, computed again in float64
    assert best * (1 - 1e-6) <= P <= best * (1 + 1.05e-3)
    check_feasible(single, y, cap, loss, 2, fit_intercept)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_other_kernels_agree_with_cvxpy(kernel, fit_intercept):
    X, y, cap = make_problem(3, seed=5)
    X[4] = 0  # with the linear kernel this row has no curvature at all
    X[7] = X[8]
    matrix = gram(X, kernel=kernel, gamma=0.3, degree=2, coef0=1.0)
    best = optimum(matrix, y, cap, 3, "max", 1, fit_intercept)
    for data in (X, sparse.csr_array(X)):
        rows = KernelRows(data, kernel, 0.3, 2, 1.0, dtype=np.float64)
        state = solve_kernel_dual(rows, y, cap, 3, "max", fit_intercept=fit_intercept, tol=1e-7, max_iter=100_000)
        assert state.gap <= 1e-7
        assert state.objective == pytest.approx(best, rel=1e-6)


def test_two_classes_are_the_svm_of_libsvm():
    # Both class vectors are opposite halves of the binary one: C = 1 here is C = 2 there, P is half.
    X, y, weight = make_problem(2, n=120, seed=3)
    svm = SVC(C=1.0, gamma=0.5, tol=1e-8).fit(X, y, sample_weight=2 * weight)
    rows = KernelRows(X, "rbf", 0.5, dtype=np.float64)
    state = solve_kernel_dual(rows, y, weight, 2, "max", tol=1e-9)
    f = gram(X, kernel="rbf", gamma=0.5) @ coefficients(state.alpha, y) + state.b
    np.testing.assert_allclose(f[:, 1] - f[:, 0], svm.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_integer_weights_equal_repeated_rows(fit_intercept):
    X, y, _ = make_problem(4, seed=2)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    once = solve_kernel_dual(
        KernelRows(X, dtype=np.float64), y, times * 1.0, 4, "sum", fit_intercept=fit_intercept, tol=1e-9
    )
    repeated = solve_kernel_dual(
        KernelRows(np.repeat(X, times, axis=0), dtype=np.float64),
        np.repeat(y, times),
        np.ones(times.sum()),
        4,
        "sum",
        fit_intercept=fit_intercept,
        tol=1e-9,
    )
    assert once.objective == pytest.approx(repeated.objective, rel=1e-8)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y.astype(np.int32)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["max", "sum", "top"])
def test_certificate_on_digits(digits, loss, fit_intercept):
    X, y = digits
    gamma = 1 / (64 * X.var())
    cap = np.full(len(y), 10.0)
    rows = KernelRows(X, "rbf", gamma)
    state = solve_kernel_dual(rows, y, cap, 10, loss, top_k=3, fit_intercept=fit_intercept, tol=1e-3)
    P, D = primal_dual(gram(X, kernel="rbf", gamma=gamma), y, cap, state, loss, 3)
    assert P - D <= 1.05e-3 * P
    assert state.gap == pytest.approx((P - D) / P, rel=0.05)
    assert state.n_rows_computed < 0.6 * len(y)
    check_feasible(state, y, cap, loss, 3, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_small_cache_gives_the_same_optimum(digits, fit_intercept):
    X, y = digits
    gamma, cap = 1 / (64 * X.var()), np.full(len(y), 1.0)
    large = solve_kernel_dual(KernelRows(X, "rbf", gamma), y, cap, 10, "max", fit_intercept=fit_intercept, tol=1e-3)
    rows = KernelRows(X, "rbf", gamma, cache_size=1.5)
    assert rows.limit < 500
    small = solve_kernel_dual(rows, y, cap, 10, "max", fit_intercept=fit_intercept, tol=1e-3)
    assert small.gap <= 1e-3
    assert small.objective == pytest.approx(large.objective, rel=1e-3)


def test_same_seed_same_bits_and_other_seed_same_optimum():
    X, y = load_iris(return_X_y=True)
    y, cap = y.astype(np.int32), np.full(150, 10.0)
    first, again, other = (
        solve_kernel_dual(KernelRows(X, "rbf", 0.5), y, cap, 3, "max", random_state=seed, tol=1e-3)
        for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(first.alpha, again.alpha)
    np.testing.assert_array_equal(first.b, again.b)
    assert other.objective == pytest.approx(first.objective, rel=1e-3)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_warm_start_along_C(digits, fit_intercept):
    X, y = digits
    rows = KernelRows(X, "rbf", 1 / (64 * X.var()))
    cap = np.ones(len(y))
    start = solve_kernel_dual(rows, y, cap, 10, "max", fit_intercept=fit_intercept)
    scaled = KernelState(1.5 * start.alpha, start.b)
    warm = solve_kernel_dual(rows, y, 1.5 * cap, 10, "max", fit_intercept=fit_intercept, state=scaled)
    cold = solve_kernel_dual(
        KernelRows(X, "rbf", 1 / (64 * X.var())), y, 1.5 * cap, 10, "max", fit_intercept=fit_intercept
    )
    assert warm.objective == pytest.approx(cold.objective, rel=1e-3)
    assert warm.n_updates < cold.n_updates
    assert warm.n_rows_computed < 0.2 * cold.n_rows_computed
    same = solve_kernel_dual(rows, y, 1.5 * cap, 10, "max", fit_intercept=fit_intercept, state=warm)
    assert same.n_updates == 0
    assert same.gap <= 1e-3


def test_float32_rows_are_given_up_where_they_do_not_resolve_the_target():
    X, y, cap = make_problem(3, n=150, seed=1)
    rows = KernelRows(X, "rbf", 0.3, dtype=np.float32)
    state = solve_kernel_dual(rows, y, 10 * cap, 3, "max", tol=1e-9, max_iter=100_000)
    assert rows.dtype == np.float64
    assert state.gap <= 1e-9


def test_float32_certifies_nothing_that_its_rounding_hides():
    X, y = make_classification(700, 10, n_informative=8, n_classes=5, flip_y=0.2, random_state=0)
    y, cap = y.astype(np.int32), np.full(700, 300.0)
    rows = KernelRows(X, "rbf", 0.02, dtype=np.float32)
    state = solve_kernel_dual(rows, y, cap, 5, "max", tol=2e-4, max_iter=20_000)
    P, D = primal_dual(gram(X, kernel="rbf", gamma=0.02), y, cap, state, "max", 1)
    assert state.gap <= 2e-4
    assert state.objective == pytest.approx(P, rel=2e-5)
    assert P - D <= 2.1e-4 * P


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [1e4, 1e6, 1e8])
def test_float32_certifies_no_margin_that_its_kernel_matrix_may_miss(C, intercept):
    """Rows that can be separated: all losses were zero in float32, and 1e-7 times C in truth."""
    X, y = load_wine(return_X_y=True)
    X, y, cap = StandardScaler().fit_transform(X), y.astype(np.int32), np.full(178, C)
    rows = KernelRows(X, lambda A, B: A @ B.T, dtype=np.float32)
    state = solve_kernel_dual(rows, y, cap, 3, "max", fit_intercept=intercept, tol=1e-3)
    P, _ = primal_dual(X @ X.T, y, cap, state, "max", 1)
    assert state.gap <= 1e-3
    assert state.objective == pytest.approx(P, rel=1e-4)
    again = solve_kernel_dual(
        KernelRows(X, lambda A, B: A @ B.T, dtype=np.float32), y, 100 * cap, 3, "max", fit_intercept=intercept,
        tol=1e-3, state=state.rescaled(np.full(178, 100.0), y),
    )  # fmt: skip
    P, _ = primal_dual(X @ X.T, y, 100 * cap, again, "max", 1)
    assert again.gap <= 1e-3
    assert again.objective == pytest.approx(P, rel=1e-4)


def test_a_start_that_is_good_enough_is_not_rounded_to_float32():
    X, y = make_classification(500, 10, n_informative=8, flip_y=0.2, random_state=0)
    y, cap = y.astype(np.int32), np.full(500, 1000.0)
    rows = [KernelRows(X, "rbf", 0.02, dtype=np.float32) for _ in range(2)]
    first = solve_kernel_dual(rows[0], y, cap, 2, "max", tol=5e-4, max_iter=20_000)
    again = solve_kernel_dual(rows[1], y, cap, 2, "max", tol=1e-3, state=first.rescaled(np.ones(500), y))
    P, _ = primal_dual(gram(X, kernel="rbf", gamma=0.02), y, cap, again, "max", 1)
    assert again.n_iter == 0
    assert again.objective == pytest.approx(P, rel=5e-5)


def test_an_indefinite_kernel_ends():
    X, y, cap = make_problem(3, seed=9)
    state = solve_kernel_dual(KernelRows(X, "sigmoid", 0.5, coef0=-1.0), y, cap, 3, "max", max_iter=500)
    assert np.isfinite(state.alpha).all() and np.isfinite(state.objective)
    check_feasible(state, y, cap, "max", 1, True)


def test_max_iter_stops_with_an_honest_gap():
    X, y, cap = make_problem(5, n=300, seed=4)
    state = solve_kernel_dual(KernelRows(X, "rbf", 0.3, dtype=np.float64), y, 100 * cap, 5, "max", tol=1e-6, max_iter=7)
    assert state.n_iter == 7
    P, D = primal_dual(gram(X, kernel="rbf", gamma=0.3), y, 100 * cap, state, "max", 1)
    assert state.gap == pytest.approx((P - D) / P, rel=1e-6) and state.gap > 1e-6
    check_feasible(state, y, 100 * cap, "max", 1, True)


def test_max_updates_stops_with_an_honest_gap():
    X, y, cap = make_problem(5, n=300, seed=4)
    rows = KernelRows(X, "rbf", 0.3, dtype=np.float64)
    state = solve_kernel_dual(rows, y, 100 * cap, 5, "max", tol=1e-9, max_updates=2000)
    assert 2000 <= state.n_updates <= 2300
    P, D = primal_dual(gram(X, kernel="rbf", gamma=0.3), y, 100 * cap, state, "max", 1)
    assert state.gap == pytest.approx((P - D) / P, rel=1e-6) and state.gap > 1e-9
    check_feasible(state, y, 100 * cap, "max", 1, True)


@pytest.mark.perf
def test_ctrl_c_stops_within_a_quarter_of_a_second():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 30)), rng.integers(0, 10, 3000).astype(np.int32)
    rows, cap = KernelRows(X, "rbf", 0.001, dtype=np.float64), np.full(3000, 1e4)
    solve_kernel_dual(rows, y, cap, 10, "sum", tol=1e-9, max_iter=3)  # rows are there: what follows is block ascent
    sent = []

    def interrupt():
        sent.append(time.process_time())
        _thread.interrupt_main()

    timer = threading.Timer(1.0, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solve_kernel_dual(rows, y, cap, 10, "sum", tol=1e-9, max_iter=10**9)
    assert time.process_time() - sent[0] < 0.25  # of the processor: others may use it too


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_memory_is_that_of_the_kernel_rows(fit_intercept):
    """With many features, many classes and every sample a support vector: neither X nor the rows are there twice."""
    n, d, k = 1000, 400, 10
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n).astype(np.int32)
    X = 0.3 * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))
    tracemalloc.start()
    try:
        rows = KernelRows(X, "rbf", 1 / (d * X.var()))
        before = tracemalloc.get_traced_memory()[0]  # holds the store, of which pages are used as rows are kept
        tracemalloc.reset_peak()
        state = solve_kernel_dual(rows, y, np.full(n, 10.0), k, "max", fit_intercept=fit_intercept)
        besides = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    matrix = 4 * n**2
    assert state.gap <= 1e-3 and state.n_rows_computed > 0.9 * n
    assert before < 1.05 * matrix and besides < 0.35 * matrix


def overlapping(n=200, k=4, seed=0):
    """Classes in a line with labels of which some are wrong: with a large C the dual has flat directions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = rng.normal(size=(n, 2))
    X[:, 0] += 2 * y
    wrong = rng.random(n) < 0.15
    y[wrong] = rng.integers(0, k, wrong.sum())
    return X, y.astype(np.int32), rng.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["max", "sum", "top"])
def test_large_C(loss, fit_intercept, dtype):
    """Without momentum 10 000 passes leave a gap of a half to seven per cent."""
    X, y, weight = overlapping()
    cap, rows = 1e3 * weight, KernelRows(X, "rbf", 0.5, dtype=dtype)
    state = solve_kernel_dual(rows, y, cap, 4, loss, top_k=2, fit_intercept=fit_intercept, tol=1e-3)
    P, D = primal_dual(gram(X, kernel="rbf", gamma=0.5), y, cap, state, loss, 2)
    assert state.objective == pytest.approx(P, rel=1e-4)
    assert state.gap <= 1e-3 and state.gap == pytest.approx((P - D) / P, rel=0.05)
    check_feasible(state, y, cap, loss, 2, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_momentum_reaches_narrow_tolerances(fit_intercept):
    X, y, weight = overlapping()
    cap, rows = 1e3 * weight, KernelRows(X, "rbf", 0.5, dtype=np.float64)
    state = solve_kernel_dual(rows, y, cap, 4, "max", fit_intercept=fit_intercept, tol=1e-6, max_iter=100_000)
    P, D = primal_dual(gram(X, kernel="rbf", gamma=0.5), y, cap, state, "max", 1)
    assert state.gap <= 1e-6 and P - D <= 1.01e-6 * P
    check_feasible(state, y, cap, "max", 1, fit_intercept)


def test_momentum_leaves_duals_at_zero():
    """Means of points do not: without a step to the bounds there are a fifth more support vectors."""
    X, y, weight = overlapping()
    state = solve_kernel_dual(KernelRows(X, "rbf", 0.5, dtype=np.float64), y, 10 * weight, 4, "max", tol=1e-3)
    assert (state.alpha > 0).any(axis=1).sum() < 160


def test_gaps_too_small_for_a_row_each_do_not_stop_the_passes():
    """The working set has reached its target, most of the gap is elsewhere: rounds went by without a pass."""
    X, y = load_iris(return_X_y=True)
    y, ones, more = y.astype(np.int32), np.ones(150), 2850
    some = solve_kernel_dual(
        KernelRows(X, "rbf", 0.1, dtype=np.float64), y, ones, 3, "max", fit_intercept=False, tol=1e-2
    )
    rivals = np.where(np.arange(3)[:, None] == y, -np.inf, some.scores).max(axis=0)
    margin, gap = some.scores[y, np.arange(150)] - rivals, some.gap * some.objective
    i = int(np.abs(margin - 0.5).argmin())
    cap = np.r_[ones, np.full(more, 1.2 * gap / (1 - margin[i]) / more)]  # the same row again: 1.2 gaps in small pieces
    rows = KernelRows(np.r_[X, np.tile(X[i], (more, 1))], "rbf", 0.1, dtype=np.float64)
    start = KernelState(np.r_[some.alpha, np.zeros((more, 3))], np.zeros(3))
    tol, labels = 2 * gap / (some.objective + 1.2 * gap), np.r_[y, np.full(more, y[i])].astype(np.int32)
    found = solve_kernel_dual(rows, labels, cap, 3, "max", fit_intercept=False, tol=tol, max_iter=100, state=start)
    assert found.gap <= tol
    assert 0 < found.n_iter < 100
