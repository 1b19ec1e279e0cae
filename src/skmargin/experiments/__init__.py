"""The papers' experiments: described, run, and written up beside the papers' own figures."""

from ._codes import ExhaustiveCodeClassifier
from ._data import MissingData
from ._registry import EXPERIMENTS, choose
from ._runner import read_results, run
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
    "read_results",
    "run",
]
