"""Margins of samples: the score of the true class minus the best other score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._types import Estimator, LabelsLike, RowsLike


def class_scores(estimator: Estimator, X: RowsLike) -> np.ndarray:
    """Scores of the classes, one column each, whatever form ``decision_function`` has.

    Parameters
    ----------
    estimator : fitted classifier
        Any classifier with ``classes_`` and ``decision_function``; a pipeline or a parameter search as well.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows to score.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_classes)
        In the order of ``estimator.classes_``.  The single column f of a binary classifier becomes (-f/2, f/2), so
        that the difference of the two columns is f again.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.inspection import class_scores
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), CrammerSingerSVC()).fit(X, y)
    >>> model.decision_function(X[:4]).shape, class_scores(model, X[:4]).shape
    ((4,), (4, 2))
    """
    name = type(estimator).__name__
    if not hasattr(estimator, "decision_function"):
        raise TypeError(f"{name} has no decision_function: margins need scores, not only predictions.")
    check_is_fitted(estimator)
    k = len(estimator.classes_)
    if k > 2 and getattr(final_estimator(estimator), "decision_function_shape", None) == "ovo":
        raise ValueError(f"{name} gives one score for each pair of classes; set decision_function_shape='ovr'.")
    return score_columns(estimator.decision_function(X), k)


def final_estimator(estimator: Estimator) -> Any:
    """The classifier inside pipelines and parameter searches."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        else:
            return estimator


def score_columns(scores: Any, n_classes: int) -> np.ndarray:
    """Scores as float columns, one a class; see `class_scores`."""
    if n_classes < 2:
        raise ValueError(f"A margin is between two classes at least, got {n_classes}.")
    scores = np.asarray(scores)
    scores = scores.astype(np.result_type(scores.dtype, np.float32), copy=False)
    if n_classes == 2 and (scores.ndim == 1 or scores.shape[1] == 1):
        half = scores.reshape(-1, 1) / 2
        return np.hstack([-half, half])
    if scores.ndim != 2 or scores.shape[1] != n_classes:
        raise ValueError(f"Expected scores with one column for each of {n_classes} classes, got shape {scores.shape}.")
    return scores


def label_codes(y: LabelsLike, classes: np.ndarray) -> np.ndarray:
    """Position of each label in ``classes``; a label that the classifier does not know is refused."""
    y = column_or_1d(y)
    position = {label: i for i, label in enumerate(classes.tolist())}
    if len(position) < len(classes):
        raise ValueError(f"The classes of the columns must be different, got {classes.tolist()[:10]}.")
    if y.dtype.kind == "O":  # looking up is faster than sorting objects
        labels, inverse = y.tolist(), np.arange(len(y))
    else:
        distinct, inverse = np.unique(y, return_inverse=True)
        labels = distinct.tolist()
    codes = np.fromiter((position.get(label, -1) for label in labels), dtype=np.intp, count=len(labels))
    if (codes < 0).any():
        unknown = list(dict.fromkeys(label for label in labels if label not in position))
        raise ValueError(f"y holds labels that the classifier has not seen: {unknown[:5]}.")
    return codes[inverse]


def margins_from_scores(scores: Any, y: LabelsLike, classes: Any, *, normalize: bool = False) -> np.ndarray:
    """Margins of samples whose scores are known already.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes) or (n_samples,)
        What ``decision_function`` gave.
    y : array-like of shape (n_samples,)
        The true labels.
    classes : array-like of shape (n_classes,)
        The labels in the order of the columns.
    normalize : bool, default=False
        Divide by the mean absolute margin.

    Returns
    -------
    margins : ndarray of shape (n_samples,)
        ``score of the true class - best other score``: positive exactly where the true class has the largest score
        (zero is a tie).

    Examples
    --------
    >>> from skmargin.inspection import margins_from_scores
    >>> margins_from_scores([[2.0, 0.5, 1.0], [0.0, 1.0, 3.0]], ["a", "b"], ["a", "b", "c"])
    array([ 1., -2.])
    """
    classes = np.asarray(classes)
    scores = score_columns(scores, len(classes))
    codes = label_codes(y, classes)
    if len(codes) != len(scores):
        raise ValueError(f"y has {len(codes)} labels for {len(scores)} rows of scores.")
    rows = np.arange(len(scores))
    own = scores[rows, codes]
    others = scores.copy()
    others[rows, codes] = -np.inf
    margin = own - others.max(axis=1)
    if normalize and margin.any():
        margin /= np.abs(margin).mean()
    return margin


