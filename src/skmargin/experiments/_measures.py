"""What a task does with its method and rows: each function returns records (quantity, x, value, ...) for the results.

All take the method, the protocol, the way features are scaled, rows, labels, training and test rows, and the number of
the division, which seeds everything random.  Seconds are those of the processor: tasks run beside each other.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, Normalizer

from .._types import Estimator, RowsLike
from ..comparison import Model, kernel_spread
from ..inspection import margins
from ..model_selection import MarginSearchCV
from ._spec import Protocol, thin

Records = list[dict[str, Any]]
BINS = np.linspace(-3.0, 3.0, 31)
FINE = 0.1  # step of p around the best value of its grid


def accuracy(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Accuracy on the test rows, parameters chosen by cross-validation on the training rows."""
    model, record = _tuned(method, protocol, scale, X[train], y[train], seed)
    start = time.process_time()
    right = model.predict(X[test]) == y[test]
    record["predict_seconds"] = time.process_time() - start
    return [{"quantity": "accuracy", "value": float(right.mean()), **record}]


def as_given(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Accuracy on the test rows with parameters as they are, or the only ones of the grid; random starts differ."""
    model = clone(method.estimator).set_params(**{name: value for name, (value,) in method.grid.items()})
    names = [name for name in ("random_state", "estimator__random_state") if name in model.get_params()]
    model.set_params(**dict.fromkeys(names, seed))
    model, seconds, status = fit(Pipeline([("scale", scaler(X, scale)), ("model", model)]), X[train], y[train])
    start = time.process_time()
    right = model.predict(X[test]) == y[test]
    took = time.process_time() - start
    record = {"fit_seconds": seconds, "predict_seconds": took, "status": status}
    return [{"quantity": "accuracy", "value": float(right.mean()), **record}]


def best_of_folds(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """The best mean accuracy over the folds of all rows that a point of the grid has: no row is held back."""
    rows = np.sort(np.r_[train, test])
    grid = thin(method.grid, protocol.values)
    chosen, seconds, best = _search(method, protocol, scale, X[rows], y[rows], seed, grid)
    values = {name: value for name, (value,) in chosen.items()}
    return [{"quantity": "accuracy", "value": best, "search_seconds": seconds, "params": _told(values)}]


def in_turn(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Accuracy as `accuracy`, but C and p are chosen in turn: C, then p, C beside the best, p in steps of 0.1."""
    grid = thin(method.grid, protocol.values)
    chosen: dict[str, Any] = {name: [method.estimator.get_params()[name]] for name in grid}
    total = 0.0
    for name in (*grid, *(("beside", "fine") if "p" in grid else ())):
        if name == "beside":
            at = grid["C"].index(chosen["C"][0])
            more = {"C": grid["C"][max(0, at - 1) : at + 2]}
        elif name == "fine":
            steps = (chosen["p"][0] + FINE * step for step in range(-4, 5))
            more = {"p": [round(p, 3) for p in steps if p >= min(grid["p"])]}
        else:
            more = {name: grid[name]}
        chosen, took, _ = _search(method, protocol, scale, X[train], y[train], seed, chosen | more)
        total += took
    final = replace(method, grid={name: tuple(value) for name, value in chosen.items()})
    (record,) = as_given(final, protocol, scale, X, y, train, test, seed)
    return [record | {"search_seconds": total, "params": _told({name: value for name, (value,) in chosen.items()})}]


def margin_histogram(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Share of the test rows in each bin of the margin, in units of the mean absolute margin; variance; accuracy."""
    model, record = _tuned(method, protocol, scale, X[train], y[train], seed)
    found = margins(model, X[test], y[test], normalize=True)
    counts = np.histogram(np.clip(found, BINS[0], BINS[-1]), BINS)[0] / len(found)
    out: Records = [
        {"quantity": "margin", "x": float(x), "value": float(v)} for x, v in zip(BINS, counts, strict=False)
    ]
    out.append({"quantity": "margin variance", "value": float(found.var()), **record})
    out.append({"quantity": "negative margins", "value": float((found <= 0).mean())})
    return out


def ceiling(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, train: Any, test: Any, seed: int
) -> Records:
    """Accuracy on the training rows themselves for each point of the grid, numbered by x."""
    rows = scaler(X, scale).fit_transform(X[train])
    out: Records = []
    for number, point in enumerate(ParameterGrid(thin(method.grid, protocol.values))):
        model, seconds, status = fit(clone(method.estimator).set_params(**point), rows, y[train])
        right = float(np.mean(model.predict(rows) == y[train]))
        record = {"fit_seconds": seconds, "params": _told(point), "status": status}
        out.append({"quantity": "training accuracy", "x": number, "value": right, **record})
    return out


def scaler(X: RowsLike, scale: str) -> Any:
    """What stands before the classifier."""
    if scale in ("none", "standard, all rows"):
        return FunctionTransformer()
    if scale == "length":
        return Normalizer()
    if sparse.issparse(X):
        return MaxAbsScaler()
    return MinMaxScaler((0.0, X.shape[1] ** -0.5) if scale == "unit / sqrt(m)" else (0.0, 1.0))


def _tuned(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, seed: int
) -> tuple[Any, dict[str, Any]]:
    """A pipeline fitted with the parameters that cross-validation chose, and how long that took."""
    pipeline = Pipeline([("scale", scaler(X, scale)), ("model", clone(method.estimator))])
    grid = thin(method.grid, protocol.values)
    spread = kernel_spread(clone(pipeline.named_steps["scale"]).fit_transform(X)) if method.widths else 0.0
    if method.widths:
        grid["gamma"] = [width / spread for width in method.widths]
    chosen, search_seconds, _ = _search(method, protocol, scale, X, y, seed, grid)
    values = {name: value for name, (value,) in chosen.items()}
    model, fit_seconds, status = fit(pipeline.set_params(**{f"model__{k}": v for k, v in values.items()}), X, y)
    if method.widths:  # as a multiple of gamma="scale"
        values["width"] = values.pop("gamma") * spread
    return model, {
        "search_seconds": search_seconds, "fit_seconds": fit_seconds, "params": _told(values), "status": status,
    }  # fmt: skip


def _search(
    method: Model, protocol: Protocol, scale: str, X: RowsLike, y: np.ndarray, seed: int, grid: dict[str, list[Any]]
) -> tuple[dict[str, list[Any]], float, float]:
    """The best point of a grid, as a grid of one point, the seconds that it took, and its mean accuracy."""
    pipeline = Pipeline([("scale", scaler(X, scale)), ("model", clone(method.estimator))])
    folds = StratifiedKFold(protocol.folds, shuffle=True, random_state=seed)
    inside = {f"model__{name}": values for name, values in grid.items()}
    search = MarginSearchCV(pipeline, inside, cv=folds, refit=False, error_score="raise")
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    took = time.process_time() - start
    chosen = {name.removeprefix("model__"): [value] for name, value in search.best_params_.items()}
    return chosen, took, float(search.best_score_)


def _told(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={value:g}" for name, value in values.items())


def fit(model: Estimator, X: RowsLike, y: np.ndarray) -> tuple[Any, float, str]:
    """The fitted model, its seconds, and whether it reached its tolerance."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        model.fit(X, y)
        took = time.process_time() - start
    short = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return model, took, "not converged" if short else "ok"
