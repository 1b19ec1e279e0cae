"""The page over all data: accuracy, ranks, times, critical differences, and advice drawn from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from .._types import Estimator
from ..comparison import Model
from ._scores import Scores, finished
from ._statistics import Friedman, friedman, mean
from ._tables import markdown

CLOSE = 1.0  # points of accuracy within which the faster method is the better advice


def joined(scores: Scores, few: Scores | None) -> Scores:
    """The finished data sets, and of those that are not the ones that are finished with fewer rows."""
    done = finished(scores)
    if few is None:
        return done
    names = set(done.names)
    more = [row for row in finished(few).rows if row.data.name not in names]
    lines = {cell: found for cell, found in scores.lines.items() if cell[0] in names}
    lines |= {cell: found for cell, found in few.lines.items() if cell[0] in {row.data.name for row in more}}
    there = names | {row.data.name for row in more}
    missing = [row for row in (*scores.rows, *scores.missing) if row.data.name not in there]
    return replace(scores, rows=[*done.rows, *more], lines=lines, missing=missing)


def complete(scores: Scores) -> np.ndarray:
    """Mean accuracies over shared divisions; a method without a figure on a data set counts as last there."""
    return np.nan_to_num(scores.means(common=True), nan=-1.0)


def test_ranks(scores: Scores) -> Friedman:
    """Friedman's test over all data sets."""
    return friedman(complete(scores))


def summary_table(scores: Scores) -> str:
    """Methods by mean rank, with mean accuracy and times relative to the fastest."""
    means, test = scores.means(common=True), test_ranks(scores)
    everywhere = np.isfinite(means).all(axis=1)
    times = {name: _relative(scores, name) for name in ("search_seconds", "fit_seconds", "predict_seconds")}
    rows = []
    for j in np.argsort(test.mean_ranks):
        method = scores.experiment.methods[j]
        there = np.isfinite(means[:, j])
        first = int(np.sum(means[there, j] >= np.fmax.reduce(means[there], axis=1) - 1e-12))
        kind = "skmargin" if method.own else "scikit-learn"
        numbers = [f"{test.mean_ranks[j]:.2f}", f"{100 * mean(means[everywhere, j]):.2f}", str(first)]
        numbers += [f"{times[name][j]:.1f}" for name in times] + [str(int((~there).sum()))]
        rows.append([method.name, f"{method.description} ({kind})", *numbers])
    header = ["method", "what", "mean rank", "mean accuracy", "times first", "tuning", "fit", "predict", "no figure"]
    return markdown(header, rows, left=2)


def matrix(scores: Scores) -> str:
    """Accuracy of every method on every data set, in per cent; the best of each row bold."""
    means = scores.means(common=True)
    order = np.argsort(test_ranks(scores).mean_ranks)
    rows = []
    for i, data in enumerate(scores.names):
        best = np.fmax.reduce(means[i])
        cells = [f"{100 * means[i, j]:.1f}" if np.isfinite(means[i, j]) else "-" for j in order]
        rows.append(
            [data, *(f"**{c}**" if means[i, j] >= best - 1e-12 else c for c, j in zip(cells, order, strict=True))]
        )
    return markdown(["data", *(scores.methods[j] for j in order)], rows)


def parameters(scores: Scores) -> str:
    """The parameter that was chosen most often, beside the default."""
    rows = []
    for method in scores.experiment.methods:
        chosen: dict[str, list[float]] = {}
        for data in scores.names:
            for line in scores.lines.get((data, method.name), []):
                for word in line["params"].split():
                    name, _, value = word.partition("=")
                    chosen.setdefault(name, []).append(float(value))
        for name, values in chosen.items():
            counts = Counter(values)
            spread = ", ".join(f"{value:g}: {100 * n / len(values):.0f} %" for value, n in sorted(counts.items()))
            default = _default(method.estimator, name)
            rows.append([method.name, name, f"{default:g}", f"{counts.most_common(1)[0][0]:g}", spread])
    return markdown(["method", "parameter", "default", "chosen most often", "share of each value"], rows, left=2)


def defaults(scores: Scores) -> str:
    """Mean accuracy with one value of the parameter on all data; the default bold."""
    rows = []
    for method in scores.experiment.methods:
        ((name, values),) = method.grid.items()
        curves = [scores.curve(data, method.name)[1] for data in scores.names]
        done = [curve for curve in curves if len(curve) == len(values)]
        if not done:
            continue
        means, default = 100 * np.mean(done, axis=0), _default(method.estimator, name)
        cells = [f"{value:g}: {accuracy:.1f}" for value, accuracy in zip(sorted(values), means, strict=True)]
        at = sorted(values).index(default)
        cells[at] = f"**{cells[at]}**"
        rows.append([method.name, name, str(len(done)), f"{means.max() - means[at]:.1f}", ", ".join(cells)])
    header = ["method", "parameter", "sets", "best over default", "mean accuracy, %, for each value"]
    return markdown(header, rows, left=2)


