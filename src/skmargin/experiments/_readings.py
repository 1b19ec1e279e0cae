"""What the numbers say, in sentences that the numbers fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._types import Estimator
from ..comparison import Model
from ._published import published
from ._scores import Scores, finished
from ._spec import Protocol, Row, in_units, thin
from ._statistics import mean
from ._tables import repeated, win_tie_loss

NEAR = 2.0  # points
WIDE = 1.5  # times
FEW = 1000  # rows, up to which a row is many times the last digit of a figure
RISE = 1e-3  # of an objective, above the tolerance of the solvers
ROUNDED = 1e-4  # parameters are written with six digits


def table_reading(scores: Scores) -> list[str]:
    """How near the table is to the paper's, whether its claim holds, and which of its figures nothing here reaches.

    Data sets on which some method was not tried yet are left out.
    """
    waiting = len(scores.rows)
    scores = finished(scores)
    waiting -= len(scores.rows)
    if not scores.rows:
        return ["No data set has been tried with every method yet."]
    out = _agreement(scores) + _claim(scores) + _out_of_reach(scores) + _wide(scores) + _edges(scores)
    out += _whole_counts(scores) + _folds(scores)
    if waiting:
        out.append(f"{waiting} sets on which a method was not tried yet do not count in these sentences.")
    short = [
        f"{method} on {data} ({scores.status(data, method).partition(':')[0]})"
        for data in scores.names
        for method in scores.methods
        if scores.status(data, method) not in ("ok", "not converged")
    ]
    if short:
        out.append(f"Without a figure: {', '.join(short)}.")
    counts = {method: scores.stopped(method) for method in scores.methods}
    stopped = [f"{method} {n} of {total}" for method, (n, total) in counts.items() if n]
    if stopped:
        out.append(f"**Final fits that stopped before their tolerance:** {', '.join(stopped)}.")
    return out


def figure_reading(scores: Scores) -> list[str]:
    """The same for a figure."""
    readers = {
        "mcodm-figure1": _classes, "mcodm-figure2": _margins, "mcodm-figure3": _times, "m3svm-figure3": _iterations,
        "m3svm-figure4": _sweep, "m3svm-figure5": _sweep, "xu-figure2": _epochs, "abe-figures": _lines,
        "xu-rounds": _rounds,
    }  # fmt: skip
    return readers[scores.experiment.name](scores)


def differences(scores: Scores) -> dict[tuple[str, str], float]:
    """Our figure minus the paper's, in points, wherever both are there."""
    paper, means = scores.paper, scores.means()
    return {
        (data, method): 100 * means[i, j] - paper[data, method][0]
        for i, data in enumerate(scores.names)
        for j, method in enumerate(scores.methods)
        if (data, method) in paper and np.isfinite(means[i, j])
    }


def firsts(scores: Scores) -> tuple[list[str], list[str]]:
    """The data sets on which the reference has the best mean: here, and in the paper among those that are here."""
    means, paper = scores.means(common=True), scores.paper
    reference = scores.experiment.reference
    at = scores.methods.index(reference)
    ours = [data for data, line in zip(scores.names, means, strict=True) if line[at] >= np.fmax.reduce(line) - 1e-12]
    theirs = [
        data
        for data in scores.names
        if (data, reference) in paper
        and all(paper[data, reference][0] >= paper[data, m][0] for m in scores.methods if (data, m) in paper)
    ]
    return ours, theirs


def summary(scores: Scores) -> list[str]:
    """One line of the index: data sets, nearness to the paper, and where the reference is first."""
    scores = finished(scores)
    found = differences(scores)
    ours, theirs = firsts(scores)
    here, total = len(scores.rows), len(scores.rows) + len(scores.missing)
    near = f"{sum(abs(d) <= NEAR for d in found.values())} of {len(found)}" if found else "-"
    best = f"{len(ours)} of {here}"
    return [f"{here} of {total}", near, scores.experiment.reference, best, f"{len(theirs)} of {here}" if found else "-"]


