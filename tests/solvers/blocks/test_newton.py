"""Smoothed Newton steps over blocks of rows, forced on problems small enough for other solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from skmargin.rows.blocks import ArrayRows
from skmargin.solvers.blocks.newton import BlockState, Refused, solve_blocks
from skmargin.solvers.blocks.passes import BlockProblem
from skmargin.solvers.dual.linear import solve_linear
from skmargin.solvers.tuning import DEFAULT


def data(n=4000, d=6, k=4, seed=0, far=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n).astype(np.int32)
    X = rng.normal(size=(n, d)) + far * rng.normal(size=(k, d))[y]
    return X, y, rng.uniform(0.2, 2.0, size=n)


def solve(X, y, weight, loss="max", C=1.0, k=4, top_k=1, intercept="free", tol=1e-3, n_jobs=1, force=True, **more):
    def solve_sample(sample, cap):
        found = solve_linear(sample.X, sample.y, cap, k, loss, top_k, fit_intercept=intercept == "free", tol=1e-2)
        return found.W, found.b

    problem = BlockProblem(k, loss, C, top_k, intercept=intercept)
    rows = ArrayRows(X, y, weight, k, n_jobs)
    return solve_blocks(rows, problem, solve_sample, tol=tol, force=force, **more)


def objective(state, X, y, cap, loss, top_k=1):
    F = X.astype(np.float64) @ state.W.T + state.b
    i = np.arange(len(y))
    U = 1 + F - F[i, y][:, None]
    U[i, y] = 0
    U = -np.sort(-np.maximum(U, 0), axis=1)
    size = {"max": 1, "sum": U.shape[1], "top": top_k}[loss]
    share = 1 if loss == "sum" else size
    return 0.5 * (state.W**2).sum() + cap @ U[:, :size].sum(axis=1) / share


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize(("loss", "top_k"), [("max", 1), ("sum", 3), ("top", 2)])
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_certified_and_as_good_as_the_solver_for_few_rows(loss, top_k, intercept, tol):
    X, y, weight = data()
    found = solve(X, y, weight, loss, top_k=top_k, intercept=intercept, tol=tol)
    assert isinstance(found, BlockState)
    P = objective(found, X, y, weight, loss, top_k)
    best = solve_linear(X, y, weight, 4, loss, top_k, fit_intercept=intercept == "free", tol=1e-9)
    assert found.objective == pytest.approx(P, rel=1e-12)
    assert 0 <= found.gap <= tol
    assert P * (1 - found.gap) <= best.objective * (1 + 1e-9)
    assert best.objective * (1 - 1e-9) <= P <= best.objective * (1 + tol)
    if intercept == "none":
        assert not found.b.any()


@pytest.mark.parametrize("C", [1e-3, 0.1, 100.0])
def test_every_strength_of_the_losses(C):
    X, y, weight = data(seed=1, far=0.7)
    found = solve(X, y, weight, C=C)
    best = solve_linear(X, y, C * weight, 4, "max", tol=1e-8)
    assert isinstance(found, BlockState)
    assert best.objective * (1 - 1e-8) <= found.objective <= best.objective * (1 + 1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_every_kind(dtype, form):
    X, y, weight = data(seed=2)
    X = (X * (np.random.default_rng(3).random(X.shape) < 0.6)).astype(dtype)
    found = solve(form(X), y, weight)
    assert isinstance(found, BlockState)
    P = objective(found, X, y, weight, "max")
    best = solve_linear(X, y, weight, 4, "max", tol=1e-8)
    assert found.objective == pytest.approx(P, rel=1e-12)
    assert P * (1 - found.gap) <= best.objective * (1 + 1e-8)


def test_rows_far_from_zero_and_features_of_unlike_size():
    X, y, weight = data(seed=4)
    X = ((X + 300) * np.logspace(-2, 2, X.shape[1])).astype(np.float32)
    found = solve(X, y, weight, tol=1e-4)
    assert isinstance(found, BlockState)
    best = solve_linear(X.astype(np.float64), y, weight, 4, "max", tol=1e-7)
    assert found.objective == pytest.approx(objective(found, X, y, weight, "max"), rel=1e-9)
    assert best.objective * (1 - 1e-7) <= found.objective <= best.objective * (1 + 1e-4)


def test_two_classes_a_rare_one_and_features_that_are_zero():
    X, y, weight = data(k=2, seed=5)
    found = solve(X, y, weight, k=2)
    best = solve_linear(X, y, weight, 2, "max", tol=1e-8)
    assert isinstance(found, BlockState)
    assert best.objective * (1 - 1e-8) <= found.objective <= best.objective * (1 + 1e-3)
    X, y, weight = data(seed=6)
    X[:, 2] = 0
    y[y == 3] = 0
    y[17] = 3  # occurs once
    found = solve(X, y, weight)
    best = solve_linear(X, y, weight, 4, "max", tol=1e-8)
    assert isinstance(found, BlockState)
    assert best.objective * (1 - 1e-8) <= found.objective <= best.objective * (1 + 1e-3)


def test_same_bits_for_every_number_of_threads_and_for_a_memory_map(tmp_path):
    X, y, weight = data(n=30_000, seed=7)
    X = X.astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    first = solve(X, y, weight)
    for rows, n_jobs in ((X, 2), (X, 8), (X, 64), (mapped, 2)):
        other = solve(rows, y, weight, n_jobs=n_jobs)
        assert np.array_equal(first.W, other.W)
        assert np.array_equal(first.b, other.b)
        assert first.gap == other.gap


def test_weights_are_exact():
    X, y, _ = data(n=3000, seed=8)
    weight = np.random.default_rng(0).integers(1, 4, size=len(y)).astype(float)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    one = solve(X, y, weight, tol=1e-5)
    other = solve(X[twice], y[twice], np.ones(len(twice)), tol=1e-5)
    assert one.objective == pytest.approx(other.objective, rel=2e-5)


def test_a_start_saves_the_sample():
    X, y, weight = data(seed=9)
    first = solve(X, y, weight)

    def never(sample, cap):
        raise AssertionError("the sample was solved")

    rows = ArrayRows(X, y, weight, 4)
    again = solve_blocks(rows, BlockProblem(4, "max", 1.2), never, start=(first.W, first.b), force=True)
    best = solve_linear(X, y, 1.2 * weight, 4, "max", tol=1e-8)
    assert isinstance(again, BlockState)
    assert best.objective * (1 - 1e-8) <= again.objective <= best.objective * (1 + 1e-3)


def test_rows_that_can_be_separated_are_refused():
    X, y, weight = data(n=30_000, seed=10, far=30.0)
    assert isinstance(solve(X, y, weight, force=False), Refused)


def test_what_is_not_certified_in_time_is_said():
    X, y, weight = data(seed=11)
    found = solve(X, y, weight, tol=1e-5, max_passes=1)
    assert isinstance(found, Refused)
    assert "not certified" in found.reason
    assert found.state is not None
    assert found.state.gap == 1.0


def test_a_small_sample_and_several_blocks(monkeypatch):
    monkeypatch.setattr("skmargin.rows.blocks.rows_in_block", lambda X: 3000)
    X, y, weight = data(n=20_000, seed=12)
    tuning = replace(DEFAULT.blocks, sample_rows=500, sample_rows_parameter=10, class_rows=50)
    found = solve(X, y, weight, tuning=tuning)
    best = solve_linear(X, y, weight, 4, "max", tol=1e-7)
    assert isinstance(found, BlockState)
    assert best.objective * (1 - 1e-7) <= found.objective <= best.objective * (1 + 1e-3)
