"""Choosing parameters on rows in blocks and on Dask collections: all candidates and folds share the passes.

Rows are judged where they are: what comes back is how often each class was taken for each other one.
"""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer

from .._runtime.progress import print_line
from .._types import RowsLike
from ..rows.blocks import Block, Task
from ..rows.collections import Collections
from ..rows.files import OpenRows
from ..rows.folds import Folds, TrainingRows
from ..solvers.tuning import DEFAULT


@dataclass(frozen=True)
class Confusion(Task[np.ndarray]):
    """Task: how many rows of each class several machines take for each class."""

    name = "judge"
    machines: tuple[Any, ...]

    def zero(self) -> np.ndarray:
        """No rows."""
        k = len(self.machines[0].classes_)
        return np.zeros((len(self.machines), k, k))

    def add(self, sums: np.ndarray, block: Block) -> None:
        """Judge a block."""
        k = sums.shape[1]
        for machine, table in zip(self.machines, sums, strict=True):
            taken = np.searchsorted(machine.classes_, machine._labels(block.X))
            table += np.bincount(block.y * k + taken, minlength=k * k).reshape(k, k)


class Answers(ClassifierMixin, BaseEstimator):
    """A classifier of which only its answers are left: row i of X is the number of an answer."""

    def __init__(self, classes: np.ndarray, answers: np.ndarray) -> None:
        self.classes_, self.answers = classes, answers

    def predict(self, X: RowsLike) -> np.ndarray:
        """The answers."""
        return self.answers[np.ravel(X)]


def check(search: Any, kind: str, candidates: list[dict[str, Any]]) -> None:
    """Refuse what needs the rows in memory."""
    name = type(search).__name__
    if not getattr(search.estimator, "_in_blocks", False):
        raise TypeError(f"{type(search.estimator).__name__} cannot be fitted to {kind}.")
    if not isinstance(search.cv, int) or search.cv < 2:
        raise ValueError(f"{name} on {kind} takes a number of folds, at least 2, as cv; got cv={search.cv!r}.")
    for option in ("racing", "return_train_score"):
        if getattr(search, option):
            raise ValueError(f"{name} on {kind} needs {option}=False.")
    if any(param in candidate for candidate in candidates for param in ("class_weight", "kernel")):
        raise ValueError(f"{name} on {kind} needs one class_weight and one kernel: set them on the estimator.")


def check_scorers(scorers: Any, kind: str) -> None:
    """Refuse scorings that are no function of how often each class is taken for each other one."""
    for name, scorer in named(scorers).items():
        ours = isinstance(scorer, _PassthroughScorer) or (
            isinstance(scorer, _BaseScorer)
            and scorer._response_method == "predict"
            and "sample_weight" in inspect.signature(scorer._score_func).parameters
        )
        if not ours:
            raise ValueError(
                f"scoring={name!r} cannot be computed on {kind}: take one of predictions that knows sample_weight, "
                "such as 'accuracy', 'balanced_accuracy' or 'f1_macro'."
            )


def named(scorers: Any) -> dict[str, Any]:
    """Scorers by their names; that of a single one is "score"."""
    return dict(scorers._scorers) if isinstance(scorers, _MultimetricScorer) else {"score": scorers}


def evaluate(
    search: Any, rows: OpenRows | Collections, candidates: list[dict[str, Any]], scorers: Any
) -> list[dict[str, Any]]:
    """Times and scores of all candidates and folds, candidate by candidate, as scikit-learn's searches keep them."""
    n_folds = search.cv
    example = clone(search.estimator)
    counted = example._count_rows(rows)
    folds = Folds(counted, n_folds)
    if (folds.sizes[:, 0] == 0).any():
        missing = counted.classes[(folds.sizes[:, 0] == 0).any(axis=0)].tolist()
        raise ValueError(f"The class {missing[0]!r} has too few rows for cv={n_folds}.")

    def fit(params: dict[str, Any], train: TrainingRows) -> Any:
        begin = time.perf_counter()
        model = clone(search.estimator).set_params(**clone(params, safe=False))
        model.classes_, model.n_features_in_ = example.classes_, counted.n_features
        model._fit_blocks(train)
        return model, time.perf_counter() - begin

    work = [(fold, lambda train, params=params: fit(params, train)) for fold in range(n_folds) for params in candidates]
    step, fitted = at_once(counted), []
    for begin in range(0, len(work), step):
        fitted += folds.solve(work[begin : begin + step])
        if search.verbose:
            print_line(f"{type(search).__name__}: {len(fitted)} of {len(work)} fits")
    start, n = time.perf_counter(), len(candidates)
    judges = [(f, Confusion(tuple(model for model, _ in fitted[f * n : (f + 1) * n]))) for f in range(n_folds)]
    tables = folds.map_sum(judges, held_out=True)
    seconds = (time.perf_counter() - start) / len(work)
    return [
        {
            "fit_error": None, "fit_time": fitted[fold * n + number][1], "score_time": seconds,
            "test_scores": scores(scorers, counted.classes, tables[fold][number]),
        }
        for number in range(n) for fold in range(n_folds)
    ]  # fmt: skip


def at_once(rows: RowsLike) -> int:
    """How many solves may run side by side: sums of each are held by every task."""
    k, d = len(rows.class_counts), rows.n_features
    return max(1, DEFAULT.blocks.piece_bytes // (8 * min((k * d) ** 2, 64 * k * d)))


def scores(scorers: Any, classes: np.ndarray, table: np.ndarray) -> Any:
    """The scores of a machine from how often it takes each class for each other one."""
    true, taken = np.nonzero(table)
    judged = Answers(classes, classes[taken])
    given = np.arange(len(true))[:, None], classes[true]
    found = {name: scorer(judged, *given, sample_weight=table[true, taken]) for name, scorer in named(scorers).items()}
    return found if isinstance(scorers, _MultimetricScorer) else found["score"]
