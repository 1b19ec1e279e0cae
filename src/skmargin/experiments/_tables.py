"""Results as Markdown tables: our figure, the paper's, the difference, win/tie/loss and ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ._scores import Scores
from ._statistics import ranks, verdict

BETTER, WORSE = "●", "○"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table; the first ``left`` columns stand to the left, the others to the right."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "|".join("---" if i < left else "---:" for i in range(len(header))) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def accuracy_table(scores: Scores) -> str:
    """Mean and deviation in per cent, below them the paper's figure and the difference; ranks and win/tie/loss last."""
    paper = scores.paper
    means = scores.means()
    reference = scores.experiment.reference
    rows = []
    for data, line in zip(scores.names, means, strict=True):
        best = np.nanmax(line) if np.isfinite(line).any() else np.nan
        cells = [f"{data}<br>{_size(scores, data)}"]
        for method, mean in zip(scores.methods, line, strict=True):
            cells.append(_cell(scores, data, method, mean, best) + _beside(mean, paper.get((data, method))))
        rows.append(cells)
    rows.append(["mean rank", *(f"{r:.2f}" if np.isfinite(r) else "" for r in _mean_ranks(scores.means(common=True)))])
    theirs = _paper_means(scores, paper)
    if np.isfinite(theirs).any():
        rows.append(["mean rank, paper", *(f"{r:.2f}" if np.isfinite(r) else "" for r in _mean_ranks(theirs))])
    if reference in scores.methods and repeated(scores):
        counts = [win_tie_loss(scores, method) for method in scores.methods]
        words = ["" if m == reference else "/".join(map(str, c)) for m, c in zip(scores.methods, counts, strict=True)]
        rows.append([f"{reference}: win/tie/loss", *words])
    return markdown(["data", *scores.methods], rows)


def repeated(scores: Scores) -> bool:
    """Whether there are several divisions of some data set, so that a test can tell methods apart."""
    return scores.experiment.statistic != "none" and most_runs(scores) > 1


def most_runs(scores: Scores) -> int:
    """The most divisions that a method has on a data set."""
    return max((len(scores.values(d, m)) for d in scores.names for m in scores.methods), default=0)


def win_tie_loss(scores: Scores, method: str) -> tuple[int, int, int]:
    """On how many data sets the reference is better than a method, equal, worse."""
    found = [judge(scores, data, method) for data in scores.names]
    return found.count(1), found.count(0), found.count(-1)


def judge(scores: Scores, data: str, method: str) -> int | None:
    """1 if the reference is significantly better than the method on a data set, -1 if worse, 0 if neither.

    None with fewer than two divisions that both have: that is no tie.
    """
    ours, theirs = scores.values(data, scores.experiment.reference), scores.values(data, method)
    both = sorted(ours.keys() & theirs.keys())
    if len(both) < 2:
        return None
    return verdict([ours[s] for s in both], [theirs[s] for s in both], scores.experiment.statistic)


def _mean_ranks(means: np.ndarray) -> np.ndarray:
    table = ranks(means)
    there = np.isfinite(table)
    return np.where(there.any(axis=0), np.nansum(table, axis=0) / np.maximum(there.sum(axis=0), 1), np.nan)


def _paper_means(scores: Scores, paper: dict[tuple[str, str], tuple[float, float | None]]) -> np.ndarray:
    """The paper's figures on the data sets that have results here."""
    nothing = (np.nan, None)
    return np.array([[paper.get((data, m), nothing)[0] for m in scores.methods] for data in scores.names])


def _cell(scores: Scores, data: str, method: str, mean: float, best: float) -> str:
    if not np.isfinite(mean):
        return f"*{scores.status(data, method).partition(':')[0] or 'not run'}*"
    found = list(scores.values(data, method).values())
    text = f"{100 * mean:.1f}"
    if len(found) > 1:
        text += f" ± {100 * np.std(found, ddof=1):.1f}"
    if mean > best - 1e-12:
        text = f"**{text}**"
    if method == scores.experiment.reference:
        return text
    return text + {1: f" {BETTER}", -1: f" {WORSE}"}.get(judge(scores, data, method) or 0, "")


def _beside(mean: float, paper: tuple[float, float | None] | None) -> str:
    if paper is None:
        return ""
    difference = f" ({100 * mean - paper[0]:+.1f})" if np.isfinite(mean) else ""
    return f"<br>{paper[0]:.1f}{difference}"


def _size(scores: Scores, data: str) -> str:
    line = next(lines[0] for (name, _), lines in scores.lines.items() if name == data)
    if not line["n_train"]:
        return ""
    return f"{line['n_train']} + {line['n_test']} x {line['n_features']}, {line['n_classes']} classes"
