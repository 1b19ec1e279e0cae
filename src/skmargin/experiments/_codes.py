"""Error-correcting output codes with the exhaustive code of Dietterich and Bakiri (1995)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .._types import Estimator, RowsLike

MAX_CLASSES = 11  # Dietterich and Bakiri use the exhaustive code up to here


class ExhaustiveCodeClassifier(ClassifierMixin, BaseEstimator):
    """One two-class machine for each of the ``2^(k-1) - 1`` ways to divide k classes into two groups.

    A row gets the class whose word is nearest in Hamming distance; ties go to the first class.
    scikit-learn's `OutputCodeClassifier` draws its code at random, which for few classes leaves some undecidable.

    Parameters
    ----------
    estimator : classifier
        The two-class machine.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import LinearSVC
    >>> from skmargin.experiments import ExhaustiveCodeClassifier
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> model = ExhaustiveCodeClassifier(LinearSVC(dual=False)).fit(X / 16, y)
    >>> len(model.estimators_), bool(model.score(X / 16, y) > 0.9)
    (7, True)
    """

    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator

    def fit(self, X: RowsLike, y: Any) -> ExhaustiveCodeClassifier:
        """Fit all machines."""
        X, y = validate_data(self, X, y, accept_sparse="csr")
        self.classes_, index = np.unique(y, return_inverse=True)
        k = len(self.classes_)
        if not 2 <= k <= MAX_CLASSES:
            raise ValueError(f"The exhaustive code is for 2 to {MAX_CLASSES} classes; y has {k}.")
        # Column c holds the binary digits of c: the last class is always in group 0, and no column is constant.
        columns = np.arange(1, 2 ** (k - 1))
        self.code_ = (columns[None, :] >> np.arange(k)[:, None]) & 1
        self.estimators_ = [clone(self.estimator).fit(X, column[index]) for column in self.code_.T]
        return self

    def predict(self, X: RowsLike) -> np.ndarray:
        """Class with the nearest word."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        words = np.stack([model.predict(X) for model in self.estimators_], axis=1)
        agree = words @ self.code_.T + (1 - words) @ (1 - self.code_.T)
        out: np.ndarray = self.classes_[agree.argmax(axis=1)]
        return out
