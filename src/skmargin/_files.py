"""Writing files so that a reader sees the old file or the whole new one, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file beside ``path`` and put it in its place when the block ends well; else leave nothing behind.

    Parameters
    ----------
    path : path
        The file to write or to replace; a link keeps its place, and the file that it names is replaced.  What is no
        file (a pipe, a device) is written to as it is.

    Yields
    ------
    file : binary file
        To write to.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # before links are followed: that of a pipe (/dev/stdout) names no place
        with open(path, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:  # nobody knows the name of the new file
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    with suppress(OSError, AttributeError):  # make the new name itself durable, where folders can be synced
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
