"""Binary copies of rows that can be read only one after the other, or only dearly: then in any order.

The files are those of a text's copy (_row_cache.py), with the number type of the rows, their labels as they were
(``labels.npy``) and, where there are any, their weights (``weight.bin``).
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from skmargin.rows.files import Batch, OpenRows
from skmargin.rows.labels import LabelBook

from ._files import DataError
from ._row_cache import CannotWrite, known_copy, made_whole, read_batches, row_ranges

VERSION = 1


def named_copy(rows: OpenRows, folder: Path, name: str, about: dict[str, Any]) -> OpenRows:
    """The rows from a copy in the folder, made now unless one that is as ``about`` says is there."""
    place = folder / (name + ".rows")
    wanted = {"copy": VERSION, **about}
    meta = known_copy(place, wanted)
    if meta is None:
        meta = made_whole(place, rows.name, lambda part: wanted | _write(rows, part))
    return _opened(rows, place, meta)


def own_copy(rows: OpenRows, folder: Path) -> OpenRows:
    """The rows from a copy in the folder that goes with them: nothing tells whether a function is still the same."""
    folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix="rows-", dir=folder))
    try:
        meta = made_whole(own / "copy", rows.name, lambda part: _write(rows, part))
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        raise
    found = _opened(rows, own / "copy", meta)
    weakref.finalize(found, shutil.rmtree, own, ignore_errors=True)
    return found


def _opened(rows: OpenRows, folder: Path, meta: dict[str, Any]) -> OpenRows:
    labels = np.load(folder / "labels.npy") if meta["labels"] else None

    def pieces(ranges: list[tuple[int, int]]) -> Any:
        return read_batches(folder, meta, ranges)

    return OpenRows(
        rows.name, lambda: pieces(row_ranges(meta)), meta["n_features"], n_rows=meta["n_rows"],
        feature_names=rows.feature_names, labels=labels, pieces=pieces,
    )  # fmt: skip


def _write(rows: OpenRows, part: Path) -> dict[str, Any]:
    """Write the rows into the folder ``part``, and describe them."""
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    meta: dict[str, Any] = {}
    book, n_rows, stored = LabelBook(), 0, 0
    with ExitStack() as stack:
        files: dict[str, IO[bytes]] = {}
        for block, batch in enumerate(rows.batches()):
            where = f"{rows.name}, block {block}"
            here = _kind(batch)
            if not meta:
                meta = here
                files = {name: stack.enter_context(open(part / f"{name}.bin", "wb")) for name in _names(meta)}
            _refuse_other(here, meta, where)
            try:
                codes = None if batch.y is None else book.encode(batch.y)
            except ValueError as error:
                raise DataError(f"{where}: {error}.") from None
            numbers = _numbers(batch, codes, meta)
            try:
                for name, file in files.items():
                    file.write(np.ascontiguousarray(numbers[name]).data)
            except OSError as error:
                raise CannotWrite(error) from None
            n_rows += batch.X.shape[0]
            stored += batch.X.nnz if meta["sparse"] else 0
    if n_rows == 0:
        raise DataError(f"{rows.name}: holds no rows.")
    meta |= {"n_rows": n_rows, "stored": stored, "n_features": rows.n_features}
    try:
        if meta["labels"]:
            np.save(part / "labels.npy", np.array(list(book.codes)))
        (part / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    except OSError as error:
        raise CannotWrite(error) from None
    return meta


def _kind(batch: Batch) -> dict[str, Any]:
    return {
        "sparse": sparse.issparse(batch.X), "dtype": batch.X.dtype.name, "labels": batch.y is not None,
        "weights": batch.weight is not None,
    }  # fmt: skip


def _refuse_other(here: dict[str, Any], meta: dict[str, Any], where: str) -> None:
    """A block of another kind than those before; single precision fits into double."""
    fits = here["dtype"] == meta["dtype"] or meta["dtype"] == "float64"
    if not fits or any(here[key] != meta[key] for key in ("sparse", "labels", "weights")):
        words = [_words(kind) for kind in (here, meta)]
        raise DataError(f"{where}: holds {words[0]}, the blocks before hold {words[1]}.")


def _words(kind: dict[str, Any]) -> str:
    extra = [name for name in ("labels", "weights") if kind[name]]
    return f"{'sparse' if kind['sparse'] else 'dense'} {kind['dtype']} with {' and '.join(extra) or 'nothing else'}"


def _names(meta: dict[str, Any]) -> list[str]:
    rows = ["counts", "indices", "values"] if meta["sparse"] else ["X"]
    return [*rows, *(["y"] if meta["labels"] else []), *(["weight"] if meta["weights"] else [])]


def _numbers(batch: Batch, codes: np.ndarray | None, meta: dict[str, Any]) -> dict[str, Any]:
    X, dtype = batch.X, np.dtype(meta["dtype"])
    found = {"y": codes, "weight": batch.weight}
    if not meta["sparse"]:
        return found | {"X": X.astype(dtype, copy=False)}
    counts, indices = np.diff(X.indptr).astype(np.int32), X.indices.astype(np.int32, copy=False)
    return found | {"counts": counts, "indices": indices, "values": X.data.astype(dtype, copy=False)}
