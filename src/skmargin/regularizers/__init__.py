"""Penalties on the class vectors: value, gradient, curvature and a bound of the conjugate."""

from ._l2 import L2
from ._pairwise_power import PairwisePower
from ._smooth import SmoothPenalty

__all__ = ["L2", "PairwisePower", "SmoothPenalty"]
