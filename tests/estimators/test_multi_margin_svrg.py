"""The paper's stochastic gradients with a constant step, against algorithm 1 written once more."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from skmargin import MultiMarginSVC


def subgradient(W, b, x, label, C):
    """Of the losses of one row, in W (k, d) and b (k,)."""
    f = W @ x + b
    p = C * (1 - f[label] + f > 0)
    p[label] = 0
    p[label] = -p.sum()
    return np.outer(p, x), p


def algorithm_1(W, b, X, y, C, step, picks):
    """One epoch; the function of a row is the penalty plus n times its losses."""
    n, k = len(y), len(b)
    snapshot = [subgradient(W, b, x, label, C) for x, label in zip(X, y, strict=True)]
    mean_W, mean_b = sum(g for g, _ in snapshot), sum(g for _, g in snapshot)
    for i in picks:
        now_W, now_b = subgradient(W, b, X[i], y[i], C)
        W, b = (
            W - step * ((k + 1) * W + n * (now_W - snapshot[i][0]) + mean_W),
            b - step * (b + n * (now_b - snapshot[i][1]) + mean_b),
        )
    return W, b


@pytest.mark.filterwarnings("ignore:MultiMarginSVC stopped")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_constant_step_is_algorithm_1(container):
    """Which rows it picks is not known, but of all ways to pick three rows, twice, one leads where it ends."""
    X, y, C, step = 3 * np.random.default_rng(0).normal(size=(3, 2)), np.arange(3), 2.0, 0.05
    model = MultiMarginSVC(C, solver="svrg", learning_rate=step, max_iter=2, random_state=1)
    model.fit(container(X), y)
    ends = []
    for first in product(range(3), repeat=3):
        start = algorithm_1(np.zeros((3, 2)), np.zeros(3), X, y, C, step, first)
        ends += [algorithm_1(*start, X, y, C, step, second) for second in product(range(3), repeat=3)]
    away = [np.abs(W - model.coef_).max() + np.abs(b - model.intercept_).max() for W, b in ends]
    assert min(away) < 1e-12
    assert max(away) > 1e-3


@pytest.mark.filterwarnings("ignore:MultiMarginSVC stopped")
def test_every_epoch_of_a_constant_step_counts():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    exact = MultiMarginSVC(C=0.1, tol=1e-7).fit(X, y)
    rising = MultiMarginSVC(C=0.1, solver="svrg", learning_rate=0.01, max_iter=30, random_state=0).fit(X, y)
    assert (np.diff(rising.trajectory_) > 0).any()
    assert rising.n_iter_ == 30
    assert 1 - exact.objective_ / rising.objective_ <= rising.dual_gap_ + 1e-6
    small = MultiMarginSVC(C=0.1, solver="svrg", learning_rate=1e-4, max_iter=100, random_state=0).fit(X, y)
    assert small.objective_ < 1.02 * exact.objective_
    assert small.objective_ == pytest.approx(small.trajectory_[-1], rel=1e-9)


def test_a_step_that_diverges_ends_and_says_so():
    X, y = load_iris(return_X_y=True)
    model = MultiMarginSVC(solver="svrg", learning_rate=100.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        model.fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.n_iter_ < 1000


@pytest.mark.parametrize("value", [0, -1.0, "constant"])
def test_the_step_is_checked(value):
    with pytest.raises(ValueError, match="'learning_rate' parameter of MultiMarginSVC"):
        MultiMarginSVC(solver="svrg", learning_rate=value).fit(np.eye(3), [0, 1, 2])
