"""The options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._names import DATASETS, METRICS, MODELS, starting

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help=f"A built-in name ({', '.join(DATASETS)}) or a CSV, Parquet or LIBSVM file.",
        autocompletion=lambda incomplete: starting(DATASETS, incomplete),
    ),
]  # fmt: skip
Rows = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="As for 'skmargin fit', or '-' for CSV from standard input.",
        autocompletion=lambda incomplete: starting(DATASETS, incomplete),
    ),
]  # fmt: skip
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that 'skmargin fit' wrote.")]
ModelName = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Name of the model, as in 'skmargin compare --help'.",
        autocompletion=lambda incomplete: starting(MODELS, incomplete),
    ),
]  # fmt: skip
Target = Annotated[
    str | None, typer.Option(metavar="COL", help="Name or number (from 0; -1: last) of the column with the labels.")
]
Folds = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the folds.")]
Jobs = Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads for tuning.  [default: all cores]")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Metric = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"What is tuned and ranked: {', '.join(METRICS)}.",
        autocompletion=lambda incomplete: starting(METRICS, incomplete),
    ),
]  # fmt: skip
ClassWeight = Annotated[
    str | None,
    typer.Option(metavar="balanced", help="Weigh classes so that rare ones count as much as frequent ones."),
]
Drop = Annotated[list[str] | None, typer.Option(metavar="COL", help="Leave this column out (again for more).")]
Number = Annotated[list[str] | None, typer.Option(metavar="COL", help="Take this column for numbers.")]
Categorical = Annotated[list[str] | None, typer.Option(metavar="COL", help="Take this column for levels.")]
Text = Annotated[list[str] | None, typer.Option(metavar="COL", help="Take this column for text.")]
Date = Annotated[list[str] | None, typer.Option(metavar="COL", help="Take this column for dates.")]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Encoding of a CSV file.  [default: detected]")]
Decimal = Annotated[str | None, typer.Option(metavar="SIGN", help="Decimal sign, '.' or ','.  [default: detected]")]
