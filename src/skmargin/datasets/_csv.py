"""Reader of CSV files with a target column."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from ._files import MAX_LINE, DataError, Table, TextColumn, as_labels, as_number, check_memory, open_data, too_large

MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-nan", "+nan"}
_ROWS = 8192


def read_csv(path: str | os.PathLike[str], target: str | int | None = None) -> Table:
    r"""Read a CSV file (comma, semicolon or tab; plain or compressed); all columns but the target must be numbers.

    The first line holds the names of the columns, unless it consists of numbers only: then the columns are called by
    their numbers, from 0.

    Parameters
    ----------
    path : path
        The file.
    target : str or int, default=None
        Name or number (from 0; -1 is the last) of the column with the labels; None for a file without labels.

    Returns
    -------
    table : Table
        ``X`` an array of float64, ``y`` integers or strings (None without target), ``feature_names`` the other columns.

    Examples
    --------
    >>> import os, tempfile
    >>> from skmargin.datasets import read_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("length,kind,width\n1.5,cat,2\n3,dog,4\n")
    ...     X, y, names = read_csv(path, target="kind")
    >>> X.tolist(), y.tolist(), names
    ([[1.5, 2.0], [3.0, 4.0]], ['cat', 'dog'], ['length', 'width'])
    """
    with open_data(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        rows = _rows(text, path)
        first = next(rows, None)
        if first is None:
            raise DataError(f"{path}: the file is empty.")
        header = first[1]
        has_header = not all(_is_number(cell) for cell in header)
        names = [cell.strip() for cell in header] if has_header else [str(i) for i in range(len(header))]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{path}, line {first[0]}: two columns are called {twice!r}.")
        position = column_position(names, target, path)
        features = [i for i in range(len(names)) if i != position]
        if "" in names and names.index("") in features:
            raise DataError(
                f"{path}, line {first[0]}: column {names.index('')} has no name. If it numbers the rows, as pandas "
                "writes them without index=False, leave it out; else name it."
            )
        if not features:
            raise DataError(f"{path}: there is no column besides the target.")
        blocks: list[np.ndarray] = []
        labels: list[str] = []
        pending = [] if has_header else [first]
        while block := pending + list(islice(rows, _ROWS - len(pending))):
            pending = []
            check_memory(path, sum(b.nbytes for b in blocks) + 8 * len(block) * len(names))
            blocks.append(_numbers(block, features, names, path))
            if position is not None:
                labels += _targets(block, position, names, path)
        if not blocks:
            raise DataError(f"{path}: the file holds no samples.")
        try:
            X = np.concatenate(blocks)
        except MemoryError:
            raise DataError(too_large(path)) from None
    where = f"the target column {names[position]!r}" if position is not None else ""
    y = as_labels(labels, path, where) if position is not None else None
    return Table(X, y, [names[i] for i in features])


def column_position(names: list[str], target: str | int | None, path: Any) -> int | None:
    """Position of the target column, by name first, else by number."""
    if target is None:
        return None
    if target in names:
        return names.index(str(target))
    try:
        number = int(target)
    except ValueError:
        number = len(names)
    if not -len(names) <= number < len(names):
        known = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
        raise DataError(f"{path}: there is no column {target!r}; the columns are {known}.")
    return number % len(names)


def _rows(text: io.TextIOWrapper, path: Any) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row that is not blank; every row must be as long as the first."""
    line = 0
    try:
        blank, start = 0, text.readline(MAX_LINE)
        while start and not start.strip(" \r\n"):
            blank, start = blank + 1, text.readline(MAX_LINE)
        delimiter = max(",;\t", key=start.count) if start else ","
        reader = csv.reader(_lines(blank, start, text, path), delimiter=delimiter, strict=True)
        width = None
        for cells in reader:
            line = reader.line_num
            if not cells or (len(cells) == 1 and not cells[0].strip()):
                continue
            width = len(cells) if width is None else width
            if len(cells) != width:
                raise DataError(f"{path}, line {line}: {len(cells)} columns instead of {width}.")
            yield line, cells
    except csv.Error as error:
        raise DataError(f"{path}, line {line + 1}: {error}.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}, after line {line}: not UTF-8 text.") from None


def _lines(blank: int, start: str, text: io.TextIOWrapper, path: Any) -> Iterator[str]:
    """The lines of the file, blank ones before the start; one without end is refused before it fills the memory."""
    for _ in range(blank):
        yield "\n"
    line, number = start, blank + 1
    while line:
        if len(line) >= MAX_LINE:
            raise DataError(f"{path}, line {number}: longer than {MAX_LINE >> 20} MiB: not a text file.")
        yield line
        line = text.readline(MAX_LINE)
        number += 1


def _is_number(cell: str) -> bool:
    try:
        as_number(cell)
    except ValueError:
        return False
    return True


def _numbers(block: list[tuple[int, list[str]]], features: list[int], names: list[str], path: Any) -> np.ndarray:
    """The feature columns of some rows as numbers."""
    columns = list(zip(*(cells for _, cells in block), strict=True))
    out = np.empty((len(block), len(features)))
    for j, position in enumerate(features):
        cells = columns[position]
        try:
            out[:, j] = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except ValueError:
            out[:, j] = np.nan
        if not np.isfinite(out[:, j]).all() or "_" in "".join(cells):
            _explain(block, position, names[position], path)
    return out


def _explain(block: list[tuple[int, list[str]]], position: int, name: str, path: Any) -> None:
    for line, cells in block:
        cell = cells[position].strip()
        place = f"{path}, line {line}, column {name!r}"
        if cell.lower() in MISSING:
            raise DataError(f"{place}: the value is missing: fill in or remove missing values.")
        if _is_number(cell.replace(",", ".", 1)) and not _is_number(cell):
            raise DataError(f"{place}: {_short(cell)} is not a number. Write decimal points, not commas.")
        if not _is_number(cell):
            raise TextColumn(f"{place}: {_short(cell)} is not a number. Encode text columns as numbers first.")
        if not np.isfinite(float(cell)):
            raise DataError(f"{place}: {_short(cell)} is not a finite number.")


def _targets(block: list[tuple[int, list[str]]], position: int, names: list[str], path: Any) -> list[str]:
    labels = [cells[position].strip() for _, cells in block]
    if not MISSING.isdisjoint(map(str.lower, set(labels))):
        line = next(line for line, cells in block if cells[position].strip().lower() in MISSING)
        raise DataError(f"{path}, line {line}, column {names[position]!r}: the label is missing.")
    return labels


def _short(cell: str) -> str:
    return repr(cell[:40]) + ("..." if len(cell) > 40 else "")
