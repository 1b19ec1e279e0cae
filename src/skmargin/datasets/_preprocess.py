"""An unfitted transformer for a raw table, made of parts of scikit-learn and three readers of cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from .._types import RowsLike
from ._columns import DateParts, ParseNumbers, ParseText, SoftClip
from ._files import DataError
from ._plan import Column, plan_columns

RARE = 3  # levels with fewer samples than this share one column
MAX_COLUMNS = 100  # of a category
MAX_TERMS = 1000  # of a text


def table_preprocessor(
    X: RowsLike,
    *,
    drop: Iterable[Any] = (),
    number: Iterable[Any] = (),
    categorical: Iterable[Any] = (),
    text: Iterable[Any] = (),
    date: Iterable[Any] = (),
    decimal: str | None = None,
    sparse: bool = True,
) -> ColumnTransformer:
    """Make an unfitted transformer that turns a raw table into features between 0 and 1.

    Numbers (also with decimal commas and divided thousands) are scaled, missing ones filled with the median and marked
    by a further feature.  Text with few levels and truth values become one feature for each level, rare levels
    together, levels that are new at prediction with them.  Text with many levels becomes tf-idf weights of
    its letters or, where it is long, of its words.  Dates become days, season, weekday and hour.  Columns that
    are empty, constant, number the rows or look like ids are left out.

    Which column is of which kind is decided here, from the table without the labels; everything else is learnt by
    ``fit``, so that it belongs inside each training fold: put the transformer before a classifier in a `Pipeline`.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_columns)
        The table, without the labels.
    drop, number, categorical, text, date : iterables of column names
        Columns that are left out, or of a kind that was not detected.
    decimal : {".", ","}, default=None
        Decimal sign of numbers that are text; None detects it.
    sparse : bool, default=True
        Give a sparse matrix where most features are zero; False gives an array always.

    Returns
    -------
    transformer : ColumnTransformer
        For frames whose columns have the same names in any order, or arrays with the same columns.

    See Also
    --------
    plan_columns : What is done with each column, in words.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.datasets import table_preprocessor
    >>> table = pd.DataFrame({"size": ["1,5", None, "2,25", "9,5"] * 5, "colour": ["red", "blue", "red", "blue"] * 5})
    >>> labels = ["apple", "plum", "apple", "plum"] * 5
    >>> model = make_pipeline(table_preprocessor(table), CrammerSingerSVC(random_state=0)).fit(table, labels)
    >>> str(model.predict(pd.DataFrame({"colour": ["green"], "size": [2.5]}))[0])
    'apple'
    """
    options = {"drop": drop, "number": number, "categorical": categorical, "text": text, "date": date}
    return build_preprocessor(plan_columns(X, **options, decimal=decimal), sparse=sparse)


def build_preprocessor(plan: Iterable[Column], *, sparse: bool = True) -> ColumnTransformer:
    """The transformer that a plan describes."""
    groups: dict[str, tuple[Any, list[Any]]] = {}
    for column in plan:
        if column.kind == "number":
            key = "numbers" if column.decimal == "." else "numbers with commas"
            part: Any = _numbers(ParseNumbers(decimal=column.decimal))
        elif column.kind == "date":
            key = f"dates{' day first' * column.day_first}{' with hours' * column.hours}"
            part = _numbers(DateParts(day_first=column.day_first, hours=column.hours))
        elif column.kind == "category":
            encoder = OneHotEncoder(
                handle_unknown="infrequent_if_exist", min_frequency=RARE, max_categories=MAX_COLUMNS
            )
            key, part = "categories", Pipeline([("read", ParseText()), ("encode", encoder)])
        elif column.kind == "text":
            letters: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": (2, 4)}
            words = {"token_pattern": r"(?u)\b\w+\b"}
            terms = TfidfVectorizer(max_features=MAX_TERMS, sublinear_tf=True, **(words if column.long else letters))
            key, part = f"text {len(groups)}", Pipeline([("read", ParseText(flat=True)), ("encode", terms)])
        else:
            continue
        groups.setdefault(key, (part, []))[1].append(column.name)
    if not groups:
        raise DataError("No column is left to learn from: all are empty, constant, ids or left out.")
    parts = [(key, part, names) for key, (part, names) in groups.items()]
    return ColumnTransformer(parts, sparse_threshold=0.3 if sparse else 0.0)


def _numbers(reader: Any) -> Pipeline:
    """Numbers with gaps: filled, marked, scaled."""
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return Pipeline([("read", reader), ("impute", imputer), ("scale", SoftClip())])
