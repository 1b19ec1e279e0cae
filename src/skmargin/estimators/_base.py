"""What every estimator shares: checked input, encoded labels, exact weights, scores turned into labels."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, assert_all_finite, check_random_state
from sklearn.utils._param_validation import Interval, make_constraint
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._numbers import WITH_SQUARE
from .._runtime.progress import listening, print_line
from .._types import ClassWeight, Estimator, LabelsLike, RandomState, Rows, RowsLike, WeightsLike
from ..rows.collections import Collections, is_collection, lazily, lazy_accuracy
from ..rows.files import OpenRows
from ..rows.gram import check_gram
from ..rows.labels import distinct_labels
from ..rows.maps import refuse_cut_map
from ..solvers.tuning import DEFAULT, Tuning
from ._links import LinkedMachine

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""


log = logging.getLogger("skmargin.fit")
REALS = np.dtype(np.float64), np.dtype(np.float32)
LARGEST = {"d": WITH_SQUARE, "f": 1e15}  # number in X of each type: sums and products of squares must stay finite
COUNT = [Interval(Integral, 1, 2**62, closed="both")]  # constraint of a number of iterations: the core must hold it
JOBS = [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None]
MOST_CAP = 1e100  # C times a weight, or one over it, of which sums and products of squares stay numbers
GOAL = 0.99  # share of the tolerance that a solver is asked for: the rest is for the rounding of what is published
STEPS = 20  # of the progress of a fit
SECONDS = 1.0  # between two lines that say how far it is
MACHINERY = ("skmargin", "sklearn", "joblib")  # packages between a fit and the line that asked for it


class Problem(NamedTuple):
    """Training data as every solver takes it: rows of weight zero are gone, labels are 0..k-1.

    ``kept`` holds the positions of the remaining rows in the data that the user gave.
    """

    X: Rows
    y: np.ndarray
    weight: np.ndarray
    n_classes: int
    kept: np.ndarray


def fitting(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of ``fit``: parameters are validated, and callbacks (scikit-learn 1.9 and later) are told of it."""

    @wraps(method)
    def fit(self: Any, X: Rows, y: LabelsLike = None, *args: Any, **metadata: Any) -> Any:
        context, about = None, {"estimator": self, "X": X, "y": y, "metadata": metadata or None}
        if getattr(self, "_skl_callbacks", None):
            context = self._init_callback_context(max_subtasks=STEPS).call_on_fit_task_begin(**about)
        listens = context is not None or bool(getattr(self, "verbose", 0))
        start = time.perf_counter()
        # What is not finite in the end is refused (`check_finite`); on the way it deserves no warning.
        no_warnings = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        with listening(Progress(self, context) if listens else None), no_warnings:
            in_blocks = isinstance(X, OpenRows) or is_collection(X)
            (fit_rows if in_blocks else method)(self, X, y, *args, **metadata)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s: %s, %.3g s", self, _outcome(self), time.perf_counter() - start)
        if context is not None:
            context.call_on_fit_task_end(**about, reconstruction_attributes={})
        return self

    whole = _fit_context(prefer_skip_nested_validation=True)(fit)

    @wraps(method)
    def guarded(self: Any, X: Rows, y: LabelsLike = None, *args: Any, **metadata: Any) -> Any:
        try:
            return whole(self, X, y, *args, **metadata)
        except BaseException:  # also Ctrl-C, at any moment: a fit that does not end leaves the estimator unfitted
            self.__dict__.pop("n_iter_", None)
            raise

    return guarded


def _outcome(estimator: Estimator) -> str:
    """The certificate of a fit in a few words."""
    names = {"objective_": "objective %.6g", "dual_gap_": "relative gap %.1e", "n_iter_": "%d iterations"}
    known = {name: getattr(estimator, name, None) for name in names}
    return ", ".join(names[name] % np.max(value) for name, value in known.items() if value is not None)


def fit_rows(
    estimator: Estimator,
    X: Rows,
    y: LabelsLike = None,
    sample_weight: WeightsLike = None,
    checkpoint: Any = None,
) -> None:
    """Fit an estimator to rows in blocks or to Dask collections, if it can be."""
    name = type(estimator).__name__
    if not getattr(estimator, "_in_blocks", False):
        kind = "rows in blocks (open_rows)" if isinstance(X, OpenRows) else "Dask collections"
        raise TypeError(f"{name} cannot be fitted to {kind}: it needs all rows in memory.")
    if isinstance(X, OpenRows) and (y is not None or sample_weight is not None):
        raise ValueError(f"{name}.fit(rows) takes labels and weights from the rows; y and sample_weight must be None.")
    estimator._fit_rows(X if isinstance(X, OpenRows) else Collections(X, y, sample_weight), checkpoint)


