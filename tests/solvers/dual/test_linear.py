"""Which method solves a linear machine (solvers/dual/linear.py), and in how many passes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from skmargin.rows.arrays import moments
from skmargin.solvers.dual.linear import solve_linear
from skmargin.solvers.dual.plan import plan_linear
from skmargin.solvers.dual.state import LinearProblem, best_of_both, cold_start, relative_gap
from skmargin.solvers.tuning import DEFAULT

RNG = np.random.default_rng(0)
CENTRES = RNG.integers(0, 2, (5, 40))
Y = RNG.integers(0, 5, 4000)
BITS = (CENTRES[Y] ^ (RNG.random((4000, 40)) < 0.05)).astype(float)  # separable, with a margin


@pytest.mark.parametrize("loss", ["max", "sum"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_many_rows_that_can_be_separated_need_no_newton_steps(loss, fit_intercept, noise, capsys):
    y = np.where(RNG.random(4000) < noise, (Y + 1) % 5, Y).astype(np.int32)
    cap = np.full(4000, 100.0)
    found = solve_linear(BITS, y, cap, 5, loss, fit_intercept=fit_intercept, verbose=1)
    assert ("Newton" in capsys.readouterr().out) == (noise > 0)
    assert found.gap <= 1e-3
    other_method = DEFAULT.changed(linear={"newton_steps": np.inf if noise else 0.0})
    other = solve_linear(BITS, y, cap, 5, loss, fit_intercept=fit_intercept, tol=1e-6, tuning=other_method)
    assert found.objective == pytest.approx(other.objective, rel=1.1e-3)
    assert found.objective >= other.objective * (1 - 1e-6)


def test_a_single_pass_is_a_single_pass():
    cap = np.full(4000, 100.0)
    assert solve_linear(BITS, Y.astype(np.int32), cap, 5, "max", max_iter=1).n_iter == 1


@pytest.mark.perf
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


def test_the_better_of_two_states_has_the_better_bound():
    nothing = cold_start((3, 2, 2), np.ones(3))
    old = replace(nothing, objective=10.0, gap=0.1, n_iter=4)  # bound 9
    for objective, gap, wanted in ((10.5, 0.08, (10.0, 0.034)), (9.8, 0.5, (9.8, 0.8 / 9.8)), (9.5, 0.01, (9.5, 0.01))):
        best = best_of_both(old, replace(nothing, objective=objective, gap=gap, n_iter=7))
        assert (best.objective, best.gap) == pytest.approx(wanted) and best.n_iter == 7


def test_relative_gaps_lie_between_zero_and_one():
    given = [(2.0, 0.5), (2.0, -1e-9), (2.0, 5.0), (0.0, 0.0), (2.0, np.inf), (np.inf, np.nan)]
    assert [relative_gap(*pair) for pair in given] == [0.25, 0.0, 1.0, 0.0, 1.0, 1.0]


def test_moments_of_sparse_rows():
    X = RNG.normal(size=(40, 30)) * (RNG.random((40, 30)) < 0.2)
    for rows in (X, sparse.csr_array(X), sparse.csr_array(X.astype(np.float32))):
        mean, square = moments(rows)
        np.testing.assert_allclose(mean, X.mean(axis=0), atol=1e-7)
        assert square == pytest.approx(np.square(X).sum(axis=1).mean())


@pytest.mark.parametrize("factor", [0.01, 0.5, 3.0, 1e4])
@pytest.mark.parametrize("loss", ["max", "sum"])
def test_duals_for_other_weights_keep_their_bounds(factor, loss):
    rng = np.random.default_rng(0)
    cap = rng.uniform(0.1, 1, 200)
    state = solve_linear(BITS[:200], Y[:200].astype(np.int32), cap, 5, loss, fit_intercept=False)
    other = cap * factor * rng.uniform(0.9, 1.1, 200)
    rescaled = state.rescaled(other)
    of_row = np.add.reduceat if loss == "max" else np.maximum.reduceat
    rows = np.flatnonzero(np.diff(rescaled.duals.start))
    used = of_row(rescaled.duals.alpha, rescaled.duals.start[rows])
    assert (rescaled.duals.alpha >= 0).all() and (used <= other[rows] * (1 + 1e-9)).all()
    if factor < 1:
        np.testing.assert_allclose(used, of_row(state.duals.alpha, state.duals.start[rows]) * (other / cap)[rows])
    np.testing.assert_array_equal(rescaled.cap, other)


def test_newton_steps_leave_multipliers_of_the_centred_features():
    """The same problem again ends where it begins."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    y = (X @ rng.standard_normal((5, 3)) + 1.5 * rng.standard_normal((2000, 3))).argmax(axis=1).astype(np.int32)
    task = X + 50, y, np.full(2000, 100.0), 3, "max"
    few = DEFAULT.changed(blocks={"rows_per_parameter": 10**6})  # no method for many rows
    state = solve_linear(*task, tol=1e-6, tuning=few)
    assert solve_linear(*task, tol=1e-5, state=state, tuning=few).n_iter == 0


@pytest.mark.parametrize(("C", "tried"), [(0.01, True), (1.0, False)])
def test_first_intercepts_come_from_some_rows_only_where_the_losses_are_weak(C, tried):
    """Where W grows it moves the intercepts again: finding them first was up to four tenths of the fit."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=3000, p=[0.8, 0.15, 0.05]).astype(np.int32)
    X, cap = rng.normal(size=(3, 4))[y] + rng.normal(size=(3000, 4)), np.full(3000, C)
    problem, other_way = LinearProblem(X, y, cap, 3, "max"), {"faint_strength": 0.0 if tried else np.inf}
    assert (plan_linear(problem, 1e-3, 1000).sample_step > 1) == tried
    tuning = DEFAULT.changed(linear=other_way)
    assert (plan_linear(problem, 1e-3, 1000, tuning).sample_step > 1) != tried
    found = solve_linear(X, y, cap, 3, "max")
    other = solve_linear(X, y, cap, 3, "max", tol=1e-6, tuning=tuning)
    assert other.objective * (1 - 1e-6) <= found.objective <= other.objective * (1 + 1.1e-3)
