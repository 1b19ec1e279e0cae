"""The two parts of a pipeline: the steps before the classifier, which candidates share, and the classifier."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object, process_routing


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
    # The steps before take the names that the user gave; what the classifier is given has its own.
    asked = get_routing_for_object(pipeline[:-1]).consumes("fit_transform", fit_params.keys())
    routed = process_routing(pipeline, "fit", **fit_params)
    return {name: fit_params[name] for name in asked}, dict(routed[last].fit)


def last_score_params(pipeline: Pipeline, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of ``score`` as the classifier takes them."""
    if not params or not get_config()["enable_metadata_routing"]:
        return params
    return dict(process_routing(pipeline, "score", **params)[pipeline.steps[-1][0]].score)
