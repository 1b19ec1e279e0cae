"""Line search for smooth convex functions whose values may be rounded (float32)."""

from __future__ import annotations

import numpy as np

from .objective import Point, PrimalObjective


def line_search(
    objective: PrimalObjective, point: Point, D: np.ndarray, slope: float, first: float = 1.0
) -> Point | None:
    """A point along ``D`` with a smaller value and a flatter slope (Wolfe), or None where rounding hides any.

    ``slope`` is the derivative at the start.  Near the minimum the values differ by rounding only; the slope decides
    there.
    """
    R = objective.scores(D)
    noise = 4 * float(np.finfo(point.F.dtype).eps) * abs(point.value)
    low, high, low_slope = 0.0, np.inf, slope
    t = first
    for _ in range(30):
        step = point.theta.dtype.type(t)
        trial = None  # its scores and slopes are not needed beside those of the next one
        F = step * R
        F += point.F
        with np.errstate(over="ignore", invalid="ignore"):  # a trial beyond all numbers is refused below
            trial = objective.point(point.theta + step * D, F)
            trial_slope = objective.slope(trial, D, R)
        if not trial.value <= point.value + 1e-4 * t * slope + noise or not np.isfinite(trial_slope):
            high = t
            # minimiser of the parabola through the start and this value, kept inside the bracket
            rise = trial.value - point.value - t * slope
            t = -slope * t * t / (2 * rise) if np.isfinite(rise) and rise > 0 else 0.1 * t
            t = min(max(t, low + 0.1 * (high - low)), low + 0.5 * (high - low))
        elif trial_slope > 0.9 * abs(slope):
            high = t
            t = low + (high - low) * min(max(low_slope / (low_slope - trial_slope), 0.1), 0.9)
        elif trial_slope < 0.9 * slope:
            secant = t + (t - low) * min(trial_slope / min(low_slope - trial_slope, -1e-30), 9.0)
            low, low_slope = t, trial_slope
            t = min(max(secant, 2 * t), 10 * t) if np.isinf(high) else 0.5 * (low + high)
        else:
            return trial
    return None
