"""The optimal margin distribution machine by the published outer loop, for comparison.

Zhang & Zhou (2017) make the upper part of the objective T (outer.py) convex by freezing the score M_i of the closest
rival::

    repeat  M_i = max_{l != y_i} f_il
            W = argmin 1/2 ||W||^2 + sum_i cap_i [ (1 - theta - gamma_i)_+^2 + mu (f_{i,y_i} - M_i - 1 - theta)_+^2 ]

Each of these problems is solved to a certified gap by their dual block ascent, with the block corrected
(_core/losses/odm_published.hpp), on the rows of X or on rows of the kernel matrix.  The loop is as printed: it does not
majorise T, which may rise, and where it ends need not be a stationary point of T.  Frozen scores do not know a shift of
all scores, so the intercept is penalised: it is the weight of a constant feature one, as in the paper; for a kernel one
is added to all its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..._core import _ext
from ..._types import Rows
from ...rows.arrays import core_rows, with_constant
from ...rows.kernel_rows import KernelRows
from ..dual.state import DualLists
from .inner_linear import LinearPoint
from .outer import Limits, OdmProblem, OdmSolution


class _Frozen(Protocol):
    """Solver of the problems with frozen scores, which remembers its duals."""

    half_norm: float  # 1/2 ||W||^2
    scores: np.ndarray  # (n, k)

    def solve(self, frozen: np.ndarray, tol: float, max_passes: int, seed: int) -> tuple[int, float]:
        """Minimise; passes and relative gap."""

    def point(self) -> Any:
        """Where the last solve ended."""


class _LinearFrozen:
    """Rows of X, dense or CSR."""

    def __init__(self, X: Rows, problem: OdmProblem, start: LinearPoint | None) -> None:
        self.problem, self.d, k = problem, X.shape[1], problem.n_classes
        self.X = with_constant(X) if problem.fit_intercept else X
        self.rows = core_rows(self.X, np.float64)
        self.duals = np.zeros((X.shape[0], k)), np.zeros(X.shape[0])
        d = self.X.shape[1]
        self._set(np.zeros((k, d)) if start is None else np.column_stack([start.W, start.b])[:, :d])

    def _set(self, W: np.ndarray) -> None:
        self.W, self.scores, self.half_norm = W, self.X @ W.T, 0.5 * float(np.vdot(W, W))

    def solve(self, frozen: np.ndarray, tol: float, max_passes: int, seed: int) -> tuple[int, float]:
        problem = self.problem
        zeta, beta = self.duals
        options = _ext.Options(tol=tol, max_iter=max_passes, seed=seed)
        out = _ext.published_odm(
            self.rows, problem.core(problem.mu), options, frozen_scores=frozen, zeta=zeta, beta=beta
        )
        self.duals = out["zeta"], out["beta"]
        self._set(out["W"])
        return out["n_iter"], out["gap"] / out["objective"]

    def point(self) -> LinearPoint:
        problem, W = self.problem, self.W
        b = W[:, self.d].copy() if problem.fit_intercept else np.zeros(problem.n_classes)
        return LinearPoint(W[:, : self.d], b, DualLists.zero(len(problem.y)), b, problem.y, problem.cap)


@dataclass(frozen=True)
class FrozenPoint:
    """Coefficients (n, k) of the rows of a kernel machine, and its intercepts."""

    coef: np.ndarray
    b: np.ndarray


class _KernelFrozen:
    """Rows of a kernel matrix, one added to its values if there is an intercept; those not kept are computed again."""

    def __init__(self, rows: KernelRows, problem: OdmProblem, start: FrozenPoint | None) -> None:
        if rows.dtype != np.float64:
            rows.promote()
        self.rows, self.problem = rows, problem
        n, k = rows.n, problem.n_classes
        rows.keep(np.arange(n))
        self.diagonal = np.maximum(0.0, rows.diagonal)
        self.F, self.duals = np.zeros((k, n)), (np.zeros((n, k)), np.zeros(n))
        self._set(np.zeros((n, k)) if start is None else start.coef)

    def _set(self, coef: np.ndarray) -> None:
        F = np.zeros_like(self.F)
        self.rows.add(F, np.arange(self.rows.n), coef)
        self.coef, self.scores, self.half_norm = coef, F.T, 0.5 * float(np.vdot(coef, F.T))

    def solve(self, frozen: np.ndarray, tol: float, max_passes: int, seed: int) -> tuple[int, float]:
        problem, rng = self.problem, np.random.default_rng(seed)
        zeta, beta = self.duals
        passes, gap = 0, np.inf
        while passes < max_passes and gap > tol:
            order = rng.permutation(self.rows.n)
            for part, matrix, position in self.rows.blocks(order):
                slot = np.full(self.rows.n, -1)
                slot[order[part]] = position
                primal, gap = _ext.kernel_published_odm(
                    matrix, order[part], slot, self.diagonal, self.F, problem.core(problem.mu), frozen_scores=frozen,
                    zeta=zeta, beta=beta,
                )  # fmt: skip
                gap /= primal
            passes += 1
        coef = -zeta
        coef[np.arange(len(beta)), problem.y] = zeta.sum(axis=1) - beta
        self._set(coef)
        self.F = self.scores.T  # without the rounding of many steps
        return passes, gap

    def point(self) -> FrozenPoint:
        return FrozenPoint(self.coef, self.coef.sum(axis=0) if self.problem.fit_intercept else np.zeros(len(self.F)))


def _freeze_and_minimize(problem: OdmProblem, limits: Limits, inner: _Frozen) -> OdmSolution:
    """Freeze and minimise until T stands still."""

    def true_objective() -> float:
        return inner.half_norm + problem.loss(inner.scores)

    objectives, n_iter, gap, converged = [true_objective()], 0, np.inf, False
    while len(objectives) <= limits.max_outer and n_iter < limits.max_iter and not converged:
        closest = np.arange(len(problem.y)), problem.rivals(inner.scores)
        frozen = inner.scores[closest].astype(np.float64)
        tol = limits.tuning.common.inner_goal * limits.tol
        passes, gap = inner.solve(frozen, tol, limits.max_iter - n_iter, limits.seed + n_iter)
        n_iter += passes
        objectives.append(true_objective())
        converged = gap <= limits.tol and abs(objectives[-1] - objectives[-2]) <= limits.tol * objectives[-1]
    return OdmSolution(inner.point(), np.array(objectives), gap, np.nan, n_iter, converged)


def solve_odm_published(X: Rows, problem: OdmProblem, limits: Limits, start: LinearPoint | None = None) -> OdmSolution:
    """The linear machine, from zero or from the class vectors of ``start``."""
    return _freeze_and_minimize(problem, limits, _LinearFrozen(X, problem, start))


def solve_odm_published_kernel(
    rows: KernelRows, problem: OdmProblem, limits: Limits, start: FrozenPoint | None = None
) -> OdmSolution:
    """The kernel machine, from zero or from the coefficients of ``start``; `FrozenPoint` is the point it ends at.

    ``rows`` have the offset 1 if the machine has an intercept.
    """
    return _freeze_and_minimize(problem, limits, _KernelFrozen(rows, problem, start))
