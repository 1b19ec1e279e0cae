"""Pictures of results, as SVG that is the same byte for byte for the same numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._scores import Scores
from ._statistics import Friedman, cliques

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
MARKS = "osD^vPX*"


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write an SVG without date and with names that do not change from run to run."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    with mpl.rc_context({"svg.hashsalt": Path(path).stem, "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    plt.close(figure)


def _panels(n: int, columns: int, width: float = 3.4, height: float = 2.6) -> tuple[Any, Sequence[Any]]:
    from matplotlib import pyplot as plt

    columns = min(n, columns)
    lines = -(-n // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(width * columns, height * lines), squeeze=False, layout="constrained"
    )
    flat = list(axes.flat)
    for unused in flat[n:]:
        unused.set_axis_off()
    return figure, flat[:n]


def _tidy(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25, linewidth=0.5)


def by_classes(scores: Scores) -> Any:
    """Accuracy against the number of classes, one panel for each data set that was cut down."""
    groups: dict[str, list[str]] = {}
    for name in scores.names:
        groups.setdefault(name.partition(",")[0], []).append(name)
    figure, axes = _panels(len(groups), 2, 4.2, 3.2)
    for axis, (title, names) in zip(axes, groups.items(), strict=True):
        k = [int(name.split()[-2]) for name in names]
        for j, method in enumerate(scores.methods):
            means = [100 * np.mean(list(scores.values(name, method).values()) or [np.nan]) for name in names]
            axis.plot(k, means, color=COLOURS[j], marker=MARKS[j], markersize=4, linewidth=1.2, label=method)
        axis.set(title=title, xlabel="number of classes", ylabel="test accuracy, %", xticks=k)
        _tidy(axis)
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def histograms(scores: Scores) -> Any:
    """Distribution of the margin, one panel for each number of classes."""
    figure, axes = _panels(len(scores.names), 3)
    for axis, name in zip(axes, scores.names, strict=True):
        for j, method in enumerate(scores.methods):
            x, share = scores.curve(name, method, "margin")
            if len(x):
                axis.stairs(share, np.append(x, 2 * x[-1] - x[-2]), color=COLOURS[j], label=method, linewidth=1.2)
        axis.axvline(0, color="black", linewidth=0.6)
        axis.set(title=name, xlabel="margin / mean absolute margin", ylabel="share of test rows")
        _tidy(axis)
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def times(scores: Scores) -> Any:
    """Processor time of a fit and of one iteration for each data set."""
    figure, axes = _panels(2, 2, 5.2, 3.4)
    for axis, quantity in zip(axes, ("fit", "iteration"), strict=True):
        table = scores.means(quantity)
        for j, method in enumerate(scores.methods):
            axis.plot(range(len(table)), table[:, j], MARKS[j], color=COLOURS[j], markersize=4, label=method)
        axis.set(yscale="log", ylabel=f"seconds of one {quantity}")
        axis.set_xticks(range(len(table)), scores.names, rotation=60, ha="right", fontsize="small")
        _tidy(axis)
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def convergence(scores: Scores) -> Any:
    """Objective over its smallest value, and test accuracy, against iterations."""
    figure, axes = _panels(len(scores.names), 3)
    for axis, name in zip(axes, scores.names, strict=True):
        best = min(np.min(scores.curve(name, m, "objective")[1], initial=np.inf) for m in scores.methods)
        twin = axis.twinx()
        for j, method in enumerate(scores.methods):
            x, objective = scores.curve(name, method, "objective")
            axis.plot(x, objective / best, color=COLOURS[j], linewidth=1.2, label=method)
            x, accuracy = scores.curve(name, method)
            twin.plot(x, 100 * accuracy, color=COLOURS[j], linewidth=1, linestyle=":")
        axis.set(title=name, xscale="log", yscale="log", xlabel="iterations", ylabel="objective / best")
        twin.set_ylabel("test accuracy, % (dotted)", fontsize="small")
        axis.minorticks_off()
        axis.spines["top"].set_visible(False)
        twin.spines["top"].set_visible(False)
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def sweeps(scores: Scores) -> Any:
    """Test accuracy against a parameter, one line for each data set."""
    figure, (axis,) = _panels(1, 1, 5.6, 3.6)
    (method,) = scores.experiment.methods
    (parameter,) = method.grid
    for j, name in enumerate(scores.names):
        x, accuracy = scores.curve(name, method.name)
        axis.plot(x, 100 * accuracy, color=COLOURS[j], marker=MARKS[j], markersize=4, linewidth=1.2, label=name)
    axis.set(xlabel=parameter, ylabel="test accuracy, %", xscale="log" if parameter == "alpha" else "linear")
    axis.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    _tidy(axis)
    return figure


def epochs(scores: Scores) -> Any:
    """Suboptimality against epochs, one panel for each data set."""
    figure, axes = _panels(len(scores.names), 3)
    for axis, name in zip(axes, scores.names, strict=True):
        for j, method in enumerate(scores.methods):
            x, value = scores.curve(name, method, "suboptimality")
            axis.plot(x, np.maximum(value, 1e-8), color=COLOURS[j], linewidth=1.2, label=method)
        axis.set(title=name, yscale="log", xlabel="epoch", ylabel="relative suboptimality")
        axis.minorticks_off()
        _tidy(axis)
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def rounds(scores: Scores) -> Any:
    """Objective above its end against rounds, one panel for each data set."""
    figure, axes = _panels(len(scores.names), 3)
    for axis, name in zip(axes, scores.names, strict=True):
        for j, method in enumerate(scores.methods):
            x, value = scores.curve(name, method, "above the end")
            axis.plot(x, value, color=COLOURS[j], marker=MARKS[j], markersize=3, linewidth=1.2, label=method)
        axis.set(title=name, xlabel="round", ylabel="objective / its end - 1")
        _tidy(axis)
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def lines(scores: Scores) -> Any:
    """The separating lines of iris for each value of the parameter."""
    from ._data import load
    from ._measures import scaler

    X, y, _ = load(scores.rows[0].data, None)
    X = scaler(X, scores.rows[0].data.scale).fit_transform(X[:, 2:4])
    figure, axes = _panels(len(scores.methods), 2, 4.2, 3.4)
    for axis, method in zip(axes, scores.methods, strict=True):
        first, second = np.flatnonzero(y == 1)[:25], np.flatnonzero(y == 2)[: 10 if "10" in method else 25]
        axis.plot(*X[first].T, "o", color=COLOURS[0], markersize=4, label="class 2")
        axis.plot(*X[second].T, "s", color=COLOURS[1], markersize=4, label="class 3")
        axis.plot(*np.stack([X[first].mean(0), X[second].mean(0)]).T, color="grey", linewidth=0.8, label="means")
        ends = np.array([0.3, 1.0])
        name = scores.names[0]
        weights = [scores.curve(name, method, quantity)[1] for quantity in ("w1", "w2", "b")]
        for i, (C, w1, w2, b) in enumerate(zip(scores.curve(name, method)[0], *weights, strict=True)):
            axis.plot(ends, -(w1 * ends + b) / w2, color=COLOURS[2 + i], linewidth=1.2, label=f"C = {C:g}")
        axis.set(title=method, xlabel="petal length, scaled", ylabel="petal width, scaled", ylim=(0.2, 1.3))
        _tidy(axis)
    axes[0].legend(frameon=False, fontsize="x-small", ncols=2)
    return figure


def critical_differences(names: Sequence[str], test: Friedman) -> Any:
    """Methods on the axis of mean ranks; a bar joins those that cannot be told apart (Demšar 2006)."""
    from matplotlib import pyplot as plt

    order = np.argsort(test.mean_ranks)
    k = len(order)
    left = -(-k // 2)
    groups = cliques(test.mean_ranks, test.critical_difference)
    figure, axis = plt.subplots(figsize=(8.5, 1.3 + 0.24 * left + 0.12 * len(groups)), layout="constrained")
    top = 0.14 * (len(groups) + 1)
    depth = top + 0.25 * (left + 1)
    low, high = np.floor(test.mean_ranks.min()), np.ceil(test.mean_ranks.max())
    axis.plot([low, high], [0, 0], color="black", linewidth=1)
    for tick in np.arange(low, high + 1):
        axis.plot([tick, tick], [0, -0.08], color="black", linewidth=1)
        axis.text(tick, -0.12, f"{tick:g}", ha="center", va="bottom", fontsize=8)
    room = 0.32 * (high - low)
    for place, j in enumerate(order):
        first = place < left
        y = top + 0.25 * (place + 1 if first else k - place)
        edge = low - 0.02 * (high - low) if first else high + 0.02 * (high - low)
        rank = test.mean_ranks[j]
        axis.plot([rank, rank, edge], [0, y, y], color="grey", linewidth=0.7)
        text = f"{names[j]}  {rank:.2f}" if first else f"{rank:.2f}  {names[j]}"
        axis.text(edge, y, f" {text} ", ha="right" if first else "left", va="center", fontsize=8)
    for i, (start, end) in enumerate(groups):
        axis.plot([start - 0.05, end + 0.05], [0.14 * (i + 1)] * 2, color="black", linewidth=2.5, solid_capstyle="butt")
    axis.plot([low, low + test.critical_difference], [-0.5, -0.5], color="black", linewidth=1.5, marker="|")
    label = f"critical difference {test.critical_difference:.2f}"
    axis.text(low + test.critical_difference / 2, -0.55, label, ha="center", va="bottom", fontsize=8)
    axis.set(xlim=(low - room, high + room), ylim=(depth, -0.85))
    axis.set_axis_off()
    return figure


# Which picture an experiment has; the tables have none.
PICTURES: dict[str, Callable[[Scores], Any]] = {
    "mcodm-figure1": by_classes,
    "mcodm-figure2": histograms,
    "mcodm-figure3": times,
    "m3svm-figure3": convergence,
    "m3svm-figure4": sweeps,
    "m3svm-figure5": sweeps,
    "xu-figure2": epochs,
    "xu-rounds": rounds,
    "abe-figures": lines,
}
