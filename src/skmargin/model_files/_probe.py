"""Rows that a model must score as it did when it was written, also in a later program with other libraries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from joblib import parallel_config
from scipy import sparse

from .._types import Estimator, RowsLike
from ._archive import ModelFileError
from ._columns import reader_of

METHODS = ("decision_function", "predict_proba", "transform")
MOST_FEATURES = 1 << 20  # of a model that is asked, unless the file holds as many numbers
SAME = 1e-6  # to which numbers agree on other processors and with other libraries
MOST_KEPT = 1000  # numbers of an answer that a file keeps
TEXTS = ["", "a text of some words, for models of words"]
CELLS = {"ParseNumbers": "1", "ParseText": "a", "DateParts": "2020-02-29"}  # of skmargin.datasets


def make_rows(estimator: Estimator) -> Any:
    """Two rows as the estimator takes them (zeros and other numbers, known levels, text); None if that is not known."""
    first = reader_of(estimator)
    if hasattr(first, "vocabulary_") or type(first).__name__ == "HashingVectorizer":
        return TEXTS
    first = getattr(first, "_preprocessor", None) or first  # of gradient boosting with categories
    if hasattr(first, "transformers_"):
        return _make_table(first)
    d = getattr(estimator, "n_features_in_", getattr(first, "n_features_in_", None))
    if d is None or d > MOST_FEATURES:
        return None
    if getattr(first, "categories_", None):
        return np.array([[some[at] if len(some) else "" for some in first.categories_] for at in (0, -1)], dtype=object)
    if getattr(first, "_fit_dtype", None) == np.dtype(object):
        return np.array([first.statistics_, [first.missing_values] * d], dtype=object)
    if type(first).__name__ in CELLS:
        return np.array([[CELLS[type(first).__name__]] * d] * 2, dtype=object)
    return np.vstack([np.zeros(d), np.sin(np.arange(1.0, d + 1))])


def _make_table(reader: Any) -> Any:
    """Two rows for a `ColumnTransformer`: what each of its parts takes."""
    names = getattr(reader, "feature_names_in_", None)
    cells = np.zeros((2, reader.n_features_in_), dtype=object)
    for name, step, _ in reader.transformers_:
        columns = reader._transformer_to_input_indices.get(name, ())
        rows = None if isinstance(step, str) else make_rows(step)
        if rows is not None and len(columns):
            cells[:, list(columns)] = np.array(rows, dtype=object).reshape(2, -1)
    if names is None:
        return cells
    try:
        import pandas as pd
    except ImportError:
        return None
    return pd.DataFrame(cells, columns=names).infer_objects()


def answer(estimator: Estimator, rows: RowsLike) -> dict[str, np.ndarray]:
    """Scores or features, and labels, of the rows."""
    method = next((name for name in METHODS if hasattr(estimator, name)), None)
    found = {}
    # Two rows are no work for processes, whatever n_jobs a file names.
    with warnings.catch_warnings(), np.errstate(all="ignore"), parallel_config("sequential"):
        warnings.simplefilter("ignore")  # the rows have no feature names
        if method is not None:
            result = getattr(estimator, method)(rows)
            found[method] = np.asarray(result.toarray() if sparse.issparse(result) else result)
        if hasattr(estimator, "predict"):
            found["predict"] = np.asarray(estimator.predict(rows))
    return found


def check_same(estimator: Estimator, again: Any, rows: RowsLike) -> dict[str, np.ndarray] | None:
    """Refuse to write a model that would not be the same from the file; returns what both say.

    This finds a class that needs private attributes which it does not name, before the model is lost.
    """
    name = type(estimator).__name__
    try:
        expected = answer(estimator, rows)
    except (ValueError, TypeError):  # it refuses such rows, as an encoder refuses categories that it does not know
        return None
    try:
        found = answer(again, rows)
    except AttributeError as error:
        raise ModelFileError(
            f"{name} would not work again from a file: {error}. A class must name the private "
            "attributes that it predicts with in _model_state."
        ) from None
    if not all(_equal(found[key], expected[key]) for key in expected):
        raise ModelFileError(f"{name} would not predict the same from a file.")
    return expected


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def check_answers(estimator: Estimator, n_numbers: int, kept: Any = None) -> None:
    """An estimator that a file made: it must be complete, with one score for each of its classes.

    It must also say what it said when it was written (``kept``): scikit-learn changes its private attributes.  Rows are
    not made where the file, of so many numbers, has no room for one like them.
    """
    d, classes = getattr(estimator, "n_features_in_", 0), getattr(estimator, "classes_", None)
    if d > max(n_numbers, MOST_FEATURES) or (rows := make_rows(estimator)) is None:
        return
    found = answer(estimator, rows)
    for method, before in kept.items() if isinstance(kept, dict) else ():
        size = max(1.0, float(np.nanmax(np.abs(before), initial=0.0)))
        if not np.allclose(found[method], before, rtol=SAME, atol=SAME * size, equal_nan=True):
            raise ModelFileError(
                f"{type(estimator).__name__} does not give the numbers of {method} that it gave when it was written; "
                "use the versions that describe_model shows."
            )
    scores = found.get("decision_function", found.get("predict_proba"))
    if scores is None or classes is None:
        return
    given = 1 if scores.ndim == 1 else scores.shape[1]
    if given not in ({1, 2} if len(classes) == 2 else {len(classes), len(classes) * (len(classes) - 1) // 2}):
        raise ModelFileError(f"{type(estimator).__name__} has {given} scores for {len(classes)} classes.")


def kept_answers(found: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
    """The numbers that a file keeps, to compare with those of later programs."""
    some = (found or {}).items()
    return {name: a for name, a in some if name in METHODS and a.dtype.kind == "f" and a.size <= MOST_KEPT}
