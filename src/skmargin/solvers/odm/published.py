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
from scipy import sparse

from ..._core import _ext
from ...rows.kernel_rows import KernelRows
from ..dual.linear import _arrays
from .inner_linear import LinearPoint, no_duals
from .outer import FLOOR, Descent, Effort, Machine


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

    def __init__(self, X: Any, machine: Machine, start: LinearPoint | None) -> None:
        self.machine, self.d, k = machine, X.shape[1], machine.n_classes
        self.X = _with_constant(X) if machine.fit_intercept else X
        self.rows = _arrays(self.X, np.float64)
        self.duals = np.zeros((X.shape[0], k)), np.zeros(X.shape[0])
        d = self.X.shape[1]
        self._set(np.zeros((k, d)) if start is None else np.column_stack([start.W, start.b])[:, :d])

    def _set(self, W: np.ndarray) -> None:
        self.W, self.scores, self.half_norm = W, self.X @ W.T, 0.5 * float(np.vdot(W, W))

    def solve(self, frozen: np.ndarray, tol: float, max_passes: int, seed: int) -> tuple[int, float]:
        machine = self.machine
        call = _ext.csr_paper if sparse.issparse(self.X) else _ext.dense_paper
        out = call(
            *self.rows, machine.y, machine.cap, machine.n_classes, float(machine.mu), float(machine.theta), frozen,
            *self.duals, tol, max_passes, seed,
        )  # fmt: skip
        self.duals = out["zeta"], out["beta"]
        self._set(out["W"])
        return out["passes"], out["gap"] / out["primal"]

    def point(self) -> LinearPoint:
        machine, W = self.machine, self.W
        b = W[:, self.d].copy() if machine.fit_intercept else np.zeros(machine.n_classes)
        return LinearPoint(W[:, : self.d], b, no_duals(len(machine.y)), b, machine.y, machine.cap)


@dataclass(frozen=True)
class FrozenPoint:
    """Coefficients (n, k) of the rows of a kernel machine, and its intercepts."""

    coef: np.ndarray
    b: np.ndarray


class _KernelFrozen:
    """Rows of a kernel matrix, one added to its values if there is an intercept; those not kept are computed again."""

    def __init__(self, rows: KernelRows, machine: Machine, start: FrozenPoint | None) -> None:
        if rows.dtype != np.float64:
            rows.promote()
        self.rows, self.machine = rows, machine
        n, k = rows.n, machine.n_classes
        rows.keep(np.arange(n))
        self.diagonal = np.maximum(0.0, rows.diagonal)
        self.F, self.duals = np.zeros((k, n)), (np.zeros((n, k)), np.zeros(n))
        self._set(np.zeros((n, k)) if start is None else start.coef)

    def _set(self, coef: np.ndarray) -> None:
        F = np.zeros_like(self.F)
        self.rows.add(F, np.arange(self.rows.n), coef)
        self.coef, self.scores, self.half_norm = coef, F.T, 0.5 * float(np.vdot(coef, F.T))

    def solve(self, frozen: np.ndarray, tol: float, max_passes: int, seed: int) -> tuple[int, float]:
        machine, rng = self.machine, np.random.default_rng(seed)
        zeta, beta = self.duals
        passes, gap = 0, np.inf
        while passes < max_passes and gap > tol:
            order = rng.permutation(self.rows.n)
            for part, matrix, place in self.rows.blocks(order):
                slot = np.full(self.rows.n, -1)
                slot[order[part]] = place
                primal, gap = _ext.kernel_paper(
                    matrix, order[part], slot, self.diagonal, self.F, machine.y, machine.cap, float(machine.mu),
                    float(machine.theta), frozen, zeta, beta,
                )  # fmt: skip
                gap /= primal
            passes += 1
        coef = -zeta
        coef[np.arange(len(beta)), machine.y] = zeta.sum(axis=1) - beta
        self._set(coef)
        self.F = self.scores.T  # without the rounding of many steps
        return passes, gap

    def point(self) -> FrozenPoint:
        return FrozenPoint(self.coef, self.coef.sum(axis=0) if self.machine.fit_intercept else np.zeros(len(self.F)))


def _freeze_and_minimize(machine: Machine, effort: Effort, inner: _Frozen) -> Descent:
    """Freeze and minimise until T stands still."""

    def true_objective() -> float:
        return inner.half_norm + machine.loss(inner.scores)

    objectives, n_iter, gap, converged = [true_objective()], 0, np.inf, False
    while len(objectives) <= effort.max_outer and n_iter < effort.max_iter and not converged:
        closest = np.arange(len(machine.y)), machine.rivals(inner.scores)
        frozen = inner.scores[closest].astype(np.float64)
        passes, gap = inner.solve(frozen, FLOOR * effort.tol, effort.max_iter - n_iter, effort.seed + n_iter)
        n_iter += passes
        objectives.append(true_objective())
        converged = gap <= effort.tol and abs(objectives[-1] - objectives[-2]) <= effort.tol * objectives[-1]
    return Descent(inner.point(), np.array(objectives), gap, np.nan, n_iter, converged)


def solve_paper(X: Any, machine: Machine, effort: Effort, start: LinearPoint | None = None) -> Descent:
    """The linear machine, from zero or from the class vectors of ``start``."""
    return _freeze_and_minimize(machine, effort, _LinearFrozen(X, machine, start))


def solve_kernel_paper(rows: KernelRows, machine: Machine, effort: Effort, start: FrozenPoint | None = None) -> Descent:
    """The kernel machine, from zero or from the coefficients of ``start``; `FrozenPoint` is the point it ends at.

    ``rows`` have the offset 1 if the machine has an intercept.
    """
    return _freeze_and_minimize(machine, effort, _KernelFrozen(rows, machine, start))


def _with_constant(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
