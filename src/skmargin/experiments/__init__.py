"""The papers' experiments: described, run, and written up beside the papers' own figures."""

from ._codes import ExhaustiveCodeClassifier
from ._data import MissingData
from ._pages import write_pages
from ._registry import EXPERIMENTS, choose
from ._runner import in_rounds, pending, read_results, run
from ._spec import Experiment, Protocol, Row, Source, Split, Task

__all__ = [
    "EXPERIMENTS",
    "ExhaustiveCodeClassifier",
    "Experiment",
    "MissingData",
    "Protocol",
    "Row",
    "Source",
    "Split",
    "Task",
    "choose",
    "in_rounds",
    "pending",
    "read_results",
    "run",
    "write_pages",
]
