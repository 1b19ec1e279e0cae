"""Fits along one parameter, each the start of the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, ClassVar

from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.pipeline import Pipeline

from .._runtime.progress import print_line
from .._types import Estimator, LabelsLike, RowsLike, WeightsLike
from ..estimators._base import CallbackSupportMixin, MarginClassifier
from ..estimators._ridge_path import KernelSquare, StrengthPath
from ._chains import in_path_order, is_number, prefix_of
from ._pipelines import split_fit_params


def is_known(classifier: Estimator) -> bool:
    """Whether this is a classifier of the package, and not a subclass that may fit or predict otherwise."""
    return type(classifier).__module__.startswith(f"{__package__.partition('.')[0]}.")


class WarmPath:
    """Fits of one classifier for changing values of a parameter.

    Least-squares machines give all values of their strength from one factorisation; iterative machines start from the
    solution before (``warm_start``), unless they have no certificate; others are fitted anew.
    """

    def __init__(self, classifier: BaseEstimator, parameter: str | None, values: Sequence[Any]) -> None:
        self.classifier, self.parameter, self.values = classifier, parameter, values
        self._warm = (
            isinstance(classifier, MarginClassifier)
            and "warm_start" in classifier.get_params(deep=False)
            and classifier._is_exact()
        )
        self._given_warm_start = self._warm and classifier.get_params(deep=False)["warm_start"]
        strength = getattr(classifier, "_strength_name", None) if is_known(classifier) else None
        self.closed_form = parameter is not None and parameter == strength and all(map(is_number, values))
        self._solved: StrengthPath | None = None

    def solve(
        self, X: RowsLike, y: LabelsLike, fit_params: dict[str, Any], square: KernelSquare | None = None
    ) -> StrengthPath:
        """All values of a closed form; ``square`` as `StrengthPath` takes it."""
        if self._solved is None:
            weight = fit_params.get("sample_weight")
            self._solved = StrengthPath(self.classifier, X, y, weight, self.values, square)
        return self._solved

    def fit(self, value: Any, X: RowsLike, y: LabelsLike, fit_params: dict[str, Any]) -> Any:
        """The classifier fitted for one value."""
        if self.closed_form:
            return self.solve(X, y, fit_params).model(value)
        model = self.classifier
        if self.parameter is not None:
            model.set_params(**{self.parameter: value})
        if self._warm:
            model.set_params(warm_start=True)
        try:
            model.fit(X, y, **fit_params)
        except Exception:
            self.classifier = clone(model)  # the next fit does not start from one that failed
            raise
        model = copy(model)  # attributes are replaced by a fit, never changed
        model.__dict__.pop("_parent_callback_ctx", None)
        if self._warm:
            model.warm_start = self._given_warm_start
        if not self._given_warm_start:
            model.__dict__.pop("_warm_state", None)  # duals for the next fit, as large as the data
        return model


def margin_path(
    estimator: Estimator,
    X: RowsLike,
    y: LabelsLike,
    param_name: str,
    values: Sequence[Any],
    *,
    sample_weight: WeightsLike = None,
) -> list[Any]:
    """Fit an estimator for several values of one parameter; each solution is the start of the next.

    Parameters
    ----------
    estimator : estimator
        A classifier of this package, or a `Pipeline` that ends in one (its other steps are fitted once).
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows, or rows in blocks (`skmargin.datasets.open_rows`), which are counted and sampled once.
    y : array-like of shape (n_samples,)
        Labels; None for rows in blocks, which come with theirs.
    param_name : str
        The parameter: ``"C"``, ``"alpha"``, ``"p"``, ``"theta"``, ``"mu"``, ``"gamma"``; in a pipeline with the name
        of the last step before it (``"svc__C"``).
    values : sequence
        Its values, in any order; the fits go from the strongest penalty to the weakest.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows (for the classifier; not for other steps of a pipeline).

    Returns
    -------
    models : list
        The fitted estimators, in the order of ``values``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.model_selection import margin_path
    >>> X, y = load_iris(return_X_y=True)
    >>> models = margin_path(CrammerSingerSVC(), X, y, "C", [0.01, 1, 100])
    >>> [model.C for model in models]
    [0.01, 1, 100]
    >>> models[0].objective_ < models[1].objective_ < models[2].objective_
    True
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"values must be a sequence of values of {param_name!r}, got {values!r}.")
    return _Values(clone(estimator), param_name, list(values)).fit(X, y, sample_weight)


