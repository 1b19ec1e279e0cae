"""Reader of LIBSVM (svmlight) files: ``label index:value index:value ...`` on each line.

A chunk of some megabytes is parsed at once: the lines are checked on their separators, then all numbers are read in one
go.  Only a chunk that fails goes through the slow parser, which knows the line and the reason.
"""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ._files import DataError, Table, as_labels, check_memory, line_chunks, open_data, too_large

_COMMENT = re.compile(rb"#[^\n]*")
_LABEL = re.compile(rb"^[ \t]*([^ \t\n]+)", re.MULTILINE)
_INTEGER = re.compile(rb"[+-]?[0-9]+\Z")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_MISSING = (b"", b"nan", b"na", b"?", b"null", b"none")
_BLANKS = re.compile(rb"[ \t]+")
_NEWLINES = re.compile(rb"\n+")
_CONTROL = bytes({*range(32), 127} - set(b"\t\n"))
_SPACES = bytes.maketrans(b":\n", b"  ")
_MAX_INDEX = 2**31 - 2


def read_libsvm(
    path: str | os.PathLike[str], *, n_features: int | None = None, zero_based: bool | None = None
) -> Table:
    r"""Read a LIBSVM file, plain or compressed with gzip, bzip2 or xz.

    Parameters
    ----------
    path : path
        The file.
    n_features : int, default=None
        Number of features; None takes the largest index of the file.  A larger index in the file is refused.
    zero_based : bool, default=None
        Whether the first feature has index 0; None says so if an index 0 occurs.

    Returns
    -------
    table : Table
        ``X`` a CSR array of float64, ``y`` integers or strings, ``feature_names`` None.

    Examples
    --------
    >>> import os, tempfile
    >>> from skmargin.datasets import read_libsvm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.svm")
    ...     with open(path, "w") as file:
    ...         _ = file.write("cat 1:0.5 3:2\ndog 2:1\n")
    ...     X, y, _ = read_libsvm(path)
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], ['cat', 'dog'])
    """
    return read_with_base(path, n_features, zero_based)[0]


def read_with_base(path: str | os.PathLike[str], n_features: int | None, zero_based: bool | None) -> tuple[Table, bool]:
    """As `read_libsvm`, and whether the first feature has index 0."""
    labels: list[str] = []
    counts, indices, values = [], [], []
    kept = 0
    with open_data(path) as stream:
        for first_line, chunk in line_chunks(stream, path):
            check_memory(path, 2 * kept + 6 * len(chunk))
            names, count, index, value = _parse_chunk(chunk, first_line, path)
            labels += names
            counts.append(count)
            indices.append(index)
            values.append(value)
            kept += index.nbytes + value.nbytes
        if not kept:
            what = "index:value entries" if labels else "samples"
            raise DataError(f"{path}: the file holds no {what}: not a LIBSVM file.")
        if zero_based is None:
            zero_based = min(int(index.min(initial=1)) for index in indices) == 0
        X = _assemble(path, counts, indices, values, n_features, zero_based)
        return Table(X, as_labels(labels, path, "the first column"), None), zero_based


def _assemble(path: Any, counts: Any, indices: Any, values: Any, n_features: int | None, zero_based: bool) -> Any:
    try:
        column = np.concatenate(indices)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        lowest, highest = int(column.min()), int(column.max())
        if not zero_based:
            if lowest == 0:
                raise DataError(f"{path}: index 0 occurs, but the first feature has index 1.")
            column -= 1
            highest -= 1
        width = highest + 1 if n_features is None else n_features
        if highest >= width:
            raise DataError(
                f"{path}: the file has the feature index {highest + (not zero_based)}, "
                f"but {width} features are expected."
            )
        if indptr[-1] < 2**31:
            indptr = indptr.astype(np.int32)
        X = sparse.csr_array((np.concatenate(values), column, indptr), shape=(len(indptr) - 1, width))
        X.sort_indices()
        return X
    except MemoryError:
        raise DataError(too_large(path)) from None


