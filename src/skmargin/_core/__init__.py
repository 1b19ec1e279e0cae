"""The compiled core."""

from . import _ext

__all__ = ["_ext"]
