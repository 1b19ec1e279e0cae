"""What the dual solvers take and return: the problem, and plain arrays from which another solve can start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..._core import _ext
from ..._types import Rows

GAP_FLOOR = 1e-14  # relative gap that rounding allows


@dataclass(frozen=True)
class LinearProblem:
    """Rows and labels 0..k-1, the weight ``cap`` = C s_i of each loss, the loss, and whether there is an intercept.

    Losses: "max" (Crammer-Singer), "sum" (Weston-Watkins), "top" (the mean of the ``top_k`` largest hinges).
    """

    X: Rows
    y: np.ndarray  # (n,) int32
    cap: np.ndarray  # (n,)
    n_classes: int
    loss: str
    top_k: int = 1
    fit_intercept: bool = True

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, features, classes."""
        return self.X.shape[0], self.X.shape[1], self.n_classes

    def core(self) -> _ext.Problem:
        """What the core knows of it, but for the rows."""
        return _ext.Problem(self.y, self.cap, self.n_classes, self.loss, top_k=self.top_k)


class DualLists(NamedTuple):
    """The duals that are not zero, sample by sample, as CSR arrays."""

    start: np.ndarray  # (n + 1,) int64
    rivals: np.ndarray  # int32
    alpha: np.ndarray

    @classmethod
    def zero(cls, n: int) -> DualLists:
        """All duals of n samples zero."""
        return cls(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))

    @classmethod
    def of_table(cls, alpha: np.ndarray) -> DualLists:
        """From a table (n, k)."""
        lists = sparse.csr_array(alpha)
        return cls(lists.indptr.astype(np.int64), lists.indices.astype(np.int32), lists.data)

    def table(self, n_classes: int) -> np.ndarray:
        """The table (n, k)."""
        shape = len(self.start) - 1, n_classes
        table: np.ndarray = sparse.csr_array((self.alpha, self.rivals, self.start), shape=shape).toarray()
        return table


@dataclass(frozen=True)
class DualState:
    """A dual point with its primal point and certificate; plain arrays, ready to start the next solve from."""

    W: np.ndarray  # (k, d)
    b: np.ndarray  # (k,) intercepts, f = W x + b
    duals: DualLists
    multipliers: np.ndarray  # (k,) of the free intercept: f = W (x - mean) + multipliers
    cap: np.ndarray  # (n,) C s_i that the duals belong to
    objective: float
    gap: float  # relative duality gap (P - D)/P, certified
    n_iter: int
    width: float = 0.0  # above 0: no list of duals, which are a function of W, b and this (solvers/blocks)
    score_size: float = np.inf  # what the terms of a score add up to, where all was in double precision

    def rescaled(self, cap: np.ndarray) -> DualState:
        """The same point for other weights: duals stay feasible when they shrink or grow with their bounds."""
        start, rivals, alpha = self.duals
        ratio = dual_rescaling(cap / self.cap, float(alpha.sum()), float(np.square(self.W, dtype=np.float64).sum()))
        return replace(self, duals=DualLists(start, rivals, alpha * np.repeat(ratio, np.diff(start))), cap=cap)


def cold_start(shape: tuple[int, int, int], cap: np.ndarray) -> DualState:
    """All duals zero, for n rows, d features and k classes."""
    n, d, k = shape
    return DualState(np.zeros((k, d)), np.zeros(k), DualLists.zero(n), np.zeros(k), cap, np.inf, np.inf, 0)


def dual_rescaling(ratio: np.ndarray, dual_sum: float, squared_norm: float) -> np.ndarray:
    """Factors of the duals of an earlier solve where their bounds have changed by ``ratio``.

    ``dual_sum`` is the sum of the duals and ``squared_norm`` is ``||W||^2``.  Where all bounds grow, the duals grow at
    most to the best point of their ray, ``dual_sum / squared_norm``: separable rows have one solution for all large C.
    """
    if ratio.min() < 1 or squared_norm <= 0:
        return ratio
    return np.minimum(ratio, max(1.0, dual_sum / squared_norm))


def best_of_both(old: DualState, new: DualState) -> DualState:
    """The state with the lower objective, its gap taken to the higher of both lower bounds."""
    best = min(old, new, key=lambda s: s.objective)
    bound = max(lower_bound(s.objective, s.gap) for s in (old, new))
    return replace(best, gap=relative_gap(best.objective, best.objective - bound), n_iter=new.n_iter)


def bound_below(objective: float, gap: float) -> float:
    """The bound that a gap stands for, less the rounding of this difference, which counts where both are large."""
    return objective - gap - 4 * np.finfo(float).eps * objective


def lower_bound(objective: float, gap: float) -> float:
    """The bound that a relative gap stands for, less the rounding of both, which counts where the gap is near one."""
    return max(0.0, bound_below(objective, objective * gap))


def relative_gap(objective: float, gap: float) -> float:
    """The relative gap: no rounding takes it below zero, and zero is a lower bound of every objective."""
    return min(1.0, max(0.0, gap) / max(objective, np.finfo(float).tiny)) if np.isfinite(gap) else 1.0


@dataclass
class KernelState:
    """Result of `solve_kernel_dual`, and where another call may start.

    ``alpha`` (n, k) are the duals, zero at the own class, ``b`` (k,) the intercepts; ``objective`` is the primal
    value, ``gap`` the certified relative duality gap, ``n_iter`` the passes over working sets, ``scores`` (k, n) those
    of the training rows without b, ``n_updates`` the block steps, ``n_rows_computed`` the rows of the kernel matrix
    that were computed.  The published class vectors and b are ``stretch`` times those of the duals.  ``double``: a
    start from a solve that ended in float64.
    """

    alpha: np.ndarray
    b: np.ndarray
    objective: float = np.inf
    gap: float = np.inf
    n_iter: int = 0
    scores: np.ndarray | None = None
    n_updates: int = 0
    n_rows_computed: int = 0
    stretch: float = 1.0
    double: bool = False

    def published(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of the rows, and intercepts, to which objective and gap belong."""
        return self.stretch * coefficients(self.alpha, y), self.stretch * self.b

    def rescaled(self, ratio: np.ndarray, y: np.ndarray) -> KernelState:
        """Where to start when the bounds of the duals have changed by these ratios."""
        assert self.scores is not None
        size = float(np.vdot(coefficients(self.alpha, y).T, self.scores))
        alpha = self.alpha * dual_rescaling(ratio, float(self.alpha.sum()), size)[:, None]
        return KernelState(alpha, self.b, double=self.scores.dtype == np.float64)


def coefficients(alpha: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients c of the rows from the duals of the rivals."""
    c = -alpha
    c[np.arange(len(y)), y] = alpha.sum(axis=1)
    return c
