"""The machine of Lei et al. (2015) by the published alternation (their Algorithm 1), for comparison.

For p <= 2 the penalty is the least of many weighted ones (their equation 8)::

    1/2 ||W||_{2,p}^2 = min_beta 1/2 sum_l ||w_l||^2 / beta_l,   beta >= 0,   ||beta||_{p/(2-p)} <= 1

and the algorithm takes turns, from beta_l = k^(-(2-p)/p) or the weights of an earlier solution::

    W, alpha   the machine with the weights beta (problem 14): w_l = beta_l v_l, by dual block ascent
    beta_l     ||w_l||^(2-p) (sum_j ||w_j||^p)^((p-2)/p)       (equation 14)

It ends on the gap between the objective of W and the completely dualised problem at alpha (problem 11), as the paper
proposes: not on that of the weighted machine, which vanishes in every round.  For p <= 2 the objective falls in every
round, log beta by the factor 2 - p nearer to its limit; a class with w_l = 0 never gets a vector again.  For p > 2
equation 8 is no reformulation, and the same steps, as the paper took them up to p = 10, may raise the objective.
Rounds that bring the gap no nearer end the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..._core import _ext
from ..._runtime.progress import print_line, report
from ..._types import Rows
from ...rows.arrays import core_rows, moments, suitable_storage
from ..dual.state import DualLists, DualState, bound_below, coefficients, relative_gap
from ..tuning import DEFAULT, Tuning
from .ascent import CoreRows, LpKernelState, Matrix, as_core_matrix
from .interior_point import class_weights, half_square
from .margin_loss import HINGE, MarginLoss

LARGEST_WEIGHT = 1e12  # of a class, and its inverse the smallest: equation 14 gives zero or infinity where w_l = 0


class _View(Protocol):
    """Rows of features, or of a kernel matrix."""

    rows: CoreRows
    mean: np.ndarray | None

    def machine(self, out: _ext.Result) -> np.ndarray:
        """Class vectors (k, d), or coefficients of the rows (n, k)."""

    def lengths_and_scores(self, machine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``||w_l||`` (k,), and the scores (n, k) without the intercepts."""


class _Features:
    def __init__(self, X: Rows, mean: np.ndarray | None) -> None:
        self.X, self.mean = X, mean
        self.rows: CoreRows = core_rows(X, np.float64)

    def machine(self, out: _ext.Result) -> np.ndarray:
        return np.asarray(out.W)

    def lengths_and_scores(self, machine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.norm(machine, axis=1), np.asarray(self.X @ machine.T)


class _KernelMatrix:
    def __init__(self, K: Matrix, times: Callable[[np.ndarray], np.ndarray], y: np.ndarray, intercept: bool) -> None:
        self.rows: CoreRows = as_core_matrix(K)
        self.times, self.y = times, y
        self.mean = np.zeros(len(y)) if intercept else None

    def machine(self, out: _ext.Result) -> np.ndarray:
        alpha = DualLists(*out.duals).table(len(out.b))
        return coefficients(alpha, self.y) * out.W[:, 0]

    def lengths_and_scores(self, machine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F = self.times(machine)
        return np.sqrt(np.maximum(np.einsum("il,il->l", machine, F), 0.0)), F


@dataclass(frozen=True)
class PublishedProblem:
    """Labels, weights C s_i of the losses, the norm and the loss; when to end."""

    y: np.ndarray
    cap: np.ndarray
    n_classes: int
    p: float
    loss: MarginLoss = HINGE
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 10_000
    seed: int = 0
    verbose: int = 0


def solve_published(
    X: Rows, problem: PublishedProblem, state: DualState | None = None, tuning: Tuning = DEFAULT
) -> tuple[DualState, np.ndarray]:
    """The point of the last round for rows ``X``, with its certificate, and the objectives of all rounds."""
    X = suitable_storage(X, tuning)
    view = _Features(X, moments(X)[0] if problem.fit_intercept else None)
    return _alternate(problem, view, state, tuning.common.patience)


def solve_published_kernel(
    K: Matrix,
    times: Callable[[np.ndarray], np.ndarray],
    problem: PublishedProblem,
    state: LpKernelState | None = None,
    tuning: Tuning = DEFAULT,
) -> tuple[LpKernelState, np.ndarray]:
    """The same for a kernel matrix in float64; ``times`` multiplies it with coefficients of the rows (n, k)."""
    view = _KernelMatrix(K, times, problem.y, problem.fit_intercept)
    found, objectives = _alternate(problem, view, state, tuning.common.patience)
    return LpKernelState(**vars(found)), objectives


def next_weights(lengths: np.ndarray, p: float) -> np.ndarray:
    """Equation 14 from the lengths of the class vectors."""
    with np.errstate(over="ignore", divide="ignore"):
        beta: np.ndarray = 1 / class_weights(lengths[:, None], p)
    return np.clip(beta, 1 / LARGEST_WEIGHT, LARGEST_WEIGHT)


def _alternate(
    problem: PublishedProblem, view: _View, state: DualState | None, patience: int
) -> tuple[DualState, np.ndarray]:
    p, k, cap = problem.p, problem.n_classes, problem.cap
    duals, b, beta = DualLists.zero(len(cap)), np.zeros(k), np.full(k, float(k) ** ((p - 2) / p))
    if state is not None:
        state = state.rescaled(cap)
        duals, b, beta = state.duals, state.multipliers, next_weights(view.lengths_and_scores(state.W)[0], p)
    core = problem.loss.problem(problem.y, cap, k)

    def ascend(tol: float, passes: int, q: float, beta: np.ndarray | None) -> _ext.Result:
        return _ext.block_norm_ascent(
            view.rows, core, _ext.Options(tol=tol, max_iter=passes, seed=problem.seed + n_iter), q=q, b=b, duals=duals,
            mean=view.mean, fit_intercept=problem.fit_intercept, class_weights=beta,
        )  # fmt: skip

    bound, n_iter, objectives, gaps = 0.0, 0, [], []
    while True:
        out = ascend(0.1 * problem.tol, problem.max_iter - n_iter, 2.0, beta)
        duals, b, n_iter = DualLists(*out.duals), out.multipliers, n_iter + out.n_iter
        machine = view.machine(out)
        lengths, F = view.lengths_and_scores(machine)
        losses = problem.loss.value(problem.loss.excess(F + out.b, problem.y))
        objectives.append(half_square(lengths[:, None], p) + float(cap @ losses))
        dualised = ascend(problem.tol, 0, p / (p - 1), None)  # no pass: the value of problem 11 at these duals
        bound = max(bound, bound_below(dualised.objective, dualised.gap))
        gaps.append(relative_gap(objectives[-1], objectives[-1] - bound))
        if problem.verbose:
            print_line(f"round {len(gaps)}: {n_iter} passes, objective {objectives[-1]:.6g}, gap {gaps[-1]:.1e}")
        report()
        stuck = len(gaps) > patience and min(gaps[-patience:]) > 0.9 * min(gaps[:-patience])
        if gaps[-1] <= problem.tol or n_iter >= problem.max_iter or stuck or not lengths.any():
            break
        beta = next_weights(lengths, p)
    found = DualState(machine, out.b - out.b.mean(), duals, b, cap, objectives[-1], gaps[-1], n_iter)
    return found, np.array(objectives)
