"""SemiSupervisedMarginSVC with few labels, beside the supervised machine and scikit-learn's semi-supervised methods.

    python -m benchmarks.semi_supervised --data DIR [--sets digits,usps] [--share 0.05] [--seeds 10] [--rows 2000]

Mean accuracy (and standard deviation) on the unlabelled rows over the same random splits; each class keeps a label.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks.data import load
from skmargin import MultiMarginSVC, SemiSupervisedMarginSVC


def methods(C: float, labeled: int, unlabeled: int) -> dict[str, ClassifierMixin]:
    even = C * labeled / unlabeled  # both parts have the same total weight
    return {
        "supervised": MultiMarginSVC(C=C, random_state=0),
        "semi": SemiSupervisedMarginSVC(C=C, random_state=0),
        "semi, free": SemiSupervisedMarginSVC(C=C, balance=False, random_state=0),
        "semi, even": SemiSupervisedMarginSVC(C=C, C_unlabeled=even, random_state=0),
        "semi, even, free": SemiSupervisedMarginSVC(C=C, C_unlabeled=even, balance=False, random_state=0),
        "SelfTraining": SelfTrainingClassifier(LogisticRegression(C=10, max_iter=1000)),
        "LabelSpreading": LabelSpreading(kernel="knn", n_neighbors=7),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default="digits,usps,satimage")
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=2000, help="rows drawn from larger sets")
    parser.add_argument("--C", type=float, default=1.0)
    args = parser.parse_args()
    for name in args.sets.split(","):
        found = load(name, args.data)
        scores: dict[str, list[float]] = {}
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            rows = rng.permutation(len(found.y))[: args.rows]
            X, y = found.X[rows], found.y[rows]
            shown = rng.random(len(y)) < args.share
            shown[np.unique(y, return_index=True)[1]] = True
            partly = np.where(shown, y, -1)
            for label, method in methods(args.C, shown.sum(), (~shown).sum()).items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    method.fit(*(X[shown], y[shown]) if label == "supervised" else (X, partly))
                scores.setdefault(label, []).append(float((method.predict(X[~shown]) == y[~shown]).mean()))
        for label, values in scores.items():
            print(f"{name:>9s} {label:>17s} {100 * np.mean(values):6.2f} +- {100 * np.std(values):.2f}", flush=True)


if __name__ == "__main__":
    main()
