"""The job of Abe (2017) in one run with its rivals: 5 folds on a grid of 8 strengths and 11 widths, refit, test.

    python -m benchmarks.uldm_grid --data DIR [--sets satimage banana ...] [--splits 2] [--naive satimage] [--limit S]

``ours`` is `ULDMClassifier` over the paper's grid, ``svc`` is scikit-learn's ``GridSearchCV(SVC)`` over the paper's
grid for the L1 SVM, ``naive`` is the ULDM with a fresh kernel and solve for each candidate, fold and pair of classes;
its time is that of one width and one fold, for all strengths and pairs, times 55 (every width and fold costs the same).
DIR holds satimage.{train,test}.svm.bz2, usps.{train,test}.svm.bz2 and raetsch.npz; features are scaled to [0, 1] on the
training part.  The programs run one after the other on each split, one thread each, and seconds are those of the
processor, so that other work on the machine counts little; read the ratios.  With ``--limit`` the grid of the SVC is
stopped after so many seconds, and its ratio is a lower bound (">"); it then says nothing about accuracy.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from benchmarks.limited import limited
from skmargin import ULDMClassifier

WIDTHS = np.array([0.01, 0.1, 0.5, 1, 5, 10, 15, 20, 50, 100, 200])  # divided by the number of features
ALPHAS = [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1]
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
CS = [0.1, 1, 10, 50, 100, 500, 1000, 2000]
N_FEATURES = {"satimage": 36, "usps": 256}
RAETSCH = ["banana", "breast_cancer", "flare_solar", "german", "splice", "thyroid", "titanic", "twonorm", "waveform"]


def load(data: Path, name: str, seed: int):
    if name in N_FEATURES:
        parts = [
            load_svmlight_file(str(data / f"{name}.{part}.svm.bz2"), n_features=N_FEATURES[name], zero_based=False)
            for part in ("train", "test")
        ]
        (X, y), (X_test, y_test) = [(X.toarray(), y) for X, y in parts]
    else:
        with np.load(data / "raetsch.npz") as pool:
            X, y, sizes = pool[f"{name}_X"], pool[f"{name}_y"].ravel(), pool[f"{name}_sizes"]
        X, X_test, y, y_test = train_test_split(
            X, y, train_size=int(sizes[0]), test_size=int(sizes[1]), random_state=seed
        )
    scaler = MinMaxScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def ours(X, y, X_test, y_test):
    model = ULDMClassifier(alpha=ALPHAS, gamma=WIDTHS / X.shape[1], cv=FOLDS, random_state=0).fit(X, y)
    return model.score(X_test, y_test), f"alpha {model.alpha_:g} width {model.gamma_ * X.shape[1]:g}"


def svc(X, y, X_test, y_test):
    search = GridSearchCV(SVC(cache_size=500), {"C": CS, "gamma": WIDTHS / X.shape[1]}, cv=FOLDS).fit(X, y)
    best = search.best_params_
    return search.score(X_test, y_test), f"C {best['C']:g} width {best['gamma'] * X.shape[1]:g}"


def naive_seconds(X, y) -> float:
    """Time of one width and one fold (all strengths and pairs, each from scratch), times widths and folds."""
    train, held = next(FOLDS.split(X, y))
    start = time.process_time()
    for alpha in ALPHAS:
        for i, j in combinations(np.unique(y), 2):
            rows = train[(y[train] == i) | (y[train] == j)]
            labels = np.where(y[rows] == j, 1.0, -1.0)
            Z = np.c_[rbf_kernel(X[rows], gamma=10 / X.shape[1]), np.ones(len(rows))]
            h = Z.T @ labels / len(rows)
            beta = np.linalg.solve(alpha * np.eye(len(h)) + Z.T @ Z / len(rows) - np.outer(h, h), h)
            np.c_[rbf_kernel(X[held], X[rows], gamma=10 / X.shape[1]), np.ones(len(held))] @ beta
    return (time.process_time() - start) * len(WIDTHS) * 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=[*RAETSCH, *N_FEATURES])
    parser.add_argument("--splits", type=int, default=2, help="random splits of each two-class set")
    parser.add_argument("--naive", nargs="*", default=["satimage"], help="sets on which the naive job is timed too")
    parser.add_argument("--limit", type=float, default=None, help="seconds that the grid of the SVC may take")
    arguments = parser.parse_args()
    ratios, gains = [], []
    print(f"{'set':14s} {'ours s':>8s} {'svc s':>8s} {'svc/ours':>8s} {'ours acc':>8s} {'svc acc':>8s}  chosen")
    for name in arguments.sets:
        seconds, accuracy, chosen, above = {ours: [], svc: []}, {ours: [], svc: []}, "", ""
        for seed in range(1 if name in N_FEATURES else arguments.splits):
            split = load(arguments.data, name, seed)
            for program in (ours, svc):
                limit = arguments.limit if program is svc else None
                result, spent = limited(lambda: program(*split), limit, cpu=True)  # noqa: B023
                seconds[program].append(spent)
                if result is None:
                    above = ">"
                    continue
                accuracy[program].append(result[0])
                chosen += f" | {result[1]}" if seed == 0 else ""
        ratio = float(np.median(np.array(seconds[svc]) / np.array(seconds[ours])))
        ratios.append(ratio)
        scores = [float(np.mean(accuracy[program])) if accuracy[program] else np.nan for program in (ours, svc)]
        gains.append(scores[0] - scores[1])
        print(
            f"{name:14s} {np.median(seconds[ours]):8.2f} {above:>1s}{np.median(seconds[svc]):7.2f} "
            f"{above:>1s}{ratio:7.2f} {scores[0]:8.4f} {scores[1]:8.4f} {chosen}",
            flush=True,
        )
        if name in arguments.naive:
            naive = naive_seconds(*split[:2])
            print(
                f"{'':14s} naive {naive:.0f} s (extrapolated) = {naive / np.median(seconds[ours]):.1f} times ours",
                flush=True,
            )
    mean_ratio, mean_gain = np.exp(np.mean(np.log(ratios))), np.nanmean(gains)
    print(f"geometric mean of svc/ours {mean_ratio:.2f}, mean gain in accuracy {mean_gain:+.4f}")


if __name__ == "__main__":
    main()
