"""The figures that the papers print."""

from __future__ import annotations

import csv
from importlib.resources import files

Figures = dict[tuple[str, str], tuple[float, float | None]]  # data, method: mean and, where it is given, deviation


def published(table: str) -> Figures:
    """The figures of a table: accuracies in per cent, seconds, or chosen parameters."""
    text = files(__package__).joinpath("papers", "figures.csv").read_text(encoding="utf-8")
    return {
        (line["data"], line["method"]): (float(line["mean"]), float(line["deviation"]) if line["deviation"] else None)
        for line in csv.DictReader(text.splitlines())
        if line["experiment"] == table
    }
