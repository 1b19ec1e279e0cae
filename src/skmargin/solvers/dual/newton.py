"""The semismooth Newton method of the linear machines (_core/newton/newton.hpp): few unknowns, to any accuracy."""

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
            np.ascontiguousarray(X, dtype=np.float64),
            problem.core(),
            _ext.Options(tol=tol, max_iter=max_iter, seed=seed),
            b=start.b,
            duals=start.duals if len(start.duals.alpha) else None,
            fit_intercept=problem.fit_intercept,
        )
    if not np.isfinite(out.objective):  # numbers beyond double precision on the way
        return start
    gap = relative_gap(out.objective, out.gap)
    if verbose:
        print_line(f"Newton: {out.n_iter} steps, objective {out.objective:.6g}, relative gap {gap:.1e}")
    found = DualState(
        out.W, out.b, DualLists(*out.duals), out.b + out.W @ mean, problem.cap, out.objective, gap,
        start.n_iter + out.n_iter,
    )  # fmt: skip
    return found if np.isinf(start.objective) else best_of_both(start, found)
