"""Scores of models that are made of others (pipelines, pairs of classes), and calibrated probabilities."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelEncoder
from sklearn.svm import SVC, LinearSVC

from .._types import Estimator
from ..estimators._base import MarginClassifier
from ..estimators._fuzzy_pairwise import FuzzyPairwiseClassifier
from ._graph import Graph
from ._scores import (
    KERNELS,
    CannotConvert,
    combined,
    kernel_matrix,
    linear,
    machine_scores,
    sums_by_class,
    votes_and_scores,
)

LINEAR = (LinearSVC, LogisticRegression)
# Parsers of readers that `to_onnx` converts itself; skl2onnx, called by others, has its own.
PARSERS: ContextVar[dict[type, Any] | None] = ContextVar("skmargin_onnx_parsers", default=None)


def can_score(model: Estimator) -> bool:
    """Whether `scores` knows the decision function of a model."""
    model = unfrozen(model)
    if isinstance(model, Pipeline):
        return can_score(model.steps[-1][1])
    if isinstance(model, OneVsOneClassifier | OneVsRestClassifier):
        return all(can_score(part) for part in model.estimators_)
    if isinstance(model, SVC):
        return model.kernel in (*KERNELS, "linear") and model.decision_function_shape == "ovr"
    return isinstance(model, (MarginClassifier, FuzzyPairwiseClassifier, *LINEAR))


def unfrozen(model: Estimator) -> Any:
    """The estimator inside scikit-learn's `FrozenEstimator`."""
    return model.estimator if type(model).__name__ == "FrozenEstimator" else model


def scores(graph: Graph, model: Estimator, inputs: list[Any], dtype: np.dtype) -> tuple[str, np.dtype]:
    """The decision function, one column for two classes, and its number type; ``inputs`` are skl2onnx's variables."""
    model = unfrozen(model)
    if isinstance(model, Pipeline):
        from skl2onnx._parse import _parse_sklearn

        for _, step in model.steps[:-1]:
            if step is not None and step != "passthrough":
                inputs = _parse_sklearn(graph.scope, step, inputs, custom_parsers=PARSERS.get())
        return scores(graph, model.steps[-1][1], inputs, dtype)
    if isinstance(model, FuzzyPairwiseClassifier):
        return _fuzzy(graph, model, inputs, dtype)
    if isinstance(model, OneVsOneClassifier | OneVsRestClassifier):
        method = "ovo" if isinstance(model, OneVsOneClassifier) else "ovr"
        columns, found = _side_by_side(graph, model.estimators_, inputs, dtype)
        if method == "ovo" and len(model.classes_) == 2:
            return graph.columns(votes_and_scores(graph, columns, 2, found)[1], [1]), found
        return combined(graph, columns, len(model.classes_), method, found), found
    rows = rows_of(graph, inputs, dtype)
    if isinstance(model, MarginClassifier):
        return machine_scores(graph, model, rows, dtype)
    if isinstance(model, LINEAR):
        return linear(graph, model.coef_, model.intercept_, rows, dtype), dtype
    if isinstance(model, SVC) and model.kernel in (*KERNELS, "linear"):
        return combined(graph, svc_pairs(graph, model, rows, dtype), len(model.classes_), "ovo", dtype), dtype
    raise CannotConvert(f"the scores of {type(model).__name__} inside another model have no ONNX graph here.")


def rows_of(graph: Graph, inputs: list[Any], dtype: DTypeLike) -> str:
    """The columns of all inputs together, as numbers of one type."""
    names = [graph.cast(variable.full_name, dtype) for variable in inputs]
    return names[0] if len(names) == 1 else graph.op("Concat", *names, axis=1)


def _fuzzy(graph: Graph, model: Estimator, inputs: list[Any], dtype: np.dtype) -> tuple[str, np.dtype]:
    """Memberships; machines that are linear are taken together."""
    if model.pair_rows_ is not None:
        raise CannotConvert("FuzzyPairwiseClassifier with a precomputed kernel has no ONNX graph.")
    parts = model.estimators_
    if all(isinstance(part, LINEAR) or _is_linear(part) for part in parts):
        coef = np.vstack([part.coef_ for part in parts])
        intercept = np.concatenate([np.atleast_1d(part.intercept_) for part in parts])
        duels = linear(graph, coef, intercept, rows_of(graph, inputs, dtype), dtype)
        found = dtype
    else:
        duels, found = _side_by_side(graph, parts, inputs, dtype)
    return combined(graph, duels, len(model.classes_), "fuzzy_pairwise", found), found


def _side_by_side(graph: Graph, parts: Any, inputs: list[Any], dtype: np.dtype) -> tuple[str, np.dtype]:
    """The scores of several two-class machines, one column each."""
    each = [scores(graph, part, inputs, dtype) for part in parts]
    found = np.result_type(*(kind for _, kind in each))
    columns = [name if kind == found else graph.cast(name, found) for name, kind in each]
    return columns[0] if len(columns) == 1 else graph.op("Concat", *columns, axis=1), found


