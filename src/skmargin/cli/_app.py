"""The commands: compare, fit, predict, report, export, reproduce, datasets.

Exit codes: 0 all went well, 1 data, model file or output cannot be used, 2 wrong usage, 3 some models of a comparison
or tasks of an experiment failed (the others are shown), 130 interrupted.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
import os
import platform
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy
import sklearn
import typer
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils._optional_dependencies import check_matplotlib_support

import skmargin

from .._files import atomic_write
from ..comparison import Comparison, ComparisonError, Model, advise, models, tuned
from ..datasets import BUILT_IN, DataError, Dataset, load_dataset
from ..datasets._files import TextColumn, available_memory, check_memory
from ..experiments import EXPERIMENTS, choose, pending, read_results, run, write_pages
from ..inspection import class_scores
from ..model_files import ModelFileError, describe_model, load_model, save_model
from ..report import Results, summarize_dataset, summarize_model, write_report
from ._terminal import bar, printable, progress, ranks, say, seconds, show_ranking, show_table

app = typer.Typer(
    help="Multi-class large-margin classifiers: compare, fit, predict, explain.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip

KERNEL_ROWS = 10_000  # above, the default comparison is one of linear machines
_NAMES = ", ".join(models())
Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help=f"A built-in name ({', '.join(BUILT_IN)}) or a LIBSVM, CSV or Parquet file."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that 'skmargin fit' wrote.")]
Target = Annotated[
    str | None, typer.Option(metavar="COL", help="Name or number (from 0; -1: last) of the column with the labels.")
]
Folds = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the folds.")]
Jobs = Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads for tuning.  [default: all cores]")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"skmargin {skmargin.__version__}")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def compare(
    data: Data,
    models: Annotated[
        str, typer.Option(metavar="A,B,C", help=f"'default', 'all', or names separated by commas: {_NAMES}.")
    ] = "default",
    cv: Folds = 5,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report page (HTML).")] = None,
    target: Target = None,
    as_json: AsJson = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the state in this file, and continue it if it is there.")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Tune and rank models on the same folds.  The last lines say which to choose."""
    with _complaints():
        chosen = _choose(models)
        for path in (report, resume):
            _check_writable(path)
        loaded = _training_data(data, target)
        if models == "default" and loaded.X.shape[0] > KERNEL_ROWS:
            left_out = [model.name for model in chosen if model.kernel]
            chosen = [model for model in chosen if not model.kernel]
            reason = f"more than {KERNEL_ROWS} samples: left out {', '.join(left_out)}"
            say(f"{reason}, whose time grows with their square (name them with --models).", stderr=True)
        n_jobs = jobs or os.cpu_count()
        comparison = Comparison(loaded, chosen, cv=cv, seed=seed, n_jobs=n_jobs, store=resume)
        if not as_json:
            say(_describe(comparison.summary.classes, loaded))
        try:
            with progress(comparison) as step:
                for _ in comparison.run():
                    step()
        except KeyboardInterrupt:
            kept = f"; the same command with --resume {resume} continues" if resume else ""
            say(f"interrupted{kept}.", stderr=True)
            raise typer.Exit(130) from None
        ranked = comparison.ranked()
        command = _command("compare", data, models=models, cv=cv, report=report, target=target, seed=seed)
        if as_json:
            _print_json(_ranking(comparison, command))
        else:
            show_ranking(ranked, comparison.errors)
            for name, folds in comparison.folds.items():
                short = sum(not fold.converged for fold in folds)
                if short:
                    say(f"{name} met fits that stopped before their tolerance in {short} of {cv} folds.", stderr=True)
        if report is not None and ranked:
            write_report(comparison.results(command, _versions(), _now()), report)
            say(f"Report: {report}", stderr=as_json)
        if comparison.errors:
            raise typer.Exit(3)


