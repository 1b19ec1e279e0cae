"""Stochastic gradients with variance reduction for the machine of Xu et al. (2017), their algorithm 1.

Problem: as in ``exact``.  An epoch takes the gradient at a snapshot and then n cheap steps (``_core/linear/svrg.hpp``).
What the printed algorithm needs to be right: the function of one sample holds n times its loss and the snapshot holds b
as well as W.  The published step is constant (`Constant`): since the hinge is not smooth it stalls, or diverges.  The
other one falls (`Adaptive`): an epoch that gains too little halves the step, one that raises the objective is undone as
well, and the others lengthen the step by a tenth.

Certificate: the subgradient of the losses at any W, b has duals 0 <= alpha_il <= cap_i (cap_i where the hinge is above
zero), and with V = sum_i x_i c_i', v = sum_i c_i (c_{i,y_i} = sum_l alpha_il, c_il = -alpha_il) every such alpha bounds
the optimum from below::

    D = sum alpha - ||V||^2 / (2 (k + 1)) - ||v||^2 / 2        (without an intercept v is not there)

So does every mixture.  After each epoch the subgradients at its end and at the machine of the mixture, V / (k + 1) and
v, are mixed in by as much as is best: the steps of Frank and Wolfe (1956), with the points of the epochs as a guide.
The run ends when the gap to D is small enough, or when nothing moves any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..._core import _ext
from ..._runtime.progress import print_line, report
from ..._types import Rows
from ...rows.arrays import core_rows
from ...rows.gram import row_blocks
from ..dual.state import relative_gap
from ..tuning import DEFAULT, Tuning


@dataclass(frozen=True)
class SVRGState:
    """Result of `solve_svrg`."""

    W: np.ndarray  # (k, d)
    b: np.ndarray  # (k,)
    objective: float
    n_iter: int  # epochs
    trajectory: np.ndarray  # objective before the first and after each epoch
    gap: float  # relative duality gap, certified


class Mixture:
    """Mixture of the duals of subgradients: its sum, V and v, and the bound D (head of the file)."""

    def __init__(self, X: Rows, y: np.ndarray, cap: np.ndarray, n_classes: int, fit_intercept: bool) -> None:
        self.X, self.y, self.cap, self.fit_intercept = X, y, cap, fit_intercept
        self.total, self.V, self.v = 0.0, np.zeros((n_classes, X.shape[1])), np.zeros(n_classes)
        self.bound = 0.0

    def machine(self) -> tuple[np.ndarray, np.ndarray]:
        """The W and b that belong to the duals."""
        return self.V / (len(self.v) + 1), self.v

    def add(self, W: np.ndarray, b: np.ndarray) -> None:
        """Mix in the duals of the subgradient at W, b."""
        total, V, v = -self.total, -self.V, -self.v  # the way from the mixture to them
        for rows in row_blocks(len(self.y), max(self.X.shape[1], len(b))):
            X, y = self.X[rows], self.y[rows]
            own = np.arange(len(y)), y
            F = X @ W.T + b
            alpha = self.cap[rows, None] * (1 - F[own][:, None] + F > 0)
            alpha[own] = 0
            c = -alpha
            c[own] = alpha.sum(axis=1)
            total += float(alpha.sum())
            V += (X.T @ c).T
            if self.fit_intercept:
                v += c.sum(axis=0)
        shrink = 1 / (len(v) + 1)
        slope = total - shrink * float(np.vdot(self.V, V)) - float(self.v @ v)
        curvature = shrink * float(np.vdot(V, V)) + float(v @ v)
        t = min(1.0, max(0.0, slope) / curvature) if curvature > 0 else float(slope > 0)
        self.total, self.V, self.v = self.total + t * total, self.V + t * V, self.v + t * v
        half_norm = 0.5 * (shrink * float(np.vdot(self.V, self.V)) + float(self.v @ self.v))
        self.bound = max(self.bound, self.total - half_norm)


def epoch(
    X: Rows,
    y: np.ndarray,
    cap: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    *,
    fit_intercept: bool,
    step: float,
    seed: int,
    decay: float = 0.0,
    first: int = 0,
    variance_reduction: bool = True,
) -> tuple[np.ndarray, np.ndarray, float]:
    """One epoch from W, b: the new W and b, and the objective there.  ``step=0`` only takes the objective.

    Step number t has the length ``step / (1 + decay (t + first))``; without variance reduction it is plain SGD.
    """
    return _ext.svrg_epoch(
        core_rows(X, np.float64), y, cap, W, b, fit_intercept=fit_intercept, eta=step, decay=decay, first=first,
        reduce=variance_reduction, seed=seed,
    )  # fmt: skip


def first_step(X: Rows, cap: np.ndarray, n_classes: int) -> float:
    """A step that the steepest sample allows: one over the penalty's curvature and n cap_i (||x_i||^2 + 1)."""
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return float(1 / (n_classes + 1 + len(cap) * (cap * (norms + 1)).max()))


