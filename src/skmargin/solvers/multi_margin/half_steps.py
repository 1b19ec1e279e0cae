"""The convex half step of the machine with unlabelled rows: the machine of Xu et al. (2017) for given labels.

One class for each way to solve it, each with the three methods of `ConvexSteps`; that for kernels, which needs what an
estimator knows of its kernel, is in ``estimators/_semi_supervised.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..._types import Rows
from ..dual.state import DualLists, DualState, lower_bound
from .exact import solve_multi_margin
from .svrg import solve_svrg


@dataclass(frozen=True)
class Step:
    """A machine, its objective and a bound below the minimum for its labels, and where the next one starts."""

    W: np.ndarray  # (k, d) class vectors, or (n, k) coefficients of the rows
    b: np.ndarray  # (k,)
    objective: float
    bound: float
    n_iter: int
    state: Any


class ConvexSteps(Protocol):
    """A solver of the convex problem."""

    def first(self, rows: np.ndarray, labels: np.ndarray, caps: np.ndarray) -> Step:
        """The machine for some of the rows; labels and weights are those of all."""

    def next(self, labels: np.ndarray, caps: np.ndarray, last: Step, changed: np.ndarray) -> Step:
        """The machine for all rows, from the last one; the rows marked have new labels."""

    def kept(self, last: Step, worse: Step, objective: float) -> Step:
        """What to go on from where the last machine has this smaller objective for the labels of the next one."""

    def scores(self, step: Step, rows: np.ndarray) -> np.ndarray:
        """Scores (m, k) of some of the rows."""


class LinearSteps:
    """What both ways to solve a linear machine share."""

    def __init__(self, X: Rows, n_classes: int, **options: Any) -> None:
        self.X, self.n_classes, self.options = X, n_classes, options

    def scores(self, step: Step, rows: np.ndarray) -> np.ndarray:
        """Scores of some of the rows."""
        return np.asarray(self.X[rows] @ step.W.T) + step.b

    def kept(self, last: Step, worse: Step, objective: float) -> Step:
        """The last class vectors, with the bound for the new labels."""
        return replace(worse, W=last.W, b=last.b, objective=objective)

    def _some(self, rows: np.ndarray) -> Rows:
        return self.X if len(rows) == self.X.shape[0] else self.X[rows]


class DualSteps(LinearSteps):
    """By `solve_multi_margin`, from the duals of the last machine; a row with a new label restarts at zero."""

    def first(self, rows: np.ndarray, labels: np.ndarray, caps: np.ndarray) -> Step:
        """For some of the rows."""
        found = self._solve(self._some(rows), labels[rows], caps[rows], None)
        return replace(found, state=_spread(found.state, rows, caps / (self.n_classes + 1)))

    def next(self, labels: np.ndarray, caps: np.ndarray, last: Step, changed: np.ndarray) -> Step:
        """For all rows."""
        return self._solve(self.X, labels, caps, _forget(last.state, changed))

    def _solve(self, X: Rows, labels: np.ndarray, caps: np.ndarray, start: DualState | None) -> Step:
        found = solve_multi_margin(X, labels, caps, self.n_classes, state=start, **self.options)
        return Step(found.W, found.b, found.objective, lower_bound(found.objective, found.gap), found.n_iter, found)


class StochasticSteps(LinearSteps):
    """By `solve_svrg`, from the class vectors of the last machine."""

    def first(self, rows: np.ndarray, labels: np.ndarray, caps: np.ndarray) -> Step:
        """For some of the rows."""
        return self._solve(self._some(rows), labels[rows], caps[rows], None)

    def next(self, labels: np.ndarray, caps: np.ndarray, last: Step, changed: np.ndarray) -> Step:
        """For all rows."""
        return self._solve(self.X, labels, caps, last)

    def _solve(self, X: Rows, labels: np.ndarray, caps: np.ndarray, last: Step | None) -> Step:
        start = None if last is None else replace(last.state, W=last.W, b=last.b)
        found = solve_svrg(X, labels, caps, self.n_classes, state=start, **self.options)
        return Step(found.W, found.b, found.objective, lower_bound(found.objective, found.gap), found.n_iter, found)


def _spread(state: DualState, rows: np.ndarray, cap: np.ndarray) -> DualState:
    """Duals of some rows as duals of all rows, zero elsewhere."""
    sizes = np.zeros(len(cap), dtype=np.int64)
    sizes[rows] = np.diff(state.duals.start)
    return replace(state, duals=state.duals._replace(start=np.r_[0, np.cumsum(sizes)]), cap=cap)


def _forget(state: DualState, rows: np.ndarray) -> DualState:
    """The same duals, set to zero in the rows marked."""
    old = state.duals
    sizes = np.diff(old.start)
    kept = np.repeat(~rows, sizes)
    start = np.r_[0, np.cumsum(np.where(rows, 0, sizes))]
    return replace(state, duals=DualLists(start, old.rivals[kept], old.alpha[kept]))
