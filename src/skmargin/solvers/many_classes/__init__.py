"""Hinge machines for very many classes and sparse rows: class vectors that are sparse, few scans of all classes."""

from .driver import ManyState, solve_many
from .plan import suits

__all__ = ["ManyState", "solve_many", "suits"]