@dataclass
class Constant:
    """The published step: every epoch counts, also one that raises the objective."""

    step: float
    share_done: float = 0.0
    over = False

    def accepts(self, value: float, new: float, tol: float) -> bool:
        """Whether the epoch from ``value`` to ``new`` counts."""
        self.over = not np.isfinite(new)  # diverged
        return not self.over


@dataclass
class Adaptive:
    """A step that falls where an epoch gains too little; several of these in a row end the run."""

    step: float
    tuning: Tuning
    halvings: int = 0

    @property
    def share_done(self) -> float:
        """How near the end is, from 0 to 1."""
        return self.halvings / self.tuning.common.patience

    @property
    def over(self) -> bool:
        """Whether nothing moves any more."""
        return self.halvings == self.tuning.common.patience

    def accepts(self, value: float, new: float, tol: float) -> bool:
        """Whether the epoch from ``value`` to ``new`` counts."""
        small = not (value - new) / value > 0.01 * tol
        self.halvings = self.halvings + 1 if small else 0
        self.step *= 0.5 if small else self.tuning.multi_margin.grow
        return new < value


def solve_svrg(
    X: Rows,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    *,
    learning_rate: float | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: SVRGState | None = None,
    verbose: int = 0,
    tuning: Tuning = DEFAULT,
) -> SVRGState:
    """Run epochs until the relative duality gap is ``tol``, or several halvings of the step gain next to nothing.

    ``learning_rate`` is the published constant step; None takes the one that adapts.
    """
    W, b = np.zeros((n_classes, X.shape[1])), np.zeros(n_classes)
    if state is not None and state.W.shape == W.shape:  # duals fit every number of features, a point only its own
        W, b = state.W, state.b if fit_intercept else b
    rule: Constant | Adaptive = (
        Adaptive(first_step(X, cap, n_classes), tuning) if learning_rate is None else Constant(learning_rate)
    )
    *_, value = epoch(X, y, cap, W, b, fit_intercept=fit_intercept, step=0.0, seed=seed)
    trajectory, mixture = [value], Mixture(X, y, cap, n_classes, fit_intercept)
    for n_iter in range(1, max_iter + 1):
        step = rule.step
        new_W, new_b, new = epoch(X, y, cap, W, b, fit_intercept=fit_intercept, step=step, seed=seed + n_iter)
        if rule.accepts(value, new, tol):
            W, b, value = new_W, new_b, new
        trajectory.append(value)
        mixture.add(new_W, new_b)
        mixture.add(*mixture.machine())
        gap = relative_gap(value, value - mixture.bound)
        if verbose:
            print_line(f"SVRG: {n_iter} epochs, objective {value:.6g}, relative gap {gap:.1e}, step {step:.1e}")
        report(max(n_iter / max_iter, rule.share_done))
        if gap <= tol or rule.over:
            break
    return SVRGState(W, b, value, n_iter, np.array(trajectory), gap)
