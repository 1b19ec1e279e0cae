"""Penalties on the class vectors: value, gradient, curvature and a bound of the conjugate."""

from ._pairwise_maximum import PairwiseMaximum
from ._pairwise_power import PairwisePower
from ._smooth import SmoothPenalty

__all__ = ["PairwiseMaximum", "PairwisePower", "SmoothPenalty"]
