"""Many classes from two-class problems: one for each pair of classes, or each class against the rest.

Fuzzy pairwise classification (Abe): ``f_ij > 0`` says class i rather than j, ``f_ji = -f_ij``.  The membership of class
i is ``m_i = min over j != i of min(1, f_ij)``; the largest one wins.  Where a class wins all its
pairs this is the vote, and where no class does (the unclassifiable regions of voting) the least lost one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.multiclass import _ovr_decision_function

from ..._runtime.tasks import run
from ..._runtime.threads import blas_threads
from ..tuning import DEFAULT, Tuning

METHODS = ("fuzzy_pairwise", "ovo", "ovr")


class Subproblem(NamedTuple):
    """Two-class problems on the same rows: labels -1, +1, one column for each machine, and the machines' numbers."""

    rows: np.ndarray
    Y: np.ndarray
    columns: slice


def subproblems(codes: np.ndarray, n_classes: int, method: str) -> list[Subproblem]:
    """The two-class problems; the machine of classes i < j is positive for j; order (0, 1), (0, 2), .. (1, 2), .."""
    n = len(codes)
    if n_classes == 2:
        return [Subproblem(np.arange(n), np.where(codes == 1, 1.0, -1.0)[:, None], slice(0, 1))]
    if method == "ovr":
        Y = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
        return [Subproblem(np.arange(n), Y, slice(0, n_classes))]
    out = []
    for number, (i, j) in enumerate(combinations(range(n_classes), 2)):
        rows = np.flatnonzero((codes == i) | (codes == j))
        out.append(Subproblem(rows, np.where(codes[rows] == j, 1.0, -1.0)[:, None], slice(number, number + 1)))
    return out


def n_machines(n_classes: int, method: str) -> int:
    """Number of two-class machines."""
    if n_classes == 2:
        return 1
    return n_classes if method == "ovr" else n_classes * (n_classes - 1) // 2


def memberships(F: np.ndarray, n_classes: int) -> np.ndarray:
    """Fuzzy memberships ``(n, k)`` from the scores ``(n, k (k-1)/2)`` of the two-class problems."""
    M = np.ones((len(F), n_classes), dtype=F.dtype)
    for number, (i, j) in enumerate(combinations(range(n_classes), 2)):
        np.minimum(M[:, i], -F[:, number], out=M[:, i])
        np.minimum(M[:, j], F[:, number], out=M[:, j])
    return M


def combine(F: np.ndarray, n_classes: int, method: str) -> np.ndarray:
    """Scores of the classes, one column each (for two classes the one score), from the scores of the machines."""
    if n_classes == 2 or method == "ovr":
        return F
    if method == "ovo":
        return np.asarray(_ovr_decision_function(F > 0, F, n_classes))
    return memberships(F, n_classes)


def winners(F: np.ndarray, n_classes: int, method: str) -> np.ndarray:
    """Code of the class that wins, from the scores of the machines."""
    scores = combine(F, n_classes, method)
    return (scores[:, 0] > 0).astype(np.intp) if n_classes == 2 else scores.argmax(axis=1)


def over_threads(
    work: Callable[..., Any],
    items: Iterable[Any],
    n_jobs: int | None,
    n_rows: int,
    tuning: Tuning = DEFAULT,
) -> list[Any]:
    """``[work(item) for item in items]`` on threads, which share every array; each with one BLAS thread.

    A single thread leaves BLAS its own where the largest item has many rows.
    """
    items, count = list(items), effective_n_jobs(n_jobs)
    results: list[Any] = [None] * len(items)

    float_errors = np.geterr()  # of this thread, for all: NumPy's settings belong to a thread

    def task(place: int) -> None:
        with np.errstate(**float_errors):
            results[place] = work(items[place])

    long = n_rows**3 >= tuning.common.call_work
    with blas_threads(1) if count > 1 or not long else nullcontext():
        run([partial(task, place) for place in range(len(items))], count, uninterruptible=long)
    return results


def most_rows(pairs: Iterable[Subproblem]) -> int:
    """Number of rows of the largest two-class problem."""
    return max(len(subproblem.rows) for subproblem in pairs)
