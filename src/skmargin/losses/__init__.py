"""Margin losses: value, slopes, curvature and dual value of the scores, nothing about data or weights of a model."""

from ._log_loss import LogLoss
from ._smooth import Curvature, Own, SmoothLoss
from ._smoothed_sum_hinge import SmoothedSumHinge

__all__ = ["Curvature", "LogLoss", "Own", "SmoothLoss", "SmoothedSumHinge"]
