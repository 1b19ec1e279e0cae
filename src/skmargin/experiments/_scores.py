"""The results of one experiment, arranged for reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ._published import Figures, published
from ._runner import KEY, Result
from ._spec import Experiment, Row

Cell = tuple[str, str]  # data, method


@dataclass
class Scores:
    """What came out of one experiment.

    Attributes
    ----------
    experiment : Experiment
        Which.
    run : {"full", "quick"}
        Which of its protocols.
    lines : dict
        Lines of the results file for each data set and method, those of the present description only.
    rows : list of Row
        The rows that have results.
    missing : list of Row
        The rows that have none.
    """

    experiment: Experiment
    run: str
    lines: dict[Cell, list[Result]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    missing: list[Row] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        """Names of the methods."""
        return [method.name for method in self.experiment.methods]

    @property
    def names(self) -> list[str]:
        """Names of the data sets with results."""
        return [row.data.name for row in self.rows]

    @property
    def paper(self) -> Figures:
        """The published figures by the names of our methods; empty where there are none."""
        table = published(self.experiment.table or self.experiment.name)
        beside = {method: self.experiment.columns.get(method, method) for method in self.methods}
        return {
            (data, method): table[data, column]
            for data in self.names
            for method, column in beside.items()
            if (data, column) in table
        }

    def published_as(self, data: str, column: str) -> float | None:
        """A published figure by the paper's own name of the column."""
        found = published(self.experiment.table or self.experiment.name).get((data, column))
        return None if found is None else found[0]

    def status(self, data: str, method: str) -> str:
        """The worst that happened: "ok", "not converged", "out of budget (... s)", "left out", "failed: ..."."""
        found = [line["status"] for line in self.lines.get((data, method), [])]
        harmless = [status for status in ("not converged", "ok") if status in found]
        return next((status for status in found if status not in harmless), harmless[0] if harmless else "")

    def stopped(self, method: str) -> tuple[int, int]:
        """Number of divisions of all sets whose final fit stopped before its tolerance, and of all with a figure."""
        found: dict[tuple[str, str], bool] = {}
        for data in self.names:
            for line in self.lines.get((data, method), []):
                if line["status"] in ("ok", "not converged"):
                    key = data, line["split"]
                    found[key] = found.get(key, False) or line["status"] == "not converged"
        return sum(found.values()), len(found)

    def values(self, data: str, method: str, quantity: str = "accuracy") -> dict[int, float]:
        """Value of each division."""
        lines = self.lines.get((data, method), [])
        return {int(line["split"]): float(line["value"]) for line in lines if line["quantity"] == quantity}

    def curve(self, data: str, method: str, quantity: str = "accuracy") -> tuple[np.ndarray, np.ndarray]:
        """Values of x, and the mean over the divisions at each."""
        sums: dict[float, list[float]] = {}
        for line in self.lines.get((data, method), []):
            if line["quantity"] == quantity and line["x"]:
                sums.setdefault(float(line["x"]), []).append(float(line["value"]))
        xs = sorted(sums)
        return np.array(xs), np.array([np.mean(sums[x]) for x in xs])

    def seconds(self, data: str, method: str, name: str) -> float:
        """Mean of one of the times; nan where there is none."""
        found = [float(line[name]) for line in self.lines.get((data, method), []) if line[name]]
        return float(np.mean(found)) if found else float("nan")

    def gaps(self, method: str, rival: str) -> np.ndarray:
        """Points by which a method is ahead of a rival on each data set, over the divisions that both have."""
        out = np.full(len(self.rows), np.nan)
        for i, data in enumerate(self.names):
            if {self.status(data, name) for name in (method, rival)} <= {"ok", "not converged"}:
                ours, theirs = self.values(data, method), self.values(data, rival)
                both = ours.keys() & theirs.keys()
                if both:
                    out[i] = 100 * np.mean([ours[split] - theirs[split] for split in both])
        return out

    def means(self, quantity: str = "accuracy", common: bool = False) -> np.ndarray:
        """Mean over the divisions, ``(data sets, methods)``; nan where a method did not finish.

        With ``common`` over the divisions that all methods with a figure have, so that they can be compared.
        """
        table = np.full((len(self.rows), len(self.methods)), np.nan)
        for i, data in enumerate(self.names):
            row = {
                j: found
                for j, method in enumerate(self.methods)
                if self.status(data, method) in ("ok", "not converged")
                and (found := self.values(data, method, quantity))
            }
            shared = set.intersection(*map(set, row.values())) if row else set()
            for j, found in row.items():
                table[i, j] = np.mean([v for split, v in found.items() if not common or split in shared] or [np.nan])
        return table


def scores(experiment: Experiment, results: Sequence[Result], run: str = "full") -> Scores:
    """Arrange the lines of a results file that belong to an experiment as it is described now."""
    wanted: dict[tuple[str, ...], Cell] = {
        task.key: (task.row.data.name, task.method.name) for task in experiment.tasks(run == "quick")
    }
    out = Scores(experiment, run)
    latest: dict[tuple[str, ...], list[Result]] = {}
    for line in results:
        key = tuple(line[name] for name in KEY)
        if key in wanted:
            before = latest.setdefault(key, [])
            if before and before[-1]["quantity"] == "nothing":  # tried again
                before.clear()
            before.append(line)
    for key, lines in latest.items():
        out.lines.setdefault(wanted[key], []).extend(lines)
    for row in experiment.quick if run == "quick" else experiment.rows:
        here = any((row.data.name, method) in out.lines for method in out.methods)
        (out.rows if here else out.missing).append(row)
    return out


def finished(scores: Scores, methods: Sequence[str] | None = None) -> Scores:
    """Without the data sets on which one of the methods, all of them by default, has not been tried yet."""
    needed = scores.methods if methods is None else methods
    rows = [row for row in scores.rows if all(scores.status(row.data.name, method) for method in needed)]
    return replace(scores, rows=rows, missing=scores.missing + [row for row in scores.rows if row not in rows])
