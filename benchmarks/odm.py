"""The optimal margin distribution machine against LIBLINEAR's Crammer-Singer machine (linear) and SVC (RBF).

    python -m benchmarks.odm --data DIR                  linear: whole fit, tol 1e-3; LIBLINEAR at its own tolerance
    python -m benchmarks.odm --data DIR --kernel rbf     against SVC, with mu = 0 and mu = 0.5

Each machine gets the C of best 3-fold accuracy from its own small grid (on at most 2000 rows); above 1: ours is faster.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC

from benchmarks.data import Data, load
from benchmarks.measure import pinned, timed
from skmargin import ODMClassifier

LINEAR = ["usps", "satimage", "isolet", "sector", "mnist", "dna", "covtype-20k"]
KERNEL = ["usps", "isolet"]
STRENGTHS = [0.01, 0.1, 1.0, 10.0]  # a sample; ours is multiplied by the number of samples


def narrow(data: Data) -> Data:
    """32-bit indices: LIBLINEAR takes no others."""
    for X in (data.X, data.X_test):
        if sparse.issparse(X):
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return data


def best_C(estimator: Any, data: Data, grid: list[float]) -> float:
    """C of best cross-validated accuracy on some of the rows."""
    rows = np.random.default_rng(0).permutation(data.X.shape[0])[:2000]
    search = GridSearchCV(estimator, {"C": grid}, cv=3).fit(data.X[rows], data.y[rows])
    return float(search.best_params_["C"])


@pinned(1)
def race(data: Data, machines: dict[str, Any], repeat: int) -> dict[str, tuple[float, float]]:
    """Median seconds of a fit and test accuracy; the machines take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in machines}
    for _ in range(repeat):
        for name, machine in machines.items():
            seconds[name].append(timed(partial(machine.fit, data.X, data.y), 1)[1])
    return {n: (statistics.median(seconds[n]), float(m.score(data.X_test, data.y_test))) for n, m in machines.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--kernel", choices=["linear", "rbf"], default="linear")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # LinearSVC counts iterations of another solver
    linear = arguments.kernel == "linear"
    ratios: dict[str, list[float]] = {}
    for name in arguments.sets or (LINEAR if linear else KERNEL):
        data = narrow(load(name, arguments.data))
        rival: Any = (
            LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=0.1, random_state=0) if linear else SVC()
        )
        rival.set_params(C=best_C(rival, data, STRENGTHS if linear else [1.0, 10.0, 100.0]))
        settings = {"kernel": arguments.kernel, "fit_intercept": False, "tol": arguments.tol, "random_state": 0}
        ours = ODMClassifier(**settings)
        grid = [s * min(2000, data.X.shape[0]) for s in STRENGTHS]
        C = best_C(ours, data, grid) * data.X.shape[0] / min(2000, data.X.shape[0])
        machines = {"rival": rival, **{f"mu={mu:g}": ODMClassifier(C, mu, **settings) for mu in (0.0, 0.5)}}
        results = race(data, machines, arguments.repeat)
        line = f"{name:>12}  C rival {rival.C:g}, ours {C:g} ({C / data.X.shape[0]:g} a sample)"
        for machine, (seconds, accuracy) in results.items():
            ratio = results["rival"][0] / seconds
            ratios.setdefault(machine, []).append(ratio)
            line += f"   {machine}: {seconds:.3f} s ({ratio:.2f}x) accuracy {accuracy:.4f}"
        print(line, flush=True)
    for machine, values in ratios.items():
        print(f"geometric mean of rival / {machine}: {statistics.geometric_mean(values):.2f}")


if __name__ == "__main__":
    main()
