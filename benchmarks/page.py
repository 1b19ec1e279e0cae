"""Write the page of benchmarks from the results file: ``python -m benchmarks.page``.  No number is typed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "page.json"
PAGE = ROOT / "docs" / "benchmarks.md"
FIGURES = ROOT / "docs" / "figures"
TARGETS = (1e-2, 1e-3, 1e-5)
SOLVERS = ("skmargin", "liblinear", "LinearSVC")
COLOURS = {"skmargin": "#c2551c", "liblinear": "#2b5f9e", "LinearSVC": "#4aa564"}
COLOURS |= {"LogisticRegression, lbfgs": "#2b5f9e", "LogisticRegression, newton-cg": "#4aa564"}
NAMES = {"liblinear": "LIBLINEAR -s 4", "skmargin": "skmargin", "LinearSVC": "LinearSVC"}

HEAD = """# Benchmarks

<!-- Written by `python -m benchmarks.page` from benchmarks/results/page.json.  Do not edit: run the commands again. -->

How long until a fit is proved to be good? All solvers took turns on one core of one machine, in processor seconds:

    python -m benchmarks.record --data DIR     # measures, and writes benchmarks/results/page.json
    python -m benchmarks.page                  # writes this page and its pictures

{machine}

Only the ratios of one run mean something, and only above about 1.5. Objectives are computed from the class vectors, not
taken from a solver; the optimum is a fit with a certified gap of 1e-7. Features are in [0, 1], there is no intercept,
and both sides have the same `C`. `make bench` runs more sets and settings, [by these rules](#rules).
"""

TAIL = """## Rules

- **Ours**: the whole `fit` with `tol` = target, with input checks, conversion and certificate.
- **LIBLINEAR, LinearSVC, LogisticRegression**: they have no certificate, so they get a perfect stopping rule: the time
  of the loosest threshold of a ladder that reaches the target. Of LIBLINEAR only `train` counts; its data structure is
  built before.
- Each time is the median of three fits, of fewer where these take more than two seconds in all.
- Not the same problem, and so not in the first table: `SVC` (votes of all pairs) and `LogisticRegression`.

## Walrus

Walrus (Wang and Scott, ICML 2021) solves the problem of Weston and Watkins exactly, in a fork of LIBLINEAR: it is the
rival of `WestonWatkinsSVC`. It is published as C++ sources. There is no package of it that `pip` can install (the
package called `walrus` is something else, a tool for Redis), so no figure of it is on this page. The times of
`WestonWatkinsSVC` stand alone above.

## Your own solver

`benchmarks/benchopt` is the same race for [benchopt](https://benchopt.github.io): objective, data sets and solvers are
one small file each.

    pip install benchopt
    benchopt run benchmarks/benchopt -d digits -s skmargin -s liblinear

A new solver is one file in `benchmarks/benchopt/solvers`.
"""


def main() -> None:
    """Write the page and its pictures."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page(results), encoding="utf-8")
    draw(results)
    print(f"written: {PAGE.relative_to(ROOT)}")


def page(results: dict[str, Any]) -> str:
    """The text."""
    machine, versions = results["machine"], results["versions"]
    what = f"Measured on {results['day']}: {machine['processor']}, {machine['cores']} cores, {machine['system']}; "
    parts = [HEAD.format(machine=what + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".")]
    parts.append(_accuracy(results["curves"]))
    parts.append(_growth(results["growth"]))
    parts.append(_logistic(results["logistic"]))
    parts.append(_kernels(results["kernels"]))
    return "\n".join([*parts, TAIL])


def reached(row: dict[str, Any], target: float) -> float:
    """Seconds to the target: of ours the fit that was asked for it, of others the first that is there."""
    ours = row["solver"].startswith("skmargin")
    there = (seconds for stop, seconds, far in row["points"] if (stop == target if ours else far <= target))
    return next(there, math.inf)


def _accuracy(rows: list[dict[str, Any]]) -> str:
    text = (
        "## Time to accuracy\n\nCrammer and Singer's machine, `C = 1`: seconds to a relative distance from the optimum."
    )
    text += "\n\n"
    text += "![Distance from the optimum against time](figures/benchmarks-curves.svg)\n\n"
    text += _table(
        ["set", "rows x features, classes", "to", "skmargin", "LIBLINEAR", "LinearSVC", "LIBLINEAR / skmargin"]
    )
    for name in dict.fromkeys(row["set"] for row in rows):
        here = {row["solver"]: row for row in rows if row["set"] == name and row["loss"] == "cs"}
        size = "{n} x {d}, {k}".format(**here["skmargin"])
        for target in TARGETS:
            times = [reached(here[solver], target) for solver in SOLVERS]
            ratio = f"{times[1] / times[0]:.1f}" if math.isfinite(times[1]) else "-"
            text += _line([name, size, _share(target), *map(_seconds, times), ratio])
    text += "\nThe same for the machine of Weston and Watkins, which has no rival here (see [Walrus](#walrus)):\n\n"
    text += _table(["set", *(f"to {_share(target)}" for target in TARGETS)])
    for row in rows:
        if row["loss"] == "ww":
            text += _line([row["set"], *(_seconds(reached(row, target)) for target in TARGETS)])
    return text


def _growth(rows: list[dict[str, Any]]) -> str:
    text = "## Growth\n\nSeconds to 0.1 % on Gaussian classes as one number grows; the others stay at 4000 rows, 60 "
    text += "features, 10 classes, `C = 1`.\n\n![Seconds as n, d, k and C grow](figures/benchmarks-growth.svg)\n\n"
    text += _table(["axis", "value", "skmargin", "LIBLINEAR", "LinearSVC", "LIBLINEAR / skmargin"])
    found: dict[tuple[str, float], dict[str, list[float]]] = {}
    for row in rows:
        found.setdefault((row["axis"], row[row["axis"]]), {})[row["solver"]] = row["point"]
    for (axis, value), points in found.items():
        cells = []
        for solver in SOLVERS:
            _, seconds, distance = points[solver]
            cells.append(("> " if distance > 1e-3 else "") + _seconds(seconds))
        ratio = points["liblinear"][1] / points["skmargin"][1]
        late = "> " if points["liblinear"][2] > 1e-3 else ""
        text += _line([axis, f"{value:g}", *cells, late + f"{ratio:.1f}"])
    return text


def _logistic(rows: list[dict[str, Any]]) -> str:
    text = '## Logistic regression\n\n`M3SVC(loss="log_loss", p=2)` and `LogisticRegression` are the same problem; '
    text += "seconds to a relative distance from its optimum, with intercept.\n\n"
    text += "![Distance from the optimum against time](figures/benchmarks-logistic.svg)\n\n"
    text += _table(["set", "solver", "to 0.1 %", "to 0.001 %"])
    for row in rows:
        text += _line([row["set"], row["solver"], *(_seconds(reached(row, target)) for target in (1e-3, 1e-5))])
    return text


def _kernels(rows: list[dict[str, Any]]) -> str:
    text = (
        "## Kernels\n\nRBF, `C = 10`, default tolerances. `SVC` solves another problem (one machine for each pair of "
    )
    text += "classes), so its accuracy stands beside its time.\n\n"
    text += _table(["set", "rows", "machine", "fit", "predict", "accuracy", "support vectors"])
    for row in rows:
        times = [_seconds(row["fit"]), _seconds(row["predict"])]
        text += _line([row["set"], row["n"], row["solver"], *times, f"{row['accuracy']:.3f}", row["support"]])
    return text


def _table(heads: list[str]) -> str:
    return f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"


def _line(cells: list[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def _share(value: float) -> str:
    return f"{100 * value:g} %"


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s" if math.isfinite(value) else "not reached"


def draw(results: dict[str, Any]) -> None:
    """The three pictures."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "skmargin", "font.size": 9})

    def save(figure: Any, name: str) -> None:
        figure.savefig(FIGURES / f"benchmarks-{name}.svg", metadata={"Date": None})
        plt.close(figure)

    rows = [row for row in results["curves"] if row["loss"] == "cs"]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure, panels = plt.subplots(1, len(sets), figsize=(3 * len(sets), 3), sharey=True, layout="constrained")
    for panel, name in zip(panels, sets, strict=True):
        _curves(panel, [row for row in rows if row["set"] == name], name)
    panels[0].set_ylabel("relative distance from the optimum")
    panels[0].legend(fontsize="small")
    save(figure, "curves")

    figure, panels = plt.subplots(1, 4, figsize=(12, 3), sharey=True, layout="constrained")
    words = {"n": "rows", "d": "features", "k": "classes", "C": "C"}
    for panel, (axis, word) in zip(panels, words.items(), strict=True):
        for solver in SOLVERS:
            here = [row for row in results["growth"] if row["axis"] == axis and row["solver"] == solver]
            seconds = [row["point"][1] for row in here]
            panel.loglog([row[axis] for row in here], seconds, "o-", color=COLOURS[solver], label=NAMES[solver])
        panel.set_xlabel(word)
        panel.xaxis.set_minor_formatter("")
    panels[0].set_ylabel("seconds to 1e-3")
    panels[0].legend(fontsize="small")
    save(figure, "growth")

    sets = list(dict.fromkeys(row["set"] for row in results["logistic"]))
    figure, panels = plt.subplots(1, len(sets), figsize=(3.4 * len(sets), 3), sharey=True, layout="constrained")
    for panel, name in zip(panels, sets, strict=True):
        _curves(panel, [row for row in results["logistic"] if row["set"] == name], name)
    panels[0].set_ylabel("relative distance from the optimum")
    panels[0].legend(fontsize="small")
    save(figure, "logistic")


def _curves(panel: Any, rows: list[dict[str, Any]], name: str) -> None:
    for row in rows:
        points = [(seconds, max(distance, 1e-9)) for _, seconds, distance in row["points"] if distance < 2]
        label = NAMES.get(row["solver"], row["solver"])
        panel.loglog(*zip(*points, strict=True), "o-", markersize=3, color=COLOURS[row["solver"]], label=label)
    panel.set(title=name, xlabel="processor seconds")
    panel.xaxis.set_minor_formatter("")


if __name__ == "__main__":
    main()
