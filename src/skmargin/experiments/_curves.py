"""Measures of figures: what a task records along a parameter, an iteration or a number of labels.

They take and return what those of `_measures` do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from .. import SemiSupervisedMarginSVC
from .._types import RowsLike
from ..comparison import Model
from ..solvers.multi_margin.exact import solve_multi_margin
from ..solvers.multi_margin.svrg import epoch, first_step
from ._measures import Records, fit, scaler
from ._spec import Protocol, thin

LABELLED = 0.05  # share of the labels that semi-supervised machines see
ITERATIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
EPOCHS = 40
LADDER = 4.0 ** np.arange(3, -8, -1)


def seconds(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Time of one fit as the method stands, and of one of its iterations."""
    front = scaler(X, scale)
    rows = front.fit_transform(X[train])
    model, fit_seconds, status = fit(clone(method.estimator), rows, y[train])
    parts = getattr(model, "estimators_", [model])
    iterations = sum(int(np.max(part.n_iter_)) for part in parts) / len(parts)
    common = {"fit_seconds": fit_seconds, "status": status}
    return [
        {"quantity": "fit", "value": fit_seconds, **common},
        {"quantity": "iteration", "value": fit_seconds / max(1.0, iterations), **common},
    ]


def sweep(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Accuracy on the test rows for each value of the grid's only parameter."""
    front = scaler(X, scale)
    rows, held = front.fit_transform(X[train]), front.transform(X[test])
    ((name, values),) = thin(method.grid, protocol.values).items()
    out: Records = []
    for value in values:
        model, fit_seconds, status = fit(clone(method.estimator).set_params(**{name: value}), rows, y[train])
        score = float(model.score(held, y[test]))
        out.append({"quantity": "accuracy", "x": value, "value": score, "fit_seconds": fit_seconds, "status": status})
    return out


def above_optimum(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Objective of the published solver over that of the certified one, minus one, for each value of the parameter."""
    rows = scaler(X, scale).fit_transform(X[train])
    ((name, values),) = thin(method.grid, protocol.values).items()
    out: Records = []
    for value in values:
        machine = clone(method.estimator).set_params(**{name: value})
        exact, _, _ = fit(clone(machine).set_params(solver="auto"), rows, y[train])
        found, seconds, status = fit(machine, rows, y[train])
        ratio = float(found.objective_ / exact.objective_ - 1)
        record = {"fit_seconds": seconds, "status": status}
        out.append({"quantity": "above optimum", "x": value, "value": ratio, **record})
    return out


def iterations(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Objective and accuracy on the test rows after a number of iterations."""
    front = scaler(X, scale)
    rows, held = front.fit_transform(X[train]), front.transform(X[test])
    out: Records = []
    for n in ITERATIONS:
        model, fit_seconds, _ = fit(clone(method.estimator).set_params(max_iter=n), rows, y[train])
        out.append({"quantity": "objective", "x": n, "value": float(model.objective_), "fit_seconds": fit_seconds})
        out.append({"quantity": "accuracy", "x": n, "value": float(model.score(held, y[test]))})
        if model.n_iter_ < n:
            break
    return out


def suboptimality(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Objective of stochastic gradients over the certified optimum, minus one, after each epoch.

    As in the paper each method has the largest step of a ladder with which its objective does not rise, up to 5 %.
    """
    rows, y = scaler(X, scale).fit_transform(X[train]), y[train].astype(np.int32)
    k, cap = int(y.max()) + 1, np.ones(len(train))
    best = solve_multi_margin(rows, y, cap, k, tol=1e-6).objective
    how = {"SVRG": {}, "SGD, constant": {"decay": 0.0}, "SGD, decreasing": {"decay": 1.0}}[method.name]
    for factor in LADDER:
        values = _epochs(rows, y, cap, k, factor * first_step(rows, cap, k), seed, **how)
        if np.isfinite(values).all() and (values[1:] <= 1.05 * np.minimum.accumulate(values)[:-1]).all():
            break
    return [
        {"quantity": "suboptimality", "x": t, "value": float(v / best - 1), "params": f"step={factor:g}"}
        for t, v in enumerate(values)
    ]


def few_labels(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Accuracy on the test rows when only 5 % of the training rows, and at least one of each class, are labelled."""
    front = scaler(X, scale)
    rows, held, y_train = front.fit_transform(X[train]), front.transform(X[test]), y[train]
    shown = _shown(y_train, seed)
    if isinstance(method.estimator, (SemiSupervisedMarginSVC, SelfTrainingClassifier, LabelSpreading)):
        labels = np.where(shown, y_train, -1)
    else:
        rows, labels = rows[shown], y_train[shown]
    model, fit_seconds, status = fit(clone(method.estimator), rows, labels)
    score = float(np.mean(model.predict(held) == y[test]))
    return [{"quantity": "accuracy", "value": score, "fit_seconds": fit_seconds, "status": status}]


def rounds(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Objective above its end, in the last stage of a machine that gives labels and solves in turns, by rounds."""
    rows, labels = scaler(X, scale).fit_transform(X[train]), y[train]
    model, seconds, status = fit(clone(method.estimator), rows, np.where(_shown(labels, seed), labels, -1))
    stages, values = model.trajectory_[:, 0], model.trajectory_[:, 1]
    last = values[stages == stages[-1]]
    record = {"fit_seconds": seconds, "status": status}
    return [
        {"quantity": "above the end", "x": i / 2, "value": float(value / last[-1] - 1), **record}
        for i, value in enumerate(last)
    ]


def boundary(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """The line of a linear machine in two dimensions for each value of the grid's parameter, and its accuracy.

    Abe's examples: the second and third class and the third and fourth feature of iris, the first 25 rows of each class
    for training, of the third class all 25 or only ten.
    """
    first, second = np.flatnonzero(y == 1), np.flatnonzero(y == 2)
    n_second = 10 if "10" in method.name else 25
    train, test = np.r_[first[:25], second[:n_second]], np.r_[first[25:], second[25:]]
    X = scaler(X, scale).fit_transform(X[:, 2:4])
    out: Records = []
    ((name, values),) = method.grid.items()
    for value in values:
        model = clone(method.estimator).set_params(**{name: value}).fit(X[train], y[train])
        w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        score = float(np.mean(model.predict(X[test]) == y[test]))
        numbers = {"accuracy": score, "w1": w[0], "w2": w[1], "b": b}
        size = {"n_train": len(train), "n_test": len(test)}
        out += [{"quantity": quantity, "x": value, "value": float(v), **size} for quantity, v in numbers.items()]
    return out


def _shown(y: np.ndarray, seed: int) -> np.ndarray:
    """Which labels a semi-supervised machine sees."""
    shown = np.random.default_rng(seed).random(len(y)) < LABELLED
    shown[np.unique(y, return_index=True)[1]] = True
    return shown


def _epochs(
    X: RowsLike, y: np.ndarray, cap: np.ndarray, k: int, step: float, seed: int, decay: float | None = None
) -> np.ndarray:
    """Objective before the first and after each epoch; with ``decay`` (in epochs) plain stochastic gradients."""
    W, b = np.zeros((k, X.shape[1])), np.zeros(k)
    values = [epoch(X, y, cap, W, b, fit_intercept=True, step=0.0, seed=seed)[2]]
    plain: dict[str, Any] = {} if decay is None else {"variance_reduction": False, "decay": decay / len(y)}
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(EPOCHS):
            W, b, value = epoch(
                X, y, cap, W, b, fit_intercept=True, step=step, seed=seed + t, first=t * len(y), **plain
            )
            values.append(value)
    return np.array(values)
