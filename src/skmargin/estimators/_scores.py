"""Fitted machines as they are published, linear or with a kernel: scores and labels of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite

from .._core import _ext
from ..rows.kernel_rows import kernel_scores, kernel_winners
from ._base import MarginClassifier, Problem

COPIED = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.uint64)  # labels that the core may write


class LinearScores(MarginClassifier):
    """Base of the linear machines: ``coef_`` is one row a class (a single row for two classes)."""

    coef_: np.ndarray
    intercept_: np.ndarray

    def _set_linear(self, W: np.ndarray, b: np.ndarray) -> None:
        """Publish class vectors ``W`` (k, d) and intercepts ``b`` (k,), with one row for two classes."""
        if len(W) == 2:
            W, b = W[1:] - W[:1], b[1:] - b[:1]
        # One feature after the other in memory: products with sparse rows would copy it otherwise.
        self.coef_, self.intercept_ = np.asfortranarray(W), np.array(b)

    def _class_vectors(self) -> tuple[np.ndarray, np.ndarray] | None:
        """One vector and intercept a class of the last fit, if it was one of such rows and classes."""
        W, b = getattr(self, "coef_", None), getattr(self, "intercept_", None)
        if W is None or b is None:
            return None
        if len(W) == 1:
            W, b = np.vstack([-W / 2, W / 2]), np.concatenate([-b / 2, b / 2])
        return (W, b) if W.shape == (len(self.classes_), self.n_features_in_) else None

    def _scores_show_nonfinite(self) -> bool:
        return True  # a product with NaN or infinity is not finite, whatever the coefficient

    def _takes_columns(self, X: np.ndarray) -> bool:
        return (
            self._scores_show_nonfinite()
            and X.shape[1] >= self._tuning.estimators.column_features
            and X.flags.f_contiguous
        )

    def _scores(self, X: Any) -> np.ndarray:
        W, b = self._typed(X.dtype)
        if self._in_core(X):
            return _ext.linear_scores(**_arrays(X), W=W, b=b)
        # BLAS is slow with columns on the left.
        scores = X @ W.T if X.flags.c_contiguous else np.ascontiguousarray((W @ X.T).T)
        if b.any():
            scores += b
        return scores

    def _labels(self, X: Any) -> np.ndarray:
        if not self._in_core(X):
            return super()._labels(X)
        names = classes = self.classes_
        if classes.dtype not in COPIED:
            names = np.arange(len(classes), dtype=np.int64)
        labels = np.empty(X.shape[0], names.dtype)
        W, b = self._typed(X.dtype)
        if not _ext.linear_labels(**_arrays(X), W=W, b=b, names=names, out=labels):
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        return labels if names is classes else classes.take(labels)

    def _typed(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """Class vectors, one feature after the other in memory, and intercepts in the number type of the rows."""
        W, b = self.coef_, self.intercept_
        if W.dtype != dtype or not W.flags.f_contiguous:
            W = np.asfortranarray(W, dtype=dtype)
        return W, b if b.dtype == dtype else b.astype(dtype)

    def _in_core(self, X: Any) -> bool:
        """Whether the core computes scores faster than BLAS would; it is faster than SciPy for sparse rows."""
        if not isinstance(X, np.ndarray):
            return True
        if not X.flags.c_contiguous:
            return False
        W, tuning = self.coef_, self._tuning.estimators
        few = W.size <= tuning.core_numbers_few and X.shape[0] * W.size <= tuning.core_work
        return (W.size <= tuning.core_numbers or few) and len(W) <= tuning.core_vectors


def _arrays(X: Any) -> dict[str, Any]:
    """Rows as the core takes them: one array, or three of CSR."""
    if isinstance(X, np.ndarray):
        return {"X": X}
    return {"indptr": X.indptr, "indices": X.indices, "data": np.ascontiguousarray(X.data)}


class KernelScores(LinearScores):
    """Base of the machines with a kernel, which have ``coef_`` where it is linear.

    Otherwise they have ``dual_coef_``, one column a class (a single column for two classes), of ``support_``.
    """

    def _set_linear(self, W: np.ndarray, b: np.ndarray) -> None:
        self._forget()
        super()._set_linear(W, b)

    def _set_kernel(self, problem: Problem, coef: np.ndarray, b: np.ndarray, support: np.ndarray | None = None) -> None:
        """Publish coefficients (m, k) of the rows ``support`` and intercepts (k,), with one column for two classes.

        Without ``support`` the coefficients are those of all rows, and it is where they are not zero.
        """
        self._forget()
        if support is None:
            support = np.flatnonzero(coef.any(axis=1))
            if not len(support):  # the zero vector has one support vector: scores need no special case
                support = np.zeros(1, dtype=np.intp)
            coef = coef[support]
        if problem.n_classes == 2:
            coef, b = coef[:, 1:] - coef[:, :1], b[1:] - b[:1]
        self.support_, self.dual_coef_, self.intercept_ = problem.kept[support], coef, np.array(b)
        if not self._is("precomputed"):
            self.support_vectors_ = problem.X[support]

    def _forget(self) -> None:
        for name in ("coef_", "dual_coef_", "support_", "support_vectors_"):
            self.__dict__.pop(name, None)

    def _is(self, kernel: str) -> bool:
        return isinstance(self.kernel, str) and self.kernel == kernel

    def _scores_show_nonfinite(self) -> bool:
        return "coef_" in self.__dict__  # kernels may hide what is not finite

    def _scores(self, X: Any) -> np.ndarray:
        if "coef_" in self.__dict__:
            return super()._scores(X)
        support = None
        if self._is("precomputed"):
            X = X[:, self.support_]
        else:
            support = self.support_vectors_
        return kernel_scores(
            X,
            support,
            self.dual_coef_,
            self.intercept_,
            self.kernel,
            self._gamma,
            self.degree,
            self.coef0,
            self._tuning.kernel_rows,
        )

    def _labels(self, X: Any) -> np.ndarray:
        if "coef_" in self.__dict__:
            return super()._labels(X)
        if not self._is("rbf") or X.dtype != np.float64 or sparse.issparse(X) or sparse.issparse(self.support_vectors_):
            return MarginClassifier._labels(self, X)
        winners = kernel_winners(
            X, self.support_vectors_, self.dual_coef_, self.intercept_, self._gamma, self._tuning.kernel_rows
        )
        return self.classes_.take(winners)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is("precomputed")
        return tags
