"""The report: one self-contained HTML page about fitted models and their margins."""

from ._page import render_report, write_report
from ._results import DatasetSummary, HardSample, MarginHistogram, ModelResult, Results
from ._summarize import corrected_paired_ttest, rank_models, summarize_dataset, summarize_model

__all__ = [
    "DatasetSummary",
    "HardSample",
    "MarginHistogram",
    "ModelResult",
    "Results",
    "corrected_paired_ttest",
    "rank_models",
    "render_report",
    "summarize_dataset",
    "summarize_model",
    "write_report",
]
