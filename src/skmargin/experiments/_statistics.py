"""Tests and ranks: who is better, on one data set and over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

LEVEL = 0.05
ROUNDING = 2e-6  # of accuracies in the results file


def verdict(reference: Sequence[float], other: Sequence[float], statistic: str = "paired") -> int:
    """1 if the reference is better, -1 if worse, 0 if a t-test at 95 % sees no difference.

    "paired" is the t-test of the papers on the same divisions.  Divisions of one data set share rows, so it is too
    sure of itself; it is used because the papers use it.  "welch" is Welch's test of two samples.  "none" sees no
    difference: runs that share all of their rows are no sample of anything.

    Examples
    --------
    >>> from skmargin.experiments._statistics import verdict
    >>> verdict([0.9, 0.92, 0.91], [0.8, 0.83, 0.81]), verdict([0.9, 0.9], [0.9, 0.9])
    (1, 0)
    """
    a, b = np.asarray(reference, dtype=float), np.asarray(other, dtype=float)
    if statistic == "none" or len(a) < 2 or len(b) < 2:
        return 0
    gain = a.mean() - b.mean()
    if statistic == "paired":
        error, freedom = np.std(a - b, ddof=1) / np.sqrt(len(a)), len(a) - 1.0
    else:
        v, w = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
        error, freedom = np.sqrt(v + w), (v + w) ** 2 / max(v**2 / (len(a) - 1) + w**2 / (len(b) - 1), 1e-300)
    if error < ROUNDING:  # the same difference every time
        return int(np.sign(gain)) if abs(gain) > ROUNDING else 0
    return int(np.sign(gain)) if 2 * stats.t.sf(abs(gain) / error, freedom) < LEVEL else 0


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of some values by Student's t; infinite for fewer than two.

    Examples
    --------
    >>> from skmargin.experiments._statistics import half_width
    >>> round(half_width([1.0, 2.0, 3.0]), 2)  # 4.303 / sqrt(3)
    2.48
    """
    if len(values) < 2:
        return float("inf")
    return float(stats.t.ppf(1 - LEVEL / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def mean(values: np.ndarray) -> float:
    """Mean of the finite values; nan if there is none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def ranks(means: np.ndarray) -> np.ndarray:
    """Rank of each column in each row, 1 the highest; equal values share their ranks; nan where there is no value."""
    out = np.full(means.shape, np.nan)
    for row, values in zip(out, means, strict=True):
        there = np.isfinite(values)
        row[there] = stats.rankdata(-np.round(values[there], 12))
    return out


class Friedman(NamedTuple):
    """Mean ranks of methods over data sets, p-value of Friedman's test, and Nemenyi's critical difference."""

    mean_ranks: np.ndarray
    p_value: float
    critical_difference: float


def friedman(means: np.ndarray) -> Friedman:
    """Friedman's test on mean accuracies ``(data sets, methods)`` without gaps, and Nemenyi's distance.

    Two methods whose mean ranks lie closer than the critical difference cannot be told apart at 95 % (Demšar 2006).

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.experiments._statistics import friedman
    >>> table = np.random.default_rng(0).random((14, 4))
    >>> round(friedman(table).critical_difference, 2)  # q = 2.569, Demšar's table 5
    1.25
    """
    n, k = means.shape
    table = ranks(means)
    p_value = float(stats.friedmanchisquare(*table.T).pvalue) if k > 2 and n > 1 else float("nan")
    q = stats.studentized_range.ppf(1 - LEVEL, k, np.inf) / np.sqrt(2)
    return Friedman(table.mean(axis=0), p_value, float(q * np.sqrt(k * (k + 1) / (6 * n))))


def cliques(mean_ranks: np.ndarray, critical_difference: float) -> list[tuple[float, float]]:
    """Longest intervals of ranks in which no two methods differ by more than the critical difference."""
    order = np.sort(mean_ranks)
    found: list[tuple[float, float]] = []
    for low in order:
        high = order[order <= low + critical_difference].max()
        if high > low and (not found or high > found[-1][1]):
            found.append((float(low), float(high)))
    return found
