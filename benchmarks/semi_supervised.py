"""SemiSupervisedMarginSVC with few labels, beside the supervised machine and scikit-learn's semi-supervised methods.

    python -m benchmarks.semi_supervised --data DIR [--sets digits,usps] [--share 0.05] [--seeds 10] [--rows 2000]

A table in Markdown: mean accuracy (and standard deviation) on the unlabelled rows over the same random splits, in
which each class keeps a label, and in how many splits a method is at least as good as the supervised machine.
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


def methods(C: float) -> dict[str, ClassifierMixin]:
    return {
        "MultiMarginSVC, labelled rows": MultiMarginSVC(C=C, random_state=0),
        "SemiSupervisedMarginSVC": SemiSupervisedMarginSVC(C=C, random_state=0),
        "the same, C_unlabeled='even'": SemiSupervisedMarginSVC(C=C, C_unlabeled="even", random_state=0),
        "SelfTraining, logistic": SelfTrainingClassifier(LogisticRegression(C=10, max_iter=1000)),
        "LabelSpreading, 7 neighbours": LabelSpreading(kernel="knn", n_neighbors=7),
    }


def accuracies(name: str, directory: Path | None, share: float, seeds: int, rows: int, C: float) -> np.ndarray:
    """Of each method (rows) for each split (columns), in per cent."""
    found = load(name, directory)
    scores = np.empty((len(methods(C)), seeds))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        drawn = rng.permutation(len(found.y))[:rows]
        X, y = found.X[drawn], found.y[drawn]
        shown = rng.random(len(y)) < share
        shown[np.unique(y, return_index=True)[1]] = True
        partly = np.where(shown, y, -1)
        for j, method in enumerate(methods(C).values()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                method.fit(*(X[shown], y[shown]) if j == 0 else (X, partly))
                scores[j, seed] = 100 * (method.predict(X[~shown]) == y[~shown]).mean()
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default="digits,usps,satimage")
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=2000, help="rows drawn from larger sets")
    parser.add_argument("--C", type=float, default=1.0)
    args = parser.parse_args()
    print("| set | " + " | ".join(methods(args.C)) + " |\n|" + "---|" * (len(methods(args.C)) + 1))
    for name in args.sets.split(","):
        scores = accuracies(name, args.data, args.share, args.seeds, args.rows, args.C)
        good = (scores >= scores[0]).sum(axis=1)
        cells = [
            f"{mean:.1f} ± {sd:.1f}" + (f" ({wins} of {args.seeds})" if j else "")
            for j, (mean, sd, wins) in enumerate(zip(scores.mean(axis=1), scores.std(axis=1), good, strict=True))
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
