"""Further parts of the report: rates of each class, calibration, the features that decide."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from .._types import Estimator, RowsLike
from ..inspection._margins import final_estimator
from ._confusion import Confusion

N_CALIBRATION = 10  # groups of samples in the calibration curve
N_FEATURES = 8  # that decide, of each class
MAX_PERMUTED = 64  # columns that are shuffled one after the other
MAX_ROWS = 500  # that are predicted again with each of them
PATIENCE = 10.0  # seconds for all of it


def uncalibrated(estimator: Estimator) -> Any:
    """The pipeline without the calibration of its last step: its scores, not only its probabilities."""
    steps = getattr(estimator, "steps", None)
    last = estimator if steps is None else steps[-1][1]
    inner = getattr(last, "calibrated_classifiers_", None)
    if not inner or len(inner) != 1:
        return estimator
    return inner[0].estimator if steps is None else Pipeline([*steps[:-1], ("model", inner[0].estimator)])


def class_rates(confusion: Confusion) -> tuple[list[float | None], list[float | None]]:
    """Recall and precision of each class; None where it is not there, or never predicted."""

    def share(of: np.ndarray) -> list[float | None]:
        return [float(h / n) if n else None for h, n in zip(confusion.hits, of, strict=True)]

    return share(confusion.support), share(confusion.predicted)


def calibration(estimator: Estimator, X: RowsLike, right: np.ndarray) -> dict[str, Any]:
    """How often predictions of some probability are right: in groups of as many samples, ordered by probability.

    ``error`` is the mean distance of both, weighted by samples (the expected calibration error).
    """
    if not hasattr(estimator, "predict_proba") or len(right) < 2 * N_CALIBRATION:
        return {}
    p = np.asarray(estimator.predict_proba(X)).max(axis=1)
    groups = np.array_split(np.argsort(p, kind="stable"), N_CALIBRATION)
    points = [[float(p[g].mean()), float(right[g].mean()), len(g)] for g in groups]
    error = sum(n * abs(said - true) for said, true, n in points) / len(right)
    return {"points": points, "error": float(error)}


class LinearView:
    """A linear classifier behind its pipeline: weights of each class on named features."""

    def __init__(self, front: Any, weights: np.ndarray, names: list[str]) -> None:
        self.front, self.weights, self.names = front, weights, names

    @classmethod
    def of(cls, estimator: Estimator, columns: Sequence[str] | None) -> LinearView | None:
        """The view, or None where the classifier has no vector for each class."""
        final, k = final_estimator(estimator), len(estimator.classes_)
        try:
            coef = final.coef_
        except (AttributeError, ValueError):
            return None
        coef = np.asarray(coef.toarray() if sparse.issparse(coef) else coef, dtype=np.float64)
        if coef.ndim != 2 or coef.shape[0] not in ((1, 2) if k == 2 else (k,)):
            return None
        if k == 2 and len(coef) == 1:
            coef = np.vstack([-coef / 2, coef / 2])
        front = estimator[:-1] if hasattr(estimator, "steps") and len(estimator.steps) > 1 else None
        return cls(front, coef, _feature_names(front, columns, coef.shape[1]))

    def features(self, X: RowsLike) -> Any:
        """The rows as the classifier sees them."""
        if self.front is None:
            return X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.front.transform(X)

    def deciding(self, X: RowsLike) -> list[list[list[Any]]]:
        """For each class the features whose weight times spread is largest, against the mean of all classes."""
        rows: RowsLike = self.features(X)
        rows = rows if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
        mean = np.asarray(rows.mean(axis=0)).ravel()
        square = rows.multiply(rows).mean(axis=0) if sparse.issparse(rows) else (rows**2).mean(axis=0)
        spread = np.sqrt(np.maximum(np.asarray(square).ravel() - mean**2, 0))
        strength = (self.weights - self.weights.mean(axis=0)) * spread
        return [self._top(row) for row in strength]

    def contributions(self, row: Any, true: int, rival: int) -> list[list[Any]]:
        """The features of one row that speak most for its true class (positive) or for the rival (negative)."""
        features = self.features(row)
        values = np.asarray(features.toarray() if sparse.issparse(features) else features, dtype=np.float64).ravel()
        return self._top((self.weights[true] - self.weights[rival]) * values)

    def _top(self, strength: np.ndarray) -> list[list[Any]]:
        order = np.argsort(-np.abs(strength), kind="stable")[:N_FEATURES]
        return [[self.names[j], float(strength[j])] for j in order if strength[j] != 0]


def permutation(estimator: Estimator, X: RowsLike, y: np.ndarray, columns: Sequence[str] | None) -> list[list[Any]]:
    """Columns by how much accuracy is lost when their values are shuffled; empty where there are too many."""
    d = X.shape[1]
    if d > MAX_PERMUTED or sparse.issparse(X):
        return []
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(y))[:MAX_ROWS])
    part, labels = _safe_indexing(X, rows), y[rows]
    lost: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        before = np.mean(estimator.predict(part) == labels)
        if (time.perf_counter() - begin) * d > PATIENCE:
            return []
        for j in range(d):
            order, other = rng.permutation(len(rows)), part.copy()
            if hasattr(other, "iloc"):
                other[other.columns[j]] = other[other.columns[j]].to_numpy()[order]
            else:
                other[:, j] = other[order, j]
            lost[_name(columns, j)] = float(before - np.mean(estimator.predict(other) == labels))
    ordered = sorted(lost.items(), key=lambda pair: -pair[1])
    return [[name, loss] for name, loss in ordered[: 2 * N_FEATURES] if loss > 0]


def _feature_names(front: Any, columns: Sequence[str] | None, d: int) -> list[str]:
    given = None if columns is None else np.asarray(columns, dtype=object)
    try:
        table = front is not None and hasattr(front[0], "transformers_")
        names = given if front is None else front.get_feature_names_out(None if table else given)
    except (AttributeError, ValueError, NotImplementedError):
        names = given
    if names is None or len(names) != d:
        return [_name(columns, j) for j in range(d)]
    return [_words(str(name).rpartition("__")[2]) if table else str(name) for name in names]


def _words(feature: str) -> str:
    """The name of a feature that a preprocessor made, as a reader would say it."""
    gap = feature.removeprefix("missingindicator_")
    return feature if gap == feature else f"{gap} is missing"


def _name(columns: Sequence[str] | None, j: int) -> str:
    return str(columns[j]) if columns is not None and j < len(columns) else str(j)
