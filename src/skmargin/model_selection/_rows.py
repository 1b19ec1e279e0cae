"""Choosing parameters on rows in blocks.

The candidates of a fold share its sample, start from each other, and are judged in one read.  A row belongs to a fold
by its number alone, so that no list of rows is needed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .._runtime.progress import print_line
from ..rows.blocks import Block, Task
from ..rows.files import CountedRows, OpenRows
from ._chains import chains


@dataclass(frozen=True)
class Judge(Task[np.ndarray]):
    """Task: how many of the rows, by weight, each of several linear machines gets right."""

    name = "judge"
    machines: tuple[tuple[np.ndarray, np.ndarray], ...]  # W (k, d), b (k,)

    def zero(self) -> np.ndarray:
        """Nothing right, of nothing."""
        return np.zeros(len(self.machines) + 1)

    def add(self, sums: np.ndarray, block: Block) -> None:
        """Judge a block."""
        for place, (W, b) in enumerate(self.machines):
            right = (block.X @ W.T.astype(block.X.dtype) + b).argmax(axis=1) == block.y
            sums[place] += right.sum()
        sums[-1] += len(block.y)


def check(search: Any) -> None:
    """Refuse what needs the rows in memory."""
    name = type(search).__name__
    if not getattr(search.estimator, "_in_blocks", False):
        raise TypeError(f"{type(search.estimator).__name__} cannot be fitted to rows in blocks (open_rows).")
    if not isinstance(search.cv, int) or search.cv < 2:
        raise ValueError(f"{name} on rows in blocks takes a number of folds, at least 2, as cv; got cv={search.cv!r}.")
    if search.scoring not in (None, "accuracy"):
        raise ValueError(f"{name} on rows in blocks judges by accuracy only, got scoring={search.scoring!r}.")
    for option in ("racing", "return_train_score"):
        if getattr(search, option):
            raise ValueError(f"{name} on rows in blocks needs {option}=False.")
    if callable(search.refit):
        raise ValueError(f"{name} on rows in blocks needs refit=True or False.")


def evaluate(search: Any, rows: OpenRows, candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Times and scores of all candidates and folds, candidate by candidate, as scikit-learn's searches keep them."""
    n_folds = search.cv
    plan = chains(candidates, "")
    example = clone(search.estimator)
    counted = example._count_rows(rows)
    results: list[list[dict[str, Any]]] = [[{} for _ in range(n_folds)] for _ in candidates]
    for fold in range(n_folds):
        train = counted.some(fold, n_folds, 0, held_out=False)
        if (train.class_counts == 0).any():
            missing = counted.classes[train.class_counts == 0].tolist()
            raise ValueError(f"The class {missing[0]!r} has too few rows for cv={n_folds}.")
        machines: dict[int, Any] = {}
        for chain in plan:
            model = clone(search.estimator)
            for number in chain.candidates:
                begin = time.perf_counter()
                _fit(model, candidates[number], train, example, rows)
                machines[number] = model._class_vectors()
                results[number][fold] = {"fit_error": None, "fit_time": time.perf_counter() - begin}
        begin = time.perf_counter()
        judge = Judge(tuple(machines[number] for number in range(len(candidates))))
        right = counted.some(fold, n_folds, 0, held_out=True).map_sum(judge)
        seconds = (time.perf_counter() - begin) / len(candidates)
        for number in range(len(candidates)):
            score = right[number] / max(1.0, right[-1])
            results[number][fold] |= {"score_time": seconds, "test_scores": score}
        if search.verbose:
            print_line(f"{type(search).__name__}: {fold + 1} of {n_folds} folds")
    return [result for of_candidate in results for result in of_candidate]


def _fit(model: Any, params: dict[str, Any], train: CountedRows, example: Any, rows: OpenRows) -> None:
    model.set_params(**params)
    if "warm_start" in model.get_params(deep=False):
        model.set_params(warm_start=True)
    model.classes_, model.n_features_in_ = example.classes_, rows.n_features
    model._fit_blocks(train)