class _Values(CallbackSupportMixin, BaseEstimator):
    """The fits of `margin_path`; the callbacks of the estimator hear of each value."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self, estimator: Estimator, param_name: str, values: list[Any]) -> None:
        self.estimator, self.param_name, self.values = estimator, param_name, values

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike) -> list[Any]:
        """One fitted estimator for each value."""
        estimator, values = self.estimator, self.values
        prefix = prefix_of(estimator)
        if self.param_name not in estimator.get_params() or not self.param_name.startswith(prefix):
            raise ValueError(
                f"param_name={self.param_name!r} is not a parameter of the "
                f"{'last step of the pipeline' if prefix else type(estimator).__name__}; "
                f"allowed are {sorted(n for n in estimator.get_params() if n.startswith(prefix))}."
            )
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        about = {"estimator": self, "X": X, "y": y, "metadata": metadata}
        root = self._begin(about)
        classifier, front, rows = estimator, None, X
        if isinstance(estimator, Pipeline):
            classifier = estimator.steps[-1][1]
            if len(estimator.steps) > 1:
                front = estimator[:-1]
                rows = front.fit_transform(X, y, **split_fit_params(estimator, {})[0])
        name = self.param_name[len(prefix) :]
        path = WarmPath(classifier, name, values)
        models: list[Any] = [None] * len(values)
        for done, number in enumerate(in_path_order(name, values)):
            context = None if root is None else root.subcontext(task_name="value")
            with fit_task(context, path, about):
                model = path.fit(values[number], rows, y, metadata or {})
            model.__dict__.pop("_skl_callbacks", None)  # they belong to the path
            models[number] = model if classifier is estimator else _with_classifier(estimator, front, model)
            if getattr(classifier, "verbose", 0):
                print_line(f"margin_path: {done + 1} of {len(values)} values, {self.param_name}={values[number]}")
        if root is not None:
            root.call_on_fit_task_end(**about)
        return models

    def _begin(self, about: dict[str, Any]) -> Any:
        """The task of all fits; the callbacks move from the estimator, and its clones, to it."""
        if not hasattr(self, "_init_callback_context"):
            return None
        classifier = self.estimator.steps[-1][1] if isinstance(self.estimator, Pipeline) else self.estimator
        holder = self.estimator if hasattr(self.estimator, "_skl_callbacks") else classifier
        if hasattr(holder, "_skl_callbacks"):
            self.set_callbacks(*holder._skl_callbacks)
            holder.set_callbacks()
        return self._init_callback_context(max_subtasks=len(self.values)).call_on_fit_task_begin(**about)


@contextmanager
def fit_task(context: Any, path: WarmPath, about: dict[str, Any]) -> Iterator[None]:
    """Tell the callbacks (scikit-learn 1.9 and later) of one fit of a path."""
    if context is None:
        yield
        return
    try:
        if path.closed_form:  # not one fit a value
            context.call_on_fit_task_begin(**about)
            yield
        else:
            with context.propagate_callback_context(path.classifier):
                context.call_on_fit_task_begin(**about)
                yield
    finally:
        context.call_on_fit_task_end(**about)


def _with_classifier(pipeline: Pipeline, front: Pipeline | None, model: Estimator) -> Pipeline:
    """A pipeline of fitted steps."""
    out = copy(pipeline)
    out.steps = [*([] if front is None else front.steps), (pipeline.steps[-1][0], model)]
    return out
