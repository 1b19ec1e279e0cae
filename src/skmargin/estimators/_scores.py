"""Fitted machines as they are published, linear or with a kernel: scores and labels of rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.utils import Tags, assert_all_finite

from .._config import get_config
from .._core import _ext
from .._runtime.threads import thread_count
from .._types import Rows, RowsLike
from ..rows.gram import eigenvalue_rtol, gram, is_definite
from ..rows.kernel_rows import kernel_scores, kernel_winners
from ..solvers.two_class.lapack import is_indefinite
from ._base import MarginClassifier, Problem, warn_of_fit

EXAMINED = (500, 4000)  # rows whose matrix tells whether a kernel is positive semi-definite: 2 ms, then half a second
COPIED = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.uint64)  # labels that the core may write


class LinearScores(MarginClassifier):
    """Base of the linear machines: ``coef_`` is one row a class (a single row for two classes).

    With very many classes and sparse rows it is a CSR array (`skmargin.get_config` says from which size on).
    """

    coef_: Any
    intercept_: np.ndarray

    def _set_linear(self, W: Any, b: np.ndarray) -> None:
        """Publish class vectors ``W`` (k, d) and intercepts ``b`` (k,), with one row for two classes."""
        if W.shape[0] == 2:
            W, b = W[1:] - W[:1], b[1:] - b[:1]
        # One feature after the other in memory: products with sparse rows would copy it otherwise.
        self.coef_, self.intercept_ = W if sparse.issparse(W) else np.asfortranarray(W), np.array(b)

    def predict_top(self, X: RowsLike, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k best classes of each row with their scores, without an array of all scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows to classify.
        k : int
            How many classes, from 1 to the number of classes.

        Returns
        -------
        classes : ndarray of shape (n_samples, k)
            The classes with the largest scores, the best first; of equals the first in ``classes_`` is first.
        scores : ndarray of shape (n_samples, k)
            Their scores.  With two classes, whose score is one number, half of it and minus that.
        """
        n_classes = len(getattr(self, "classes_", ()))
        X = self._check_predict(X)
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= n_classes:
            raise ValueError(f"k must be a whole number from 1 to the number of classes, {n_classes}, got {k!r}.")
        if n_classes == 2 or "coef_" not in self.__dict__:
            places, scores = self._top_of_blocks(X, int(k))
        else:
            places, scores = self._tiled(X, int(k))
        if not np.isfinite(scores).all():
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        return self.classes_.take(places), scores

    def _top_of_blocks(self, X: Rows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """From all scores of some rows at a time."""
        step = self._tuning.common.block_of(len(self.classes_))
        found = []
        for start in range(0, X.shape[0], step):
            scores = self._scores(X[start : start + step])
            if len(self.classes_) == 2:
                scores = np.hstack([-scores, scores]) / 2
            places = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            found.append((places, np.take_along_axis(scores, places, axis=1)))
        return np.vstack([places for places, _ in found]), np.vstack([scores for _, scores in found])

    def _tiled(self, X: Rows, top: int) -> Any:
        """Places and scores of the best classes, or with ``top=0`` all scores, from tiles of classes."""
        W, dtype = self.coef_, X.dtype
        if sparse.issparse(W):
            vectors: tuple[np.ndarray, ...] = W.data, W.indices, W.indptr.astype(W.indices.dtype, copy=False)
            if W.indptr[-1] > np.iinfo(W.indices.dtype).max:
                vectors = W.data, W.indices.astype(np.int64), W.indptr.astype(np.int64)
        else:
            vectors = (np.asfortranarray(W),)
        rows = _arrays(X) | {"d": X.shape[1]} if sparse.issparse(X) else {"X": np.ascontiguousarray(X)}
        threads = thread_count(getattr(self, "n_jobs", None))
        return _ext.tiled_scores(
            **rows, W=vectors, b=self.intercept_.astype(dtype, copy=False), top=top, threads=threads
        )

    def _class_vectors(self) -> tuple[np.ndarray, np.ndarray] | None:
        """One vector and intercept a class of the last fit, if it was one of such rows and classes."""
        W, b = getattr(self, "coef_", None), getattr(self, "intercept_", None)
        if W is None or b is None or sparse.issparse(W):
            return None
        if len(W) == 1:
            W, b = np.vstack([-W / 2, W / 2]), np.concatenate([-b / 2, b / 2])
        return (W, b) if W.shape == (len(self.classes_), self.n_features_in_) else None

    def _scores_show_nonfinite(self) -> bool:
        return True  # a product with NaN or infinity is not finite, whatever the coefficient

    def _takes_columns(self, X: np.ndarray) -> bool:
        return (
            not sparse.issparse(self.__dict__.get("coef_"))
            and self._scores_show_nonfinite()
            and X.shape[1] >= self._tuning.common.least_block
            and X.flags.f_contiguous
        )

    def _scores(self, X: Rows) -> np.ndarray:
        if sparse.issparse(self.coef_):
            return self._sparse_scores(X)
        W, b = self._typed(X.dtype)
        if not np.isfinite(W).all():  # class vectors beyond float32
            return self._scores(X.astype(np.float64))
        if self._in_core(X):
            return _ext.linear_scores(**_arrays(X), W=W, b=b)
        # BLAS is slow with columns on the left.
        scores = X @ W.T if X.flags.c_contiguous else np.ascontiguousarray((W @ X.T).T)
        if b.any():
            scores += b
        return scores

    def _sparse_scores(self, X: Rows) -> np.ndarray:
        n, k = X.shape[0], self.coef_.shape[0]
        size, most = n * k * X.dtype.itemsize, get_config()["max_dense_bytes"]
        if size > most:
            raise MemoryError(
                f"The scores of {n} rows for {k} classes take {size} bytes, and max_dense_bytes={most}. Use "
                "predict_top for the best of them, fewer rows, or skmargin.set_config for a larger limit."
            )
        return self._tiled(X, 0)

    def _labels(self, X: Rows) -> np.ndarray:
        if sparse.issparse(self.coef_):
            if len(self.classes_) == 2:
                return super()._labels(X)
            places, scores = self._tiled(X, 1)
            if not np.isfinite(scores).all():
                assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
            return self.classes_.take(places[:, 0])
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

    def _typed(self, dtype: DTypeLike) -> tuple[np.ndarray, np.ndarray]:
        """Class vectors, one feature after the other in memory, and intercepts in the number type of the rows."""
        W, b = self.coef_, self.intercept_
        if W.dtype != dtype or not W.flags.f_contiguous:
            with np.errstate(over="ignore"):
                W = np.asfortranarray(W, dtype=dtype)
        return W, b if b.dtype == dtype else b.astype(dtype)

    def _in_core(self, X: Rows) -> bool:
        """Whether the core computes scores faster than BLAS would; it is faster than SciPy for sparse rows."""
        if not isinstance(X, np.ndarray):
            return True
        if not X.flags.c_contiguous:
            return False
        return self.coef_.size <= self._tuning.common.cache_numbers


def _arrays(X: Rows) -> dict[str, Any]:
    """Rows as the core takes them: one array, or three of CSR."""
    if isinstance(X, np.ndarray):
        return {"X": X}
    return {"indptr": X.indptr, "indices": X.indices, "data": np.ascontiguousarray(X.data)}


class KernelScores(LinearScores):
    """Base of the machines with a kernel, which have ``coef_`` where it is linear.

    Otherwise they have ``dual_coef_``, one column a class (a single column for two classes), of ``support_``.
    """

    dual_gap_: float | None

    def _set_linear(self, W: Any, b: np.ndarray) -> None:
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

    def _is_indefinite(self, X: Rows) -> bool:
        """Whether the kernel matrix has negative eigenvalues; of very many rows, that of some of them.

        Where it has, no machine is the best: along their vectors longer coefficients cost less and less, so that no
        bound holds.  A part of the matrix with a negative eigenvalue is enough to know, one without is not.
        """
        if is_definite(self.kernel, self.degree, self.coef0):
            return False
        n = X.shape[0]
        parts = [np.linspace(0, n - 1, most).astype(np.intp) for most in EXAMINED if most < n]
        if n <= EXAMINED[-1]:
            parts.append(np.arange(n))
        for some in parts:
            if self._is("precomputed"):
                K = X[some][:, some].toarray() if sparse.issparse(X) else X[some[:, None], some]
            else:
                K = gram(X[some], None, self.kernel, self._gamma, self.degree, self.coef0, dtype=np.float64)
            K = np.asarray(K, dtype=np.float64)
            if is_indefinite(np.ascontiguousarray(0.5 * (K + K.T)), eigenvalue_rtol(X.dtype)):
                return True
        return False

    def _has_no_certificate(self) -> bool:
        """Whether the kernel of this fit is indefinite: then it is said, and no gap is published."""
        if not self.__dict__.pop("_indefinite", False):
            return False
        self.dual_gap_ = None
        warn_of_fit(
            f"kernel={self.kernel!r} is not positive semi-definite on these rows: the problem of "
            f"{type(self).__name__} is not convex, so that there is no certificate (dual_gap_ is None). Change the "
            "parameters of the kernel, or take another one."
        )
        return True

    def _forget(self) -> None:
        for name in ("coef_", "dual_coef_", "support_", "support_vectors_"):
            self.__dict__.pop(name, None)

    def _is(self, kernel: str) -> bool:
        return isinstance(self.kernel, str) and self.kernel == kernel

    def _scores_show_nonfinite(self) -> bool:
        return "coef_" in self.__dict__  # kernels may hide what is not finite

    def _scores(self, X: Rows) -> np.ndarray:
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
            self._tuning,
        )

    def _labels(self, X: Rows) -> np.ndarray:
        if "coef_" in self.__dict__:
            return super()._labels(X)
        if not self._is("rbf") or X.dtype != np.float64 or sparse.issparse(X) or sparse.issparse(self.support_vectors_):
            return MarginClassifier._labels(self, X)
        winners = kernel_winners(X, self.support_vectors_, self.dual_coef_, self.intercept_, self._gamma, self._tuning)
        return self.classes_.take(winners)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is("precomputed")
        return tags
