"""Which classes are taken for which: the pairs that occur, never a table of all pairs."""

from __future__ import annotations

import warnings

import numpy as np

from .._types import Estimator, RowsLike

MAX_MATRIX = 40  # classes in the confusion matrix and in the map
MANY_CLASSES = 1000  # beyond: the worst pairs instead of matrices, and no class vectors
N_PAIRS = 30  # of the worst
TOP = 5  # best classes that `top_accuracy` looks at
SCORES = 1 << 24  # numbers of the scores that margins are taken from, at most


class Confusion:
    """Counts of (true, predicted) classes."""

    def __init__(self, code: np.ndarray, guess: np.ndarray, k: int) -> None:
        self.k = k
        self.support, self.predicted = np.bincount(code, minlength=k), np.bincount(guess, minlength=k)
        self.hits = np.bincount(code[code == guess], minlength=k)
        pairs, self.counts = np.unique(np.int64(k) * code + guess, return_counts=True)
        self.true, self.taken_for = pairs // k, pairs % k

    def macro_f1(self) -> float:
        """The mean over the classes that are there or predicted."""
        met = self.support + self.predicted
        return float(np.mean(2 * self.hits[met > 0] / met[met > 0]))

    def most_confused(self) -> np.ndarray:
        """Positions of the classes for the matrices: all, or those with most errors where there are too many."""
        if self.k <= MAX_MATRIX:
            return np.arange(self.k)
        errors = self.support + self.predicted - 2 * self.hits
        return np.sort(np.argsort(-errors, kind="stable")[:MAX_MATRIX])

    def matrix(self, chosen: np.ndarray) -> list[list[int]]:
        """The counts among some of the classes."""
        place = np.full(self.k, -1)
        place[chosen] = np.arange(len(chosen))
        row, column = place[self.true], place[self.taken_for]
        shown = (row >= 0) & (column >= 0)
        found = np.zeros((len(chosen), len(chosen)), dtype=np.int64)
        found[row[shown], column[shown]] = self.counts[shown]
        return found.tolist()

    def worst_pairs(self, place: np.ndarray) -> list[list[int]]:
        """(true class, predicted class, samples) of the most frequent errors, with the classes' places in the data."""
        wrong = np.flatnonzero(self.true != self.taken_for)
        worst = wrong[np.argsort(-self.counts[wrong], kind="stable")[:N_PAIRS]]
        return np.stack([place[self.true[worst]], place[self.taken_for[worst]], self.counts[worst]], axis=1).tolist()


def top_accuracy(estimator: Estimator, X: RowsLike, y: np.ndarray) -> float | None:
    """Share of the samples whose class is among the five best; None where so many classes there are not, or no scores.

    Machines with `predict_top` need no array of all scores; others are asked where it is small enough.
    """
    steps = getattr(estimator, "steps", [("", estimator)])
    k = len(estimator.classes_)
    if k <= TOP:
        return None
    if not hasattr(steps[-1][1], "predict_top"):
        scores = getattr(estimator, "decision_function", getattr(estimator, "predict_proba", None))
        if scores is None or len(y) * k > SCORES or (found := np.asarray(scores(X))).shape != (len(y), k):
            return None
        best = np.argpartition(-found, TOP - 1, axis=1)[:, :TOP]
        return float(np.mean((estimator.classes_[best] == y[:, None]).any(axis=1)))
    if len(steps) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = estimator[:-1].transform(X)
    return float(np.mean((steps[-1][1].predict_top(X, TOP)[0] == y[:, None]).any(axis=1)))


def some_rows(n: int, k: int) -> np.ndarray | None:
    """Rows whose scores are computed, evenly from all; None where that is all of them."""
    most = max(100, SCORES // k)
    return None if n <= most else np.linspace(0, n - 1, most).astype(np.intp)
