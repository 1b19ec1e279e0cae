"""Nie, Hao and Wang (AAAI 2024), Multi-Class Support Vector Machine with Maximizing Minimum Margin.

Table 1 is here twice: tuned alike on the training rows, and with the settings of the authors' repository (github.com,
zz-haooo/M3SVM, files main.py and train.py).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC

from ... import M3SVC, CrammerSingerSVC, TopKSVC, WestonWatkinsSVC
from ...comparison import Model, models
from .. import _curves as curves
from .. import _measures as measures
from .._sources import SOURCES
from .._spec import Experiment, Protocol, Row, Split

_KNOWN = models()
_C = (0.01, 0.1, 1.0, 10.0, 100.0)


def _as(name: str, known: str, grid: dict[str, tuple[float, ...]]) -> Model:
    return Model(name, _KNOWN[known].description, clone(_KNOWN[known].estimator), grid)


_M3 = M3SVC(random_state=0)
METHODS = (
    _as("OvR", "one-vs-rest", {"C": _C}),
    _as("OvO", "one-vs-one", {"estimator__C": _C}),
    _as("Crammer", "crammer-singer", {"C": _C}),
    # Bredensteiner and Bennett's machine with C is that of Weston and Watkins with C / (k + 1).
    Model("M-SVM", "Bredensteiner and Bennett", WestonWatkinsSVC(random_state=0), {"C": _C}),
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
    "authors' default settings, searched where necessary. The paper states neither division nor scaling.",
    units={"M-SVM": "1 / (k + 1)"},
)

# Learning rate, lambda, p, whether features are standardised, rows, classes.
_SETTINGS = {
    "cornell": (0.1, 0.005, 1.0, False, 827, 7),
    "isolet": (0.001, 0.001, 4.0, False, 1560, 26),
    "hhar": (0.02, 0.0005, 4.0, True, 10229, 6),
    "usps": (0.01, 0.001, 4.0, True, 9298, 10),
    "orl": (0.01, 0.01, 6.0, True, 400, 40),
    "dermatology": (0.01, 0.1, 6.0, False, 366, 6),
    "vehicle": (0.05, 0.0001, 4.0, True, 846, 4),
    "glass": (0.01, 0.0001, 4.0, True, 214, 6),
}
_ADAM = M3SVC(solver="adam", batch_size=None, init="random", max_iter=500, tol=1e-12)  # all 500 epochs
_AUTHORS = (
    Model("M3SVM", "softmax, 500 epochs of Adam", clone(_ADAM).set_params(loss="log_loss"), {}),
    Model("M3SVM, hinge", "hinge, 500 epochs of Adam", clone(_ADAM).set_params(loss="hinge"), {}),
    Model("M3SVM, solved", "softmax, to the optimum", M3SVC(loss="log_loss"), {}),
    Model("OvO, default", "scikit-learn's defaults", OneVsOneClassifier(LinearSVC()), {}),
)


def _published(name: str, protocol: Protocol) -> Row:
    """The settings of the authors' repository.

    They minimise mean_i,l loss_il + lambda / n sum_{j, l} ||w_j - w_l||^p with n all rows and both orders of a pair;
    M3SVC minimises the sum over rows + alpha sum_{j < l}.
    """
    rate, strength, p, standardise, n, k = _SETTINGS[name]
    n_train = n - -(-n // 5)
    model = {"alpha": 2 * k * strength * n_train / n, "p": p}
    scale = "standard, all rows" if standardise else "none"
    adam = {"learning_rate": rate, **model}
    return Row(
        replace(SOURCES[name], scale=scale), protocol, {"M3SVM": adam, "M3SVM, hinge": adam, "M3SVM, solved": model}
    )


AUTHORS = replace(
    TABLE,
    name="m3svm-authors",
    title="Table 1 with the settings of the authors' repository",
    rows=tuple(_published(name, Protocol(Split("random", seed=42), budget=120)) for name in _SETTINGS),
    quick=(Row(replace(SOURCES["wine"], scale="standard, all rows"), Protocol(Split("random", seed=42), repeats=2)),),
    methods=_AUTHORS,
    measure=measures.as_given,
    units={},
    table="m3svm-table1",
    columns={"M3SVM, hinge": "M3SVM", "M3SVM, solved": "M3SVM", "OvO, default": "OvO"},
    protocol="Settings of the authors' repository, not of the paper: one division into 80 % and 20 % (seed 42), "
    "features standardised over training and test rows on all sets but three, the softmax loss (the line of the hinge "
    "is a comment), lambda, p and learning rate for each set, 500 full-batch steps of Adam, ten starts.",
)
OTHERS = replace(
    AUTHORS,
    name="m3svm-others",
    title="The same settings on nine other divisions",
    rows=tuple(_published(name, Protocol(Split("random"), repeats=9, budget=120)) for name in _SETTINGS),
    quick=(Row(AUTHORS.quick[0].data, Protocol(Split("random"), repeats=2)),),
    methods=tuple(method for method in _AUTHORS if method.name != "M3SVM, hinge"),
    protocol="Settings of the authors' repository; divisions with the seeds 0 to 8 in place of 42.",
)
_DEFAULTS = (
    Model("OvR", "LinearSVC()", LinearSVC(), {}),
    Model("OvO", "scikit-learn's defaults", OneVsOneClassifier(LinearSVC()), {}),
    Model("Crammer", "C = 1", CrammerSingerSVC(), {}),
    Model("M-SVM", "C = 1", WestonWatkinsSVC(), {"C": (1.0,)}),
    Model("Top-k", "C = 1, k = 2", TopKSVC(k=2), {}),
    Model("Multi-LR", "C = 1", LogisticRegression(max_iter=1000), {}),
    Model("SMLR", "C = 1", clone(_KNOWN["sparse-logistic"].estimator), {}),
    _AUTHORS[0],
)
DEFAULTS = replace(
    AUTHORS,
    name="m3svm-defaults",
    title="Table 1 on the authors' division, rivals with their defaults",
    rows=tuple(replace(row, protocol=replace(row.protocol, repeats=1)) for row in AUTHORS.rows),
    quick=(replace(AUTHORS.quick[0], protocol=replace(AUTHORS.quick[0].protocol, repeats=1)),),
    methods=_DEFAULTS,
    columns={},
    units={"M-SVM": "1 / (k + 1)"},
    protocol="The rivals have their authors' default settings where that seemed enough; here all have their defaults.",
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
        Model("Adam", "mini-batches", M3SVC(solver="adam", tol=1e-12, random_state=0), {}),
        Model("exact", "the solver that M3SVC chooses", M3SVC(tol=1e-8, random_state=0), {}),
    ),
    measure=curves.iterations,
    protocol="Objective and test accuracy of Adam over 500 iterations on six data sets.",
)
FIGURE_4 = replace(
    TABLE,
    name="m3svm-figure4",
    title="Figure 4: test accuracy against p",
    rows=_CURVES,
    quick=_CURVES_QUICK,
    units={},
    methods=(Model("M3SVM", "lambda = 1e-3", _M3, {"p": tuple(map(float, range(1, 9)))}),),
    measure=curves.sweep,
    protocol="Test accuracy for p from 1 to 8 on six data sets; lambda is not stated.",
)
FIGURE_5 = replace(
    FIGURE_4,
    name="m3svm-figure5",
    title="Figure 5: test accuracy against lambda",
    methods=(Model("M3SVM", "p = 4", _M3, {"alpha": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)}),),
    protocol="Test accuracy for lambda in [1e-4, 1] with p = 4 on eight data sets.",
)
EXPERIMENTS = (AUTHORS, OTHERS, DEFAULTS, TABLE, FIGURE_3, FIGURE_4, FIGURE_5)
