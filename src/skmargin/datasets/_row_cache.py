"""Text files as binary rows: converted once, read many times.

A cache is a folder with ``meta.json``, the numbers of the rows (``X.bin``; for sparse rows ``counts.bin``,
``indices.bin`` and ``values.bin``) and the numbers of their labels (``y.bin``).  It is written under another name and
renamed when it is whole, so that nobody ever reads a part of one.  A journal says after each chunk of text how far all
files are: what a killed process has left is continued, where the source is still the same; after an error, or Ctrl-C,
nothing is left.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from skmargin._runtime.progress import report
from skmargin.rows.files import Batch

from ._files import DataError, as_labels, line_chunks, open_data

VERSION = 1
NAMES = ("X.bin", "counts.bin", "indices.bin", "values.bin", "y.bin", "weight.bin")
OURS = frozenset((*NAMES, "meta.json", "labels.npy", "journal"))  # what a copy may consist of
BATCH_BYTES, BATCH_ROWS = 1 << 24, 1 << 17  # most of a block that is read from a cache


@dataclass
class Chunk:
    """The rows of a piece of text: dense numbers, or how many entries each row has, their columns and numbers."""

    labels: list[str]
    X: np.ndarray | None = None
    counts: np.ndarray | None = None
    indices: np.ndarray | None = None
    values: np.ndarray | None = None


@dataclass
class Progress:
    """How far a conversion is."""

    offset: int = 0  # in the text
    line: int = 1
    rows: int = 0
    stored: int = 0  # entries of sparse rows
    lowest: int = 1 << 31  # index of sparse rows
    highest: int = -1
    labels: list[str] = field(default_factory=list)


class CannotWrite(Exception):
    """Told apart from errors of reading."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


Parse = Callable[[bytes, int], Chunk]


def stamp_of(path: Path) -> list[int]:
    """Size and time of a file, by which a change of it is seen."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def stamps(files: list[Path]) -> Callable[[], Any]:
    """What changes with the files; None where one is gone."""

    def stamp() -> Any:
        try:
            return [stamp_of(path) for path in files]
        except OSError:
            return None

    return stamp


def cached(source: Path, cache: Any, about: dict[str, Any], start: int, line: int, parse: Parse) -> tuple[Path, dict]:
    """The folder of the cache of a text file, and its description; made now unless there is one.

    ``about`` is what the conversion depends on besides the file, ``start`` and ``line`` where its rows begin.
    """
    folder = _place(source, cache, about)
    wanted = {"version": VERSION, "source": source.name, "stamp": stamp_of(source), **about}
    meta = known_copy(folder, wanted)
    if meta is None:
        meta = made_whole(folder, str(source), lambda part: _convert(source, part, wanted, start, line, parse))
    return folder, meta


def known_copy(folder: Path, wanted: dict[str, Any]) -> dict[str, Any] | None:
    """The description of a copy that is there, whole and as wanted."""
    meta = _read_json(folder / "meta.json")
    known = meta is not None and {key: meta.get(key) for key in wanted} == wanted and _is_whole(folder, meta)
    return meta if known else None


def made_whole(folder: Path, source: str, write: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Have a copy written under another name, and rename it when it is whole; after an error nothing is left."""
    part = folder.with_name(folder.name + ".part")
    for place in (folder, part):
        if place.is_dir() and (foreign := sorted({one.name for one in place.iterdir()} - OURS)):
            raise DataError(
                f"{source}: its binary copy would be {place}, where there is a file of another kind, {foreign[0]!r}; "
                "name another folder with cache."
            )
    try:
        meta = write(part)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(part, folder)
    except (OSError, CannotWrite) as failure:
        shutil.rmtree(part, ignore_errors=True)
        error = failure.error if isinstance(failure, CannotWrite) else failure
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DataError(
                f"{source}: the disk is full; its binary copy goes to {folder.parent}, name another folder with cache."
            ) from None
        raise DataError(
            f"{source}: its binary copy cannot be written to {folder.parent} ({error.strerror or error}); "
            "name another folder with cache."
        ) from None
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return meta


def _place(source: Path, cache: Any, about: dict[str, Any]) -> Path:
    if cache is None:
        return source.with_name(source.name + ".rows")
    folder = Path(cache)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / (source.name + ".rows")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _sizes(meta: dict[str, Any]) -> dict[str, int]:
    """How long each file of a cache must be."""
    rows, stored, size = meta["n_rows"], meta["stored"], number_type(meta).itemsize
    found = {"X.bin": size * rows * meta["n_features"]}
    if meta["sparse"]:
        found = {"counts.bin": 4 * rows, "indices.bin": 4 * stored, "values.bin": size * stored}
    if meta["labels"]:
        found["y.bin"] = 4 * rows
    return found | ({"weight.bin": 8 * rows} if meta.get("weights") else {})


