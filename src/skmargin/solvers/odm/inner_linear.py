"""Inner problems of the linear optimal margin distribution machine (outer.py), by two gears.

`LinearInner`   dual block ascent (_core/linear/block_ascent.hpp) with the exact block of _core/losses/odm.hpp:
                dense and sparse rows, any number of parameters
`NewtonInner`   a proximal term in the duals smooths the kinks of Q, where rivals tie; the smooth problem is solved by
                Newton steps with its exact Hessian, and the centre of the proximal term moves
                (_core/newton/newton.hpp): dense rows and few parameters, to any accuracy

Both start from duals, certify a gap and return duals, so that one can go on where the other ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..._core import _ext
from ..._runtime.threads import blas_threads
from ..dual.linear import (
    COLD_STEPS,
    ROUNDING,
    SINGLE_TOL,
    TINY,
    _arrays,
    _suitable_rows,
    moments,
    newton_step,
    single_suits,
)
from .outer import Descent, Effort, Machine, best_of

Duals = tuple[np.ndarray, np.ndarray, np.ndarray]  # CSR arrays: row starts, rivals, numbers
STRONG = 5.0  # mean of cap_i ||x_i||^2 from which Newton steps are cheaper than block ascent
NEWTON_PARAMETERS = 1000  # largest d k for Newton steps
DENSE_NUMBERS = 2e7  # of sparse rows that are made dense for them


@dataclass(frozen=True)
class LinearPoint:
    """Class vectors, intercepts and the duals they came from, for the weights ``cap``."""

    W: np.ndarray
    b: np.ndarray
    duals: Duals
    multipliers: np.ndarray  # intercepts of the centred features
    y: np.ndarray
    cap: np.ndarray

    def rescaled(self, machine: Machine) -> Duals:
        """Duals for other weights."""
        first, rival, alpha = self.duals
        return first, rival, alpha * np.repeat(machine.cap / self.cap, np.diff(first))


class LinearInner:
    """Block ascent, on float32 rows while they are exact enough."""

    def __init__(self, X: Any, machine: Machine, tol: float, seed: int, start: LinearPoint | None = None) -> None:
        self.machine, self.seed, self.n_iter = machine, seed, 0
        self.X = X = _suitable_rows(X)
        mean, square = moments(X)
        self.mean = mean if machine.fit_intercept else None
        small = X.size < 3e5 and not sparse.issparse(X)
        single = tol >= SINGLE_TOL and not small and single_suits(mean, square)
        self.dtype: Any = np.float32 if single else np.float64
        self.rows = _arrays(X, self.dtype)
        self.budget = newton_price(X, machine)
        self.duals = no_duals(len(machine.y))
        self.multipliers = np.zeros(machine.n_classes)
        if start is not None:
            self.duals, self.multipliers = start.rescaled(machine), machine.intercepts(start.multipliers)
            self._set(start.W, machine.intercepts(start.b))

    def _set(self, W: np.ndarray, b: np.ndarray) -> None:
        self.W, self.b = W, b
        self.half_norm = 0.5 * float(np.vdot(W, W))
        self.scores = self.X @ W.T.astype(self.X.dtype if self.dtype == np.float32 else np.float64) + b

    def solve(self, mu: float, rivals: np.ndarray, tol: float, share: float, reference: float, max_iter: int) -> bool:
        """See `Inner`."""
        machine = self.machine
        call = _ext.csr_band if sparse.issparse(self.X) else _ext.dense_band
        while True:
            single = self.dtype == np.float32
            out = call(
                *self.rows, machine.y, machine.cap, machine.n_classes, float(mu), float(machine.theta), rivals,
                self.mean, self.multipliers, *with_rivals(self.duals, rivals), float(tol),
                max(1, max_iter - self.n_iter), float(self.budget), bool(single or tol <= ROUNDING), float(share),
                float(reference), self.seed + self.n_iter,
            )  # fmt: skip
            self.duals, self.multipliers = out["duals"], out["multipliers"]
            self.objective, self.gap = out["primal"], out["gap"]
            self.n_iter += out["passes"]
            self.budget -= out["work"]
            self._set(out["W"], out["b"])
            if out["converged"] or not single or self.n_iter >= max_iter or self.budget <= 0:
                return bool(out["converged"])
            self.dtype, self.rows = np.float64, _arrays(self.X, np.float64)

    def next_gear(self) -> NewtonInner | None:
        """Newton steps, after block ascent has spent what they are expected to cost."""
        if np.isinf(newton_price(self.X, self.machine)):
            return None
        gear = NewtonInner(self.X, self.machine, self.seed, self.point())
        gear.n_iter = self.n_iter
        return gear

    def point(self) -> LinearPoint:
        """Where the last solve ended."""
        return LinearPoint(self.W, self.b, self.duals, self.multipliers, self.machine.y, self.machine.cap)

    def zero(self) -> LinearPoint:
        """See `Inner`."""
        return linear_zero(self.machine, self.X.shape[1])


class NewtonInner:
    """Semismooth Newton steps on dense rows."""

    of_duals = False  # whether the class vectors are those of the duals

    def __init__(self, X: Any, machine: Machine, seed: int = 0, start: LinearPoint | None = None) -> None:
        self.X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        self.machine, self.seed, self.n_iter = machine, seed, 0
        self.duals: Duals | None = None
        self.b = np.zeros(machine.n_classes)
        if start is not None:
            self.duals = start.rescaled(machine)
            self._set(start.W, machine.intercepts(start.b))

    def _set(self, W: np.ndarray, b: np.ndarray) -> None:
        self.W, self.b = W, b
        self.half_norm = 0.5 * float(np.vdot(W, W))
        self.scores = self.X @ W.T + b

    def solve(self, mu: float, rivals: np.ndarray, tol: float, share: float, reference: float, max_iter: int) -> bool:
        """See `Inner`."""
        machine = self.machine
        duals = None if self.duals is None else with_rivals(self.duals, rivals)
        with blas_threads(1):
            out = _ext.newton_band(
                self.X, machine.y, machine.cap, machine.n_classes, float(mu), float(machine.theta), rivals,
                machine.fit_intercept, float(tol), float(share), float(reference), max(1, max_iter - self.n_iter),
                duals, self.b, self.seed, self.of_duals,
            )  # fmt: skip
        self.duals = out["indptr"], out["classes"], out["alpha"]
        self.objective, self.gap = out["objective"], max(0.0, out["gap"])
        self.n_iter += out["n_newton"]
        self._set(out["W"], out["b"])
        return bool(out["converged"])

    def next_gear(self) -> None:
        """None: what Newton steps do not reach is beyond rounding."""

    def point(self) -> LinearPoint:
        """Where the last solve ended."""
        assert self.duals is not None
        multipliers = self.b + self.W @ self.X.mean(axis=0) if self.machine.fit_intercept else self.b
        return LinearPoint(self.W, self.b, self.duals, multipliers, self.machine.y, self.machine.cap)

    def zero(self) -> LinearPoint:
        """See `Inner`."""
        return linear_zero(self.machine, self.X.shape[1])


def linear_zero(machine: Machine, d: int) -> LinearPoint:
    """Class vectors, intercepts and duals that are all zero."""
    b = np.zeros(machine.n_classes)
    return LinearPoint(np.zeros((len(b), d)), b, no_duals(len(machine.y)), b, machine.y, machine.cap)


def no_duals(n: int) -> Duals:
    """Duals that are all zero."""
    return np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)


def with_rivals(duals: Duals, rivals: np.ndarray) -> Duals:
    """Duals for other fixed rivals: negative ones go over to the new rival, or to zero if that has a dual already."""
    start, cls, alpha = duals
    if len(rivals) == 0:
        return start, cls, np.maximum(0, alpha)
    row = np.repeat(np.arange(len(rivals)), np.diff(start))
    fixed = rivals[row]
    taken = np.zeros(len(rivals), dtype=bool)
    taken[row[(cls == fixed) & (alpha != 0)]] = True
    stale = (alpha < 0) & (cls != fixed)
    return start, np.where(stale & ~taken[row], fixed, cls), np.where(stale & taken[row], 0.0, alpha)


def newton_price(X: Any, machine: Machine) -> float:
    """What block ascent may spend before Newton steps take over; infinite where there are too many parameters."""
    (n, d), k = X.shape, machine.n_classes
    if d * k > NEWTON_PARAMETERS or (sparse.issparse(X) and n * d > DENSE_NUMBERS):
        return np.inf
    return COLD_STEPS * newton_step(n, d, k)


def newton_pays(X: Any, machine: Machine) -> bool:
    """Few parameters, and tiny or with losses that are strong against the penalty: there block ascent is slow."""
    if X.shape[0] * X.shape[1] * machine.n_classes <= TINY:
        return True
    if sparse.issparse(X) or np.isinf(newton_price(X, machine)):
        return False
    return bool(machine.cap @ np.einsum("ij,ij->i", X, X) >= STRONG * len(machine.y))


def solve_linear(X: Any, machine: Machine, effort: Effort, start: LinearPoint | None = None) -> Descent:
    """Block ascent first; ``start`` belongs to the same rows and labels."""
    return best_of(machine, effort, False, start, lambda first: LinearInner(X, machine, effort.tol, effort.seed, first))


def solve_newton(X: Any, machine: Machine, effort: Effort, start: LinearPoint | None = None) -> Descent:
    """Newton steps at once; ``start`` belongs to the same rows and labels.  Tiny problems are solved to rounding."""
    polish = X.shape[0] * X.shape[1] * machine.n_classes <= TINY
    return best_of(machine, effort, polish, start, lambda first: NewtonInner(X, machine, effort.seed, first))
