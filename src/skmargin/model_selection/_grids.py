"""Grids that a user need not know."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .._types import RowsLike
from ..rows.gram import resolve_gamma
from ._folds import checked

STRENGTHS = {
    "C": [2.0**e for e in range(-6, 13, 2)],
    "alpha": [10.0**e for e in range(-5, 2)],
    "p": [1.1, 1.33, 1.5, 2.0, 3.0],
    "mu": [0.2, 0.5, 0.8],
    "theta": [0.0, 0.2, 0.4],
    "lambda1": [0.25, 1.0],
    "lambda2": [0.25, 1.0],
}
# Where a name means something else: the papers' grids.  Abe's has eight of these strengths; they cost next to nothing.
OF_CLASS = {
    "ULDMClassifier": {"alpha": [10.0**e for e in range(-12, 0)]},
    "M3SVC": {"p": [2.0, 4.0]},
}
WIDTHS = np.array([0.1, 0.3, 1.0, 3.0, 10.0])


def default_grid(estimator: BaseEstimator, X: RowsLike = None) -> dict[str, list[Any]]:
    """A grid for the parameters of a classifier that matter.

    Parameters
    ----------
    estimator : estimator
        A classifier of this package, or a `Pipeline` that ends in one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        Training rows, of a kernel machine: its widths are then multiples of ``gamma="scale"``; without them, of 1.

    Returns
    -------
    grid : dict
        Names of parameters (with the name of the last step for a pipeline) and lists of values.

    Examples
    --------
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.model_selection import default_grid
    >>> default_grid(CrammerSingerSVC())["C"][:3]
    [0.015625, 0.0625, 0.25]
    """
    classifier, prefix = estimator, ""
    if isinstance(estimator, Pipeline):
        name, classifier = estimator.steps[-1]
        prefix = f"{name}__"
        X = None  # the classifier sees other rows
    known = classifier.get_params(deep=False)
    values = STRENGTHS | OF_CLASS.get(type(classifier).__name__, {})
    grid = {prefix + name: list(values[name]) for name in values if name in known}
    if known.get("kernel", "linear") in ("rbf", "laplacian"):
        scale = 1.0 if X is None else resolve_gamma("scale", checked(X))
        grid[f"{prefix}gamma"] = [float(g) for g in scale * WIDTHS]
    if not grid:
        raise ValueError(f"{type(classifier).__name__} has none of the parameters {sorted(STRENGTHS)}: give a grid.")
    return grid
