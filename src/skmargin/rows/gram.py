"""Gram matrices of every kernel, dense or sparse rows, in one block of memory.

=============  ==============================================
``linear``     ``x'z``
``rbf``        ``exp(-gamma ||x - z||^2)``
``poly``       ``(gamma x'z + coef0) ** degree``
``sigmoid``    ``tanh(gamma x'z + coef0)``
``laplacian``  ``exp(-gamma ||x - z||_1)``
``precomputed``  the rows given are kernel rows already
callable       ``kernel(X, Z)`` gives the matrix
=============  ==============================================

The product of the rows is written straight into the result and transformed there, block by block while the block is
in the cache: nothing of the size of the result is allocated besides the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from .._types import Rows
from ..solvers.tuning import DEFAULT

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed")
Kernel = str | Callable[[Any, Any], Any]

GRAM32_RTOL = 1e-5  # error of a kernel matrix computed in float32, relative to its largest number
LOST_DIGITS = 1e-9  # relative error of an RBF value from which on distances are differences, not products


def row_blocks(n_rows: int, n_columns: int, numbers: int = DEFAULT.common.cache_numbers // 2) -> Iterator[slice]:
    """Slices of rows with about so many ``numbers`` each: they and what is made of them stay in the cache."""
    step = max(1, numbers // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def resolve_gamma(gamma: float | str, X: Rows, weight: np.ndarray | None = None, kernel: Kernel = "rbf") -> float:
    """Kernel width as a number: ``"scale"`` is ``1 / (d var(X))``, ``"auto"`` is ``1 / d``.

    The variance counts a row of weight two twice, so that weights equal repeated rows.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if kernel not in ("rbf", "poly", "sigmoid", "laplacian"):
        return 1.0  # not used by the kernel
    d = X.shape[1]
    if gamma == "auto":
        return 1.0 / d
    if gamma != "scale":
        raise ValueError(f"gamma must be 'scale', 'auto' or a number, got {gamma!r}.")
    p = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
    if sparse.issparse(X):
        mean = float((X.T @ p).sum()) / d
        of_stored = np.repeat(p, np.diff(X.indptr))
        stored = float(of_stored.sum()) / d
        variance = float(of_stored @ (X.data - mean) ** 2) / d + (1 - stored) * mean**2
    else:
        mean = float((p @ X).sum()) / d
        variance = float(sum(p[rows] @ ((X[rows] - mean) ** 2).sum(axis=1) for rows in row_blocks(*X.shape))) / d
    return 1.0 / (d * variance) if variance > 0 else 1.0


def inner_products(X: Rows, Z: Any | None, dtype: DTypeLike) -> np.ndarray:
    """``X Z'`` as a dense matrix (``Z`` is ``X`` where it is None: then exactly symmetric)."""
    Z = X if Z is None else Z
    if sparse.issparse(X) or sparse.issparse(Z):
        out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        transposed = _widened(sparse.csc_array(Z.T) if sparse.issparse(Z) else Z.T, dtype)
        for rows in row_blocks(*out.shape):
            product = _widened(X[rows], dtype) @ transposed
            out[rows] = product.toarray() if sparse.issparse(product) else product
        return out
    left = np.asarray(X, dtype=dtype)
    return left @ (left if Z is X else np.asarray(Z, dtype=dtype)).T


def needs_differences(gamma: float, square: float, d: int) -> bool:
    """Whether squared distances from products lose digits that a kernel of this width sees.

    ``a'a + b'b - 2 a'b`` is wrong by up to about ``8 d u`` times the largest ``square`` of a row.
    """
    return not float(gamma) * float(square) * 8 * (d + 4) * 2.0**-53 <= LOST_DIGITS


def _differences(X: Rows, Z: Any, dtype: DTypeLike) -> np.ndarray:
    """Squared distances one by one: slower, and as exact as the rows are."""
    Z = np.asarray(Z.toarray() if sparse.issparse(Z) else Z, dtype=np.float64)
    D = np.empty((X.shape[0], len(Z)), dtype=dtype)
    for rows in row_blocks(X.shape[0], max(X.shape[1], len(Z))):
        part = np.asarray(X[rows].toarray() if sparse.issparse(X) else X[rows], dtype=np.float64)
        D[rows] = cdist(part, Z, "sqeuclidean")
    return D


