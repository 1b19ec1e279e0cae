"""What the commands share: complaints, checks before the work, words about data and versions."""

from __future__ import annotations

import difflib
import json
import logging
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
import typer

import skmargin

from ..comparison import METRICS, ComparisonError, Model, models
from ..datasets import DataError, Dataset
from ..datasets._files import available_memory
from ..datasets._load import TableOptions, load_training
from ..model_files import ModelFileError
from ..solvers.many_classes import suits
from ._terminal import printable, say

log = logging.getLogger("skmargin.cli")
MAX_LINES = 40  # about columns


@contextmanager
def complaints() -> Iterator[None]:
    """Errors that a user can mend, as one sentence and an exit code."""
    try:
        yield
    except (DataError, ModelFileError, ComparisonError, ImportError) as error:  # the last: an extra is missing
        message = str(error)
    except BrokenPipeError:  # whoever read our output has seen enough
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except OSError as error:
        message = f"{'output' if error.filename is None else error.filename}: {error.strerror}."
    except KeyboardInterrupt:
        say("interrupted.", stderr=True)
        raise typer.Exit(130) from None
    else:
        return
    say(f"skmargin: {message}", stderr=True, style="red")
    raise typer.Exit(1)


def find_model(name: str, option: str) -> Model:
    """The model of a name, or a complaint with the nearest one."""
    known = models()
    if name.lower() in known:
        return known[name.lower()]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise typer.BadParameter(
        f"there is no model {printable(name)!r}.{hint} Known: {', '.join(known)}.", param_hint=option
    )


def check_choice(value: str | None, allowed: Any, option: str) -> None:
    """Refuse a word that is not among those that are allowed."""
    if value is not None and value not in allowed:
        raise typer.BadParameter(f"must be one of {', '.join(allowed)}, got {printable(value)!r}.", param_hint=option)


def check_metric(metric: str, class_weight: str | None) -> None:
    """Refuse what is no metric or no way of weighing classes."""
    check_choice(metric, METRICS, "--metric")
    check_choice(class_weight, ("balanced",), "--class-weight")


def check_writable(path: Path | None) -> None:
    """Refuse before the work what could not be written after it."""
    if path is None:
        return
    if path.is_dir():
        raise DataError(f"{path}: is a folder, not a file.")
    if not path.parent.is_dir():
        raise DataError(f"{path}: the folder {path.parent} does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise DataError(f"{path}: the folder {path.parent} cannot be written to.")


def training_data(source: str, target: str | None, options: dict[str, Any], chosen: Sequence[Model]) -> Dataset:
    """Labelled rows whose class vectors fit into memory: one wrong index makes a LIBSVM file very wide."""
    log.info("reading %s", source)
    data = load_training(source, target, TableOptions(**options))
    d, free = data.X.shape[1], available_memory()
    k = len(np.unique(np.asarray(data.y)))
    needed = 3 * 8 * d * k  # the solver has a few of its own
    if not data.is_raw and suits(data.X, k) and all(model.sparse_vectors for model in chosen):
        needed = 8 * d * min(k, 64)  # of so many classes are dense vectors made at a time
    if free is not None and needed > free:
        raise DataError(
            f"{source}: class vectors of {d} features need {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free. "
            "Is the largest index right?"
        )
    return data


def describe(classes: list[str], data: Dataset) -> str:
    """One line about the data."""
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    n, d = data.X.shape
    what = "columns" if data.is_raw else "features"
    return f"{data.name}: {n} samples, {d} {what}, {len(classes)} classes ({shown})"


def tell_columns(data: Dataset, quiet: bool = False) -> None:
    """What is done with each column of a table, those of one treatment on one line; warnings on the error stream."""
    if data.columns is None:
        return
    plain = all(str(column) == "number" for column in data.columns)
    groups: dict[str, list[str]] = {}
    for column in data.columns:
        groups.setdefault(str(column), []).append(str(column.name))
    if not quiet and not plain:
        for treatment, names in list(groups.items())[:MAX_LINES]:
            more = f" and {len(names) - 12} more" if len(names) > 12 else ""
            say(f"  {', '.join(names[:12])}{more}: {treatment}")
        if len(groups) > MAX_LINES:
            say(f"  ... and {len(groups) - MAX_LINES} more")
    for column in data.columns:
        if column.warning:
            say(f"warning: {column.warning}", stderr=True)


def command_line(name: str, *arguments: Any, **options: Any) -> str:
    """The words that run a command again."""
    words = ["skmargin", name, *map(str, arguments)]
    for option, value in options.items():
        for each in value if isinstance(value, tuple | list) else (value,):
            if each is not None:
                words += [f"--{option.replace('_', '-')}", str(each)]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def versions() -> dict[str, str]:
    """Of the packages that matter."""
    packages = {"skmargin": skmargin, "scikit-learn": sklearn, "numpy": np, "scipy": scipy}
    return {**{name: package.__version__ for name, package in packages.items()}, "python": platform.python_version()}


def now() -> str:
    """Date and time for a page."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def print_json(value: Any) -> None:
    """One document on standard output."""
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")
