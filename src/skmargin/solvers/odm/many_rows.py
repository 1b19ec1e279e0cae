"""The optimal margin distribution machine with many rows and few parameters, by smoothed Newton steps (solvers/blocks).

There is no outer loop: with the closest rival of each row at the point itself the objective T equals its majoriser Q
there, so that the gradient, the curvature and the duality gap of Q are those of the pass, and a step that lowers Q
lowers T at least as much.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._types import Rows
from ...rows.arrays import moments, total_variance
from ..blocks.newton import BlockState
from ..blocks.passes import BlockProblem
from ..blocks.plan import solve_in_memory, suits
from ..dual.plan import block_flops
from ..dual.state import DualLists
from .inner_linear import LinearPoint, newton_pays, solve_odm_linear, solve_odm_newton
from .outer import Limits, OdmProblem, OdmSolution


def solve_sample(
    X: Rows, y: np.ndarray, caps: np.ndarray, problem: BlockProblem, limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Class vectors and intercepts for some of the rows."""
    machine = OdmProblem(y, caps, problem.n_classes, problem.mu, problem.theta, problem.intercept == "free")
    solve = solve_odm_newton if newton_pays(X, machine, limits.tuning) else solve_odm_linear
    point = solve(X, machine, replace(limits, tol=limits.tuning.common.start_tol)).point
    return point.W, point.b


def solve_many(
    X: Rows, odm: OdmProblem, limits: Limits, start: LinearPoint | None, n_jobs: int | None, verbose: int
) -> OdmSolution | None:
    """The solution, or None where this method does not suit."""
    (n, d), k = X.shape, odm.n_classes
    strength = float(np.add.reduce(odm.cap)) / n * total_variance(*moments(X))
    otherwise = block_flops(n, d, k, strength, limits.tuning)
    if limits.n_init > 1 or not suits(X, k, otherwise, limits.tuning.blocks):
        return None
    intercept = "free" if odm.fit_intercept else "none"
    problem = BlockProblem(k, "odm", mu=odm.mu, theta=odm.theta, intercept=intercept)
    found = solve_in_memory(
        X, odm.y, odm.cap, problem, lambda X, y, caps: solve_sample(X, y, caps, problem, limits),
        tol=limits.tol, max_iter=limits.max_iter, seed=limits.seed,
        start=None if start is None else (start.W, start.b), n_jobs=n_jobs, verbose=verbose,
        otherwise=otherwise, tuning=limits.tuning.blocks,
    )  # fmt: skip
    if not isinstance(found, BlockState):
        return None
    point = LinearPoint(found.W, found.b, DualLists.zero(len(odm.y)), found.b, odm.y, odm.cap)
    return OdmSolution(point, np.array([found.objective]), found.gap, found.gap, found.n_iter, True)
