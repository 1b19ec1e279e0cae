"""Figure 2 of Xu et al. (2017): the suboptimality of SVRG falls while that of plain stochastic gradients stalls.

    python examples/svrg_trajectory.py [--out svrg_trajectory.png]

The optimum is certified by the dual solver.  Needs matplotlib.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler

from skmargin import MultiMarginSVC
from skmargin.solvers.multi_margin.svrg import epoch, first_step

EPOCHS = 60


def plain(X: np.ndarray, y: np.ndarray, step: float, decay: float) -> list[float]:
    """Stochastic gradients without variance reduction; ``decay`` counts in epochs."""
    k = int(y.max()) + 1
    W, b, cap = np.zeros((k, X.shape[1])), np.zeros(k), np.ones(len(y))
    values = [float(len(y) * (k - 1))]  # at W = 0 every hinge is 1
    for t in range(EPOCHS):
        W, b, value = epoch(
            X, y, cap, W, b, fit_intercept=True, step=step, seed=t, decay=decay / len(y), first=t * len(y),
            variance_reduction=False,
        )  # fmt: skip
        values.append(value)
    return values


def main() -> None:
    """Draw one panel a data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="svrg_trajectory.png")
    args = parser.parse_args()
    figure, panels = plt.subplots(1, 3, figsize=(13, 3.6))
    for panel, (name, load) in zip(
        panels, {"iris": load_iris, "wine": load_wine, "digits": load_digits}.items(), strict=True
    ):
        X, y = load(return_X_y=True)
        X, y = MinMaxScaler().fit_transform(X), y.astype(np.int32)
        best = MultiMarginSVC(tol=1e-5).fit(X, y).objective_
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # so many epochs are drawn
            svrg = MultiMarginSVC(solver="svrg", max_iter=EPOCHS, tol=1e-6, random_state=0).fit(X, y)
        step = first_step(X, np.ones(len(y)), int(y.max()) + 1)
        curves = {
            "SVRG": svrg.trajectory_,
            "SGD, constant step": plain(X, y, step, 0.0),
            "SGD, decreasing step": plain(X, y, 4 * step, 1.0),
        }
        for label, values in curves.items():
            panel.plot(np.asarray(values) / best - 1, label=label)
        panel.set(title=name, xlabel="epoch", yscale="log")
        print(f"{name}: SVRG ends {svrg.objective_ / best - 1:.1e} above the optimum after {svrg.n_iter_} epochs")
    panels[0].set_ylabel("relative suboptimality")
    panels[2].legend()  # the one with room
    figure.tight_layout()
    figure.savefig(args.out, dpi=120)
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
