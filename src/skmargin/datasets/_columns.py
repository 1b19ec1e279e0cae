"""Transformers for the columns of a raw table.  What they learn is plain: arrays, numbers and names."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted, validate_data

from .._types import LabelsLike, RowsLike
from ._cells import as_seconds, as_text, by_level, columns_of, floats


class _Columns(TransformerMixin, BaseEstimator):
    """Learns nothing but how many columns there are, and their names."""

    def fit(self, X: RowsLike, y: LabelsLike = None) -> Any:
        """Remember the columns.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            The columns.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._validate_params()
        _check_feature_names(self, X, reset=True)
        _check_n_features(self, X, reset=True)
        return self

    def _cells(self, X: RowsLike) -> list[Any]:
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        _check_n_features(self, X, reset=False)
        return list(columns_of(X))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags


class ParseNumbers(OneToOneFeatureMixin, _Columns):
    """Columns of numbers, or of text that shows numbers, as float64; NaN for what is missing, infinite or no number.

    Parameters
    ----------
    decimal : {".", ","}, default="."
        The decimal sign of numbers that are text.  Thousands may be divided by the other sign, spaces or apostrophes.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where they have any.

    Examples
    --------
    >>> from skmargin.datasets import ParseNumbers
    >>> ParseNumbers(decimal=",").fit_transform([["1.234,5"], ["-2"], ["?"]]).tolist()
    [[1234.5], [-2.0], [nan]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"decimal": [StrOptions({".", ","})]}

    def __init__(self, decimal: str = ".") -> None:
        self.decimal = decimal

    def transform(self, X: RowsLike) -> np.ndarray:
        """Read the numbers.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            The columns.

        Returns
        -------
        numbers : ndarray of shape (n_samples, n_columns)
        """
        columns = self._cells(X)
        out = np.empty((len(columns[0]), len(columns)), order="F")
        for j, column in enumerate(columns):
            out[:, j] = floats(column, self.decimal)
        return out


class ParseText(OneToOneFeatureMixin, _Columns):
    """Columns as text without blanks around it; "" for what is missing.

    A number has one text however it is stored ("1" for 1, 1.0 and "1.0"), and so has a truth value, so that a level is
    the same whether another value of its column is missing or not.

    Parameters
    ----------
    flat : bool, default=False
        Give the first column as a list of texts, as vectorizers of text want it, not as a table.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where they have any.

    Examples
    --------
    >>> from skmargin.datasets import ParseText
    >>> ParseText().fit_transform([[" red ", True], ["n/a", 1.0]]).tolist()
    [['red', 'True'], ['', '1']]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"flat": ["boolean"]}

    def __init__(self, flat: bool = False) -> None:
        self.flat = flat

    def transform(self, X: RowsLike) -> np.ndarray:
        """Read the texts.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            The columns.

        Returns
        -------
        texts : ndarray of str objects of shape (n_samples, n_columns), or (n_samples,)
        """
        columns = self._cells(X)
        out = np.empty((len(columns[0]), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            out[:, j] = by_level(column, as_text, object)
        return out[:, 0] if self.flat else out


class SoftClip(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Numbers centred and scaled by their quartiles, then bent into (-1, 1): no outlier takes the range for itself.

    With the median :math:`m` and the distance :math:`q` of the quartiles of training,
    :math:`z = (x - m) / (b q)` becomes :math:`z / \sqrt{1 + z^2}`: straight near the median, flat far from it.  Where
    the quartiles are equal, half the range stands for :math:`b q`; a constant becomes 0, and 0 and 1 stay as they are
    where there is nothing else.

    Parameters
    ----------
    bound : float, default=3.0
        The number b: how many distances of the quartiles away the bend is felt.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features,)
        :math:`m` and :math:`b q`; a scale of 0 marks columns that are left as they are.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where they have any.

    Examples
    --------
    >>> from skmargin.datasets import SoftClip
    >>> SoftClip(bound=1.0).fit_transform([[0.0], [1.0], [2.0], [3.0], [1e9]]).round(2).ravel().tolist()
    [-0.71, -0.45, 0.0, 0.45, 1.0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"bound": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, bound: float = 3.0) -> None:
        self.bound = bound

    def fit(self, X: RowsLike, y: LabelsLike = None) -> SoftClip:
        """Learn medians and quartiles.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64)
        low, middle, high = np.percentile(X, [25, 50, 75], axis=0)
        least, most = X.min(axis=0), X.max(axis=0)
        half = most / 2 - least / 2
        scale = np.where(high > low, self.bound * (high - low), half)
        flags = ((X == 0) | (X == 1)).all(axis=0)
        self.center_ = np.where(flags, 0.0, np.where(high > low, middle, least + half))
        self.scale_ = np.where(flags, 0.0, np.where(scale > 0, scale, 1.0))
        return self

    def transform(self, X: RowsLike) -> np.ndarray:
        """Centre, scale and bend.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers.

        Returns
        -------
        bent : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        flags = self.scale_ == 0
        z = (X - self.center_) / np.where(flags, 1.0, self.scale_)
        return np.where(flags, X, z / np.hypot(1.0, z))


class DateParts(_Columns):
    """Columns of dates as numbers: days since 1970, season (also its halves and thirds) and weekday as points of a
    circle, weekend.

    Dates may be stored as such or be text in several formats (2024-01-31, 31.1.2024, 1/31/24, 31 Jan 2024, January 31,
    2024), with or without a time.  NaN for what is no date.

    Parameters
    ----------
    day_first : bool, default=False
        Whether 1/2/2024 is the first of February.
    hours : bool, default=False
        Add the time of the day as a point of a circle.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where they have any.

    Examples
    --------
    >>> from skmargin.datasets import DateParts
    >>> dates = DateParts().fit([["1970-01-04"]])
    >>> dates.transform([["1970-01-04"], ["4 Jan 1970"]])[:, [0, 5]].tolist()
    [[3.0, 1.0], [3.0, 1.0]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"day_first": ["boolean"], "hours": ["boolean"]}

    def __init__(self, day_first: bool = False, hours: bool = False) -> None:
        self.day_first = day_first
        self.hours = hours

    def transform(self, X: RowsLike) -> np.ndarray:
        """Divide the dates into parts.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_columns)
            The columns.

        Returns
        -------
        parts : ndarray of shape (n_samples, n_columns * n_parts)
        """
        return np.column_stack([self._parts(seconds_of(column, self.day_first)) for column in self._cells(X)])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the parts.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns; None takes those of ``fit``.

        Returns
        -------
        names : ndarray of str objects
        """
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        parts = ["days", "season_sin", "season_cos", "weekday_sin", "weekday_cos", "weekend"]
        parts += ["hour_sin", "hour_cos"] if self.hours else []
        parts += ["half_season_sin", "half_season_cos", "third_season_sin", "third_season_cos"]
        return np.array([f"{name}_{part}" for name in input_features for part in parts], dtype=object)

    def _parts(self, seconds: np.ndarray) -> np.ndarray:
        missing = np.isnan(seconds)
        days = np.floor(np.where(missing, 0.0, seconds) / 86400)
        dates = days.astype(np.int64).astype("datetime64[D]")
        season = 2 * np.pi * (dates - dates.astype("datetime64[Y]")).astype(np.int64) / 365.25
        weekday = (days + 3) % 7  # 1970 began on a Thursday; Monday is 0
        parts = [days, np.sin(season), np.cos(season)]
        parts += [np.sin(2 * np.pi * weekday / 7), np.cos(2 * np.pi * weekday / 7), (weekday >= 5).astype(np.float64)]
        if self.hours:
            hour = 2 * np.pi * (np.where(missing, 0.0, seconds) % 86400) / 86400
            parts += [np.sin(hour), np.cos(hour)]
        for times in (2, 3):  # so that a linear machine can tell the months
            parts += [np.sin(times * season), np.cos(times * season)]
        out = np.column_stack(parts)
        out[missing] = np.nan
        return out


def seconds_of(column: Any, day_first: bool) -> np.ndarray:
    """A column of dates as seconds since 1970, NaN where there is none."""
    if getattr(getattr(column, "dtype", None), "kind", "") == "M":
        stamps = moments(column)
        return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / 1e6)
    return by_level(column, lambda cell: as_seconds(cell, day_first), np.float64)


def moments(column: Any) -> np.ndarray:
    """A column that is stored as dates, in microseconds, of time zones in UTC."""
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return np.asarray(column).astype("datetime64[us]")
