"""The optimal margin distribution machine with many rows and few parameters, by smoothed Newton steps (solvers/blocks).

There is no outer loop: with the closest rival of each row at the point itself the objective T equals its majoriser Q
there, so that the gradient, the curvature and the duality gap of Q are those of the pass, and a step that lowers Q
lowers T at least as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..blocks.newton import BlockState
from ..blocks.passes import BlockProblem
from ..blocks.plan import solve_in_memory, suits
from ..dual.linear import SAMPLE_TOL
from .inner_linear import LinearPoint, newton_pays, no_duals, solve_linear, solve_newton
from .outer import Descent, Effort, Machine


def solve_sample(
    X: Any, y: np.ndarray, caps: np.ndarray, problem: BlockProblem, effort: Effort
) -> tuple[np.ndarray, np.ndarray]:
    """Class vectors and intercepts for some of the rows."""
    machine = Machine(y, caps, problem.n_classes, problem.mu, problem.theta, problem.intercept == "free")
    solve = solve_newton if newton_pays(X, machine) else solve_linear
    effort = Effort(SAMPLE_TOL, effort.max_iter, effort.max_outer, effort.n_init, effort.seed)
    point = solve(X, machine, effort).point
    return point.W, point.b


def solve_many(
    X: Any, machine: Machine, effort: Effort, start: LinearPoint | None, n_jobs: int | None, verbose: int
) -> Descent | None:
    """The solution, or None where this gear does not suit."""
    k = machine.n_classes
    if effort.n_init > 1 or not suits(X, k, True):
        return None
    intercept = "free" if machine.fit_intercept else "none"
    problem = BlockProblem(k, "odm", mu=machine.mu, theta=machine.theta, intercept=intercept)
    found = solve_in_memory(
        X, machine.y, machine.cap, problem, lambda X, y, caps: solve_sample(X, y, caps, problem, effort),
        tol=effort.tol, max_iter=effort.max_iter, seed=effort.seed,
        start=None if start is None else (start.W, start.b), n_jobs=n_jobs, verbose=verbose,
    )  # fmt: skip
    if not isinstance(found, BlockState):
        return None
    point = LinearPoint(found.W, found.b, no_duals(len(machine.y)), found.b, machine.y, machine.cap)
    return Descent(point, np.array([found.objective]), found.gap, found.gap, found.n_iter, True)