def _agreement(scores: Scores) -> list[str]:
    found = differences(scores)
    if not found:
        return []
    near = sum(abs(d) <= NEAR for d in found.values())
    (data, method), largest = max(found.items(), key=lambda item: abs(item[1]))
    text = (
        f"**Distance from the paper.** {near} of {len(found)} figures lie within two points of the paper's; the "
        f"largest difference is {largest:+.1f} ({method} on {data})."
    )
    reference = scores.experiment.reference
    own = [d for (_, method), d in found.items() if method == reference]
    others = [d for (_, method), d in found.items() if method != reference]
    if own and others:
        text += (
            f" On average {reference} is {np.mean(own):+.1f} points from its published figure, the others "
            f"{np.mean(others):+.1f}."
        )
    return [text]


def _claim(scores: Scores) -> list[str]:
    reference = scores.experiment.reference
    ours, theirs = firsts(scores)
    text = f"**Who is first.** {reference} has the best mean on {len(ours)} of {len(scores.rows)} data sets here"
    if scores.paper:
        text += f", on {len(theirs)} of the same sets in the paper"
    if repeated(scores):
        counts = {method: win_tie_loss(scores, method) for method in scores.methods if method != reference}
        text += "; win/tie/loss against " + ", ".join(f"{m} {w}/{t}/{l}" for m, (w, t, l) in counts.items())
    text += "."
    gaps = {m: mean(scores.gaps(reference, m)) for m in scores.methods if m != reference}
    words = [f"{m} {gap:+.1f}" for m, gap in gaps.items() if np.isfinite(gap)]
    return [f"{text} Mean difference in points: {', '.join(words)}." if words else text]


def _out_of_reach(scores: Scores) -> list[str]:
    """Published figures of the reference above everything measured here, by two points and two deviations."""
    paper, means, found = scores.paper, scores.means(), []
    for i, data in enumerate(scores.names):
        value = paper.get((data, scores.experiment.reference))
        if value is None or not np.isfinite(means[i]).any():
            continue
        j = int(np.nanargmax(means[i]))
        spread = 100 * np.std(list(scores.values(data, scores.methods[j]).values()))
        if value[0] - 100 * means[i, j] > max(2.0, 2 * spread):
            found.append(
                f"{data} ({value[0]:.1f} there; the best here is {scores.methods[j]} with {100 * means[i, j]:.1f})"
            )
    if not found:
        return []
    return [f"**Not reached by any method here:** {'; '.join(found)}."]


def _wide(scores: Scores) -> list[str]:
    """Published deviations of the reference that are far larger than those of its rivals on the same divisions."""
    paper, reference, found = scores.paper, scores.experiment.reference, []
    for data in scores.names:
        own = paper.get((data, reference), (0.0, None))[1]
        others = [paper[data, m][1] for m in scores.methods if m != reference and (data, m) in paper]
        largest = max((deviation for deviation in others if deviation is not None), default=None)
        if own is not None and largest and own > WIDE * largest:
            found.append(f"{data} ({own:.1f}, rivals at most {largest:.1f})")
    if not found:
        return []
    return [
        f"**Published deviations of {reference} more than {WIDE:g} times those of its rivals:** {', '.join(found)}. "
        "Such a mean rests on a few divisions with a much better model (inference)."
    ]


