"""The Newton method: optima of independent solvers, certificates, warm starts, weights, bad input."""

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import minmax_scale
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skmargin._core import _ext

LOSSES = [("max", 1), ("sum", 1), ("top", 2)]


def newton(
    X: np.ndarray, y: np.ndarray, cap: Any, loss: str = "max", K: int = 1, tol: float = 1e-8, max_iter: int = 500,
    fit_intercept: bool = False, duals: Any = None, b: Any = None, seed: int = 0,
) -> Any:  # fmt: skip
    X = np.ascontiguousarray(X, dtype=np.float64)
    cap = np.ascontiguousarray(np.broadcast_to(np.asarray(cap, dtype=np.float64), y.shape))
    problem = _ext.Problem(y.astype(np.int32), cap, int(y.max()) + 1, loss, top_k=K)
    options = _ext.Options(tol=tol, max_iter=max_iter, seed=seed)
    with threadpool_limits(1):
        return _ext.newton(X, problem, options, b=b, duals=duals, fit_intercept=fit_intercept)


def hinges(X: np.ndarray, y: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    F = X @ W.T + b
    H = 1 - F[np.arange(len(y)), y][:, None] + F
    H[np.arange(len(y)), y] = 0
    return np.maximum(H, 0)


def primal(X: np.ndarray, y: np.ndarray, cap: Any, loss: str, K: int, W: np.ndarray, b: np.ndarray) -> float:
    H = np.sort(hinges(X, y, W, b), axis=1)[:, ::-1]
    value = H.sum(axis=1) if loss == "sum" else H[:, :K].sum(axis=1) / K
    return float(0.5 * np.sum(W**2) + np.sum(cap * value))


def optimum(X: np.ndarray, y: np.ndarray, cap: np.ndarray, loss: str, K: int, intercept: bool) -> float:
    n, d = X.shape
    k = int(y.max()) + 1
    Y = np.eye(k)[y]
    W, b = cp.Variable((d, k)), cp.Variable((1, k))
    F = X @ W + np.ones((n, 1)) @ b
    own = cp.sum(cp.multiply(Y, F), axis=1, keepdims=True) @ np.ones((1, k))
    H = cp.pos(1 - Y - own + F)
    if loss == "top":
        risk = sum(cap[i] / K * cp.sum_largest(H[i], K) for i in range(n))
    else:
        risk = cap @ (cp.max(H, axis=1) if loss == "max" else cp.sum(H, axis=1))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + risk), [] if intercept else [b == 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return float(problem.value)


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 9))
    n, d = int(rng.integers(k + 2, 50)), int(rng.integers(1, 6))
    y = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 2) + rng.normal(size=d)
    X[rng.integers(n)] = 0  # a zero row
    X[-1] = X[-2]  # and a repeated one
    return X, y, 10.0 ** rng.integers(-2, 4) * rng.uniform(0.1, 3, size=n)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "K"), LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_optimum_and_certificate(seed: int, loss: str, K: int, intercept: bool) -> None:
    X, y, cap = random_problem(seed)
    fit = newton(X, y, cap, loss, K, fit_intercept=intercept)
    assert fit.converged
    assert fit.objective == pytest.approx(primal(X, y, cap, loss, K, fit.W, fit.b), rel=1e-9)
    assert fit.objective == pytest.approx(optimum(X, y, cap, loss, K, intercept), rel=1e-6)
    assert -1e-12 <= fit.gap / fit.objective <= 1e-8
    assert fit.b.any() == intercept
    assert abs(fit.b.sum()) <= 1e-9 * (1 + np.abs(fit.b).max())


@pytest.mark.parametrize(("loss", "K"), LOSSES)
def test_duals_are_feasible_and_prove_the_gap(loss: str, K: int) -> None:
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    cap = np.linspace(0.5, 20, len(y))
    fit = newton(X, y, cap, loss, K, tol=1e-4)
    indptr, rivals, alpha = fit.duals
    rows = np.repeat(np.arange(len(y)), np.diff(indptr))
    a = np.zeros((len(y), 3))
    a[rows, rivals] = alpha
    assert np.all(a >= 0) and not a[np.arange(len(y)), y].any()
    assert np.all(a <= (cap if loss != "top" else cap / K)[:, None] * (1 + 1e-12))
    if loss != "sum":
        assert np.all(a.sum(axis=1) <= cap * (1 + 1e-12))
    c = -a
    c[np.arange(len(y)), y] = a.sum(axis=1)
    dual = a.sum() - 0.5 * np.sum((c.T @ X) ** 2)
    assert fit.objective - dual == pytest.approx(fit.gap, rel=1e-6)


@pytest.mark.parametrize("C", [0.01, 1, 100])
def test_liblinear(C: float) -> None:
    X, y = load_iris(return_X_y=True)
    X = minmax_scale(X)
    rival = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-8, max_iter=10**6).fit(X, y)
    theirs = primal(X, y, C, "max", 1, rival.coef_, np.zeros(3))
    fit = newton(X, y, C)
    assert fit.objective <= theirs * (1 + 1e-8)
    assert fit.objective == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("intercept", [False, True])
