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

from skmargin.rows.blocks import Block, chunks
from skmargin.rows.moments import Sample

from .passes import Frame, PassSums, SmoothPass

NEWTON_STEPS = 60  # far more than it takes: k unknowns, a piecewise quadratic function
ROUNDING = 1e-13  # of the caps of a class, at which the sum of its coefficients counts as zero
REPAIRED = 1e-11  # the same at the end


class Repair:
    """The duals of a sample at one point and width, with which those of all rows are balanced."""

    def __init__(self, task: SmoothPass, sample: Sample) -> None:
        self.task = task.at(single=False, hessian=0.0)
        self.free = task.problem.intercept == "free"
        if self.free:
            self.block = Block(sample.X, sample.y, sample.weight, 0)
            self.here = self._sums(self.task)
            self.balance = Balance(self.task, self.block, task.problem.C * sample.total)

    def gap(self, sums: PassSums) -> float:
        """P - D at the point of a pass over all rows; infinite where the sample cannot balance the duals."""
        W = self.task.W
        if not self.free:
            return sums.residual + 0.5 * float(np.square(W - sums.gradient).sum())
        here = self.here
        delta = self.balance.shifts(sums.gradient[:, -1] - here.gradient[:, -1])
        if delta is None:
            return np.inf
        shifted = W.copy()
        shifted[:, -1] += delta
        moved = self._sums(self.task.at(W=shifted))
        # Duals at b + delta, seen at the scores of b: their value is affine in the scores, with slope -c.
        value = moved.loss - moved.residual + float(moved.gradient[:, -1] @ delta)
        gradient = sums.gradient - here.gradient + moved.gradient
        gradient -= gradient.mean(axis=0)  # each c_i sums to zero, but for the rounding of float32
        if (np.abs(gradient[:, -1]) > REPAIRED * self.balance.caps).any():
            return np.inf
        residual = sums.residual - here.residual + max(0.0, here.loss - value)
        return residual + 0.5 * float(np.square(W[:, :-1] - gradient[:, :-1]).sum())

    def _sums(self, task: SmoothPass) -> PassSums:
        sums = task.zero()
        task.add(sums, self.block)
        return sums


class Balance:
    """Shifts of the intercepts at which the coefficients of a sample sum up to a given number.

    ``caps`` (k,) are the sums of the caps of each class among all rows.
    """

    def __init__(self, task: SmoothPass, block: Block, caps: np.ndarray) -> None:
        self.k, self.width, self.caps = task.problem.n_classes, task.width, caps
        self.scores, reach = _scores(task, block)
        # The reach is the only feature left, with no weight: it gives each row its width.
        problem = replace(task.problem, intercept="free", constant=1.0)
        self.task = task.at(
            frame=Frame(np.zeros(1), np.ones(1)), W=np.zeros((self.k, 2)), hessian=task.width, problem=problem
        )
        self.rows = block._replace(X=reach[:, None])
        self.delta = np.zeros(self.k)  # of the last call

    def shifts(self, rest: np.ndarray) -> np.ndarray | None:
        """The shifts at which the coefficients sum up to ``-rest``; None if there are none."""
        k, delta = self.k, self.delta
        rest = rest - rest.mean()
        value, gradient, curvature = self._shifted(delta, rest)
        for _ in range(NEWTON_STEPS):
            if (np.abs(gradient) <= ROUNDING * self.caps).all():
                break
            lift = 1e-12 * np.trace(curvature) / k + 1e-300
            try:
                step = np.linalg.solve(curvature + lift * np.eye(k) + np.full((k, k), curvature.max() / k), -gradient)
            except np.linalg.LinAlgError:
                return None
            step -= step.mean()
            size = np.abs(step).max()
            if not np.isfinite(size):
                return None
            step *= min(1.0, 4 * self.width / max(size, 1e-300))  # the model knows no more than a few widths
            t = 1.0
            while True:
                trial = self._shifted(delta + t * step, rest)
                slope = float(trial[1] @ step)
                if trial[0] <= value + 1e-12 * abs(value) and slope <= 0.9 * abs(float(gradient @ step)):
                    break
                t *= 0.5
                if t < 1e-6:
                    return None
            delta = delta + t * step
            value, gradient, curvature = trial
        if (np.abs(gradient) > REPAIRED * self.caps).any():
            return None
        self.delta = delta
        return delta

    def _shifted(self, delta: np.ndarray, rest: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient and curvature of the convex function of the shifts whose minimum balances the duals."""
        k = self.k
        W = np.zeros((k, 2))
        W[:, 1] = delta
        task = self.task.at(W=W)
        sums = task.zero()
        task.add(sums, self.rows, self.scores)
        assert sums.laplacian is not None
        curvature = np.zeros((k, k))
        m, l = np.tril_indices(k, -1)
        curvature[m, l] = curvature[l, m] = -sums.laplacian[:, 1, 1]
        np.fill_diagonal(curvature, -curvature.sum(axis=0))
        return sums.smooth - float(rest @ delta), -sums.gradient[:, 1] - rest, curvature


def _scores(task: SmoothPass, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Scores (rows, k) of dense or sparse rows at the point, and the reach of each row."""
    frame, d = task.frame, len(task.frame.mean)
    scores, reach = np.empty((len(block.y), len(task.W))), np.ones(len(block.y))
    for rows in chunks(len(block.y), block.X.shape[1]):
        X = block.X[rows]
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64) - frame.mean
        scores[rows] = X @ task.W[:, :d].T
        if frame.reaches:
            reach[rows] = np.maximum(1.0, np.sqrt(np.square(X * frame.scale).sum(axis=1)))
    if task.problem.feature:
        scores += task.problem.feature * task.W[:, d]
    return scores, reach
