"""Columns that know too much: one that alone does as well as the best model may give the label away."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from ..datasets import Dataset
from ..datasets._preprocess import build_preprocessor
from ._metrics import Counts

MAX_COLUMNS = 300  # more are not looked at one by one
MAX_ROWS = 3000


def telling_columns(data: Dataset, best: float, baseline: float, metric: str = "accuracy") -> dict[str, float]:
    """Columns from which a small tree alone predicts as well as the best model does.

    Parameters
    ----------
    data : Dataset
        Rows with the names of their columns, and labels.
    best, baseline : float
        Scores of the best model and of the most frequent class.
    metric : str, default="accuracy"
        What the scores are.

    Returns
    -------
    found : dict of str to float
        Names of the columns and what each reaches, the best first.
    """
    names = data.feature_names
    if names is None or data.y is None or sparse.issparse(data.X) or not 2 <= len(names) <= MAX_COLUMNS:
        return {}
    classes, y = np.unique(data.y, return_inverse=True)
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MAX_ROWS])
    y = y[rows]
    if np.bincount(y, minlength=len(classes)).min() < 3 or best <= baseline:
        return {}
    tree = DecisionTreeClassifier(max_leaf_nodes=max(8, 4 * len(classes)), random_state=0)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = {}
    for j, name in enumerate(names):
        guess = cross_val_predict(tree, _features(data, j, rows), y, cv=folds)
        score = Counts.of(y, guess, np.arange(len(classes))).metrics()[metric]
        if score >= best - 1e-3 and score - baseline > 0.5 * (1 - baseline):
            found[str(name)] = score
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _features(data: Dataset, j: int, rows: np.ndarray) -> Any:
    if not data.is_raw:
        ranks = np.unique(data.X[rows, j], return_inverse=True)[1]  # all that a tree sees, and never out of its range
        return ranks[:, None]
    kept = [column for column in data.columns or () if column.kind != "left out"]
    part = data.X.iloc[rows][[kept[j].name]]
    return build_preprocessor([kept[j]], sparse=False).fit_transform(part)