class Progress:
    """Listener of a fit: each of `STEPS` steps is a task for the callbacks, and a line where a fit takes long."""

    def __init__(self, estimator: Estimator, context: Any) -> None:
        self.estimator, self.context, self.done = estimator, context, 0
        self.start = self.printed_at = time.perf_counter()

    def __call__(self, share: float) -> None:
        """Note that this share of the fit is done."""
        before, self.done = self.done, max(self.done, min(STEPS, int(STEPS * share)))
        if self.done == before:
            return
        if self.context is not None:
            for _ in range(before, self.done):
                step = self.context.subcontext(task_name="step").call_on_fit_task_begin(estimator=self.estimator)
                step.call_on_fit_task_end(estimator=self.estimator)
        now = time.perf_counter()
        if getattr(self.estimator, "verbose", 0) and now - self.printed_at > SECONDS:
            self.printed_at = now
            print_line(f"{type(self.estimator).__name__}: {self.done / STEPS:.0%} of the way, {now - self.start:.0f} s")


class MarginClassifier(LinkedMachine, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base of all classifiers here.  A subclass gives ``fit`` and ``_scores`` (one column a class).

    ``fit`` has the decorator `fitting`.
    """

    _tuning: ClassVar[Tuning] = DEFAULT  # constants that steer the speed of solvers and predictions

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:  # reads the signature anew for each fit otherwise
        return super()._get_param_names()

    @classmethod
    @cache
    def _constraints(cls) -> dict[str, list[Any]]:  # made anew for each fit otherwise
        given = cls._parameter_constraints.items()
        return {name: [make_constraint(c) for c in some] for name, some in given if some != "no_validation"}

    def _validate_params(self) -> None:
        constraints = self._constraints()
        for name, value in self.get_params(deep=False).items():
            if name in constraints and not any(c.is_satisfied_by(value) for c in constraints[name]):
                super()._validate_params()  # knows how to say it

    def _is_exact(self) -> bool:
        """Whether a fit ends at the same solution, to its tolerance, from every start."""
        return True

    def _check_problem(self, X: Rows, y: LabelsLike, sample_weight: WeightsLike) -> Problem:
        """Check and encode the training data; set ``classes_`` and ``n_features_in_``."""
        self.__dict__.pop("n_iter_", None)  # a fit that is interrupted leaves the estimator unfitted
        X, y = self._check_rows(X, y)
        countable = y.dtype.kind in "biuU"  # whole numbers or strings: classes, whatever they are
        if not countable:
            check_labels(y)
        weight = np.ones(len(y))
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.classes_, codes, weight, kept = encode_labels(y, weight, getattr(self, "class_weight", None))
        k = len(self.classes_)
        if countable and 2 * k > len(y):  # so many that it may warn
            check_classification_targets(y)
        if k < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y (rows of weight 0 do not count), "
                f"got one class: {self.classes_.tolist()[0]!r}."
            )
        if len(kept) < X.shape[0]:
            X = X[kept]
        if sparse.issparse(X):
            X = canonical_csr(X)
        return Problem(X, codes, weight, k, kept)

    def _count_rows(self, rows: OpenRows | Collections) -> Any:
        """Read rows in blocks once: check, count and encode them; set ``classes_`` and ``n_features_in_``."""
        self.__dict__.pop("n_iter_", None)
        found = rows.counted(getattr(self, "n_jobs", None))
        classes, mass = found.classes, found.class_mass
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y (rows of weight 0 do not count), "
                f"got one class: {classes.tolist()[0]!r}."
            )
        given = getattr(self, "class_weight", None)
        if isinstance(given, str):
            found.per_class = mass.sum() / (len(classes) * mass)
            check_weights("class_weight", found.per_class)
        elif given is not None:
            found.per_class = weights_of_classes(given, classes)
        self.classes_, self.n_features_in_ = classes, found.n_features
        self.__dict__.pop("feature_names_in_", None)
        if rows.feature_names is not None:
            self.feature_names_in_ = np.array(rows.feature_names, dtype=object)
        return found

    def _check_rows(self, X: Rows, y: LabelsLike) -> tuple[Any, np.ndarray]:
        """The rows and labels as arrays; sets ``n_features_in_``.

        `validate_data` takes longer than a small fit: plain arrays that it would return as they are do not go there.
        """
        check_compressed(X)
        refuse_cut_map(X)
        check_targets(y)
        X = aligned(X)
        labels = type(y) is np.ndarray and y.dtype.kind in "iu" and y.ndim == 1
        plain = labels and type(X) is np.ndarray and X.flags.c_contiguous and is_plain(X) and len(X) == len(y)
        if plain and (size := largest_number(X)) < np.inf:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
            size = largest_number(X)
        if size > LARGEST[X.dtype.char]:
            raise ValueError(
                f"X contains a number of size {size:.1e}, whose square is too large to compute with; "
                "scale the features."
            )
        if isinstance(kernel := getattr(self, "kernel", None), str) and kernel == "precomputed":
            check_gram(X)
        return X, y

    def __sklearn_is_fitted__(self) -> bool:
        return "n_iter_" in self.__dict__

    def __getattr__(self, name: str) -> Any:  # asked only for what is not there
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in ("predict_proba", "predict_log_proba"):
            message += (
                ": its scores are margins, not probabilities. Calibrate it with "
                "sklearn.calibration.CalibratedClassifierCV, or take M3SVC(loss='log_loss')"
            )
        cause = None
        try:  # a method that is there for some parameters says why it is not
            object.__getattribute__(self, name)
        except AttributeError as error:
            cause = error.__cause__
        raise AttributeError(f"{message}.") from cause

    def _scores_show_nonfinite(self) -> bool:
        """Whether NaN or infinity in a row shows in all of its scores: then X needs no look of its own."""
        return False

    def _check_predict(self, X: Rows) -> Any:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        check_compressed(X)
        refuse_cut_map(X)
        X = aligned(X)
        known = is_plain(X) and X.shape[1] == self.n_features_in_ and not hasattr(self, "feature_names_in_")
        if not (known and self._scores_show_nonfinite()):
            X = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False,
                ensure_all_finite=not self._scores_show_nonfinite(),
            )  # fmt: skip
        rows = not isinstance(X, np.ndarray) or X.flags.c_contiguous or self._takes_columns(X)
        return X if rows else np.ascontiguousarray(X)

    def _takes_columns(self, X: np.ndarray) -> bool:
        """Whether scores of rows that are stored column by column, as in a data frame, need no copy of them."""
        return False

    @abstractmethod
    def _scores(self, X: Rows) -> np.ndarray:
        """Scores of checked rows, one column a class; for two classes one column (``score_1 - score_0``)."""

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or rows in blocks
            The rows to score; of `skmargin.datasets.open_rows` the result is an iterator over blocks.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            One column for each class in the order of ``classes_``; with two classes a single column, positive
            where the second class wins.
        """
        if isinstance(X, OpenRows):
            return self._blockwise(X, self._flat_scores)  # type: ignore[return-value]
        if is_collection(X):
            check_is_fitted(self)
            k = len(self.classes_)
            return lazily(X, self.decision_function, np.empty((0,) if k == 2 else (0, k)))
        return self._flat_scores(self._check_predict(X))

    def _flat_scores(self, X: Rows) -> np.ndarray:
        """Scores of checked rows, as they are published."""
        scores = self._finite_scores(X)
        return scores.ravel() if len(self.classes_) == 2 else scores

    def _blockwise(self, rows: OpenRows, method: Callable[[Any], np.ndarray]) -> Iterator[np.ndarray]:
        """A method of each block of rows, which are checked where they are read."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if rows.n_features != self.n_features_in_:
            raise ValueError(
                f"{rows.name} has {rows.n_features} features, but {type(self).__name__} was fitted with "
                f"{self.n_features_in_} features."
            )
        if names is not None and rows.feature_names is not None and rows.feature_names != names.tolist():
            raise ValueError(f"{rows.name} has other features than {type(self).__name__} was fitted with.")
        return (method(X) if X.shape[0] else self.classes_[:0] for X, _, _ in rows)

    def _finite_scores(self, X: Rows) -> np.ndarray:
        """Scores of checked rows, of which there may be some that are not finite: they are refused."""
        scores = self._scores(X)
        if self._scores_show_nonfinite() and not np.isfinite(scores[:, 0]).all():
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        return scores

    def predict(self, X: RowsLike) -> np.ndarray:
        """Class with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or rows in blocks
            The rows to classify; of `skmargin.datasets.open_rows` the result is an iterator over blocks.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of ``classes_`` for each row.
        """
        if isinstance(X, OpenRows):
            return self._blockwise(X, self._labels)  # type: ignore[return-value]
        if is_collection(X):
            check_is_fitted(self)
            return lazily(X, self.predict, self.classes_[:0])
        return self._labels(self._check_predict(X))

    def score(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike = None) -> Any:
        """Accuracy on the given rows and labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask collection} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            Share of the rows that are classified correctly; of Dask collections a lazy number.
        """
        return lazy_accuracy(self, X, y, sample_weight) if is_collection(X) else super().score(X, y, sample_weight)

    def _labels(self, X: Rows) -> np.ndarray:
        """Predicted class of each checked row."""
        scores = self._finite_scores(X)
        return self.classes_.take(scores[:, 0] > 0 if len(self.classes_) == 2 else scores.argmax(axis=1))

    def _warn_not_converged(self, reached: float, quantity: str = "relative duality gap") -> None:
        stuck = self.n_iter_ < self.max_iter
        end = f"at max_iter={self.max_iter}"
        if stuck:
            end = f"after {self.n_iter_} iterations, when nothing moved any more,"
        warn_of_fit(
            f"{type(self).__name__} stopped {end} with a {quantity} of {reached:.2e} instead of "
            f"tol={self.tol:.2e}. Increase {'' if stuck else 'max_iter or '}tol, or scale the features."
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def warn_of_fit(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Say what is wrong with a fit at the line that asked for it: the first that is not of `MACHINERY`."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in MACHINERY:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_caps(C: float, weight: np.ndarray, most: float, name: str = "C") -> None:
    """Refuse losses that are weighed too heavily, or too lightly, to compute with."""
    with np.errstate(over="ignore", under="ignore"):
        largest, least = C * float(weight.max()), C * float(weight.min())
    if not (largest <= most and least >= 1 / MOST_CAP):
        raise ValueError(
            f"{name}={C:.3g} times the weights, which lie between {weight.min():.1e} and {weight.max():.1e}, must be "
            f"at least {1 / MOST_CAP:.0e} and at most {most:.0e}."
        )


def check_finite(model: Estimator, *numbers: Any) -> None:
    """Refuse to end a fit with numbers that are none; the estimator is left unfitted."""
    published = (model.__dict__.get(name) for name in ("coef_", "intercept_", "dual_coef_"))
    arrays = (array.data if sparse.issparse(array) else array for array in (*numbers, *published) if array is not None)
    if not all(np.isfinite(array).all() for array in arrays):
        model.__dict__.pop("n_iter_", None)
        raise ValueError(
            f"{type(model).__name__} met numbers beyond double precision; scale the features, or make its parameters "
            "and the weights less extreme."
        )


def check_labels(y: np.ndarray) -> None:
    """Refuse targets that are no classes, and labels that have no order among each other."""
    types = {"str" if isinstance(label, str) else type(label).__name__ for label in y} if y.dtype == object else set()
    if len(types) > 1:
        raise ValueError(f"y mixes labels of the types {', '.join(sorted(types))}; give all of them one type.")
    if types - {"str"}:
        kind = types.pop()
        raise ValueError(f"Unknown label type: y holds objects of type {kind}; give an array of numbers or of strings.")
    check_classification_targets(y)


def check_targets(y: LabelsLike) -> None:
    """Refuse one-hot and missing labels with a sentence that helps."""
    if getattr(y, "ndim", 1) == 2 and y.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {y.shape} instead. Where it is one-hot, one column a "
            "class, give y.argmax(axis=1)."
        )
    if hasattr(y, "isna"):  # of pandas
        missing = np.flatnonzero(np.asarray(y.isna()))
    elif type(y) is np.ndarray and y.dtype == object:
        missing = np.flatnonzero([type(label).__name__ == "NAType" for label in y.ravel()])
    else:
        return
    if len(missing):
        raise ValueError(f"Input y contains NaN: the label of row {missing[0]} is missing; leave such rows out.")


def aligned(X: Rows) -> Any:
    """The rows, copied where their numbers do not lie at whole addresses, which no compiled loop can read."""
    if type(X) is np.ndarray:
        return X if X.flags.aligned else np.array(X)
    if sparse.issparse(X) and X.format == "csr" and not all(a.flags.aligned for a in (X.data, X.indices, X.indptr)):
        return X.copy()
    return X


def check_compressed(X: Rows) -> None:
    """Refuse sparse rows whose index arrays were broken by hand: SciPy and the core would read beside them."""
    if type(X) is np.ndarray or not sparse.issparse(X) or X.format not in ("csr", "csc") or X.ndim != 2:
        return
    n, d = X.shape if X.format == "csr" else X.shape[::-1]
    start, at, stored = X.indptr, X.indices, min(len(X.indices), len(X.data))
    if len(start) != n + 1 or start[0] != 0 or start[-1] > stored or (start[1:] < start[:-1]).any():
        raise ValueError(f"X is no valid {X.format.upper()} matrix: indptr must rise from 0 to at most {stored}.")
    if len(at) and int(at.view(f"u{at.itemsize}").max()) >= d:  # as a number without a sign, -1 is large
        wrong = at.min() if at.min() < 0 else at.max()
        raise ValueError(f"X is no valid {X.format.upper()} matrix: indices must lie in 0..{d - 1}, got {wrong}.")


def is_plain(X: Rows) -> bool:
    """Whether `validate_data` would return the rows as they are, but for numbers that are not finite."""
    rows = type(X) is np.ndarray or (sparse.issparse(X) and X.format == "csr")
    return rows and X.ndim == 2 and X.dtype in REALS and 0 not in X.shape


def largest_number(X: Rows) -> float:
    """Size of the largest number; NaN if there is one."""
    numbers = X.data if sparse.issparse(X) else X
    return float(np.maximum(numbers.max(initial=0.0), -numbers.min(initial=0.0)))


def encode_labels(
    y: np.ndarray, weight: np.ndarray, class_weight: ClassWeight
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Drop the rows of weight zero, number the classes that remain, and fold the class weights in.

    Returns the classes, their codes for the rows kept, the weights of these rows, and which rows were kept.
    """
    kept = np.flatnonzero(weight > 0)
    if len(kept) == 0:
        raise ValueError("sample_weight is zero for every row: nothing is left to fit.")
    check_weights("sample_weight", weight)
    y, weight = y[kept], weight[kept]
    classes, codes = distinct_labels(y)
    if isinstance(class_weight, str):  # "balanced", on weighted counts: integer weights equal repeated rows
        mass = np.bincount(codes, weights=weight)
        per_class = weight.sum() / (len(classes) * mass)
        check_weights("class_weight", per_class)
        weight = weight * per_class[codes]
    elif class_weight is not None:
        weight = weight * weights_of_classes(class_weight, classes)[codes]
    return classes, codes.astype(np.int32), weight, kept


