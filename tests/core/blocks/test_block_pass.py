"""Passes over blocks of rows against their definition in NumPy, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

from skmargin.rows.blocks import Block
from skmargin.solvers.blocks.passes import BlockProblem, Frame, SmoothPass

LOSSES = {
    "max": {"loss": "max"},
    "sum": {"loss": "sum"},
    "top": {"loss": "top", "top_k": 2},
    "odm": {"loss": "odm", "mu": 0.0, "theta": 0.2},
    "odm_both": {"loss": "odm", "mu": 0.6, "theta": 0.1},
}


def data(n=300, d=4, k=5, seed=0, spread=0.7):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.integers(k, size=n).astype(np.int32)
    return Block(X, y, rng.uniform(0.3, 2, size=n), 0), spread * rng.normal(size=(k, d + 1))


def run(problem, block, W, width, hessian=0.0, frame=None, **more):
    d = block.X.shape[1]
    frame = frame or Frame(np.zeros(d), np.zeros(d), reaches=False)
    task = SmoothPass(problem, frame, np.ascontiguousarray(W), width, hessian, **{"single": False, **more})
    sums = task.zero()
    task.add(sums, block)
    return sums


def hinges(problem, f, y):
    """The loss of one row, by its definition."""
    others = np.delete(f, y)
    if problem.loss == "odm":
        margin = f[y] - others.max()
        low, high = max(0, 1 - problem.theta - margin), max(0, margin - 1 - problem.theta)
        return low**2 + problem.mu * high**2
    u = np.sort(np.maximum(0, 1 - f[y] + others))[::-1]
    return {"max": u[0], "sum": u.sum(), "top": u[: problem.top_k].sum() / problem.top_k}[problem.loss]


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_the_definition(name):
    block, W = data()
    problem = BlockProblem(5, C=1.7, **LOSSES[name])
    F = block.X @ W[:, :-1].T + W[:, -1]
    expected = 1.7 * sum(s * hinges(problem, f, c) for f, c, s in zip(F, block.y, block.weight, strict=True))
    assert run(problem, block, W, 0.1).loss == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("width", [0.02, 0.5, 3.0])
def test_gradient_is_the_derivative_of_the_smoothed_losses(name, width):
    block, W = data(seed=1)
    problem = BlockProblem(5, **LOSSES[name])

    def smooth(flat):
        return run(problem, block, flat.reshape(W.shape), width).smooth

    found = -run(problem, block, W, width).gradient
    numeric = optimize.approx_fprime(W.ravel(), smooth, 1e-6).reshape(W.shape)
    assert np.allclose(found, numeric, atol=2e-3 * np.abs(found).max())
    assert np.allclose(found.sum(axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("name", ["max", "sum", "top"])
def test_laplacian_is_the_second_derivative(name):
    block, W = data(seed=2)
    k, D = W.shape
    problem = BlockProblem(k, **LOSSES[name])
    sums = run(problem, block, W, 0.3, 0.3)
    H = np.zeros((k, D, k, D))
    place = 0
    for m in range(k):
        for l in range(m):
            G = sums.laplacian[place] + np.triu(sums.laplacian[place], 1).T
            place += 1
            for a, b, sign in ((l, l, 1), (m, m, 1), (l, m, -1), (m, l, -1)):
                H[a, :, b, :] += sign * G
    direction = np.random.default_rng(3).normal(size=W.shape)
    eps = 1e-6  # few rows change their piece on so short a way
    there, back = (run(problem, block, W + s * eps * direction, 0.3).gradient for s in (1, -1))
    numeric = -(there - back) / (2 * eps)
    found = np.einsum("iajb,jb->ia", H, direction)
    assert np.allclose(found, numeric, atol=1e-3 * np.abs(found).max())


def test_curvature_of_squared_losses_is_positive_and_close():
    block, W = data(seed=4)
    problem = BlockProblem(5, loss="odm", mu=0.6, theta=0.1)
    sums = run(problem, block, W, 0.05, 0.05)
    for G in sums.laplacian:
        assert np.linalg.eigvalsh(G + np.triu(G, 1).T).min() >= -1e-9


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("width", [0.05, 0.8])
def test_residuals_make_the_gap_of_feasible_duals(name, width):
    """P - D without an intercept, with D from the duals of each row and their conjugates."""
    block, W = data(seed=5)
    k, W = len(W), W[:, :-1]
    problem = BlockProblem(k, intercept="none", **LOSSES[name])
    d = block.X.shape[1]
    task = SmoothPass(problem, Frame(np.zeros(d), np.zeros(d), reaches=False), np.ascontiguousarray(W), width,
                      single=False)  # fmt: skip
    sums = task.zero()
    task.add(sums, block)
    start, rivals, alpha = task.duals(block)
    dense = sparse.csr_array((alpha, rivals, start), shape=(len(block.y), k)).toarray()
    cap = block.weight
    c = -dense
    c[np.arange(len(c)), block.y] = dense.sum(axis=1)
    assert np.allclose(c.T @ block.X, sums.gradient)
    if problem.loss == "odm":  # minus the conjugate: (1 - theta) S - S^2/4 cap, and for the fixed rival likewise
        S, beta = np.maximum(dense, 0).sum(axis=1), np.maximum(-dense, 0).sum(axis=1)
        value = (1 - problem.theta) * S - S**2 / (4 * cap) - (1 + problem.theta) * beta
        if problem.mu:
            value -= beta**2 / (4 * problem.mu * cap)
    else:
        assert dense.min() >= 0
        limit = {"max": cap, "sum": cap, "top": cap / 2}[problem.loss]
        assert (dense <= limit[:, None] * (1 + 1e-12)).all()
        if problem.loss != "sum":
            assert (dense.sum(axis=1) <= cap * (1 + 1e-12)).all()
        value = dense.sum(axis=1)
    gap = 0.5 * (W**2).sum() + sums.loss - value.sum() + 0.5 * (sums.gradient**2).sum()
    assert sums.residual + 0.5 * ((W - sums.gradient) ** 2).sum() == pytest.approx(gap, rel=1e-10)
    assert sums.residual >= 0


@pytest.mark.parametrize("name", LOSSES)
def test_rows_of_every_kind_give_the_same_sums(name):
    block, W = data(n=2000, seed=6)
    rng = np.random.default_rng(0)
    X = np.where(rng.random(block.X.shape) < 0.5, block.X, 0).astype(np.float32)
    frame = Frame(rng.normal(size=4).astype(np.float32).astype(float), np.full(4, 0.6))
    problem = BlockProblem(5, **LOSSES[name])

    def sums(rows, **more):
        return run(problem, block._replace(X=rows), W, 0.2, 0.4, frame, **more)

    exact = sums(X.astype(np.float64))
    wide = sparse.csr_array(X.astype(np.float64))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for rows in (X, sparse.csr_array(X), wide):
        found = sums(rows)
        for one, other in zip((found.values, found.gradient, found.laplacian),
                              (exact.values, exact.gradient, exact.laplacian), strict=True):  # fmt: skip
            assert np.allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())
    quick = sums(X, single=True)
    assert np.allclose(quick.gradient, exact.gradient, atol=1e-4 * np.abs(exact.gradient).max())
    assert np.allclose(quick.laplacian, exact.laplacian, atol=1e-3 * np.abs(exact.laplacian).max())


def test_wide_rows_have_wide_bands():
    block, W = data(seed=7)
    scale = np.full(4, 1.0)
    problem = BlockProblem(5, "sum")
    far = np.maximum(1, np.linalg.norm(block.X, axis=1))
    one_by_one = [
        run(problem, block.cut(i, i + 1), W, 0.2 * r, 0.2 * r).values for i, r in enumerate(far)
    ]  # fmt: skip
    assert np.allclose(run(problem, block, W, 0.2, 0.2, Frame(np.zeros(4), scale)).values, np.sum(one_by_one, axis=0))


def test_sums_of_parts_are_those_of_the_whole():
    block, W = data(n=4000, seed=8)
    problem = BlockProblem(5, "max")
    whole = run(problem, block, W, 0.2)
    parts = [run(problem, block.cut(a, b), W, 0.2) for a, b in ((0, 1), (1, 1700), (1700, 4000))]
    assert whole.values[4] == 4000
    assert np.allclose(np.sum([p.values for p in parts], axis=0), whole.values)
    assert np.allclose(np.sum([p.gradient for p in parts], axis=0), whole.gradient)


def test_what_does_not_fit_is_refused():
    block, W = data()
    problem = BlockProblem(5, "max")
    with pytest.raises(ValueError, match="do not fit"):
        run(problem, block._replace(X=block.X[:, :3]), W, 0.1)
    with pytest.raises(ValueError, match="a class lies outside"):
        run(problem, block._replace(y=block.y + 1), W, 0.1)
    with pytest.raises(ValueError, match="positive"):
        run(problem, block, W, 0.0)
    with pytest.raises(ValueError, match="loss must be"):
        run(BlockProblem(5, "other"), block, W, 0.1)
