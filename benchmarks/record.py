"""Measure what the page of benchmarks shows, and keep it: ``python -m benchmarks.record [--data DIR]``.

Writes one JSON file with every number, the machine and the versions; ``python -m benchmarks.page`` makes the page.
All solvers take turns on one core, in processor seconds; each figure is the median of three fits where these are short.
Objectives are computed here from the class vectors, not taken from a solver.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from benchmarks.data import Data, load, many_class
from benchmarks.measure import pinned, timed
from benchmarks.objectives import primal
from benchmarks.solvers import Liblinear, LinearSVCSolver, Ours, Solver
from skmargin import M3SVC, CrammerSingerSVC

OUT = Path(__file__).parent / "results" / "page.json"
TIGHT = 1e-6  # curves end here
BUDGET = 25.0  # seconds of one solver on one problem
STOPS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def main() -> None:
    """Run every part and write the file after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="directory of LIBSVM files (satimage, usps); without it: digits, text"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # fits that are stopped early are what is measured
    result: dict[str, Any] = {"machine": machine(), "versions": versions(), "day": time.strftime("%Y-%m-%d")}
    sets = ["digits", "text", *(["satimage", "usps"] if options.data else [])]
    parts: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "curves": lambda: curves(sets, options.data),
        "growth": growth,
        "logistic": lambda: logistic([name for name in sets if name != "text"], options.data),
        "kernels": lambda: kernels([name for name in sets if name != "text"], options.data),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with pinned(1):
        Ours("cs").make(1.0, 1e-3, 1).fit(*many_class(200, 5, 3))  # the first fit also loads libraries
        for part, run in parts.items():
            result[part] = []
            for row in run():
                result[part].append(row)
                print(part, row, flush=True)
            options.out.write_text(json.dumps(result, indent=1) + "\n")


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return {"processor": names[0] if names else platform.processor(), "cores": len(names), "system": platform.system()}


def versions() -> dict[str, str]:
    """Of everything that takes part."""
    packages = ("skmargin", "scikit-learn", "liblinear-official", "numpy", "scipy")
    return {"python": platform.python_version(), **{package: version(package) for package in packages}}


def ladder(
    solver: Solver, data: Data, C: float, best: float, stops: tuple[float, ...], goal: float
) -> list[list[float]]:
    """Stopping threshold, seconds and relative suboptimality, until the goal or the budget is met."""
    solver.prepare(data.X, data.y)
    points, spent = [], 0.0
    for stop in stops:
        seconds, values = [], []
        while len(seconds) < 3 and sum(seconds) < 2.0:
            W, took = solver.solve(C, stop, 1)
            seconds.append(took)
            values.append(primal(solver.loss, W, data.X, data.y, C) / best - 1)
        points.append([stop, statistics.median(seconds), max(statistics.median(values), 0.0)])
        spent += seconds[0]
        if points[-1][2] <= goal or spent > BUDGET:
            break
    return points


def optimum(loss: str, data: Data, C: float) -> float:
    """Objective of a fit that is certified to 1e-7."""
    solver = Ours(loss)
    solver.prepare(data.X, data.y)
    W, _ = solver.solve(C, 1e-7, 1)
    return primal(loss, W, data.X, data.y, C)


def rivals() -> list[Solver]:
    """Those who solve the problem of Crammer and Singer."""
    return [Liblinear(), LinearSVCSolver()]


def curves(sets: list[str], directory: Path | None) -> Iterator[dict[str, Any]]:
    """Suboptimality against time."""
    for name in sets:
        data = load(name, directory)
        for loss, solvers in (("cs", [Ours("cs"), *rivals()]), ("ww", [Ours("ww")])):
            best = optimum(loss, data, 1.0)
            for solver in solvers:
                stops = STOPS if isinstance(solver, Ours) else tuple(solver.ladder)
                points = ladder(solver, data, 1.0, best, stops, TIGHT if not isinstance(solver, Ours) else 0.0)
                shape = {"n": data.X.shape[0], "d": data.X.shape[1], "k": int(data.y.max()) + 1}
                yield {"set": name, **shape, "C": 1.0, "loss": loss, "solver": solver.name, "points": points}