def _whole_counts(scores: Scores) -> list[str]:
    """Whether published figures of small sets are whole numbers of rows, as one round of folds gives them."""
    single, found, examples = [row for row in scores.rows if _one_round(row.protocol)], [], []
    for row in single:
        (line, *_) = scores.lines[row.data.name, scores.methods[0]]
        n = int(line["n_train"] or 0) + int(line["n_test"] or 0)
        n -= n % 5  # five folds of the same size
        figures = [value for (data, _), (value, _) in scores.paper.items() if data == row.data.name]
        if 0 < n < FEW:
            found += [abs(100 * round(value * n / 100) / n - value) < 0.00501 for value in figures]
            examples.append(f"{row.data.name} {n}")
    if not found:
        return []
    return [
        f"**One run or five?** {sum(found)} of {len(found)} published figures of the small sets are a whole number of "
        f"rows out of five equal folds ({', '.join(examples)} rows), to the two digits that are printed. Means of five "
        "runs would be so one time in five; that there was one run is inference."
    ]


def _folds(scores: Scores) -> list[str]:
    """How many published figures some choice of the folds comes near, where the folds are the only thing not known."""
    if scores.experiment.statistic != "none" or not scores.paper:
        return []
    near, best, missed = [], 0, []
    for (data, method), (value, _) in scores.paper.items():
        gaps = [100 * figure - value for figure in scores.values(data, method).values()]
        if len(gaps) > 1:
            near.append(np.abs(gaps) <= NEAR)
            least = min(gaps, key=abs)
            best += abs(least) <= NEAR
            missed += [f"{method} on {data} ({least:+.1f})"] if abs(least) > NEAR else []
    if not near:
        return []
    common = min(map(len, near))
    counts = np.sum([hits[:common] for hits in near], axis=0)
    return [
        f"**Luck of the folds.** With the same folds for all methods between {counts.min()} and {counts.max()} of "
        f"{len(near)} figures lie within two points, in {common} choices of the folds; sets with one choice so far are "
        f"left out. If every figure had the folds that suit it best, there would be {best}"
        + (f"; no choice tried explains {', '.join(missed)}." if missed else ".")
    ]


def _one_round(protocol: Protocol) -> bool:
    return protocol.split.kind == "kfold" and protocol.repeats == 5


def _edges(scores: Scores) -> list[str]:
    """Methods whose first parameter was at the end of its grid in most divisions of a data set."""
    words = []
    for method in scores.experiment.methods:
        for end, said in ((min, "smallest"), (max, "largest")):
            found = [row.data.name for row in scores.rows if _at_edge(scores, row, method, end)]
            if found and len(next(iter(method.grid.values()), ())) > 2:
                name = next(iter(method.grid)).removeprefix("estimator__")
                words.append(f"{method.name} at the {said} {name} on {', '.join(found)}")
    return [f"**At the edge of the grid in most divisions:** {'; '.join(words)}."] if words else []


def _at_edge(scores: Scores, row: Row, method: Model, end: Callable[..., float]) -> bool:
    grid = thin(method.grid, scores.experiment.values(row, method))
    if not grid:
        return False
    name, values = next(iter(grid.items()))
    at = []
    for line in scores.lines.get((row.data.name, method.name), []):
        told = dict(word.split("=") for word in line["params"].split())
        if name in told:
            unit = scores.experiment.units.get(method.name, "")
            (scaled,) = in_units(
                replace(method, grid={name: (end(values),)}), unit, int(line["n_train"]), int(line["n_classes"])
            ).grid[name]
            at.append(abs(float(told[name]) / scaled - 1) < ROUNDED)
    return sum(at) > len(at) / 2


def _classes(scores: Scores) -> list[str]:
    means, reference = scores.means(), scores.experiment.reference
    at, out = scores.methods.index(reference), []
    rivals = np.nan_to_num(np.delete(means, at, axis=1), nan=-1.0).max(axis=1)
    ahead = 100 * (means[:, at] - rivals)[np.isfinite(means[:, at]) & (rivals >= 0)]
    if not len(ahead):
        return []
    out.append(
        f"From {scores.names[0]} ({100 * means[0, at]:.1f} %) to {scores.names[-1]} ({100 * means[-1, at]:.1f} %) "
        f"{reference} lies between {ahead.min():+.1f} and {ahead.max():+.1f} points from its best rival. "
        + ("The drop of the rivals alone, which the paper shows, is not seen here." if ahead.max() < 2 else "")
    )
    return out


