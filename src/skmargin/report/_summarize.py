"""From fitted estimators to the plain data of the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, stats
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _get_feature_names, _num_features, _num_samples, column_or_1d

from .._types import Estimator, RowsLike
from ..inspection import (
    class_scores,
    margins_from_scores,
    pairwise_margins,
    pairwise_score_gaps,
)
from ..inspection._bounds import Bound, bound_of, measure
from ..inspection._margins import final_estimator, label_codes, summarize
from ._confusion import MANY_CLASSES, Confusion, some_rows, top_accuracy
from ._details import LinearView, calibration, class_rates, permutation, uncalibrated
from ._results import DatasetSummary, HardSample, MarginHistogram, ModelResult

N_BINS = 80
MAX_CURVES = 40  # classes with margins of their own
N_SAMPLES = 12
MAX_VALUES = 8
BOUNDS: dict[Bound, str] = {
    "mcodm": "Zhang & Zhou 2017, Theorem 1",
    "lp": "Lei et al. 2015, Corollary 8 (p = 2)",
}
_PIXEL = re.compile(r"pixel_\d+_\d+\Z")


def summarize_dataset(name: str, X: RowsLike, y: Any, feature_names: Sequence[str] | None = None) -> DatasetSummary:
    """Describe the data.

    Parameters
    ----------
    name : str
        What to call it.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        The labels.
    feature_names : sequence of str, default=None
        Names of the columns; None takes those of a data frame.  Names like ``pixel_0_7`` on a square number of columns
        say that the rows are pictures.

    Returns
    -------
    summary : DatasetSummary

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmargin.report import summarize_dataset
    >>> summary = summarize_dataset("digits", *load_digits(return_X_y=True))
    >>> summary.n_samples, summary.n_features, len(summary.classes)
    (1797, 64, 10)
    """
    check_consistent_length(X, y)
    classes, counts = np.unique(column_or_1d(y), return_counts=True)
    n, d = _num_samples(X), _num_features(X)
    feature_names = _get_feature_names(X) if feature_names is None else feature_names
    names = None if feature_names is None else [str(name) for name in feature_names]
    if names is not None and len(names) != d:
        raise ValueError(f"feature_names must hold one name for each of the {d} features, got {len(names)}.")
    side = round(np.sqrt(d))
    pictures = names is not None and side * side == d <= 1024 and all(map(_PIXEL.match, names))
    return DatasetSummary(
        str(name), int(n), int(d), [str(c) for c in classes], counts.tolist(), names, [side, side] if pictures else None
    )


def summarize_model(
    name: str,
    estimator: Estimator,
    X_test: RowsLike,
    y_test: Any,
    dataset: DatasetSummary,
    *,
    X_train: RowsLike = None,
    y_train: Any = None,
    rows: RowsLike = None,
    unknown: int = 0,
) -> ModelResult:
    """All that the report shows of one fitted model.

    Parameters
    ----------
    name : str
        What to call it.
    estimator : fitted classifier
        Any classifier; without ``decision_function`` the parts about margins stay empty.
    X_test, y_test : rows and labels
        Samples that the model was not fitted on.
    dataset : DatasetSummary
        The data; its classes must hold those of the estimator.
    X_train, y_train : rows and labels, default=None
        The training samples, for their margins and the bounds.
    rows : array-like of shape (n_test,), default=None
        Row numbers of the test samples in the data; None numbers them from 0.
    unknown : int, default=0
        Further test samples, of classes that the model was not fitted to: they count as mistakes.

    Returns
    -------
    result : ModelResult
        Scores of folds and times, which a fitted model does not know, are for the caller to set.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.report import summarize_dataset, summarize_model
    >>> X, y = load_iris(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = CrammerSingerSVC().fit(X_train, y_train)
    >>> result = summarize_model("ours", model, X_test, y_test, summarize_dataset("iris", X, y))
    >>> bool(result.test_score > 0.9), len(result.confusion)
    (True, 3)
    """
    check_consistent_length(X_test, y_test)
    X_test = X_test.tocsr() if sparse.issparse(X_test) else X_test  # single rows of it are shown
    predicted, y_test = estimator.predict(X_test), column_or_1d(y_test)
    classes, plain = estimator.classes_, uncalibrated(estimator)
    final = final_estimator(plain)
    code, guess = label_codes(y_test, classes), label_codes(predicted, classes)
    place = _places(classes, dataset)
    rows = np.arange(len(y_test)) if rows is None else np.asarray(rows)
    if len(rows) != len(y_test):
        raise ValueError(f"rows must hold one number for each of the {len(y_test)} test samples, got {len(rows)}.")
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train must be given together.")
    k = len(classes)
    confusion, many = Confusion(code, guess, k), k > MANY_CLASSES
    chosen = confusion.most_confused()
    recall, precision = class_rates(confusion)
    share, top5 = len(y_test) / (len(y_test) + unknown), top_accuracy(estimator, X_test, y_test)
    linear = None if many else LinearView.of(plain, dataset.feature_names)
    result = ModelResult(
        name=name,
        params={key: _plain(value) for key, value in final.get_params(deep=False).items()},
        test_score=share * float((predicted == y_test).mean()),
        certificate=_certificate(final),
        matrix_classes=place[chosen].tolist(),
        confusion=None if many else confusion.matrix(chosen),
        confusion_totals=confusion.support[chosen].tolist(),
        worst_pairs=confusion.worst_pairs(place),
        top5=None if top5 is None else share * top5,
        macro_f1=confusion.macro_f1(),
        unknown=int(unknown),
        recall=_at(recall, place, dataset),
        precision=_at(precision, place, dataset),
        calibration=calibration(estimator, X_test, predicted == y_test),
    )
    if linear is None and not many:
        result.permutation = permutation(estimator, X_test, y_test, dataset.feature_names)
    elif linear is not None:
        of_class = linear.deciding(X_test)
        result.weights = [of_class[i] for i in chosen]
        result.weight_classes = place[chosen].tolist()
    if hasattr(plain, "decision_function") or hasattr(estimator, "predict_proba"):
        tested = _Tested(X_test, y_test, predicted, rows, code)
        if many and (some := some_rows(len(y_test), k)) is not None:  # margins of some of the samples
            tested = _Tested(_safe_indexing(X_test, some), y_test[some], predicted[some], rows[some], code[some])
        _add_margins(result, estimator, tested, dataset, linear, (X_train, y_train), place, chosen)
    return result


class _Tested(NamedTuple):
    """The test samples: rows, labels, predictions, numbers in the data, classes as 0..k-1."""

    X: RowsLike
    y: np.ndarray
    predicted: np.ndarray
    rows: np.ndarray
    code: np.ndarray


def _add_margins(
    result: ModelResult, estimator: Estimator, test: _Tested, dataset: DatasetSummary, linear: LinearView | None,
    train: tuple[Any, Any], place: np.ndarray, chosen: np.ndarray,
) -> None:  # fmt: skip
    """What follows from the scores: hard samples, margins, bounds."""
    plain, classes = uncalibrated(estimator), estimator.classes_
    scored, many = hasattr(plain, "decision_function"), len(classes) > MANY_CLASSES
    scores = class_scores(plain, test.X) if scored else np.asarray(estimator.predict_proba(test.X))
    margin = margins_from_scores(scores, test.y, classes)

    def first(order: np.ndarray) -> list[HardSample]:
        found = np.argsort(order, kind="stable")[:N_SAMPLES]
        samples = [_sample(i, test.rows, test.X, test.y, test.predicted, margin, dataset) for i in found]
        if linear is not None and dataset.image_shape is None:
            for i, sample in zip(found, samples, strict=True):
                own = int(test.code[i])
                rival = int(np.where(np.arange(len(classes)) == own, -np.inf, scores[i]).argmax())
                sample.deciding = linear.contributions(_safe_indexing(test.X, [int(i)]), own, rival)
        return samples

    result.hardest, result.ambiguous = first(margin), first(np.abs(margin))
    if not scored:  # margins of probabilities show which samples are hard, and nothing of the geometry
        return
    parts = {"test": (margin, test.code)}
    X_train, y_train = train
    if X_train is not None and not many:
        of_train = margins_from_scores(class_scores(plain, X_train), y_train, classes)
        parts["train"] = (of_train, label_codes(y_train, classes))
        result.bounds = _bounds(plain, X_train, y_train)
    result.margins = _histogram(parts, place)
    result.statistics = {part: _statistics(values) for part, (values, _) in parts.items()}
    if not many:
        _add_pairwise(result, plain, scores, test.y, chosen)


def _places(classes: np.ndarray, dataset: DatasetSummary) -> np.ndarray:
    """Where the classes of an estimator stand among those of the data."""
    position = {label: i for i, label in enumerate(dataset.classes)}
    missing = [str(label) for label in classes if str(label) not in position]
    if missing:
        raise ValueError(f"The classes of dataset, {dataset.classes[:10]}, do not hold {missing[:5]} of the estimator.")
    return np.array([position[str(label)] for label in classes])


def _add_pairwise(
    result: ModelResult, estimator: Estimator, scores: np.ndarray, y: np.ndarray, chosen: np.ndarray
) -> None:
    """The margin between each pair of the classes shown; where it has none, by how much their scores differ."""
    try:
        pairwise, result.pairwise_quantity = pairwise_margins(estimator), "2 / \u2016w\u2096 \u2212 w\u2097\u2016"
    except TypeError:
        pairwise, result.pairwise_quantity = pairwise_score_gaps(y, scores, estimator.classes_), "median score gap"
    finite = np.where(np.isfinite(pairwise), pairwise, np.nan)[np.ix_(chosen, chosen)]
    result.pairwise = [[None if np.isnan(v) else float(v) for v in row] for row in finite]


def rank_models(models: Sequence[ModelResult], n_test: int | None = None) -> list[ModelResult]:
    """Order models by their mean accuracy over folds (or their test accuracy), and compare each with the best.

    Parameters
    ----------
    models : sequence of ModelResult
        With the same folds of a k-fold cross-validation in the same order.
    n_test : int, default=None
        Number of samples of a test fold, where the scores are accuracies (see `corrected_paired_ttest`).

    Returns
    -------
    ranked : list of ModelResult
        The best first, those without a score (a fold that failed has nan) last; ``p_value`` of the others is set where
        there are folds.

    Examples
    --------
    >>> from skmargin.report import ModelResult, rank_models
    >>> models = [ModelResult("a", fold_scores=[0.8, 0.82]), ModelResult("b", fold_scores=[0.9, 0.91])]
    >>> [model.name for model in rank_models(models)]
    ['b', 'a']
    """

    def score(model: ModelResult) -> float:
        value = np.mean(model.fold_scores) if len(model.fold_scores) else model.test_score
        return float(value) if value is not None and np.isfinite(value) else -np.inf

    ranked = sorted(models, key=score, reverse=True)
    best = ranked[0].fold_scores if ranked else []
    for model in ranked[1:]:
        if len(best) >= 2 and len(model.fold_scores) == len(best) and score(model) > -np.inf:
            model.p_value = corrected_paired_ttest(best, model.fold_scores, n_test=n_test)
    return ranked


def corrected_paired_ttest(a: Any, b: Any, test_fraction: float | None = None, n_test: int | None = None) -> float:
    """Two-sided p-value of equal accuracy over the same folds, for training sets that overlap (Nadeau & Bengio 2003).

    Small folds often show the same difference, one sample say, and then no scatter at all.  But two models that differ
    by d in accuracy disagree on at least a share d of the samples, so that over folds of m samples the difference has a
    variance of at least d (1 - d) / m: with ``n_test`` less is not believed.

    Parameters
    ----------
    a, b : array-like of shape (n_folds,)
        Scores of the two models, fold by fold.
    test_fraction : float, default=None
        Number of test samples over number of training samples of a fold; None takes 1 / (n_folds - 1).
    n_test : int, default=None
        Number m of test samples of a fold, where the scores are accuracies; None believes the scatter of the scores.

    Returns
    -------
    p : float
        1 where all differences are zero.

    Examples
    --------
    >>> from skmargin.report import corrected_paired_ttest
    >>> round(corrected_paired_ttest([0.9, 0.8, 0.85, 0.9, 0.95], [0.8, 0.8, 0.8, 0.85, 0.85]), 3)
    0.099
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or not np.isfinite([a, b]).all():
        raise ValueError(f"The scores must be finite numbers, as many of one model as of the other, got {a} and {b}.")
    difference, n = a - b, len(a)
    if n < 2:
        raise ValueError(f"The test needs at least two folds, got {n}.")
    size = abs(difference.mean())
    variance = difference.var(ddof=1) if np.ptp(difference) > 1e-15 else 0.0
    if n_test is not None:
        variance = max(variance, size * (1 - size) / n_test)
    if variance == 0:
        return 1.0 if size <= 1e-15 else 0.0
    ratio = 1 / (n - 1) if test_fraction is None else test_fraction
    t = size / np.sqrt((1 / n + ratio) * variance)
    return float(2 * stats.t.sf(t, n - 1))


def _at(values: list[float | None], place: np.ndarray, dataset: DatasetSummary) -> list[float | None]:
    """Values of the classes of a model, in the order of those of the data."""
    out: list[float | None] = [None] * len(dataset.classes)
    for position, value in zip(place, values, strict=True):
        out[position] = value
    return out


def _statistics(margin: np.ndarray) -> dict[str, float]:
    s = summarize(margin, (0.05, 0.5))
    return {
        "mean": s.mean, "variance": s.variance, "minimum": s.minimum, "error": s.error,
        "q05": s.quantiles[0.05], "median": s.quantiles[0.5], "n_samples": s.n_samples,
    }  # fmt: skip


def _histogram(parts: dict[str, tuple[np.ndarray, np.ndarray]], place: np.ndarray) -> MarginHistogram:
    everything = np.concatenate([margin for margin, _ in parts.values()]).astype(np.float64)
    low, high = np.quantile(everything, [0.001, 0.999])
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    low, high = (low, high) if high > low else (-1.0, 1.0)
    k = len(place)
    codes = parts["test"][1]
    order = np.argsort(-np.bincount(codes, minlength=k), kind="stable")[:MAX_CURVES]
    row_of = np.full(k, len(order))  # the classes that are left out share a last row
    own = np.sort(order)
    row_of[own] = np.arange(len(own))
    n_rows = len(own) + (k > len(own))
    counts = {}
    for part, (margin, code) in parts.items():
        bins = np.clip(((margin - low) / (high - low) * N_BINS).astype(np.int64), 0, N_BINS - 1)
        flat = np.bincount(row_of[code] * N_BINS + bins, minlength=n_rows * N_BINS)
        counts[part] = flat.reshape(n_rows, N_BINS).tolist()
    scale = float(np.abs(parts["test"][0]).mean()) or 1.0
    return MarginHistogram(low, high, scale, place[own].tolist(), counts)


def _sample(
    i: int, rows: RowsLike, X: RowsLike, y: Any, predicted: Any, margin: Any, dataset: DatasetSummary
) -> HardSample:
    row = _safe_indexing(X, [int(i)])
    row = np.asarray(row.toarray() if sparse.issparse(row) else row).ravel()
    sample = HardSample(int(rows[i]), str(y[i]), str(predicted[i]), float(margin[i]))
    if dataset.image_shape is not None:
        row = np.nan_to_num(row.astype(np.float64))  # a missing pixel is shown as 0
        low, high = float(row.min()), float(row.max())
        sample.pixels = np.round(99 * (row - low) / (high - low or 1.0)).astype(int).tolist()
        return sample
    nonzero = np.arange(len(row))
    if len(row) > MAX_VALUES:  # a missing value of pandas is neither zero nor not
        zeros = row == 0 if row.dtype != object else np.array([isinstance(v, Real) and v == 0 for v in row])
        nonzero = np.flatnonzero(~zeros)[:MAX_VALUES]
    names = dataset.feature_names or [str(j) for j in range(len(row))]
    sample.values = [[names[j], float(row[j]) if isinstance(row[j], Real) else _plain(row[j])] for j in nonzero]
    return sample


def _bounds(estimator: Estimator, X: RowsLike, y: Any) -> list[dict[str, Any]]:
    try:
        measured = measure(estimator, X, y)
    except (TypeError, ValueError):  # no vector for each class: there is no bound to state
        return []
    found = []
    for bound, title in BOUNDS.items():
        for version in ("sharp", "proof", "printed"):
            b = bound_of(measured, bound=bound, version=version)
            terms = {"empirical": b.empirical, "complexity": b.complexity, "confidence": b.confidence, "total": b.total}
            found.append({"bound": title, "version": version, **terms})
    return found


def _certificate(estimator: Estimator) -> dict[str, Any]:
    names = ("objective_", "dual_gap_", "n_iter_")
    found = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    found = {name: _plain(np.max(value) if isinstance(value, np.ndarray) else value) for name, value in found.items()}
    if found and hasattr(estimator, "tol"):
        found["tol"] = _plain(estimator.tol)
    if hasattr(estimator, "outer_objectives_") or hasattr(estimator, "transduction_"):  # ODM, unlabelled rows
        found["convex_part"] = True  # all that the gap is of
    return found


def _plain(value: Any) -> Any:
    """A parameter as JSON shows it: numbers, booleans and text as they are, everything else as its text."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)[:200].removesuffix(" 00:00:00")  # of a day
