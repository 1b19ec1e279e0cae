"""Reader of Parquet files with a target column."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from . import _arrow
from ._csv import column_position
from ._files import DataError, Table, TextColumn, as_labels, check_memory, too_large

_ROW_NAMES = re.compile(r"__index_level_\d+__\Z")  # the index of a data frame, as pandas stores it


def read_parquet(path: str | os.PathLike[str], target: str | int | None = None, *, raw: bool = False) -> Table:
    """Read a Parquet file.  Needs pyarrow (extra ``data``).

    A nameless index of a data frame, which pandas stores beside its columns, is left out.

    Parameters
    ----------
    path : path
        The file.
    target : str or int, default=None
        Name or number (from 0; -1 is the last) of the column with the labels; None for a file without labels.
    raw : bool, default=False
        Whether columns may hold anything: text, dates, missing values.  Without it all columns but the target must be
        numbers or booleans.

    Returns
    -------
    table : Table
        ``X`` an array of float64 (raw: a data frame), ``y`` integers or strings (None without target),
        ``feature_names`` the other columns.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from skmargin.datasets import read_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.parquet"
    ...     pd.DataFrame({"width": [1.0, 2.0], "kind": ["a", "b"]}).to_parquet(path)
    ...     table = read_parquet(path, target="kind")
    >>> table.X.tolist(), table.y.tolist(), table.feature_names
    ([[1.0], [2.0]], ['a', 'b'], ['width'])
    """
    pa = _arrow.import_arrow("Parquet files")
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            if len(set(names)) < len(names):
                raise DataError(f"{path}: two columns have the same name.")
            position = column_position(names, target, path)
            features = [i for i, name in enumerate(names) if i != position and not _ROW_NAMES.match(name)]
            if not features:
                raise DataError(f"{path}: there is no column besides the target.")
            check_memory(path, 3 * 8 * max(file.metadata.num_rows, 0) * len(names))
            table = file.read()
            table.validate(full=True)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except MemoryError:
        raise DataError(too_large(path)) from None
    except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a sound Parquet file ({str(error).splitlines()[0][:200]}).") from None
    if table.num_rows == 0:
        raise DataError(f"{path}: the file holds no samples.")
    found = [names[i] for i in features]
    if raw:
        y = _labels(table.column(position), names[position], path) if position is not None else None
        return Table(_arrow.frame(table.select(features), found), y, found)
    X = np.empty((table.num_rows, len(features)))
    for j, i in enumerate(features):
        X[:, j] = _numbers(table.column(i), names[i], path)
    y = _labels(table.column(position), names[position], path) if position is not None else None
    return Table(X, y, found)


def _numbers(column: Any, name: str, path: Any) -> np.ndarray:
    import pyarrow.types as kinds

    kind = column.type
    if not (_arrow.is_number(kind) or kinds.is_boolean(kind)):
        raise TextColumn(f"{path}, column {name!r}: holds {kind}, not numbers. Encode such columns as numbers first.")
    _refuse_missing(column, name, path, "value")
    values = column.cast("float64", safe=False).to_numpy()
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        what = "the value is missing (NaN)" if np.isnan(values[bad[0]]) else "the value is not finite"
        raise DataError(f"{path}, row {bad[0] + 1}, column {name!r}: {what}.")
    return values


def _labels(column: Any, name: str, path: Any) -> np.ndarray:
    _refuse_missing(column, name, path, "label")
    values = column.to_pylist()
    if all(isinstance(value, bool) for value in values):
        return np.array(values)
    if all(isinstance(value, int) for value in values) and all(abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    if not all(isinstance(value, str | int | float) for value in values):
        raise DataError(f"{path}, column {name!r}: holds {column.type}, not labels (whole numbers or text).")
    return as_labels([str(value) for value in values], path, f"the target column {name!r}")


def _refuse_missing(column: Any, name: str, path: Any, what: str) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1
        raise DataError(f"{path}, row {row}, column {name!r}: the {what} is missing.")
