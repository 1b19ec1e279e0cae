"""The data of one fold, sliced once and shared by all candidates on all threads.

What candidates share is made by the first that asks for it: the slices of X, the rows behind the first steps of a
pipeline, and the matrix that the kernels of all widths have in common.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _check_sample_weight

from ..estimators._base import MarginClassifier, encode_labels
from ..estimators._dual import DualMachine
from ..kernels._rows import row_dtype
from ..kernels.gram import base_matrix, kernel_from_base, resolve_gamma
from ._pipelines import split_fit_params

KERNELS = ("rbf", "laplacian", "poly", "sigmoid")  # whose widths have a matrix in common
LARGEST_GRAM = 2**30  # bytes of a kernel matrix up to which it is kept whole


class Rows(NamedTuple):
    """Rows as the classifier sees them."""

    train: Any
    test: Any
    fit_params: dict[str, Any]
    key: Any  # of the steps that made them


class Fold:
    """One split of the data.  Its arrays live from the first use until every task has left."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        split: tuple[Any, Any],
        fit_params: dict[str, Any],
        score_params: dict[str, Any],
    ) -> None:
        self._source = (estimator, X, y, fit_params, score_params)
        self.indices = split
        self._lock = threading.RLock()
        self._shared: dict[Any, Any] = {}
        self.n_tasks = 0

    def enter(self) -> None:
        """Slice the data unless another task has done so."""
        estimator, X, y, fit_params, score_params = self._source
        train, test = self.indices
        with self._lock:
            if not self._shared:
                self.X_train, self.y_train = _safe_split(estimator, X, y, train)
                self.X_test, self.y_test = _safe_split(estimator, X, y, test, train)
                self.fit_params = _check_method_params(X, fit_params, indices=train)
                self.score_params_train = _check_method_params(X, score_params, indices=train)
                self.score_params_test = _check_method_params(X, score_params, indices=test)
                self._shared["rows"] = Rows(self.X_train, self.X_test, self.fit_params, None)

    def leave(self) -> None:
        """One task is done; the last one frees the memory."""
        with self._lock:
            self.n_tasks -= 1
            if self.n_tasks == 0:
                self._shared.clear()
                del self.X_train, self.X_test

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._shared:
                self._shared[key] = make()
            return self._shared[key]

    def rows(self) -> Rows:
        """The rows themselves."""
        return self._shared["rows"]

    def rows_behind(self, pipeline: Any, key: Any) -> Rows:
        """The rows behind the first steps of a pipeline, which are fitted once for each ``key`` of their settings."""
        front = pipeline[:-1]

        def make() -> Rows:
            front_params, fit_params = split_fit_params(pipeline, self.fit_params)
            train = front.fit_transform(self.X_train, self.y_train, **front_params)
            return Rows(train, front.transform(self.X_test), fit_params, key)

        return self._once(("front", key), make)

    def gram(self, classifier: Any, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Kernel matrices of the training rows, and of the test rows with them; widths share their distances."""
        dtype = row_dtype(classifier.tol) if isinstance(classifier, DualMachine) else np.float64
        kernel = classifier.kernel

        def make() -> tuple[Any, ...]:
            train, test = (check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]) for X in rows[:2])
            return train, base_matrix(train, None, kernel, dtype), base_matrix(test, train, kernel, dtype)

        train, within, across = self._once(("base", rows.key, kernel, np.dtype(dtype).name), make)
        weight = _check_sample_weight(rows.fit_params.get("sample_weight"), train, dtype=np.float64)
        _, _, weight, kept = encode_labels(np.asarray(self.y_train), weight, classifier.class_weight)
        counted = train if len(kept) == train.shape[0] else train[kept]
        gamma = resolve_gamma(classifier.gamma, counted, weight, kernel)
        options = (kernel, gamma, classifier.degree, classifier.coef0)
        return kernel_from_base(within, *options), kernel_from_base(across, *options)


def shares_gram(classifier: Any, n_train: int) -> bool:
    """Whether the kernel matrix of a classifier is worth making whole, for several candidates to use."""
    if not isinstance(classifier, MarginClassifier) or not hasattr(classifier, "kernel"):
        return False
    named = isinstance(classifier.kernel, str) and classifier.kernel in KERNELS
    return named and np.ndim(classifier.gamma) == 0 and 8 * n_train**2 <= LARGEST_GRAM