def advice(scores: Scores) -> list[str]:
    """Which method for which data."""
    means, fit = scores.means(common=True), _relative(scores, "fit_seconds")
    shapes = np.array([_shape(scores, data) for data in scores.names])
    n, d, k = shapes.T
    test = test_ranks(scores)
    order = np.argsort(test.mean_ranks)
    tied = [
        scores.methods[j] for j in order if test.mean_ranks[j] <= test.mean_ranks[order[0]] + test.critical_difference
    ]
    p = "p < 0.001" if test.p_value < 0.001 else f"p = {test.p_value:.3f}"
    out = [
        f"**Over all {len(n)} data sets** {scores.methods[order[0]]} has the best mean rank "
        f"({test.mean_ranks[order[0]]:.2f} of {len(order)} methods; Friedman {p}). Not told apart from it: "
        f"{', '.join(tied[1:]) or 'none'}."
    ]
    linear = [j for j in order if _linear(scores.experiment.methods[j])]
    quick = _fastest(means, fit, linear, np.ones(len(n), dtype=bool))
    out.append(
        f"**Of the linear methods** {scores.methods[linear[0]]} ranks best; {scores.methods[quick]} is the fastest to "
        f"fit of those within {CLOSE:g} point of the best mean accuracy."
    )
    groups = {
        "Two classes": k == 2,
        "Three or more classes, at most 20 features": (k > 2) & (d <= 20),
        "Three or more classes, more than 20 features, but fewer than training rows": (k > 2) & (d > 20) & (d < n),
        "At least as many features as training rows": d >= n,
        "Twenty classes or more": k >= 20,
    }
    for title, chosen in groups.items():
        if chosen.sum() < 2:
            continue
        ranked = friedman(complete(scores)[chosen]).mean_ranks
        first = np.argsort(ranked)
        best_linear = next(j for j in first if j in linear)
        fast = _fastest(means, fit, list(range(len(ranked))), chosen)
        out.append(
            f"**{title}** ({int(chosen.sum())} sets): {', '.join(scores.methods[j] for j in first[:3])} rank best; "
            f"best linear {scores.methods[best_linear]} ({_mean(means, chosen, best_linear):.1f} % against "
            f"{_mean(means, chosen, first[0]):.1f} %); fastest within {CLOSE:g} point of the best mean: "
            f"{scores.methods[fast]}."
        )
    return out


def pairs(scores: Scores) -> list[str]:
    """The machines of one model for all classes beside the classic decompositions: on how many sets one is ahead."""
    out = []
    for a, b in (
        ("crammer-singer", "one-vs-rest"), ("crammer-singer", "one-vs-one"), ("odm", "crammer-singer"),
        ("m3", "crammer-singer"), ("lp-norm", "crammer-singer"), ("crammer-singer-rbf", "rbf-svm"), ("uldm", "rbf-svm"),
    ):  # fmt: skip
        if a in scores.methods and b in scores.methods:
            gap = scores.gaps(a, b)
            gap = gap[np.isfinite(gap)]
            ahead, behind = int((gap > 1e-10).sum()), int((gap < -1e-10).sum())
            out.append(
                f"{a} is ahead of {b} on {ahead} sets and behind on {behind}, {gap.mean():+.2f} points on average"
            )
    return out


def _linear(method: Model) -> bool:
    """Whether the scores of a method are linear in the features."""
    return not method.kernel and not {"ensemble", "neighbors"} & set(type(method.estimator).__module__.split("."))


def _relative(scores: Scores, name: str) -> np.ndarray:
    """Geometric mean over the data sets of the time over that of the fastest method there."""
    table = np.array([[scores.seconds(data, m, name) for m in scores.methods] for data in scores.names])
    table = np.maximum(table, 1e-6)
    relative = np.log(table / np.fmin.reduce(table, axis=1, keepdims=True))
    there = np.isfinite(relative)
    out: np.ndarray = np.exp(np.where(there, relative, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1))
    return out


def _fastest(means: np.ndarray, fit: np.ndarray, among: list[int], rows: np.ndarray) -> int:
    average = np.array([_mean(means, rows, j) for j in among])
    near = [j for j, a in zip(among, average, strict=True) if a >= average.max() - CLOSE]
    return min(near, key=lambda j: fit[j])


def _mean(means: np.ndarray, rows: np.ndarray, j: int) -> float:
    return 100 * float(np.nan_to_num(means[rows, j]).mean())


def _shape(scores: Scores, data: str) -> tuple[int, int, int]:
    lines = (line for (name, _), found in scores.lines.items() if name == data for line in found if line["n_train"])
    line = next(lines)
    return int(line["n_train"]), int(line["n_features"]), int(line["n_classes"])


def _default(estimator: Estimator, name: str) -> float:
    if name == "width":  # of a kernel, as a multiple of gamma="scale", the default
        return 1.0
    inner = estimator.estimator if name.startswith("estimator__") else estimator
    return float(type(inner)().get_params()[name.removeprefix("estimator__")])