def number_type(meta: dict[str, Any]) -> np.dtype:
    """The type of the numbers of the rows."""
    return np.dtype(meta.get("dtype", "float64"))


def _is_whole(folder: Path, meta: dict[str, Any]) -> bool:
    try:
        return all((folder / name).stat().st_size == size for name, size in _sizes(meta).items())
    except OSError:
        return False


def _convert(source: Path, part: Path, wanted: dict[str, Any], start: int, line: int, parse: Parse) -> dict[str, Any]:
    """Write the cache into the folder ``part``."""
    done = _journal(part, wanted) or Progress(start, line)
    part.mkdir(parents=True, exist_ok=True)
    names = ("y", "counts", "indices", "values") if wanted["sparse"] else ("y", "X")
    code = {label: number for number, label in enumerate(done.labels)}
    begin = done.line
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(part / f"{name}.bin", "ab")) for name in names}
        for name, file in files.items():
            file.truncate(_length(name, done, wanted))
        journal = stack.enter_context(open(part / "journal", "ab"))
        if done.rows == 0:
            journal.truncate(0)
            journal.write(json.dumps(wanted).encode() + b"\n")
        stream = stack.enter_context(open_data(source))
        stream.seek(done.offset)
        for first, text in line_chunks(stream, source):
            if stamp_of(source) != wanted["stamp"]:
                raise DataError(f"{source} changed while it was read; open it again.")
            chunk = parse(text, begin + first - 1)
            done.offset += len(text)
            done.line = begin + first - 1 + text.count(b"\n")
            try:
                _write(files, chunk, done, code)
                for file in files.values():
                    file.flush()
                journal.write(json.dumps(asdict(done)).encode() + b"\n")
                journal.flush()
            except OSError as error:
                raise CannotWrite(error) from None
            report(min(1.0, done.offset / max(1, wanted["stamp"][0])))
    if stamp_of(source) != wanted["stamp"]:
        raise DataError(f"{source} changed while it was read; open it again.")
    if done.rows == 0:
        raise DataError(f"{source}: the file holds no samples.")
    meta = {**wanted, "n_rows": done.rows, "stored": done.stored, "labels": done.labels}
    if wanted["sparse"]:
        meta |= {"lowest": done.lowest, "highest": done.highest}
    (part / "journal").unlink()
    with open(part / "meta.json", "wb") as description:
        description.write(json.dumps(meta).encode())
        description.flush()
        os.fsync(description.fileno())
    return meta


def _length(name: str, done: Progress, wanted: dict[str, Any]) -> int:
    if name in ("y", "counts"):
        return 4 * done.rows
    if name == "X":
        return 8 * done.rows * int(wanted["n_features"])
    return (4 if name == "indices" else 8) * done.stored


def _journal(part: Path, wanted: dict[str, Any]) -> Progress | None:
    """How far a killed process came with the same source; None where there is nothing to continue."""
    try:
        lines = (part / "journal").read_text(encoding="utf-8").splitlines()
        if json.loads(lines[0]) != wanted:
            return None
        for line in reversed(lines[1:]):  # the last one may be cut off
            try:
                done = Progress(**json.loads(line))
            except (ValueError, TypeError):
                continue
            names = ("y", "counts", "indices", "values") if wanted["sparse"] else ("y", "X")
            if all((part / f"{name}.bin").stat().st_size >= _length(name, done, wanted) for name in names):
                return done
    except (OSError, ValueError, IndexError):
        pass
    return None


def _write(files: Mapping[str, IO[bytes]], chunk: Chunk, done: Progress, code: dict[str, int]) -> None:
    known = len(code)
    numbers = [code.setdefault(label, len(code)) for label in chunk.labels]
    if len(code) > known:
        done.labels = list(code)
    files["y"].write(np.array(numbers, dtype=np.int32).tobytes())
    if chunk.X is not None:
        files["X"].write(chunk.X.astype(np.float64, copy=False).tobytes())
        done.rows += len(chunk.X)
        return
    assert chunk.counts is not None and chunk.indices is not None and chunk.values is not None
    files["counts"].write(chunk.counts.astype(np.int32).tobytes())
    files["indices"].write(chunk.indices.astype(np.int32).tobytes())
    files["values"].write(chunk.values.astype(np.float64).tobytes())
    done.rows += len(chunk.counts)
    done.stored += len(chunk.indices)
    if len(chunk.indices):
        done.lowest = min(done.lowest, int(chunk.indices.min()))
        done.highest = max(done.highest, int(chunk.indices.max()))


