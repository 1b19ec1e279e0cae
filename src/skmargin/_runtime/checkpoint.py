"""Points of a long fit kept in a file, from which the same fit goes on after its process has ended."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._files import atomic_write

SECONDS = 1.0  # between two points that are written: rounds that are shorter cost more to write than to repeat
SHARE = 0.1  # of the time that writing may take, where there is much to fetch and to write
Point = tuple[np.ndarray, np.ndarray]  # W, b


class Checkpoint:
    """A file with the last point of one fit.

    Parameters
    ----------
    path : path
        The file; removed when the fit has ended well.
    about : object
        All that the fit depends on, with a `repr` that tells: the points of another fit are refused.
    """

    def __init__(self, path: str | os.PathLike[str], about: object) -> None:
        self.path, self.mark = Path(path), hashlib.sha256(repr(about).encode()).hexdigest()
        self.due = -np.inf
        self.duals: list[np.ndarray] = []  # of the point that was loaded, if they belong to it
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint={str(path)!r}: there is no folder {self.path.parent}.")

    def load(self) -> Point | None:
        """The point of an earlier run of this fit, if there is one."""
        if not self.path.exists():
            return None
        try:
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as held:
                mark, W, b = str(held["mark"]), held["W"], held["b"]
                self.duals = [held[name] for name in sorted(held.files) if name.startswith("duals")]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise ValueError(f"{self.path} is no checkpoint; move it away, or name another file.") from None
        if mark != self.mark:
            raise ValueError(
                f"{self.path} is the checkpoint of another fit (other rows or parameters); move it away, or name "
                "another file."
            )
        return W, b

    def save(
        self, W: np.ndarray, b: np.ndarray, duals: Callable[[], Sequence[np.ndarray | None]] | None = None
    ) -> None:
        """Keep a point, with arrays of its duals if it has any, unless the last one was written a moment ago."""
        begin = time.monotonic()
        if begin < self.due:
            return
        kept: dict[str, Any] = {"mark": np.array(self.mark), "W": W, "b": b}
        parts = duals() if duals is not None else ()  # those at the end that are None have their default
        kept |= {f"duals{i}": part for i, part in enumerate(parts) if part is not None}
        with atomic_write(self.path) as file:
            np.savez(file, **kept)
        end = time.monotonic()
        self.due = end + max(SECONDS, (end - begin) / SHARE)

    def remove(self) -> None:
        """The fit has ended."""
        self.path.unlink(missing_ok=True)
