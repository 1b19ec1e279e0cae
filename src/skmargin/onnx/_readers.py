"""What skl2onnx must know to convert readers of tables: those of skmargin, and exact ones for scikit-learn's.

Those of scikit-learn (`EXACT`) are used by `to_onnx` alone: skl2onnx, called by others, keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from skl2onnx import update_registered_converter
from skl2onnx._parse import _parse_sklearn_simple_model
from skl2onnx.common._registration import get_converter, get_shape_calculator
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from .. import datasets
from .._types import Estimator
from . import _tables as tables
from ._graph import Graph
from ._scores import CannotConvert


class Reader(NamedTuple):
    """How a transformer is converted: which inputs it takes, its operations, and the width of its result."""

    takes: Callable[[Any, Any], bool]
    write: Callable[[Graph, Any, str, Any], str]
    width: Callable[[Any], int]
    text: bool = False


def _is_real(model: Estimator, kind: Any) -> bool:
    return isinstance(kind, FloatTensorType | DoubleTensorType | Int64TensorType)


def _is_text(model: Estimator, kind: Any) -> bool:
    return isinstance(kind, StringTensorType)


def _fills_numbers(model: Estimator, kind: Any) -> bool:
    return _is_real(model, kind) and isinstance(model.missing_values, float) and np.isnan(model.missing_values)


def _weighs(model: Estimator, kind: Any) -> bool:
    return _is_text(model, kind) and tables.can_weigh(model)


def _one_or_all(model: Estimator) -> int:
    return 1 if model.flat else int(model.n_features_in_)


def _text(graph: Graph, model: Estimator, values: str, dtype: DTypeLike) -> str:
    return graph.op("Reshape", values, graph.const([-1], np.int64)) if model.flat else graph.op("Identity", values)


EXACT: dict[type, Reader] = {
    SimpleImputer: Reader(_fills_numbers, tables.imputed, tables.n_imputed),
    OneHotEncoder: Reader(_is_text, lambda g, m, v, _: tables.levels(g, m, v), tables.n_levels),
    CountVectorizer: Reader(_weighs, lambda g, m, v, _: tables.term_weights(g, m, v), lambda m: len(m.vocabulary_)),
    TfidfVectorizer: Reader(
        _weighs, lambda g, m, v, _: tables.term_weights(g, m, v, m._tfidf), lambda m: len(m.vocabulary_)
    ),
}
_OWN = {
    "ParseNumbers": Reader(_is_real, lambda g, m, v, _: tables.numbers(g, m, v), lambda m: int(m.n_features_in_)),
    "ParseText": Reader(_is_text, _text, _one_or_all, text=True),
    "DateParts": Reader(
        _is_real,
        lambda g, m, v, _: tables.date_parts(g, m, v),
        lambda m: int(m.n_features_in_) * len(tables.date_names(m)),
    ),
    "SoftClip": Reader(_is_real, lambda g, m, v, _: tables.soft_clip(g, m, v), lambda m: int(m.n_features_in_)),
}


def register_readers() -> None:
    """Make skl2onnx know the readers of `skmargin.datasets`."""
    for name, reader in _OWN.items():
        cls = getattr(datasets, name)
        parts = _converter(reader), _shapes(reader), _parser(reader, f"Skmargin{name}")
        update_registered_converter(cls, f"Skmargin{name}", parts[1], parts[0], parser=parts[2])


def exact() -> dict[str, dict[type, Any]]:
    """Arguments of `skl2onnx.convert_sklearn` that make it use `EXACT`."""
    return {
        "custom_conversion_functions": {cls: _converter(reader) for cls, reader in EXACT.items()},
        "custom_shape_calculators": {cls: _shapes(reader) for cls, reader in EXACT.items()},
        "custom_parsers": {cls: _parser(reader) for cls, reader in EXACT.items()},
    }


def _double(kind: Any) -> bool:
    """Text and numbers in double precision give double precision; single stays single."""
    return not isinstance(kind, FloatTensorType)


def _parser(reader: Reader, alias: str | None = None) -> Any:
    def parse(scope: Any, model: Estimator, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
        outputs = _parse_sklearn_simple_model(scope, model, inputs, custom_parsers=custom_parsers, alias=alias)
        if reader.takes(model, inputs[0].type):
            kind = StringTensorType if reader.text else DoubleTensorType if _double(inputs[0].type) else FloatTensorType
            outputs[0].set_type(kind())
        return list(outputs)

    return parse


def _shapes(reader: Reader) -> Any:
    def shapes(operator: Any) -> None:
        model, kind = operator.raw_operator, operator.inputs[0].type
        if not reader.takes(model, kind):
            _others(model, "shapes")(operator)
            return
        n = operator.inputs[0].get_first_dimension()
        result = StringTensorType if reader.text else DoubleTensorType if _double(kind) else FloatTensorType
        flat = reader.text and model.flat
        operator.outputs[0].set_type(result([n] if flat else [n, reader.width(model)]))

    return shapes


def _converter(reader: Reader) -> Any:
    def convert(scope: Any, operator: Any, container: Any) -> None:
        model, kind = operator.raw_operator, operator.inputs[0].type
        if not reader.takes(model, kind):
            _others(model, "converter")(scope, operator, container)
            return
        graph = Graph(scope, container)
        names = [variable.full_name for variable in operator.inputs]
        values = names[0] if len(names) == 1 else graph.op("Concat", *names, axis=1)
        if not isinstance(kind, StringTensorType):
            values = graph.cast(values, np.float64)
        result = reader.write(graph, model, values, np.float64)
        output = operator.outputs[0].full_name
        if reader.text:
            graph.op("Identity", result, output=output)
        else:
            graph.op("Cast", result, output=output, to=graph.proto(np.float64 if _double(kind) else np.float32))

    return convert


def _others(model: Estimator, what: str) -> Any:
    """What skl2onnx has for a model of scikit-learn."""
    if type(model) not in EXACT:
        wanted = "text" if type(model).__name__ == "ParseText" else "numbers"
        raise CannotConvert(f"{type(model).__name__} takes {wanted} in an ONNX graph.")
    from skl2onnx._supported_operators import sklearn_operator_name_map

    alias = sklearn_operator_name_map[type(model)]
    return get_converter(alias) if what == "converter" else get_shape_calculator(alias)