def _margins(scores: Scores) -> list[str]:
    variance, negative = scores.means("margin variance"), scores.means("negative margins")
    words = ", ".join(
        f"{m}: variance {mean(variance[:, j]):.2f}, {100 * mean(negative[:, j]):.1f} % not positive"
        for j, m in enumerate(scores.methods)
    )
    sharpest = min(enumerate(scores.methods), key=lambda item: mean(variance[:, item[0]]))[1]
    return [
        f"Mean over the panels, in units of the mean absolute margin: {words}. {sharpest} has the sharpest margins."
    ]


def _times(scores: Scores) -> list[str]:
    fit = scores.means("fit")
    at = scores.methods.index(scores.experiment.reference)
    words = []
    for j, method in enumerate(scores.methods):
        if j != at:
            ratio = np.exp(mean(np.log(fit[:, j] / fit[:, at])))
            words.append(f"{method} {ratio:.2f}")
    strength = {method.name: _strength(method.estimator) for method in scores.experiment.methods}
    return [
        f"Geometric mean of the time of a whole fit over that of {scores.experiment.reference}: {', '.join(words)}.",
        "Every machine has its default: " + ", ".join(f"{m} C = {value:g}" for m, value in strength.items()) + ".",
    ]


def _strength(estimator: Estimator) -> float:
    parameters = estimator.get_params()
    return float(parameters.get("C", parameters.get("estimator__C")))


def _iterations(scores: Scores) -> list[str]:
    words = []
    for name in scores.names:
        x, adam = scores.curve(name, "Adam", "objective")
        n, exact = scores.curve(name, "exact", "objective")
        if len(adam) and len(exact):
            words.append(
                f"{name}: Adam is {100 * (adam[-1] / exact[-1] - 1):+.2g} % above the exact optimum after "
                f"{x[-1]:.0f} epochs (exact solver: at most {n[-1]:.0f} iterations)"
            )
    return ["; ".join(words) + "."]


def _sweep(scores: Scores) -> list[str]:
    (method,) = scores.methods
    (parameter,) = scores.experiment.methods[0].grid
    words = []
    for name in scores.names:
        x, accuracy = scores.curve(name, method)
        words.append(
            f"{name} {x[accuracy.argmax()]:g} (from {100 * accuracy.min():.1f} to {100 * accuracy.max():.1f} %)"
        )
    return [f"Best {parameter} and range of the accuracy: {', '.join(words)}."]


def _epochs(scores: Scores) -> list[str]:
    words = []
    for name in scores.names:
        ends = {method: scores.curve(name, method, "suboptimality")[1] for method in scores.methods}
        words.append(f"{name} " + ", ".join(f"{m} {v[-1]:.1e}" for m, v in ends.items() if len(v)))
    return [f"Relative suboptimality after the last epoch: {'; '.join(words)}."]


def _rounds(scores: Scores) -> list[str]:
    words, rises = [], 0
    for name in scores.names:
        for method in scores.methods:
            x, value = scores.curve(name, method, "above the end")
            if len(x):
                words.append(f"{name}, {method}: {x[-1]:g} rounds from {100 * value[0]:.1f} % above")
                rises += int((np.diff(value) > RISE).sum())
    return [f"{'; '.join(words)}. Half rounds that raise the objective: {rises}."]


def _lines(scores: Scores) -> list[str]:
    paper, words = published("abe-figures"), []
    for method in scores.methods:
        for C, accuracy in zip(*scores.curve(scores.names[0], method), strict=True):
            there = paper[f"iris, C = {C:g}", method][0]
            words.append(f"{method}, C = {C:g}: {100 * accuracy:.0f} % (paper {there:.0f} %)")
    return ["Accuracy on the 50 test rows: " + "; ".join(words) + "."]
