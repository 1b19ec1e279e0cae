"""Stochastic gradients with variance reduction for the machine of Xu et al. (2017), their algorithm 1.

Problem: as in ``multi_margin``.  An epoch takes the gradient at a snapshot and then n cheap steps (``_core/svrg.hpp``).
What the printed algorithm needs to be right: the function of one sample holds n times its loss, the snapshot holds b as
well as W, and the step must fall, since the hinge is not smooth and a constant step stalls.  Here an epoch that gains
too little halves the step, one that raises the objective is undone as well, and the others lengthen it by a tenth.
There is no certificate: for the exact optimum use ``multi_margin``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skmargin._core import _ext

from .dual_blocks import _arrays
from .progress import say, tell

PATIENCE = 8  # halvings in a row that end the run


@dataclass(frozen=True)
class SVRGState:
    """Result of `solve_svrg`."""

    W: np.ndarray  # (k, d)
    b: np.ndarray  # (k,)
    objective: float
    n_iter: int  # epochs
    trajectory: np.ndarray  # objective before the first and after each epoch
    last_gain: float  # of an epoch, relative
    converged: bool
    gap: None = None


def epoch(
    X: Any,
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
    run: Any = _ext.csr_epoch if sparse.issparse(X) else _ext.dense_epoch
    out: tuple[np.ndarray, np.ndarray, float] = run(
        *_arrays(X, np.float64), y, cap, W, b, fit_intercept, step, decay, first, variance_reduction, seed
    )
    return out


def first_step(X: Any, cap: np.ndarray, n_classes: int) -> float:
    """A step that the steepest sample allows: one over the penalty's curvature and n cap_i (||x_i||^2 + 1)."""
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return float(1 / (n_classes + 1 + len(cap) * (cap * (norms + 1)).max()))


def solve_svrg(
    X: Any,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: SVRGState | None = None,
    verbose: int = 0,
) -> SVRGState:
    """Run epochs until eight halvings of the step in a row gain less than a hundredth of ``tol`` each."""
    W, b = np.zeros((n_classes, X.shape[1])), np.zeros(n_classes)
    if state is not None and state.W.shape == W.shape:  # duals fit every number of features, a point only its own
        W, b = state.W, state.b if fit_intercept else b
    step = first_step(X, cap, n_classes)
    *_, value = epoch(X, y, cap, W, b, fit_intercept=fit_intercept, step=0.0, seed=seed)
    trajectory, halvings = [value], 0
    for n_iter in range(1, max_iter + 1):
        new_W, new_b, new = epoch(X, y, cap, W, b, fit_intercept=fit_intercept, step=step, seed=seed + n_iter)
        gain = (value - new) / value
        small = not gain > 0.01 * tol
        if new < value:
            W, b, value = new_W, new_b, new
        trajectory.append(value)
        if verbose:
            say(f"SVRG: {n_iter} epochs, objective {value:.6g}, step {step:.1e}")
        halvings = halvings + 1 if small else 0
        tell(max(n_iter / max_iter, halvings / PATIENCE))
        step *= 0.5 if small else 1.1
        if halvings == PATIENCE:
            break
    return SVRGState(W, b, value, n_iter, np.array(trajectory), gain, halvings == PATIENCE)
