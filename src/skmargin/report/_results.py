"""What the report shows, as plain data: numbers, text, lists and dictionaries that JSON can hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np


@dataclass
class DatasetSummary:
    """The data: ``classes`` names all labels as text; ``image_shape`` says that a row is a picture.

    Examples
    --------
    >>> from skmargin.report import DatasetSummary
    >>> DatasetSummary("tiny", 3, 2, classes=["a", "b"], class_counts=[1, 2]).class_counts
    [1, 2]
    """

    name: str
    n_samples: int
    n_features: int
    classes: list[str]
    class_counts: list[int]
    feature_names: list[str] | None = None
    image_shape: list[int] | None = None


@dataclass
class MarginHistogram:
    """Margins in bins: ``counts["train" | "test"][class][bin]`` between ``low`` and ``high``.

    Margins outside fall into the first and last bin.  ``scale`` is the mean absolute margin, for an axis that models
    share.  ``classes`` are positions in `DatasetSummary.classes`; the classes left out are together in a last row.

    Examples
    --------
    >>> from skmargin.report import MarginHistogram
    >>> histogram = MarginHistogram(-1.0, 1.0, scale=0.5, classes=[0], counts={"test": [[2, 7]]})
    >>> histogram.counts["test"][0]
    [2, 7]
    """

    low: float
    high: float
    scale: float
    classes: list[int]
    counts: dict[str, list[list[int]]]


@dataclass
class HardSample:
    """One sample: row number in the data, labels as text, margin, and (feature, value) pairs or pixels from 0 to 99.

    ``deciding`` are (feature, contribution) pairs of a linear model: positive ones speak for the true class.

    Examples
    --------
    >>> from skmargin.report import HardSample
    >>> HardSample(row=17, true="cat", predicted="dog", margin=-0.4).margin
    -0.4
    """

    row: int
    true: str
    predicted: str
    margin: float
    values: list[list[Any]] = field(default_factory=list)
    pixels: list[int] | None = None
    deciding: list[list[Any]] = field(default_factory=list)


@dataclass
class ModelResult:
    """All that is known of one model; what is not known stays None or empty.

    Examples
    --------
    >>> from skmargin.report import ModelResult
    >>> ModelResult("baseline", test_score=0.5).test_score
    0.5
    """

    name: str
    params: dict[str, Any] = field(default_factory=dict)
    fold_scores: list[float] = field(default_factory=list)
    test_score: float | None = None
    fit_time: float | None = None
    predict_time: float | None = None
    p_value: float | None = None
    statistics: dict[str, dict[str, float]] = field(default_factory=dict)
    margins: MarginHistogram | None = None
    matrix_classes: list[int] = field(default_factory=list)
    confusion: list[list[int]] | None = None
    confusion_totals: list[int] = field(default_factory=list)  # test samples of each class, also those not shown
    worst_pairs: list[list[int]] = field(default_factory=list)  # (true class, predicted class, test samples)
    top5: float | None = None  # test samples whose class is among the five best
    macro_f1: float | None = None
    unknown: int = 0  # test samples of classes that the model was not fitted to: mistakes
    pairwise: list[list[float | None]] | None = None
    pairwise_quantity: str = ""
    hardest: list[HardSample] = field(default_factory=list)
    ambiguous: list[HardSample] = field(default_factory=list)
    bounds: list[dict[str, Any]] = field(default_factory=list)
    certificate: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, list[float]] = field(default_factory=dict)  # scores of the folds by name of the metric
    recall: list[float | None] = field(default_factory=list)  # of each class
    precision: list[float | None] = field(default_factory=list)
    calibration: dict[str, Any] = field(default_factory=dict)
    weights: list[list[list[Any]]] = field(default_factory=list)  # (feature, weight) by class
    weight_classes: list[int] = field(default_factory=list)
    permutation: list[list[Any]] = field(default_factory=list)  # (column, accuracy that is lost without it)


@dataclass
class Results:
    """A whole report.  ``models`` stand in the order of their rank, the best first.

    ``baseline`` is the most frequent class, always said; ``metric`` names what the scores of the folds are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin.report import ModelResult, Results, summarize_dataset
    >>> summary = summarize_dataset("iris", *load_iris(return_X_y=True))
    >>> results = Results("Iris", summary, [ModelResult("a", test_score=0.9)])
    >>> results.dataset.classes
    ['0', '1', '2']
    """

    title: str
    dataset: DatasetSummary
    models: list[ModelResult]
    command: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    created: str = ""
    baseline: ModelResult | None = None
    metric: str = "accuracy"

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, ready for JSON."""
        return _plain(asdict(self))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Results:
        """Build it again from what `to_dict` gave."""
        rest = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        rest["models"] = [_model(model) for model in data["models"]]
        rest["baseline"] = _model(data["baseline"]) if data.get("baseline") else None
        return cls(**{**rest, "dataset": DatasetSummary(**data["dataset"])})


def _model(data: dict[str, Any]) -> ModelResult:
    model = dict(data)
    model["margins"] = MarginHistogram(**model["margins"]) if model.get("margins") else None
    for name in ("hardest", "ambiguous"):
        model[name] = [HardSample(**sample) for sample in model.get(name, [])]
    return ModelResult(**model)


def _plain(value: Any) -> Any:
    """Lists and numbers of Python in place of NumPy's, which JSON does not know."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
