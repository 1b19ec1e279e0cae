"""Searches for parameters against scikit-learn's grid search, in one run on all processors.

    python -m benchmarks.search --data DIR [--sets usps satimage sector] [--steps 11] [--rows N] [--limit S | --fits S]

``cs``   : `MarginSearchCV` of `CrammerSingerSVC` against `GridSearchCV` of ``LinearSVC(multi_class="crammer_singer")``,
           both without intercept, C = 2^0 .. 2^20 in steps of 4, 5 folds, refit
``uldm`` : `MarginSearchCV` of `ULDMClassifier` against `GridSearchCV` of the same, alpha = 1e-12 .. 1e-2 in as many
           steps, 3 widths, 5 folds, refit

Both sides use all processors (threads here, processes there) and take turns.  Read the ratios.  With ``--limit`` the
grid search of scikit-learn is stopped after so many seconds, and its ratio is a lower bound (">").  Where even that
takes too long, ``--fits S`` runs the rival's fits of the first fold only, for the smallest, the middle and the largest
value, each stopped after S seconds of the processor.  Their sum times the number of folds is less than what its search
takes, since every fold costs the same and the other values cost something; ours is the whole search, in seconds of the
processor too.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from benchmarks.data import load
from benchmarks.limited import limited
from skmargin import CrammerSingerSVC, ULDMClassifier
from skmargin.model_selection import MarginSearchCV

FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def searched(search: Any, X: Any, y: np.ndarray) -> tuple[float, dict[str, Any]]:
    """Fit a search: its best score and what it chose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # LIBLINEAR at large C
        os.environ["PYTHONWARNINGS"] = "ignore"  # in its worker processes too
        search.fit(X, y)
    return search.best_score_, search.best_params_


def race(name: str, job: str, ours: Any, theirs: Any, X: Any, y: np.ndarray, limit: float | None) -> None:
    """One line: both times, their ratio, and what was chosen."""
    (score, chosen), mine = limited(lambda: searched(ours, X, y), None)
    result, other = limited(lambda: searched(theirs, X, y), limit)
    above = ">" if result is None else ""
    their_score, their_choice = result or (np.nan, "not finished")
    print(
        f"{name:10s} {job:5s} {mine:8.2f} {above:>1s}{other:8.2f} {above:>1s}{other / mine:6.1f} "
        f"{score:7.4f} {their_score:7.4f}  {chosen} {their_choice}",
        flush=True,
    )


def race_fits(
    name: str, job: str, ours: Any, rival: Any, grid: list[float], X: Any, y: np.ndarray, limit: float
) -> None:
    """One line: our whole search against a lower bound of the rival's, in seconds of the processor."""
    (score, chosen), mine = limited(lambda: searched(ours, X, y), None, cpu=True)
    train, _ = next(FOLDS.split(X, y))
    spent = 0.0
    for C in (grid[0], grid[len(grid) // 2], grid[-1]):
        model = clone(rival).set_params(C=C)
        spent += limited(lambda: model.fit(X[train], y[train]).n_iter_, limit, cpu=True)[1]  # noqa: B023
    other = spent * FOLDS.get_n_splits()
    print(
        f"{name:10s} {job:5s} {mine:8.2f} >{other:8.2f} >{other / mine:6.1f} {score:7.4f} {'':7s}  {chosen} "
        f"3 of {len(grid)} values",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--sets", nargs="*", default=["satimage", "usps", "sector"])
    parser.add_argument("--jobs", nargs="*", choices=["cs", "uldm"], default=["cs", "uldm"])
    parser.add_argument("--steps", type=int, default=11, help="values of C, 2^0, 2^2, ..., and of alpha")
    parser.add_argument("--rows", type=int, default=None, help="only so many rows")
    parser.add_argument(
        "--fits", type=float, default=None, help="seconds that each of a few fits of the rival may take"
    )
    parser.add_argument("--limit", type=float, default=None, help="seconds that scikit-learn's search may take")
    arguments = parser.parse_args()
    print(f"{'set':10s} {'job':5s} {'ours s':>8s} {'sklearn s':>8s} {'ratio':>7s} {'score':>7s} {'theirs':>7s}  chosen")
    for name in arguments.sets:
        data = load(name, arguments.data)
        rows = np.random.default_rng(0).permutation(len(data.y))[: arguments.rows]
        X, y = data.X[rows], data.y[rows]
        options = {"cv": FOLDS, "n_jobs": -1}
        if "cs" in arguments.jobs:
            grid = {"C": [4.0**e for e in range(arguments.steps)]}
            rival = LinearSVC(multi_class="crammer_singer", fit_intercept=False)
            ours = MarginSearchCV(CrammerSingerSVC(fit_intercept=False), grid, **options)
            if arguments.fits is None:
                race(name, "cs", ours, GridSearchCV(rival, grid, **options), X, y, arguments.limit)
            else:
                race_fits(name, "cs", ours, rival, grid["C"], X, y, arguments.fits)
        if "uldm" in arguments.jobs and isinstance(X, np.ndarray):
            alphas = np.logspace(-12, -2, arguments.steps).tolist()
            grid = {"alpha": alphas, "gamma": (np.array([1.0, 10.0, 50.0]) / X.shape[1]).tolist()}
            race(
                name,
                "uldm",
                MarginSearchCV(ULDMClassifier(), grid, **options),
                GridSearchCV(ULDMClassifier(), grid, **options),
                X,
                y,
                arguments.limit,
            )


if __name__ == "__main__":
    main()
