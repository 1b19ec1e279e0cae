"""What two things cost: the free intercept (against a fit without), and predicting (against the bare product)."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.data import Data
from benchmarks.measure import pinned, timed
from benchmarks.solvers import Ours


@pinned(1)
def intercept(data: Data, ours: Ours, C: float, tol: float, repeat: int) -> dict[str, Any]:
    """Seconds of a certified fit without and with the un-penalised intercept."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repeat):
        for fit_intercept, times in seconds.items():
            times.append(ours.solve(C, tol, 1, fit_intercept)[1])
    return _row(data, C, tol, "without", statistics.median(seconds[False]), "with", statistics.median(seconds[True]))


@pinned(1)
def predict(data: Data, ours: Ours, C: float, tol: float, repeat: int) -> dict[str, Any]:
    """Seconds of ``predict`` and of the matrix product in it."""
    model = ours.make(C, tol, 1).fit(data.X, data.y)
    coef = model.coef_.T.copy()
    calls = {"product": lambda: data.X_test @ coef, "predict": lambda: model.predict(data.X_test)}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    once = timed(calls["product"], 1)[1]
    loops = max(1, min(1000, round(0.05 / max(once, 1e-6))))  # the clock is coarse, small sets take microseconds
    for _ in range(max(repeat, 5)):
        for name, call in calls.items():
            seconds[name].append(timed(partial(_often, call, loops), 1)[1] / loops)
    median = {name: statistics.median(times) for name, times in seconds.items()}
    return _row(data, C, tol, "product", median["product"], "predict", median["predict"])


def _often(call: Callable[[], Any], loops: int) -> None:
    for _ in range(loops):
        call()


def _row(data: Data, C: float, tol: float, base: str, a: float, other: str, b: float) -> dict[str, Any]:
    row = {"set": data.name, "group": data.group, "C": C, "target": tol, base: a, other: b, "ratio": b / a}
    print(
        f"{data.name:>12} C={C:<6g} tol={tol:.0e}  {base} {a:.5f} s  {other} {b:.5f} s  ratio {b / a:.2f}", flush=True
    )
    return row
