"""Limited-memory BFGS (Nocedal 1980) with a preconditioner for the first matrix.

Given a smooth convex objective and a start, produces points of decreasing value.  The two-loop recursion starts from
the objective's preconditioner, scaled by the newest pair, instead of a multiple of the identity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from .line_search import line_search
from .objective import Point, PrimalObjective

Map = Callable[[np.ndarray], np.ndarray]


def lbfgs(objective: PrimalObjective, point: Point) -> Iterator[tuple[Point, np.ndarray]]:
    """Yield the start and then each iterate with its gradient; ends where no step decreases the value any more."""
    pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=objective.tuning.common.lbfgs_memory)
    gradient = objective.gradient(point)
    precondition = objective.preconditioner()
    while True:
        yield point, gradient
        D = -_apply(pairs, precondition, gradient)
        slope = float(np.vdot(gradient, D))
        if not slope < 0:
            if not pairs:
                return
            pairs.clear()
            continue
        moved = line_search(objective, point, D, slope, 1.0 if pairs else _first_step(objective, point, D, slope))
        if moved is None:
            if not pairs:
                return
            pairs.clear()  # once more from the preconditioned gradient
            continue
        change = objective.gradient(moved)
        s, y = moved.theta - point.theta, change - gradient
        point, gradient = moved, change
        curvature = float(np.vdot(s, y))
        if curvature > 1e-10 * float(np.vdot(y, y)) ** 0.5 * float(np.vdot(s, s)) ** 0.5:
            pairs.append((s, y, curvature))


def _apply(pairs: deque[tuple[np.ndarray, np.ndarray, float]], precondition: Map, gradient: np.ndarray) -> np.ndarray:
    q = gradient.copy()
    weights = []
    for s, y, curvature in reversed(pairs):
        a = float(np.vdot(s, q)) / curvature
        q -= q.dtype.type(a) * y
        weights.append(a)
    r = precondition(q)
    if pairs:
        s, y, curvature = pairs[-1]
        r = r * r.dtype.type(curvature / float(np.vdot(y, precondition(y))))
    for (s, y, curvature), a in zip(pairs, reversed(weights), strict=True):
        r += r.dtype.type(a - float(np.vdot(y, r)) / curvature) * s
    return r


def _first_step(objective: PrimalObjective, point: Point, D: np.ndarray, slope: float) -> float:
    """Newton step along the first direction."""
    curvature = float(np.vdot(D, objective.hessian(point)(D)))
    return min(-slope / curvature, 1e6) if curvature > 0 else 1.0
