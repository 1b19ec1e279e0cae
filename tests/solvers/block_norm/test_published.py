"""The published alternation of Lei et al.: against cvxpy where it is valid, and what it says of itself elsewhere."""

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

from skmargin import LpNormSVC
from skmargin._core import _ext
from skmargin.solvers.block_norm.margin_loss import MarginLoss
from skmargin.solvers.block_norm.published import PublishedProblem, next_weights

LOSSES = ("hinge", "squared_hinge", "log_loss")


def test_scikit_learn():
    inexact = "The rounds end at tol: weights and repetitions agree to that only, not to rounding."
    names = "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"
    check_estimator(LpNormSVC(solver="paper"), expected_failed_checks=dict.fromkeys(names, inexact), on_skip=None)


def toy(n=40, d=6, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)].astype(np.int32)
    return rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


@pytest.mark.parametrize("p", [1.05, 1.5, 1.9])
def test_the_weights_of_equation_14_are_the_best_ones(p):
    """Of all with ||beta||_{p/(2-p)} <= 1, by random trials, and equation 8 holds with equality."""
    rng = np.random.default_rng(0)
    lengths, exponent = rng.exponential(size=5), p / (2 - p)
    beta = next_weights(lengths, p)
    assert (beta**exponent).sum() == pytest.approx(1)
    least = (lengths**2 / beta).sum()
    assert least == pytest.approx((lengths**p).sum() ** (2 / p))
    np.testing.assert_allclose(beta, lengths ** (2 - p) * (lengths**p).sum() ** ((p - 2) / p))
    others = beta * np.exp(rng.normal(size=(1000, 5)) * rng.exponential(size=(1000, 1)))
    others /= (others**exponent).sum(axis=1, keepdims=True) ** (1 / exponent)
    assert ((lengths**2 / others).sum(axis=1) >= least * (1 - 1e-12)).all()


