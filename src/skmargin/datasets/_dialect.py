"""How a CSV file is written: encoding, separator, decimal sign, names.  Found from its beginning."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import IO, Any

from ._cells import as_float
from ._files import MAX_LINE, DataError, as_number, check_memory, open_data

HEAD = 1 << 18  # bytes that are looked at
MAX_BLANK = 1 << 24  # blank bytes before the first line: more is no table
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
DELIMITERS = ",;\t|"
_DOT, _COMMA = re.compile(r"[+-]?\d*\.\d+", re.ASCII), re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+", re.ASCII)


@dataclass(frozen=True)
class Dialect:
    """The notation of one file."""

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]
    has_header: bool
    width: int  # characters of the first line


@dataclass
class Csv:
    """An open file: its notation, and its text from the first line that is not blank on, as UTF-8."""

    path: Any
    dialect: Dialect
    stream: Utf8

    @property
    def first_line(self) -> int:
        """Number of the line with the names."""
        return self.stream.n_blank + 1


@contextmanager
def open_csv(path: Any, encoding: str | None = None, decimal: str | None = None, name: Any = None) -> Iterator[Csv]:
    """Open a file, or take an open stream (with a name for errors), and find out how it is written."""
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise DataError(
                f"encoding {encoding!r} is not known; some that are: utf-8, utf-16, latin-1, cp1252."
            ) from None
    if decimal not in (None, ".", ","):
        raise DataError(f"decimal must be '.' or ',', got {decimal!r}.")
    with nullcontext(path) if hasattr(path, "read") else open_data(path) as source:
        path = path if name is None else name
        head = source.read(HEAD)
        mark = next((mark for mark in MARKS if head.startswith(mark)), b"")
        found = _same_bytes(encoding, mark) or MARKS.get(mark) or _guess(head)
        try:
            stream = Utf8(source, head[len(mark) :], found, path)
            text = stream.peek()
        except UnicodeDecodeError:
            raise DataError(f"{path}, line 1 or soon after: not {encoding or 'UTF-8'} text.") from None
        if not text:
            raise DataError(f"{path}: the file is empty.")
        yield Csv(path, _dialect(text, found, decimal), stream)


def _same_bytes(encoding: str | None, mark: bytes) -> str | None:
    """The encoding that was asked for, with the order of its bytes where a mark has told it."""
    if encoding is None:
        return None
    name = codecs.lookup(encoding).name
    return MARKS[mark] if name in ("utf-16", "utf-8-sig") and mark else {"utf-8-sig": "utf-8"}.get(name, name)


def _guess(head: bytes) -> str:
    """UTF-16 where every second byte is zero, else UTF-8 where that can be, else the encoding of Windows."""
    some = head[:4096]
    if len(some) >= 4:
        for start, name in ((1, "utf-16-le"), (0, "utf-16-be")):
            if some[start::2].count(0) > 0.4 * len(some) > 4 * some[1 - start :: 2].count(0):
                return name
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return "utf-8"
    with suppress(UnicodeDecodeError):
        head.decode("cp1252")
        return "cp1252"
    return "latin-1"


class Utf8(io.RawIOBase):
    """The text of a stream as UTF-8, without the blank lines at its beginning; UnicodeDecodeError where it is none."""

    def __init__(self, source: IO[bytes], head: bytes, encoding: str, path: Any) -> None:
        self.source, self.path, self.n_bytes = source, path, 0
        self.bounded = True  # False where the whole is not kept in memory
        self.as_it_is = encoding == "utf-8"  # only looked through: Arrow would meet wrong bytes too late
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.n_blank = 0
        start: bytes | None = self._convert(head, not head)
        blank = 0
        while start is not None and not start.lstrip(b" \r\n"):
            blank += len(start)
            self.n_blank += start.count(b"\n") or start.count(b"\r")
            if blank > MAX_BLANK:
                raise DataError(f"{path}: begins with more than {MAX_BLANK >> 20} MiB of blank lines: not a table.")
            more = source.read(HEAD)
            start = self._convert(more, not more) if more else None
        self.pending = self._without_blank_lines(start or b"")

    def _without_blank_lines(self, start: bytes) -> bytes:
        body = start.lstrip(b" \r\n")
        cut = len(start) - len(body)
        line = max(start.rfind(b"\n", 0, cut), start.rfind(b"\r", 0, cut)) + 1
        self.n_blank += start.count(b"\n", 0, line) or start.count(b"\r", 0, line)
        return start[line:]  # blanks before the first cell belong to it

    def _convert(self, data: bytes, final: bool) -> bytes:
        text = self.decoder.decode(data, final)
        return data if self.as_it_is else text.encode("utf-8", "surrogatepass")

    def peek(self) -> str:
        """The beginning, at least the whole first line."""
        while not re.search(rb"[\r\n]", self.pending):
            if len(self.pending) >= MAX_LINE:
                raise DataError(f"{self.path}, line 1: longer than {MAX_LINE >> 20} MiB: not a text file.")
            more = self.source.read(HEAD)
            if not more:
                break
            self.pending += self._convert(more, False)
        return codecs.getincrementaldecoder("utf-8")(errors="replace").decode(self.pending)

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to some bytes (and where they are converted, perhaps a few more)."""
        if self.pending:
            size = len(self.pending) if size < 0 else size
            out, self.pending = self.pending[:size], self.pending[size:]
        else:
            out = b""
            while not out:
                data = self.source.read(max(size, 1) if size >= 0 else -1)
                out = self._convert(data, not data)
                if not data:
                    break
        self.n_bytes += len(out)
        if self.bounded:
            check_memory(self.path, self.n_bytes)
        return out


def _dialect(text: str, encoding: str, decimal: str | None) -> Dialect:
    first = re.match(r"[^\r\n]*", text)
    width = 0 if first is None else first.end()
    delimiter = max(DELIMITERS, key=lambda d: len(_rows(text, d, 1)[0]))
    if delimiter == "," and ";" in text[:width]:  # numbers with decimal commas, and no names above them
        cells = _rows(text, ";", 1)[0]
        if all(as_float(cell, ",") == as_float(cell, ",") for cell in cells):
            delimiter = ";"
    rows = _rows(text, delimiter, 200)
    header = rows[0]
    has_header = not all(_is_number(cell) or as_float(cell, ",") == as_float(cell, ",") for cell in header)
    names = [cell.replace("\0", "").strip() for cell in header] if has_header else [str(i) for i in range(len(header))]
    if decimal is None:
        cells = [cell.strip() for row in rows[has_header:] for cell in row]
        commas = sum(_COMMA.fullmatch(cell) is not None for cell in cells)
        dots = sum(
            _DOT.fullmatch(cell) is not None and not re.fullmatch(r"[+-]?\d{1,3}\.\d{3}", cell) for cell in cells
        )
        decimal = "," if delimiter != "," and commas > dots else "."
    return Dialect(encoding, delimiter, decimal, names, has_header, width)


def _rows(text: str, delimiter: str, most: int) -> list[list[str]]:
    """The first rows, as far as they can be read; at least one."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) == most:
                break
    return rows or [text.split("\n", 1)[0].split(delimiter)]


def _is_number(cell: str) -> bool:
    try:
        as_number(cell.strip())
    except ValueError:
        return False
    return True
