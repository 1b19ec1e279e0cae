"""Where a CSV file is broken: the slow second look, taken only when it is refused."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._cells import MISSING, as_float
from ._dialect import Dialect
from ._files import MAX_LINE, DataError, TextColumn, as_number, open_data

MOST = 1 << 28  # characters that are looked through
MOST_LINES = 10_000_000  # a few seconds


def explain(
    path: Any,
    dialect: Dialect,
    *,
    features: Sequence[int] = (),
    gaps: bool = False,
    target: int | None = None,
    longest: int = MAX_LINE,
) -> None:
    """Raise the error of the first line that is broken or too long; nothing happens where none is found.

    The columns ``features`` must hold numbers (``gaps``: or be missing), and the column ``target`` labels.
    """
    names = dialect.names
    for line, cells in _rows(path, dialect, longest):
        if line == -1:
            continue
        for position in features:
            place = f"{path}, line {line}, column {names[position]!r}"
            _check_number(cells[position].strip(" \t"), dialect.decimal, gaps, place)
        if target is not None and cells[target].strip().lower() in MISSING:
            raise DataError(f"{path}, line {line}, column {names[target]!r}: the label is missing.")


def _rows(path: Any, dialect: Dialect, longest: int) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row that is not blank, the first one with names as line -1."""
    line, width = 0, len(dialect.names)
    with open_data(path) as stream, io.TextIOWrapper(stream, encoding=_with_mark(dialect.encoding), newline="") as text:
        try:
            reader = csv.reader(_lines(text, path, longest), delimiter=dialect.delimiter, strict=True)
            first = dialect.has_header
            for cells in reader:
                line = reader.line_num
                if not cells or (len(cells) == 1 and not cells[0].strip()):
                    continue
                if len(cells) != width:
                    raise DataError(f"{path}, line {line}: {len(cells)} columns instead of {width}.")
                yield (-1 if first else line), cells
                first = False
        except csv.Error as error:
            raise DataError(f"{path}, line {line + 1}: {error}.") from None
        except UnicodeDecodeError:
            raise DataError(f"{path}, after line {line}: not {dialect.encoding.upper()} text.") from None


def _with_mark(encoding: str) -> str:
    """The same encoding, one that takes a mark at the beginning for what it is."""
    return {"utf-8": "utf-8-sig", "utf-16-le": "utf-16", "utf-16-be": "utf-16"}.get(encoding, encoding)


def _lines(text: io.TextIOWrapper, path: Any, longest: int) -> Iterator[str]:
    seen = 0
    for number in range(1, MOST_LINES):
        line = text.readline(longest)
        seen += len(line)
        if not line or seen > MOST:
            return
        if len(line) >= longest:
            raise DataError(f"{path}, line {number}: longer than {longest / 2**20:.3g} MiB: not a table.")
        yield line


def _check_number(cell: str, decimal: str, gaps: bool, place: str) -> None:
    if cell.lower() in MISSING:
        if gaps:
            return
        raise DataError(f"{place}: the value is missing: fill in or remove missing values.")
    try:
        if not (cell.isprintable() and cell.isascii()):  # which Python might overlook
            raise ValueError(cell)
        number = float(as_number(cell.replace(",", ".", 1) if decimal == "," else cell))
    except ValueError:
        if not np.isnan(as_float(cell, ",")):
            raise DataError(f"{place}: {_short(cell)} is not a number. Write decimal points, not commas.") from None
        raise TextColumn(f"{place}: {_short(cell)} is not a number. Encode text columns as numbers first.") from None
    if not np.isfinite(number):
        raise DataError(f"{place}: {_short(cell)} is not a finite number.")


def _short(cell: str) -> str:
    return repr(cell[:40]) + ("..." if len(cell) > 40 else "")
