"""``skmargin report``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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
        classes = model.estimator.classes_
        named = {str(label): i for i, label in enumerate(classes)}
        found, codes = np.unique(labels.astype(str), return_inverse=True)
        unknown = sorted(set(map(str, found)) - set(named))
        if unknown:
            raise DataError(f"{data}: the model {path} does not know the class {unknown[0]!r}.")
        y = classes[[named[label] for label in found]][codes]
        name = data if data in BUILT_IN else Path(data).name
        summary = summarize_dataset(name, X, y, model.names)
        known = dict.fromkeys(named, 0)  # the data may lack some of them
        known |= dict(zip(summary.classes, summary.class_counts, strict=True))
        summary.classes, summary.class_counts = list(known), list(known.values())
        result = summarize_model(str(model.metadata.get("model", path.stem)), model.estimator, X, y, summary)
        most = int(np.argmax(summary.class_counts))
        share = summary.class_counts[most] / summary.n_samples
        baseline = ModelResult("majority class", {"says": summary.classes[most]}, test_score=share)
        command = command_line("report", path, data, out=out, target=target)
        title = f"{path.name} on {name}"
        write_report(Results(title, summary, [result], command, versions(), now(), baseline), out)
        right = f"{100 * (result.test_score or 0.0):.2f} % of {summary.n_samples} samples right"
        say(f"{right} (always {summary.classes[most]!r}: {100 * share:.2f} %). Report: {out}")
