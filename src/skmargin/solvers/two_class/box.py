"""``max sum u - 1/2 c'Kt c``, c = y g, g = lin + u, 0 <= u <= cap: the dual of an L1-SVM without bias, three methods.

Coordinate ascent (in the core) ends at the gap asked for.  Where it has cost as much as an interior point method
without reaching it (large C, badly conditioned kernels), that takes over: Mehrotra's predictor and corrector, feasible
throughout, one factorisation of ``Kt + diag(theta)`` a step.  At the end, where few u are strictly inside their box,
`polish` solves for them exactly (margin 1) and moves between box and inside until nothing changes: the primal-dual
active set method of Hintermueller, Ito and Kunisch (2002).  A point is taken only where its gap is smaller, and small
problems go on until they are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ..._core import _ext
from ..tuning import DEFAULT, Tuning

EXACT = 1e-14  # relative gap that rounding allows
INTERIOR_STEPS, POLISH_STEPS = 100, 20  # limits that are not met: a fifth of them is usual
Solve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Box:
    """The problem: ``product(c)`` is Kt c, ``block`` a block of Kt, ``shifted(theta)`` solves with Kt + diag(theta).

    ``patience`` is the cost of the interior point method in passes of the ascent.
    """

    y: np.ndarray
    cap: np.ndarray
    lin: np.ndarray
    curvature: np.ndarray
    pass_cost: int
    product: Callable[[np.ndarray], np.ndarray]
    shifted: Callable[[np.ndarray], Solve]
    patience: int
    block: Callable[[np.ndarray], np.ndarray]
    ascend: Callable[..., Any]
    tuning: Tuning = DEFAULT

    def margins(self, g: np.ndarray) -> np.ndarray:
        """``y f`` of a dual point."""
        return self.y * self.product(self.y * g)

    def certificate(self, u: np.ndarray, d: np.ndarray) -> tuple[float, float]:
        """Objective and relative gap of a u in its box with margins d, as a sum of parts that are not negative."""
        hinge = float(self.cap @ np.maximum(0, 1 - d))
        quadratic, linear = 0.5 * float((self.lin + u) @ d), float(self.lin @ d)
        parts = self.cap * np.maximum(0, 1 - d) - u * (1 - d)
        gap = float(np.maximum(parts, 0).sum()) / max(quadratic + hinge + abs(linear), 1e-300)
        return quadratic + hinge - linear, gap


Found = tuple[np.ndarray, float, float]  # g, objective, relative gap


def maximise(box: Box, tol: float, max_iter: int, seed: int, g: np.ndarray) -> tuple[np.ndarray, float, float, int]:
    """Solve to a relative gap of ``tol``, and exactly where that is cheap: g, objective, relative gap, passes."""
    zero, passes = np.zeros(len(box.y)), 0
    free_passes = box.tuning.common.call_work // max(1, box.pass_cost)
    limit, aim = box.patience, tol
    best: Found = (g, np.inf, np.inf)
    while True:
        limit = min(max_iter - passes, limit)
        options = _ext.Options(tol=aim, max_iter=limit, seed=seed + passes)
        out = box.ascend(box.y, box.cap, box.lin, zero, best[0], options)
        g, primal, gap, used = out.g, out.objective, out.relative_gap, out.n_iter
        passes += used
        if not np.isfinite(primal):  # beyond double precision
            return g, primal, np.inf, passes
        best = _better(best, _better((g, primal, gap), polish(box, g, gap)))
        if best[2] > tol and passes < max_iter:
            best = _better(best, _interior(box, best[0], tol))
            best = _better(best, polish(box, best[0], best[2]))
            limit = max_iter  # should that have failed, ascent goes on: it is the method that always makes progress
        if best[2] <= tol:
            free_passes -= used + 1
            limit, aim = free_passes, 0.1 * min(aim, best[2])
        if best[2] <= EXACT or passes >= max_iter or free_passes < 1:
            return *best, passes


def _better(one: Found, other: Found | None) -> Found:
    return other if other is not None and other[2] < one[2] else one


def _interior(box: Box, g: np.ndarray, tol: float) -> Found | None:
    """The interior point method from somewhere near g; None where rounding stopped it before it had a point."""
    y, cap, n = box.y, box.cap, len(box.y)
    size = max(float(np.mean(g - box.lin)), 1e-3 * float(cap.min()))
    u = np.clip(g - box.lin, np.minimum(0.1 * size, 0.1 * cap), 0.9 * cap)
    slope = box.margins(box.lin + u) - 1
    offset = 0.1 * float(np.abs(slope).mean()) + 1e-3
    z, w = np.maximum(slope, 0) + offset, np.maximum(-slope, 0) + offset
    best: Found | None = None
    for _ in range(INTERIOR_STEPS):
        left = cap - u
        try:
            solve = box.shifted(z / u + w / left)
        except linalg.LinAlgError:
            break
        centre, corrections = 0.0, (np.zeros(n), np.zeros(n))
        for _corrector in (False, True):
            to_z, to_w = (centre - corrections[0]) / u - z, (centre - corrections[1]) / left - w
            right = z - w - slope + to_z - to_w
            du = y * solve(y * right)
            dz, dw = to_z - z / u * du, to_w + w / left * du
            step = min(1.0, *(_longest(a, da) for a, da in ((u, du), (left, -du), (z, dz), (w, dw))))
            product = float(u @ z + left @ w)
            after = float((u + step * du) @ (z + step * dz) + (left - step * du) @ (w + step * dw))
            centre = (after / product) ** 3 * product / (2 * n)
            corrections = du * dz, -du * dw
        step *= 0.995
        u, z, w = u + step * du, z + step * dz, w + step * dw
        if not (u > 0).all() or not (u < cap).all() or step < 1e-9:
            break
        margins = box.margins(box.lin + u)
        slope = margins - 1
        objective, gap = box.certificate(u, margins)
        if best is None or gap < best[2]:
            best = box.lin + u, objective, gap
        if gap <= 0.01 * tol:
            break
    return best


def _longest(a: np.ndarray, da: np.ndarray) -> float:
    """The longest step that keeps ``a`` from falling below zero."""
    falling = da < 0
    return float((-a[falling] / da[falling]).min(initial=np.inf))


def polish(box: Box, g: np.ndarray, gap: float) -> Found | None:
    """The exact optimum from a good start g: a better g, its objective and relative gap, or None."""
    best = None
    y, cap, lin = box.y, box.cap, box.lin
    A = np.maximum(box.curvature, 1e-300)
    u, d = g - lin, box.margins(g)
    for _ in range(POLISH_STEPS):
        wish = u + (1 - d) / A
        free = np.flatnonzero((wish > 0) & (wish < cap))
        if len(free) ** 3 > box.tuning.common.call_work:
            return best
        u = np.clip(u, 0, cap)
        u = np.where(wish >= cap, cap, np.where(wish <= 0, 0.0, u))
        if len(free):
            # from the u at hand, not from zero: the next step then removes the rounding of this one
            missing = 1 - box.margins(lin + u)[free]
            H = box.block(free)
            H *= y[free]
            H *= y[free, None]
            # .T: LAPACK's order, no copy
            u[free] += linalg.lstsq(H.T, missing, 1e-12, overwrite_a=True, check_finite=False, lapack_driver="gelsy")[0]
        inside = np.clip(u, 0, cap)
        d_inside = box.margins(lin + inside)
        objective, new_gap = box.certificate(inside, d_inside)
        if new_gap < gap:
            best, gap = (lin + inside, objective, new_gap), new_gap
        if new_gap <= EXACT:
            break
        d = d_inside if (inside == u).all() else box.margins(lin + u)
    return best
