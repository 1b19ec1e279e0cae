"""Which gear solves a linear machine (solvers/dual_blocks.py), and in how many passes."""

import numpy as np
import pytest

from skmargin.solvers import dual_blocks
from skmargin.solvers.dual_blocks import solve_linear

RNG = np.random.default_rng(0)
CENTRES = RNG.integers(0, 2, (5, 40))
Y = RNG.integers(0, 5, 4000)
BITS = (CENTRES[Y] ^ (RNG.random((4000, 40)) < 0.05)).astype(float)  # separable, with a margin


@pytest.mark.parametrize("loss", ["max", "sum"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_many_rows_that_can_be_separated_need_no_newton_steps(loss, fit_intercept, noise, capsys, monkeypatch):
    y = np.where(RNG.random(4000) < noise, (Y + 1) % 5, Y).astype(np.int32)
    cap = np.full(4000, 100.0)
    found = solve_linear(BITS, y, cap, 5, loss, fit_intercept=fit_intercept, verbose=1)
    assert ("Newton" in capsys.readouterr().out) == (noise > 0)
    assert found.gap <= 1e-3
    monkeypatch.setattr(dual_blocks, "SEPARABLE", 1.0 if noise else -1.0)  # the other gear first
    other = solve_linear(BITS, y, cap, 5, loss, fit_intercept=fit_intercept, tol=1e-6)
    assert found.objective == pytest.approx(other.objective, rel=1.1e-3)
    assert found.objective >= other.objective * (1 - 1e-6)


def test_a_single_pass_is_a_single_pass():
    cap = np.full(4000, 100.0)
    assert solve_linear(BITS, Y.astype(np.int32), cap, 5, "max", max_iter=1).n_iter == 1


def test_the_direction_of_the_mean_takes_few_passes():
    """Rows far from the origin and close to each other, most duals at their bounds: its weight crept to where it is."""
    passes = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 5, 4000).astype(np.int32)
        X = 0.95 + 0.015 * (rng.standard_normal((4000, 50)) + 0.4 * rng.standard_normal((5, 50))[y])
        found = solve_linear(X, y, np.full(4000, 0.1), 5, "sum", fit_intercept=False)
        assert found.gap <= 1e-3
        passes += found.n_iter
    assert passes < 200


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("offset", [100, 300, 1000])
def test_the_objective_of_short_numbers_far_from_the_origin_is_that_of_long_ones(fit_intercept, offset):
    """Scores in float32 had lost a part of the objective that was larger than the gap."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 4000).astype(np.int32)
    X = (rng.standard_normal((4000, 100)) + 0.3 * rng.standard_normal((5, 100))[y] + offset).astype(np.float32)
    for cap in (0.001, 0.1):
        found = solve_linear(X, y, np.full(4000, cap), 5, "sum", fit_intercept=fit_intercept)
        F = X.astype(float) @ found.W.T + found.b
        hinges = np.maximum(0, 1 - F[np.arange(4000), y][:, None] + F).sum() - 4000
        assert found.objective == pytest.approx(0.5 * np.square(found.W).sum() + cap * hinges, rel=2e-5)


def test_a_start_near_the_optimum_is_no_reason_to_believe_float32():
    """Its certificate was taken for gaps that it cannot tell."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 4000).astype(np.int32)
    X = rng.standard_normal((4000, 100)) + 0.3 * rng.standard_normal((2, 100))[y] + 20
    cap = np.full(4000, 0.005)
    state = solve_linear(X, y, cap, 2, "sum", tol=1e-5)
    again = solve_linear(X, y, cap, 2, "sum", tol=1e-4, state=state)
    margins = (X @ (again.W[1] - again.W[0]) + again.b[1] - again.b[0]) * (2 * y - 1)
    primal = 0.5 * np.square(again.W).sum() + cap @ np.maximum(0, 1 - margins)
    assert again.gap <= 1e-4
    assert again.objective == pytest.approx(primal, rel=1e-9)


def test_newton_steps_leave_multipliers_of_the_centred_features():
    """The same problem again ends where it begins."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    y = (X @ rng.standard_normal((5, 3)) + 1.5 * rng.standard_normal((2000, 3))).argmax(axis=1).astype(np.int32)
    task = X + 50, y, np.full(2000, 100.0), 3, "max"
    state = solve_linear(*task, tol=1e-6)
    assert solve_linear(*task, tol=1e-5, state=state).n_iter == 0
