"""What a comparison measures, from the counts of each class: right, there, predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Name on the command line: the scorer of scikit-learn, and how a sentence puts it.
METRICS = {
    "accuracy": ("accuracy", "of new samples right"),
    "balanced-accuracy": ("balanced_accuracy", "balanced accuracy on new samples"),
    "macro-f1": ("f1_macro", "macro-F1 on new samples"),
}


@dataclass
class Counts:
    """Samples of each class: predicted and right (``hits``), there (``support``), predicted (``predicted``)."""

    hits: list[int]
    support: list[int]
    predicted: list[int]

    @classmethod
    def of(cls, y: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> Counts:
        """Count; all labels must be among the classes, which are sorted."""
        k = len(classes)
        true, guess = np.searchsorted(classes, y), np.searchsorted(classes, predicted)
        found = (true[true == guess], true, guess)
        return cls(*(np.bincount(codes, minlength=k).tolist() for codes in found))

    def metrics(self) -> dict[str, float]:
        """All metrics by name; a class that is neither there nor predicted does not count."""
        hits, support, predicted = (np.asarray(c, dtype=np.float64) for c in (self.hits, self.support, self.predicted))
        there, met = support > 0, support + predicted > 0
        return {
            "accuracy": float(hits.sum() / support.sum()),
            "balanced-accuracy": float(np.mean(hits[there] / support[there])),
            "macro-f1": float(np.mean(2 * hits[met] / (support + predicted)[met])),
        }


def rates(counts: list[Counts]) -> tuple[list[float | None], list[float | None]]:
    """Recall and precision of each class over all folds; None where a class is not there, or never predicted."""
    hits, support, predicted = (
        np.sum([getattr(c, n) for c in counts], axis=0) for n in ("hits", "support", "predicted")
    )

    def share(of: np.ndarray) -> list[float | None]:
        return [float(h / n) if n else None for h, n in zip(hits, of, strict=True)]

    return share(support), share(predicted)
