"""The compiled core."""

from skmargin._core import _ext  # type: ignore[attr-defined, unused-ignore]

__all__ = ["_ext"]


def checkpoint() -> None:
    """Called by long loops of the core: an exception that was sent to their thread is raised here."""
