"""Look at the margins of any fitted classifier: samples, statistics, pairs of classes, bounds, pictures."""

from ._bounds import GeneralizationBound, generalization_bound
from ._displays import MarginDistributionDisplay, PairwiseMarginDisplay
from ._margins import MarginStatistics, class_scores, margin_statistics, margins, margins_from_scores
from ._pairwise import pairwise_margins, pairwise_score_gaps

__all__ = [
    "GeneralizationBound",
    "MarginDistributionDisplay",
    "MarginStatistics",
    "PairwiseMarginDisplay",
    "class_scores",
    "generalization_bound",
    "margin_statistics",
    "margins",
    "margins_from_scores",
    "pairwise_margins",
    "pairwise_score_gaps",
]
