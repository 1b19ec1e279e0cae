"""Choosing parameters: warm-started paths, a search that shares work between candidates, and ready-made grids."""

from ._grids import default_grid
from ._path import margin_path
from ._search import MarginSearchCV

__all__ = ["MarginSearchCV", "default_grid", "margin_path"]
