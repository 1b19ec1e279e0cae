"""Columns of Arrow as arrays of NumPy and frames of pandas."""

from __future__ import annotations

from typing import Any

import numpy as np

NEEDED = "{} need pyarrow: pip install 'skmargin[data]'."


def import_arrow(what: str) -> Any:
    """The package, or the sentence that says how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(NEEDED.format(what)) from None
    return pyarrow


def is_number(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers."""
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def numbers(column: Any) -> np.ndarray:
    """A column of numbers or truth values as float64; NaN where it is missing."""
    return np.asarray(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))


def cells(column: Any) -> np.ndarray:
    """A column as NumPy holds it best: numbers, truth values, moments, else objects with None for what is missing."""
    import pyarrow as pa
    import pyarrow.types as kinds

    kind = column.type
    if kinds.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if is_number(kind):
        whole = kinds.is_integer(kind) and not column.null_count
        return column.to_numpy(zero_copy_only=False) if whole else numbers(column)
    if kinds.is_boolean(kind):
        return column.to_numpy(zero_copy_only=False)
    if kinds.is_date(kind) or kinds.is_timestamp(kind):
        return column.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
    if kinds.is_null(kind):
        return np.full(len(column), None, dtype=object)
    if not (kinds.is_string(kind) or kinds.is_large_string(kind)):
        try:
            column = column.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return np.array([None if v is None else str(v) for v in column.to_pylist()], dtype=object)
    return column.to_numpy(zero_copy_only=False)


def frame(table: Any, names: Any = None) -> Any:
    """A frame of the columns, without guessing again what they are."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(NEEDED.format("Raw tables").replace("pyarrow", "pandas")) from None
    named = {}
    for i, name in enumerate(table.schema.names if names is None else names):
        values = cells(table.column(i))
        named[name] = pd.Series(values, dtype=values.dtype, copy=False)
    return pd.DataFrame(named, copy=False)
