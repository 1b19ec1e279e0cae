"""``skmargin fit`` of data that are too large for memory: block by block, or on the workers of a cluster."""

from __future__ import annotations

import glob
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from .._runtime.memory import free_memory
from .._runtime.progress import listening, listening_to_gaps
from ..comparison import METRICS, Model
from ..datasets import DataError, open_rows
from ..model_files import save_model
from ..model_selection import MarginSearchCV
from ..model_selection._rows import at_once
from ..rows.files import Batch, OpenRows
from ._dask import Table, workers
from ._progress import watched
from ._terminal import printable, say

PASSES = 7  # of a fit, about
STAGES = {"opening": 0, "scaling": 1, "counting": 1, "tuning": 2 + PASSES, "fitting": PASSES}  # and their passes
LARGE_SHARE = 0.25  # of the free memory, from which on a file is not read as a whole


def takes_blocks(spec: Model) -> bool:
    """Whether a model can be fitted to rows in blocks and on workers."""
    fits = getattr(spec.estimator, "_in_blocks", False) and not spec.kernel
    return fits and getattr(spec.estimator, "loss", "") != "hinge"


def is_large(data: str, spec: Model) -> bool:
    """Whether files are too large to be read as a whole, and the model takes blocks."""
    if not takes_blocks(spec):
        return False
    path = Path(data)
    files = [path] if path.is_file() else list(path.rglob("*")) if path.is_dir() else map(Path, glob.glob(data))
    size = sum(one.stat().st_size for one in files if one.is_file())
    free = free_memory()
    return path.is_dir() or (size > 0 and not path.is_file()) or (free is not None and size > LARGE_SHARE * free)


def scaled(rows: OpenRows, read: Callable[[], Iterator[Batch]]) -> tuple[Any, OpenRows]:
    """A fitted scaler, and the rows that ``read`` gives as it scales them: [0, 1], or [-1, 1] for sparse ones."""
    scaler: Any = None
    for X, _, _ in read():
        if scaler is None:
            scaler = MaxAbsScaler() if sparse.issparse(X) else MinMaxScaler()
        if X.shape[0]:
            scaler.partial_fit(X)

    def batches() -> Iterator[Batch]:
        for X, y, weight in read():
            yield Batch(scaler.transform(X) if X.shape[0] else X, y, weight)

    return scaler, OpenRows(rows.name, batches, rows.n_features, n_rows=rows.n_rows, labels=rows.labels)


def fit_rows_and_save(
    spec: Model, data: str, target: str | None, out: Path, *, dask: str | None, cv: int, seed: int, n_jobs: int | None,
    metric: str, verbose: int,
) -> tuple[dict[str, Any], Any]:  # fmt: skip
    """Tune a model on rows in blocks, or on the workers of a cluster, and write it.

    Gives what is known of it, and the fitted classifier.
    """
    estimator = clone(spec.estimator).set_params(random_state=seed, n_jobs=n_jobs)
    scoring = METRICS[metric][0]
    search = MarginSearchCV(estimator, spec.grid, cv=cv, scoring=None if scoring == "accuracy" else scoring)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if dask:
                search.set_params(verbose=verbose, estimator__verbose=verbose)
                found = _on_workers(search, data, target, dask, n_jobs)
            else:
                found = _in_blocks(search, data, target, lines=bool(verbose))
            rows, scaler, n_rows, best, fit_time = found
        except DataError:
            raise
        except (ValueError, RuntimeError) as error:  # of the rows: a block or a partition is named
            raise DataError(f"{data}: {error}") from error
    facts: dict[str, Any] = {
        "model": spec.name, "estimator": type(best).__name__, "params": search.best_params_, "metric": metric,
        "cv_score": float(search.best_score_), "fit_time": fit_time, "proba": False,
        "file": printable(out), "n_rows": n_rows,
    }  # fmt: skip
    if metric == "accuracy":
        facts["cv_accuracy"] = facts["cv_score"]
    metadata = {"data": printable(data), "feature_names": rows.feature_names, "zero_based": None, **facts}
    model = Pipeline([("scale", scaler), ("model", best)])
    save_model(model, out, feature_names=rows.feature_names, metadata=metadata)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"warning: {message}", stderr=True)
    return facts, best


Found = tuple[Any, Any, int | None, Any, float]  # source, scaler, number of rows, the fitted machine, its seconds


def _in_blocks(search: MarginSearchCV, data: str, target: str | None, lines: bool) -> Found:
    with watched(dict(STAGES), lines) as watch:
        watch.begin("opening")
        with listening(watch.share):  # text is converted
            rows = open_rows(data, target=target)
        watch.begin("scaling")
        scaler, in_range = scaled(rows, watch.over(rows))
        watch.begin("counting")
        fits = search.cv * len(ParameterGrid(search.param_grid))
        watch.begin(
            "tuning", 2 + PASSES * -(-fits // at_once(in_range.counted()))
        )  # the sizes of the folds, the scores
        search.set_params(refit=False).fit(in_range)
        watch.begin("fitting")
        start = time.perf_counter()
        with listening_to_gaps(watch.hear):
            best = clone(search.estimator).set_params(**search.best_params_).fit(in_range)
    counts = in_range.counts
    n_rows = None if counts is None else int(np.sum([len(one) for one in counts[1]]))
    return rows, scaler, n_rows, best, time.perf_counter() - start


def _on_workers(search: MarginSearchCV, data: str, target: str | None, where: str, n_jobs: int | None) -> Found:
    with workers(where, n_jobs):
        table = Table(data, target)
        search.fit(table.X, table.y)
    best = search.best_estimator_.set_params(verbose=0)
    return table, table.scaler, int(table.n_rows), best, float(search.refit_time_)
