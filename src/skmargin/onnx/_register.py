"""What skl2onnx must know of skmargin's estimators, and a calibration that is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx import update_registered_converter
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common._registration import get_converter, register_converter
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.calibration import CalibratedClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

import skmargin

from .._types import Estimator
from ._graph import Graph
from ._models import calibrated, can_score, probabilities, rows_of, scores, svc_pairs
from ._scores import votes_and_scores
from ._trees import PROBABLE, class_probabilities

OPTIONS = {"zipmap": [False, True, "columns"], "raw_scores": [False, True], "nocl": [False, True]}
SCORED = (LinearSVC, SVC, OneVsOneClassifier, OneVsRestClassifier)
CALIBRATED = "SklearnCalibratedClassifierCV"


def register() -> None:
    """Make skl2onnx know every estimator of skmargin; again changes nothing."""
    for name in skmargin.__all__:
        cls = getattr(skmargin, name)
        update_registered_converter(cls, f"Skmargin{name}", _shapes, _convert, parser=_parse, options=OPTIONS)
    theirs = get_converter(CALIBRATED)
    if getattr(theirs._fct, "__module__", "") != __name__:
        _replace_calibration(theirs)


def _parse(scope: Any, model: Estimator, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Two results: the label, and the probabilities where the model has some, else (or with raw_scores) the scores."""
    alias = sklearn_operator_name_map.get(type(model), f"Skmargin{type(model).__name__}")
    operator = scope.declare_local_operator(alias, model)
    operator.inputs = inputs
    name = "probabilities" if _gives_probabilities(scope, model) else "scores"
    operator.outputs.append(scope.declare_local_variable("label", _label_type(model.classes_)()))
    operator.outputs.append(scope.declare_local_variable(name, _real_type(inputs)()))
    return list(operator.outputs)


def exact_classifier(model: Estimator) -> dict[str, dict[type, Any]]:
    """Arguments of `skl2onnx.convert_sklearn` for a classifier of scikit-learn that is converted here, if it is one."""
    cls = type(model)
    if cls is CalibratedClassifierCV:  # its converter is registered; here also for inputs of several types
        known = all(can_score(part.estimator) for part in model.calibrated_classifiers_)
        return {"custom_shape_calculators": {cls: _shapes}, "custom_parsers": {cls: _parse}} if known else {}
    scored = isinstance(model, SCORED) and can_score(model) and not hasattr(model, "predict_proba")
    if cls not in PROBABLE and not scored:
        return {}
    names = "custom_conversion_functions", "custom_shape_calculators", "custom_parsers"
    return {name: {cls: function} for name, function in zip(names, (_convert, _shapes, _parse), strict=True)}


def _gives_probabilities(scope: Any, model: Estimator) -> bool:
    if isinstance(model, (CalibratedClassifierCV, *PROBABLE)):
        return True
    if isinstance(model, SCORED):
        return False
    raw = scope.get_options(model, {"raw_scores": False})["raw_scores"]
    return hasattr(model, "predict_proba") and not raw


def _real_type(inputs: list[Any]) -> Any:
    wide = any(isinstance(variable.type, DoubleTensorType | StringTensorType) for variable in inputs)
    return DoubleTensorType if wide else FloatTensorType


def _number_type(inputs: list[Any]) -> np.dtype:
    """Whole numbers are scored in double precision, as predict does."""
    return np.dtype(np.float32 if all(isinstance(v.type, FloatTensorType) for v in inputs) else np.float64)


def _label_type(classes: np.ndarray) -> Any:
    kind = classes.dtype.kind
    if kind == "f":
        return FloatTensorType if classes.dtype == np.float32 else DoubleTensorType
    return {"b": BooleanTensorType, "i": Int64TensorType, "u": Int64TensorType}.get(kind, StringTensorType)


def _labels(graph: Graph, classes: np.ndarray, winner: str, output: str) -> None:
    if classes.dtype.kind in "OSU":
        texts = [label.decode() if isinstance(label, bytes) else label for label in classes.tolist()]
        names = graph.const(np.array(texts, dtype=object))
    elif classes.dtype.kind in "iu":
        names = graph.const(classes, np.int64)
    else:
        names = graph.const(
            classes if classes.dtype == np.float32 or classes.dtype.kind == "b" else classes.astype(float)
        )
    graph.op("Gather", names, winner, output=output, axis=0)


def _shapes(operator: Any) -> None:
    model = operator.raw_operator
    n, k = operator.inputs[0].get_first_dimension(), len(model.classes_)
    probable = _gives_probabilities(operator.scope_inst, model)
    operator.outputs[0].type = _label_type(model.classes_)([n])
    operator.outputs[1].type = _real_type(operator.inputs)([n, k] if probable or k > 2 else [n])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model, graph = operator.raw_operator, Graph(scope, container)
    label, second = (variable.full_name for variable in operator.outputs)
    wanted = np.dtype(np.float64 if _real_type(operator.inputs) is DoubleTensorType else np.float32)
    if isinstance(model, PROBABLE):
        result = class_probabilities(graph, model, rows_of(graph, operator.inputs, np.float64))
        _labels(graph, model.classes_, graph.op("ArgMax", result, axis=1, keepdims=0), label)
        graph.op("Cast", result, output=second, to=graph.proto(wanted))
        return
    values, found = scores(graph, model, operator.inputs, _number_type(operator.inputs))
    flat = graph.op("Reshape", values, graph.const([-1], np.int64)) if len(model.classes_) == 2 else values
    if len(model.classes_) == 2:
        winner = graph.cast(graph.op("Greater", flat, graph.const(0, found)), np.int64)
    else:
        decides = values
        if isinstance(model, SVC) and not model.break_ties:
            pairs = svc_pairs(graph, model, rows_of(graph, operator.inputs, found), found)
            decides = votes_and_scores(graph, pairs, len(model.classes_), found)[0]
        winner = graph.op("ArgMax", decides, axis=1, keepdims=0)
    _labels(graph, model.classes_, winner, label)
    result = probabilities(graph, model, values, found) if _gives_probabilities(scope, model) else flat
    graph.op("Cast", result, output=second, to=graph.proto(wanted))


def _replace_calibration(theirs: Any) -> None:
    """Temperature, which skl2onnx does not know, exact isotonic steps, and our machines; the rest is left to it."""

    def convert(scope: Any, operator: Any, container: Any) -> None:
        model = operator.raw_operator
        if not all(can_score(part.estimator) for part in model.calibrated_classifiers_):
            theirs._fct(scope, operator, container)
            return
        graph = Graph(scope, container)
        wide = _real_type(operator.inputs) is DoubleTensorType
        found = calibrated(graph, model, operator.inputs, _number_type(operator.inputs))
        _labels(graph, model.classes_, graph.op("ArgMax", found, axis=1, keepdims=0), operator.outputs[0].full_name)
        kind = graph.proto(np.float64 if wide else np.float32)
        graph.op("Cast", found, output=operator.outputs[1].full_name, to=kind)

    convert.__module__ = __name__
    register_converter(CALIBRATED, convert, overwrite=True, options=theirs.get_allowed_options())
