"""Lei, Dogan, Binder and Kloft (NIPS 2015), Multi-class SVMs: From Tighter Data-Dependent Generalization Bounds."""

from __future__ import annotations

from ... import CrammerSingerSVC, LpNormSVC
from ...comparison import Model
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


TABLE = Experiment(
    name="lei-table2",
    title="Table 2: accuracy on text",
    paper="lei",
    rows=(
        Row(SOURCES["sector"], _sizes(6412, 3207)),
        Row(SOURCES["news20"], _sizes(15935, 3993)),
        Row(SOURCES["rcv1"], _sizes(15564, 518571)),
    ),
    quick=(Row(SOURCES["wine"], _QUICK),),
    methods=METHODS,
    measure=measures.accuracy,
    reference="lp-norm MC-SVM",
    protocol="The given sizes, ten times; C from 2^-12, ..., 2^12 and p from 1.2 to 10 in steps of 0.5, then 0.1 "
    "around the best, by 5-fold cross-validation.",
)
EXPERIMENTS = (TABLE,)
