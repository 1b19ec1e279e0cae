"""Arrays that are maps of files: to read beyond the end of a file that was cut would stop the whole process."""

from __future__ import annotations

import mmap

import numpy as np

from .._types import Rows


def refuse_cut_map(X: Rows, name: str = "X") -> None:
    """Refuse rows of a memory map whose file has become shorter than the map."""
    outer = base = X
    while (base := getattr(base, "base", None)) is not None:
        if isinstance(base, mmap.mmap):
            break
        outer = base
    if base is None or not isinstance(outer, np.memmap):
        return
    start = outer.offset - outer.offset % mmap.ALLOCATIONGRANULARITY  # of the map in the file
    size = base.size()
    if size >= start + len(base):
        return
    before = outer.offset + X.ctypes.data - outer.ctypes.data  # bytes of the file in front of these rows
    row = max(0, size - before) // max(1, X.strides[0])
    if row < len(X):
        raise ValueError(
            f"{name}: the file {outer.filename} is shorter than its memory map, from row {row} on; map it again."
        )
