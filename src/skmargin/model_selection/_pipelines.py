"""The two parts of a pipeline: the steps before the classifier, which candidates share, and the classifier."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing


def is_split(estimator: BaseEstimator) -> bool:
    """Whether the estimator is a pipeline whose steps before the last one can be fitted on their own.

    Subclasses of `Pipeline` may do more than transform (resample, for one): they are fitted as a whole.
    """
    return type(estimator) is Pipeline and len(estimator.steps) > 1 and hasattr(estimator.steps[-1][1], "fit")


def split_fit_params(pipeline: Pipeline, fit_params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of ``fit`` for the steps before the classifier (as their pipeline takes them), and for it."""
    last = pipeline.steps[-1][0]
    if not get_config()["enable_metadata_routing"]:
        prefix = f"{last}__"
        front = {name: value for name, value in fit_params.items() if not name.startswith(prefix)}
        return front, {name[len(prefix) :]: value for name, value in fit_params.items() if name.startswith(prefix)}
    routed = process_routing(pipeline, "fit", **fit_params)
    front = {}
    for name, _ in pipeline.steps[:-1]:
        for of_method in routed.get(name, {}).values():
            front.update(of_method)
    return front, dict(routed[last].fit)
