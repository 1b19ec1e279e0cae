"""Certificates with a free intercept whose dual point moves W by much (_core/balanced_step.hpp)."""

import numpy as np
import pytest

from skmargin import CrammerSingerSVC, TopKSVC, WestonWatkinsSVC

MACHINES = {
    "max": CrammerSingerSVC(),
    "sum": WestonWatkinsSVC(),
    "top": TopKSVC(k=2),
}


def crowded(seed, n=1000, d=4):
    """Few features, many rows on a grid, classes of very different sizes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=n, p=[0.8, 0.13, 0.05, 0.02])
    X = rng.normal(size=(4, d))[y] + rng.normal(size=(n, d)) / 2
    X = np.round(4 * X) / 4
    return (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)), y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", MACHINES)
def test_bounds_are_below_the_optimum(loss, dtype):
    machine = MACHINES[loss]
    for seed, C in enumerate([0.01, 0.1, 1.0]):
        X, y = crowded(seed)
        X = X.astype(dtype)
        weight = np.random.default_rng(seed).random(len(y)) * (np.arange(len(y)) % 7 > 0)
        machine.set_params(C=C, random_state=0)
        best = machine.set_params(tol=1e-8, max_iter=100_000).fit(X, y, sample_weight=weight).objective_
        for tol in (1e-2, 1e-3, 1e-5):
            machine.set_params(tol=tol).fit(X, y, sample_weight=weight)
            assert machine.dual_gap_ <= tol
            assert machine.objective_ * (1 - machine.dual_gap_) <= best * (1 + 1e-6)
            assert best * (1 - 1e-8) <= machine.objective_ <= best * (1 + 1.001 * tol)


def test_few_certificates_fail():
    """Without the step these fits take 312 passes: certificates fail, and the intercepts have to settle first."""
    passes = 0
    for machine in MACHINES.values():
        machine.set_params(C=0.1, tol=1e-3, random_state=0)
        passes += sum(machine.fit(*crowded(seed, d=8)).n_iter_ for seed in range(6))
    assert passes < 280
