"""Columns that know too much: one that alone does as well as the best model may give the label away."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from ..datasets import Dataset
from ..datasets._plan import Column, plan_columns
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

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.comparison import telling_columns
    >>> from skmargin.datasets import Dataset
    >>> y = np.repeat([0, 1], 50)
    >>> noise = np.random.default_rng(0).normal(size=100)
    >>> data = Dataset("answers", np.c_[noise, y], y, ["noise", "answer"])
    >>> telling_columns(data, best=1.0, baseline=0.5)
    {'answer': 1.0}
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
    plan = plan_columns(data.X) if data.is_raw and data.columns is None else data.columns or []
    columns = [column for column in plan if column.kind != "left out"]
    names = [str(column.name) for column in columns] if data.is_raw else names
    found = {}
    for j, name in enumerate(names):
        guess = cross_val_predict(tree, _features(data, columns, j, rows), y, cv=folds)
        score = Counts.of(y, guess, np.arange(len(classes))).metrics()[metric]
        if score >= best - 1e-3 and score - baseline > 0.5 * (1 - baseline):
            found[str(name)] = score
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _features(data: Dataset, columns: list[Column], j: int, rows: np.ndarray) -> Any:
    if not data.is_raw:
        ranks = np.unique(data.X[rows, j], return_inverse=True)[1]  # all that a tree sees, and never out of its range
        return ranks[:, None]
    column = columns[j]
    return build_preprocessor([column], sparse=False).fit_transform(data.X.iloc[rows][[column.name]])