def _parse_chunk(chunk: bytes, first_line: int, path: Any) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Labels, number of entries of each row, indices and values of a chunk of whole lines."""
    original = chunk
    if b"#" in chunk:
        chunk = _COMMENT.sub(b"", chunk)
    if b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n")
    parsed = None if len(chunk.translate(None, _CONTROL)) < len(chunk) else _parse_fast(chunk)
    if parsed is None:
        raise _explain(original, first_line, path)
    return parsed


def _parse_fast(chunk: bytes) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray] | None:
    """Parse all lines at once, or None if anything at all is wrong with one of them."""
    raw_labels = _LABEL.findall(chunk)
    if not raw_labels:
        return [], np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0)
    if any(b":" in label or b"," in label for label in set(raw_labels)):
        return None
    body = _tidy(_LABEL.sub(b"0", chunk))  # labels may be text: what is left is numbers
    count = _entries_per_line(body)
    if count is None:
        return None
    numbers = _read_numbers(body.translate(_SPACES))
    row_start = np.concatenate([[0], np.cumsum(1 + 2 * count)])
    if numbers is None or len(numbers) != row_start[-1]:
        return None
    is_entry = np.ones(len(numbers), dtype=bool)
    is_entry[row_start[:-1]] = False
    pairs = numbers[is_entry].reshape(-1, 2)
    index, value = pairs[:, 0], np.ascontiguousarray(pairs[:, 1])
    if not (np.isfinite(value).all() and ((index >= 0) & (index <= _MAX_INDEX)).all()):
        return None
    column = index.astype(np.int32)
    if (column != index).any() or _has_duplicates(column, count):
        return None
    try:
        return [label.decode() for label in raw_labels], count, column, value
    except UnicodeDecodeError:
        return None


def _tidy(body: bytes) -> bytes:
    """One blank between words, none at the ends of lines, no blank lines."""
    body = body.replace(b" \n", b"\n")  # common, and cheap to take away first
    if b"\t" in body or b"  " in body or b" \n" in body:
        body = _BLANKS.sub(b" ", body).replace(b" \n", b"\n")
    if b"\n\n" in body or body.startswith(b"\n"):
        body = _NEWLINES.sub(b"\n", body).lstrip(b"\n")
    return body


def _entries_per_line(body: bytes) -> np.ndarray | None:
    """Count the entries of tidy lines; None unless each reads ``0 n:n n:n ...``.

    Without the characters of numbers a line with three entries must read `` : : :``.
    """
    skeleton = body.translate(None, b"0123456789+-.eE")
    if skeleton.replace(b" :", b"").strip(b"\n") or any(gap in body for gap in (b": ", b" :", b":\n")):
        return None
    ends = np.flatnonzero(np.frombuffer(skeleton, dtype=np.uint8) == 10)
    return (np.diff(ends, prepend=-1) - 1) // 2


def _read_numbers(text: bytes) -> np.ndarray | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.fromstring(text, dtype=np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        return None


def _has_duplicates(column: np.ndarray, count: np.ndarray) -> bool:
    """Whether a row names one feature twice; cheap where the indices ascend, as they should."""
    ascending = column[1:] > column[:-1]
    ends = np.cumsum(count)[:-1]
    ascending[ends[(ends > 0) & (ends < len(column))] - 1] = True
    if ascending.all():
        return False
    row = np.repeat(np.arange(len(count)), count)
    key = np.sort(row * (np.int64(_MAX_INDEX) + 2) + column)
    return bool((np.diff(key) == 0).any())


def _explain(chunk: bytes, first_line: int, path: Any) -> DataError:
    """Find the first broken line of a chunk; the error says what is wrong with it."""
    for number, line in enumerate(chunk.split(b"\n"), start=first_line):
        words = line.split(b"#")[0].split()
        if words:
            reason = _reason(words, line)
            if reason:
                return DataError(f"{path}, line {number}: {reason}")
    return DataError(f"{path}, lines {first_line} and following: not a LIBSVM file.")


def _reason(words: list[bytes], line: bytes) -> str | None:
    label, entries = words[0], words[1:]
    if b":" in label:
        return f"the line begins with {_show(label)}, not with a label."
    if b"," in label:
        return f"the label {_show(label)} holds a comma: samples with several labels are not supported."
    try:
        label.decode()
    except UnicodeDecodeError:
        return f"the label {_show(label)} is not UTF-8 text."
    seen = set()
    for entry in entries:
        index, colon, value = entry.partition(b":")
        if not colon or b":" in value:
            return f"{_show(entry)} is not of the form index:value."
        if index == b"qid":
            return "query ids (qid:) belong to ranking data, not to classification."
        if not _INTEGER.match(index):
            return f"the index {_show(index)} is not a whole number."
        if not 0 <= int(index[:20]) <= _MAX_INDEX:
            return f"the index {_show(index)} is not between 0 and {_MAX_INDEX}."
        if value.lower() in _MISSING:
            return f"feature {_show(index)} has a missing value ({_show(value)}): fill in or remove missing values."
        if not _NUMBER.match(value) or not np.isfinite(float(value)):
            return f"feature {_show(index)} has the value {_show(value)}, which is not a finite number."
        if int(index) in seen:
            return f"feature {_show(index)} occurs twice."
        seen.add(int(index))
    if not set(_CONTROL).isdisjoint(line.rstrip(b"\r")):
        return "the line holds control characters: not a text file."
    return None


def _show(word: bytes) -> str:
    """A word of the file for a message: short, printable."""
    return repr(word[:40].decode("utf-8", "replace")) + ("..." if len(word) > 40 else "")
