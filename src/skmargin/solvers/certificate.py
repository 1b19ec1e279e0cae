"""The certificate of a linear machine as it is published: what its numbers are worth on the rows as they were given.

A solver works with numbers of its own: rows that are centred, or in float32, class vectors that it stretches in the
end.  What it says of them need not hold for ``coef_`` and ``intercept_``, which are rounded once more: with a column of
1.7e12 an intercept keeps four digits.  So the objective is evaluated from the published numbers, once, a block of rows
at a time, in double precision:

    f_il = w_l'x_i + b_l          wrong by at most  e_i = (d + 4) u (||x_i|| max ||w_l|| + max |b_l|),   u = 2^-53
    P    = penalty + sum_i loss   wrong by at most what the losses rise where all margins are lower by 2 e_i

and the gap that is published is  (P + that rounding - D) / P  with the lower bound D of the solver.  Where this is too
much the same scores are taken about an origin m near the rows, f_il = w_l'(x_i - m) + (b_l + w_l'm), whose constant is
summed exactly: only then it shows which part is the evaluation's rounding and which the machine's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skmargin._core import _ext

from .._runtime.shared_rows import window
from .._runtime.threads import blas_threads, on_threads, thread_count
from .._types import Rows
from ..rows.gram import row_blocks
from .tuning import DEFAULT

UNIT = 2.0**-53
NEGLIGIBLE = 0.01  # share of the tolerance that rounding may have before the scores are taken about an origin
ACCURATE = 1e-10  # error of a score, beside margins of one, that needs no second look
NO_BOUND = 0.01  # share of the objective from which on rounding leaves no bound but zero
DENSE = 10**8  # numbers of sparse rows that may be written out, a block at a time, for the digits of an origin
FAR = 1e4  # square of the mean beside the spread of the rows from which on they are centred before a solve
SAMPLE, SAMPLE_NUMBERS = 32, 1 << 15  # rows that tell whether they are, eight at least, and their numbers: memory

Losses = Callable[[slice, np.ndarray, np.ndarray], tuple[float, float]]  # rows, scores, their rounding: sum and largest


class Evaluation(NamedTuple):
    """Objective of a published machine, and how far rounding may have taken it from the exact one."""

    objective: float
    rounding: float

    def gap(self, bound: float) -> float:
        """Relative gap to a lower bound of all objectives; zero is one as well."""
        if not np.isfinite(self.objective + self.rounding) or np.isnan(bound):
            return 1.0
        if self.rounding > NO_BOUND * self.objective:  # what it does to the bound is not known any more
            bound = 0.0
        above = self.objective + self.rounding - max(bound, 0.0)
        return float(min(1.0, max(0.0, above) / max(self.objective, np.finfo(float).tiny)))


def evaluate(
    X: Rows, coef: np.ndarray, intercept: np.ndarray, losses: Losses, penalty: float, tol: float, n_jobs: int | None = 1
) -> Evaluation:
    """The objective of ``coef`` and ``intercept``, as they are published, on the rows ``X``; head of this file."""
    W, b = np.asarray(coef, dtype=np.float64), np.asarray(intercept, dtype=np.float64)
    threads = thread_count(n_jobs)
    value, largest = _sum(X, W, b, None, losses, threads)
    if not largest - value <= NEGLIGIBLE * tol * (value + penalty) and _may_be_dense(X):
        again = _sum(X, W, b, column_means(X), losses, threads)
        if not again[1] - again[0] > largest - value:
            value, largest = again
    objective = value + penalty
    steps = UNIT * (X.shape[0] + W.size + 16)  # of the sums over samples and over the numbers of W
    return Evaluation(objective, max(0.0, largest - value) + steps * objective)


def negligible_rounding(
    solution: Any, d: int, cap: np.ndarray, loss: tuple[Any, ...], n_classes: int, tol: float
) -> float | None:
    """The rounding of a solver's objective where that is nothing beside the tolerance, and so as good as an evaluation.

    The solver's last check has evaluated the class vectors that are published, on the rows as given, if all was done in
    double precision.
    """
    rounding = solver_rounding(solution, d, cap, loss, n_classes)
    return rounding if rounding <= NEGLIGIBLE * tol * solution.objective else None


def solver_rounding(solution: Any, terms: int, cap: np.ndarray, loss: tuple[Any, ...], n_classes: int) -> float:
    """The rounding of a solver's objective, whose scores have so many terms.

    Each of its scores and each published one is wrong by (terms + 16) u times what its terms add up to.
    """
    hinges = n_classes - 1 if loss[0] == "sum" else 1
    size = getattr(solution, "score_size", np.inf)
    return 4 * (terms + 16) * UNIT * size * hinges * float(cap.sum()) + UNIT * (len(cap) + 16) * solution.objective


def dual_rounding(
    squares: np.ndarray, sizes: np.ndarray, additions: np.ndarray, totals: np.ndarray, d: int, gained: float,
    longest_row: float, least: float = 0.0,
) -> float:  # fmt: skip
    """What rounding may hide in the value of a dual; the rule of ``_core/linear/dual_value.hpp``.

    Of each class: the square of its vector v_l of d numbers, ``sum_i |c_il| ||x_i||``, how many rows are added up, and
    ``|sum_i c_il|`` where the intercept is free; then ``longest_row`` is the length of the longest row, else zero.
    """
    length, wrong = np.maximum(np.sqrt(squares), least), UNIT * (additions + 2) * sizes
    rounding = 8 * UNIT * gained + float(((length + 0.5 * wrong) * wrong + UNIT * d * squares).sum())
    if longest_row > 0:
        moved = longest_row * totals
        rounding += float((totals + (2 * length.max() + moved) * moved).sum())
    return rounding


def evaluate_margins(
    X: Rows,
    y: np.ndarray,
    cap: np.ndarray,
    coef: np.ndarray,
    intercept: np.ndarray,
    loss: tuple[Any, ...],
    penalty: Callable[[np.ndarray, np.ndarray], float],
    tol: float,
    n_jobs: int | None = 1,
) -> Evaluation:
    """`evaluate` for a loss of margins, named as `_ext.published_losses` takes it, with the weights ``cap``.

    ``penalty`` is that of class vectors and intercepts, one of each a class.
    """

    def losses(rows: slice, F: np.ndarray, error: np.ndarray) -> tuple[float, float]:
        return _ext.published_losses(F, error, y[rows], cap[rows], *loss)

    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by those who publish it
        penalised = penalty(all_classes(coef), all_classes(intercept[:, None])[:, 0])
        return evaluate(X, coef, intercept, losses, penalised, tol, n_jobs)


def all_classes(rows: np.ndarray) -> np.ndarray:
    """One row a class, in double precision, of the published form, which is the difference of two classes."""
    rows = np.asarray(rows, dtype=np.float64)
    return np.vstack([-0.5 * rows, 0.5 * rows]) if len(rows) == 1 else rows


def _sum(
    X: Rows, W: np.ndarray, b: np.ndarray, origin: np.ndarray | None, losses: Losses, threads: int
) -> tuple[float, float]:
    blocks, scores = _blocks_and_scores(X, W, b, origin, True)
    value = largest = 0.0
    for part, most in on_threads(lambda rows: losses(rows, *scores(rows)), blocks, threads):
        value, largest = value + part, largest + most
    return value, largest


def score_blocks(
    X: Rows, W: np.ndarray, b: np.ndarray, origin: np.ndarray | None = None, halves: bool = True
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Scores of all rows in double precision, a block at a time: which rows, one column a class, bound on rounding.

    With ``halves`` two classes, published as their difference, get half of it each.
    """
    blocks, scores = _blocks_and_scores(X, W, b, origin, halves)
    for rows in blocks:
        yield rows, *scores(rows)


