"""``skmargin fit``."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.fixes import parse_version

from .._types import Estimator, RowsLike
from ..comparison import METRICS, ComparisonError, Model, rare_classes, second_largest, tuned
from ..datasets import Dataset
from ..datasets._files import check_memory
from ..model_files import save_model
from ..report import summarize_dataset
from ._common import (
    check_metric,
    check_writable,
    complaints,
    describe,
    find_model,
    print_json,
    tell_columns,
    training_data,
)
from ._fit_rows import fit_rows_and_save, is_large, takes_blocks
from ._terminal import printable, say, seconds

log = logging.getLogger("skmargin.cli")


def fit(
    data: str, name: str, out: Path, cv: int, target: str | None, metric: str, class_weight: str | None, proba: bool,
    as_json: bool, seed: int, jobs: int | None, options: dict[str, Any], dask: str | None = None,
) -> None:  # fmt: skip
    """Tune, fit, perhaps calibrate, write, and say what was done."""
    with complaints():
        spec = find_model(name, "--model")
        check_metric(metric, class_weight)
        check_writable(out)
        plain = not proba and not any(options.values())
        if dask is not None:
            _check_for_workers(spec, plain)
        if dask is not None or (plain and is_large(data, spec)):
            _fit_large(spec.weighted(class_weight), data, target, out, dask, cv, seed, jobs, metric, as_json)
            return
        loaded = training_data(data, target, options, [spec])
        summary = summarize_dataset(loaded.name, loaded.X, loaded.y, loaded.feature_names)
        if (
            len(summary.classes) < 2
            or second_largest(np.asarray(loaded.y)) < cv
            or (proba and min(summary.class_counts) < cv)
        ):
            which = "all (--proba)" if proba else "at least two"
            raise ComparisonError(
                f"{data}: {which} classes need {cv} samples each for {cv} folds (--cv); there are "
                f"{len(summary.classes)}, the smallest with {min(summary.class_counts)}."
            )
        weighted = spec.weighted(class_weight)
        if class_weight is not None and weighted is spec:
            say(f"{spec.name}: no class weights.", stderr=True)
        if not as_json:
            say(describe(summary.classes, loaded))
        tell_columns(loaded, quiet=as_json)
        if rare := rare_classes(np.asarray(loaded.y), cv):
            say(rare, stderr=True)
        threads = jobs or os.cpu_count()
        facts, last = fit_and_save(weighted, loaded, out, cv=cv, seed=seed, n_jobs=threads, metric=metric, proba=proba)
        if as_json:
            print_json(facts)
            return
        chosen = ", ".join(f"{key}={value:g}" for key, value in facts["params"].items())
        most = np.argmax(summary.class_counts)
        always = f"always {summary.classes[most]!r}: {100 * summary.class_counts[most] / summary.n_samples:.2f} % right"
        score = f"{100 * facts['cv_score']:.2f} % {METRICS[metric][1].replace('new', 'held-out')}"
        say(f"{spec.name} with {chosen}: {score} ({cv} folds; {always}).")
        calibrated = ", calibrated" if proba else ""
        say(f"Fitted in {seconds(facts['fit_time'])}{_gap_words(last)}{calibrated}. Model file: {out}")


def _check_for_workers(spec: Model, plain: bool) -> None:
    """Refuse what cannot be fitted on workers."""
    if not takes_blocks(spec):
        raise ComparisonError(f"--dask: {spec.name} needs all rows in memory; crammer-singer, for instance, does not.")
    if not plain:
        raise ComparisonError("--dask reads columns of numbers: --proba and the options for columns are not for it.")


def _fit_large(
    spec: Model, data: str, target: str | None, out: Path, dask: str | None, cv: int, seed: int, jobs: int | None,
    metric: str, as_json: bool,
) -> None:  # fmt: skip
    """The same for data that are read block by block, or by workers."""
    facts, last = fit_rows_and_save(
        spec, data, target, out, dask=dask, cv=cv, seed=seed, n_jobs=jobs or os.cpu_count(), metric=metric,
        verbose=int(not as_json),
    )  # fmt: skip
    if as_json:
        print_json(facts)
        return
    chosen = ", ".join(f"{key}={value:g}" for key, value in facts["params"].items())
    say(f"{data}: {facts['n_rows']} rows, read {'in blocks' if dask is None else 'by Dask'}.")
    score = f"{100 * facts['cv_score']:.2f} % {METRICS[metric][1].replace('new', 'held-out')}"
    say(f"{spec.name} with {chosen}: {score} ({cv} folds).")
    say(f"Fitted in {seconds(facts['fit_time'])}{_gap_words(last)}. Model file: {out}")


def _gap_words(model: Estimator) -> str:
    gap = getattr(model, "dual_gap_", None)
    return "" if gap is None else f", relative duality gap {np.max(gap):.1e}"


def fit_and_save(
    spec: Model, loaded: Dataset, out: Path, *, cv: int, seed: int, n_jobs: int | None, metric: str, proba: bool = False
) -> tuple[dict[str, Any], Any]:
    """Tune a model on all data and write it; gives what is known of it, and the fitted classifier."""
    X = loaded.X
    if spec.dense and sparse.issparse(X):
        check_memory(loaded.name, 3 * 8 * int(np.prod(X.shape)))
        X = X.toarray()
    scoring = METRICS[metric][0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "The least populated class")  # `rare_classes` says it
        search = tuned(
            spec, X, cv=cv, seed=seed, n_jobs=n_jobs, columns=loaded.columns,
            scoring=None if scoring == "accuracy" else scoring,
        )  # fmt: skip
        log.info("tuning %s", spec.name)
        search.fit(X, loaded.y)
        model = search.best_estimator_
        last = model[-1]
        if proba:
            log.info("calibrating %s", spec.name)
            model = calibrated(model, X, loaded.y, cv=cv, seed=seed)
    params = {key.removeprefix("model__"): value for key, value in search.best_params_.items()}
    facts: dict[str, Any] = {
        "model": spec.name, "estimator": type(spec.estimator).__name__, "params": params, "metric": metric,
        "cv_score": float(search.best_score_), "fit_time": float(search.refit_time_), "proba": proba,
        "file": printable(out),
    }  # fmt: skip
    if metric == "accuracy":
        facts["cv_accuracy"] = facts["cv_score"]
    source = {"data": printable(loaded.name), "feature_names": loaded.feature_names, "zero_based": loaded.zero_based}
    names = None if loaded.is_raw else loaded.feature_names
    save_model(model, out, feature_names=names, metadata={**source, **facts})
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"warning: {message}", stderr=True)
    return facts, last


def calibrated(model: Pipeline, X: RowsLike, y: Any, *, cv: int, seed: int) -> Pipeline:
    """The pipeline with probabilities from held-out scores: of one temperature where scikit-learn knows it.

    A temperature leaves the order of the classes as it is, so ``predict`` and the largest probability agree.
    """
    method = "temperature" if parse_version(sklearn.__version__) >= parse_version("1.8") else "sigmoid"
    folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
    last = CalibratedClassifierCV(clone(model[-1]), method=method, cv=folds, ensemble=False)
    return Pipeline([*model.steps[:-1], ("model", last.fit(model[:-1].transform(X), y))])
