"""Kernel machines against scikit-learn's ``SVC``: time to fit and to predict, memory, accuracy; same kernel and C."""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.svm import SVC

from benchmarks.data import Data, load
from benchmarks.measure import memory, pinned, reset_peak_memory, timed


def make(solver: str, loss: str, kernel: str, C: float, tol: float) -> Any:
    """Estimator of this name: scikit-learn's at its defaults, or ours without and with the free intercept."""
    if solver == "SVC":
        return SVC(C=C, kernel=kernel)
    from skmargin import CrammerSingerSVC, WestonWatkinsSVC

    estimator = {"cs": CrammerSingerSVC, "ww": WestonWatkinsSVC}[loss]
    return estimator(C=C, kernel=kernel, tol=tol, fit_intercept=solver == "skmargin+b", random_state=0)


def peak(name: str, directory: Path | None, arguments: tuple[Any, ...]) -> float:
    """Memory in MiB that a fit adds; call it in a fresh process.

    Another fit on a third of the rows goes before: modules that it loads and the buffers of BLAS stay with the process
    and are not counted.  What it and the reading of the data leave free goes back to the system, so that no fit gets
    memory that was counted already.
    """
    data = load(name, directory)
    model = make(*arguments)
    make(*arguments).fit(data.X[::3], data.y[::3])
    reset_peak_memory()
    before = memory("VmRSS")
    model.fit(data.X, data.y)
    return memory("VmHWM") - before


def compare(
    data: Data, directory: Path | None, loss: str, kernel: str, C: float, tol: float, repeat: int
) -> Iterator[dict[str, Any]]:
    """One row for each machine; the ratios are to the first one."""
    names = ["skmargin", "skmargin+b", "SVC"]
    fits: dict[str, list[float]] = {name: [] for name in names}
    predictions: dict[str, list[float]] = {name: [] for name in names}
    accuracy = {}
    with pinned(1):
        for name in repeat * names:
            model = make(name, loss, kernel, C, tol)
            fits[name].append(timed(partial(model.fit, data.X, data.y), 1)[1])
            predicted, seconds = timed(partial(model.predict, data.X_test), 1)
            predictions[name].append(seconds)
            accuracy[name] = float((predicted == data.y_test).mean())
    for name in names:
        with multiprocessing.get_context("spawn").Pool(1) as child:
            megabytes = child.apply(peak, (data.name, directory, (name, loss, kernel, C, tol)))
        yield {
            "set": data.name,
            "n": data.X.shape[0],
            "C": C,
            "solver": name,
            "fit": statistics.median(fits[name]),
            "predict": statistics.median(predictions[name]),
            "fit_ratio": statistics.median(fits[name]) / statistics.median(fits[names[0]]),
            "predict_ratio": statistics.median(predictions[name]) / statistics.median(predictions[names[0]]),
            "memory_mib": megabytes,
            "gram_mib": data.X.shape[0] ** 2 * 4 / 2**20,
            "accuracy": accuracy[name],
        }


def print_rows(rows: list[dict[str, Any]]) -> None:
    """One line a machine."""
    for row in rows:
        print(
            f"{row['set']:>12} C={row['C']:<6g} {row['solver']:>11}: fit {row['fit']:.3f} s ({row['fit_ratio']:.2f}x)  "
            f"predict {row['predict']:.3f} s ({row['predict_ratio']:.1f}x)  accuracy {row['accuracy']:.4f}  "
            f"memory {row['memory_mib']:.1f} MiB (Gram matrix in float32: {row['gram_mib']:.1f})",
            flush=True,
        )