def growth() -> Iterator[dict[str, Any]]:
    """Seconds to a relative suboptimality of 1e-3 as one of n, d, k, C grows; Gaussian classes."""
    usual = {"n": 4000, "d": 60, "k": 10, "C": 1.0}
    along: dict[str, list[float]] = {
        "n": [1000, 2000, 4000, 8000, 16000],
        "d": [15, 30, 60, 120, 240],
        "k": [3, 10, 30, 100],
        "C": [0.01, 0.1, 1, 10, 100],
    }
    for axis, values in along.items():
        for value in values:
            setting = {**usual, axis: value}
            X, y = many_class(int(setting["n"]), int(setting["d"]), int(setting["k"]), noise=2.0)
            X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
            data = Data(f"{axis}={value:g}", X, y, X, y)
            C = float(setting["C"])
            best = optimum("cs", data, C)
            for solver in (Ours("cs"), *rivals()):
                stops = (1e-3,) if isinstance(solver, Ours) else tuple(solver.ladder)
                points = ladder(solver, data, C, best, stops, 1e-3)
                yield {"axis": axis, **setting, "solver": solver.name, "point": points[-1]}


def logistic(sets: list[str], directory: Path | None) -> Iterator[dict[str, Any]]:
    """The log loss with squares, one problem for both libraries: M3SVC with p = 2 and LogisticRegression."""
    for name in sets:
        data = load(name, directory)
        k = int(data.y.max()) + 1

        def value(model: Any, data: Data = data) -> float:
            scores = data.X @ model.coef_.T + model.intercept_
            loss = logsumexp(scores, axis=1) - scores[np.arange(len(data.y)), data.y]
            W = model.coef_ - model.coef_.mean(axis=0)
            return float(loss.sum() + 0.5 * np.vdot(W, W))

        def ours(tol: float, k: int = k) -> Any:
            return M3SVC(loss="log_loss", p=2, alpha=1 / (2 * k), tol=tol)

        makers: dict[str, Callable[[float], Any]] = {
            "skmargin": ours,
            "LogisticRegression, lbfgs": lambda tol: LogisticRegression(tol=tol, max_iter=10000),
            "LogisticRegression, newton-cg": lambda tol: LogisticRegression(
                solver="newton-cg", tol=tol, max_iter=10000
            ),
        }
        best = value(ours(1e-9).fit(data.X, data.y))
        for solver, make in makers.items():
            points, spent = [], 0.0
            for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
                runs = [timed(lambda make=make, tol=tol, data=data: make(tol).fit(data.X, data.y), 1) for _ in range(3)]
                seconds = statistics.median(run[1] for run in runs)
                points.append([tol, seconds, max(value(runs[0][0]) / best - 1, 0.0)])
                spent += seconds
                if points[-1][2] <= TIGHT or spent > BUDGET / 3:
                    break
            yield {"set": name, "solver": solver, "points": points}


def kernels(sets: list[str], directory: Path | None) -> Iterator[dict[str, Any]]:
    """The kernel RBF on at most 2000 rows; SVC solves another problem, so that accuracies stand beside times."""
    for name in sets:
        data = load(name, directory)
        pick = np.random.default_rng(0).permutation(len(data.y))
        train, test = pick[:2000], pick[2000:4000] if len(pick) >= 4000 else pick[len(pick) // 2 :]
        train = train if len(pick) >= 4000 else pick[: len(pick) // 2]
        X, y, X_test, y_test = data.X[train], data.y[train], data.X[test], data.y[test]
        for solver, make in {
            "CrammerSingerSVC": lambda: CrammerSingerSVC(C=10, kernel="rbf"),
            "SVC": lambda: SVC(C=10),
        }.items():
            runs = [timed(lambda make=make, X=X, y=y: make().fit(X, y), 1) for _ in range(3)]
            model = runs[-1][0]
            _, predict = timed(lambda model=model, X=X_test: model.predict(X), 1)
            yield {
                "set": name, "n": len(y), "solver": solver, "fit": statistics.median(run[1] for run in runs),
                "predict": predict, "accuracy": float(np.mean(model.predict(X_test) == y_test)),
                "support": len(model.support_),
            }  # fmt: skip


if __name__ == "__main__":
    main()
