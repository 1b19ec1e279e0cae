"""Figure 2 of Xu et al. (2017) as a table: suboptimality against epochs of SVRG and of plain stochastic gradients.

    python -m benchmarks.svrg [--sets iris,digits] [--data DIR] [--epochs 50] [--C 1]

As in the paper each method has the largest step of a ladder for which its objective does not rise.  The optimum is
that of the certified dual solver.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import load
from skmargin.solvers.multi_margin import solve_multi_margin
from skmargin.solvers.svrg import epoch, first_step

LADDER = 4.0 ** np.arange(3, -8, -1)
METHODS: dict[str, dict[str, Any]] = {
    "SVRG": {},
    "SGD, constant": {"variance_reduction": False},
    "SGD, decreasing": {"variance_reduction": False, "decay": 1.0},
}


def trajectory(
    X: Any, y: np.ndarray, cap: np.ndarray, k: int, epochs: int, step: float, *, seed: int = 0, **method: Any
) -> np.ndarray:
    """Objective before the first and after each epoch; ``decay`` is given in epochs."""
    W, b = np.zeros((k, X.shape[1])), np.zeros(k)
    decay = method.pop("decay", 0.0) / len(y)
    *_, value = epoch(X, y, cap, W, b, fit_intercept=True, step=0.0, seed=seed)
    values = [value]
    for t in range(epochs):
        W, b, value = epoch(
            X, y, cap, W, b,
            fit_intercept=True, step=step, seed=seed + t, first=t * len(y), decay=decay, **method,
        )  # fmt: skip
        values.append(value)
    return np.array(values)


def best_trajectory(X: Any, y: np.ndarray, cap: np.ndarray, k: int, epochs: int, **method: Any) -> np.ndarray:
    """The trajectory with the largest step for which the objective falls, as far as its noise lets one see."""
    for factor in LADDER:
        with np.errstate(over="ignore", invalid="ignore"):
            values = trajectory(X, y, cap, k, epochs, factor * first_step(X, cap, k), **method)
        if np.isfinite(values).all() and (values[1:] <= 1.05 * np.minimum.accumulate(values)[:-1]).all():
            return values
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default="iris,digits")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--C", type=float, default=1.0)
    args = parser.parse_args()
    shown = [e for e in (1, 2, 5, 10, 20, 50, 100) if e <= args.epochs]
    print(f"{'set':>9s} {'method':>16s}" + "".join(f"{e:>10d}" for e in shown) + "  epochs")
    for name in args.sets.split(","):
        found = load(name, args.data)
        y, k = found.y.astype(np.int32), int(found.y.max()) + 1
        cap = np.full(len(y), args.C)
        best = solve_multi_margin(found.X, y, cap, k, tol=1e-5).objective
        for label, method in METHODS.items():
            values = best_trajectory(found.X, y, cap, k, args.epochs, **method) / best - 1
            print(f"{name:>9s} {label:>16s}" + "".join(f"{values[e]:10.1e}" for e in shown), flush=True)


if __name__ == "__main__":
    main()
