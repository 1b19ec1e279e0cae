"""The semismooth Newton gear of the linear machines (_core/newton/newton.hpp): few unknowns, to any accuracy."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..._core import _ext
from ..._runtime.progress import print_line
from ..._runtime.threads import blas_threads
from .state import DualLists, DualState, LinearProblem, best_of_both, relative_gap


def newton_steps(
    problem: LinearProblem, start: DualState, mean: np.ndarray, tol: float, max_iter: int, seed: int, verbose: int
) -> DualState:
    """Newton steps from the duals of block passes; the best of both.

    ``mean`` is where the block passes centre the features: there its intercepts are their multipliers.
    """
    X = problem.X.toarray() if sparse.issparse(problem.X) else problem.X
    with blas_threads(1):
        out = _ext.newton(
            np.ascontiguousarray(X, dtype=np.float64), problem.y, problem.cap, problem.n_classes, problem.loss,
            problem.top_k, problem.fit_intercept, tol, max_iter,
            tuple(start.duals) if len(start.duals.alpha) else None, start.b, seed,
        )  # fmt: skip
    if not np.isfinite(out["objective"]):  # numbers beyond double precision on the way
        return start
    gap = relative_gap(out["objective"], out["gap"])
    if verbose:
        print_line(f"Newton: {out['n_newton']} steps, objective {out['objective']:.6g}, relative gap {gap:.1e}")
    duals = DualLists(out["indptr"], out["classes"], out["alpha"])
    found = DualState(
        out["W"], out["b"], duals, out["b"] + out["W"] @ mean, problem.cap, out["objective"], gap,
        start.n_iter + out["n_newton"],
    )  # fmt: skip
    return found if np.isinf(start.objective) else best_of_both(start, found)
