"""Names and types of the features: a model from a file takes frames whose columns are in any order.

scikit-learn refuses frames in another order, and reads them wrongly where the model was fitted on plain arrays.  A
model from a file knows its columns, so it puts them in order, ignores others, and says which one is missing.  It is
an estimator of the same class as before: the methods that take rows are those of a subclass made here.
"""

from __future__ import annotations

from functools import cache, wraps
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._types import Estimator, RowsLike

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "predict_top",
    "memberships",
    "transform",
    "score",
    "score_samples",
    "apply",
    "kneighbors",
    "partial_fit",
)
FITS = ("fit", "fit_transform", "fit_predict")
KINDS = {"b": "number", "i": "number", "u": "number", "f": "number", "M": "date", "S": "text", "U": "text"}
TYPES = ("number", "text", "date", "any")
READERS = ("ParseNumbers", "ParseText", "DateParts")  # of skmargin.datasets: they read cells of any type


class Columns(NamedTuple):
    """Names of the columns that a model needs, in order, and what each must hold (None: not known)."""

    names: tuple[str, ...]
    types: tuple[str, ...] | None
    as_array: bool  # fitted without names: give it none

    def in_order(self, X: RowsLike) -> Any:
        """The columns that the model needs, in its order; what has no names is returned as it is."""
        found = _names_of(X)
        if found is None:
            return X
        position = {name: i for i, name in enumerate(found)}
        missing = [name for name in self.names if name not in position]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise ValueError(f"X has no column {missing[0]!r}{more}, which the model needs.")
        wanted = list(self.names)
        if len(position) < len(found):
            twice = next((name for name in wanted if found.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"X has more than one column {twice!r}.")
        if wanted != found:
            X = X.select(wanted) if hasattr(X, "select") else X[wanted]
        if self.types is not None:
            for name, kind in zip(wanted, self.types, strict=True):
                _check_type(X, name, kind)
        return X.to_numpy() if self.as_array and hasattr(X, "to_numpy") else X


def _names_of(X: RowsLike) -> list[str] | None:
    """Names of the columns of a frame; None for arrays and for frames that number their columns."""
    names = getattr(X, "column_names", None)  # of Arrow tables, whose columns are arrays
    if names is None and not isinstance(X, np.ndarray | list | tuple):
        names = getattr(X, "columns", None)
    if names is None or callable(names):
        return None
    names = list(names)
    return names if all(isinstance(name, str) for name in names) else None


def _check_type(X: RowsLike, name: str, kind: str) -> None:
    column = X[name]
    found = type_of(column)
    if kind == "any" or found in (kind, "any"):
        return
    raise ValueError(f"X has {_plural(found)} in the column {name!r}, where the model was fitted with {_plural(kind)}.")


def _plural(kind: str) -> str:
    return {"number": "numbers", "date": "dates"}.get(kind, kind)


def type_of(column: Any) -> str:
    """What a column holds: "number", "text", "date", or "any" where it is mixed, empty or unknown."""
    dtype: Any = getattr(column, "dtype", None)
    if not hasattr(dtype, "kind"):  # polars and Arrow have types of their own
        column = np.asarray(column[:1000])
        dtype = column.dtype
    if hasattr(dtype, "categories"):  # a category is what its names are
        dtype = dtype.categories.dtype if hasattr(dtype.categories, "dtype") else np.dtype("U")
    kind = getattr(dtype, "kind", "")
    if kind in KINDS:
        return KINDS[kind]
    if "str" in str(dtype).lower():
        return "text"
    values = [value for value in column.tolist()[:1000] if value is not None and value == value]
    if kind == "O" and values:
        found = {KINDS.get(np.asarray(value).dtype.kind, "any") for value in values}
        return found.pop() if len(found) == 1 else "any"
    return "any"


def reader_of(estimator: Estimator) -> Any:
    """The part of an estimator that sees the rows first."""
    if getattr(estimator, "calibrated_classifiers_", None):
        return reader_of(estimator.calibrated_classifiers_[0].estimator)
    if type(estimator).__name__ == "FrozenEstimator":
        return reader_of(estimator.estimator)
    while hasattr(estimator, "steps"):
        real = [step for _, step in estimator.steps if step is not None and not isinstance(step, str)]
        if not real:
            break
        estimator = real[0]
    return estimator


def needed_names(estimator: Estimator) -> list[str] | None:
    """Columns that an estimator needs, where it was fitted with names."""
    estimator = reader_of(estimator)
    if hasattr(estimator, "transformers_") and hasattr(estimator, "feature_names_in_"):
        parts = estimator._transformer_to_input_indices
        used = {i for name, step, _ in estimator.transformers_ if step != "drop" for i in parts.get(name, ())}
        return [str(name) for i, name in enumerate(estimator.feature_names_in_) if i in used]
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def inferred_types(estimator: Estimator, names: list[str]) -> list[str | None]:
    """What each column must hold, as far as the part that reads it tells: None where the rows themselves may tell."""
    estimator = reader_of(estimator)
    if not hasattr(estimator, "transformers_"):
        name = type(estimator).__name__
        if name in READERS:
            return ["any"] * len(names)
        strict = hasattr(estimator, "n_features_in_") and not getattr(estimator, "categories_", None)
        strict = strict and name not in ("SimpleImputer", "MissingIndicator", "FunctionTransformer")
        strict = strict and getattr(estimator, "_preprocessor", None) is None  # gradient boosting with categories
        return ["number" if strict else None] * len(names)
    kinds: dict[str, str | None] = dict.fromkeys(names)
    for _, step, columns in estimator.transformers_:
        if isinstance(step, str) or isinstance(columns, str | slice | np.ndarray):
            continue
        chosen = [str(c) for c in columns]
        kinds |= dict(zip(chosen, inferred_types(step, chosen), strict=True))
    return [kinds[name] for name in names]


def class_of(estimator: Estimator) -> type:
    """Class of an estimator, without the columns that `named` gave it."""
    return getattr(type(estimator), "_without_names", type(estimator))


def without_names(estimator: Estimator) -> Any:
    """The same estimator without what `load_model` adds for frames: its class is again the one that was saved.

    Parameters
    ----------
    estimator : estimator
        From a file or not.

    Returns
    -------
    estimator : estimator
        A shallow copy where it was from a file with names, else the same.

    Examples
    --------
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.model_files import without_names
    >>> model = CrammerSingerSVC()
    >>> without_names(model) is model
    True
    """
    cls: Any = class_of(estimator)
    if cls is type(estimator):
        return estimator
    plain = cls.__new__(cls)
    plain.__dict__.update({key: value for key, value in vars(estimator).items() if key != "_columns_known"})
    return plain


def named(estimator: Estimator, columns: Columns) -> Any:
    """The estimator, from now on with frames in any order."""
    estimator.__class__ = _named_class(class_of(estimator))
    estimator._columns_known = columns
    return estimator


def known_columns(estimator: Estimator) -> Columns | None:
    """The columns of a model from a file."""
    return getattr(estimator, "_columns_known", None)


def _again(estimator: Estimator, columns: Columns | None) -> Any:
    return estimator if columns is None else named(estimator, columns)


@cache
def _named_class(cls: Any) -> type:
    """Subclass of a class whose methods put columns in order first."""
    body: dict[str, Any] = {"_without_names": cls, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    body["__doc__"] = cls.__doc__
    body["__reduce__"] = lambda self: (_again, (without_names(self), known_columns(self)))
    for name in METHODS:
        if hasattr(cls, name):
            body[name] = available_if(_has(cls, name))(_in_order_first(cls, name))
    for name in FITS:
        if hasattr(cls, name):
            body[name] = available_if(_has(cls, name))(_forget_first(cls, name))
    return type(cls.__name__, (cls,), body)


def _has(cls: Any, name: str) -> Any:
    def check(self: Any) -> bool:
        return bool(getattr(super(_named_class(cls), self), name))  # or the error that says why not

    return check


def _in_order_first(cls: Any, name: str) -> Any:
    @wraps(getattr(cls, name))
    def method(self: Any, X: RowsLike, *args: Any, **kwargs: Any) -> Any:
        columns = known_columns(self)
        X = X if columns is None else columns.in_order(X)
        return getattr(super(_named_class(cls), self), name)(X, *args, **kwargs)

    return method


def _forget_first(cls: Any, name: str) -> Any:
    @wraps(getattr(cls, name))
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.__dict__.pop("_columns_known", None)
        return getattr(super(_named_class(cls), self), name)(*args, **kwargs)

    return method