def squared_distances(X: Rows, Z: Any | None = None, dtype: DTypeLike | None = None, gamma: float = 0.0) -> np.ndarray:
    """``||x_i - z_j||^2`` for all pairs of rows, never negative, exactly 0 on the diagonal where ``Z`` is None.

    Dense rows are centred first, before they are rounded to ``dtype``, which changes no distance and saves the digits
    that a common offset would cost.  Where a kernel of the width ``gamma`` would still miss some, distances are taken
    one by one.
    """
    dtype = np.dtype(dtype or X.dtype)
    same, given = Z is None, (X, X if Z is None else Z)
    if not sparse.issparse(X) and not sparse.issparse(Z):
        centre = (X if Z is None else Z).mean(axis=0, dtype=np.float64)
        X = _minus(X, centre, dtype)
        Z = X if same else _minus(Z, centre, dtype)
    else:
        Z = X if same else Z
    a, b = squared_norms(X, dtype), squared_norms(Z, dtype)
    if dtype == np.float64 and needs_differences(gamma, float(max(a.max(initial=0), b.max(initial=0))), X.shape[1]):
        return _differences(*given, dtype)
    D = inner_products(X, None if same else Z, dtype)
    for rows in row_blocks(*D.shape):
        block = D[rows]
        block *= -2
        block += a[rows, None] + b  # the sum first: the same rounding above and below the diagonal
        np.maximum(block, 0, out=block)
    if same:
        np.fill_diagonal(D, 0)
    return D


