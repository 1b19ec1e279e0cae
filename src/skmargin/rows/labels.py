"""Labels as numbers 0..k-1, also where they come in blocks; random numbers of rows."""

from __future__ import annotations

from typing import Any

import numpy as np


def distinct_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels in order and the position of each label among them: `np.unique`, which sorts all of them."""
    if y.dtype.kind not in "iu":
        return np.unique(y, return_inverse=True)
    low, high = int(y.min()), int(y.max())
    if high - low >= len(y) or high > np.iinfo(np.int64).max:
        return np.unique(y, return_inverse=True)
    place = y.astype(np.int64) - low
    present = np.bincount(place) > 0
    return (np.flatnonzero(present) + low).astype(y.dtype), (np.cumsum(present) - 1)[place]


class LabelBook:
    """Numbers labels in the order in which they are first met."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}
        self.kind = ""

    def encode(self, y: np.ndarray) -> np.ndarray:
        """The numbers of these labels, int32."""
        if len(y) == 0:
            return np.zeros(0, dtype=np.int32)
        if y.dtype == object and not all(isinstance(label, str) for label in y):
            kinds = sorted({type(label).__name__ for label in y})
            raise ValueError(f"labels must be numbers or strings of one type, got {', '.join(kinds)}")
        kind = "text" if y.dtype.kind in "OUST" else "numbers"
        if self.kind and kind != self.kind:
            raise ValueError(f"its labels are {kind}, those of the blocks before are {self.kind}")
        self.kind = kind
        distinct, places = distinct_labels(y)
        if y.dtype.kind == "f" and not np.array_equal(distinct, np.round(distinct)):
            wrong = distinct[distinct != np.round(distinct)][0]
            raise ValueError(f"the label {wrong} is no whole number: labels name classes")
        codes = [self.codes.setdefault(label, len(self.codes)) for label in distinct.tolist()]
        return np.array(codes, dtype=np.int32)[places]

    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """The labels in order, and the place of each number among them."""
        labels = list(self.codes)
        order = sorted(range(len(labels)), key=labels.__getitem__)
        place = np.empty(len(labels), dtype=np.int32)
        place[order] = np.arange(len(labels), dtype=np.int32)
        return np.array([labels[at] for at in order]), place


def row_hash(rows: np.ndarray, seed: int) -> np.ndarray:
    """A random number in [0, 1) for each row number: the same one wherever the row lies."""
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64((seed + 1) * 0xD1B54A32D192ED03 % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z ^= z >> np.uint64(shift)
            z *= np.uint64(factor)
        z ^= z >> np.uint64(31)
    return z * 2.0**-64
