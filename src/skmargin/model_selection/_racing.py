"""Early rejection of candidates by paired tests on the folds seen so far."""

from __future__ import annotations

import numpy as np
from scipy import stats

FIRST = 3  # folds before the first test: two differences have no variance to speak of
LEVEL = 0.05


def rejected(scores: np.ndarray, test_share: float) -> np.ndarray:
    """Candidates (rows) that are worse than the best one on the folds seen (columns), by a one-sided paired t-test.

    Training sets of folds overlap, so the variance of the mean difference is that of Nadeau and Bengio (2003):
    ``(1/r + n_test/n_train)`` times the variance of the differences.  ``test_share`` is ``n_test/n_train``.  Candidates
    with a score that is not a number are not judged.
    """
    judged = np.isfinite(scores).all(axis=1)
    out = np.zeros(len(scores), dtype=bool)
    r = scores.shape[1]
    if r < FIRST or judged.sum() < 2:
        return out
    best = np.flatnonzero(judged)[scores[judged].mean(axis=1).argmax()]
    difference = scores[best] - scores[judged]
    mean = difference.mean(axis=1)
    error = np.sqrt((1 / r + test_share) * difference.var(axis=1, ddof=1))
    out[judged] = mean > stats.t.ppf(1 - LEVEL, r - 1) * error
    return out
