"""Saving, loading and describing model files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from .._types import Estimator, RowsLike
from . import _probe as probe
from ._archive import BROKEN, FORMAT, VERSION, ModelFileError, damaged, read, read_array, write
from ._columns import TYPES, Columns, inferred_types, known_columns, named, needed_names, type_of, without_names
from ._known import Classes
from ._values import Reader, Writer


def save_model(
    estimator: Estimator,
    path: str | os.PathLike[str],
    *,
    X: RowsLike = None,
    feature_names: Iterable[str] | None = None,
    metadata: dict[str, Any] | None = None,
    extra_classes: Iterable[type] = (),
) -> None:
    """Write a fitted estimator to a model file, whole or not at all.

    Parameters
    ----------
    estimator : fitted estimator
        An estimator of skmargin or one of the classes of `model_classes`, such as a pipeline of them.
    path : path
        The file, by custom ``*.skm``; an old one is replaced.
    X : data frame or array, default=None
        Some rows as the model takes them: the types of their columns are kept (not the rows), and the model is tried
        on them before it is written.
    feature_names : iterable of str, default=None
        Names of the columns, for an estimator that was fitted on a plain array; those of a frame are known.
    metadata : dict, default=None
        Anything JSON can hold, to keep with the model.
    extra_classes : iterable of type
        Estimator classes of your own; give them to `load_model` as well.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.model_files import load_model, save_model
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CrammerSingerSVC(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.skm")
    ...     save_model(model, path)
    ...     again = load_model(path)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    >>> bool((again.predict(X[X.columns[::-1]]) == model.predict(X)).all())  # frames in any order
    True
    """
    import skmargin

    check_is_fitted(estimator)
    columns = _columns(estimator, X, feature_names)
    estimator = without_names(estimator)
    classes = Classes(extra_classes)
    writer = Writer(classes)
    tree = writer.encode(estimator, type(estimator).__name__)
    again = Reader(classes, writer.arrays.read_back()).decode(tree)
    rows = probe.make_rows(estimator)
    answers = None if rows is None else probe.check_same(estimator, again, rows)
    if X is not None:
        probe.check_same(estimator, again, X[:10])
    inner = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    document = {
        "format": FORMAT,
        "format_version": VERSION,
        "library_version": skmargin.__version__,
        "sklearn_version": sklearn.__version__,
        "numpy_version": np.__version__,
        "estimator": tree,
        "answers": writer.encode(probe.kept_answers(answers), "answers"),
        "feature_names": None if columns is None else list(columns.names),
        "feature_types": None if columns is None or columns.types is None else list(columns.types),
        "classes": [str(label) for label in getattr(inner, "classes_", ())],
        "metadata": metadata or {},
        "arrays": writer.arrays.entries,
    }
    write(path, document, writer.arrays)


def load_model(path: str | os.PathLike[str], *, extra_classes: Iterable[type] = ()) -> Any:
    """Read an estimator from a model file; it predicts the same bits as the one that was saved.

    Where the file has names of features, the model takes frames whose columns are in any order: those that it does not
    need are ignored, and one that is missing or holds text instead of numbers is a ValueError that names it.

    Parameters
    ----------
    path : path
        The file.
    extra_classes : iterable of type
        Estimator classes of your own that the file may hold.

    Returns
    -------
    estimator : fitted estimator

    Raises
    ------
    ModelFileError
        If the file is damaged, of a later format, or holds something that is not allowed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.model_files import load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrammerSingerSVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "iris.skm")
    ...     again = load_model(Path(folder) / "iris.skm")
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    document, contents = read(path)
    try:
        arrays = [read_array(entry, contents[entry["name"]]) for entry in document["arrays"]]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            reader = Reader(Classes(extra_classes), arrays)
            estimator = reader.estimator(document["estimator"])
            check_is_fitted(estimator)
            columns = _read_columns(document, estimator)
            kept = reader.decode(document.get("answers"))
            probe.check_answers(estimator, sum(array.size for array in arrays), kept)
        return estimator if columns is None else named(estimator, columns)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except BROKEN as error:
        raise damaged(path, error) from None


def describe_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about itself, without building the model.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    description : dict
        ``format_version``, ``library_version``, ``sklearn_version``, ``numpy_version``, ``estimator`` (its class),
        ``feature_names`` and ``feature_types`` ("number", "text", "date" or "any"; None where they are not known),
        ``classes`` (as text) and ``metadata``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.model_files import describe_model, save_model
    >>> model = CrammerSingerSVC().fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "iris.skm")
    ...     description = describe_model(Path(folder) / "iris.skm")
    >>> description["estimator"], description["classes"]
    ('skmargin.CrammerSingerSVC', ['0', '1', '2'])
    """
    document = read(path)[0]
    try:
        kept = ("format_version", "library_version", "sklearn_version", "numpy_version", "classes")
        found = {name: document[name] for name in (*kept, "metadata")}
        names, types = _names_and_types(document)
        return {
            **found,
            "feature_names": names,
            "feature_types": types,
            "estimator": document["estimator"]["$estimator"],
        }
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except BROKEN as error:
        raise damaged(path, error) from None


def _columns(estimator: Estimator, X: RowsLike, feature_names: Iterable[str] | None) -> Columns | None:
    """The columns of a model that is about to be written."""
    known, names = known_columns(estimator), needed_names(estimator)
    if names is None and feature_names is not None:
        names = [str(name) for name in feature_names]
        d = getattr(estimator, "n_features_in_", len(names))
        if len(names) != d or len(set(names)) < d:
            raise ModelFileError(f"feature_names has {len(names)} names for {d} features, or one of them twice.")
    if names is None:
        return known
    found: dict[str, str] = dict(zip(known.names, known.types, strict=True)) if known and known.types else {}
    if X is not None and hasattr(X, "columns"):
        found = {name: type_of(X[name]) for name in names if name in X.columns}
    types = tuple(
        kind or found.get(name, "any") for name, kind in zip(names, inferred_types(estimator, names), strict=True)
    )
    return Columns(tuple(names), types, known is not None and known.as_array)


def _names_and_types(document: dict[str, Any]) -> tuple[list[str] | None, list[str] | None]:
    names, types = document["feature_names"], document.get("feature_types")
    metadata = document["metadata"]
    if names is None and document["format_version"] == 1 and isinstance(metadata, dict):
        names = metadata.get("feature_names")  # the command line of 0.1.0 kept them there
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ModelFileError("its feature names are not a list of names.")
    if types is not None and (names is None or not isinstance(types, list) or len(types) != len(names)):
        raise ModelFileError("its feature types are not one for each name.")
    if types is not None and not all(isinstance(kind, str) and kind in TYPES for kind in types):
        raise ModelFileError("it has a feature of an unknown type.")
    return names, types


def _read_columns(document: dict[str, Any], estimator: Estimator) -> Columns | None:
    names, types = _names_and_types(document)
    if names is None or len(set(names)) < len(names):
        return None
    needed, d = needed_names(estimator), getattr(estimator, "n_features_in_", None)
    if needed is not None and needed != names:
        raise ModelFileError("its feature names are not those of the estimator.")
    if needed is None and d is not None and d != len(names):
        raise ModelFileError(f"it has {len(names)} feature names for {d} features.")
    return Columns(tuple(names), None if types is None else tuple(types), needed is None)
