"""Objective and gap of a machine for rows in blocks, as it is published (../certificate.py).

The solver's last pass is in double precision, of rows that it centres.  The published numbers differ from its own by
rounding: with the weighted mean m of ||x_i||^2, which the first pass has found, sum_i s_i ||x_i|| is at most sum_i s_i
times sqrt(m), so that what the losses can rise by is known without another pass.
Where that is not nothing beside the tolerance (timestamps, ids), the published numbers are evaluated in one.  Taken off
the bound is the rounding of its own sums:

    V = sum_i c_i x_i'         wrong by at most  e = n u sum_i |c_i| ||x_i||,  the gap by  ||W - V|| e + 1/2 e^2
    r_l = sum_i c_il           not zero, but at most REPAIRED times the caps of class l: intercepts at which that
                               could matter, b_l < -(P/cap_l + 2 ||W|| ||x_i||), cost the rows of class l more than P
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core import _ext
from ...rows.blocks import Block, BlockRows, Task
from ...rows.moments import Sizes
from ..certificate import NEGLIGIBLE, UNIT, Evaluation, all_classes, score_blocks
from ..dual.state import lower_bound
from .newton import BlockState
from .passes import BlockProblem
from .repair import REPAIRED


@dataclass(frozen=True)
class PublishedLosses(Task[np.ndarray]):
    """Task: the losses of a published machine, and the most that rounding can make of them."""

    coef: np.ndarray
    intercept: np.ndarray
    loss: tuple[Any, ...]
    origin: np.ndarray | None

    def zero(self) -> np.ndarray:
        """No rows."""
        return np.zeros(2)

    def add(self, sums: np.ndarray, block: Block) -> None:
        """Add a block."""
        y = np.ascontiguousarray(block.y, dtype=np.int32)
        for rows, F, error in score_blocks(block.X, self.coef, self.intercept, self.origin):
            sums += _ext.published_losses(F, error, y[rows], np.ascontiguousarray(block.weight[rows]), *self.loss)


def certified(
    rows: BlockRows,
    problem: BlockProblem,
    found: BlockState,
    coef: np.ndarray,
    intercept: np.ndarray,
    penalty: Callable[[np.ndarray, np.ndarray], float],
    tol: float,
    scale: float = 1.0,
) -> tuple[float, float]:
    """Objective and relative gap of what is published; the objective is ``scale`` times that of the block problem."""
    k, d, sizes = len(found.W), rows.n_features, found.sizes
    assert sizes is not None
    W, b = all_classes(coef), all_classes(np.asarray(intercept)[:, None])[:, 0]
    longest = float(np.sqrt(np.einsum("ij,ij->i", W, W).max()))
    size = longest * sizes.length + float(np.abs(b).max())
    caps = scale * problem.C * float(rows.class_weights.sum())
    slope = _slope(problem, k, size)
    objective = scale * found.objective
    rounding = 8 * (d + 16) * UNIT * size * slope * caps + UNIT * (rows.n_rows + 16) * objective
    hidden = _hidden(rows, problem, found, sizes, slope * caps / scale)
    bound = scale * (lower_bound(found.objective, found.gap) - hidden)
    if found.single or not rounding <= NEGLIGIBLE * tol * objective:
        loss = (problem.loss, problem.top_k, problem.mu, problem.theta)
        value, most = rows.map_sum(PublishedLosses(coef, np.asarray(intercept), loss, sizes.centre))
        weight = scale * problem.C
        objective = penalty(W, b) + weight * float(value)
        steps = UNIT * (rows.n_rows + W.size + 16) * objective
        rounding = weight * max(0.0, float(most - value)) + steps
    return objective, Evaluation(objective, rounding).gap(bound)


def _slope(problem: BlockProblem, k: int, size: float) -> float:
    """How much a loss changes with the scores of its row, of this size; for a square, in the mean over the rows."""
    if problem.loss == "odm":
        return 2 * max(1.0, problem.mu) * (1 + problem.theta + 2 * size)
    return float(k - 1) if problem.loss == "sum" else 1.0


def _hidden(rows: BlockRows, problem: BlockProblem, found: BlockState, sizes: Sizes, steepness: float) -> float:
    """What rounding may hide in the bound."""
    objective = found.objective
    spread = sizes.spread if problem.intercept == "free" else sizes.length
    wrong = UNIT * (rows.n_rows + 16) * steepness * spread
    if found.single and found.width > 0:  # errors of float32 are taken as independent, at two standard deviations
        wrong += 2 * 2.0**-24 * steepness * spread / np.sqrt(rows.n_rows)
    hidden = wrong * (np.sqrt(2 * found.gap * objective) + 0.5 * wrong)
    if problem.intercept == "free":
        hidden += REPAIRED * (len(found.W) * objective + 2 * np.sqrt(2 * objective) * steepness * spread)
    return float(hidden)
