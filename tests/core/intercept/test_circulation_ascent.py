"""Certificates with a free intercept whose dual point moves W by much (_core/intercept/circulation_ascent.hpp)."""

import cvxpy as cp
import numpy as np
import pytest

from skmargin import CrammerSingerSVC, TopKSVC, WestonWatkinsSVC

MACHINES = {"max": CrammerSingerSVC, "sum": WestonWatkinsSVC, "top": TopKSVC}


def make(loss, **parameters):
    return MACHINES[loss](random_state=0, **parameters, **({"k": 2} if loss == "top" else {}))


def crowded(seed, n=1000, d=4):
    """Few features, many rows on a grid, classes of very different sizes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=n, p=[0.8, 0.13, 0.05, 0.02])
    X = rng.normal(size=(4, d))[y] + rng.normal(size=(n, d)) / 2
    X = np.round(4 * X) / 4
    return (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)), y


def optimum(X, y, cap, loss):
    """Of cvxpy."""
    k, own = 4, np.eye(4)[y]
    W, b = cp.Variable((k, X.shape[1])), cp.Variable(k)
    F = X @ W.T + np.ones((len(y), 1)) @ cp.reshape(b, (1, k), order="C")
    mine = cp.sum(cp.multiply(own, F), axis=1, keepdims=True)
    hinges = cp.multiply(1 - own, cp.pos(1 - mine @ np.ones((1, k)) + F))
    pairs = np.array([np.eye(k)[l] + np.eye(k)[m] for l in range(k) for m in range(l)]).T
    losses = {"max": cp.max(hinges, axis=1), "sum": cp.sum(hinges, axis=1), "top": cp.max(hinges @ pairs, axis=1) / 2}[
        loss
    ]
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + cap @ losses)).solve("CLARABEL")


@pytest.mark.parametrize("C", [0.03, 0.3])
@pytest.mark.parametrize("loss", MACHINES)
def test_bounds_are_below_the_optimum(loss, C):
    X, y = crowded(1, n=400)
    weight = np.random.default_rng(1).random(len(y)) * (np.arange(len(y)) % 7 > 0)
    best = optimum(X, y, C * weight, loss)
    for dtype in (np.float32, np.float64):  # the grid is exact in both, scaled to [0, 1] nearly
        for tol in (1e-2, 1e-3, 1e-5):
            machine = make(loss, C=C, tol=tol).fit(X.astype(dtype), y, sample_weight=weight)
            assert machine.dual_gap_ <= tol
            assert machine.objective_ * (1 - machine.dual_gap_) <= best * (1 + 1e-6)
            assert best * (1 - 1e-6) <= machine.objective_ <= best * (1 + 1.001 * tol + 1e-6)


@pytest.mark.perf
def test_few_certificates_fail():
    """Without the step these fits take 312 passes: certificates fail, and the intercepts have to settle first."""
    passes = 0
    for loss in MACHINES:
        machine = make(loss, C=0.1, tol=1e-3)
        passes += sum(machine.fit(*crowded(seed, d=8)).n_iter_ for seed in range(6))
    assert passes < 280