def margins(estimator: Estimator, X: RowsLike, y: LabelsLike, *, normalize: bool = False) -> np.ndarray:
    """Margin of each sample: the score of its class minus the best score of another class.

    Parameters
    ----------
    estimator : fitted classifier
        Any classifier with ``decision_function``, also a pipeline or a parameter search that ends in one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,)
        Their true labels.
    normalize : bool, default=False
        Divide by the mean absolute margin.  Scores of different models have different scales: this makes their
        margins comparable.

    Returns
    -------
    margins : ndarray of shape (n_samples,)
        Positive where the prediction is right, negative where it is wrong; of ``SVC``, which predicts by votes, for all
        samples with ``break_ties=True`` only.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from skmargin.inspection import margins
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC(random_state=0).fit(X, y)
    >>> bool(((margins(model, X, y) > 0) == (model.predict(X) == y)).all())
    True
    """
    return margins_from_scores(class_scores(estimator, X), y, estimator.classes_, normalize=normalize)


@dataclass(frozen=True)
class MarginStatistics:
    """Summary of a margin distribution.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    mean, variance, minimum : float
        Of the margins; the variance divides by ``n_samples``, as in the margin-distribution papers.
    error : float
        Fraction of margins <= 0, i.e. of samples whose class has not the largest score (a tie counts as wrong).
    quantiles : dict of float to float
        Level to value.
    per_class : dict of label to MarginStatistics
        The same for the samples of each class that occurs in ``y``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.inspection import margin_statistics
    >>> X, y = load_iris(return_X_y=True)
    >>> statistics = margin_statistics(CrammerSingerSVC().fit(X, y), X, y)
    >>> sorted(statistics.per_class), bool(statistics.per_class[0].error == 0)
    ([0, 1, 2], True)
    """

    n_samples: int
    mean: float
    variance: float
    minimum: float
    error: float
    quantiles: dict[float, float]
    per_class: dict[Any, MarginStatistics] = field(default_factory=dict)

    def table(self) -> Any:
        """The statistics as a table: a row for all samples, then one for each class.

        Returns
        -------
        table : DataFrame or dict
            A data frame of pandas with the labels as index; without pandas, a dictionary from "all" and the labels to
            dictionaries of the columns.
        """
        rows = {"all": self._row(), **{label: of_class._row() for label, of_class in self.per_class.items()}}
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame.from_dict(rows, orient="index").astype({"n_samples": int})

    def _row(self) -> dict[str, float]:
        names = ("n_samples", "mean", "variance", "minimum", "error")
        return {name: getattr(self, name) for name in names} | {f"{q:.0%}": v for q, v in self.quantiles.items()}


def summarize(margin: np.ndarray, quantiles: Sequence[float]) -> MarginStatistics:
    """Statistics of one set of margins, without the classes."""
    margin = np.asarray(margin, dtype=np.float64)
    return MarginStatistics(
        n_samples=len(margin),
        mean=float(margin.mean()),
        variance=float(margin.var()),
        minimum=float(margin.min()),
        error=float((margin <= 0).mean()),
        quantiles={float(q): float(v) for q, v in zip(quantiles, np.quantile(margin, quantiles), strict=True)},
    )


def margin_statistics(
    estimator: Estimator,
    X: RowsLike,
    y: LabelsLike,
    *,
    quantiles: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
    normalize: bool = False,
) -> MarginStatistics:
    """Mean, variance, minimum and quantiles of the margins, over all samples and for each class.

    Parameters
    ----------
    estimator : fitted classifier
        Any classifier with ``decision_function``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,)
        Their true labels.
    quantiles : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        Levels between 0 and 1.
    normalize : bool, default=False
        Divide the margins by their mean absolute value first; the variance is then free of the scale of the scores.

    Returns
    -------
    statistics : MarginStatistics
        With ``per_class``, a dictionary from label to the statistics of its samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from skmargin.inspection import margin_statistics
    >>> X, y = load_iris(return_X_y=True)
    >>> statistics = margin_statistics(LinearSVC(random_state=0).fit(X, y), X, y)
    >>> statistics.n_samples, sorted(statistics.per_class), statistics.per_class[0].error
    (150, [0, 1, 2], 0.0)
    >>> statistics.table().shape
    (4, 10)
    """
    if np.ndim(quantiles) != 1 or not all(0 <= q <= 1 for q in quantiles):
        raise ValueError(f"quantiles must be a sequence of numbers between 0 and 1, got {quantiles!r}.")
    margin = margins(estimator, X, y, normalize=normalize)
    total = summarize(margin, quantiles)
    labels, inverse = np.unique(column_or_1d(y), return_inverse=True)
    for code, label in enumerate(labels.tolist()):
        total.per_class[label] = summarize(margin[inverse == code], quantiles)
    return total
