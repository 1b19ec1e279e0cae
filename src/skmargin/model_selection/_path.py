"""Fits along one parameter, each the start of the next."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from ..estimators._base import MarginClassifier
from ..estimators._ridge_path import KernelSquare, StrengthPath
from ._chains import in_path_order, prefix_of
from ._pipelines import split_fit_params


class WarmPath:
    """Fits of one classifier for changing values of a parameter.

    Least-squares machines give all values of their strength from one factorisation; iterative machines start from the
    solution before (``warm_start``); others are fitted anew.
    """

    def __init__(self, classifier: BaseEstimator, parameter: str | None, values: Sequence[Any]) -> None:
        self.classifier, self.parameter, self.values = classifier, parameter, values
        self._warm = isinstance(classifier, MarginClassifier) and "warm_start" in classifier.get_params(deep=False)
        self._given_warm_start = self._warm and classifier.get_params(deep=False)["warm_start"]
        self.closed_form = parameter is not None and parameter == getattr(classifier, "_strength_name", None)
        self._solved: StrengthPath | None = None

    def solve(self, X: Any, y: Any, fit_params: dict[str, Any], square: KernelSquare | None = None) -> StrengthPath:
        """All values of a closed form; ``square`` as `StrengthPath` takes it."""
        if self._solved is None:
            weight = fit_params.get("sample_weight")
            self._solved = StrengthPath(self.classifier, X, y, weight, self.values, square)
        return self._solved

    def fit(self, value: Any, X: Any, y: Any, fit_params: dict[str, Any]) -> Any:
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
            self.classifier = clone(model)  # the next fit does not start from a wreck
            raise
        model = copy(model)  # attributes are replaced by a fit, never changed
        if self._warm:
            model.warm_start = self._given_warm_start
        if not self._given_warm_start:
            model.__dict__.pop("_before", None)  # duals for the next fit, as large as the data
        return model


def margin_path(
    estimator: Any, X: Any, y: Any, param_name: str, values: Sequence[Any], *, sample_weight: Any = None
) -> list[Any]:
    """Fit an estimator for several values of one parameter; each solution is the start of the next.

    Parameters
    ----------
    estimator : estimator
        A classifier of this package, or a `Pipeline` that ends in one (its other steps are fitted once).
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Labels.
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
    estimator = clone(estimator)
    prefix = prefix_of(estimator)
    if not param_name.startswith(prefix) or param_name not in estimator.get_params():
        raise ValueError(
            f"param_name={param_name!r} is not a parameter of the classifier of {type(estimator).__name__}; "
            f"allowed are {sorted(n for n in estimator.get_params() if n.startswith(prefix))}."
        )
    classifier, wrap = estimator, lambda model: model
    if isinstance(estimator, Pipeline):
        classifier = estimator.steps[-1][1]
        if len(estimator.steps) > 1:
            front = estimator[:-1]
            X = front.fit_transform(X, y, **split_fit_params(estimator, {})[0])
            wrap = lambda model: _with_classifier(estimator, front, model)  # noqa: E731
        else:
            wrap = lambda model: _with_classifier(estimator, None, model)  # noqa: E731
    name = param_name[len(prefix) :]
    fit_params = {} if sample_weight is None else {"sample_weight": sample_weight}
    path = WarmPath(classifier, name, list(values))
    models: list[Any] = [None] * len(values)
    for number in in_path_order(name, values):
        models[number] = wrap(path.fit(values[number], X, y, fit_params))
    return models


def _with_classifier(pipeline: Pipeline, front: Pipeline | None, model: Any) -> Pipeline:
    """A pipeline of fitted steps."""
    out = copy(pipeline)
    out.steps = [*([] if front is None else front.steps), (pipeline.steps[-1][0], model)]
    return out
