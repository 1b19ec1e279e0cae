"""``skmargin predict``: rows in, block by block, predictions out."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import typer

from .._files import atomic_write
from .._types import Estimator, RowsLike
from ..datasets import BUILT_IN, DataError
from ..datasets._cells import as_text
from ..inspection import class_scores
from ..report._details import uncalibrated
from ._blocks import Block, Blocks, SavedModel, again
from ._common import check_writable, complaints, print_json
from ._terminal import bytes_bar, say, show_table


def predict(
    path: Path, source: str, out: str, target: str | None, proba: bool, scores: bool, keep: tuple[str, ...],
    as_json: bool, encoding: str | None, decimal: str | None,
) -> None:  # fmt: skip
    """Predict all rows and say how they are divided among the classes."""
    with complaints():
        to_pipe = out == "-"
        if to_pipe and as_json:
            raise typer.BadParameter("standard output holds the predictions: name a file.", param_hint="--out")
        if not to_pipe:
            check_writable(Path(out))
        model = SavedModel(path)
        blocks = Blocks(model, source, target, keep, encoding=encoding, decimal=decimal)
        blocks.as_cells = blocks.final = to_pipe or source == "-"
        counts, right, labelled = again(lambda: _run(model, blocks, out, proba, scores), blocks)
        accuracy = right / labelled if labelled else None
        n = int(counts.sum())
        present = [(label, int(c)) for label, c in zip(model.estimator.classes_, counts, strict=True) if c]
        if as_json:
            named = {str(label): c for label, c in present}
            print_json({"file": out, "n_samples": n, "predicted": named, "accuracy": accuracy})
            return
        if not to_pipe:
            show_table(("predicted", "samples"), present, numbers=(1,))
        if accuracy is not None:
            say(f"{100 * accuracy:.2f} % agree with the labels in the file.", stderr=to_pipe)
        if not to_pipe:
            say(f"Predictions: {out}")


def _run(model: SavedModel, blocks: Blocks, out: str, proba: bool, scores: bool) -> tuple[np.ndarray, int, int]:
    """Write the file; gives how often each class was predicted, and how many of how many labels it met."""
    classes = model.estimator.classes_
    texts = np.array([as_text(label) for label in classes], dtype=object)
    counts, right, labelled = np.zeros(len(classes), dtype=np.int64), 0, 0
    size = _size(blocks.source)
    with _output(out) as file, bytes_bar(size) as progress:
        writer = None
        for block in blocks:
            codes, columns = _answers(model, block, proba, scores)
            if writer is None:
                writer = _writer(file, [*block.kept, "prediction", *columns], classes)
            writer(block.kept, codes, columns)
            counts += np.bincount(codes, minlength=len(classes))
            if block.y is not None:
                right += int((texts[codes] == block.y).sum())
                labelled += len(codes)
            progress(blocks.n_bytes)
        if writer is None:
            raise DataError(f"{blocks.source}: the file holds no samples.")
    return counts, right, labelled


def _answers(model: SavedModel, block: Block, proba: bool, scores: bool) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Positions of the predicted classes, and the columns of numbers beside them."""
    estimator, X = model.estimator, block.X
    classes = estimator.classes_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a plain array has no names of features: the order is already right
        ranked, p = scores_of(estimator, X), None
        if proba or ranked is None:
            if not hasattr(estimator, "predict_proba"):
                raise DataError(
                    f"{model.path}: the model gives no probabilities; fit it with --proba (skmargin fit --proba)."
                )
            p = np.asarray(estimator.predict_proba(X))
        if scores and ranked is None:
            raise DataError(f"{model.path}: the model gives no scores; --proba gives its probabilities.")
        predicted = estimator.predict(X)
    codes = np.searchsorted(classes, predicted)
    best = np.asarray(p if ranked is None else ranked)
    top = np.partition(best, -2, axis=1)[:, -2:] if best.shape[1] > 2 else np.sort(best, axis=1)
    columns = {"margin": top[:, 1] - top[:, 0]}
    if scores and ranked is not None:
        columns |= {f"score {label}": ranked[:, j] for j, label in enumerate(classes)}
    if proba and p is not None:
        columns |= {f"probability {label}": p[:, j] for j, label in enumerate(classes)}
    return codes, columns


def scores_of(estimator: Estimator, X: RowsLike) -> np.ndarray | None:
    """Scores of the classes; of a calibrated model those before its calibration; None where there are none."""
    plain = uncalibrated(estimator)
    return class_scores(plain, X) if hasattr(plain, "decision_function") else None


@contextmanager
def _output(out: str) -> Iterator[IO[bytes]]:
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with atomic_write(out) as file:
            yield file


def _writer(file: IO[bytes], names: list[str], classes: np.ndarray) -> Any:
    """A function that writes the lines of a block: by Arrow where it is there, else by Python."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"The output would have two columns {twice!r}: rename the one to keep.")
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(names)
    file.write(text.getvalue().encode("utf-8", "surrogatepass"))
    labels = [str(label) for label in classes]
    plain = not any(re.search(r'[",\r\n\ud800-\udfff]', label) for label in labels)
    pa, arrow_csv = _arrow()

    def by_arrow(kept: dict[str, Any], codes: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        parts = [*(_texts(pa, column) for column in kept.values()), pa.array(labels).take(pa.array(codes))]
        parts += [pa.array(values) for values in columns.values()]
        options = arrow_csv.WriteOptions(include_header=False, quoting_style="none" if plain and not kept else "needed")
        sink = pa.BufferOutputStream()
        arrow_csv.write_csv(pa.table(parts, names=names), sink, options)
        file.write(sink.getvalue())

    def by_python(kept: dict[str, Any], codes: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        text = io.StringIO(newline="")
        cells = [column.to_pylist() for column in kept.values()]
        cells += [[labels[code] for code in codes], *(values.tolist() for values in columns.values())]
        csv.writer(text, lineterminator="\n").writerows(zip(*cells, strict=True))
        file.write(text.getvalue().encode("utf-8", "surrogatepass"))

    surrogates = any(re.search("[\ud800-\udfff]", label) for label in labels)
    return by_python if pa is None or surrogates else by_arrow


def _texts(pa: Any, column: Any) -> Any:
    """A column that is kept, as text."""
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # lists, records
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _arrow() -> tuple[Any, Any]:
    """Arrow and its writer of CSV, or None."""
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError:
        return None, None
    return pyarrow, pyarrow.csv


def _size(source: str) -> int | None:
    return os.path.getsize(source) if source not in (*BUILT_IN, "-") and os.path.isfile(source) else None
