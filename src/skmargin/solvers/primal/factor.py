"""Rows of full rank with a given Gram matrix: kernels, and more features than samples.

``K = R R'`` by Cholesky with pivots (LAPACK ``pstrf``): ``R`` (n, r) has the rank of ``K``, and the vectors

    w = sum_{j in pivots} phi(x_j) B_j,      B = L^-T V,      L = R[pivots]

have the scores ``R V`` on all rows and the inner products ``V'V``: a linear problem on the rows of ``R`` is the
problem itself.  So it is for some of the rows: the folds of a search share one factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import lapack, solve_triangular

from ..._runtime.shared_rows import converted_whole
from ...rows.gram import row_blocks
from ..tuning import DEFAULT, Tuning
from .rows import RowProducts


@dataclass
class GramFactor:
    """``R`` (n, r), the pivot rows, and their triangular block ``L`` (r, r)."""

    R: np.ndarray
    pivots: np.ndarray
    L: np.ndarray

    def coefficients(self, V: np.ndarray) -> np.ndarray:
        """``B`` (r, k), over the pivot rows."""
        return solve_triangular(self.L, V, lower=True, trans="T", check_finite=False)

    def start(self, scores: np.ndarray) -> np.ndarray:
        """``V`` of a vector whose scores on the pivot rows are given."""
        return solve_triangular(self.L, scores, lower=True, check_finite=False)


def pivoted(K: np.ndarray, dtype: DTypeLike = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """``R`` and the pivot rows of a matrix, which is overwritten; its numbers have the rounding of this type.

    The rounding of a number of K grows with the lengths of its two rows.  Between rows of one length, which are what is
    factored, nothing that short rows add is taken for rounding.  The longest one comes first: its direction is an axis.
    """
    n = len(K)
    length = np.sqrt(np.maximum(np.diagonal(K), 0.0))
    first, some = np.argsort(-length, kind="stable"), np.flatnonzero(length)
    in_order = bool(np.ptp(length) == 0)
    length[length == 0] = 1.0
    K /= length
    K /= length[:, None]
    K[some, some] = 1.0
    if not in_order:
        K = K[np.ix_(first, first)]
    factor, order, rank, info = lapack.dpstrf(K.T, lower=1, tol=n * float(np.finfo(dtype).eps), overwrite_a=1)
    if info < 0:
        raise ValueError(f"LAPACK refused argument {-info} of pstrf.")
    order = first[order.astype(np.intp) - 1]
    R = np.empty((n, rank))
    for rows in row_blocks(n, rank):
        R[order[rows]] = np.tril(factor[rows, :rank], rows.start)
    R *= length[:, None]
    return R, order[:rank]


def factorise(K: np.ndarray, dtype: DTypeLike = np.float64) -> GramFactor:
    """Factor of a positive semi-definite matrix, which is overwritten; its numbers have the rounding of this type.

    Only rounding is cut: a weak penalty makes use of every direction, and no bound sees one that is gone.
    """
    R, pivots = pivoted(K, dtype)
    if len(pivots) == 0:
        raise ValueError("The kernel matrix is zero: all rows have the same image.")
    return GramFactor(R, pivots, R[pivots])


@dataclass
class WideRows:
    """Dense rows ``X`` with more features than their number, in the coordinates ``factor.R``."""

    X: np.ndarray
    factor: GramFactor
    tuning: Tuning

    def vectors(self, V: np.ndarray) -> np.ndarray:
        """Weights of the features (d, k) from those of the coordinates."""
        return self._pivots().transposed_times(self.factor.coefficients(V))

    def start(self, W: np.ndarray) -> np.ndarray:
        """The inverse."""
        return self.factor.start(self._pivots().times(W))

    def _pivots(self) -> RowProducts:
        return RowProducts(self.X, self.factor.pivots, np.float64, self.tuning)


def wide_rows(X: np.ndarray, tuning: Tuning = DEFAULT) -> tuple[WideRows, np.ndarray]:
    """Coordinates for these rows, which others may share, and the rows in them."""

    def make(whole: np.ndarray, n_different: int) -> WideRows:
        factor = factorise(RowProducts(whole[:n_different], tuning=tuning).gram(np.zeros(X.shape[1]), np.float64))
        R = factor.R
        if len(whole) > n_different:
            R = np.concatenate([R, R[: len(whole) - n_different]])
        return WideRows(whole, replace(factor, R=R), tuning)

    made, start = converted_whole(X, "wide", make, lambda made: made.factor.R)
    return made, made.factor.R[start : start + len(X)]
