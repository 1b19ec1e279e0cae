"""Figures 3 to 5 of Nie et al. (2024) on scikit-learn's own sets: convergence, effect of p, effect of lambda.

    python examples/m3_figures.py [--out m3_figures.png]

The curves of convergence end where the duality gap, which the paper does not have, is below ``tol``.  Needs matplotlib.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skmargin import M3SVC

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
POWERS = (1, 2, 3, 4, 5, 6, 7, 8)
LAMBDAS = np.logspace(-4, 0, 9)


def splits() -> dict[str, Split]:
    """80/20 splits, standardised by the training part."""
    out = {}
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        A, B, a, b = train_test_split(*load(return_X_y=True), test_size=0.2, random_state=42)
        scaler = StandardScaler().fit(A)
        out[name] = (scaler.transform(A), scaler.transform(B), a, b)
    return out


def accuracy(split: Split, **settings: float) -> float:
    """Accuracy on the test part."""
    A, B, a, b = split
    return float(M3SVC(tol=1e-2, **settings).fit(A, a).score(B, b))


def convergence(split: Split) -> tuple[list[int], list[float], list[float]]:
    """Objective and accuracy of fits with more and more iterations of L-BFGS."""
    A, B, a, b = split
    steps, values, scores = [], [], []
    for max_iter in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = M3SVC(solver="lbfgs", max_iter=max_iter).fit(A, a)
        steps.append(model.n_iter_)
        values.append(model.objective_)
        scores.append(model.score(B, b))
        if model.dual_gap_ <= model.tol:
            break
    return steps, values, scores


def main() -> None:
    """Draw the three figures side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="m3_figures.png")
    args = parser.parse_args()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.6))
    for name, split in splits().items():
        steps, values, scores = convergence(split)
        left.plot(steps, values, marker="o", label=name)
        by_p = [accuracy(split, p=p) for p in POWERS]
        middle.plot(POWERS, by_p, marker="o", label=name)
        by_lambda = [accuracy(split, alpha=float(alpha)) for alpha in LAMBDAS]
        right.plot(LAMBDAS, by_lambda, marker="o", label=name)
        print(f"{name}: test accuracy {scores[-1]:.3f} after {steps[-1]} iterations, best p {POWERS[np.argmax(by_p)]}")
    left.set(title="convergence", xlabel="iteration", ylabel="objective", xscale="log", yscale="log")
    middle.set(title="effect of p (lambda = 1e-3)", xlabel="p", ylabel="test accuracy")
    right.set(title="effect of lambda (p = 4)", xlabel="lambda", xscale="log")
    left.legend()
    figure.tight_layout()
    figure.savefig(args.out, dpi=120)
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
