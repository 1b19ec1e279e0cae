"""Tables that show something else than accuracy on test rows: seconds, chosen parameters, accuracy on training rows."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ._scores import Scores
from ._statistics import mean
from ._tables import markdown


def seconds(scores: Scores) -> np.ndarray:
    """Mean seconds of selection, training and classification, ``(data sets, methods)``."""
    names = ("search_seconds", "fit_seconds", "predict_seconds")
    return np.array(
        [[sum(scores.seconds(data, method, name) for name in names) for method in scores.methods]
         for data in scores.names]
    )  # fmt: skip


def seconds_table(scores: Scores) -> str:
    """Our seconds with those of the paper below."""
    table, paper, rows = seconds(scores), scores.paper, []
    for data, line in zip(scores.names, table, strict=True):
        best = np.fmin.reduce(line)
        cells = [data]
        for method, value in zip(scores.methods, line, strict=True):
            text = f"{value:.2f}" if np.isfinite(value) else "-"
            there = paper.get((data, method))
            cells.append((f"**{text}**" if value == best else text) + (f"<br>{there[0]:.2f}" if there else ""))
        rows.append(cells)
    return markdown(["data", *scores.methods], rows)


def parameters_table(scores: Scores) -> str:
    """The parameters that were chosen most often, with those of the paper below."""
    rows = []
    for data in scores.names:
        cells = [data]
        for method in scores.methods:
            told = Counter(line["params"] for line in scores.lines.get((data, method), []) if line["params"])
            text = ", ".join(told.most_common(1)[0][0].replace("estimator__", "").split()) if told else "-"
            there = [scores.published_as(data, f"{method}, {name}") for name in ("C", "gamma")]
            beside = ", ".join(f"{value:g}" for value in there if value is not None)
            cells.append(f"{text}<br>{beside}" if beside else text)
        rows.append(cells)
    return markdown(["data", *scores.methods], rows)


def ceilings(scores: Scores) -> np.ndarray:
    """Best accuracy on the training rows of any point of the grid, ``(data sets, methods)``."""
    table = np.full((len(scores.names), len(scores.methods)), np.nan)
    for i, data in enumerate(scores.names):
        for j, method in enumerate(scores.methods):
            values = scores.curve(data, method, "training accuracy")[1]
            if len(values):
                table[i, j] = values.max()
    return table


def above_ceiling(scores: Scores) -> list[tuple[str, float, float]]:
    """Sets on which the published test accuracy of the reference is above that of every machine on training rows."""
    best, found = np.fmax.reduce(ceilings(scores), axis=1), []
    for data, value in zip(scores.names, best, strict=True):
        there = scores.published_as(data, scores.experiment.reference)
        if there is not None and np.isfinite(value) and there > 100 * value:
            found.append((data, there, 100 * float(value)))
    return found


def ceiling_table(scores: Scores) -> str:
    """Accuracy on training rows beside the published test accuracy of the reference; that which is above all bold."""
    table, reference, rows = ceilings(scores), scores.experiment.reference, []
    above = {data for data, *_ in above_ceiling(scores)}
    for data, line in zip(scores.names, table, strict=True):
        there = scores.published_as(data, reference)
        text = "-" if there is None else f"{there:.1f}"
        cells = [f"{100 * value:.1f}" if np.isfinite(value) else "-" for value in line]
        rows.append([data, f"**{text}**" if data in above else text, *cells])
    return markdown(["data", f"{reference}, test, paper", *(f"{m}, training" for m in scores.methods)], rows)


def curve_table(scores: Scores, quantity: str = "above optimum") -> str:
    """One column for each value of the parameter, in per cent."""
    (method,) = scores.experiment.methods
    ((name, values),) = method.grid.items()
    rows = []
    for data in scores.names:
        found = dict(zip(*scores.curve(data, method.name, quantity), strict=True))
        rows.append([data, *(_per_cent(found[x]) if x in found else "-" for x in values)])
    return markdown(["data", *(f"{name} = {x:g}" for x in values)], rows)


def speed_reading(scores: Scores) -> list[str]:
    """Which method is the fastest on how many sets, here and in the paper."""
    ours = seconds(scores)
    theirs = np.array([[scores.paper.get((d, m), (np.nan, None))[0] for m in scores.methods] for d in scores.names])
    words = []
    for title, table in (("here", ours), ("in the paper", theirs)):
        there = np.isfinite(table).all(axis=1)
        if not there.any():
            continue
        firsts = Counter(scores.methods[j] for j in table[there].argmin(axis=1))
        words.append(f"{title} " + ", ".join(f"{m} {firsts.get(m, 0)}" for m in scores.methods))
    out = [f"**Fastest on how many of {len(ours)} sets:** {'; '.join(words)}."]
    if np.isfinite(theirs).any():
        ratio = np.exp(mean(np.log(theirs / ours).ravel()))
        out.append(
            f"Geometric mean of the paper's seconds over ours: {ratio:.0f}; neither the computers nor the grids are "
            "the same."
        )
    return out


def _per_cent(share: float) -> str:
    return f"{100 * share:.2f}" if abs(share) < 1 else f"{100 * share:.0f}"