@app.command()
def fit(
    data: Data,
    model: Annotated[str, typer.Option(metavar="NAME", help="Name of the model, as in 'skmargin compare --help'.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The model file to write, by custom *.skm.")],
    cv: Folds = 5,
    target: Target = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    jobs: Jobs = None,
) -> None:
    """Tune a model, fit it and write it to a file.  Cross-validation tunes it; the fit is on all data."""
    with _complaints():
        spec = _find(model, "--model")
        if not spec.own:
            own = ", ".join(name for name, other in models().items() if other.own)
            raise typer.BadParameter(
                f"{spec.name} belongs to scikit-learn: it can be compared, but a model file holds only {own}.",
                param_hint="--model",
            )
        _check_writable(out)
        loaded = _training_data(data, target)
        summary = summarize_dataset(loaded.name, loaded.X, loaded.y, loaded.feature_names)
        if min(summary.class_counts) < cv or len(summary.classes) < 2:
            raise ComparisonError(
                f"{data}: at least two classes with {cv} samples each are needed for {cv} folds (--cv); there are "
                f"{len(summary.classes)}, the smallest with {min(summary.class_counts)}."
            )
        search = tuned(spec, loaded.X, cv=cv, seed=seed, n_jobs=jobs or os.cpu_count())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(loaded.X, loaded.y)
        params = {key.removeprefix("model__"): value for key, value in search.best_params_.items()}
        facts: dict[str, Any] = {
            "model": spec.name, "estimator": type(spec.estimator).__name__, "params": params,
            "cv_accuracy": float(search.best_score_), "fit_time": float(search.refit_time_), "file": printable(out),
        }  # fmt: skip
        source = {"data": printable(loaded.name), "feature_names": loaded.feature_names}
        save_model(search.best_estimator_, out, metadata={**source, "zero_based": loaded.zero_based, **facts})
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            say(f"warning: {message}", stderr=True)
        if as_json:
            _print_json(facts)
            return
        say(_describe(summary.classes, loaded))
        chosen = ", ".join(f"{key}={value:g}" for key, value in params.items())
        say(f"{spec.name} with {chosen}: {100 * facts['cv_accuracy']:.2f} % of held-out samples right ({cv} folds).")
        last = search.best_estimator_[-1]
        gap = "" if last.dual_gap_ is None else f", relative duality gap {last.dual_gap_:.1e}"
        say(f"Fitted in {seconds(facts['fit_time'])}{gap}. Model file: {out}")


