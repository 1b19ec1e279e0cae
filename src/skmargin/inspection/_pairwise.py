"""Margins between pairs of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.multiclass import OneVsOneClassifier
from sklearn.utils.validation import check_is_fitted

from .._types import Estimator, LabelsLike
from ._class_vectors import class_vectors, decides_pairs, dual_rows, linear_parts, support_gram
from ._margins import final_estimator, label_codes, score_columns


def pairwise_margins(estimator: Estimator) -> np.ndarray:
    """Width of the margin between every two classes, ``2 / ||w_k - w_l||``.

    Parameters
    ----------
    estimator : fitted classifier
        A linear classifier (``coef_``), a kernel machine (``dual_coef_`` and ``support_vectors_``), one-vs-rest or
        one-vs-one machines made of linear ones, or a pipeline or parameter search that ends in one of these.  Behind a
        pipeline the widths are those in the space that the last step sees.

    Returns
    -------
    widths : ndarray of shape (n_classes, n_classes)
        Symmetric, in the order of ``classes_``; the diagonal is NaN.  Infinite where two classes share one vector.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from skmargin.inspection import pairwise_margins
    >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), [0, 0, 1, 1]
    >>> pairwise_margins(SVC(kernel="linear", C=100).fit(X, y)).round(6)
    array([[nan,  3.],
           [ 3., nan]])
    """
    check_is_fitted(estimator)
    estimator = final_estimator(estimator)
    k = len(estimator.classes_)
    if isinstance(estimator, OneVsOneClassifier):
        squared = _pairs(k, [float((linear_parts(part)[0] ** 2).sum()) for part in estimator.estimators_])
    elif k > 2 and decides_pairs(estimator):
        linear = hasattr(estimator, "coef_")
        norms = (linear_parts(estimator)[0] ** 2).sum(axis=1) if linear else _libsvm_pair_norms(estimator)
        squared = _pairs(k, norms)
    else:
        products = class_vectors(estimator).gram
        norms = products.diagonal()
        squared = np.maximum(norms[:, None] + norms - products - products.T, 0)
    with np.errstate(divide="ignore"):
        widths = 2 / np.sqrt(squared)
    np.fill_diagonal(widths, np.nan)
    return widths


def _pairs(k: int, values: Any) -> np.ndarray:
    """Symmetric matrix from the values of the pairs (0,1), (0,2), .. (k-2,k-1)."""
    matrix = np.zeros((k, k))
    matrix[np.triu_indices(k, 1)] = values
    return matrix + matrix.T


def _libsvm_pair_norms(estimator: Estimator) -> list[float]:
    """``||w_ij||^2`` of the one-vs-one machines in LIBSVM's layout: the coefficients of class i against class j are row
    j - 1 (j > i) or j (j < i) of ``dual_coef_``, in the columns of the support vectors of class i.
    """
    a, K = dual_rows(estimator), support_gram(estimator)
    if not hasattr(estimator, "n_support_"):  # machines on a shared basis: one row of coefficients each
        return list(np.maximum(np.einsum("ij,jk,ik->i", a, K, a), 0))
    ends = np.concatenate([[0], np.cumsum(estimator.n_support_)])
    norms = []
    for i in range(len(estimator.classes_)):
        for j in range(i + 1, len(estimator.classes_)):
            rows_i, rows_j = np.arange(ends[i], ends[i + 1]), np.arange(ends[j], ends[j + 1])
            rows = np.concatenate([rows_i, rows_j])
            c = np.concatenate([a[j - 1, rows_i], a[i, rows_j]])
            norms.append(float(max(c @ K[np.ix_(rows, rows)] @ c, 0.0)))
    return norms


def pairwise_score_gaps(y: LabelsLike, scores: Any, classes: Any) -> np.ndarray:
    """How far the samples of each class lie on the right side of every other class: median of ``f_k - f_l``.

    Unlike `pairwise_margins` this needs nothing but scores, so it exists for every classifier.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels.
    scores : array-like of shape (n_samples, n_classes) or (n_samples,)
        What ``decision_function`` gave.
    classes : array-like of shape (n_classes,)
        The labels in the order of the columns.

    Returns
    -------
    gaps : ndarray of shape (n_classes, n_classes)
        Row: true class; column: rival.  Not symmetric; the diagonal, and a row without samples, is NaN.

    Examples
    --------
    >>> from skmargin.inspection import pairwise_score_gaps
    >>> pairwise_score_gaps(["a", "b"], [[2.0, 0.5], [0.0, 1.0]], ["a", "b"])
    array([[nan, 1.5],
           [1. , nan]])
    """
    classes = np.asarray(classes)
    scores = score_columns(scores, len(classes))
    codes = label_codes(y, classes)
    gaps = np.full((len(classes), len(classes)), np.nan)
    for code in np.unique(codes):
        own = scores[codes == code]
        gaps[code] = np.median(own[:, code, None] - own, axis=0)
    np.fill_diagonal(gaps, np.nan)
    return gaps
