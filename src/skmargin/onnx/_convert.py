"""The short way from a model to an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import skl2onnx
from numpy.typing import DTypeLike
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common._registration import get_converter
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .._types import Estimator, RowsLike
from ..model_files import without_names
from ..model_files._columns import READERS, known_columns, needed_names, reader_of, type_of
from ._models import PARSERS
from ._readers import exact
from ._register import exact_classifier
from ._scores import CannotConvert

OPSET = 18  # the least that the converters need


def to_onnx(
    model: Estimator,
    X: RowsLike = None,
    *,
    raw_scores: bool = False,
    dtype: DTypeLike | None = None,
    target_opset: int | None = None,
) -> Any:
    """Convert a fitted model to an ONNX graph that predicts the same.

    The graph has two results: ``label``, and ``probabilities`` where the model has `predict_proba` or else ``scores``,
    the decision function (one number a row for two classes).

    Parameters
    ----------
    model : fitted estimator
        An estimator of skmargin, alone, calibrated or at the end of a pipeline of transformers that skl2onnx knows; any
        other estimator that skl2onnx knows.
    X : array or data frame, default=None
        Some rows as the model takes them, for the number of columns and their types.  A frame for a model that reads
        columns by name gives a graph with one input a column; everything else one input, ``X``.  None: as the
        model was fitted, in double precision.
    raw_scores : bool, default=False
        Scores also where the model has probabilities.
    dtype : {np.float32, np.float64}, default=None
        Number type of the input ``X``; None takes that of the rows, float64 where they are neither.
    target_opset : int, default=None
        Version of ONNX's operators, at least 18; None takes the newest that skl2onnx was tested with.

    Returns
    -------
    graph : onnx.ModelProto
        Write it by ``graph.SerializeToString()``.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrammerSingerSVC(random_state=0).fit(X, y)
    >>> session = onnxruntime.InferenceSession(to_onnx(model, X).SerializeToString())
    >>> label, scores = session.run(None, {"X": X})
    >>> bool((label == model.predict(X)).all() and np.allclose(scores, model.decision_function(X)))
    True
    """
    check_is_fitted(model)
    if target_opset is not None and target_opset < OPSET:
        raise ValueError(f"target_opset must be at least {OPSET}, got {target_opset!r}.")
    types = _initial_types(model, X, dtype)
    model = without_names(model)
    options: dict[Any, Any] = {}
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    allowed = _allowed_options(last)
    if is_classifier(last):  # none would be taken for those of the pipeline, which not every classifier has
        wanted = {"zipmap": False, "raw_scores": raw_scores}
        options[id(last)] = {name: value for name, value in wanted.items() if name in allowed}
    name = type(last).__name__
    custom = exact()
    for key, functions in exact_classifier(last).items():
        custom[key] |= functions
    token = PARSERS.set(custom["custom_parsers"])
    try:
        return skl2onnx.convert_sklearn(
            model, initial_types=types, options=options, target_opset=target_opset, name=name, **custom
        )
    except CannotConvert:
        raise
    except (RuntimeError, ValueError, TypeError, LookupError, NameError, AttributeError) as error:  # of many lines
        reason = " ".join(str(error).split())[:200]
        raise CannotConvert(f"skl2onnx cannot convert this {type(model).__name__}: {reason}") from None
    finally:
        PARSERS.reset(token)


def _allowed_options(model: Estimator) -> Any:
    alias = sklearn_operator_name_map.get(type(model))
    return (get_converter(alias).get_allowed_options() if alias else None) or {}


def _initial_types(model: Estimator, X: RowsLike, dtype: DTypeLike | None) -> list[tuple[str, Any]]:
    """Names and types of the inputs of the graph."""
    reader = reader_of(without_names(model))
    if hasattr(reader, "transformers_") and needed_names(reader) is not None:
        return _by_column(model, reader, X, dtype)
    if hasattr(reader, "vocabulary_"):
        return [("X", StringTensorType([None]))]
    d = int(model.n_features_in_)
    if dtype is None:
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 or _all_single(X) else np.float64
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
    kind = FloatTensorType if np.dtype(dtype) == np.float32 else DoubleTensorType
    return [("X", kind([None, d]))]


def _all_single(X: RowsLike) -> bool:
    dtypes = getattr(X, "dtypes", None)
    return dtypes is not None and all(kind == np.float32 for kind in np.atleast_1d(np.asarray(dtypes, dtype=object)))


def _by_column(model: Estimator, reader: Any, X: RowsLike, dtype: DTypeLike | None) -> list[tuple[str, Any]]:
    names = needed_names(reader) or []
    known = known_columns(model)
    types: dict[str, str] = (
        dict(zip(known.names, known.types, strict=True)) if known is not None and known.types else {}
    )
    if X is not None:
        types |= {name: type_of(X[name]) for name in names}
    for _, step, columns in reader.transformers_:
        kind = _takes(reader_of(step))
        if kind is not None:
            types |= dict.fromkeys([columns] if isinstance(columns, str) else columns, kind)
    number = FloatTensorType if dtype is not None and np.dtype(dtype) == np.float32 else DoubleTensorType
    return [(name, (StringTensorType if types.get(name) == "text" else number)([None, 1])) for name in names]


def _takes(reader: Any) -> str | None:
    """What a graph must give a reader of columns; None if it does not tell."""
    if type(reader).__name__ in READERS:
        return "text" if type(reader).__name__ == "ParseText" else "number"
    if hasattr(reader, "vocabulary_") or any(some.dtype.kind in "OU" for some in getattr(reader, "categories_", ())):
        return "text"
    return None
