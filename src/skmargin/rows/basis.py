"""A few rows that stand for all: basis points of a kernel machine for large n.

``random`` draws rows, ``kmeans++`` draws rows far from those drawn before, ``cholesky`` takes the pivots of the pivoted
Cholesky factorisation of the kernel matrix (each the row that the basis so far represents worst; n N kernel values).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from .._types import Rows
from .gram import gram_diagonal

METHODS = ("random", "kmeans++", "cholesky")


def basis_rows(
    X: Rows,
    n_basis: int,
    method: str,
    rng: np.random.RandomState,
    kernel_columns: Callable[[np.ndarray], np.ndarray],
    **kernel: Any,
) -> np.ndarray:
    """Positions of ``n_basis`` rows of ``X``, sorted.

    ``kernel_columns(rows)`` gives the kernel of all rows with these rows; ``kernel`` holds the arguments of
    `gram_diagonal`.
    """
    n = X.shape[0]
    if method == "random":
        return np.sort(rng.permutation(n)[:n_basis])
    if method == "kmeans++":
        rows = X.tocsr() if sparse.issparse(X) else X
        return np.unique(kmeans_plusplus(rows, n_basis, random_state=rng)[1])
    if method != "cholesky":
        raise ValueError(f"basis must be one of {METHODS}, got {method!r}.")
    diagonal = np.array(gram_diagonal(X, **kernel), dtype=np.float64)
    if not diagonal.max() > 0:  # there would be no basis at all
        raise ValueError(
            "basis='cholesky' needs a kernel that is positive semi-definite and not zero on all rows, but K(x, x) is "
            f"at most {diagonal.max():.3g}."
        )
    return np.sort(_pivots(diagonal, n_basis, kernel_columns))


def _pivots(rest: np.ndarray, n_basis: int, kernel_columns: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Pivots of the Cholesky factorisation of the matrix whose diagonal is ``rest`` (overwritten)."""
    L = np.empty((n_basis, len(rest)))
    pivots: list[int] = []
    floor = 1e-12 * rest.max()
    for j in range(n_basis):
        pivot = int(rest.argmax())
        if rest[pivot] <= floor:
            break  # the basis represents every row
        column = kernel_columns(np.array([pivot])).ravel().astype(np.float64)
        L[j] = (column - L[:j, pivot] @ L[:j]) / np.sqrt(rest[pivot])
        rest -= L[j] ** 2
        rest[pivot] = 0
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp)
