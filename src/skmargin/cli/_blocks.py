"""Rows for a saved model, block by block: memory holds one block, whatever the size of the file."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags

from .._types import Estimator, RowsLike
from ..datasets import BUILT_IN, DataError, load_dataset
from ..datasets import _arrow as arrow
from ..datasets._cells import as_text, by_level, floats
from ..datasets._csv import OTHERWISE, column_position, csv_names, stream_csv
from ..datasets._csv_errors import explain
from ..datasets._dialect import Csv, open_csv
from ..datasets._files import check_memory
from ..datasets._load import suffix_of
from ..model_files import describe_model, load_model

log = logging.getLogger("skmargin.cli")
ROWS = 1 << 16  # of a block that does not come from text


class Block(NamedTuple):
    """Some rows as the model takes them, their labels as text (None without), and the columns that are kept."""

    X: RowsLike
    y: np.ndarray | None
    kept: dict[str, Any]


@dataclass
class SavedModel:
    """A model from a file, and what it needs of a table."""

    path: Path
    estimator: Estimator = field(init=False)
    metadata: dict[str, Any] = field(init=False)
    names: list[str] | None = field(init=False)
    types: dict[str, str] = field(init=False)  # of the columns, as far as they are known

    def __post_init__(self) -> None:
        self.estimator = load_model(self.path)
        document = describe_model(self.path)
        metadata = document["metadata"]
        self.metadata = metadata if isinstance(metadata, dict) else {}
        names = document.get("feature_names") or self.metadata.get("feature_names")
        self.names = [str(name) for name in names] if isinstance(names, list) else None
        types = document.get("feature_types") or []
        self.types = dict(zip(self.names or (), types, strict=False))
        if self.names is not None and self.table is None:
            self.types = dict.fromkeys(self.names, "number")
        elif self.table is not None:
            self.types |= {name: kind for name, kind in _kinds(self.table).items() if name in self.types}

    @property
    def table(self) -> Any:
        """The transformer of a raw table that stands first, or None where the model takes numbers only."""
        first = self.estimator.steps[0][1] if hasattr(self.estimator, "steps") else self.estimator
        return first if hasattr(first, "transformers_") else None

    def numbers(self) -> set[str]:
        """Columns that hold numbers."""
        return {name for name, kind in self.types.items() if kind == "number"}


def _kinds(table: Any) -> dict[str, str]:
    """What the parts of our own preprocessor read, by column; nothing of other transformers."""
    found: dict[str, str] = {}
    for _, part, names in table.transformers_:
        reader = type(part[0]).__name__ if hasattr(part, "steps") else ""
        kind = {"ParseNumbers": "number", "ParseText": "text", "DateParts": "text"}.get(reader)
        if kind is not None:
            found |= {str(name): kind for name in names}
    return found


class ReadAgain(Exception):
    """The beginning of the file has misled: ``changes`` are attributes of `Blocks` for another try."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(str(changes))
        self.changes = changes


