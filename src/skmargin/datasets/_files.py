"""What all readers share: errors, compressed files, lines in chunks, free memory, labels."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from .._types import RowsLike

CHUNK = 1 << 24
MAX_LINE = 1 << 28
_MAGIC = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}


class DataError(ValueError):
    """A data file cannot be used; the message says which file, where in it, and why.

    Examples
    --------
    >>> from skmargin.datasets import DataError, read_csv
    >>> try:
    ...     read_csv("no-such-file.csv", target="y")
    ... except DataError as error:
    ...     print(error)
    no-such-file.csv: no such file.
    """


class TextColumn(DataError):
    """A column holds text where numbers are needed: it may be the one with the labels."""


class Table(NamedTuple):
    """What a reader found: rows, labels (None for a file without), names of the features (None if it has none)."""

    X: RowsLike
    y: np.ndarray | None
    feature_names: list[str] | None


@contextmanager
def open_data(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed where its first bytes say gzip, bzip2 or xz."""
    path = Path(path)
    try:
        with open(path, "rb") as raw:
            head = raw.read(6)
        opener: Any = next((f for magic, f in _MAGIC.items() if head.startswith(magic)), open)
        with opener(path, "rb") as stream:
            yield stream
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path}: the compressed file is damaged or cut off ({error}).") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except MemoryError:
        raise DataError(too_large(path)) from None


def line_chunks(stream: IO[bytes], path: Any) -> Iterator[tuple[int, bytes]]:
    """Number of the first line and text of consecutive chunks of whole lines; every chunk ends in a line break."""
    line, rest = 1, []
    while block := stream.read(CHUNK):
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest.append(block)
            if sum(map(len, rest)) > MAX_LINE:
                raise DataError(f"{path}, line {line}: longer than {MAX_LINE >> 20} MiB: not a text file.")
            continue
        chunk = b"".join([*rest, block[:cut]])
        rest = [block[cut:]]
        yield line, chunk
        line += chunk.count(b"\n")
    if any(rest):
        yield line, b"".join(rest) + b"\n"


def too_large(path: Any) -> str:
    """The sentence for a file that does not fit."""
    return (
        f"{path}: the data do not fit into memory. Use fewer rows or columns, a sparse (LIBSVM) file, "
        "or a machine with more memory."
    )


def available_memory() -> int | None:
    """Bytes that can be had without swapping, or None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for row in file:
                if row.startswith("MemAvailable:"):
                    return int(row.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def check_memory(path: Any, needed: int) -> None:
    """Refuse before the machine runs out of memory; ``needed`` counts what is still to be allocated."""
    free = available_memory()
    if free is not None and needed > free:
        gib = 2.0**30
        raise DataError(
            f"{too_large(path)} At least {needed / gib:.1f} GiB more are needed, {free / gib:.1f} GiB are free."
        )


def as_labels(values: list[str], path: Any, where: str) -> np.ndarray:
    """Labels as integers if all of them are, else as strings; fractions are refused, they make no classes."""
    distinct = set(values)
    try:
        numbers = {text: as_number(text) for text in distinct}
    except ValueError:
        return np.array(values, dtype=object) if len(max(distinct, key=len)) > 64 else np.array(values)
    bad = {text for text, number in numbers.items() if number % 1 != 0 or abs(number) >= 2**63}
    if bad:
        first = next(text for text in values if text in bad)
        raise DataError(f"{path}: {where} holds the number {first}: labels must be whole numbers or text.")
    codes = {text: int(number) for text, number in numbers.items()}
    return np.fromiter((codes[text] for text in values), dtype=np.int64, count=len(values))


def as_number(text: str) -> int | float:
    """The number that a text is, or ValueError; whole ones exactly, for rounding would make two labels one."""
    if "_" in text:  # only Python takes "1_0" for a number
        raise ValueError(text)
    try:
        return int(text)
    except ValueError:
        return float(text)