def svc_pairs(graph: Graph, model: Estimator, rows: str, dtype: DTypeLike) -> str:
    """Scores of all pairs of classes of an ``SVC``, positive for the second class."""
    args = model.support_vectors_, model.kernel, model._gamma, model.degree, model.coef0, dtype
    K = kernel_matrix(graph, rows, *args)
    coef = model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_
    if len(model.classes_) == 2:
        found = graph.op("MatMul", K, graph.const(np.ascontiguousarray(coef.T), dtype))
        return graph.op("Add", found, graph.const(model.intercept_, dtype))
    found = sums_by_class(graph, K, coef, model.n_support_, len(model.classes_), dtype)
    return graph.op("Neg", graph.op("Add", found, graph.const(model.intercept_, dtype)))


def _is_linear(model: Estimator) -> bool:
    return isinstance(model, MarginClassifier) and "coef_" in vars(model) and not hasattr(model, "multi_class")


def probabilities(graph: Graph, model: Estimator, values: str, dtype: DTypeLike) -> str:
    """Probabilities of a machine with log loss from its scores."""
    if len(model.classes_) == 2:
        values = graph.op("Concat", graph.const_like_zero(values, dtype), values, axis=1)
    return graph.op("Softmax", values, axis=1)


# -- calibration ------------------------------------------------------------------------------------------------------


def calibrated(graph: Graph, model: Estimator, inputs: list[Any], dtype: np.dtype) -> str:
    """Mean of the calibrated probabilities of a `CalibratedClassifierCV`, in double precision."""
    double = np.float64
    parts = [_calibrated_part(graph, part, inputs, dtype) for part in model.calibrated_classifiers_]
    total = parts[0] if len(parts) == 1 else graph.op("Sum", *parts)
    return graph.op("Div", total, graph.const(len(parts), double))


def _calibrated_part(graph: Graph, part: Any, inputs: list[Any], dtype: np.dtype) -> str:
    values, found = scores(graph, part.estimator, inputs, dtype)
    double, k = np.dtype(np.float64), len(part.classes)
    values = values if found == double else graph.cast(values, double)
    if part.method == "temperature":
        if k == 2:
            values = graph.op("Concat", graph.op("Neg", values), values, axis=1)
        beta = graph.const(float(part.calibrators[0].beta_), double)
        return graph.op("Softmax", graph.op("Mul", values, beta), axis=1)
    places = LabelEncoder().fit(part.classes).transform(unfrozen(part.estimator).classes_)
    if k == 2:
        second = _calibrate(graph, part.calibrators[0], values)
        return graph.op("Concat", graph.op("Sub", graph.const(1, double), second), second, axis=1)
    columns = {}
    for i, (place, calibrator) in enumerate(zip(places, part.calibrators, strict=True)):
        columns[int(place)] = _calibrate(graph, calibrator, graph.columns(values, [i]))
    if len(columns) < k:
        raise CannotConvert("a fold of CalibratedClassifierCV met not all classes; calibrate with larger folds.")
    together = graph.op("Concat", *(columns[c] for c in range(k)), axis=1)
    sums = graph.sums(together)
    nothing = graph.op("Equal", sums, graph.const(0, double))  # then all classes are alike
    together = graph.op("Where", nothing, graph.const(np.ones((1, k))), together)
    return graph.op("Div", together, graph.op("Where", nothing, graph.const([[k]], double), sums))


def _calibrate(graph: Graph, calibrator: Any, column: str) -> str:
    """Probability of one class from its score."""
    double = np.float64
    if hasattr(calibrator, "a_"):
        line = graph.op(
            "Add", graph.op("Mul", column, graph.const(calibrator.a_, double)), graph.const(calibrator.b_, double)
        )
        return graph.op("Sigmoid", graph.op("Neg", line))
    x, f = calibrator.X_thresholds_.astype(double), calibrator.y_thresholds_.astype(double)
    if len(x) == 1:
        return graph.op("Add", graph.op("Mul", column, graph.const(0, double)), graph.const(f[0], double))
    # Between two thresholds a line: the last threshold that is not above the score is the number of those, less one.
    column = graph.op("Clip", column, graph.const(x[0]), graph.const(x[-1]))
    below = graph.cast(graph.op("LessOrEqual", graph.const(x[1:-1][None]), column), double)
    at = (
        graph.cast(graph.sums(below), np.int64)
        if len(x) > 2
        else graph.cast(graph.op("Mul", column, graph.const(0.0)), np.int64)
    )
    steps, slopes = np.diff(x), np.diff(f)
    slopes = np.divide(slopes, steps, out=np.zeros_like(steps), where=steps > 0)
    left, start, slope = (graph.op("Gather", graph.const(part), at, axis=0) for part in (x[:-1], f[:-1], slopes))
    return graph.op("Add", start, graph.op("Mul", graph.op("Sub", column, left), slope))
