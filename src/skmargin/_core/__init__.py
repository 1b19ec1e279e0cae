"""The compiled core."""

from collections.abc import Callable
from contextvars import ContextVar

from skmargin._core import _ext  # type: ignore[attr-defined, unused-ignore]

__all__ = ["_ext"]

# Who is told, in this thread, which share of a solve is done (`skmargin.solvers.progress`).
listener: ContextVar[Callable[[float], None] | None] = ContextVar("listener", default=None)


def checkpoint(share: float = 0.0) -> None:
    """Called by long loops of the core: an exception that was sent to their thread is raised here."""
    told = listener.get()
    if told is not None:
        told(share)
