"""The data of one fold, sliced once and shared by all candidates on all threads.

What candidates share is made by the first that asks for it: the slices of X, the rows behind the first steps of a
pipeline, and the matrix that the kernels of all widths have in common.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _check_sample_weight, _num_samples

from .._core import _ext
from .._runtime.shared_rows import SharedRows, window
from .._types import Estimator, LabelsLike, RowsLike
from ..estimators._base import MarginClassifier, encode_labels
from ..estimators._dual import DualMachine
from ..estimators._ridge import SHARED
from ..rows.gram import base_matrix, kernel_from_base, resolve_gamma
from ..rows.kernel_rows import max_squared_norm, row_dtype
from ..solvers.dual.plan import can_factor
from ._pipelines import split_fit_params


class FoldRows(NamedTuple):
    """Rows as the classifier sees them."""

    train: Any
    test: Any
    fit_params: dict[str, Any]
    key: Any  # of the steps that made them


class BaseMatrix(NamedTuple):
    """The matrix that the kernels of all widths share, and where the rows of a fold are in it."""

    matrix: np.ndarray
    train: np.ndarray
    test: np.ndarray

    def square(self, classifier: Estimator, rows: np.ndarray, gamma: float) -> np.ndarray:
        """The kernel of some training rows with themselves, at least from the diagonal on."""
        return self._kernel(classifier, gamma, self.train[rows], self.train[rows], triangle=True)

    def kernel(self, classifier: Estimator, gamma: float, rows: np.ndarray, order: Any = slice(None)) -> np.ndarray:
        """The kernel between some rows (``train`` or ``test``) and the training rows, which ``order`` may rearrange."""
        return self._kernel(classifier, gamma, rows, self.train[order], triangle=False)

    def _kernel(
        self, classifier: Estimator, gamma: float, rows: np.ndarray, columns: np.ndarray, triangle: bool
    ) -> np.ndarray:
        if classifier.kernel in ("rbf", "laplacian") and self.matrix.dtype == np.float64:
            # What is not written is multiplied with the rest by those who scale the matrix.
            out = (np.zeros if triangle else np.empty)((len(rows), len(columns)))
            _ext.exponential_block(self.matrix, rows, columns, gamma, out, triangle)
            return out
        part = self.matrix[rows[:, None], columns]
        return kernel_from_base(part, classifier.kernel, gamma, classifier.degree, classifier.coef0, out=part)


class MadeOnce:
    """Things that the first who asks for them makes, for all threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.made: dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """What ``make()`` gave the first time."""
        with self.lock:
            if key not in self.made:
                self.made[key] = make()
            return self.made[key]


class Fold:
    """One split of the data.  Its arrays live from the first use until every task has left."""

    def __init__(
        self,
        estimator: Estimator,
        X: RowsLike,
        y: LabelsLike,
        split: tuple[Any, Any],
        fit_params: dict[str, Any],
        score_params: dict[str, Any],
        of_all_folds: MadeOnce,
        parts: tuple[Any, Any] | None = None,
        shared: SharedRows | None = None,
    ) -> None:
        self._source = (estimator, X, y, fit_params, score_params)
        self.indices, self._parts = split, parts
        self._own, self._of_all_folds = MadeOnce(), of_all_folds
        self.n_tasks = 0
        self.shared = shared
        self.X_train: RowsLike = None
        self.X_test: RowsLike = None

    def enter(self) -> None:
        """Slice the data unless another task has done so."""
        estimator, X, y, fit_params, score_params = self._source
        train, test = self.indices
        with self._own.lock:
            if not self._own.made:
                if self._parts is None:
                    self.X_train, self.y_train = _safe_split(estimator, X, y, train)
                    self.X_test, self.y_test = _safe_split(estimator, X, y, test, train)
                else:
                    self.X_train, self.X_test = self._parts
                    self.y_train, self.y_test = _safe_indexing(y, train), _safe_indexing(y, test)
                self.fit_params = _check_method_params(X, fit_params, indices=train)
                self.score_params_train = _check_method_params(X, score_params, indices=train)
                self.score_params_test = _check_method_params(X, score_params, indices=test)
                self._own.made["rows"] = FoldRows(self.X_train, self.X_test, self.fit_params, None)

    def leave(self) -> None:
        """One task is done; the last one frees the memory."""
        with self._own.lock:
            self.n_tasks -= 1
            if self.n_tasks == 0:
                self._own.made.clear()
                self.X_train = self.X_test = None

    def rows(self) -> FoldRows:
        """The rows themselves."""
        return self._own.made["rows"]

    def rows_behind(self, pipeline: Any, key: Any) -> FoldRows:
        """The rows behind the first steps of a pipeline, which are fitted once for each ``key`` of their settings."""
        front = pipeline[:-1]

        def make() -> FoldRows:
            front_params, fit_params = split_fit_params(pipeline, self.fit_params)
            train = front.fit_transform(self.X_train, self.y_train, **front_params)
            return FoldRows(train, front.transform(self.X_test), fit_params, key)

        return self._own.get(("front", key), make)

    def base(self, classifier: Estimator, rows: FoldRows) -> BaseMatrix:
        """What the kernels of all widths share: one matrix for all folds, unless a pipeline makes the rows."""
        kernel = classifier.kernel
        X, y = self._source[1:3]
        dtype = np.dtype(self._row_dtype(classifier, X if rows.key is None else rows.train, rows.key))
        if rows.key is None:

            def of_all() -> tuple[np.ndarray, np.ndarray]:
                order = np.argsort(np.ravel(y), kind="stable")  # two-class machines then read what is close together
                place = np.empty_like(order)
                place[order] = np.arange(len(order))
                return base_matrix(checked(X)[order], None, kernel, dtype), place

            matrix, place = self._of_all_folds.get((kernel, dtype.name), of_all)
            return BaseMatrix(matrix, *(place[part] for part in self.indices))

        def make() -> np.ndarray:
            parts = [checked(X) for X in (rows.train, rows.test)]
            stacked = sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)
            return base_matrix(stacked, None, kernel, dtype)

        matrix = self._own.get(("base", rows.key, kernel, dtype.name), make)
        n = _num_samples(rows.train)
        return BaseMatrix(matrix, np.arange(n), np.arange(n, len(matrix)))

    def _row_dtype(self, classifier: Estimator, X: RowsLike, key: Any) -> Any:
        """Number type of a matrix of this width."""
        if not isinstance(classifier, DualMachine):
            return np.float64
        if can_factor(_num_samples(X), classifier.cache_size, classifier._tuning):  # no factor of a rounded matrix
            return np.float64
        if classifier.kernel != "rbf":
            return row_dtype(classifier.tol)

        def reach() -> tuple[float, dict[str, float]]:
            rows = checked(X)
            return max_squared_norm(rows), {name: resolve_gamma(name, rows) for name in ("scale", "auto")}

        square, named = (self._of_all_folds if key is None else self._own).get(("reach", key), reach)
        gamma = classifier.gamma
        return row_dtype(classifier.tol, "rbf", named[gamma] if isinstance(gamma, str) else float(gamma), square)

    def gram(self, classifier: Estimator, rows: FoldRows) -> tuple[np.ndarray, np.ndarray]:
        """Kernel matrices of the training rows, and of the test rows with them."""
        gamma = classifier.gamma
        if isinstance(gamma, str):
            train = checked(rows.train)
            weight = _check_sample_weight(rows.fit_params.get("sample_weight"), train, dtype=np.float64)
            _, _, weight, kept = encode_labels(np.ravel(self.y_train), weight, classifier.class_weight)
            gamma = resolve_gamma(gamma, train if len(kept) == train.shape[0] else train[kept], weight)
        base = self.base(classifier, rows)
        return base.kernel(classifier, gamma, base.train), base.kernel(classifier, gamma, base.test)


