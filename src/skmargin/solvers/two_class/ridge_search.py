"""Choice of the strength and of the kernel width by exact held-out scores of the least-squares machines.

For one width every two-class problem is factorised once (`ridge_spectrum`) and gives, for all strengths, exact held-out
scores of every row: of its two classes by the closed forms, of other rows by its machine (of their fold).  The scores
of all problems are combined to classes as in a prediction, so that the multi-class accuracy is compared.

Screening (`screened_search`): all widths by leave-one-out on a quarter of the rows, the best three on all rows, both in
single precision where the strengths allow it; strengths too small for that are tried, in double precision, where the
smallest of the others wins.  `full_search` is exact for every candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..._runtime.progress import counting, progress_range
from .pairwise import Subproblem, most_rows, n_machines, over_threads, subproblems, winners
from .ridge_direct import iterate_features, iterate_kernel
from .ridge_spectrum import RidgePath, RidgeSpec, scale, spectrum_of_features, spectrum_of_kernel
from .row_sources import Features, Source

N_WIDTHS_KEPT = 3
SMALLEST_SINGLE = {"coefficients": 1e-6, "kernel": 1e-7}  # for K(x, x) <= 1; "kernel": times the number of rows


class SearchProblem(NamedTuple):
    """What is to be classified: codes of the classes, weights, folds (None: leave one out) and the machine."""

    codes: np.ndarray
    n_classes: int
    weight: np.ndarray
    folds: list[np.ndarray] | None
    method: str
    spec: RidgeSpec
    n_jobs: int | None

    def subset(self, rows: np.ndarray) -> SearchProblem:
        """The same task on some of the rows, with leave-one-out."""
        return self._replace(codes=self.codes[rows], weight=self.weight[rows], folds=None)


def held_out_accuracy(source: Source, task: SearchProblem, strengths: np.ndarray, dtype: type) -> np.ndarray:
    """Weighted accuracy of the held-out predictions, one number for each strength."""
    n = len(task.codes)
    F: np.ndarray = np.empty((len(strengths), n, n_machines(task.n_classes, task.method)), dtype=dtype)
    if task.folds is None:
        fold_of, n_folds = np.zeros(n, dtype=np.intp), 1
    else:
        fold_of, n_folds = np.empty(n, dtype=np.intp), len(task.folds)
        for number, fold in enumerate(task.folds):
            fold_of[fold] = number

    def work(subproblem: Subproblem) -> None:
        rows, columns = subproblem.rows, subproblem.columns
        weight = task.weight[rows]
        if isinstance(source, Features):
            spectrum = spectrum_of_features(source.rows(rows), weight, task.spec, float(strengths.min()))
        else:
            spectrum = spectrum_of_kernel(source.square(rows), weight, task.spec)
        path = RidgePath(spectrum, subproblem.Y, task.spec)
        inside = fold_of[rows]
        folds = [np.flatnonzero(inside == b) for b in range(n_folds)]
        coef, intercept = [], []  # for each strength the machines that score the other rows, one for each fold
        for number, s in enumerate(strengths):
            if task.folds is None:
                F[number, rows, columns] = path.leave_one_out(s)
                solution = path.solution(s)
                machines = [scale(solution) if task.spec.normalised else solution]
            else:
                F[number, rows, columns], machines = path.leave_folds_out(s, folds)
            coef.append([m.coef for m in machines])
            intercept.append([m.intercept for m in machines])
        if len(rows) == n:
            return
        other = np.ones(n, dtype=bool)
        other[rows] = False
        for b in range(n_folds):
            held = np.flatnonzero(other & (fold_of == b))
            scores = source.scores(held, rows, np.hstack([c[b] for c in coef]))
            scores += np.hstack([i[b] for i in intercept])
            F[:, held, columns] = scores.reshape(
                len(held), len(strengths), scores.shape[1] // len(strengths)
            ).transpose(1, 0, 2)

    pairs = subproblems(task.codes, task.n_classes, task.method)
    over_threads(counting(work, len(pairs)), pairs, task.n_jobs, most_rows(pairs))
    return _accuracy(F, task)


def _accuracy(F: np.ndarray, task: SearchProblem) -> np.ndarray:
    hits = np.array([winners(f, task.n_classes, task.method) == task.codes for f in F])
    return hits @ task.weight / task.weight.sum()


def iterated_accuracy(
    source: Source, task: SearchProblem, strengths: np.ndarray, tol: float, max_iter: int
) -> np.ndarray:
    """As `held_out_accuracy` where there is no factorisation: a machine for each fold and strength, by iterations.

    Of each fold the strengths go from the largest to the smallest, each the start of the next.
    """
    n, order = len(task.codes), np.argsort(-strengths, kind="stable")
    F = np.empty((len(strengths), n, n_machines(task.n_classes, task.method)))
    assert task.folds is not None

    def work(job: tuple[Subproblem, np.ndarray]) -> None:
        subproblem, held = job
        inside = ~np.isin(subproblem.rows, held)
        rows = subproblem.rows[inside]
        if len(rows) == 0:  # a machine fitted to nothing
            F[:, held, subproblem.columns] = 0
            return
        spec = (task.weight[rows], subproblem.Y[inside], task.spec, strengths[order], tol, max_iter)
        if isinstance(source, Features):
            fits = iterate_features(source.rows(rows), *spec)
        else:
            fits = iterate_kernel(source.square(rows), *spec)
        for number, (solution, *_) in zip(order, fits, strict=True):
            solution = scale(solution) if task.spec.normalised else solution
            F[number, held, subproblem.columns] = source.scores(held, rows, solution.coef) + solution.intercept

    pairs = subproblems(task.codes, task.n_classes, task.method)
    jobs = [(subproblem, fold) for subproblem in pairs for fold in task.folds]
    over_threads(counting(work, len(jobs)), jobs, task.n_jobs, most_rows(pairs))
    return _accuracy(F, task)


def full_search(
    kernel_of: Callable[[int, type], Source], n_widths: int, task: SearchProblem, strengths: np.ndarray
) -> np.ndarray:
    """Accuracy ``(widths, strengths)`` of every candidate, in double precision."""
    scores = []
    for g in range(n_widths):
        with progress_range(g / n_widths, (g + 1) / n_widths):
            scores.append(held_out_accuracy(kernel_of(g, np.float64), task, strengths, np.float64))
    return np.array(scores)


def screened_search(
    kernel_of: Callable[[int, type], Source],
    part_of: Callable[[int, np.ndarray, type], Source],
    n_widths: int,
    task: SearchProblem,
    strengths: np.ndarray,
    largest: float,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Accuracy ``(widths, strengths)`` with nan for the candidates that were not worth a full evaluation.

    ``kernel_of(width, dtype)`` is the source of all rows and ``part_of(width, rows, dtype)`` that of some rows;
    ``largest`` is the largest K(x, x), by which the rounding of single precision grows.
    """
    n = len(task.codes)
    size = n * largest if task.spec.penalty == "kernel" else largest**2
    single = strengths >= SMALLEST_SINGLE[task.spec.penalty] * size
    dtype: type = np.float32
    if not single.any():
        single, dtype = np.ones(len(strengths), dtype=bool), np.float64
    widths: Sequence[int] = range(n_widths)
    if n_widths > N_WIDTHS_KEPT:
        rows = quarter(task.codes, rng)
        few = task.subset(rows)
        with progress_range(0, 0):  # it takes next to nothing of the time
            screened = [held_out_accuracy(part_of(g, rows, dtype), few, strengths[single], dtype).max() for g in widths]
        widths = np.argsort(-np.array(screened), kind="stable")[:N_WIDTHS_KEPT].tolist()
    scores = np.full((n_widths, len(strengths)), np.nan)
    for place, g in enumerate(widths):
        with progress_range(place / len(widths), (place + 1) / len(widths)):
            scores[g, single] = held_out_accuracy(kernel_of(g, dtype), task, strengths[single], dtype)
    best = np.unravel_index(np.nanargmax(scores), scores.shape)
    if not single.all() and strengths[best[1]] == strengths[single].min():
        g = int(best[0])
        scores[g, ~single] = held_out_accuracy(kernel_of(g, np.float64), task, strengths[~single], np.float64)
    return scores


def quarter(codes: np.ndarray, rng: np.random.RandomState, least: int = 50) -> np.ndarray:
    """A random quarter of the rows of each class (at least ``least`` of them), sorted."""
    chosen = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        chosen.append(rng.permutation(rows)[: max(least, len(rows) // 4)])
    return np.sort(np.concatenate(chosen))


def best_candidate(scores: np.ndarray, strengths: np.ndarray) -> tuple[int, int]:
    """Width and strength with the best accuracy; of equal ones the strongest penalty, then the first width."""
    order = np.argsort(-strengths, kind="stable")
    known = np.where(np.isnan(scores), -1.0, scores)[:, order].T
    strength, width = np.unravel_index(known.argmax(), known.shape)
    return int(width), int(order[strength])