def labels_of(meta: dict[str, Any], source: Path) -> np.ndarray | None:
    """The labels that the numbers stand for; None for rows without."""
    return as_labels(meta["labels"], source, "the target") if meta["labels"] else None


def row_ranges(meta: dict[str, Any]) -> list[tuple[int, int]]:
    """The rows of a cache in blocks."""
    n = meta["n_rows"]
    size = number_type(meta).itemsize
    per_row = max(1.0, (4 + size) * meta["stored"] / n) if meta["sparse"] else size * meta["n_features"]
    step = max(1, min(BATCH_ROWS, int(BATCH_BYTES / per_row)))
    return [(at, min(at + step, n)) for at in range(0, n, step)]


def read_batches(folder: Path, meta: dict[str, Any], ranges: list[tuple[int, int]], base: int = 0) -> Iterator[Batch]:
    """The rows of ranges; ``base`` is the first index of sparse ones."""
    d, dtype, sparse_rows = int(meta["n_features"]), number_type(meta), meta["sparse"]
    rows: Iterator[Any]
    with ExitStack() as stack:

        def opened(name: str) -> IO[bytes]:
            return stack.enter_context(open(folder / f"{name}.bin", "rb"))

        labels, weights = opened("y") if meta["labels"] else None, opened("weight") if meta.get("weights") else None
        rows = (
            _sparse_rows(
                [opened(name) for name in ("counts", "indices", "values")], meta["n_rows"], d, base, dtype, ranges
            )
            if sparse_rows
            else _dense_rows(opened("X"), d, dtype, ranges)
        )
        for (begin, end), X in zip(ranges, rows, strict=True):
            y, weight = _part_of(labels, np.int32, begin, end), _part_of(weights, np.float64, begin, end)
            yield Batch(X, y, weight)


def _part_of(file: IO[bytes] | None, dtype: DTypeLike, begin: int, end: int) -> np.ndarray | None:
    if file is None:
        return None
    file.seek(np.dtype(dtype).itemsize * begin)
    return read_array(file, dtype, end - begin)


def _dense_rows(file: IO[bytes], d: int, dtype: np.dtype, ranges: list[tuple[int, int]]) -> Iterator[np.ndarray]:
    for begin, end in ranges:
        file.seek(dtype.itemsize * d * begin)
        yield read_array(file, dtype, (end - begin) * d).reshape(end - begin, d)


def _sparse_rows(
    files: list[IO[bytes]], n: int, d: int, base: int, dtype: np.dtype, ranges: list[tuple[int, int]]
) -> Iterator[Any]:
    counts, indices, values = files
    first = _first_entries(counts, n, ranges)
    for begin, end in ranges:
        rows = end - begin
        counts.seek(4 * begin)
        indices.seek(4 * first[begin])
        values.seek(dtype.itemsize * first[begin])
        indptr = np.concatenate([[0], np.cumsum(read_array(counts, np.int32, rows), dtype=np.int64)])
        stored = int(indptr[-1])
        column = read_array(indices, np.int32, stored) - np.int32(base)
        small = indptr.astype(np.int32)
        X = sparse.csr_array((read_array(values, dtype, stored), column, small), shape=(rows, d))
        X.sort_indices()
        yield X


def _first_entries(counts: IO[bytes], n: int, ranges: list[tuple[int, int]]) -> dict[int, int]:
    """How many entries lie before each row with which a range begins."""
    begins, found, before = sorted({begin for begin, _ in ranges}), {}, 0
    for begin, end in zip(begins, [*begins[1:], n], strict=True):
        found[begin] = before
        counts.seek(4 * begin)
        before += int(read_array(counts, np.int32, end - begin).sum(dtype=np.int64))
    return found


def read_array(file: IO[bytes], dtype: DTypeLike, count: int) -> np.ndarray:
    """So many numbers from a file; refused where they are not there."""
    out = np.empty(count, dtype=dtype)
    view = memoryview(out.view(np.uint8))  # type: ignore[arg-type]
    done = 0
    while done < len(view):
        got = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not got:
            raise ValueError(f"{file.name} is shorter than when it was opened; open it again.")
        done += got
    return out
