"""Inner problems of the linear optimal margin distribution machine (outer.py), by two methods.

`LinearInner`   dual block ascent (_core/linear/block_ascent.hpp) with the exact block of _core/losses/odm.hpp:
                dense and sparse rows, any number of parameters
`NewtonInner`   a proximal term in the duals smooths the kinks of Q, where rivals tie; the smooth problem is solved by
                Newton steps with its exact Hessian, and the centre of the proximal term moves
                (_core/newton/newton.hpp): dense rows and few parameters, to any accuracy

Both start from duals, certify a gap and return duals, so that one can go on where the other ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..._core import _ext
from ..._runtime.threads import blas_threads
from ..._types import Rows
from ...rows.arrays import core_rows, moments, suitable_storage
from ..dual.plan import float32_suffices, is_small, newton_step_flops, passes_flops
from ..dual.state import GAP_FLOOR, DualLists
from ..tuning import DEFAULT, Tuning
from .outer import Limits, OdmProblem, OdmSolution, best_of


@dataclass(frozen=True)
class LinearPoint:
    """Class vectors, intercepts and the duals they came from, for the weights ``cap``."""

    W: np.ndarray
    b: np.ndarray
    duals: DualLists
    multipliers: np.ndarray  # intercepts of the centred features
    y: np.ndarray
    cap: np.ndarray

    def rescaled(self, problem: OdmProblem) -> DualLists:
        """Duals for other weights."""
        first, rival, alpha = self.duals
        return DualLists(first, rival, alpha * np.repeat(problem.cap / self.cap, np.diff(first)))


class LinearInner:
    """Block ascent, on float32 rows while they are exact enough."""

    def __init__(self, X: Rows, problem: OdmProblem, limits: Limits, start: LinearPoint | None = None) -> None:
        self.problem, self.seed, self.tuning, self.n_iter = problem, limits.seed, limits.tuning, 0
        self.X = X = suitable_storage(X, self.tuning)
        mean, square = moments(X)
        self.mean = mean if problem.fit_intercept else None
        single = limits.tol >= self.tuning.common.float32_tol and not is_small(X, self.tuning)
        single = single and float32_suffices(mean, square)
        self.dtype: DTypeLike = np.float32 if single else np.float64
        self.rows = core_rows(X, self.dtype)
        self.budget = newton_budget(X, problem, self.tuning)
        self.duals = DualLists.zero(len(problem.y))
        self.multipliers = np.zeros(problem.n_classes)
        if start is not None:
            self.duals, self.multipliers = start.rescaled(problem), problem.intercepts(start.multipliers)
            self._set(start.W, problem.intercepts(start.b))

    def _set(self, W: np.ndarray, b: np.ndarray) -> None:
        self.W, self.b = W, b
        self.half_norm = 0.5 * float(np.vdot(W, W))
        self.scores = self.X @ W.T.astype(self.X.dtype if self.dtype == np.float32 else np.float64) + b

    def solve(
        self, mu: float, rivals: np.ndarray, tol: float, majorizer_share: float, majorizer_value: float, max_iter: int
    ) -> bool:
        """See `InnerSolver`."""
        problem = self.problem
        while True:
            single = self.dtype == np.float32
            options = _ext.Options(
                tol=tol,
                max_iter=max(1, max_iter - self.n_iter),
                max_work=self.budget,
                stop_on_stall=single or tol <= GAP_FLOOR,
                majorizer_share=majorizer_share,
                majorizer_value=majorizer_value,
                seed=self.seed + self.n_iter,
            )
            out = _ext.block_ascent(
                self.rows, problem.core(mu, rivals), options, b=self.multipliers,
                duals=with_rivals(self.duals, rivals), mean=self.mean, fit_intercept=True,
            )  # fmt: skip
            self.duals, self.multipliers = DualLists(*out.duals), out.multipliers
            self.objective, self.gap = out.objective, out.gap
            self.n_iter += out.n_iter
            self.budget -= out.work
            self._set(out.W, out.b)
            if out.converged or not single or self.n_iter >= max_iter or self.budget <= 0:
                return out.converged
            self.dtype, self.rows = np.float64, core_rows(self.X, np.float64)

    def next_method(self) -> NewtonInner | None:
        """Newton steps, after block ascent has spent what they are expected to cost."""
        if np.isinf(newton_budget(self.X, self.problem, self.tuning)):
            return None
        method = NewtonInner(self.X, self.problem, self.seed, self.point())
        method.n_iter = self.n_iter
        return method

    def point(self) -> LinearPoint:
        """Where the last solve ended."""
        return LinearPoint(self.W, self.b, self.duals, self.multipliers, self.problem.y, self.problem.cap)

    def zero(self) -> LinearPoint:
        """See `InnerSolver`."""
        return linear_zero(self.problem, self.X.shape[1])


class NewtonInner:
    """Semismooth Newton steps on dense rows."""

    from_duals = False  # whether the class vectors are those of the duals

    def __init__(self, X: Rows, problem: OdmProblem, seed: int = 0, start: LinearPoint | None = None) -> None:
        self.X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        self.problem, self.seed, self.n_iter = problem, seed, 0
        self.duals: DualLists | None = None
        self.b = np.zeros(problem.n_classes)
        if start is not None:
            self.duals = start.rescaled(problem)
            self._set(start.W, problem.intercepts(start.b))

    def _set(self, W: np.ndarray, b: np.ndarray) -> None:
        self.W, self.b = W, b
        self.half_norm = 0.5 * float(np.vdot(W, W))
        self.scores = self.X @ W.T + b

    def solve(
        self, mu: float, rivals: np.ndarray, tol: float, majorizer_share: float, majorizer_value: float, max_iter: int
    ) -> bool:
        """See `InnerSolver`."""
        problem = self.problem
        duals = None if self.duals is None else with_rivals(self.duals, rivals)
        with blas_threads(1):
            options = _ext.Options(
                tol=tol, max_iter=max(1, max_iter - self.n_iter), majorizer_share=majorizer_share,
                majorizer_value=majorizer_value, seed=self.seed,
            )  # fmt: skip
            out = _ext.newton(
                self.X, problem.core(mu, rivals), options, b=self.b, duals=duals,
                fit_intercept=problem.fit_intercept, publish_duals=self.from_duals,
            )  # fmt: skip
        self.duals = DualLists(*out.duals)
        self.objective, self.gap = out.objective, max(0.0, out.gap)
        self.n_iter += out.n_iter
        self._set(out.W, out.b)
        return out.converged

    def next_method(self) -> None:
        """None: what Newton steps do not reach is beyond rounding."""

    def point(self) -> LinearPoint:
        """Where the last solve ended."""
        assert self.duals is not None
        multipliers = self.b + self.W @ self.X.mean(axis=0) if self.problem.fit_intercept else self.b
        return LinearPoint(self.W, self.b, self.duals, multipliers, self.problem.y, self.problem.cap)

    def zero(self) -> LinearPoint:
        """See `InnerSolver`."""
        return linear_zero(self.problem, self.X.shape[1])


def linear_zero(problem: OdmProblem, d: int) -> LinearPoint:
    """Class vectors, intercepts and duals that are all zero."""
    b = np.zeros(problem.n_classes)
    return LinearPoint(np.zeros((len(b), d)), b, DualLists.zero(len(problem.y)), b, problem.y, problem.cap)


def with_rivals(duals: DualLists, rivals: np.ndarray) -> DualLists:
    """Duals for other fixed rivals: a negative dual moves to the new rival, or becomes 0 if that has a dual already."""
    start, cls, alpha = duals
    if len(rivals) == 0:
        return DualLists(start, cls, np.maximum(0, alpha))
    row = np.repeat(np.arange(len(rivals)), np.diff(start))
    fixed = rivals[row]
    taken = np.zeros(len(rivals), dtype=bool)
    taken[row[(cls == fixed) & (alpha != 0)]] = True
    stale = (alpha < 0) & (cls != fixed)
    moved = np.where(stale & ~taken[row], fixed, cls)
    return DualLists(start, moved, np.where(stale & taken[row], 0.0, alpha))


def newton_budget(X: Rows, problem: OdmProblem, tuning: Tuning) -> float:
    """Flops that block ascent may spend before Newton steps take over; infinite with too many parameters."""
    (n, d), k = X.shape, problem.n_classes
    return tuning.linear.newton_steps * newton_step_flops(n, d, k, tuning)


def newton_pays(X: Rows, problem: OdmProblem, tuning: Tuning = DEFAULT) -> bool:
    """Whether to begin with Newton steps: a tiny problem, or few parameters and losses strong against the penalty."""
    if X.shape[0] * X.shape[1] * problem.n_classes <= tuning.common.tiny_work:
        return True
    if sparse.issparse(X) or X.shape[0] < X.shape[1] * problem.n_classes:
        return False
    strength = float(problem.cap @ np.einsum("ij,ij->i", X, X)) / len(problem.y)
    (n, d), k = X.shape, problem.n_classes
    return passes_flops(n, d, k, strength, tuning) > newton_budget(X, problem, tuning)


def solve_odm_linear(X: Rows, problem: OdmProblem, limits: Limits, start: LinearPoint | None = None) -> OdmSolution:
    """Block ascent first; ``start`` belongs to the same rows and labels."""
    return best_of(problem, limits, False, start, lambda first: LinearInner(X, problem, limits, first))


def solve_odm_newton(X: Rows, problem: OdmProblem, limits: Limits, start: LinearPoint | None = None) -> OdmSolution:
    """Newton steps at once; ``start`` belongs to the same rows and labels.  Tiny problems are solved to rounding."""
    polish = X.shape[0] * X.shape[1] * problem.n_classes <= limits.tuning.common.tiny_work
    return best_of(problem, limits, polish, start, lambda first: NewtonInner(X, problem, limits.seed, first))
