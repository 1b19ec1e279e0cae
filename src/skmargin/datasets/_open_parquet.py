"""Rows in blocks from Parquet files: one after the other, or row groups in any order."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skmargin.rows.files import Batch, OpenRows

from ._batch_copy import named_copy
from ._files import DataError
from ._row_cache import BATCH_BYTES, BATCH_ROWS, stamp_of, stamps

# Row groups are read whole where they are read in any order: so many at least, of so many bytes at most.
LEAST_GROUPS, GROUP_BYTES = 16, 1 << 28


def from_parquet(source: Any, target: Any, features: Any, cache: Any) -> OpenRows:
    """Rows of a file, of the files of a folder, or of those of a pattern."""
    pa = arrow_for_blocks()
    table, files, n_rows = _dataset(pa, source)
    schema = table.schema
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    at, chosen = choose_columns(names, target, features, source)
    kinds = [schema.field(names[place]).type for place in chosen]
    for place, kind in zip(chosen, kinds, strict=True):
        _check_kind(pa, kind, names[place], source)
    dtype = np.float32 if all(kind in (pa.float32(), pa.float16()) for kind in kinds) else np.float64
    columns, label = [names[place] for place in chosen], None if at is None else names[at]
    reader = _Reader(pa, str(source), table, columns, label, np.dtype(dtype))
    edges, groups = reader.groups()
    whole = np.diff(edges).max(initial=0) * dtype().itemsize * len(chosen)

    def pieces(ranges: list[tuple[int, int]]) -> Iterator[Batch]:
        return reader.pieces(ranges, edges, groups)

    in_any_order = len(groups) >= LEAST_GROUPS and whole <= GROUP_BYTES and cache is None
    rows = OpenRows(
        str(source), reader.batches, len(chosen), n_rows=n_rows, feature_names=columns, stamp=stamps(files),
        pieces=pieces if in_any_order else None, edges=edges,
    )  # fmt: skip
    if cache is None:
        return rows
    about = {"files": [[str(file), *stamp_of(file)] for file in files], "target": label, "features": columns}
    return named_copy(rows, Path(cache), Path(str(source)).name.replace("*", "_"), about)


def _dataset(pa: Any, source: Any) -> tuple[Any, list[Path], int]:
    """The files as one table, in the order of their names, and its number of rows."""
    import pyarrow.dataset as pads

    given: Any = str(source)
    if glob.has_magic(given) and not Path(given).exists():
        given = sorted(glob.glob(given, recursive=True))
        if not given:
            raise DataError(f"{source}: no file has such a name.")
    try:
        table = pads.dataset(given, format="parquet", partitioning="hive")
        files = sorted(map(Path, table.files))
        if not files:
            raise DataError(f"{source}: the folder holds no Parquet file.")
        table = pads.dataset([str(path) for path in files], format="parquet", schema=table.schema,
                             partitioning=table.partitioning)  # fmt: skip
        return table, files, int(table.count_rows())
    except FileNotFoundError:
        raise DataError(f"{source}: no such file.") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{source}: not sound Parquet files ({str(error).splitlines()[0][:200]}).") from None


@dataclass
class _Reader:
    """The wanted columns of a table."""

    pa: Any
    name: str
    table: Any
    columns: list[str]
    target: str | None
    dtype: np.dtype

    @property
    def wanted(self) -> dict[str, Any]:
        """What is scanned, and how."""
        step = max(1, min(BATCH_ROWS, BATCH_BYTES // (self.dtype.itemsize * len(self.columns))))
        columns = self.columns if self.target is None else [*self.columns, self.target]
        return {"columns": columns, "batch_size": step, "use_threads": False}

    @contextmanager
    def errors(self) -> Iterator[None]:
        """What Arrow says, in a sentence of ours."""
        try:
            yield
        except (self.pa.ArrowException, OSError) as error:
            first = (str(error).splitlines() or [""])[0][:200]
            raise DataError(f"{self.name}: cannot be read to the end ({first}).") from None

    def batches(self) -> Iterator[Batch]:
        """All rows."""
        with self.errors():
            scanner = self.table.scanner(batch_readahead=1, fragment_readahead=1, **self.wanted)
            for block, some in enumerate(scanner.to_batches()):
                yield self._batch(some, f"{self.name}, block {block}")

    def groups(self) -> tuple[np.ndarray, list[Any]]:
        """The row groups, and where each begins among all rows, with their number at the end."""
        with self.errors():
            groups = [part for file in self.table.get_fragments() for part in file.split_by_row_group()]
            sizes = [sum(group.num_rows for group in part.row_groups) for part in groups]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), groups

    def pieces(self, ranges: list[tuple[int, int]], edges: np.ndarray, groups: list[Any]) -> Iterator[Batch]:
        """The rows of ranges; each costs the reading of all row groups in which it has rows."""
        for begin, end in ranges:
            first, last = np.searchsorted(edges, begin, side="right") - 1, np.searchsorted(edges, end)
            parts = [part for place in range(first, last) for part in self._group(groups[place], place)]
            X, y = zip(*parts, strict=True)
            some = slice(begin - int(edges[first]), end - int(edges[first]))
            yield Batch(np.concatenate(X)[some], None if self.target is None else np.concatenate(y)[some], None)

    def _group(self, group: Any, place: int) -> Iterator[tuple[np.ndarray, Any]]:
        with self.errors():
            for some in group.scanner(schema=self.table.schema, batch_readahead=1, **self.wanted).to_batches():
                yield self._batch(some, f"{self.name}, row group {place}")[:2]

    def _batch(self, some: Any, where: str) -> Batch:
        X = np.empty((some.num_rows, len(self.columns)), dtype=self.dtype)
        for j, name in enumerate(self.columns):
            X[:, j] = _numbers(some.column(j), name, where)
        if self.target is None:
            return Batch(X, None, None)
        return Batch(X, _labels(self.pa, some.column(len(self.columns)), self.target, where), None)


def _check_kind(pa: Any, kind: Any, name: str, path: Any) -> None:
    t = pa.types
    if not (t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_decimal(kind)):
        raise DataError(f"{path}, column {name!r}: holds {kind}, not numbers. Name the columns to use with features.")


def _refuse_missing(column: Any, name: str, where: str, what: str) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(f"{where}, row {row}, column {name!r}: the {what} is missing.")


def _numbers(column: Any, name: str, where: str) -> np.ndarray:
    _refuse_missing(column, name, where, "value")
    if str(column.type).startswith("decimal"):
        column = column.cast("float64", safe=False)
    return column.to_numpy(zero_copy_only=False)


def _labels(pa: Any, column: Any, name: str, where: str) -> np.ndarray:
    _refuse_missing(column, name, where, "label")
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return column.to_numpy(zero_copy_only=False)
    if not pa.types.is_dictionary(kind):
        column = column.dictionary_encode()
    distinct = column.dictionary.to_pylist()
    if not all(isinstance(label, str | int) for label in distinct):
        raise DataError(f"{where}, column {name!r}: holds {kind}, not labels (whole numbers or text).")
    return np.array(distinct)[column.indices.to_numpy(zero_copy_only=False)]


def choose_columns(names: list[str], target: Any, features: Any, path: Any) -> tuple[int | None, list[int]]:
    """Positions of the target and of the features."""

    def position(wanted: Any) -> int:
        if wanted in names:
            return names.index(wanted)
        if isinstance(wanted, int | np.integer) and -len(names) <= wanted < len(names):
            return int(wanted) % len(names)
        if isinstance(wanted, str) and wanted.lstrip("-").isdigit() and -len(names) <= int(wanted) < len(names):
            return int(wanted) % len(names)
        known = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
        raise DataError(f"{path}: there is no column {wanted!r}; the columns are {known}.")

    at = None if target is None else position(target)
    if features is None:
        chosen = [place for place in range(len(names)) if place != at]
    elif isinstance(features, str | int):
        raise ValueError(f"open_rows: features must be a list of columns, got {features!r}.")
    else:
        chosen = [position(one) for one in features]
    if at in chosen:
        raise DataError(f"{path}: the target {names[at]!r} cannot be one of the features.")
    if not chosen:
        raise DataError(f"{path}: there is no column besides the target.")
    return at, chosen


def arrow_for_blocks() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError("Parquet and CSV in blocks need pyarrow: pip install 'skmargin[data]'.") from None
    return pyarrow
