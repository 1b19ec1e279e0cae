"""Lei, Dogan, Binder and Kloft (NIPS 2015), Multi-class SVMs: From Tighter Data-Dependent Generalization Bounds."""

from __future__ import annotations

from dataclasses import replace

from ... import CrammerSingerSVC, LpNormSVC
from ...comparison import Model
from .. import _curves as curves
from .. import _measures as measures
from .._sources import SOURCES
from .._spec import Experiment, Protocol, Row, Split

_C = (0.0625, 0.25, 1.0, 4.0, 16.0)
_LP = LpNormSVC(fit_intercept=False, random_state=0)
_CS = CrammerSingerSVC(fit_intercept=False, random_state=0)
METHODS = (
    Model("lp-norm MC-SVM", "block norm over classes", _LP, {"C": _C, "p": (1.2, 1.6, 2.0, 3.0)}),
    Model("Crammer & Singer", "largest hinge", _CS, {"C": _C}),
)
_QUICK = Protocol(repeats=3, folds=3, values=(3, 2), budget=30)


def _sizes(n_train: int, n_test: int) -> Protocol:
    split = Split("holdout", train=n_train, test=n_test)
    return Protocol(split, repeats=3, folds=3, test_rows=20_000, budget=300)


_NEWS20 = replace(
    SOURCES["news20"], scale="length", note="LIBSVM's training part, 80 % of it for training; rows of length one"
)
TABLE = Experiment(
    name="lei-table2",
    title="Table 2: accuracy on text, random divisions, a coarse grid",
    paper="lei",
    rows=(
        Row(SOURCES["sector"], _sizes(6412, 3207)),
        Row(_NEWS20, Protocol(repeats=3, folds=3, budget=300)),
        Row(SOURCES["rcv1"], _sizes(15564, 518571)),
    ),
    quick=(Row(SOURCES["wine"], _QUICK),),
    methods=METHODS,
    measure=measures.accuracy,
    reference="lp-norm MC-SVM",
    protocol="The given sizes, ten times; C from 2^-12, ..., 2^12 and p from 1.2 to 10 in steps of 0.5, then 0.1 "
    "around the best, by 5-fold cross-validation.",
)
_WHOLE_C = tuple(2.0**e for e in range(-12, 13, 2))
_P = tuple(1.2 + 0.5 * step for step in range(18))
WHOLE = replace(
    TABLE,
    name="lei-whole",
    title="Table 2 with the whole range of C and p",
    rows=(
        Row(SOURCES["sector"], Protocol(Split("given"), repeats=10, folds=3, budget=600)),
        Row(_NEWS20, Protocol(repeats=10, folds=3, budget=600)),
        Row(SOURCES["rcv1"], Protocol(Split("given"), repeats=10, folds=3, budget=600)),
    ),
    methods=(replace(METHODS[0], grid={"C": _WHOLE_C, "p": _P}), replace(METHODS[1], grid={"C": _WHOLE_C})),
    measure=measures.in_turn,
    table="lei-table2",
    protocol="The same table. Here every second value of C, all p of the coarse grid, one parameter after the other "
    "(C, p, C beside the best, p in steps of 0.1), 3-fold selection; on the given division of sector the repeats "
    "differ in the folds of the selection only.",
)
_SETS = ("glass", "vehicle", "vowel", "segment", "satimage")
_ONCE = Protocol(repeats=1, rows=1500, test_rows=10, budget=60)
_WINE = (Row(SOURCES["wine"], _QUICK),)
ALTERNATION = replace(
    TABLE,
    name="lei-algorithm1",
    title="Algorithm 1: objective above the certified optimum",
    rows=tuple(Row(SOURCES[name], _ONCE) for name in _SETS),
    quick=_WINE,
    methods=(
        Model("Algorithm 1", "as published", LpNormSVC(solver="paper", fit_intercept=False, random_state=0),
              {"p": (1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)}),
    ),
    measure=curves.above_optimum,
    reference="Algorithm 1",
    table="none",
    view="curve",
    protocol="The alternation between the weights of the classes and the machine with these weights; the experiments "
    "of the paper take p up to 10. C = 1 here.",
)  # fmt: skip
_FEW = {"C": (0.1, 1.0, 10.0, 100.0), "p": (1.2, 1.6, 2.0, 4.0)}
LOSSES = replace(
    TABLE,
    name="lei-losses",
    title="Problem 10 with other losses",
    rows=tuple(Row(SOURCES[name], Protocol(repeats=10, folds=3, rows=1500, budget=90)) for name in _SETS),
    quick=_WINE,
    methods=tuple(
        Model(said, "", LpNormSVC(loss=loss, random_state=0), _FEW)
        for said, loss in (("hinge", "hinge"), ("squared hinge", "squared_hinge"), ("log loss", "log_loss"))
    ),
    reference="hinge",
    table="none",
    protocol="The paper states the problem for any convex loss and has figures for the hinge only.",
)
EXPERIMENTS = (TABLE, WHOLE, ALTERNATION, LOSSES)