def _blocks_and_scores(
    X: Rows, W: np.ndarray, b: np.ndarray, origin: np.ndarray | None, halves: bool
) -> tuple[list[slice], Callable[[slice], tuple[np.ndarray, np.ndarray]]]:
    """The blocks of `score_blocks`, and a function that gives the scores of one and the bound on their rounding."""
    n, d = X.shape
    W, b = np.asfortranarray(W, dtype=np.float64), np.ascontiguousarray(b, dtype=np.float64)
    if d == 0:  # no features at all
        return [slice(0, n)], lambda rows: (np.tile(b, (n, 1)), np.zeros(n))
    constant = b if origin is None else exact_sums(W, origin, b)
    longest = float(np.sqrt(np.einsum("ij,ij->i", W, W).max(initial=0.0)))
    per_row = d if origin is not None or not sparse.issparse(X) else max(1, X.nnz // max(1, n))
    step = max(1, DEFAULT.common.cache_numbers // (8 * max(1, per_row, len(W))))  # rows and places, copied and squared

    def scores(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        F, norms, terms = _block_scores(window(X, rows), W, constant, origin)
        error = (terms + 4) * UNIT * (longest * norms + float(np.abs(constant).max(initial=0.0)))
        if len(W) == 1 and halves:
            F, error = np.hstack([-0.5 * F, 0.5 * F]), 0.5 * error
        return F, error

    return [slice(start, min(start + step, n)) for start in range(0, n, step)], scores


def _block_scores(
    part: Any, W: np.ndarray, constant: np.ndarray, origin: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Scores of some rows, the lengths of these, and how many terms a score has."""
    if sparse.issparse(part) and origin is None:
        data = part.data.astype(np.float64, copy=False)
        first_column = np.zeros(len(data), dtype=part.indices.dtype)
        squares = sparse.csr_array((data * data, first_column, part.indptr), shape=(part.shape[0], 1)) @ np.ones(1)
        terms = int(np.diff(part.indptr).max(initial=0))
        starts, columns = (np.ascontiguousarray(index) for index in (part.indptr, part.indices))
        return _ext.linear_scores(starts, columns, data, W, constant), np.sqrt(squares), terms
    rows = np.ascontiguousarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)
    if origin is not None:
        rows = rows - origin
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if W.size <= DEFAULT.common.cache_numbers:
        return _ext.linear_scores(rows, W, constant), norms, W.shape[1]
    with blas_threads(1):  # the same bits for every number of them
        return rows @ W.T + constant, norms, W.shape[1]


def exact_scores(X: Rows, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Scores of all rows (n, m), about an origin where they would lose digits otherwise."""

    def scores(origin: np.ndarray | None) -> tuple[np.ndarray, float]:
        parts = list(score_blocks(X, W, b, origin, halves=False))
        return np.concatenate([F for _, F, _ in parts]), max(float(error.max()) for _, _, error in parts)

    F, error = scores(None)
    return F if error <= ACCURATE or not _may_be_dense(X) else scores(column_means(X))[0]


def exact_sums(W: np.ndarray, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``W x + b``, each sum rounded only once."""
    used = np.flatnonzero(x)
    high, low = two_products(W[:, used], x[used])
    if not np.isfinite(high.sum() + low.sum() + b.sum()):  # beyond double precision: refused by those who publish it
        return np.full(len(b), np.nan)
    return np.array([fsum([*p, *e, c]) for p, e, c in zip(high.tolist(), low.tolist(), b.tolist(), strict=True)])


def two_products(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products and their rounding errors, which together are exact (Dekker, 1971)."""
    a, b = np.broadcast_arrays(a, b)
    product = a * b
    high_a, high_b = _high(a), _high(b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _high(a: np.ndarray) -> np.ndarray:
    """The first 26 bits of each number."""
    wide = 134217729.0 * a
    return wide - (wide - a)


# -- rows far from the origin -----------------------------------------------------------------------------------------


def far_origin(X: Rows) -> np.ndarray | None:
    """A point near the rows where these lie far from zero, beside their spread; None where they do not.

    Some of the rows tell: to be wrong costs digits in the solver, which the certificate confesses.
    """
    most = min(SAMPLE, max(8, SAMPLE_NUMBERS // max(1, X.shape[1])))
    some = X[:: max(1, X.shape[0] // most)]
    if sparse.issparse(X):
        n = some.shape[0]
        centre = np.bincount(some.indices, some.data, X.shape[1]) / n
        spread = np.maximum(np.bincount(some.indices, np.square(some.data, dtype=np.float64), X.shape[1]) / n, 0.0)
        spread = np.maximum(spread - centre * centre, 0.0)
    else:
        offset = some - some[0].astype(np.float64)
        shift = offset.mean(axis=0)
        centre = some[0] + shift
        spread = np.maximum(np.einsum("ij,ij->j", offset, offset) / len(some) - shift * shift, 0.0)
    if not centre @ centre > FAR * spread.sum() or not (centre * centre > FAR * spread).any():
        return None
    origin = column_means(X)
    if sparse.issparse(X):  # only columns without zeros, or hardly any, are far; the others stay sparse
        origin[~(centre * centre > FAR * spread)] = 0.0
    return origin


def minus(X: Rows, origin: np.ndarray) -> Any:
    """The rows from an origin, in double precision; sparse ones stay sparse in the columns where that is zero."""
    if not sparse.issparse(X):
        return np.subtract(X, origin, dtype=np.float64)
    columns = np.flatnonzero(origin)
    n, m = X.shape[0], len(columns)
    index = X.indices.dtype
    whole = np.tile(origin[columns], n), np.tile(columns.astype(index), n), np.arange(0, n * m + 1, m).astype(index)
    return sparse.csr_array(X.astype(np.float64) - sparse.csr_array(whole, shape=X.shape))


def column_means(X: Rows) -> np.ndarray:
    """The mean of each column, refined once: of a constant column it is that constant."""
    n, d = X.shape
    first = np.asarray(X[:1].toarray() if sparse.issparse(X) else X[:1], dtype=np.float64).ravel()
    if sparse.issparse(X):
        stored = np.bincount(X.indices, minlength=d)
        total = np.bincount(X.indices, X.data - first[X.indices], minlength=d)
        return first + (total - (n - stored) * first) / n
    total = np.zeros(d)
    for rows in row_blocks(n, d):
        total += (X[rows] - first).sum(axis=0)
    return first + total / n


def at_origin(coef: np.ndarray, intercept: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Intercepts for the rows as given, from those for rows that were taken from an origin."""
    W = np.asarray(coef, dtype=np.float64)
    return exact_sums(W, -origin, np.asarray(intercept, dtype=np.float64))


def heaviest_column(X: Rows, coef: np.ndarray) -> int:
    """The column whose part of the scores is largest: where digits are lost, it is the one that has lost them."""
    some = X[:: max(1, X.shape[0] // SAMPLE)]
    sizes = np.abs(some.toarray() if sparse.issparse(some) else some).max(axis=0).astype(np.float64)
    return int((np.abs(coef).max(axis=0) * sizes).argmax())


def _may_be_dense(X: Rows) -> bool:
    return not sparse.issparse(X) or X.shape[0] * X.shape[1] <= DENSE
