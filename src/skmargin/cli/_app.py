"""The commands and their options; what they do stands in the modules beside this one, loaded when it is needed.

Exit codes: 0 all went well, 1 data, model file or output cannot be used, 2 wrong usage, 3 some models of a comparison
or tasks of an experiment failed (the others are shown), 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import skmargin

from ._names import EXPERIMENTS, MODELS, models_after_comma, starting
from ._options import (
    AsJson,
    Categorical,
    ClassWeight,
    Data,
    Date,
    Decimal,
    Drop,
    Encoding,
    Folds,
    Jobs,
    Metric,
    ModelFile,
    ModelName,
    Number,
    Rows,
    Seed,
    Target,
    Text,
)

app = typer.Typer(
    help="Multi-class large-margin classifiers: compare, fit, predict, explain.",
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"skmargin {skmargin.__version__}")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="Log what is done (-vv: more).")] = 0,
) -> None:
    if verbose:
        import logging

        level = logging.INFO if verbose == 1 else logging.DEBUG
        logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", datefmt="%H:%M:%S")
        logging.getLogger("skmargin").setLevel(level)


@app.command()
def compare(
    data: Data,
    models: Annotated[
        str,
        typer.Option(
            metavar="A,B,C",
            help=f"'default', 'all', or names separated by commas: {', '.join(MODELS)}.",
            autocompletion=models_after_comma,
        ),
    ] = "default",
    cv: Folds = 5,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report page (HTML).")] = None,
    target: Target = None,
    metric: Metric = "accuracy",
    class_weight: ClassWeight = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Fit the chosen model on all data and write it, as 'fit' does.")
    ] = None,
    as_json: AsJson = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the state in this file, and continue it if it is there.")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    drop: Drop = None,
    number: Number = None,
    categorical: Categorical = None,
    text: Text = None,
    date: Date = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
) -> None:
    """Tune and rank models on the same folds.  The last lines say which to choose."""  # fmt: skip
    from ._compare import compare

    compare(
        data, models, cv, report, target, metric, class_weight, save, as_json, resume, seed, jobs,
        _table(drop, number, categorical, text, date, encoding, decimal),
    )  # fmt: skip


@app.command()
def fit(
    data: Data,
    model: ModelName,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The model file to write, by custom *.skm.")],
    cv: Folds = 5,
    target: Target = None,
    metric: Metric = "accuracy",
    class_weight: ClassWeight = None,
    proba: Annotated[bool, typer.Option("--proba", help="Calibrate, so that the model gives probabilities.")] = False,
    as_json: AsJson = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Fit on Dask: the address of a scheduler, or 'local' for this machine."),
    ] = None,
    drop: Drop = None,
    number: Number = None,
    categorical: Categorical = None,
    text: Text = None,
    date: Date = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
) -> None:
    """Tune a model, fit it and write it to a file.  Cross-validation tunes it; the fit is on all data."""
    from ._fit import fit

    options = _table(drop, number, categorical, text, date, encoding, decimal)
    fit(data, model, out, cv, target, metric, class_weight, proba, as_json, seed, jobs, options, dask)


@app.command()
def predict(
    model: ModelFile,
    data: Rows,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="The CSV file to write, a line for each row; '-': standard output.")
    ],
    target: Target = None,
    proba: Annotated[bool, typer.Option("--proba", help="Write the probability of each class.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Write the score of each class.")] = False,
    keep: Annotated[list[str] | None, typer.Option(metavar="COL", help="Copy this column (again for more).")] = None,
    as_json: AsJson = False,
    encoding: Encoding = None,
    decimal: Decimal = None,
) -> None:
    """Predict the rows of a file.  With labels in it, the last line says how many are right."""
    from ._predict import predict

    predict(model, data, out, target, proba, scores, tuple(keep or ()), as_json, encoding, decimal)


@app.command()
def report(
    model: ModelFile,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write (HTML).")],
    target: Target = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
) -> None:
    """Explain a saved model on labelled data.  Writes one HTML page with its margins, errors and hardest samples."""
    from ._report import report

    report(model, data, out, target, encoding, decimal)


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
        str,
        typer.Argument(
            metavar="TABLE",
            help=f"'all', a paper, or one of: {', '.join(EXPERIMENTS)}.",
            autocompletion=lambda incomplete: starting(("all", *EXPERIMENTS), incomplete),
        ),
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
    """Run the papers' experiments again.  Writes pages with our figures beside the papers'."""  # fmt: skip
    from ._reproduce import reproduce

    reproduce(table, data, quick, out, jobs)


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """List the data sets that are built in."""
    from ._reproduce import list_datasets

    list_datasets(as_json)


def _table(
    drop: list[str] | None, number: list[str] | None, categorical: list[str] | None, text: list[str] | None,
    date: list[str] | None, encoding: str | None, decimal: str | None,
) -> dict[str, object]:  # fmt: skip
    """The options about raw tables, for `skmargin.datasets.TableOptions`."""
    kinds = {"drop": drop, "number": number, "categorical": categorical, "text": text, "date": date}
    return {**{name: tuple(columns or ()) for name, columns in kinds.items()}, "encoding": encoding, "decimal": decimal}
