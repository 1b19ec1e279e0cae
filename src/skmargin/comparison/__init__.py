"""Comparison of models on one data set: tuning inside cross-validation, ranks, tests, and plain words."""

from ._advice import advise
from ._compare import Comparison, ComparisonError, Fold
from ._models import Model, models, tuned

__all__ = ["Comparison", "ComparisonError", "Fold", "Model", "advise", "models", "tuned"]
