"""What the terminal shows: tables, the live view of a comparison, text from files made harmless."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.live import Live
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..comparison import Comparison
from ..report import ModelResult

WIDE = 240  # columns of output that is not a terminal: nothing is cut or folded
SHORT = {"accuracy": "accuracy", "balanced-accuracy": "balanced", "macro-f1": "macro-F1"}
_JOINERS = "\u200c\u200d"  # parts of emoji and of Persian words


def printable(text: Any) -> str:
    """Text with its control characters written out: a file cannot steer the terminal nor turn the line around."""
    return "".join(
        c if c in _JOINERS or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else
        c.encode("unicode_escape", "surrogatepass").decode() for c in str(text)
    )  # fmt: skip


def console(stderr: bool = False) -> Console:
    """A console that takes no text for markup; plain where it is not a terminal."""
    tty = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=None if tty else WIDE)


def say(text: Any, *, stderr: bool = False, style: str = "") -> None:
    """Print a line of text as it is."""
    console(stderr).print(Text(printable(text), style), soft_wrap=True)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, numbers: Sequence[int] = ()) -> None:
    """Print a table; the columns at the positions ``numbers`` stand to the right."""
    out = console()
    table = _table(out, columns, numbers)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    out.print(table)


def show_ranking(
    ranked: Sequence[ModelResult],
    baseline: ModelResult,
    classes: Sequence[str],
    metric: str,
    words: Sequence[str],
    errors: dict[str, str],
) -> None:
    """Print the ranked table with the baseline below, recalls of the first, what failed, and the plain words."""
    others = [name for name in SHORT if name != metric]

    def cells(rank: Any, model: ModelResult) -> list[Any]:
        mean, *rest = (f"{100 * np.mean(model.metrics[name]):.2f} %" for name in (metric, *others))
        sd = f"{100 * np.std(model.fold_scores, ddof=1):.2f}"
        return [rank, model.name, mean, sd, *rest, p_text(model.p_value)]

    times = [[seconds(model.fit_time), seconds(model.predict_time)] for model in ranked]
    rows = [cells(rank, model) + time for rank, model, time in zip(ranks(ranked), ranked, times, strict=True)]
    if rows:
        rows.append([*cells("", baseline), "", ""])
        columns = ("rank", "model", SHORT[metric], "± sd", *(SHORT[name] for name in others), "p against first")
        show_table((*columns, "fit", "predict"), rows, numbers=(0, 2, 3, 4, 5, 6, 7, 8))
        say(_recalls(ranked[0], classes))
        for sentence in words:
            say(sentence)
    for name, message in errors.items():
        say(f"{name} failed: {message}", stderr=True)


def _recalls(model: ModelResult, classes: Sequence[str]) -> str:
    """How many samples of each class the model finds, the worst first."""
    known = [(recall, label) for recall, label in zip(model.recall, classes, strict=True) if recall is not None]
    worst = [f"{label} {100 * recall:.1f} %" for recall, label in sorted(known)[:10]]
    more = f" and {len(known) - 10} better ones" if len(known) > 10 else ""
    return f"Recall of {model.name} by class: {', '.join(worst)}{more}."


def ranks(ranked: Sequence[ModelResult]) -> list[int]:
    """Places from 1; models with the same mean share one."""
    means = [float(np.mean(model.fold_scores)) for model in ranked]
    return [1 + sum(other > mean + 1e-12 for other in means) for mean in means]


def p_text(p: float | None) -> str:
    """A p-value, starred where the difference is clear."""
    return "" if p is None else ("< 0.001" if p < 0.001 else f"{p:.3f}") + (" *" if p < 0.05 else "  ")


def seconds(value: float | None) -> str:
    """A time with three digits and a unit."""
    if value is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}" if value * scale < 1000 else f"{value * scale:.0f} {unit}"
    return f"{value * 1e6:.0f} µs"


@contextmanager
def progress(comparison: Comparison) -> Iterator[Callable[[], None]]:
    """Show how far a comparison is, on the error stream; yields the function to call after each step."""
    out = console(stderr=True)
    if out.is_terminal:
        with Live(console=out, refresh_per_second=8) as live:
            live.update(_state(comparison, out))
            yield lambda: live.update(_state(comparison, out))
        return
    said: set[str] = set()

    def step() -> None:
        for name, folds in comparison.folds.items():
            if name not in said and (len(folds) == comparison.cv or name in comparison.errors):
                said.add(name)
                mean = (
                    f"{100 * np.mean([fold.score for fold in folds]):.2f} %"
                    if len(folds) == comparison.cv
                    else "failed"
                )
                say(f"{len(said)}/{len(comparison.models)} {name}: {mean}", stderr=True)

    yield step


@contextmanager
def bar(total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of ``total`` tasks are done, on the error stream; yields the function to call after each task.

    Its argument says what was done.  Where the stream is not a terminal, a line for each twentieth part.
    """
    out = console(stderr=True)
    if out.is_terminal:
        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=out) as shown:
            number = shown.add_task("", total=total)
            yield lambda text: shown.update(number, advance=1, description=printable(text))
        return
    done = 0

    def step(text: str) -> None:
        nonlocal done
        done += 1
        if done == total or done % max(1, total // 20) == 0:
            say(f"{done}/{total} {text}", stderr=True)

    yield step


@contextmanager
def bytes_bar(total: int | None) -> Iterator[Callable[[int], None]]:
    """Show how much of a file is read, on a terminal; yields the function to call with the bytes read so far."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda done: None
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as shown:
        number = shown.add_task("", total=total)
        yield lambda done: shown.update(number, completed=done)


def _state(comparison: Comparison, out: Console) -> Table:
    """The live table: a bar for each model."""
    table = _table(out, ("model", "folds", "", SHORT[comparison.metric]), (2, 3))
    running = next((m.name for m in comparison.models if _open(comparison, m.name)), None)
    for model in comparison.models:
        folds = comparison.folds[model.name]
        done = len(folds)
        failed = model.name in comparison.errors
        mean = f"{100 * np.mean([fold.score for fold in folds]):.2f} %" if folds else ""
        style = "red" if failed else "bold" if model.name == running else "" if done else "dim"
        table.add_row(
            Text(model.name, style), ProgressBar(total=comparison.cv, completed=done, width=24),
            Text(f"{done}/{comparison.cv}", style), Text("failed" if failed else mean, style),
        )  # fmt: skip
    return table


def _open(comparison: Comparison, name: str) -> bool:
    return len(comparison.folds[name]) < comparison.cv and name not in comparison.errors


def _table(out: Console, columns: Sequence[str], numbers: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD if out.is_terminal else None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i in numbers else "left", no_wrap=i in numbers)
    return table
