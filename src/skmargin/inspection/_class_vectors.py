"""The vectors w_1 .. w_k behind the scores of a classifier, as far as their norms and products go.

A linear classifier shows them as ``coef_``; a kernel machine only has their inner products, a'Ka.  So everything here
works on the Gram matrix of the class vectors, which both have.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.svm import SVC, NuSVC
from sklearn.utils import check_array

from .._types import Estimator, RowsLike
from ..rows.gram import gram, gram_diagonal


class ClassVectors(NamedTuple):
    """Gram matrix of the class vectors (k, k) and the intercepts (k,).  Two classes: w_1 = -w_0 = coef / 2."""

    gram: np.ndarray
    intercept: np.ndarray


def class_vectors(estimator: Estimator) -> ClassVectors:
    """Inner products of the class vectors of a bare classifier (no pipeline) that scores with one vector a class."""
    if len(estimator.classes_) > 2 and decides_pairs(estimator):
        raise TypeError(f"{type(estimator).__name__} decides between pairs: it has no vector for each class.")
    if isinstance(estimator, OneVsRestClassifier):
        parts = [linear_parts(part) for part in estimator.estimators_]
        W, b = np.vstack([w for w, _ in parts]), np.concatenate([b for _, b in parts])
    elif isinstance(estimator, SVC | NuSVC):
        return per_class(estimator, dual_gram(estimator), np.asarray(estimator.intercept_, dtype=np.float64))
    elif hasattr(estimator, "coef_"):
        W, b = linear_parts(estimator)
    elif hasattr(estimator, "dual_coef_"):
        products = dual_gram(estimator)
        b = np.zeros(len(products)) + np.asarray(getattr(estimator, "intercept_", 0.0), dtype=np.float64)
        return per_class(estimator, products, b)
    else:
        raise TypeError(
            f"{type(estimator).__name__} has neither coef_ nor dual_coef_: it has no vector for each class."
        )
    return per_class(estimator, W @ W.T, b)


def decides_pairs(estimator: Estimator) -> bool:
    """Whether the classifier has a machine for each pair of classes (when there are more than two)."""
    pairs = getattr(estimator, "multi_class", None) in ("ovo", "fuzzy_pairwise")
    return pairs or isinstance(estimator, OneVsOneClassifier | SVC | NuSVC)


def per_class(estimator: Estimator, products: np.ndarray, b: np.ndarray) -> ClassVectors:
    """Give each class its vector; the one vector v of a binary classifier is split: w_1 = -w_0 = v / 2."""
    k = len(estimator.classes_)
    if k == 2 and len(products) == 1:
        sign = np.array([-0.5, 0.5])
        return ClassVectors(products[0, 0] * np.outer(sign, sign), sign * b[0])
    if len(products) != k or len(b) != k:
        raise TypeError(f"{type(estimator).__name__} has {len(products)} vectors for {k} classes.")
    return ClassVectors(products, b)


def linear_parts(estimator: Estimator) -> tuple[np.ndarray, np.ndarray]:
    """``coef_`` as a dense float64 matrix with a row a vector, and the intercepts."""
    if not hasattr(estimator, "coef_"):
        raise TypeError(f"{type(estimator).__name__} has no coef_: its class vectors are not known.")
    W = estimator.coef_
    W = np.atleast_2d(np.asarray(W.toarray() if sparse.issparse(W) else W, dtype=np.float64))
    return W, np.zeros(len(W)) + np.asarray(getattr(estimator, "intercept_", 0.0), dtype=np.float64)


def dual_gram(estimator: Estimator) -> np.ndarray:
    """``a'Ka`` of the machines' coefficients a over the support vectors."""
    a = dual_rows(estimator)
    return a @ support_gram(estimator) @ a.T


def support_rows(estimator: Estimator) -> Any:
    """The support vectors, where the machine keeps them (not for a precomputed kernel)."""
    names = ("support_vectors_", "_fitted_rows")
    rows = next((getattr(estimator, name) for name in names if hasattr(estimator, name)), None)
    if rows is None or rows.shape[0] not in estimator.dual_coef_.shape:
        raise TypeError(
            f"{type(estimator).__name__} with kernel={getattr(estimator, 'kernel', None)!r} keeps no support vectors: "
            "its class vectors are not known."
        )
    return rows


def dual_rows(estimator: Estimator) -> np.ndarray:
    """``dual_coef_`` with a column for each support vector, also of machines that keep a row for each.

    Where it is square the names tell: ``n_support_`` counts columns, and a machine on a basis has no public rows.
    """
    a = estimator.dual_coef_
    a = np.asarray(a.toarray() if sparse.issparse(a) else a, dtype=np.float64)
    n = support_rows(estimator).shape[0]
    by_row = hasattr(estimator, "support_vectors_") and not hasattr(estimator, "n_support_")
    return a.T if a.shape[0] == n and (a.shape[1] != n or by_row) else a


def support_gram(estimator: Estimator) -> np.ndarray:
    """Kernel matrix of the support vectors."""
    return gram(support_rows(estimator), dtype=np.float64, **kernel_parameters(estimator))


def kernel_parameters(estimator: Estimator) -> dict[str, Any]:
    """The kernel of a machine with its numbers, ready for `skmargin.rows.gram`; linear where it has none."""
    if hasattr(estimator, "coef_") or not hasattr(estimator, "kernel"):
        return {"kernel": "linear"}
    found = {"kernel": estimator.kernel}
    for name, fitted in (("gamma", ("gamma_", "_gamma", "gamma")), ("degree", ("degree",)), ("coef0", ("coef0",))):
        value = next((getattr(estimator, attribute) for attribute in fitted if hasattr(estimator, attribute)), None)
        if value is not None and not isinstance(value, str):
            found[name] = value
    return found


def kernel_diagonal(estimator: Estimator, X: RowsLike) -> np.ndarray:
    """``k(x_i, x_i)`` of every row."""
    X = X.tocsr() if sparse.issparse(X) else check_array(X, dtype=[np.float64, np.float32])
    diagonal = np.asarray(gram_diagonal(X, **kernel_parameters(estimator)), dtype=np.float64)
    if (diagonal < 0).any():
        raise ValueError(
            "A bound needs a positive semi-definite kernel; this one is negative for a sample with itself."
        )
    return diagonal
