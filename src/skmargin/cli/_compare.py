"""``skmargin compare``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..comparison import Comparison, Model, advise, choose, models, rare_classes, telling_columns
from ..report import ModelResult, write_report
from ._common import (
    check_metric,
    check_writable,
    command_line,
    complaints,
    describe,
    find_model,
    now,
    print_json,
    tell_columns,
    training_data,
    versions,
)
from ._fit import fit_and_save
from ._terminal import progress, ranks, say, show_ranking

KERNEL_ROWS = 10_000  # above, the default comparison is one of linear machines
DENSE_CELLS = 1 << 27  # above, the default comparison leaves out what cannot do with sparse rows


def compare(
    data: str, names: str, cv: int, report: Path | None, target: str | None, metric: str, class_weight: str | None,
    save: Path | None, as_json: bool, resume: Path | None, seed: int, jobs: int | None, options: dict[str, Any],
) -> None:  # fmt: skip
    """Tune, rank, show and perhaps write the page and the first model."""
    with complaints():
        chosen = _choose(names)
        check_metric(metric, class_weight)
        for path in (report, resume, save):
            check_writable(path)
        loaded = training_data(data, target, options, chosen)
        if names == "default":
            chosen = _affordable(chosen, loaded)
        threads = jobs or os.cpu_count()
        comparison = Comparison(
            loaded, chosen, cv=cv, seed=seed, n_jobs=threads, store=resume, metric=metric, class_weight=class_weight
        )
        if not as_json:
            say(describe(comparison.summary.classes, loaded))
        tell_columns(loaded, quiet=as_json)
        if rare := rare_classes(np.asarray(loaded.y), cv):
            say(rare, stderr=True)
        if class_weight is not None:
            without = [model.name for model in chosen if model.weighted("balanced") is model]
            if without:
                say(f"{', '.join(without)}: no class weights.", stderr=True)
        _run(comparison, resume)
        ranked = comparison.ranked()
        words = advise(ranked, comparison.baseline, metric, _own()) if ranked else []
        words += _warnings(comparison, ranked)
        command = command_line(
            "compare", data, models=names, cv=cv, report=report, target=target, metric=metric,
            class_weight=class_weight, seed=seed, **options,
        )  # fmt: skip
        if as_json:
            print_json(_ranking(comparison, ranked, words, command))
        else:
            _show(comparison, ranked, words)
        if report is not None and ranked:
            write_report(comparison.results(command, versions(), now()), report)
            say(f"Report: {report}", stderr=as_json)
        if save is not None and ranked:
            best = next(model for model in comparison.models if model.name == choose(ranked).name)
            fit_and_save(best, loaded, save, cv=cv, seed=seed, n_jobs=threads, metric=metric)
            say(f"Model file: {save} ({best.name})", stderr=as_json)
        if comparison.errors:
            raise typer.Exit(3)


def _choose(names: str) -> list[Model]:
    known = models()
    if names in ("default", "all"):
        return [model for model in known.values() if model.default or names == "all"]
    wanted = dict.fromkeys(name.strip().lower() for name in names.split(",") if name.strip())
    if not wanted:
        raise typer.BadParameter("names no model.", param_hint="--models")
    return [find_model(name, "--models") for name in wanted]


def _affordable(chosen: list[Model], loaded: Any) -> list[Model]:
    """The models that take no more than minutes, and a line about the others."""
    n, d = loaded.X.shape
    if n > KERNEL_ROWS:
        left_out = [model.name for model in chosen if model.kernel]
        chosen = [model for model in chosen if not model.kernel]
        reason = f"more than {KERNEL_ROWS} samples: left out {', '.join(left_out)}"
        say(f"{reason}, whose time grows with their square (name them with --models).", stderr=True)
    if not loaded.is_raw and n * d > DENSE_CELLS:
        left_out = [model.name for model in chosen if model.dense]
        chosen = [model for model in chosen if not model.dense]
        say(f"{n} x {d} numbers: left out {', '.join(left_out)} (name it with --models).", stderr=True)
    return chosen


def _run(comparison: Comparison, resume: Path | None) -> None:
    try:
        with progress(comparison) as step:
            for _ in comparison.run():
                step()
    except KeyboardInterrupt:
        kept = f"; the same command with --resume {resume} continues" if resume else ""
        say(f"interrupted{kept}.", stderr=True)
        raise typer.Exit(130) from None


def _show(comparison: Comparison, ranked: list[ModelResult], words: list[str]) -> None:
    """The ranking, and which models met fits that did not converge."""
    classes, errors = comparison.summary.classes, comparison.errors
    show_ranking(ranked, comparison.baseline, classes, comparison.metric, words, errors)
    for name, folds in comparison.folds.items():
        if short := sum(not fold.converged for fold in folds):
            say(
                f"{name} met fits that stopped before their tolerance in {short} of {comparison.cv} folds.", stderr=True
            )


def _own() -> set[str]:
    return {name for name, model in models().items() if model.own}


def _warnings(comparison: Comparison, ranked: list[ModelResult]) -> list[str]:
    """A word on columns that alone do as well as the best model."""
    if not ranked:
        return []
    best, baseline = (float(np.mean(model.fold_scores)) for model in (ranked[0], comparison.baseline))
    found = telling_columns(comparison.data, best, baseline, comparison.metric)
    return [
        f"Column {name!r} alone reaches {100 * score:.1f} %, as much as the best model: does it give the label away? "
        "Drop it (--drop) if it is not known before the label is."
        for name, score in list(found.items())[:3]
    ]


def _ranking(comparison: Comparison, ranked: list[ModelResult], words: list[str], command: str) -> dict[str, Any]:
    found = []
    for rank, model in zip(ranks(ranked), ranked, strict=True):
        folds = comparison.folds[model.name]
        found.append({
            "rank": rank, "model": model.name, "mean": float(np.mean(model.fold_scores)),
            "deviation": float(np.std(model.fold_scores, ddof=1)), "p_value": model.p_value,
            "metrics": {name: float(np.mean(values)) for name, values in model.metrics.items()},
            "recall": dict(zip(comparison.summary.classes, model.recall, strict=True)),
            "fit_time": model.fit_time, "predict_time": model.predict_time, "fold_scores": model.fold_scores,
            "params": [fold.params for fold in folds], "converged": all(fold.converged for fold in folds),
        })  # fmt: skip
    baseline = comparison.baseline
    return {
        "data": {"name": comparison.data.name, "n_samples": comparison.summary.n_samples,
                 "n_features": comparison.summary.n_features, "classes": comparison.summary.classes,
                 "columns": {str(c.name): str(c) for c in comparison.data.columns or ()}},
        "cv": comparison.cv, "metric": comparison.metric, "models": found, "failed": comparison.errors,
        "baseline": {"says": baseline.params["says"], "mean": float(np.mean(baseline.fold_scores)),
                     "metrics": {name: float(np.mean(values)) for name, values in baseline.metrics.items()},
                     "p_value": baseline.p_value},
        "advice": words, "command": command, "versions": versions(),
    }  # fmt: skip
