"""A pass over sparse rows of very many columns as a task: the gradient of the smoothed problem, and no curvature.

Scores and gradient are products with CSR rows; what lies between them, the map from the scores of a row to its duals,
is that of the other passes (passes.py), whose rows are here the scores themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ...rows.blocks import Block, Task
from .passes import BlockProblem, Frame, PassSums, SmoothPass, packed, unpacked
from .repair import REPAIRED, Balance

CHUNK = 1 << 14  # rows whose scores are held at once


@dataclass(frozen=True)
class GradientPass(Task[PassSums]):
    """Task: the sums of a pass at class vectors ``W`` (k, d), in the number type of the rows, and intercepts ``b``."""

    name = "gradient"
    problem: BlockProblem
    W: np.ndarray
    b: np.ndarray
    width: float

    @property
    def lanes(self) -> int:
        """One: a product with CSR rows is made by one thread, and the sums are large."""
        return 1

    def __reduce__(self) -> Any:  # features that no row has had so far are not sent
        return _received, (self.problem, packed(self.W), self.b, self.width)

    def zero(self) -> PassSums:
        """Empty sums; the last column of the gradient belongs to the intercepts."""
        k, d = self.W.shape
        return PassSums(np.zeros(5), np.zeros((k, d + 1)), None)

    def add(self, sums: PassSums, block: Block) -> None:
        """Add a block."""
        V = np.ascontiguousarray(self.W.T, dtype=block.X.dtype)
        for at in range(0, len(block.y), CHUNK):
            part = block.cut(at, min(at + CHUNK, len(block.y)))
            scores = (part.X @ V).astype(np.float64) + self.b
            self._add_scores(sums, part, scores)

    def _add_scores(self, sums: PassSums, part: Block, scores: np.ndarray) -> None:
        k = len(self.b)
        task = of_scores(self.problem, self.width)
        rows = part._replace(X=scores)
        here = task.zero()
        task.add(here, rows)
        sums.values += here.values
        c = coefficients(*task.duals(rows), part.y, k)
        # In the number type of the rows: each number of the gradient is a sum over few of them.
        sums.gradient[:, :-1] += (part.X.T @ c.astype(part.X.dtype)).T
        sums.gradient[:, -1] += np.asarray(c.sum(axis=0)).ravel()


def _received(problem: BlockProblem, W: tuple[Any, ...], b: np.ndarray, width: float) -> GradientPass:
    return GradientPass(problem, unpacked(W), b, width)


def of_scores(problem: BlockProblem, width: float) -> SmoothPass:
    """The pass over rows that are scores: each class has a feature of its own."""
    k = problem.n_classes
    frame = Frame(np.zeros(k), np.zeros(k), reaches=False)
    return SmoothPass(replace(problem, intercept="none"), frame, np.eye(k), width, single=False)


def coefficients(start: np.ndarray, rivals: np.ndarray, alpha: np.ndarray, y: np.ndarray, k: int) -> sparse.csr_array:
    """The coefficients c (n, k) of lists of duals: minus the duals, and their sum for the own class."""
    n, size = len(y), np.diff(start)
    row = np.repeat(np.arange(n), size)
    total = np.bincount(row, alpha, minlength=n)
    own = np.flatnonzero(total)
    values = np.concatenate([-alpha, total[own]])
    return sparse.csr_array((values, (np.concatenate([row, own]), np.concatenate([rivals, y[own]]))), shape=(n, k))


def balanced(
    problem: BlockProblem, width: float, block: Block, scores: np.ndarray, total: np.ndarray, caps: np.ndarray
) -> tuple[float, sparse.csr_array] | None:
    """Other duals of a sample, with which the coefficients of all rows sum to zero (repair.py).

    ``total`` is their sum at the point, ``caps`` are those of the classes.  Returned are what the residuals grow by,
    and the change of the coefficients.
    """
    k = problem.n_classes
    frame, W = Frame(np.zeros(k), np.zeros(k), reaches=False), np.column_stack([np.eye(k), np.zeros(k)])
    task = SmoothPass(replace(problem, intercept="free", constant=1.0), frame, W, width, single=False)
    rows = block._replace(X=scores)
    here = task.zero()
    task.add(here, rows)
    delta = Balance(task, rows, caps).shifts(total - here.gradient[:, -1])
    if delta is None:
        return None
    other = task.at(W=np.column_stack([np.eye(k), delta]))
    moved = other.zero()
    other.add(moved, rows)
    rest = total - here.gradient[:, -1] + moved.gradient[:, -1]
    if (np.abs(rest - rest.mean()) > REPAIRED * caps).any():
        return None
    value = moved.loss - moved.residual + float(moved.gradient[:, -1] @ delta)
    change = coefficients(*other.duals(rows), block.y, k) - coefficients(*task.duals(rows), block.y, k)
    return max(0.0, here.loss - value) - here.residual, change