def weights_of_classes(given: Mapping[Any, Any], classes: np.ndarray) -> np.ndarray:
    """The weight of each class, 1 for those that are not named; refused where one is no weight or no class is named."""
    known = classes.tolist()
    among = set(known)  # looked up once for each name: a list would take the square of their number
    named = {c: w for c, w in given.items() if c in among}  # a fold may lack some of the classes
    if given and not named:
        raise ValueError(
            f"class_weight={given} names none of the classes, which are {known[:5]}{'...' * (len(known) > 5)}."
        )
    bad = {c: w for c, w in named.items() if not (isinstance(w, Real) and float(w) > 0)}
    if bad:
        raise ValueError(f"class_weight must be positive for every class, got {bad}.")
    weights = np.array([float(named.get(c, 1.0)) for c in known])
    check_weights("class_weight", weights)
    return weights


def check_weights(name: str, weight: np.ndarray) -> None:
    """Refuse weights that the sum of all losses could not hold, or whose inverse it could not."""
    most = LARGEST["d"]
    if weight.max() > most:
        raise ValueError(f"{name} contains a number of size {weight.max():.1e}; at most {most:.0e} can be used.")
    if (least := weight.min(initial=1.0, where=weight > 0)) < 1 / most:
        raise ValueError(f"{name} contains a number of size {least:.1e}; at least {1 / most:.0e}, or 0, can be used.")


def seed_of(random_state: RandomState) -> int:
    """A seed for the core; a number is one already."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def canonical_csr(X: Rows) -> Any:
    """CSR with sorted indices, no duplicates and one index type, as the core reads it; a copy only where needed."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indptr.dtype != X.indices.dtype:
        wide = np.result_type(X.indptr.dtype, X.indices.dtype)
        X = sparse.csr_array((X.data, X.indices.astype(wide), X.indptr.astype(wide)), shape=X.shape)
    return X