@app.command()
def predict(
    model: ModelFile,
    data: Data,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The CSV file to write: prediction and margin of each row.")
    ],
    target: Target = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a file.  With labels in it, the last line says how many are right."""
    with _complaints():
        _check_writable(out)
        estimator, loaded = _model_and_data(model, data, target, labelled=False)
        predicted = estimator.predict(loaded.X)
        best = np.sort(class_scores(estimator, loaded.X), axis=1)[:, -2:]
        text = io.StringIO(newline="")
        rows = zip(predicted.tolist(), (best[:, 1] - best[:, 0]).tolist(), strict=True)
        csv.writer(text, lineterminator="\n").writerows([("prediction", "margin"), *rows])
        with atomic_write(out) as file:
            file.write(text.getvalue().encode("utf-8", "surrogatepass"))
        classes, counts = np.unique(predicted, return_counts=True)
        accuracy = None if loaded.y is None else float(np.mean(predicted.astype(str) == loaded.y.astype(str)))
        if as_json:
            named = {str(label): int(n) for label, n in zip(classes, counts, strict=True)}
            _print_json({"file": str(out), "n_samples": len(predicted), "predicted": named, "accuracy": accuracy})
            return
        show_table(("predicted", "samples"), list(zip(classes, counts, strict=True)), numbers=(1,))
        if accuracy is not None:
            say(f"{100 * accuracy:.2f} % agree with the labels in the file.")
        say(f"Predictions: {out}")


@app.command()
def report(
    model: ModelFile,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write (HTML).")],
    target: Target = None,
) -> None:
    """Explain a saved model on labelled data.  Writes one HTML page with its margins, errors and hardest samples."""
    with _complaints():
        _check_writable(out)
        estimator, loaded = _model_and_data(model, data, target, labelled=True)
        named = {str(label): i for i, label in enumerate(estimator.classes_)}
        labels, codes = np.unique(np.asarray(loaded.y), return_inverse=True)
        unknown = sorted(set(map(str, labels)) - set(named))
        if unknown:
            raise DataError(f"{data}: the model {model} does not know the class {unknown[0]!r}.")
        # Labels that are all whole numbers are read as such, though the model may have met them among words.
        loaded = replace(loaded, y=estimator.classes_[[named[str(label)] for label in labels]][codes])
        summary = summarize_dataset(loaded.name, loaded.X, loaded.y, loaded.feature_names)
        known = dict.fromkeys(named, 0)  # the data may lack some of them
        known |= dict(zip(summary.classes, summary.class_counts, strict=True))
        summary.classes, summary.class_counts = list(known), list(known.values())
        name = str(_metadata(model).get("model", model.stem))
        result = summarize_model(name, estimator, loaded.X, loaded.y, summary)
        command = _command("report", model, data, out=out, target=target)
        title = f"{model.name} on {loaded.name}"
        write_report(Results(title, summary, [result], command, _versions(), _now()), out)
        say(f"{100 * (result.test_score or 0.0):.2f} % of {summary.n_samples} samples right. Report: {out}")


@app.command()
def export(
    model: ModelFile,
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="The ONNX file to write.")],
    single: Annotated[bool, typer.Option("--float32", help="Rows in single precision instead of double.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Scores also where there are probabilities.")] = False,
) -> None:
    """Write a saved model as an ONNX graph.  It predicts the same in any runtime, without Python."""
    from ._export import export as run

    run(model, onnx, single=single, raw_scores=scores)


@app.command()
def reproduce(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help=f"'all', a paper, or one of: {', '.join(EXPERIMENTS)}.")
    ],
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with the data files; without it, built-in data only.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few minutes on built-in data instead of hours.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for results.csv, which is continued, and the pages.")
    ] = Path("reproductions"),
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes.  [default: all cores]")] = None,
) -> None:
    """Run the papers' experiments again.  Writes pages with our figures beside the papers'."""
    with _complaints():
        try:
            chosen = choose(table)
        except KeyError:
            near = difflib.get_close_matches(table, EXPERIMENTS, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise typer.BadParameter(
                f"there is no experiment {printable(table)!r}.{hint}", param_hint="TABLE"
            ) from None
        if data is not None and not data.is_dir():
            raise DataError(f"{data}: is not a folder.")
        check_matplotlib_support("skmargin reproduce")  # now, not when the pages are drawn after hours
        out.mkdir(parents=True, exist_ok=True)
        results = out / "results.csv"
        every = (task for experiment in chosen for task in experiment.tasks(quick))
        tasks, missing = pending(every, results, data)
        outcomes: dict[str, int] = {}
        with bar(len(tasks)) as step:
            for task, outcome in run(tasks, results, folder=data, n_jobs=jobs or os.cpu_count() or 1):
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                step(f"{task.experiment.name}, {task.row.data.name}, {task.method.name}: {outcome}")
        for source in missing:
            say(f"{source.name}: left out, {source.wanted} is not there (--data).", stderr=True)
        for outcome, n in outcomes.items():
            say(f"{n} tasks {outcome}")
        for page in write_pages(read_results(results), out, "quick" if quick else "full"):
            say(f"Page: {page}")
        if any(outcome.startswith("failed") for outcome in outcomes):
            raise typer.Exit(3)


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """List the data sets that are built in."""
    with _complaints():
        rows = []
        for name, (_, description) in BUILT_IN.items():
            data = load_dataset(name)
            rows.append([name, *data.X.shape, len(np.unique(np.asarray(data.y))), description])
        columns = ("name", "samples", "features", "classes", "description")
        if as_json:
            _print_json([dict(zip(columns, row, strict=True)) for row in rows])
        else:
            show_table(columns, rows, numbers=(1, 2, 3))


@contextmanager
def _complaints() -> Iterator[None]:
    """Errors that a user can mend, as one sentence and an exit code."""
    try:
        yield
    except (DataError, ModelFileError, ComparisonError, ImportError) as error:  # the last: an extra is missing
        message = str(error)
    except OSError as error:
        message = f"{'output' if error.filename is None else error.filename}: {error.strerror}."
    except KeyboardInterrupt:
        say("interrupted.", stderr=True)
        raise typer.Exit(130) from None
    else:
        return
    say(f"skmargin: {message}", stderr=True, style="red")
    raise typer.Exit(1)


def _choose(names: str) -> list[Model]:
    known = models()
    if names in ("default", "all"):
        return [model for model in known.values() if model.default or names == "all"]
    wanted = dict.fromkeys(name.strip().lower() for name in names.split(",") if name.strip())
    if not wanted:
        raise typer.BadParameter("names no model.", param_hint="--models")
    return [_find(name, "--models") for name in wanted]


def _find(name: str, option: str) -> Model:
    known = models()
    if name.lower() in known:
        return known[name.lower()]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise typer.BadParameter(f"there is no model {printable(name)!r}.{hint} Known: {_NAMES}.", param_hint=option)


def _check_writable(path: Path | None) -> None:
    """Refuse before the work what could not be written after it."""
    if path is None:
        return
    if path.is_dir():
        raise DataError(f"{path}: is a folder, not a file.")
    if not path.parent.is_dir():
        raise DataError(f"{path}: the folder {path.parent} does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise DataError(f"{path}: the folder {path.parent} cannot be written to.")


def _model_and_data(path: Path, source: str, target: str | None, labelled: bool) -> tuple[Any, Dataset]:
    """A saved model and rows in the order of columns that it was fitted with."""
    estimator, known = load_model(path), _metadata(path)
    names, zero_based = known.get("feature_names"), known.get("zero_based")
    try:
        data = load_dataset(
            source, target=target, labelled=labelled, n_features=int(estimator.n_features_in_),
            zero_based=zero_based if isinstance(zero_based, bool) else None,
        )  # fmt: skip
    except TextColumn as error:
        raise DataError(f"{error} If it holds the labels, name it with --target.") from None
    if isinstance(names, list) and data.feature_names is not None:
        missing = [name for name in names if name not in data.feature_names]
        if missing:
            raise DataError(f"{source}: the column {missing[0]!r}, which the model needs, is missing.")
        position = {name: i for i, name in enumerate(data.feature_names)}
        data = Dataset(data.name, data.X[:, [position[name] for name in names]], data.y, names)
    if data.X.shape[1] != estimator.n_features_in_:
        raise DataError(
            f"{source}: has {data.X.shape[1]} features, the model {path} needs {estimator.n_features_in_}. "
            "If a column holds labels, name it with --target."
        )
    if sparse.issparse(data.X) and not get_tags(estimator).input_tags.sparse:
        check_memory(source, 8 * math.prod(data.X.shape))
        data = replace(data, X=data.X.toarray())
    return estimator, data


def _training_data(source: str, target: str | None) -> Dataset:
    """Labelled rows whose class vectors fit into memory: one wrong index makes a LIBSVM file very wide."""
    data = load_dataset(source, target=target)
    d, free = data.X.shape[1], available_memory()
    needed = 3 * 8 * d * len(np.unique(np.asarray(data.y)))  # the solver has a few of its own
    if free is not None and needed > free:
        raise DataError(
            f"{source}: class vectors of {d} features need {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free. "
            "Is the largest index right?"
        )
    return data


def _metadata(path: Path) -> dict[str, Any]:
    found = describe_model(path)["metadata"]
    return found if isinstance(found, dict) else {}


def _describe(classes: list[str], data: Dataset) -> str:
    shown = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    n, d = data.X.shape
    return f"{data.name}: {n} samples, {d} features, {len(classes)} classes ({shown})"


def _ranking(comparison: Comparison, command: str) -> dict[str, Any]:
    ranked = comparison.ranked()
    found = []
    for rank, model in zip(ranks(ranked), ranked, strict=True):
        folds = comparison.folds[model.name]
        found.append({
            "rank": rank, "model": model.name, "mean": float(np.mean(model.fold_scores)),
            "deviation": float(np.std(model.fold_scores, ddof=1)), "p_value": model.p_value,
            "fit_time": model.fit_time, "predict_time": model.predict_time, "fold_scores": model.fold_scores,
            "params": [fold.params for fold in folds], "converged": all(fold.converged for fold in folds),
        })  # fmt: skip
    return {
        "data": {"name": comparison.data.name, "n_samples": comparison.summary.n_samples,
                 "n_features": comparison.summary.n_features, "classes": comparison.summary.classes},
        "cv": comparison.cv, "models": found, "failed": comparison.errors,
        "advice": advise(ranked) if ranked else [], "command": command, "versions": _versions(),
    }  # fmt: skip


def _command(name: str, *arguments: Any, **options: Any) -> str:
    words = ["skmargin", name, *map(str, arguments)]
    for option, value in options.items():
        if value is not None:
            words += [f"--{option}", str(value)]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def _versions() -> dict[str, str]:
    packages = {"skmargin": skmargin, "scikit-learn": sklearn, "numpy": np, "scipy": scipy}
    return {**{name: package.__version__ for name, package in packages.items()}, "python": platform.python_version()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")
