"""Reader of CSV files with a target column."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _arrow
from ._cells import MISSING
from ._csv_errors import explain
from ._dialect import Csv, open_csv
from ._files import MAX_LINE, DataError, Table, as_labels, check_memory, too_large

BLOCK = 1 << 22  # bytes that are parsed at once
OTHERWISE = {"utf-8": "cp1252", "cp1252": "latin-1"}  # where the beginning of a file misled
NULLS = sorted({form(word) for word in MISSING for form in (str, str.upper, str.capitalize)} | {"NaN", "-NaN", "+NaN"})


def read_csv(
    path: str | os.PathLike[str],
    target: str | int | None = None,
    *,
    raw: bool = False,
    encoding: str | None = None,
    decimal: str | None = None,
) -> Table:
    r"""Read a CSV file (comma, semicolon, tab or bar; plain or compressed).  Needs pyarrow (extra ``data``).

    The first line holds the names of the columns, unless it consists of numbers only: then the columns are called by
    their numbers, from 0.

    Parameters
    ----------
    path : path
        The file.
    target : str or int, default=None
        Name or number (from 0; -1 is the last) of the column with the labels; None for a file without labels.
    raw : bool, default=False
        Whether columns may hold anything: text, dates, missing values.  Without it all columns but the target must be
        numbers.
    encoding : str, default=None
        Encoding of the text; None detects UTF-8, UTF-16, and takes all else for that of Windows (cp1252).
    decimal : {".", ","}, default=None
        Decimal sign; None detects it.

    Returns
    -------
    table : Table
        ``X`` an array of float64 (raw: a data frame), ``y`` integers or strings (None without target),
        ``feature_names`` the other columns.

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
    return _read(path, target, raw, encoding, decimal, guessed=encoding is None)


def _read(
    path: Any, target: str | int | None, raw: bool, encoding: str | None, decimal: str | None, guessed: bool
) -> Table:
    pa = _arrow.import_arrow("CSV files")
    import pyarrow.csv

    with open_csv(path, encoding, decimal) as file:
        names, position = _names(file, target, raw)
        features = [i for i in range(len(names)) if i != position]
        if not features:
            raise DataError(f"{path}: there is no column besides the target.")
        strict = [] if raw else features
        text = {} if position is None else {names[position]: pa.string()}
        try:
            table = pyarrow.csv.read_csv(_source(file), **_options(file, names, text))
        except (pa.ArrowException, UnicodeDecodeError) as error:
            other = OTHERWISE.get(file.dialect.encoding)
            if guessed and other is not None and isinstance(error, UnicodeDecodeError):
                return _read(path, target, raw, other, decimal, guessed=True)
            raise _refused(file, error, strict, position) from None
        except MemoryError:
            raise DataError(too_large(path)) from None
    if table.num_rows == 0:
        raise DataError(f"{path}: the file holds no samples.")
    check_memory(path, 8 * table.num_rows * len(names))
    y = None if position is None else _labels(file, table.column(position), names[position], position)
    found = [names[i] for i in features]
    if raw:
        X = _arrow.frame(table.select(features), found)
        X.attrs["decimal"] = file.dialect.decimal  # for those columns that are still text
        return Table(X, y, found)
    X = np.empty((table.num_rows, len(features)))
    for j, i in enumerate(features):
        column = table.column(i)
        if _arrow.is_number(column.type) and not column.null_count:
            X[:, j] = _arrow.numbers(column)
        else:
            X[:, j] = np.nan
    if not np.isfinite(X).all():
        explain(path, file.dialect, features=features)
        raise DataError(f"{path}: some column does not hold finite numbers.")
    return Table(X, y, found)


def stream_csv(file: Csv, names: Sequence[str], types: dict[str, Any], columns: Sequence[str]) -> Iterator[Any]:
    """Batches of some columns of an open file, each about a block of text; ``types`` says what they hold."""
    import pyarrow.csv

    file.stream.bounded = False
    options = _options(file, list(names), types)
    options["convert_options"].include_columns = list(columns)
    reader = pyarrow.csv.open_csv(_source(file), **options)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        if batch.num_rows:
            yield batch


def column_position(names: Sequence[str], target: str | int | None, path: Any) -> int | None:
    """Position of the target column, by name first, else by number."""
    if target is None:
        return None
    if target in names:
        return list(names).index(str(target))
    try:
        number = int(target)
    except ValueError:
        number = len(names)
    if not -len(names) <= number < len(names):
        known = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
        raise DataError(f"{path}: there is no column {target!r}; the columns are {known}.")
    return number % len(names)


def csv_names(file: Csv) -> list[str]:
    """Names of the columns, those without one by their position."""
    return [name or f"Unnamed: {i}" for i, name in enumerate(file.dialect.names)]


def _names(file: Csv, target: str | int | None, raw: bool) -> tuple[list[str], int | None]:
    """Names of the columns, those without one by their position, and the position of the target."""
    path, names = file.path, file.dialect.names
    present = [name for name in names if name or not raw]
    if len(set(present)) < len(present):
        twice = next(name for name in present if present.count(name) > 1)
        raise DataError(f"{path}, line {file.first_line}: two columns are called {twice!r}.")
    position = column_position(names, target, path)
    if not raw and "" in names and names.index("") != position:
        raise DataError(
            f"{path}, line {file.first_line}: column {names.index('')} has no name. If it numbers the rows, as pandas "
            "writes them without index=False, leave it out; else name it."
        )
    return csv_names(file), position


def _source(file: Csv) -> Any:
    import pyarrow as pa

    return pa.PythonFile(file.stream, mode="r")


def _options(file: Csv, names: list[str], types: dict[str, Any]) -> dict[str, Any]:
    from pyarrow import csv

    dialect = file.dialect
    skip = {"skip_rows_after_names": 1} if dialect.has_header else {}
    return {
        "read_options": csv.ReadOptions(column_names=names, block_size=_block(file), **skip),
        "parse_options": csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=_blank_or_wrong
        ),
        "convert_options": csv.ConvertOptions(
            null_values=NULLS, strings_can_be_null=True, decimal_point=dialect.decimal, column_types=types,
            true_values=["True", "TRUE", "true"], false_values=["False", "FALSE", "false"],
        ),
    }  # fmt: skip


def _block(file: Csv) -> int:
    """Bytes of a block, which must hold more than the longest line."""
    return min(max(BLOCK, 16 * file.dialect.width), MAX_LINE)


def _blank_or_wrong(row: Any) -> str:
    return "error" if row.text.strip() else "skip"


def _refused(file: Csv, error: Exception, features: Sequence[int], target: int | None) -> DataError:
    """The error with its line, where a second look finds it."""
    try:
        explain(file.path, file.dialect, features=features, target=target, longest=_block(file))
    except DataError as found:
        return found
    return DataError(f"{file.path}: cannot be read as CSV ({str(error).splitlines()[0][:200]}).")


def _labels(file: Csv, column: Any, name: str, position: int) -> np.ndarray:
    values = ["" if value is None else value.strip() for value in column.to_pylist()]
    if any(value.lower() in MISSING for value in set(values)):
        explain(file.path, file.dialect, target=position)
        raise DataError(f"{file.path}, column {name!r}: labels are missing.")
    return as_labels(values, file.path, f"the target column {name!r}")
