"""Nested cross-validation of several models on the same folds, kept in a file so that it can be continued.

The outer folds give the scores; the parameters are chosen on the training part of each by cross-validation of its own,
so that no score has seen its test samples.  After each fold of each model the state is written, whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

import skmargin

from .._files import atomic_write
from .._types import RowsLike
from ..datasets import Dataset
from ..datasets._files import check_memory
from ..report import ModelResult, Results, rank_models, summarize_dataset, summarize_model
from ..report._summarize import corrected_paired_ttest
from ._metrics import METRICS, Counts, rates
from ._models import Model, tuned

FORMAT, VERSION = "skmargin-comparison", 2
INNER_FOLDS = 3
MAX_STATE = 1 << 28  # bytes of a file that is continued
BASELINE = "majority class"


class ComparisonError(ValueError):
    """The models cannot be compared, or the comparison not continued; the message says why.

    Examples
    --------
    >>> from skmargin.comparison import Comparison, ComparisonError, models
    >>> from skmargin.datasets import load_dataset
    >>> try:
    ...     Comparison(load_dataset("iris"), [models()["logistic"]], metric="luck")
    ... except ComparisonError as error:
    ...     print(error)
    metric must be one of accuracy, balanced-accuracy, macro-f1, got 'luck'.
    """


@dataclass
class Fold:
    """One model on one fold: score, seconds for one fit with the chosen parameters and for predicting the fold.

    Examples
    --------
    >>> from skmargin.comparison import Fold
    >>> Fold(score=0.9, fit_time=0.01, predict_time=0.001, params={"C": 1.0}, converged=True).score
    0.9
    """

    score: float
    fit_time: float
    predict_time: float
    params: dict[str, Any]
    converged: bool
    counts: Counts = field(default_factory=lambda: Counts([], [], []))


class Comparison:
    """Models, tuned and scored on the same folds.

    Parameters
    ----------
    data : Dataset
        Rows and labels.
    models : sequence of Model
        Who takes part.
    cv : int, default=5
        Number of outer folds.
    seed : int, default=0
        Of the folds.
    n_jobs : int, default=None
        Threads for the search of parameters.
    store : path, default=None
        File that keeps the state; one that is there already is continued.
    metric : {"accuracy", "balanced-accuracy", "macro-f1"}, default="accuracy"
        What is tuned and ranked; the others are measured beside it.
    class_weight : {"balanced", None}, default=None
        Weights of the classes, for the models that know any.

    Examples
    --------
    >>> from skmargin.comparison import Comparison, models
    >>> from skmargin.datasets import load_dataset
    >>> known = models()
    >>> comparison = Comparison(load_dataset("iris"), [known["crammer-singer"], known["rbf-svm"]], cv=3)
    >>> for name in comparison.run():
    ...     pass
    >>> [len(model.fold_scores) for model in comparison.ranked()]
    [3, 3]
    """

    def __init__(
        self,
        data: Dataset,
        models: Sequence[Model],
        *,
        cv: int = 5,
        seed: int = 0,
        n_jobs: int | None = None,
        store: str | os.PathLike[str] | None = None,
        metric: str = "accuracy",
        class_weight: str | None = None,
    ) -> None:
        if metric not in METRICS:
            raise ComparisonError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
        if class_weight not in (None, "balanced"):
            raise ComparisonError(f"class_weight must be 'balanced' or None, got {class_weight!r}.")
        self.data, self.cv, self.seed, self.n_jobs = data, cv, seed, n_jobs
        self.metric, self.class_weight = metric, class_weight
        self.models = [model.weighted(class_weight) for model in models]
        self.store = None if store is None else Path(store)
        y = _check_labels(data, cv)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rare classes: see `rare_classes`
            self.splits = list(StratifiedKFold(cv, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))
        self.summary = summarize_dataset(data.name, data.X, data.y, data.feature_names)
        self.folds: dict[str, list[Fold]] = {model.name: [] for model in self.models}
        self.details: dict[str, ModelResult] = {}  # of the first fold, for the report
        self.errors: dict[str, str] = {}
        self.classes = np.unique(y)
        self.baseline = self._baseline(y)
        self.settings = {} if self.store is None else self._settings()
        if self.store is not None and self.store.exists():
            self._continue()

    def run(self) -> Iterator[str]:
        """Do all that is left; yields the name of the model after each of its folds."""
        for model in self.models:
            while len(self.folds[model.name]) < self.cv:
                try:
                    self._fold(model, len(self.folds[model.name]))
                except Exception as error:  # one model that cannot cope must not cost the others their results
                    self.errors[model.name] = f"{type(error).__name__}: {error}"
                    yield model.name
                    break
                self._save()
                yield model.name

    def ranked(self) -> list[ModelResult]:
        """The models that went through all folds, the best first, each compared with the best."""
        found = []
        for model in self.models:
            folds = self.folds[model.name]
            if len(folds) == self.cv:
                result = self.details[model.name]
                self._measure(result, [fold.counts for fold in folds])
                result.fit_time = float(np.mean([fold.fit_time for fold in folds]))
                result.predict_time = float(np.mean([fold.predict_time for fold in folds]))
                found.append(result)
        ranked = rank_models(found, n_test=self._n_test())
        if ranked:
            self.baseline.p_value = corrected_paired_ttest(
                ranked[0].fold_scores, self.baseline.fold_scores, n_test=self._n_test()
            )
        return ranked

    def results(self, command: str, versions: dict[str, str], created: str) -> Results:
        """The content of the report."""
        title, ranked = f"Comparison on {self.data.name}", self.ranked()
        return Results(title, self.summary, ranked, command, versions, created, self.baseline, self.metric)

    def _n_test(self) -> int | None:
        """Samples of a test fold, where the scores are accuracies."""
        return min(len(test) for _, test in self.splits) if self.metric == "accuracy" else None

    def _measure(self, result: ModelResult, counts: list[Counts]) -> None:
        """Put the scores of all folds into a result."""
        each = [c.metrics() for c in counts]
        result.metrics = {name: [found[name] for found in each] for name in METRICS}
        result.fold_scores = result.metrics[self.metric]
        result.recall, result.precision = rates(counts)

    def _baseline(self, y: np.ndarray) -> ModelResult:
        """The most frequent class of each training part, always said: what a model must beat."""
        counts, labels = [], []
        for train, test in self.splits:
            found, n = np.unique(y[train], return_counts=True)
            labels.append(str(found[n.argmax()]))
            counts.append(Counts.of(y[test], np.full(len(test), found[n.argmax()]), self.classes))
        result = ModelResult(BASELINE, params={"says": max(labels, key=labels.count)})
        self._measure(result, counts)
        return result

    def _fold(self, model: Model, number: int) -> None:
        train, test = self.splits[number]
        X, y = self._rows(model), self.data.y
        assert y is not None
        X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
        inner = int(min(INNER_FOLDS, second_largest(y[train])))
        scoring = METRICS[self.metric][0]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search = tuned(
                model, X_train, cv=inner, seed=self.seed, n_jobs=self.n_jobs, columns=self.data.columns,
                scoring=None if scoring == "accuracy" else scoring,
            )  # fmt: skip
            search.fit(X_train, y[train])
            start = time.perf_counter()
            predicted = search.predict(X_test)
            predict_time = time.perf_counter() - start
            if number == 0:
                known = np.flatnonzero(np.isin(y[test], y[train]))
                part = {"X_train": X_train, "y_train": y[train], "rows": test[known], "unknown": len(test) - len(known)}
                X_known, y_known = _safe_indexing(X_test, known), y[test][known]
                best = search.best_estimator_
                details = summarize_model(model.name, best, X_known, y_known, self.summary, **part)
                self.details[model.name] = details
        converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        params = {key.removeprefix("model__"): value for key, value in search.best_params_.items()}
        counts = Counts.of(y[test], predicted, self.classes)
        score = counts.metrics()[self.metric]
        self.folds[model.name].append(Fold(score, float(search.refit_time_), predict_time, params, converged, counts))

    def _rows(self, model: Model) -> Any:
        """The rows as the model takes them."""
        X = self.data.X
        if model.dense and sparse.issparse(X):
            check_memory(self.data.name, 3 * 8 * int(np.prod(X.shape)))
            return X.toarray()
        return X

    def _settings(self) -> dict[str, Any]:
        """What must be the same for old results to count."""
        digest = hashlib.sha256()
        X = self.data.X
        for part in _parts(X):
            part = np.asarray(part)
            cells = part if part.dtype != object else np.frombuffer("\n".join(map(repr, part)).encode(), np.uint8)
            digest.update(np.ascontiguousarray(cells).view(np.uint8).data)
        digest.update("\n".join(map(repr, np.asarray(self.data.y).tolist())).encode())
        return {
            "data": digest.hexdigest(),
            "cv": self.cv,
            "seed": self.seed,
            "metric": self.metric,
            "class_weight": self.class_weight,
            "skmargin": skmargin.__version__,
            "scikit-learn": sklearn.__version__,
        }

    def _save(self) -> None:
        if self.store is None:
            return
        state = {
            "format": FORMAT,
            "format_version": VERSION,
            "settings": self.settings,
            "models": {
                model.name: {
                    "definition": _definition(model),
                    "folds": [asdict(fold) for fold in self.folds[model.name]],
                    "details": asdict(self.details[model.name]),
                }
                for model in self.models
                if self.folds[model.name]
            },
        }
        with atomic_write(self.store) as file:
            file.write(json.dumps(state).encode())

    def _continue(self) -> None:
        """Take over what the file holds of our models, if it was made from the same data in the same way."""
        path = self.store
        assert path is not None
        if not path.is_file():
            raise ComparisonError(f"{path}: is not a regular file, so it cannot keep the state of a comparison.")
        if path.stat().st_size > MAX_STATE:
            raise ComparisonError(f"{path}: is larger than {MAX_STATE >> 20} MiB: not a file of a comparison.")
        try:
            state = json.loads(path.read_bytes())
            if state["format"] != FORMAT or state["format_version"] != VERSION:
                raise ValueError("another format")
            ours, theirs = self.settings, state["settings"]
            different = [name for name in ours if theirs[name] != ours[name]]
            if different:
                raise ComparisonError(
                    f"{path}: belongs to another comparison ({', '.join(different)} differ). "
                    "Name a new file, or remove this one."
                )
            for model in self.models:
                entry = state["models"].get(model.name)
                if entry is not None and entry["definition"] == _definition(model):
                    folds = [Fold(**{**fold, "counts": Counts(**fold["counts"])}) for fold in entry["folds"]]
                    details = Results.from_dict(
                        {"title": "", "dataset": asdict(self.summary), "models": [entry["details"]]}
                    )
                    self.folds[model.name], self.details[model.name] = folds[: self.cv], details.models[0]
        except ComparisonError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise ComparisonError(f"{path}: is not a file of an interrupted comparison, or it is damaged.") from None


def _definition(model: Model) -> str:
    return f"{model.estimator!r} {model.grid!r} {model.widths!r}"


def _parts(X: RowsLike) -> Iterator[Any]:
    """All that rows consist of, as arrays."""
    if hasattr(X, "iloc"):
        for name in X.columns:
            yield np.frombuffer(repr(name).encode(), np.uint8)
            yield X[name].to_numpy()
    else:
        yield from (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)


def _check_labels(data: Dataset, cv: int) -> np.ndarray:
    """The labels, if two classes have samples for all folds and for choosing parameters inside them."""
    if data.y is None:
        raise ComparisonError(f"{data.name}: the data have no labels.")
    classes, counts = np.unique(data.y, return_counts=True)
    if len(classes) < 2:
        raise ComparisonError(f"{data.name}: there is only one class, {str(classes[0])!r}; at least two are needed.")
    needed = needed_samples(cv)
    if second_largest(data.y) < needed:
        rare, n = str(classes[counts.argmin()]), counts.min()
        raise ComparisonError(
            f"{data.name}: class {rare!r} has only {n} {'sample' if n == 1 else 'samples'}, {needed} are needed for "
            f"{cv} folds. Remove the class, or use fewer folds (--cv)."
        )
    return data.y


def needed_samples(cv: int) -> int:
    """Samples that a class has in every fold, and for choosing parameters inside them."""
    return max(cv, 4 if cv == 2 else 3)


def second_largest(y: np.ndarray) -> int:
    """Samples of the second largest class: up to so many folds can be made.

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.comparison import second_largest
    >>> second_largest(np.array(["a", "a", "a", "b", "b", "c"]))
    2
    """
    return int(np.sort(np.unique(y, return_counts=True)[1])[-2])


def rare_classes(y: np.ndarray, needed: int) -> str | None:
    """A sentence about the classes with fewer samples than that, where there are some.

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.comparison import rare_classes
    >>> rare_classes(np.array(["a", "a", "a", "b"]), 2)[:40]
    '1 of 2 classes have fewer than 2 samples'
    """
    counts = np.unique(y, return_counts=True)[1]
    rare = int(np.sum(counts < needed))
    if not rare:
        return None
    return (
        f"{rare} of {len(counts)} classes have fewer than {needed} samples: where none is left to learn from, those to "
        "be predicted count as mistakes."
    )
