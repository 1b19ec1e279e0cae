"""``skmargin report``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.utils import _safe_indexing

from ..datasets import BUILT_IN, DataError
from ..report import ModelResult, Results, summarize_dataset, summarize_model, write_report
from ._blocks import Blocks, SavedModel, together
from ._common import check_writable, command_line, complaints, now, versions
from ._terminal import say


def report(path: Path, data: str, out: Path, target: str | None, encoding: str | None, decimal: str | None) -> None:
    """Score the labelled rows and write the page."""
    with complaints():
        check_writable(out)
        model = SavedModel(path)
        blocks = Blocks(model, data, target, labelled=True, encoding=encoding, decimal=decimal)
        X, labels, _ = together(blocks)
        if labels is None:
            raise DataError(f"{data}: say which column holds the labels (target; in a command --target).")
        found = _Labels(model.estimator.classes_, labels)
        if not len(found.rows):
            unknown = found.strangers[0]
            raise DataError(f"{data}: the model {path} does not know the class {unknown!r}, nor any other of the file.")
        X, n = _safe_indexing(X, found.rows), len(labels)
        name = data if data in BUILT_IN else Path(data).name
        summary = summarize_dataset(name, X, found.y, model.names)
        counts = dict.fromkeys(map(str, model.estimator.classes_), 0)  # the data may lack some of them
        counts |= dict(zip(summary.classes, summary.class_counts, strict=True))
        summary.classes, summary.class_counts = list(counts), list(counts.values())
        result = summarize_model(
            str(model.metadata.get("model", path.stem)), model.estimator, X, found.y, summary, rows=found.rows,
            unknown=n - len(found.rows),
        )  # fmt: skip
        most = int(np.argmax(summary.class_counts))
        share = summary.class_counts[most] / n
        baseline = ModelResult("majority class", {"says": summary.classes[most]}, test_score=share)
        command = command_line("report", path, data, out=out, target=target)
        title = f"{path.name} on {name}"
        write_report(Results(title, summary, [result], command, versions(), now(), baseline), out)
        right = f"{100 * (result.test_score or 0.0):.2f} % of {n} samples right"
        if result.top5 is not None:
            right += f", {100 * result.top5:.2f} % among the five best, macro-F1 {100 * (result.macro_f1 or 0.0):.2f} %"
        say(f"{right} (always {summary.classes[most]!r}: {100 * share:.2f} %). Report: {out}")
        if found.strangers:
            of = f"{result.unknown} samples of {len(found.strangers)} classes that the model does not know"
            say(f"{of}, as {found.strangers[0]!r}, count as mistakes.", stderr=True)


class _Labels:
    """Labels of a file, known by their text: the rows of known classes, their labels, and the other classes."""

    def __init__(self, classes: np.ndarray, labels: np.ndarray) -> None:
        named = {str(label): i for i, label in enumerate(classes)}
        texts, codes = np.unique(labels.astype(str), return_inverse=True)
        place = np.array([named.get(str(text), -1) for text in texts])[codes]
        self.rows = np.flatnonzero(place >= 0)
        self.y = classes[place[self.rows]]
        self.strangers = [str(text) for text in texts if str(text) not in named]
