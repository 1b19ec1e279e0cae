"""What to do with each column of a raw table.  The labels are never looked at here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._types import RowsLike
from ._cells import as_float, as_seconds, as_text, by_level, columns_of, floats, is_numeric, split_date
from ._columns import moments
from ._files import DataError

Kind = Literal["number", "category", "text", "date", "left out"]
MAX_LEVELS = 40  # text with more distinct values is taken for text
MOSTLY = 0.9  # share of cells that makes a column one of numbers or of dates
LONG = 50  # mean length of texts whose words count, not their letters
MIN_ROWS = 20  # fewer rows do not show that a column numbers them
_ID_NAME = re.compile(r"(.*[\W_])?(id|uuid|guid|index|key|nr|no)|.*[a-z](Id|ID|Key|Index)", re.ASCII)
UNNAMED = re.compile(r"(Unnamed: \d+|)\Z")


@dataclass(frozen=True)
class Column:
    """One column: its name, what it is taken for and why, what is worth a warning, and how its cells are read."""

    name: Any
    kind: Kind
    why: str = ""
    warning: str = ""
    decimal: str = "."
    day_first: bool = False
    hours: bool = False
    long: bool = False

    def __str__(self) -> str:
        return f"{self.kind} ({self.why})" if self.why else self.kind


def plan_columns(
    X: RowsLike,
    *,
    drop: Iterable[Any] = (),
    number: Iterable[Any] = (),
    categorical: Iterable[Any] = (),
    text: Iterable[Any] = (),
    date: Iterable[Any] = (),
    decimal: str | None = None,
) -> list[Column]:
    """Decide for each column of a table what it is.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_columns)
        The table, without the labels.
    drop, number, categorical, text, date : iterables of column names
        Columns that are left out, or of a kind that was not detected.
    decimal : {".", ","}, default=None
        Decimal sign of numbers that are text; None detects it.

    Returns
    -------
    columns : list of Column
        In the order of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from skmargin.datasets import plan_columns
    >>> table = pd.DataFrame({"size": ["1,5", "2,25", None], "colour": ["red", "blue", "red"], "same": [1, 1, 1]})
    >>> for column in plan_columns(table):
    ...     print(column.name, "->", column)
    size -> number (decimal commas, 1 missing)
    colour -> category (2 levels)
    same -> left out (constant)
    """
    names = column_names(X)
    forced: dict[Any, Kind] = {}
    kinds: dict[str, tuple[Kind, Iterable[Any]]] = {
        "drop": ("left out", drop), "number": ("number", number), "categorical": ("category", categorical),
        "text": ("text", text), "date": ("date", date),
    }  # fmt: skip
    for option, (kind, chosen) in kinds.items():
        for name in chosen:
            if name not in names:
                known = ", ".join(repr(n) for n in names[:20]) + (", ..." if len(names) > 20 else "")
                raise DataError(f"{option} names the column {name!r}, which is not there; the columns are {known}.")
            if name in forced and forced[name] != kind:
                raise DataError(f"The column {name!r} is named twice, as {forced[name]} and as {kind}.")
            forced[name] = kind
    columns = list(columns_of(X))
    decimal = decimal or getattr(X, "attrs", {}).get("decimal") or _decimal_of(columns)
    return [_plan(name, cells, forced.get(name), decimal) for name, cells in zip(names, columns, strict=True)]


def column_names(X: RowsLike) -> list[Any]:
    """Names of the columns of a frame, positions of those of an array."""
    columns = getattr(X, "columns", None)
    return list(range(np.asarray(X).shape[1])) if columns is None else list(columns)


def _plan(name: Any, cells: Any, forced: Kind | None, decimal: str) -> Column:
    if forced == "left out":
        return Column(name, "left out", "as you say")
    if is_numeric(cells) and getattr(cells.dtype, "kind", "") != "b":
        return _of_numbers(name, cells, forced)
    if getattr(getattr(cells, "dtype", None), "kind", "") == "M":
        return _of_dates(name, cells, forced)
    return _of_text(name, cells, forced, decimal)


def _of_numbers(name: Any, cells: Any, forced: Kind | None) -> Column:
    if forced not in (None, "number"):
        return _of_text(name, cells, forced, ".")
    values = floats(cells)
    present = values[~np.isnan(values)]
    why = _missing(len(values) - len(present))
    if forced == "number":
        return Column(name, "number", why)
    if not len(present):
        return Column(name, "left out", "empty")
    if len(present) == len(values) and present.min() == present.max():
        return Column(name, "left out", "constant")
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers at the end of the range
        steps = np.diff(values)
    rows = len(values) >= MIN_ROWS or (len(values) > 1 and UNNAMED.match(str(name)))
    if rows and len(present) == len(values):
        if steps[0] != 0 and np.all(steps == steps[0]) and values[0] == np.floor(values[0]) and abs(steps[0]) == 1:
            warning = "" if UNNAMED.match(str(name)) else f"column {name!r} numbers the rows: left out."
            return Column(name, "left out", "numbers the rows", warning)
        unique = len(np.unique(values)) == len(values)
        if unique and np.all(values == np.floor(values)) and _ID_NAME.fullmatch(str(name)):
            return Column(name, "left out", "an id", f"column {name!r} looks like an id (all different): left out.")
        if unique and (np.all(steps > 0) or np.all(steps < 0)):
            warning = (
                f"column {name!r} {'rises' if steps[0] > 0 else 'falls'} from row to row, as an id or a time does."
            )
            return Column(name, "number", why, f"{warning} Drop it if the file is sorted by it.")
    return Column(name, "number", why)


def _of_dates(name: Any, cells: Any, forced: Kind | None) -> Column:
    if forced not in (None, "date"):
        return _of_text(name, cells, forced, ".")
    stamps = moments(cells)
    missing = np.isnat(stamps)
    if missing.all():
        return Column(name, "left out", "empty")
    whole = stamps[~missing].astype("datetime64[D]").astype("datetime64[us]") == stamps[~missing]
    if forced is None and not missing.any() and (stamps == stamps[0]).all():
        return Column(name, "left out", "constant")
    return Column(name, "date", _missing(int(missing.sum())), hours=not bool(whole.all()))


def _of_text(name: Any, cells: Any, forced: Kind | None, decimal: str) -> Column:
    texts = by_level(cells, as_text, object)
    levels = Counter(texts.tolist())
    n_missing = levels.pop("", 0)
    n = len(texts) - n_missing
    why = _missing(n_missing)
    if not n and forced is None:
        return Column(name, "left out", "empty")
    if forced is None and len(levels) == 1 and not n_missing:
        return Column(name, "left out", "constant")
    raw = Counter(cell for cell in np.asarray(cells, dtype=object).tolist() if as_text(cell) != "")
    if forced in (None, "number"):
        found = _as_numbers(name, raw, n, n_missing, decimal, forced)
        if found is not None:
            return found
    if forced in (None, "date"):
        found = _as_dates(name, raw, n, n_missing, forced)
        if found is not None:
            return found
    if forced is None and n == len(levels) and n >= MIN_ROWS:
        words = np.mean([len(level.split()) for level in levels])
        if words < 1.05 and (max(map(len, levels)) <= 64):
            return Column(name, "left out", "an id", f"column {name!r} looks like an id (all different): left out.")
    if forced == "category" or (forced is None and len(levels) <= MAX_LEVELS):
        return Column(name, "category", _join(f"{len(levels)} levels", why))
    long = bool(levels) and sum(len(level) * times for level, times in levels.items()) > LONG * n
    return Column(name, "text", _join(f"{len(levels)} different", why), long=long)


def _as_numbers(
    name: Any, raw: Counter[Any], n: int, n_missing: int, decimal: str, forced: Kind | None
) -> Column | None:
    if any(isinstance(cell, bool | np.bool_) for cell in raw):
        return None if forced is None else Column(name, "number", _missing(n_missing))
    best, sign = -1, decimal
    for candidate in (decimal, "," if decimal == "." else "."):
        right = sum(times for cell, times in raw.items() if not np.isnan(as_float(cell, candidate)))
        if right > best:
            best, sign = right, candidate
    if forced is None and (best < MOSTLY * n or best == 0):
        return None
    odd = next((cell for cell in raw if np.isnan(as_float(cell, sign))), None)
    commas = "decimal commas" if sign == "," and any("," in str(cell) for cell in raw) else ""
    words = "" if odd is None else f"{n - best} cells that are no numbers, such as {str(odd)[:20]!r}, count as missing"
    return Column(name, "number", _join(commas, words, _missing(n_missing)), decimal=sign)


def _as_dates(name: Any, raw: Counter[Any], n: int, n_missing: int, forced: Kind | None) -> Column | None:
    right = sum(times for cell, times in raw.items() if not np.isnan(as_seconds(cell)))
    if forced is None and (right < MOSTLY * n or right == 0):
        return None
    found = [(cell, split_date(cell)) for cell in raw if isinstance(cell, str)]
    unclear = [(cell, parts[1]) for cell, parts in found if parts is not None and parts[0] == "any"]
    first = sum(int(parts[0]) > 12 for _, parts in unclear)
    second = sum(int(parts[1]) > 12 for _, parts in unclear)
    day_first = first > second if first or second else any("/" not in cell for cell, _ in unclear)
    hours = any(parts is not None and parts[2][0] is not None for _, parts in found)
    hours = hours or any(getattr(cell, "hour", 0) or getattr(cell, "minute", 0) for cell in raw)
    order = ("day" if day_first else "month") + " first" if unclear else ""
    odd = "" if right == n else f"{n - right} cells that are no dates count as missing"
    why = _join(order, odd, _missing(n_missing))
    return Column(name, "date", why, day_first=day_first, hours=hours)


def _decimal_of(columns: Iterable[Any]) -> str:
    """A comma where some column consists of numbers only if commas are decimal signs."""
    for cells in columns:
        if is_numeric(cells) or getattr(getattr(cells, "dtype", None), "kind", "") == "M":
            continue
        some = [cell for cell in dict.fromkeys(np.asarray(cells, dtype=object)[:5000].tolist()) if as_text(cell) != ""]
        if not any(isinstance(cell, str) and "," in cell for cell in some):
            continue
        signs = {sign: sum(not np.isnan(as_float(cell, sign)) for cell in some) for sign in ".,"}
        if signs[","] >= MOSTLY * len(some) and signs[","] > signs["."]:
            return ","
    return "."


def _missing(n: int) -> str:
    return f"{n} missing" if n else ""


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
