"""M3SVC for the minimum margin itself and for the log-sum-exp of equation 15a, against cvxpy and the definitions."""

from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from skmargin import M3SVC
from skmargin.losses import LogLoss, SmoothedSumHinge
from skmargin.regularizers import PairwiseMaximum
from skmargin.solvers.primal.driver import minimise
from skmargin.solvers.primal.objective import PrimalObjective
from skmargin.solvers.tuning import DEFAULT

KINDS = [("power", np.inf), ("log_sum_exp", 0.1), ("log_sum_exp", 2.0)]


def rows(n=40, d=3, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return 1.5 * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y.astype(np.int32)


def distances(W):
    """Of the columns of W, all pairs."""
    return cp.hstack([cp.norm(W[:, j] - W[:, l]) for j, l in combinations(range(W.shape[1]), 2)])


def of_distances(D, penalty, p):
    if penalty == "power":
        return cp.max(D)
    return p * (cp.log_sum_exp(D / p) - np.log(D.shape[0]))


def optimum(X, y, alpha, penalty, p, loss, intercept=True, eps=0.0):
    n, k = len(y), y.max() + 1
    W, b, E = cp.Variable((X.shape[1], k)), cp.Variable((1, k)), np.eye(k)[y]
    F = X @ W + np.ones((n, 1)) @ b
    own = cp.sum(cp.multiply(F, E), axis=1, keepdims=True)
    if loss == "hinge":
        data = cp.sum(cp.multiply(cp.pos(1 - own @ np.ones((1, k)) + F), 1 - E))
    else:
        data = cp.sum(cp.log_sum_exp(F, axis=1)) - cp.sum(own)
    ridge = eps * (cp.sum_squares(W) + cp.sum_squares(b))
    problem = cp.Problem(
        cp.Minimize(data + alpha * of_distances(distances(W), penalty, p) + ridge), [] if intercept else [b == 0]
    )
    return problem.solve(solver="CLARABEL")


@pytest.mark.parametrize(("penalty", "p"), KINDS)
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("alpha", [0.1, 3.0, 30.0])
def test_the_optimum_is_that_of_cvxpy(penalty, p, loss, alpha):
    X, y = rows()
    best = optimum(X, y, alpha, penalty, p, loss)
    for solver, container in (("auto", np.asarray), ("lbfgs", sparse.csr_array)):
        model = M3SVC(alpha, p=p, penalty=penalty, loss=loss, delta=0, tol=2e-4, solver=solver).fit(container(X), y)
        assert model.dual_gap_ <= 2e-4
        assert best * (1 - 1e-5) <= model.objective_ <= best * (1 + 2.1e-4)
        D = [np.linalg.norm(a - b) for a, b in combinations(model.coef_, 2)]
        F, each = model.decision_function(X), np.arange(len(y))
        data = (np.maximum(0, 1 - F[each, y][:, None] + F).sum() - len(y)) if loss == "hinge" else 0
        if loss == "log_loss":
            data = (np.logaddexp.reduce(F, axis=1) - F[each, y]).sum()
        assert model.objective_ == pytest.approx(data + alpha * of_distances(np.array(D), penalty, p).value, rel=1e-9)


@pytest.mark.parametrize(("intercept", "eps"), [(False, 0.0), (True, 0.1)])
def test_without_intercept_and_with_ridge(intercept, eps):
    X, y = rows(seed=1)
    best = optimum(X, y, 1.0, "power", np.inf, "hinge", intercept, eps)
    model = M3SVC(1.0, p="inf", delta=0, fit_intercept=intercept, eps=eps, tol=2e-4).fit(X, y)
    assert best * (1 - 1e-5) <= model.objective_ <= best * (1 + 2.1e-4)


def test_kernels():
    X, y = rows()
    K = rbf_kernel(X, gamma=0.3)
    best = optimum(np.linalg.cholesky(K + 1e-12 * np.eye(len(K))), y, 2.0, "power", np.inf, "hinge")
    model = M3SVC(2.0, p=np.inf, delta=0, kernel="rbf", gamma=0.3, tol=2e-4).fit(X, y)
    assert best * (1 - 1e-5) <= model.objective_ <= best * (1 + 2.1e-4)


@pytest.mark.parametrize(("penalty", "p"), KINDS)
def test_weights_are_repetitions(penalty, p):
    X, y = rows()
    times = np.r_[1, 1, 1, np.random.default_rng(0).integers(0, 3, len(y) - 3)]
    model = M3SVC(0.5, p=p, penalty=penalty, tol=1e-6)
    weighted = model.fit(X, y, sample_weight=times).objective_
    assert weighted == pytest.approx(model.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).objective_, rel=2e-6)


