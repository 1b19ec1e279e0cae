"""Rows in blocks from files, arrays and iterators."""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from skmargin.rows.files import Batch, OpenRows
from skmargin.rows.maps import refuse_cut_map

from .._types import LabelsLike, RowsLike
from ._batch_copy import own_copy
from ._files import DataError, open_data
from ._libsvm import _parse_chunk
from ._open_parquet import arrow_for_blocks, choose_columns, from_parquet
from ._row_cache import (
    BATCH_BYTES,
    BATCH_ROWS,
    Chunk,
    cached,
    labels_of,
    read_array,
    read_batches,
    row_ranges,
    stamps,
)

_COMPRESSED = {".gz", ".bz2", ".xz"}
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-nan", "+nan"}


def open_rows(
    source: Any,
    target: Any = None,
    features: Any = None,
    cache: str | os.PathLike[str] | None = None,
) -> OpenRows:
    """Open rows that need not fit into memory, as blocks that are read again for each pass.

    Estimators take the result: ``CrammerSingerSVC().fit(rows)``; ``predict(rows)`` and ``decision_function(rows)``
    then yield one array for each block.

    Parameters
    ----------
    source : path, array, tuple or function
        - a Parquet file, a folder of such files, or a pattern (``"data/*.parquet"``);
        - a CSV or LIBSVM file (also compressed): it is converted once into a binary copy;
        - an ``.npy`` file with the rows, and another one with the labels as ``target``;
        - an array (also `numpy.memmap`, or CSR) of the rows with one of the labels as ``target``, or a tuple
          ``(X, y)`` or ``(X, y, weight)`` of arrays or of ``.npy`` files;
        - a function without arguments that returns an iterator of ``(X, y)`` or ``(X, y, weight)``, each time from the
          beginning and with the same blocks.
    target : str, int, path or array, default=None
        Column with the labels of a Parquet or CSV file, or the labels themselves; None for rows without labels, and
        for LIBSVM files, functions and tuples.
    features : list of str or int, or int, default=None
        Columns with the features of a Parquet or CSV file; None for all but the target.  For a LIBSVM file the number
        of features, for test data whose last features are all zero.
    cache : path, default=None
        Folder for the binary copy of a text file; None puts it beside the file.  It is used again as long as the size
        and the time of the file stay the same.  Parquet files and functions are copied only if it is named: rows of
        very many columns are then read in any order, which needs far fewer readings.  The copy of a function's rows is
        made anew each time, and goes with the result.

    Returns
    -------
    rows : OpenRows
        With ``n_features``, ``n_rows`` (None where it is not known yet) and ``feature_names``; iterating yields
        ``(X, y, weight)`` for each block.

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.datasets import open_rows
    >>> def blocks():
    ...     for seed in range(3):
    ...         rng = np.random.default_rng(seed)
    ...         y = rng.integers(3, size=100)
    ...         yield rng.normal(size=(100, 4)) + 2 * np.eye(3, 4)[y], y
    >>> rows = open_rows(blocks)
    >>> clf = CrammerSingerSVC().fit(rows)
    >>> [labels.shape for labels in clf.predict(rows)]
    [(100,), (100,), (100,)]
    """
    if callable(source):
        _refuse(source, target=target, features=features)
        return _from_function(source, cache)
    if isinstance(source, tuple):
        _refuse("a tuple", target=target, features=features, cache=cache)
        return _from_arrays(*source)
    if not isinstance(source, str | os.PathLike):
        _refuse("an array", features=features, cache=cache)
        return _from_arrays(source, target)
    path = Path(source)
    suffix = next((s for s in reversed([s.lower() for s in path.suffixes]) if s not in _COMPRESSED), "")
    if suffix == ".npy":
        _refuse("an .npy file", features=features, cache=cache)
        return _from_arrays(path, target)
    if path.is_dir() or suffix in (".parquet", ".pq") or (glob.has_magic(str(source)) and not path.exists()):
        return from_parquet(source, target, features, cache)
    if not path.is_file():
        raise DataError(f"{source}: no such file.")
    if suffix in (".csv", ".tsv"):
        return _from_csv(path, target, features, cache)
    if target is not None:
        raise DataError(f"{path}: is read as a LIBSVM file, whose labels come first; target is for Parquet and CSV.")
    return _from_libsvm(path, features, cache)


def _refuse(what: Any, **given: Any) -> None:
    """Refuse arguments that would do nothing."""
    name = what if isinstance(what, str) else "a function"
    for argument, value in given.items():
        if value is not None:
            raise ValueError(f"open_rows: {argument} does not apply to {name}.")


