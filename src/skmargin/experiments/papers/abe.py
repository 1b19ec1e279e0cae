"""Abe (2017), Unconstrained Large Margin Distribution Machines.

The paper's RBF kernel divides by the number of features and its figures suppose features in [0, 1]: both are done by
the scaling, so that ``gamma`` is the paper's.
"""

from __future__ import annotations

from dataclasses import replace

from sklearn.svm import SVC

from ... import LSSVC, FuzzyPairwiseClassifier, LDMClassifier, ULDMClassifier
from ...comparison import Model
from .. import _curves as curves
from .. import _measures as measures
from .._published import published
from .._sources import RAETSCH, SOURCES
from .._spec import Experiment, Protocol, Row, Source, Split

_GAMMA = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 200.0)
_C = (0.1, 1.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 2000.0)
_ALPHA = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1)
_SCALE = "unit / sqrt(m)"
# As in the paper, all training rows are basis points.
_ULDM, _LS = ULDMClassifier(basis="all", random_state=0), LSSVC(basis="all", random_state=0)
ULDM = Model("ULDM", "mean and variance of the margin", _ULDM, {"alpha": _ALPHA, "gamma": _GAMMA})
LS = Model("LS SVM", "least squares", _LS, {"C": _C, "gamma": _GAMMA})
_PAIRS = Model("L1 SVM", "hinge", FuzzyPairwiseClassifier(SVC()), {})
L1 = Model("L1 SVM", "hinge", SVC(), {"C": _C, "gamma": _GAMMA})


def _raetsch(name: str) -> Row:
    n_train, n_test = RAETSCH[name]
    split = Split("holdout", train=n_train, test=n_test)
    protocol = Protocol(split, repeats=20 if name in ("image", "splice") else 100, folds=5, budget=180)
    return Row(Source(name, scale=_SCALE, raetsch=True), protocol)


_TINY = Protocol(repeats=3, folds=3, values=(2, 2), budget=30)
TABLE_1 = Experiment(
    name="abe-table1",
    title="Table 1: two-class problems, RBF kernel",
    paper="abe",
    rows=tuple(map(_raetsch, RAETSCH)),
    quick=(Row(replace(SOURCES["breast_cancer"], scale=_SCALE), replace(_TINY, rows=200)),),
    methods=(ULDM, LS, L1),
    measure=measures.accuracy,
    reference="ULDM",
    statistic="welch",
    protocol="Rätsch's 100 (20) divisions; gamma from eleven values in [0.01, 200], C from eight in [0.1, 2000] (ULDM: "
    "[1e-12, 0.1]) by 5-fold cross-validation; Welch's t-test at 95 %.",
)
_GIVEN = Protocol(Split("given"), repeats=1, folds=3, values=(4, 4), rows=3000, budget=300)
_MULTI = ("satimage", "usps", "letter")
TABLE_4 = replace(
    TABLE_1,
    name="abe-table4",
    title="Table 4: multi-class problems, fuzzy pairwise, RBF kernel",
    rows=tuple(Row(replace(SOURCES[name], scale=_SCALE), _GIVEN) for name in _MULTI),
    quick=(Row(replace(SOURCES["wine"], scale=_SCALE), replace(_TINY, repeats=1)),),
    methods=(
        replace(ULDM, grid={"alpha": _ALPHA, "gamma": _GAMMA[1:]}),
        replace(LS, grid={"C": _C, "gamma": _GAMMA[1:]}),
        replace(_PAIRS, grid={"estimator__C": (1.0, 10.0, 100.0), "estimator__gamma": _GAMMA[1:]}),
    ),
    protocol="One given division; parameters by 5-fold cross-validation as in table 1.",
)


def _chosen(name: str) -> Row:
    """A set of table 4 with the parameters of table 3, all training rows."""
    paper = {method: value for (data, method), (value, _) in published("abe-table3").items() if data == name}
    given = Split("given", train=16_000) if name == "letter" else Split("given")
    params = {
        "ULDM": {"alpha": paper["ULDM, C"], "gamma": paper["ULDM, gamma"]},
        "LS SVM": {"C": paper["LS SVM, C"], "gamma": paper["LS SVM, gamma"]},
        "L1 SVM": {"estimator__C": paper["L1 SVM, C"], "estimator__gamma": paper["L1 SVM, gamma"]},
    }
    return Row(replace(SOURCES[name], scale=_SCALE), Protocol(given, repeats=1, budget=900), params)