@dataclass
class Blocks:
    """The rows of a source; go through them once."""

    model: SavedModel
    source: str
    target: str | None = None
    keep: tuple[str, ...] = ()
    labelled: bool = False
    encoding: str | None = None
    decimal: str | None = None
    as_cells: bool = False  # read numbers as text: slower, and nothing has to be begun again
    final: bool = False  # what was written or read cannot be taken back
    n_bytes: int = 0  # read so far

    def __iter__(self) -> Iterator[Block]:
        if self.source == "-" or (self.source not in BUILT_IN and suffix_of(self.source) in (".csv", ".tsv")):
            return self._of_csv()
        if self.source not in BUILT_IN and suffix_of(self.source) in (".parquet", ".pq"):
            return self._of_parquet()
        return self._of_memory()

    # -- tables -------------------------------------------------------------------------------------------------------

    def _of_csv(self) -> Iterator[Block]:
        pa = arrow.import_arrow("CSV files")
        path = sys.stdin.buffer if self.source == "-" else self.source
        where = "standard input" if self.source == "-" else self.source
        with open_csv(path, self.encoding, self.decimal, name=where) as file:
            names = csv_names(file)
            needed, position = self._columns(names, where)
            number = pa.string() if self.as_cells and self.model.table is not None else pa.float64()
            kinds = {"number": number, "text": pa.string()}  # of others Arrow finds out
            expected = self.model.types if self.model.names is not None else dict.fromkeys(needed, "number")
            types = {name: kinds[expected[name]] for name in needed if expected.get(name) in kinds}
            target = None if position is None else names[position]
            types |= {name: pa.string() for name in (*self.keep, *([target] if target is not None else []))}
            columns = list(dict.fromkeys([*needed, *types]))
            try:
                for batch in stream_csv(file, names, types, columns):
                    self.n_bytes = file.stream.n_bytes
                    yield self._block(batch, needed, target, file.dialect.decimal, file)
            except (pa.ArrowException, UnicodeDecodeError) as error:
                if not self.final:
                    if isinstance(error, UnicodeDecodeError) and self.encoding is None:
                        raise ReadAgain(encoding=OTHERWISE["utf-8"]) from None
                    if self.model.table is not None and not self.as_cells and "conversion error" in str(error):
                        raise ReadAgain(as_cells=True) from None
                self._explain(file, names, needed, None)
                raise DataError(f"{where}: cannot be read as CSV ({str(error).splitlines()[0][:200]}).") from None

    def _of_parquet(self) -> Iterator[Block]:
        pa = arrow.import_arrow("Parquet files")
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.source) as file:
                names = list(file.schema_arrow.names)
                needed, position = self._columns(names, self.source)
                target = None if position is None else names[position]
                columns = list(dict.fromkeys([*needed, *self.keep, *([target] if target is not None else [])]))
                for batch in file.iter_batches(batch_size=ROWS, columns=columns):
                    batch.validate(full=True)
                    self.n_bytes += batch.nbytes
                    yield self._block(batch, needed, target, ".", None)
        except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
            raise DataError(f"{self.source}: not a sound Parquet file ({str(error).splitlines()[0][:200]}).") from None

    def _columns(self, names: Sequence[str], where: Any) -> tuple[list[str], int | None]:
        """Names of the columns that the model needs, and the position of the labels."""
        position = column_position(names, self.target, where)
        needed = self.model.names
        if needed is None:  # a model without names takes the other columns as they come
            needed = [name for i, name in enumerate(names) if i != position and name not in self.keep]
            d = int(self.model.estimator.n_features_in_)
            if len(needed) != d:
                raise DataError(
                    f"{where}: has {len(needed)} features, the model {self.model.path} needs {d}. "
                    "If a column holds labels, name it with --target."
                )
        for name in (*needed, *self.keep):
            if names.count(name) != 1:
                what = "which the model needs, " if name in needed else ""
                state = "is missing" if name not in names else "is there twice"
                raise DataError(f"{where}: the column {name!r}, {what}{state}.")
        return needed, position

    def _block(self, batch: Any, needed: list[str], target: str | None, decimal: str, file: Csv | None) -> Block:
        y = None
        if target is not None:
            y = by_level(arrow.cells(batch.column(target)), as_text, object)
            if (y == "").any():
                self._explain(file, None, [], target)
                raise DataError(f"{self.source}, column {target!r}: the label is missing.")
        kept = {name: batch.column(name) for name in self.keep}
        if self.model.table is not None:
            frame = arrow.frame(batch.select(needed), needed)
            if self.as_cells:
                for name in self.model.numbers() & set(needed):
                    frame[name] = floats(frame[name], decimal)
            return Block(frame, y, kept)
        X = np.empty((batch.num_rows, len(needed)), order="F")
        for j, name in enumerate(needed):
            column = batch.column(name)
            if not (arrow.is_number(column.type) or str(column.type) == "bool"):
                raise DataError(f"{self.source}, column {name!r}: holds {column.type}, not numbers.")
            X[:, j] = arrow.numbers(column)
        if not np.isfinite(X).all():
            self._explain(file, None, needed, None)
            bad = needed[int(np.flatnonzero(~np.isfinite(X).all(axis=0))[0])]
            raise DataError(f"{self.source}, column {bad!r}: a value is missing or not finite.")
        return Block(X, y, kept)

    def _explain(self, file: Csv | None, names: Any, needed: Sequence[str], target: str | None) -> None:
        """Name the line that is wrong, where the file can be read a second time."""
        if file is None or self.source == "-":
            return
        names = csv_names(file) if names is None else names
        explain(
            self.source, file.dialect, target=None if target is None else names.index(target),
            features=[names.index(name) for name in needed] if self.model.table is None else (),
        )  # fmt: skip

    # -- everything else ----------------------------------------------------------------------------------------------

    def _of_memory(self) -> Iterator[Block]:
        """Rows of a LIBSVM file or of a built-in data set."""
        if self.keep:
            raise DataError(
                f"{self.source}: has no column {self.keep[0]!r} to keep: that is for CSV and Parquet files."
            )
        model, zero_based = self.model, self.model.metadata.get("zero_based")
        if model.table is not None:
            raise DataError(f"{self.source}: the model {model.path} needs a table with the columns {model.names}.")
        d = int(model.estimator.n_features_in_)
        data = load_dataset(
            self.source, target=self.target, labelled=self.labelled, n_features=d,
            zero_based=zero_based if isinstance(zero_based, bool) else None,
        )  # fmt: skip
        X = data.X
        if model.names is not None and data.feature_names is not None:
            position = {name: i for i, name in enumerate(data.feature_names)}
            missing = [name for name in model.names if name not in position]
            if missing:
                raise DataError(f"{self.source}: the column {missing[0]!r}, which the model needs, is missing.")
            X = X[:, [position[name] for name in model.names]]
        if X.shape[1] != d:
            raise DataError(f"{self.source}: has {X.shape[1]} features, the model {model.path} needs {d}.")
        dense = sparse.issparse(X) and not get_tags(model.estimator).input_tags.sparse
        if dense:
            check_memory(self.source, 8 * math.prod((min(ROWS, X.shape[0]), d)))
        y = None if data.y is None else by_level(data.y, as_text, object)
        for start in range(0, X.shape[0], ROWS):
            rows = X[start : start + ROWS]
            yield Block(rows.toarray() if dense else rows, None if y is None else y[start : start + ROWS], {})


def again(work: Callable[[], Any], blocks: Blocks) -> Any:
    """The result of some work on the blocks, which is begun again where the beginning of the file misled."""
    while True:
        try:
            return work()
        except ReadAgain as change:
            log.info("reading %s again, with %s", blocks.source, change)
            for name, value in change.changes.items():
                setattr(blocks, name, value)


def together(blocks: Blocks) -> Block:
    """All rows as one block."""
    found = again(lambda: list(blocks), blocks)
    if not found:
        raise DataError(f"{blocks.source}: the file holds no samples.")
    parts = [block.X for block in found]
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        X: RowsLike = pd.concat(parts, ignore_index=True)
    else:
        X = sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
    y = None if found[0].y is None else np.concatenate([block.y for block in found if block.y is not None])
    return Block(X, y, {})
