"""The compiled core."""

from skmargin._core import _positional as _ext

__all__ = ["_ext"]
