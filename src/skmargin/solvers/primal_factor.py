"""Rows of full rank with a given Gram matrix: kernels, and more features than samples.

``K = R R'`` by Cholesky with pivots (LAPACK ``pstrf``): ``R`` (n, r) has the rank of ``K``, and the vectors

    w = sum_{j in pivots} phi(x_j) B_j,      B = L^-T V,      L = R[pivots]

have the scores ``R V`` on all rows and the inner products ``V'V``: a linear problem on the rows of ``R`` is the
problem itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular


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


def factorise(K: np.ndarray) -> GramFactor:
    """Factor of a positive semi-definite matrix, which is overwritten; small negative eigenvalues are rounding."""
    n = len(K)
    factor, order, rank, info = lapack.dpstrf(K.T, lower=1, tol=1e-10 * float(np.diagonal(K).max()), overwrite_a=1)
    if info < 0:
        raise ValueError(f"LAPACK refused argument {-info} of pstrf.")
    order = order.astype(np.intp) - 1
    if rank == 0:
        raise ValueError("The kernel matrix is zero: all rows have the same image.")
    tall = np.tril(factor)[:, :rank]
    R = np.empty((n, rank))
    R[order] = tall
    return GramFactor(R, order[:rank], np.ascontiguousarray(tall[:rank]))