Parts = tuple[Any, Any]  # training and test part: positions, or rows


class Windows(NamedTuple):
    """Splits with the rows rearranged, their rows as views of one array, and that array for the solvers to share."""

    splits: list[Parts]
    parts: list[Parts]
    shared: SharedRows


def windows(X: RowsLike, splits: list[Parts]) -> Windows | None:
    """Folds as views of one array, however many of them are in work.

    Where the test sets are a partition, the rows in the order of the folds, those of all but two of them written twice,
    hold the training rows of each fold in one piece: those behind its test set, round to those before it.  None for
    other splits, and for rows that cannot be viewed.  For classifiers to which the order of the rows means nothing.
    """
    if not is_float(X):
        return None
    n = X.shape[0]
    tests = [test for _, test in splits]
    order = np.concatenate(tests)
    if len(order) != n or (np.bincount(order, minlength=n) != 1).any():
        return None
    for (train, _), test in zip(splits, tests, strict=True):
        if len(train) != n - len(test) or np.isin(train, test).any():
            return None
    twice = np.concatenate([*tests[1:], *tests[:-1]])  # the training rows of the first fold, .. of the last
    rows = X[twice]
    starts = np.cumsum([0, *(len(test) for test in tests[1:]), *(len(test) for test in tests[:-1])])
    slices = []
    for number, test in enumerate(tests):
        train = slice(starts[number], starts[number] + n - len(test))
        place = starts[number - 1] if number else starts[len(tests) - 1]
        slices.append((train, slice(place, place + len(test))))
    return Windows(
        [(twice[a], twice[b]) for a, b in slices],
        [(window(rows, a), window(rows, b)) for a, b in slices],
        SharedRows(rows, n),
    )


def is_float(X: RowsLike) -> bool:
    """Whether rows are as the solvers take them: a matrix of floats, dense or CSR."""
    known = isinstance(X, np.ndarray) or (sparse.issparse(X) and X.format == "csr")
    return known and X.ndim == 2 and X.dtype in (np.float32, np.float64)


def checked(X: RowsLike) -> Any:
    """Rows as numbers, dense or CSR."""
    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])


def positions(part: Any, X: RowsLike) -> np.ndarray:
    """Where the rows of a part of a split are, which may be a mask or whatever else numpy takes as an index."""
    return np.arange(_num_samples(X))[part]


def shares_gram(classifier: Estimator, n_rows: int) -> bool:
    """Whether the kernel matrix of a classifier is worth making whole, for several candidates to use."""
    if not isinstance(classifier, MarginClassifier) or not hasattr(classifier, "kernel"):
        return False
    named = isinstance(classifier.kernel, str) and classifier.kernel in SHARED
    single = all(np.ndim(getattr(classifier, name, 0)) == 0 for name in ("gamma", "alpha", "C"))
    most = max(classifier._tuning.common.dense_numbers, 2**17 * getattr(classifier, "cache_size", 0))
    return named and single and n_rows**2 <= most