def _minus(X: Rows, centre: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """``X - centre`` in ``dtype``, without a copy in another type."""
    out: np.ndarray = np.empty(X.shape, dtype)
    return np.subtract(X, centre, out=out, casting="same_kind")


def squared_norms(X: Rows, dtype: DTypeLike | None = None) -> np.ndarray:
    """``||x_i||^2`` of all rows; nothing of the size of X is allocated."""
    if not sparse.issparse(X):
        return np.einsum("ij,ij->i", X, X)
    out = np.empty(X.shape[0], dtype or X.dtype)
    for rows in row_blocks(X.shape[0], X.nnz // max(1, X.shape[0])):
        part = _widened(X[rows], out.dtype)
        out[rows] = np.asarray(part.multiply(part).sum(axis=1)).ravel()
    return out


def _widened(X: Rows, dtype: DTypeLike) -> Any:
    """Rows with numbers of at least this precision: products have that of their factors."""
    return X.astype(np.result_type(X.dtype, dtype), copy=False)


def _short_indices(X: Rows) -> Any:
    """The rows as scikit-learn's distances take them: sparse ones with 32-bit indices."""
    if not sparse.issparse(X) or (X.indices.dtype == np.int32 and X.indptr.dtype == np.int32):
        return X
    return sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def base_matrix(
    X: Rows, Z: Any | None = None, kernel: str = "rbf", dtype: DTypeLike | None = None, gamma: float = 0.0
) -> np.ndarray:
    """The part of the Gram matrix that every width shares: squared or absolute distances, or inner products.

    ``gamma`` is the largest width, for which distances must be exact enough.
    """
    dtype = np.dtype(dtype or X.dtype)
    if kernel == "rbf":
        return squared_distances(X, Z, dtype, gamma)
    if kernel == "laplacian":
        Z = X if Z is None else Z
        D = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        Z = _short_indices(_widened(Z, dtype))  # differences of sparse rows are taken in their number type
        for rows in row_blocks(*D.shape):
            D[rows] = manhattan_distances(_short_indices(_widened(X[rows], dtype)), Z)
        return D
    if kernel not in ("linear", "poly", "sigmoid"):
        raise ValueError(f"kernel must be one of {KERNELS} or a function, got {kernel!r}.")
    return inner_products(X, Z, dtype)


def kernel_from_base(
    base: np.ndarray,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: float = 3,
    coef0: float = 0.0,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Gram matrix of one width from the matrix of `base_matrix`; ``out`` may be that matrix itself."""
    out = np.empty_like(base) if out is None else out
    number = base.dtype.type
    width = number(finite_width(gamma, base.dtype))
    with np.errstate(over="ignore", invalid="ignore"):  # infinite distances have the kernel zero; NaN is refused
        for rows in row_blocks(*base.shape):
            source, block = base[rows], out[rows]
            if kernel in ("rbf", "laplacian"):
                np.multiply(source, -width, out=block)
                np.exp(block, out=block)
            elif kernel in ("poly", "sigmoid"):
                np.multiply(source, width, out=block)
                block += number(coef0)
                if kernel == "poly":
                    np.power(block, number(degree), out=block)
                else:
                    np.tanh(block, out=block)
            elif out is not base:
                block[...] = source
    return out


def finite_width(gamma: float, dtype: DTypeLike) -> float:
    """A width that the number type holds: infinity times a distance of zero would be no number."""
    return float(min(gamma, np.finfo(dtype).max))


def check_gram(K: Any) -> None:
    """Refuse what is no kernel matrix of rows with themselves: not square or not symmetric."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"kernel='precomputed' needs a square kernel matrix, got X of shape {K.shape}.")
    check_symmetric(K)


def check_symmetric(K: Any) -> None:
    """Refuse a matrix that differs from its transpose by more than rounding."""
    largest = abs(K).max() if sparse.issparse(K) else max(K.max(), -K.min())
    for rows in row_blocks(*K.shape):
        difference = abs(K[rows] - K[:, rows].T).max()
        if difference > GRAM32_RTOL * largest:
            raise ValueError(f"The kernel matrix must be symmetric, got numbers that differ by {difference:.3g}.")


def value_steps(kernel: Kernel, d: int, degree: float) -> float:
    """How many units of rounding a value of the kernel of d features has, beside the lengths of its two rows."""
    if callable(kernel) or kernel == "precomputed":
        return 64.0  # as positive semi-definite as rounding leaves them
    return (d + 8) * max(1.0, float(degree) if kernel == "poly" else 1.0)


def is_definite(kernel: Kernel, degree: float, coef0: float) -> bool:
    """Whether every matrix of the kernel is positive semi-definite: a product of features, whatever the rows are."""
    if not isinstance(kernel, str):
        return False
    return kernel in ("linear", "rbf", "laplacian") or (kernel == "poly" and coef0 >= 0 and float(degree).is_integer())


def eigenvalue_rtol(dtype: DTypeLike) -> float:
    """Negative eigenvalues of a kernel matrix computed in this number type, relative to the largest one, at most."""
    return GRAM32_RTOL if dtype == np.float32 else float(np.sqrt(np.finfo(np.float64).eps))


def refuse_indefinite(smallest: float, largest: float, rounding: float) -> None:
    """Refuse the eigenvalues of a kernel matrix that has negative ones beyond rounding."""
    if smallest < -rounding * largest:
        raise ValueError(
            f"The kernel matrix is not positive semi-definite (smallest eigenvalue {smallest:.2e}, largest "
            f"{largest:.2e}): a machine penalised by the kernel norm needs such a kernel."
        )


def gram(
    X: Rows,
    Z: Any | None = None,
    kernel: Kernel = "rbf",
    gamma: float = 1.0,
    degree: float = 3,
    coef0: float = 0.0,
    dtype: DTypeLike | None = None,
) -> np.ndarray:
    """Matrix of the kernel between the rows of ``X`` and of ``Z`` (of ``X`` with itself where ``Z`` is None).

    Parameters
    ----------
    X, Z : {ndarray, sparse matrix} of shape (n, d) and (m, d)
        Rows.  For ``"precomputed"``, ``X`` holds the kernel rows and ``Z`` is not used.
    kernel : str or callable
        One of ``KERNELS``, or a function of ``X`` and ``Z``.
    gamma, degree, coef0 : float
        Parameters of the kernel, numbers (see `resolve_gamma`).
    dtype : dtype, default=None
        Of the computation and of the result; by default that of ``X``.

    Returns
    -------
    K : ndarray of shape (n, m)
    """
    dtype = np.dtype(dtype or X.dtype)
    if callable(kernel):
        K = kernel(X, X if Z is None else Z)
        K = np.asarray(K.toarray() if sparse.issparse(K) else K)
        wanted = (X.shape[0], (X if Z is None else Z).shape[0])
        if K.shape != wanted or K.dtype.kind not in "biuf":
            raise ValueError(f"The kernel function must give real numbers of shape {wanted}, got {K.dtype}, {K.shape}.")
        return _finite(K.astype(dtype, copy=False), kernel)
    if kernel == "precomputed":
        return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        base = base_matrix(X, Z, kernel, dtype, gamma)
    return _finite(kernel_from_base(base, kernel, gamma, degree, coef0, out=base), kernel)


def _finite(K: np.ndarray, kernel: Kernel) -> np.ndarray:
    """The matrix, checked where the kernel (a power or a function) may give numbers that are not finite."""
    if (callable(kernel) or kernel == "poly") and not np.isfinite(K).all():
        raise ValueError(f"kernel={kernel!r} gives NaN or infinity; scale the features or change its parameters.")
    return K


def gram_diagonal(
    X: Rows, kernel: Kernel = "rbf", gamma: float = 1.0, degree: float = 3, coef0: float = 0.0
) -> np.ndarray:
    """``K(x_i, x_i)`` for every row, without the matrix (``"precomputed"``: the diagonal of the square ``X``)."""
    if kernel in ("rbf", "laplacian"):
        return np.ones(X.shape[0], dtype=X.dtype)
    if kernel == "precomputed":
        return np.asarray(X.diagonal())
    if callable(kernel):
        return np.array([gram(X[i : i + 1], None, kernel, dtype=np.float64).item() for i in range(X.shape[0])])
    squares = squared_norms(X, X.dtype)
    if kernel == "linear":
        return squares
    with np.errstate(over="ignore", invalid="ignore"):
        products = gamma * squares.astype(np.float64) + coef0
        return np.tanh(products) if kernel == "sigmoid" else _finite(products**degree, kernel)
