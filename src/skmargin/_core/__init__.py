"""The compiled core."""

from skmargin._core import _ext

__all__ = ["_ext"]