# ---- functions and arrays ----


def _from_function(function: Callable[[], Any], cache: Any) -> OpenRows:
    name = getattr(function, "__name__", type(function).__name__)

    def batches() -> Iterator[Batch]:
        for place, given in enumerate(function()):
            yield _as_batch(given, f"{name}, block {place}")

    first = next(batches(), None)
    if first is None:
        raise ValueError(f"{name}: the iterator that it returns is empty.")
    rows = OpenRows(name, batches, int(np.shape(first.X)[1]) if np.ndim(first.X) == 2 else 0)
    return rows if cache is None else own_copy(rows, Path(cache))


def _as_batch(given: Any, where: str) -> Batch:
    if not isinstance(given, tuple):
        return Batch(given, None, None)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"{where}: must be (X, y) or (X, y, weight), got a tuple of {len(given)}.")
    X, y, weight = (*given, None, None)[:3]
    return Batch(X, None if y is None else np.asarray(y), None if weight is None else np.asarray(weight))


class _NpyFile:
    """Rows of an ``.npy`` file, read as they are needed: no map of the file counts as memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                version = np.lib.format.read_magic(file)
                read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                self.shape, columns, self.dtype = read[version](file)
                self.start = file.tell()
        except FileNotFoundError:
            raise DataError(f"{path}: no such file.") from None
        except (ValueError, KeyError, OSError) as error:
            raise DataError(f"{path}: not an .npy file ({error}).") from None
        if self.dtype.hasobject or (columns and len(self.shape) > 1):
            raise DataError(f"{path}: must hold plain numbers or text, row after row (numpy.save in C order).")
        self.ndim = len(self.shape)

    def pieces(self, ranges: list[tuple[int, int]]) -> Iterator[np.ndarray]:
        width = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        with open(self.path, "rb") as file:
            for begin, end in ranges:
                file.seek(self.start + begin * width)
                raw = read_array(file, np.uint8, (end - begin) * width)
                yield raw.view(self.dtype).reshape(end - begin, *self.shape[1:])


def _from_arrays(X: RowsLike, y: LabelsLike = None, weight: Any = None) -> OpenRows:
    parts = [_part(one, name) for one, name in ((X, "X"), (y, "y"), (weight, "weight"))]
    rows = parts[0]
    if rows is None or len(rows.shape) != 2:
        raise ValueError("open_rows: the rows must be a table of two dimensions.")
    n, d = rows.shape
    for part, name in zip(parts[1:], ("labels", "weights"), strict=True):
        if part is not None and tuple(part.shape) != (n,):
            raise ValueError(f"open_rows: {n} rows, but {name} of shape {tuple(part.shape)}.")
    per_row = rows.dtype.itemsize * d
    if sparse.issparse(rows):
        per_row = int(12 * rows.nnz / max(1, n))
    step = max(1, min(BATCH_ROWS, BATCH_BYTES // max(1, per_row)))

    def slices(part: Any, ranges: list[tuple[int, int]]) -> Iterator[Any]:
        if isinstance(part, _NpyFile):
            return part.pieces(ranges)
        return (None if part is None else whole(part)[begin:end] for begin, end in ranges)

    def whole(part: Any) -> Any:
        refuse_cut_map(part, "open_rows")
        return part

    def pieces(ranges: list[tuple[int, int]]) -> Iterator[Batch]:
        for some in zip(*(slices(part, ranges) for part in parts), strict=True):
            yield Batch(*some)

    def batches() -> Iterator[Batch]:
        return pieces([(at, min(at + step, n)) for at in range(0, n, step)])

    files = [part.path for part in parts if isinstance(part, _NpyFile)]
    name = str(files[0]) if files else "X"
    return OpenRows(name, batches, d, n_rows=n, stamp=stamps(files) if files else None, pieces=pieces)


def _part(part: Any, name: str) -> Any:
    if part is None or sparse.issparse(part):
        return part.tocsr() if part is not None else None
    if isinstance(part, str | os.PathLike):
        return _NpyFile(Path(part))
    return part if isinstance(part, np.ndarray) else np.asarray(part)


# ---- text ----


def _from_csv(path: Path, target: Any, features: Any, cache: Any) -> OpenRows:
    pa = arrow_for_blocks()
    import pyarrow.csv as pacsv

    head, start, line = _first_line(path)
    delimiter = max(",;\t", key=head.count)
    cells = [cell.strip() for cell in next(csv.reader([head], delimiter=delimiter))]
    named = not all(_is_number(cell) for cell in cells)
    names = cells if named else [str(place) for place in range(len(cells))]
    if len(set(names)) < len(names):
        raise DataError(
            f"{path}, line {line}: two columns are called {next(n for n in names if names.count(n) > 1)!r}."
        )
    at, chosen = choose_columns(names, target, features, path)
    columns = [names[place] for place in chosen]
    kinds: dict[str, Any] = {name: pa.float64() for name in columns}
    if at is not None:
        kinds[names[at]] = pa.string()

    def parse(text: bytes, first: int) -> Chunk:
        try:
            table = pacsv.read_csv(
                pa.BufferReader(text),
                read_options=pacsv.ReadOptions(column_names=names, use_threads=False),
                parse_options=pacsv.ParseOptions(delimiter=delimiter),
                convert_options=pacsv.ConvertOptions(
                    column_types=kinds, include_columns=list(kinds), strings_can_be_null=False
                ),
            )
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise DataError(f"{path}, in the lines from {first} on: {str(error).splitlines()[0][:200]}.") from None
        X = np.empty((table.num_rows, len(columns)))
        for j, name in enumerate(columns):
            X[:, j] = table.column(j).to_numpy()
            if not np.isfinite(X[:, j]).all():
                row = first + int(np.flatnonzero(~np.isfinite(X[:, j]))[0])
                what = "missing" if np.isnan(X[row - first, j]) else "not a finite number"
                raise DataError(f"{path}, line {row}, column {name!r}: the value is {what}.")
        labels = [] if at is None else [label.strip() for label in table.column(len(columns)).to_pylist()]
        for row, label in enumerate(labels):
            if label.lower() in _MISSING:
                raise DataError(f"{path}, line {first + row}, column {names[at]!r}: the label is missing.")  # type: ignore[index]
        return Chunk(labels, X)

    about = {"target": at, "features": chosen, "names": names, "n_features": len(columns), "sparse": False}
    begin, first = (start + len(head.encode()) + 1, line + 1) if named else (start, line)
    folder, meta = cached(path, cache, about, begin, first, parse)

    def pieces(ranges: list[tuple[int, int]]) -> Iterator[Batch]:
        return read_batches(folder, meta, ranges)

    return OpenRows(
        str(path), lambda: pieces(row_ranges(meta)), len(columns), n_rows=meta["n_rows"], feature_names=columns,
        labels=labels_of(meta, path), stamp=stamps([path]), pieces=pieces,
    )  # fmt: skip


def _first_line(path: Path) -> tuple[str, int, int]:
    """The first line that is not blank, without its end; where it begins, and its number."""
    with open_data(path) as stream:
        offset, number = 0, 1
        while raw := stream.readline(1 << 24):
            text = raw.removesuffix(b"\n")
            if text.strip():
                try:
                    head = text.decode("utf-8")
                except UnicodeDecodeError:
                    raise DataError(f"{path}, line {number}: not UTF-8 text.") from None
                mark = head.startswith("\ufeff")
                return head.removeprefix("\ufeff"), offset + 3 * mark, number
            offset, number = offset + len(raw), number + 1
    raise DataError(f"{path}: the file is empty.")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _from_libsvm(path: Path, features: Any, cache: Any) -> OpenRows:
    if features is not None and not (isinstance(features, int | np.integer) and features > 0):
        raise ValueError(f"open_rows: features of a LIBSVM file is their number, got {features!r}.")

    def parse(text: bytes, first: int) -> Chunk:
        labels, counts, indices, values = _parse_chunk(text, first, path)
        return Chunk(labels, None, counts, indices, values)

    folder, meta = cached(path, cache, {"sparse": True}, 0, 1, parse)
    if meta["highest"] < 0:
        raise DataError(f"{path}: the file holds no index:value entries: not a LIBSVM file.")
    base = int(meta["lowest"] > 0)
    d = meta["highest"] + 1 - base
    if features is not None:
        if d > features:
            raise DataError(f"{path}: the file has {d} features, but features={features} are expected.")
        d = int(features)

    def pieces(ranges: list[tuple[int, int]]) -> Iterator[Batch]:
        return read_batches(folder, meta | {"n_features": d}, ranges, base)

    return OpenRows(
        str(path), lambda: pieces(row_ranges(meta)), d, n_rows=meta["n_rows"],
        labels=labels_of(meta, path), stamp=stamps([path]), pieces=pieces,
    )  # fmt: skip