TABLE_4_GIVEN = replace(
    TABLE_4,
    name="abe-table4-given",
    title="Table 4 with the parameters of table 3 and all training rows",
    rows=tuple(map(_chosen, _MULTI)),
    methods=tuple(replace(method, grid={}) for method in (ULDM, LS, _PAIRS)),
    measure=measures.as_given,
    table="abe-table4",
    protocol="The same table; its parameters, which table 3 lists, are taken from the paper. Letter has the first "
    "16000 rows for training, as there.",
)
TABLE_2 = replace(
    TABLE_1,
    name="abe-table2",
    title="Table 2: seconds for a data set, two-class problems",
    view="seconds",
    protocol="Seconds of selection, training and classification on a computer with 3.4 GHz.",
)
TABLE_3 = replace(
    TABLE_4,
    name="abe-table3",
    title="Table 3: chosen parameters, multi-class problems",
    view="parameters",
    protocol="C (alpha of the ULDM) and gamma by 5-fold cross-validation.",
)
TABLE_5 = replace(
    TABLE_4,
    name="abe-table5",
    title="Table 5: seconds for a data set, multi-class problems",
    view="seconds",
    protocol="Seconds of the selection for the chosen gamma, training and classification.",
)

_HALF = Protocol(Split("holdout", test=0.5), repeats=30, folds=5, budget=120)
_TWO = (
    replace(SOURCES["australian"], scale=_SCALE),
    Source("breast cancer", scale=_SCALE, raetsch=True),
    replace(SOURCES["fourclass"], scale=_SCALE),
    replace(SOURCES["sonar"], scale=_SCALE),
)
_STRENGTH = {"C": (1.0, 10.0, 100.0), "lambda1": (0.25, 1.0), "lambda2": (0.25, 1.0)}
TABLE_7 = replace(
    TABLE_1,
    name="abe-table7",
    title="Table 7: comparison with the LDM, linear (l) and RBF (r) kernels",
    rows=tuple(Row(source, _HALF) for source in _TWO),
    quick=(Row(replace(SOURCES["breast_cancer"], scale=_SCALE), replace(_TINY, rows=100)),),
    methods=(
        Model("ULDM (l)", "", ULDMClassifier(kernel="linear", random_state=0), {"alpha": _ALPHA}),
        Model("L1 SVM (l)", "", SVC(kernel="linear"), {"C": _C}),
        Model("LDM (l)", "", LDMClassifier(kernel="linear", random_state=0), _STRENGTH),
        replace(ULDM, name="ULDM (r)"),
        replace(L1, name="L1 SVM (r)"),
        Model("LDM (r)", "", LDMClassifier(random_state=0), {"gamma": (1.0, 10.0, 50.0), **_STRENGTH}),
    ),
    reference="ULDM (r)",
    protocol="30 random halves; the figures of the LDM are those of Zhang and Zhou (2014).",
)

_ONCE = Protocol(repeats=1, budget=30)
_LINEAR = ULDMClassifier(kernel="linear")
FIGURES = replace(
    TABLE_1,
    name="abe-figures",
    title="Figures 1 and 2: the line that separates two classes of iris",
    rows=(Row(replace(SOURCES["iris"], scale="unit"), _ONCE),),
    quick=(Row(replace(SOURCES["iris"], scale="unit"), _ONCE),),
    methods=(
        Model("25 + 25 rows", "figure 1", _LINEAR, {"alpha": (1e-6, 0.1, 1.0)}),
        Model("25 + 10 rows", "figure 2", _LINEAR, {"alpha": (1e-6, 1e-2, 0.1)}),
    ),
    measure=curves.boundary,
    protocol="Classes 2 and 3, features 3 and 4, the first 25 rows of each class (figure 2: ten of class 3) for "
    "training, the last 25 for testing; linear kernel. The scaling is not stated.",
)
EXPERIMENTS = (TABLE_1, TABLE_2, TABLE_4, TABLE_4_GIVEN, TABLE_3, TABLE_5, TABLE_7, FIGURES)
