"""Comparison of models on one data set: tuning inside cross-validation, ranks, tests, and plain words."""

from ._advice import advise, choose
from ._compare import Comparison, ComparisonError, Fold, rare_classes, second_largest
from ._leaks import telling_columns
from ._metrics import METRICS
from ._models import Model, kernel_spread, models, tuned

__all__ = [
    "METRICS",
    "Comparison",
    "ComparisonError",
    "Fold",
    "Model",
    "advise",
    "choose",
    "kernel_spread",
    "models",
    "rare_classes",
    "second_largest",
    "telling_columns",
    "tuned",
]
