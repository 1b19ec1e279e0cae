"""``skmargin reproduce`` and ``skmargin datasets``."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import numpy as np
import typer
from sklearn.utils._optional_dependencies import check_matplotlib_support

from ..datasets import BUILT_IN, DataError, load_dataset
from ..experiments import EXPERIMENTS, choose, in_rounds, pending, read_results, run, write_pages
from ._common import complaints, print_json
from ._terminal import bar, printable, say, show_table


def reproduce(table: str, data: Path | None, quick: bool, out: Path, jobs: int | None) -> None:
    """Run what is left of the experiments, and write the pages."""
    with complaints():
        try:
            chosen = choose(table)
        except KeyError:
            near = difflib.get_close_matches(table, EXPERIMENTS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise typer.BadParameter(
                f"there is no experiment {printable(table)!r}.{hint}", param_hint="TABLE"
            ) from None
        if data is not None and not data.is_dir():
            raise DataError(f"{data}: is not a folder.")
        check_matplotlib_support("skmargin reproduce")  # now, not when the pages are drawn after hours
        out.mkdir(parents=True, exist_ok=True)
        results = out / "results.csv"
        every = (task for experiment in chosen for task in experiment.tasks(quick))
        tasks, missing = pending(every, results, data)
        outcomes: dict[str, int] = {}
        with bar(len(tasks)) as step:
            for task, outcome in run(
                in_rounds(tasks, results), results, folder=data, n_jobs=jobs or os.cpu_count() or 1
            ):
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                step(f"{task.experiment.name}, {task.row.data.name}, {task.method.name}: {outcome}")
        for source in missing:
            say(f"{source.name}: left out, {source.wanted} is not there (--data).", stderr=True)
        for outcome, n in outcomes.items():
            say(f"{n} tasks {outcome}")
        for page in write_pages(read_results(results), out, "quick" if quick else "full"):
            say(f"Page: {page}")
        if any(outcome.startswith("failed") for outcome in outcomes):
            raise typer.Exit(3)


def list_datasets(as_json: bool) -> None:
    """Names and sizes of the data sets that are built in."""
    with complaints():
        rows = []
        for name, (_, description) in BUILT_IN.items():
            data = load_dataset(name)
            rows.append([name, *data.X.shape, len(np.unique(np.asarray(data.y))), description])
        columns = ("name", "samples", "features", "classes", "description")
        if as_json:
            print_json([dict(zip(columns, row, strict=True)) for row in rows])
        else:
            show_table(columns, rows, numbers=(1, 2, 3))
