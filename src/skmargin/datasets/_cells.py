"""What the cells of a raw table say: text, numbers in the notations of several countries, dates in several formats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._types import RowsLike

MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-nan", "+nan", "<na>", "nat"}
_TRUTH = {"true": "True", "false": "False"}
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_GROUPED = {  # separators of thousands come in threes, and never behind the decimal sign
    ".": re.compile(r"([+-]?)(\d{1,3}(?:[,'\u2019\u00a0\u202f ]\d{3})+)(\.\d*)?", re.ASCII),
    ",": re.compile(r"([+-]?)(\d{1,3}(?:[.'\u2019\u00a0\u202f ]\d{3})+)(,\d*)?", re.ASCII),
}
_COMMA = re.compile(r"[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MONTHS = {
    name: i + 1
    for i, name in enumerate(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
}
_CLOCK = r"(?:[T ,]+(\d{1,2}):(\d\d)(?::(\d\d(?:[.,]\d+)?))?\s*([AaPp]\.?[Mm]\.?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?)?"
_DATES = {
    "ymd": re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})" + _CLOCK, re.ASCII),
    "any": re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)" + _CLOCK, re.ASCII),
    "dby": re.compile(r"(\d{1,2})[-/. ]+([A-Za-z]{3,9})\.?[-/., ]+(\d{4}|\d\d)" + _CLOCK, re.ASCII),
    "bdy": re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})" + _CLOCK, re.ASCII),
}
_EPOCH = datetime(1970, 1, 1)


def is_missing(value: Any) -> bool:
    """Whether a cell says nothing: None, NaN, NA of pandas, or a word for it."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return isinstance(value, str) and value.strip().lower() in MISSING


def as_text(value: Any) -> str:
    """The level that a cell names, "" where it is missing; one number or truth has one text however it is written."""
    if is_missing(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    text = str(value).strip()
    if _PLAIN.fullmatch(text):
        try:
            number = float(text)
        except ValueError:
            return text
        whole = math.isfinite(number) and number == int(number) and abs(number) < 2**53
        return str(int(number)) if whole else text
    return _TRUTH.get(text.lower(), text)


def as_float(value: Any, decimal: str = ".") -> float:
    """The number that a cell shows, NaN for all else; thousands may be divided, and infinity counts as missing."""
    if isinstance(value, bool | int | float | np.number | np.bool_):
        number = float(value)
        return number if math.isfinite(number) else math.nan
    if is_missing(value):
        return math.nan
    text = str(value).strip(" \t\r\n\u00a0\u202f").replace("\u2212", "-")
    grouped = _GROUPED[decimal].fullmatch(text)
    if grouped:
        sign, whole, rest = grouped.groups()
        text = sign + "".join(c for c in whole if c.isdigit()) + (rest or "").replace(",", ".")
    elif decimal == "," and _COMMA.fullmatch(text):
        text = text.replace(",", ".")
    elif decimal == "," or not _PLAIN.fullmatch(text):
        return math.nan
    number = float(text)
    return number if math.isfinite(number) else math.nan


def as_seconds(value: Any, day_first: bool = False) -> float:
    """Seconds since 1970 of a date with or without a time, NaN where the cell is none."""
    if isinstance(value, np.datetime64):
        return math.nan if np.isnat(value) else float(value.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(value, datetime):
        if type(value).__name__ == "NaTType":
            return math.nan
        moment = value.replace(tzinfo=None) - (value.utcoffset() or timedelta())
        return (moment - _EPOCH).total_seconds()
    if isinstance(value, date):
        return (datetime(value.year, value.month, value.day) - _EPOCH).total_seconds()
    if not isinstance(value, str):
        return math.nan
    found = split_date(value)
    if found is None:
        return math.nan
    form, (a, b, c), clock = found
    if form == "ymd":
        year, month, day = int(a), int(b), int(c)
    elif form == "any":
        first, second, year = int(a), int(b), int(c)
        day, month = (first, second) if (day_first and second <= 12) or first > 12 else (second, first)
    else:
        day, name, year = (int(a), b, int(c)) if form == "dby" else (int(b), a, int(c))
        month = _MONTHS.get(name[:3].lower(), 0)
    if form in ("any", "dby") and len(c) == 2:
        year += 1900 if year >= 69 else 2000
    return _moment(year, month, day, clock)


def split_date(text: str) -> tuple[str, tuple[str, str, str], tuple[Any, ...]] | None:
    """Form, three parts in the order of the text, and clock of a text that looks like a date."""
    for form, pattern in _DATES.items():
        match = pattern.fullmatch(text.strip())
        if match:
            parts = match.groups()
            if form == "any":
                return form, (parts[0], parts[2], parts[3]), parts[4:]
            if form in ("dby", "bdy") and parts[form == "dby"][:3].lower() not in _MONTHS:
                return None
            return form, (parts[0], parts[1], parts[2]), parts[3:]
    return None


def _moment(year: int, month: int, day: int, clock: tuple[Any, ...]) -> float:
    hour, minute, second, half, zone = clock
    seconds = 0.0
    if hour is not None:
        h = int(hour)
        if half:
            h = h % 12 + (12 if half[0] in "pP" else 0)
        if h > 24 or int(minute) > 59:
            return math.nan
        seconds = 3600.0 * h + 60.0 * int(minute) + float((second or "0").replace(",", "."))
        if zone and zone[0] in "+-":
            digits = zone[1:].replace(":", "")
            seconds -= (3600 * int(digits[:2]) + 60 * int(digits[2:])) * (1 if zone[0] == "+" else -1)
    try:
        return (datetime(year, month, day) - _EPOCH).total_seconds() + seconds
    except ValueError:
        return math.nan


def by_level(column: Any, function: Callable[[Any], Any], dtype: DTypeLike) -> np.ndarray:
    """A function of each cell, called once for each distinct one."""
    values = np.asarray(column, dtype=object)
    known: dict[Any, Any] = {}
    out = np.empty(len(values), dtype=dtype)
    for i, value in enumerate(values.tolist()):
        key = value if value.__class__ is str else (value.__class__, value)  # True is not 1
        try:
            result = known.get(key, known)
        except TypeError:  # a cell that cannot be a key, such as a list
            out[i] = function(value)
            continue
        if result is known:
            result = known[key] = function(value)
        out[i] = result
    return out


def columns_of(X: RowsLike) -> Iterable[Any]:
    """The columns of a frame or of an array, one after the other."""
    if hasattr(X, "iloc"):
        return (X.iloc[:, j] for j in range(X.shape[1]))
    if hasattr(X, "get_columns"):  # polars
        return iter(X.get_columns())
    array = np.asarray(X)
    array = array[:, None] if array.ndim == 1 else array
    return (array[:, j] for j in range(array.shape[1]))


def is_numeric(column: Any) -> bool:
    """Whether a column is stored as numbers or truth values."""
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    return kind in "biuf"


def floats(column: Any, decimal: str = ".") -> np.ndarray:
    """A column as float64, NaN where it is missing, infinite or no number."""
    if is_numeric(column):
        if hasattr(column, "to_numpy") and not isinstance(column.dtype, np.dtype):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)  # nullable numbers of pandas
        else:
            values = np.asarray(column, dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan) if not np.isfinite(values).all() else values
    return by_level(column, lambda cell: as_float(cell, decimal), np.float64)