def weighted_optimum(X, y, cap, beta, loss, intercept):
    """Problem 14 in the primal, for cvxpy."""
    n, k = len(y), len(beta)
    W, b, worst = cp.Variable((X.shape[1], k)), cp.Variable(k), cp.Variable(n)
    f = cp.vec(X @ W + (np.ones((n, 1)) @ cp.reshape(b, (1, k), order="C") if intercept else 0), order="C")
    i, rival = np.nonzero(np.arange(k) != y[:, None])
    losses = {
        "hinge": lambda: 1 + worst,
        "squared_hinge": lambda: cp.square(1 + worst),
        "log_loss": lambda: cp.logistic(worst),
    }[loss]()
    constraints = [worst[i] >= f[i * k + rival] - f[i * k + y[i]], cp.sum(b) == 0]
    constraints += [worst >= -1] if loss != "log_loss" else []
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum(cp.square(W) @ (1 / beta)) + cap @ losses), constraints)
    return problem.solve(solver="CLARABEL", tol_gap_rel=1e-8, tol_gap_abs=1e-8, tol_feas=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_weighted_machine_is_that_of_cvxpy(loss, intercept):
    X, y = toy()
    rng = np.random.default_rng(1)
    cap, beta = rng.uniform(0.1, 2, len(y)), rng.exponential(size=4)
    best = weighted_optimum(X, y, cap, beta, loss, intercept)
    nothing = np.zeros(len(y) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    for rows in (_ext.Rows(X), _ext.KernelMatrix(X @ X.T)):
        mean = X.mean(axis=0) if isinstance(rows, _ext.Rows) else np.zeros(len(y))
        out = _ext.block_norm_ascent(
            rows, MarginLoss(loss).problem(y, cap, 4), _ext.Options(tol=1e-7, max_iter=50_000), q=2.0,
            class_weights=beta, b=np.zeros(4), duals=nothing, mean=mean, fit_intercept=intercept,
        )  # fmt: skip
        assert out.converged
        assert out.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.1, 1.5, 2.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_up_to_two_it_reaches_the_optimum(loss, p, intercept):
    """Which the other solver has certified; the objective falls in every round."""
    X, y = toy()
    settings = {"C": 0.3, "p": p, "loss": loss, "fit_intercept": intercept}
    best = LpNormSVC(tol=1e-8, **settings).fit(X, y).objective_
    for rows in (X, sparse.csr_array(X)):
        clf = LpNormSVC(solver="paper", tol=1e-5, random_state=0, **settings).fit(rows, y)
        assert 0 <= clf.dual_gap_ <= 1e-5
        assert best * (1 - 1e-8) <= clf.objective_ <= best * (1 + 1e-5)
        assert clf.outer_objectives_[-1] == pytest.approx(clf.objective_, rel=1e-9)
        assert (np.diff(clf.outer_objectives_) <= 1e-6 * best).all()
    K = X @ X.T
    kernel = LpNormSVC(solver="paper", tol=1e-5, kernel="precomputed", **settings).fit(K, y)
    assert kernel.dual_gap_ <= 1e-5
    assert kernel.objective_ == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("p", [1.2, 1.8])
def test_weights_of_classes_come_nearer_by_the_factor_two_less_p(p):
    """So that rounds to the same gap grow as 1 / log(1 / (2 - p))."""
    X, y = toy(200, 6, 5, seed=1)
    lengths = []
    for rounds in range(1, 6):
        problem = PublishedProblem(y, np.full(200, 0.05), 5, p, MarginLoss("log_loss"), tol=1e-9)
        lengths.append(np.log(next_weights(_lengths_after(X, problem, rounds), p)))
    steps = [np.linalg.norm(b - a) for a, b in pairwise(lengths)]
    for before, after in pairwise(steps):
        assert after / before == pytest.approx(2 - p, abs=0.2)


def _lengths_after(X, problem, rounds):
    """By rounds written out: the weighted machine of the core and equation 14."""
    n, k = len(problem.y), problem.n_classes
    beta = np.full(k, float(k) ** ((problem.p - 2) / problem.p))
    nothing = np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    for _ in range(rounds):
        out = _ext.block_norm_ascent(
            _ext.Rows(X), problem.loss.problem(problem.y, problem.cap, k), _ext.Options(tol=1e-9, max_iter=10_000),
            q=2.0, class_weights=beta, b=np.zeros(k), duals=nothing, mean=None, fit_intercept=False,
        )  # fmt: skip
        lengths = np.linalg.norm(out.W, axis=1)
        beta = lengths ** (2 - problem.p) * (lengths**problem.p).sum() ** ((problem.p - 2) / problem.p)
    return lengths


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_far_above_two_it_overshoots_and_says_so(kernel):
    """The gap that it publishes is that of problem 11, not that of its last weighted machine."""
    X, y = toy(60, 6, 5, seed=2)
    settings = {"C": 0.1, "p": 8.0, "kernel": kernel, "fit_intercept": False}
    best = LpNormSVC(tol=1e-6, **settings).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="LpNormSVC stopped"):
        clf = LpNormSVC(solver="paper", random_state=0, **settings).fit(X, y)
    assert clf.objective_ > 1.1 * best.objective_
    assert clf.objective_ * (1 - clf.dual_gap_) <= best.objective_ * (1 + 1e-6)
    assert clf.dual_gap_ > 0.05
    assert (np.diff(clf.outer_objectives_) > 0).any()


def test_objective_and_gap_are_those_of_published_numbers():
    X, y = toy(50, 5, 4, seed=3)
    clf = LpNormSVC(C=0.5, p=1.4, solver="paper", loss="squared_hinge").fit(X, y)
    F, own = X @ clf.coef_.T + clf.intercept_, (np.arange(50), y)
    rivals = np.where(np.eye(4, dtype=bool)[y], -np.inf, F).max(axis=1)
    losses = np.maximum(0, 1 - F[own] + rivals) ** 2
    penalty = 0.5 * (np.linalg.norm(clf.coef_, axis=1) ** 1.4).sum() ** (2 / 1.4)
    assert clf.objective_ == pytest.approx(penalty + 0.5 * losses.sum(), rel=1e-12)


def test_a_small_cache_gives_the_same_machine():
    X, y = toy(80, 5, 4, seed=4)
    settings = {"C": 0.5, "p": 1.5, "solver": "paper", "kernel": "rbf", "gamma": 0.2, "tol": 1e-5}
    whole = LpNormSVC(**settings).fit(X, y)
    part = LpNormSVC(cache_size=0.01, **settings).fit(X, y)
    assert part.dual_gap_ <= 1e-5
    assert part.objective_ == pytest.approx(whole.objective_, rel=2e-5)
    given = LpNormSVC(**settings | {"kernel": "precomputed"}).fit(rbf_kernel(X, gamma=0.2), y)
    assert given.objective_ == pytest.approx(whole.objective_, rel=2e-5)


def test_warm_start_and_rounds_of_another_solver():
    X, y = toy(100, 6, 4, seed=5)
    clf = LpNormSVC(C=0.5, p=1.5, solver="paper", warm_start=True, tol=1e-5, random_state=0).fit(X, y)
    passes, rounds = clf.n_iter_, len(clf.outer_objectives_)
    clf.set_params(C=0.4).fit(X, y)
    assert clf.n_iter_ < passes and clf.dual_gap_ <= 1e-5 and rounds > 1
    clf.set_params(solver="auto").fit(X, y)
    assert not hasattr(clf, "outer_objectives_") and clf.dual_gap_ <= 1e-5


def test_edges():
    X, y = toy(30, 3, 3)
    X = np.vstack([X, np.zeros(3), X[:2]])  # a zero row, duplicate rows
    names = np.array(["a", "b", "c"])[np.r_[y, 0, y[:2]]]
    for intercept in (False, True):
        clf = LpNormSVC(C=0.1, p=1.3, solver="paper", fit_intercept=intercept).fit(X, names)
        assert set(clf.predict(X)) <= set(names) and clf.dual_gap_ <= 1e-3
    nothing = LpNormSVC(p=1.3, solver="paper", fit_intercept=False).fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
    assert not nothing.coef_.any() and nothing.objective_ == pytest.approx(6)
    two = LpNormSVC(C=0.1, p=1.3, solver="paper").fit(X, names == "a")
    assert two.coef_.shape == (1, 3) and two.dual_gap_ <= 1e-3
