"""Which method solves a problem, in which precision, and what it may cost: the cost model of the dual solvers.

Two methods solve a linear machine: block passes, for all rows, and Newton steps, for few unknowns.  Costs are in flops
of the block passes.  Block passes come first and may spend what Newton steps are expected to cost: the total is then at
most twice that of the better method.  Where they are expected to cost more than that, one pass shows whether the rows
are separable, which block passes solve cheaply however large C is; otherwise Newton steps come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..._types import Rows
from ...rows.arrays import moments, stored_numbers, sum_of_squares, total_variance
from ..tuning import DEFAULT, Tuning
from .state import GAP_FLOOR, LinearProblem

FACTOR_BYTES = 64  # for each number of a kernel matrix that is factored and solved with
FLOAT32_MAX_OFFSET = 1e4  # squared mean over the variance of the rows up to which float32 scores keep their digits


class Stage(NamedTuple):
    """Block passes in one number type: the relative gap to reach, and whether to stop when there is no progress."""

    dtype: type
    goal: float
    may_stall: bool


@dataclass(frozen=True)
class LinearPlan:
    """How `solve_linear` solves a problem."""

    stages: list[Stage]
    tol: float
    goal: float  # relative gap; below tol where rounding is as cheap
    max_iter: int
    mean: np.ndarray  # taken off the features of block passes
    block_flops: float  # that block passes are expected to take
    newton_flops: float  # of one step; infinite where it needs too much memory
    newton_first: bool  # unless one pass finds the rows separable
    sample_step: int  # one row of so many gives the first intercepts; 1: they start from zero
    face_steps: bool
    threaded: bool
    tuning: Tuning

    @property
    def budget(self) -> float:
        """Flops that block passes may spend before Newton steps take over."""
        return self.tuning.linear.newton_steps * self.newton_flops

    @property
    def block_iterations(self) -> int:
        """Passes that the block method may make before Newton steps take over."""
        return first_method_iterations(self.max_iter) if self.newton_flops < np.inf else self.max_iter


def plan_linear(problem: LinearProblem, tol: float, max_iter: int, tuning: Tuning = DEFAULT) -> LinearPlan:
    """Choose methods, precision and centring for a linear machine."""
    X, (n, d, k) = problem.X, problem.shape
    mean, square = moments(X)
    single = float32_suffices(mean, square)
    mean_cap = float(np.add.reduce(problem.cap)) / n
    strength = mean_cap * total_variance(mean, square)
    small = mean_cap * sum_of_squares(mean) < tuning.linear.centre_from * strength and not sparse.issparse(X)
    if small or not (problem.fit_intercept or splits_off_mean(mean_cap, mean)):
        strength, mean = mean_cap * square, np.zeros_like(mean)
    tiny = n * max(n, d) * k <= tuning.common.tiny_work
    goal = min(tol, GAP_FLOOR) if tiny else tol
    step = newton_step_flops(n, d, k, tuning)
    blocks = block_flops(n, d, k, strength, tuning)
    newton_first = blocks > tuning.linear.newton_steps * step
    faint = problem.fit_intercept and strength < tuning.linear.faint_strength and not newton_first
    return LinearPlan(
        [Stage(np.float64, goal, True)] if tiny else precision_stages(X, tol, single, tuning),
        tol,
        goal,
        max_iter,
        mean,
        blocks,
        step,
        newton_first,
        sample_step(n, d, k, tuning) if faint else 1,
        face_steps_pay(X, k),
        stored_numbers(X) * k >= tuning.common.pass_work,
        tuning,
    )


def first_method_iterations(max_iter: int) -> int:
    """Iterations that the first method may use, half of them: cheap passes over few rows could use up all."""
    return max_iter - max_iter // 2


def sample_step(n: int, d: int, k: int, tuning: Tuning = DEFAULT) -> int:
    """One row of so many is enough for intercepts, if it leaves out most of them; 1: take all."""
    enough = tuning.linear.block_rows * k * d
    return int(n / enough) if n >= tuning.linear.block_rows * enough else 1


def newton_step_flops(n: int, d: int, k: int, tuning: Tuning = DEFAULT) -> float:
    """Cost of a Newton step in flops of the block passes; infinite where it needs too much memory."""
    unknowns = (k - 1) * (d + 1)
    if max(unknowns**2, n * (d + 8 * k)) > tuning.common.dense_numbers:
        return np.inf
    sums = tuning.linear.newton_flops * n * k * (d + tuning.common.overhead_features)
    return sums + unknowns**3 / (3 * tuning.common.product_speed)  # a Cholesky factor


def block_flops(n: int, d: int, k: int, strength: float, tuning: Tuning = DEFAULT) -> float:
    """What block passes are expected to cost down to a gap of 1e-3 from zero.

    Where there are far more rows than parameters the number of passes grows with a power of ``strength``, C times the
    total variance of the rows; otherwise the rows are separable, or nearly so, and C hardly matters.
    """
    return 0.0 if n < tuning.linear.block_rows * k * d else passes_flops(n, d, k, strength, tuning)


def passes_flops(n: int, d: int, k: int, strength: float, tuning: Tuning = DEFAULT) -> float:
    """The same for rows that are not separable."""
    passes = tuning.linear.block_passes * strength**tuning.linear.block_power
    return passes * 2 * n * k * (d + tuning.common.overhead_features)


def splits_off_mean(mean_cap: float, mean: np.ndarray) -> bool:
    """Whether, without an intercept, the direction of the mean is treated separately (_core/linear/class_vectors.hpp).

    It pays where the mean is long enough for a sample of mean weight to move its own score along it by a margin.
    """
    return mean_cap * sum_of_squares(mean) >= 1


def float32_suffices(mean: np.ndarray, square: float) -> bool:
    """Whether scores in float32 still tell rows apart whose mean lies far from zero."""
    return sum_of_squares(mean) <= FLOAT32_MAX_OFFSET * total_variance(mean, square)


def precision_stages(X: Rows, tol: float, single: bool, tuning: Tuning = DEFAULT) -> list[Stage]:
    """Float32 for as long as it is exact enough, then float64; ``single``: float32 suits these rows."""
    if single and X.dtype == np.float32 and tol >= tuning.common.float32_tol:
        return [Stage(np.float32, tol, False)]
    if not single or is_small(X, tuning):
        return [Stage(np.float64, tol, False)]
    goal = tuning.common.inner_goal * max(tol, tuning.common.float32_tol)
    return [Stage(np.float32, goal, True), Stage(np.float64, tol, False)]


def is_small(X: Rows, tuning: Tuning = DEFAULT) -> bool:
    """Dense rows that stay in the cache: float64 is as fast as float32."""
    return X.shape[0] * X.shape[1] <= tuning.common.cache_numbers and not sparse.issparse(X)


def face_steps_pay(X: Rows, k: int) -> bool:
    """Whether steps on the face of the dual pay: each reads all of W, which for text is larger than X."""
    return X.shape[1] * k <= stored_numbers(X)


def can_factor(n: int, cache_size: float, tuning: Tuning = DEFAULT) -> bool:
    """Whether time and ``cache_size`` (megabytes) allow a factor of a kernel matrix of n rows."""
    return FACTOR_BYTES * n**2 <= cache_size * 2**20 and tuning.common.can_factor(n)


def factor_cost(n: int, tuning: Tuning = DEFAULT) -> float:
    """Block steps that cost as much as `solve_kernel_factor`: what block ascent may spend first."""
    return tuning.kernel.factor_steps * n**2
