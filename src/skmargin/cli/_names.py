"""Names that help and completion show, here so that neither loads the models; a test compares them with the models."""

from __future__ import annotations

DATASETS = ("iris", "wine", "digits", "breast_cancer")
MODELS = (
    "crammer-singer", "weston-watkins", "top-k", "m3", "multi-margin", "lp-norm", "odm", "crammer-singer-rbf", "uldm",
    "ls-svm", "ldm", "one-vs-rest", "one-vs-one", "ecoc", "rbf-svm", "logistic", "sparse-logistic", "l1-svm",
    "gradient-boosting", "random-forest", "nearest-neighbours",
)  # fmt: skip
METRICS = ("accuracy", "balanced-accuracy", "macro-f1")
EXPERIMENTS = (
    "mcodm-table2", "mcodm-per-row", "mcodm-ceiling", "mcodm-loop", "mcodm-intercept", "mcodm-whole", "mcodm-figure1",
    "mcodm-figure2", "mcodm-figure3", "m3svm-authors", "m3svm-others", "m3svm-defaults", "m3svm-table1",
    "m3svm-figure3", "m3svm-figure4", "m3svm-figure5", "xu-table2", "xu-converged", "xu-folds", "xu-exchanged",
    "xu-figure2", "xu-semi", "xu-rounds", "abe-table1", "abe-table2", "abe-table4", "abe-table4-given", "abe-table3",
    "abe-table5", "abe-table7", "abe-figures", "lei-table2", "lei-whole", "lei-algorithm1", "lei-losses", "overall",
    "overall-800", "overall-defaults",
)  # fmt: skip


def starting(known: tuple[str, ...], incomplete: str) -> list[str]:
    """Those that complete what was typed."""
    return [name for name in known if name.startswith(incomplete)]


def models_after_comma(incomplete: str) -> list[str]:
    """Names of models that complete the last one of a list."""
    done, comma, last = incomplete.rpartition(",")
    return [f"{done}{comma}{name}" for name in starting((*MODELS, "default", "all"), last)]
