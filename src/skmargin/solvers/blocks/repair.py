"""The certificate of a point: duals of all rows that satisfy every constraint, and the gap to them.

Duals are a function of the point and the width, so only the constraint of the free intercept, sum_i c_i = 0, is
missing.  The duals of a sample of the rows are taken at intercepts b + delta instead, with the k numbers delta found by
Newton steps so that the sum over all rows is zero.  With the residuals r_i of the duals at the scores of the point

    P - D = sum_i r_i + 1/2 ||W - W(a)||^2,

in which only the terms of the sample change: nothing is a difference of large numbers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skmargin.rows.blocks import Block
from skmargin.rows.moments import Sample

from .passes import BlockProblem, Frame, PassSums, SmoothPass

NEWTON_STEPS = 60  # far more than it takes: k unknowns, a piecewise quadratic function
CHUNK = 4096  # rows that are scored together
ROUNDING = 1e-13  # of the caps of a class, at which the sum of its coefficients counts as zero
REPAIRED = 1e-11  # the same at the end


def certified_gap(task: SmoothPass, sums: PassSums, sample: Sample) -> float:
    """P - D at the point of a pass over all rows; infinite where the sample cannot balance the duals."""
    problem = task.problem
    penalized = task.W if problem.intercept != "free" else task.W[:, :-1]
    if problem.intercept != "free":
        return sums.residual + 0.5 * float(np.square(task.W - sums.gradient).sum())
    block = Block(sample.X, sample.y, sample.weight, 0)
    exact = task.at(single=False, hessian=0.0, share=1.0)
    here = exact.zero()
    exact.add(here, block)
    caps = problem.C * sample.total
    delta = balancing(exact, block, sums.gradient[:, -1] - here.gradient[:, -1], caps)
    if delta is None:
        return np.inf
    W = task.W.copy()
    W[:, -1] += delta
    moved_task = exact.at(W=W)
    moved = moved_task.zero()
    moved_task.add(moved, block)
    # Duals at b + delta, seen at the scores of b: their value is affine in the scores, with slope -c.
    value = moved.loss - moved.residual + float(moved.gradient[:, -1] @ delta)
    gradient = sums.gradient - here.gradient + moved.gradient
    gradient -= gradient.mean(axis=0)  # each c_i sums to zero, but for the rounding of float32
    if (np.abs(gradient[:, -1]) > REPAIRED * caps).any():
        return np.inf
    residual = sums.residual - here.residual + max(0.0, here.loss - value)
    return residual + 0.5 * float(np.square(penalized - gradient[:, :-1]).sum())


def balancing(task: SmoothPass, block: Block, rest: np.ndarray, caps: np.ndarray) -> np.ndarray | None:
    """Shifts of the intercepts at which the coefficients of the sample sum up to ``-rest``.

    ``caps`` (k,) are the sums of the caps of each class among all rows.
    """
    k = task.problem.n_classes
    rest = rest - rest.mean()
    scores, reach = _scores(task, block)
    # The reach is the only feature left, with no weight: it gives each row its width.
    small = task.at(
        frame=Frame(np.zeros(1), np.ones(1)), W=np.zeros((k, 2)), hessian=task.width, problem=_free(task.problem)
    )
    rows = block._replace(X=reach[:, None])
    delta = np.zeros(k)
    value, gradient, curvature = _shifted(small, rows, scores, delta, rest)
    for _ in range(NEWTON_STEPS):
        if (np.abs(gradient) <= ROUNDING * caps).all():
            return delta
        lift = 1e-12 * np.trace(curvature) / k + 1e-300
        try:
            step = np.linalg.solve(curvature + lift * np.eye(k) + np.full((k, k), curvature.max() / k), -gradient)
        except np.linalg.LinAlgError:
            return None
        step -= step.mean()
        size = np.abs(step).max()
        if not np.isfinite(size):
            return None
        step *= min(1.0, 4 * task.width / max(size, 1e-300))  # the model knows no more than a few widths
        t = 1.0
        while True:
            trial = _shifted(small, rows, scores, delta + t * step, rest)
            slope = float(trial[1] @ step)
            if trial[0] <= value + 1e-12 * abs(value) and slope <= 0.9 * abs(float(gradient @ step)):
                break
            t *= 0.5
            if t < 1e-6:
                return None
        delta = delta + t * step
        value, gradient, curvature = trial
    return delta if (np.abs(gradient) <= REPAIRED * caps).all() else None


def _free(problem: BlockProblem) -> BlockProblem:
    return replace(problem, intercept="free", constant=1.0)


def _shifted(
    small: SmoothPass, rows: Block, scores: np.ndarray, delta: np.ndarray, rest: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, gradient and curvature of the convex function of the shifts whose minimum balances the duals."""
    k = len(delta)
    W = np.zeros((k, 2))
    W[:, 1] = delta
    task = small.at(W=W)
    sums = task.zero()
    task.add(sums, rows, scores)
    assert sums.laplacian is not None
    curvature = np.zeros((k, k))
    place = 0
    for m in range(1, k):
        for l in range(m):
            w = sums.laplacian[place, 1, 1]
            place += 1
            curvature[[l, m], [l, m]] += w
            curvature[[l, m], [m, l]] -= w
    return sums.smooth - float(rest @ delta), -sums.gradient[:, 1] - rest, curvature


def _scores(task: SmoothPass, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Scores (rows, k) of dense or sparse rows at the point, and the reach of each row."""
    frame, d = task.frame, len(task.frame.mean)
    scores, reach = np.empty((len(block.y), len(task.W))), np.ones(len(block.y))
    for at in range(0, len(block.y), CHUNK):
        rows = slice(at, at + CHUNK)
        X = block.X[rows]
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64) - frame.mean
        scores[rows] = X @ task.W[:, :d].T
        if frame.reaches:
            reach[rows] = np.maximum(1.0, np.sqrt(np.square(X * frame.scale).sum(axis=1)))
    if task.problem.feature:
        scores += task.problem.feature * task.W[:, d]
    return scores, reach