def test_two_classes_match_the_binary_machine(intercept: bool) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:] - 1
    W, b = cp.Variable(4), cp.Variable()
    margin = cp.multiply(2 * y - 1, X @ W + b)
    problem = cp.Problem(
        cp.Minimize(0.25 * cp.sum_squares(W) + 3 * cp.sum(cp.pos(1 - margin))), [] if intercept else [b == 0]
    )
    problem.solve(solver=cp.CLARABEL)
    fit = newton(X, y, 3, fit_intercept=intercept)
    assert fit.objective == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(fit.W[0], -fit.W[1], atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "K"), LOSSES)
def test_weight_two_is_a_repeated_row(loss: str, K: int, intercept: bool) -> None:
    X, y = load_iris(return_X_y=True)
    twice = np.arange(len(y)) % 3 == 0
    weighted = newton(X, y, 2.0 * (1 + twice), loss, K, fit_intercept=intercept)
    repeated = newton(np.r_[X, X[twice]], np.r_[y, y[twice]], 2.0, loss, K, fit_intercept=intercept)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)
    np.testing.assert_allclose(weighted.W, repeated.W, atol=2e-3 * np.abs(repeated.W).max())


def test_shift_of_the_features_changes_nothing_with_an_intercept() -> None:
    X, y = load_iris(return_X_y=True)
    near, far = (newton(X + shift, y, 10, fit_intercept=True) for shift in (0, 100))
    assert near.objective == pytest.approx(far.objective, rel=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
def test_warm_start(intercept: bool) -> None:
    X, y = load_digits(return_X_y=True)
    X, y = minmax_scale(X)[:600, ::2], y[:600]
    rough = newton(X, y, 5, tol=1e-3, fit_intercept=intercept)
    warm = newton(X, y, 5, tol=1e-6, duals=rough.duals, b=rough.b, fit_intercept=intercept)
    cold = newton(X, y, 5, tol=1e-6, fit_intercept=intercept)
    assert warm.converged and warm.objective == pytest.approx(cold.objective, rel=1e-6)
    assert warm.n_iter < cold.n_iter


def test_bad_start_is_survived() -> None:
    X, y = load_wine(return_X_y=True)
    X = minmax_scale(X)
    duals = (np.arange(len(y) + 1), ((y + 1) % 3).astype(np.int32), np.linspace(0, 1000, len(y)))
    assert newton(X, y, 1000, duals=duals).objective == pytest.approx(newton(X, y, 1000).objective, rel=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("loss", "K"), LOSSES)
def test_step_limit_returns_an_honest_gap(loss: str, K: int, intercept: bool) -> None:
    for seed in range(12):
        X, y, cap = random_problem(seed)
        best = newton(X, y, cap, loss, K, fit_intercept=intercept).objective
        nothing = cap.sum() * (y.max() if loss == "sum" else 1)  # at W = 0
        for steps in (1, 2, 4, 8, 16):
            short = newton(X, y, cap, loss, K, fit_intercept=intercept, max_iter=steps)
            value = primal(X, y, cap, loss, K, short.W, short.b)
            assert short.objective == pytest.approx(value, rel=1e-9)
            assert short.converged == (short.gap <= 1e-8 * short.objective)
            assert short.objective - short.gap <= best * (1 + 1e-9)
            assert best * (1 - 1e-8) <= short.objective <= nothing * (1 + 1e-8)


def test_same_seed_same_bits() -> None:
    X, y = load_iris(return_X_y=True)
    X.flags.writeable = False
    np.testing.assert_array_equal(newton(X, y, 10).W, newton(X, y, 10).W)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "other"}, "loss must be"),
        ({"loss": "top", "top_k": 0}, "top_k must be"),
        ({"y": np.array([0, 1], dtype=np.int32)}, "one cap is needed for each label"),
        ({"y": np.array([0, 1], dtype=np.int32), "cap": np.ones(2)}, "one label is needed for each row"),
        ({"y": np.array([0, 1, 7], dtype=np.int32)}, "outside"),
        ({"cap": np.array([1.0, 0.0, 1.0])}, "positive"),
        ({"b": np.zeros(3)}, "one intercept is needed"),
        ({"duals": (np.array([0, 1]), np.array([1], dtype=np.int32), np.ones(1))}, "starts"),
        ({"duals": (np.array([0, 1, 1, 1]), np.array([5], dtype=np.int32), np.ones(1))}, "rival"),
        ({"loss": "odm", "mu": 0.5}, "one rival is needed"),
        ({"loss": "odm", "mu": 0.5, "fixed_rivals": np.array([1, 1, 0], dtype=np.int32)}, "another class"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    problem = {"y": np.array([0, 1, 1], dtype=np.int32), "cap": np.ones(3), "n_classes": 2, "loss": "max"}
    point = {"b": None, "duals": None, "fit_intercept": False}
    problem |= {name: value for name, value in change.items() if name not in point}
    point |= {name: value for name, value in change.items() if name in point}
    with pytest.raises(ValueError, match=message):
        _ext.newton(np.eye(3), _ext.Problem(**problem), _ext.Options(tol=1e-3, max_iter=10), **point)


def test_a_matrix_that_is_factored_in_strips():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 700)), np.arange(60) % 4
    out = newton(X, y, 1e-3)
    assert out.converged and out.n_iter < 8  # with a wrong factor it takes more
    assert primal(X, y, 1e-3, "max", 1, out.W, out.b) == pytest.approx(out.objective, rel=1e-12)
