"""One function for all data: a built-in name or a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from .._types import RowsLike
from ._csv import read_csv
from ._files import DataError
from ._libsvm import read_with_base
from ._parquet import read_parquet
from ._plan import Column, plan_columns

BUILT_IN: dict[str, tuple[Callable[..., Any], str]] = {
    "iris": (load_iris, "flowers of three species, measured in centimetres"),
    "wine": (load_wine, "chemical analysis of wines of three cultivars"),
    "digits": (load_digits, "8 x 8 pictures of handwritten digits"),
    "breast_cancer": (load_breast_cancer, "measurements of cell nuclei, malignant or benign"),
}
_COMPRESSED = {".gz", ".bz2", ".xz"}


@dataclass(frozen=True)
class Dataset:
    """Rows and labels with their names.

    Attributes
    ----------
    name : str
        Built-in name, or name of the file.
    X : ndarray or CSR array of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,) or None
        The labels: integers or strings.
    feature_names : list of str or None
        Names of the columns, where the source has any.
    zero_based : bool or None
        Whether the first feature has index 0 in the LIBSVM file they come from.
    columns : list of Column or None
        What each column of a raw table is taken for (see `load_training`).

    Examples
    --------
    >>> from skmargin.datasets import load_dataset
    >>> data = load_dataset("iris")
    >>> data.name, data.X.shape, data.feature_names[0]
    ('iris', (150, 4), 'sepal length (cm)')
    """

    name: str
    X: RowsLike
    y: np.ndarray | None
    feature_names: list[str] | None
    zero_based: bool | None = None
    columns: list[Column] | None = None

    @property
    def is_raw(self) -> bool:
        """Whether the rows are a data frame that has to be preprocessed."""
        return hasattr(self.X, "iloc")


@dataclass(frozen=True)
class TableOptions:
    """What a user says of a raw table where detection fails; see `plan_columns` and `read_csv`."""

    drop: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    encoding: str | None = None
    decimal: str | None = None


def load_dataset(
    source: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    labelled: bool = True,
    n_features: int | None = None,
    zero_based: bool | None = None,
    raw: bool = False,
    encoding: str | None = None,
    decimal: str | None = None,
) -> Dataset:
    """Load data by name or from a file.

    Parameters
    ----------
    source : str or path
        ``"iris"``, ``"wine"``, ``"digits"``, ``"breast_cancer"``, or a file: CSV (``.csv``, ``.tsv``), Parquet
        (``.parquet``, ``.pq``), anything else is read as LIBSVM.  Text files may be compressed (gzip, bzip2, xz).
    target : str or int, default=None
        Column with the labels in a CSV or Parquet file.
    labelled : bool, default=True
        A CSV or Parquet file without ``target`` is refused; False reads it as rows without labels.
    n_features : int, default=None
        Number of features of a LIBSVM file, for test data whose last features are all zero.
    zero_based : bool, default=None
        Whether the first feature of a LIBSVM file has index 0, for test data whose first feature is zero everywhere;
        None says so if an index 0 occurs.
    raw : bool, default=False
        Whether a CSV or Parquet file may hold text, dates and missing values; ``X`` is then a data frame.
    encoding, decimal : str, default=None
        Of a CSV file; None detects them (see `read_csv`).

    Returns
    -------
    data : Dataset
        With ``name``, ``X``, ``y`` and ``feature_names``.

    Examples
    --------
    >>> from skmargin.datasets import load_dataset
    >>> data = load_dataset("iris")
    >>> data.X.shape, data.feature_names[0], sorted(set(data.y.tolist()))
    ((150, 4), 'sepal length (cm)', ['setosa', 'versicolor', 'virginica'])
    """
    if str(source) in BUILT_IN:
        if target is not None:
            raise DataError(f"{source}: is built in and has its labels; target is for columns of files.")
        bunch = BUILT_IN[str(source)][0]()
        return Dataset(str(source), bunch.data, bunch.target_names[bunch.target], list(map(str, bunch.feature_names)))
    path = Path(source)
    if not path.exists():
        raise DataError(f"{source}: neither a file nor one of the built-in data sets {', '.join(BUILT_IN)}.")
    if path.is_dir():
        raise DataError(f"{source}: is a folder, not a file.")
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv", ".parquet", ".pq"):
        if labelled and target is None:
            raise DataError(f"{source}: say which column holds the labels (target; in a command --target).")
        if suffix in (".csv", ".tsv"):
            table = read_csv(path, target, raw=raw, encoding=encoding, decimal=decimal)
        else:
            table = read_parquet(path, target, raw=raw)
    else:
        table, zero_based = read_with_base(path, n_features, zero_based)
        return Dataset(path.name, *table, zero_based=zero_based)
    return Dataset(path.name, *table)


def suffix_of(path: str | os.PathLike[str]) -> str:
    """The ending of a name that says what the file holds, without that of a compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return next((s for s in reversed(suffixes) if s not in _COMPRESSED), "")


def load_training(
    source: str | os.PathLike[str], target: str | int | None = None, options: TableOptions | None = None
) -> Dataset:
    """Load labelled data to learn from; of a raw table only the columns that can be learnt from.

    Parameters
    ----------
    source : str or path
        As for `load_dataset`.
    target : str or int, default=None
        Column with the labels in a CSV or Parquet file.
    options : TableOptions, default=None
        What the user says of its columns.

    Returns
    -------
    data : Dataset
        ``X`` is an array where all columns that are left are whole numbers or fractions without gaps, else a data
        frame for `skmargin.datasets.table_preprocessor`; ``columns`` says what each column of the file is taken for.
    """
    options = options or TableOptions()
    data = load_dataset(source, target=target, raw=True, encoding=options.encoding, decimal=options.decimal)
    if not data.is_raw:
        if any((options.drop, options.number, options.categorical, options.text, options.date)):
            raise DataError(
                f"{source}: has no columns with names; options about columns are for CSV and Parquet files."
            )
        return data
    kinds = {name: getattr(options, name) for name in ("drop", "number", "categorical", "text", "date")}
    try:
        columns = plan_columns(data.X, **kinds, decimal=options.decimal)
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
    kept = [column for column in columns if column.kind != "left out"]
    if not kept:
        raise DataError(f"{source}: no column is left to learn from: all are empty, constant, ids or dropped.")
    names = [column.name for column in kept]
    X = data.X[names]
    if all(column.kind == "number" for column in kept) and all(dtype.kind in "iuf" for dtype in X.dtypes):
        array = X.to_numpy(dtype=np.float64)
        X = array if np.isfinite(array).all() else X
    return replace(data, X=X, feature_names=names, columns=columns)
