"""Nie, Hao and Wang (AAAI 2024), Multi-Class Support Vector Machine with Maximizing Minimum Margin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import clone

from ... import M3SVC
from ...comparison import Model, models
from .. import _measures as measures
from .._sources import SOURCES
from .._spec import Experiment, Protocol, Row

_KNOWN = models()
_C = (0.01, 0.1, 1.0, 10.0, 100.0)


def _as(name: str, known: str, grid: dict[str, tuple[float, ...]]) -> Model:
    return Model(name, _KNOWN[known].description, clone(_KNOWN[known].estimator), grid)


_M3 = M3SVC(random_state=0)
METHODS = (
    _as("OvR", "one-vs-rest", {"C": _C}),
    _as("OvO", "one-vs-one", {"estimator__C": _C}),
    _as("Crammer", "crammer-singer", {"C": _C}),
    _as("M-SVM", "multi-margin", {"C": _C}),
    _as("Top-k", "top-k", {"C": _C, "k": (2, 3)}),
    _as("Multi-LR", "logistic", {"C": _C}),
    _as("SMLR", "sparse-logistic", {"C": _C[1:-1]}),
    Model(
        "M3SVM", "all pairwise margins, power p", _M3,
        {"alpha": tuple(np.linspace(1e-4, 1e-1, 10).round(6).tolist()), "p": tuple(map(float, range(1, 9)))},
    ),
)  # fmt: skip

_SMALL = Protocol(repeats=10, folds=3, budget=300)
_LARGE = replace(_SMALL, rows=1500)
_NAMES = ("glass", "vehicle", "dermatology")
_LARGER = ("cornell", "isolet", "orl", "usps", "hhar")
_QUICK = Protocol(repeats=3, folds=3, values=(2, 1), budget=30)

TABLE = Experiment(
    name="m3svm-table1",
    title="Table 1: accuracy of linear machines",
    paper="m3svm",
    rows=(
        *(Row(SOURCES[name], _SMALL) for name in _NAMES),
        *(Row(SOURCES[name], _LARGE) for name in _LARGER),
    ),
    quick=(Row(SOURCES["iris"], _QUICK), Row(SOURCES["wine"], _QUICK)),
    methods=METHODS,
    measure=measures.accuracy,
    reference="M3SVM",
    protocol="Ten runs; lambda from ten equidistant values in [1e-4, 1e-1], p from 1, 2, ..., 8; the rivals with their "
    "authors' default settings, searched where necessary. Division and scaling are not stated.",
)

_SETS = ("glass", "vehicle", "cornell", "isolet", "orl", "usps", "hhar", "dermatology")
_CURVE = Protocol(repeats=2, rows=1000, budget=90)
_FEW = Protocol(repeats=1, budget=30)
_CURVES = tuple(Row(SOURCES[name], _CURVE) for name in _SETS)
_CURVES_QUICK = (Row(SOURCES["wine"], _FEW),)

FIGURE_3 = replace(
    TABLE,
    name="m3svm-figure3",
    title="Figure 3: objective and test accuracy against iterations",
    rows=tuple(replace(row, protocol=replace(_CURVE, repeats=1, rows=500)) for row in _CURVES),
    quick=_CURVES_QUICK,
    methods=(
        Model("Adam", "as published", M3SVC(solver="adam", tol=1e-12, random_state=0), {}),
        Model("exact", "the solver that M3SVC chooses", M3SVC(tol=1e-8, random_state=0), {}),
    ),
    measure=measures.iterations,
    protocol="Objective and test accuracy of Adam over 500 iterations on six data sets.",
)
FIGURE_4 = replace(
    TABLE,
    name="m3svm-figure4",
    title="Figure 4: test accuracy against p",
    rows=_CURVES,
    quick=_CURVES_QUICK,
    methods=(Model("M3SVM", "lambda = 1e-3", _M3, {"p": tuple(map(float, range(1, 9)))}),),
    measure=measures.sweep,
    protocol="Test accuracy for p from 1 to 8 on six data sets; lambda is not stated.",
)
FIGURE_5 = replace(
    FIGURE_4,
    name="m3svm-figure5",
    title="Figure 5: test accuracy against lambda",
    methods=(Model("M3SVM", "p = 4", _M3, {"alpha": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)}),),
    protocol="Test accuracy for lambda in [1e-4, 1] with p = 4 on eight data sets.",
)
EXPERIMENTS = (TABLE, FIGURE_3, FIGURE_4, FIGURE_5)
