"""The compiled core."""

from skmargin._core import _ext  # type: ignore[attr-defined, unused-ignore]

__all__ = ["_ext"]
