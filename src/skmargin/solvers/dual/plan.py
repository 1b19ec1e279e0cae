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

from ...rows.arrays import Rows, moments, stored_numbers, sum_of_squares, total_variance
from ..tuning import DEFAULT, KernelTuning, LinearTuning
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
    subsample_intercepts: bool  # first intercepts from some of the rows
    face_steps: bool
    threaded: bool
    tuning: LinearTuning

    @property
    def budget(self) -> float:
        """Flops that block passes may spend before Newton steps take over."""
        return self.tuning.newton_steps * self.newton_flops

    @property
    def warm_budget(self) -> float:
        """The same once their gap is small."""
        return self.tuning.newton_steps_warm * self.newton_flops

    @property
    def block_iterations(self) -> int:
        """Passes that the block method may make before Newton steps take over."""
        return first_method_iterations(self.max_iter, self.tuning) if self.newton_flops < np.inf else self.max_iter


def plan_linear(problem: LinearProblem, tol: float, max_iter: int, tuning: LinearTuning = DEFAULT.linear) -> LinearPlan:
    """Choose methods, precision and centring for a linear machine."""
    X, (n, d, k) = problem.X, problem.shape
    mean, square = moments(X)
    single = float32_suffices(mean, square)
    mean_cap = float(np.add.reduce(problem.cap)) / n
    strength, mean_strength = mean_cap * total_variance(mean, square), mean_cap * sum_of_squares(mean)
    mean_is_small = mean_strength < tuning.centre_from * strength and not sparse.issparse(X)
    if mean_is_small or not (
        problem.fit_intercept or splits_off_mean(strength, mean_strength, problem.loss == "max", tuning)
    ):
        strength, mean = mean_cap * square, np.zeros_like(mean)
    tiny = n <= tuning.tiny_rows and n * d * k <= tuning.tiny_work
    goal = min(tol, GAP_FLOOR) if tiny else tol
    step = newton_step_flops(n, d, k, tuning)
    blocks = block_flops(n, d, k, strength, tuning)
    newton_first = blocks > tuning.newton_steps * step
    many_rows = n >= tuning.subsample_rows * d * k
    return LinearPlan(
        [Stage(np.float64, goal, True)] if tiny else precision_stages(X, tol, single, tuning),
        tol,
        goal,
        max_iter,
        mean,
        blocks,
        step,
        newton_first,
        problem.fit_intercept and strength < tuning.subsample_strength and many_rows and not newton_first,
        face_steps_pay(X, k, tuning),
        stored_numbers(X) * k >= tuning.threaded_work,
        tuning,
    )


def first_method_iterations(max_iter: int, tuning: LinearTuning = DEFAULT.linear) -> int:
    """Iterations that the first method may use: cheap passes over few rows could use up all of them."""
    reserved = tuning.reserved_iterations
    return max_iter - reserved if max_iter > 2 * reserved else max_iter


def newton_step_flops(n: int, d: int, k: int, tuning: LinearTuning = DEFAULT.linear) -> float:
    """Cost of a Newton step in flops of the block passes; infinite where it needs too much memory."""
    unknowns = (k - 1) * (d + 1)
    if unknowns > tuning.newton_unknowns or n * (d + 8 * k) > tuning.newton_numbers:
        return np.inf
    return (
        tuning.newton_flops_cubic * unknowns**3
        + tuning.newton_flops_scores * n * k
        + tuning.newton_flops_rows * n * d * k
    )


def block_flops(n: int, d: int, k: int, strength: float, tuning: LinearTuning = DEFAULT.linear) -> float:
    """What block passes are expected to cost down to a gap of 1e-3 from zero.

    Where there are far more rows than parameters the number of passes grows with a power of ``strength``, C times the
    total variance of the rows; otherwise the rows are separable, or nearly so, and C hardly matters.
    """
    if n < tuning.block_rows * k * d:
        return 0.0
    return tuning.block_passes * strength**tuning.block_power * 2 * n * k * (d + tuning.block_overhead)


def splits_off_mean(
    strength: float, mean_strength: float, one_hinge: bool = True, tuning: LinearTuning = DEFAULT.linear
) -> bool:
    """Whether it pays, without an intercept, to treat the direction of the mean separately.

    See _core/linear/class_vectors.hpp.  ``strength`` is C times the total variance of the rows, ``mean_strength`` C
    times their squared mean.  Losses with several hinges a sample need a larger mean.
    """
    mean = tuning.split_mean if one_hinge else tuning.split_mean_sum
    return strength >= tuning.split_strength or mean_strength >= mean


def float32_suffices(mean: np.ndarray, square: float) -> bool:
    """Whether scores in float32 still tell rows apart whose mean lies far from zero."""
    return sum_of_squares(mean) <= FLOAT32_MAX_OFFSET * total_variance(mean, square)


def precision_stages(X: Rows, tol: float, single: bool, tuning: LinearTuning = DEFAULT.linear) -> list[Stage]:
    """Float32 for as long as it is exact enough, then float64; ``single``: float32 suits these rows."""
    if single and X.dtype == np.float32 and tol >= tuning.float32_tol:
        return [Stage(np.float32, tol, False)]
    if not single or is_small(X, tuning):
        return [Stage(np.float64, tol, False)]
    share = tuning.float32_goal
    return [Stage(np.float32, max(share * tol, share * tuning.float32_tol), True), Stage(np.float64, tol, False)]


def is_small(X: Rows, tuning: LinearTuning = DEFAULT.linear) -> bool:
    """Dense rows so few that float64 is as fast as float32."""
    return X.shape[0] * X.shape[1] < tuning.float32_numbers and not sparse.issparse(X)


def face_steps_pay(X: Rows, k: int, tuning: LinearTuning = DEFAULT.linear) -> bool:
    """Whether steps on the face of the dual pay: each reads all of W, which for text is larger than X."""
    return X.shape[1] * k <= tuning.face_share * stored_numbers(X)


def can_factor(n: int, cache_size: float, tuning: KernelTuning = DEFAULT.kernel) -> bool:
    """Whether time and ``cache_size`` (megabytes) allow a factor of a kernel matrix of n rows."""
    return n <= min(tuning.factor_rows, np.sqrt(cache_size * 2**20 / FACTOR_BYTES))


def factor_cost(n: int, tuning: KernelTuning = DEFAULT.kernel) -> float:
    """Block steps that cost as much as `solve_kernel_factor`: what block ascent may spend first."""
    return tuning.factor_steps_linear * n + tuning.factor_steps_cubic * n**3
