"""Newton's method: conjugate gradients for the step, or the Hessian itself where it is small.

Given a smooth convex objective and a start, produces points of decreasing value.  The CG steps use products with the
rows that have curvature, and the preconditioner of `pairs`; where they become many, it gets more pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .line_search import line_search
from .objective import Point, PrimalObjective
from .pairs import Pairs

_MAX_CG = 100  # a limit that is rarely met: more pairs in the preconditioner come first
_DAMPING = 1e-9  # of a whole Hessian, in units of its diagonal
Map = Callable[[np.ndarray], np.ndarray]


def explicit_is_cheap(objective: PrimalObjective) -> bool:
    """Whether the whole Hessian of the problem is small enough to be formed."""
    size, tuning = objective.shape[0] * objective.shape[1], objective.tuning
    work = (objective.rows.shape[0] + size / 6) * size**2  # to form it, and a Cholesky factor
    return work <= tuning.primal.explicit_work and not objective.rows.sparse


def newton_cg(objective: PrimalObjective, point: Point, explicit: bool = False) -> Iterator[tuple[Point, np.ndarray]]:
    """Yield the start and then each iterate with its gradient; ends where no step decreases the value any more.

    ``explicit`` forms the Hessian also where CG should be cheaper: the scales of the features do not matter then.
    """
    explicit = explicit or explicit_is_cheap(objective)
    gradient = objective.gradient(point)
    first_norm = float(np.linalg.norm(gradient)) or 1.0
    tuning, most = objective.tuning, objective.tuning.primal.pairs
    while True:
        yield point, gradient
        if explicit:
            D = _direct_step(objective.explicit_hessian(point), gradient, objective.fit_intercept)
        else:
            forcing = min(tuning.primal.forcing, (float(np.linalg.norm(gradient)) / first_norm) ** 0.5)
            D, n_products = _pair_step(objective, point, gradient, forcing, most)
            if n_products > tuning.primal.many_cg:
                most = min(2 * most, max(most, tuning.common.most_factored))
        slope = float(np.vdot(gradient, D))
        if not slope < 0:
            return
        moved = line_search(objective, point, D, slope)
        if moved is None:
            return
        point, gradient = moved, objective.gradient(moved)


def _direct_step(H: np.ndarray, gradient: np.ndarray, intercept: bool) -> np.ndarray:
    """``-H^-1 g``.  Nothing changes where a vector is added to all classes: ``H`` gets some curvature there.

    Every parameter is taken in the unit in which its own curvature is one, since features may be of very different
    sizes.  The damping, for other directions without curvature, is a share of the mean curvature of the classes, most
    of which may have none: that of the median feature, and that of the intercept apart.  So neither the unit of the
    rows matters, nor, where they do not span all features, the basis they are in.
    """
    d, k = gradient.shape
    mean = np.diagonal(H).reshape(d, k).mean(axis=1)
    H.reshape(d, k, d, k)[np.arange(d), :, np.arange(d), :] += mean[:, None, None]
    size = np.diagonal(H)
    unit = np.where(size > 0, 1 / np.sqrt(np.maximum(size, np.finfo(float).tiny)), 1.0)
    H *= unit[:, None]
    H *= unit
    typical = np.full(d, np.median(mean[: d - intercept]))
    if intercept:
        typical[-1] = mean[-1]
    H.flat[:: len(H) + 1] += _DAMPING * np.repeat(typical, k) * unit**2 + np.finfo(float).eps
    g = gradient.ravel() * unit
    try:
        step = cho_solve(cho_factor(H, check_finite=False), g, check_finite=False)
    except np.linalg.LinAlgError:  # only by rounding: the problem is convex
        step = np.linalg.lstsq(H, g, rcond=None)[0] if np.isfinite(H).all() else np.full_like(g, np.nan)
    return -(step * unit).reshape(gradient.shape).astype(gradient.dtype)


def _pair_step(
    objective: PrimalObjective, point: Point, gradient: np.ndarray, forcing: float, most: int
) -> tuple[np.ndarray, int]:
    pairs = Pairs(objective, point)
    hessian, precondition = pairs.hessian(), pairs.preconditioner(most)
    del pairs  # as large as the scores
    return _cg_step(hessian, precondition, gradient, forcing)


def _cg_step(hessian: Map, precondition: Map, gradient: np.ndarray, forcing: float) -> tuple[np.ndarray, int]:
    """The step and the number of products with the Hessian that it took."""
    D = np.zeros_like(gradient)
    r = -gradient
    z = precondition(r)
    d = z
    rho = float(np.vdot(r, z))
    stop = forcing**2 * rho
    n_products = 0
    while n_products < _MAX_CG:
        Hd = hessian(d)
        n_products += 1
        curvature = float(np.vdot(d, Hd))
        if not (curvature > 0 and rho > 0):  # only by rounding: the problem is convex
            break
        step = D.dtype.type(rho / curvature)
        D += step * d
        r -= step * Hd
        z = precondition(r)
        old, rho = rho, float(np.vdot(r, z))
        if rho <= stop:
            break
        d = z + z.dtype.type(rho / old) * d
    return (D if D.any() else precondition(-gradient)), n_products