def test_limits():
    """Two classes have one distance; a small p is the maximum, a large one the mean."""
    X, y = rows()
    two = y < 2
    largest, first = (M3SVC(0.7, p=p, tol=1e-5).fit(X[two], y[two]).objective_ for p in (np.inf, 1))
    assert largest == pytest.approx(first, rel=2e-5)
    top = M3SVC(2.0, p=np.inf, tol=1e-5).fit(X, y).objective_
    assert M3SVC(2.0, p=1e-4, penalty="log_sum_exp", tol=1e-5).fit(X, y).objective_ == pytest.approx(top, rel=1e-3)
    mean = M3SVC(2.0 / 3, p=1, tol=1e-5).fit(X, y).objective_
    assert M3SVC(2.0, p=1e5, penalty="log_sum_exp", tol=1e-5).fit(X, y).objective_ == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize(("penalty", "p"), [*KINDS, ("power", 4.0)])
@pytest.mark.parametrize("solver", ["auto", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("power", [-30, 20])
def test_the_unit_of_the_rows_does_not_matter(penalty, p, solver, power):
    """``alpha D^p`` for rows c times as long, with distances c times as small, is ``alpha c^p`` times as strong."""
    X, y = rows(n=60, d=4)
    c, log = 2.0**power, penalty == "log_sum_exp"
    strength = c if log or np.isinf(p) else c**p
    here = M3SVC(0.5, p=p, penalty=penalty, solver=solver).fit(X, y)
    there = M3SVC(0.5 * strength, p=p / c if log else p, penalty=penalty, solver=solver).fit(c * X, y)
    assert there.n_iter_ == here.n_iter_
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    np.testing.assert_allclose(c * there.coef_, here.coef_, rtol=1e-6, atol=1e-8)


def test_single_precision_ends_where_it_cannot_certify():
    """Beside a large loss and a weak penalty: the dual point needs slopes that are exact in units of ``alpha``."""
    X, y = rows(n=200, d=4, k=6)
    best = optimum(X, y, 1e-5, "power", np.inf, "hinge")
    model = M3SVC(1e-5, p=np.inf, delta=0)
    model._tuning = DEFAULT.changed(common={"pass_work": 1}, primal={"explicit_work": 0})
    model.fit(X, y)
    assert model.dual_gap_ <= 1e-3
    assert best * (1 - 1e-5) <= model.objective_ <= best * 1.0011


def test_it_has_the_largest_minimum_margin():
    """Of the machines that separate these rows, that with p = infinity, beyond those with other powers."""
    X, y = rows(k=4, seed=5)
    X = X + 8 * np.eye(4)[y][:, :3]  # the fourth class between the others: separable, and not alike

    def smallest(p):
        W = M3SVC(1e-4, p=p, delta=0, tol=1e-4).fit(X, y).coef_
        return min(2 / np.linalg.norm(a - b) for a, b in combinations(W, 2))

    assert smallest(np.inf) >= 0.999 * max(smallest(2), smallest(4), smallest(8))
    assert smallest(np.inf) > 1.01 * smallest(2)


@pytest.mark.parametrize(("width", "tau"), [(0.3, 0.05), (2.0, 0.3)])
def test_derivatives_are_those_of_the_values(width, tau):
    rng = np.random.default_rng(0)
    penalty, W, V = PairwiseMaximum(0.7, width, tau), rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    D = np.array([np.sqrt(np.square(a - b).sum() + tau**2) - tau for a, b in combinations(W.T, 2)])
    value, gradient = penalty.value_gradient(W)
    assert value == pytest.approx(0.7 * width * np.log(np.mean(np.exp(D / width))), rel=1e-12)
    assert penalty.value_of_gram(W.T @ W) == pytest.approx(value, rel=1e-12)
    units = 1e-5 * np.eye(W.size).reshape(-1, *W.shape)
    slopes = np.array([(penalty.value(W + e) - penalty.value(W - e)) / 2e-5 for e in units])
    np.testing.assert_allclose(gradient.ravel(), slopes, atol=1e-8)
    bends = np.array([(penalty.value_gradient(W + e)[1] - penalty.value_gradient(W - e)[1]) / 2e-5 for e in units])
    H = bends.reshape(W.size, W.size)
    np.testing.assert_allclose(penalty.explicit_hessian(W), H, atol=1e-6)
    np.testing.assert_allclose(penalty.hessian(W)(V).ravel(), H @ V.ravel(), atol=1e-6)
    assert np.linalg.eigvalsh(penalty.class_metric(W))[1] > 0


@pytest.mark.parametrize("width", [0.0, 0.2, 3.0])
@pytest.mark.parametrize("size", [0.2, 0.6, 3.0])
def test_the_conjugate_is_that_of_cvxpy(width, size):
    """Of the function of the distances, which are not negative."""
    parts = size * np.array([0.7, 0.1, 0.0, 0.15, 0.05])
    factor, bound = PairwiseMaximum(0.8, width).conjugate(parts)
    assert factor == pytest.approx(min(1.0, 0.8 / size))
    D = cp.Variable(5, nonneg=True)
    value = of_distances(D, "log_sum_exp", width) if width else cp.max(D)
    problem = cp.Problem(cp.Maximize((0.999999 * factor * parts) @ D - 0.8 * value))  # on the edge it is hard to reach
    assert bound == pytest.approx(problem.solve(solver="CLARABEL"), abs=1e-4)


@pytest.mark.parametrize("width", [0.0, 0.3])
@pytest.mark.parametrize("delta", [None, 0.0])
def test_no_bound_exceeds_the_minimum(width, delta):
    X, y = rows(n=20)
    loss = LogLoss() if delta is None else SmoothedSumHinge(delta)
    target = PrimalObjective(X + 1, y, np.ones(20), 3, loss, PairwiseMaximum(0.5, width))
    best = minimise(target, tol=1e-5)
    rng = np.random.default_rng(0)
    stage = target.with_pieces(loss.smoothed(0.3), target.penalty.smoothed(1e-3))
    for size in (0.0, 0.01, 0.3, 1.0, 10.0):
        theta = best.theta * (size < 1) + size * rng.normal(size=target.shape)
        certificate = stage.certificate(stage.point(theta), target)
        assert certificate.primal >= best.certificate.primal * (1 - 1e-5)
        assert certificate.dual <= best.certificate.primal * (1 + 1e-9)


def test_parameters_are_checked():
    X, y = rows()
    for settings, text in (
        ({"p": 0.5}, "penalty='power' needs p of at least 1"),
        ({"p": np.inf, "penalty": "log_sum_exp"}, "needs a finite p"),
        ({"p": 0, "penalty": "log_sum_exp"}, "'p' parameter of M3SVC"),
        ({"p": "four"}, "'p' parameter of M3SVC"),
        ({"penalty": "max"}, "'penalty' parameter of M3SVC"),
    ):
        with pytest.raises(ValueError, match=text):
            M3SVC(**settings).fit(X, y)
