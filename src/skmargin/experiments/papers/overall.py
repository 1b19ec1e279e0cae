"""Every method of the library and every classic on every data set at hand, tuned alike."""

from __future__ import annotations

from dataclasses import replace

from ...comparison import models
from .. import _curves as curves
from .. import _measures as measures
from .._sources import SOURCES
from .._spec import Experiment, Protocol, Row, Source, Split

# Sets whose training rows are all used, and those that are cut; both in the order of their cost.
_SMALL = (
    "iris", "wine", "breast_cancer", "glass", "sonar", "svmguide4.train", "svmguide2", "dermatology", "vehicle",
    "australian", "fourclass", "vowel", "cornell", "orl",
)  # fmt: skip
_LARGE = (
    "digits", "segment", "waveform", "satimage", "shuttle", "dna", "pendigits", "protein-val", "covtype-20k",
    "connect-4", "isolet", "usps", "letter", "hhar", "sector", "news20", "mnist", "aloi", "rcv1",
)  # fmt: skip
# Two sets of the collection are here already in another form.
_TWO_SMALL = ("heart", "thyroid", "german", "diabetes")
_TWO_LARGE = ("flare solar", "titanic", "image", "splice", "banana", "twonorm", "ringnorm")
_ALL_ROWS = Protocol(repeats=5, folds=3, test_rows=2000, budget=60)
_CUT = Protocol(repeats=5, folds=3, rows=3000, test_rows=2000, budget=120)
_QUICK = Protocol(Split(), repeats=1, folds=3, rows=120, values=(2, 1), budget=20)


OVERALL = Experiment(
    name="overall",
    title="Every method on every data set",
    paper="overall",
    rows=(
        *(Row(SOURCES[name], _ALL_ROWS) for name in _SMALL),
        *(Row(Source(name, raetsch=True), _ALL_ROWS) for name in _TWO_SMALL),
        *(Row(Source(name, raetsch=True), _CUT) for name in _TWO_LARGE),
        *(Row(SOURCES[name], _CUT) for name in _LARGE),
    ),
    quick=tuple(Row(SOURCES[name], _QUICK) for name in ("iris", "wine", "breast_cancer")),
    methods=tuple(models().values()),
    measure=measures.accuracy,
    reference="crammer-singer",
)
# The same on few rows: stands on the page for the sets that are not through with all of theirs.
FEW_ROWS = replace(
    OVERALL,
    name="overall-800",
    title="The larger sets with at most 800 training rows",
    rows=tuple(Row(row.data, replace(_CUT, rows=800)) for row in OVERALL.rows if row.protocol is _CUT),
)
# A ladder around each default; the parameter is the one that the grids of the comparison tune.
_LADDERS = {
    "m3": (1e-5, 1e-4, 1e-3, 1e-2),
    "odm": (10.0, 40.0, 100.0, 400.0, 1000.0, 4000.0),
    "uldm": (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3),
}
_SWEEP = Protocol(repeats=1, folds=3, rows=800, test_rows=2000, budget=40)
_LADDER = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
DEFAULTS = replace(
    OVERALL,
    name="overall-defaults",
    title="One value for all data",
    rows=tuple(Row(row.data, _SWEEP) for row in OVERALL.rows),
    quick=tuple(replace(row, protocol=replace(row.protocol, values=None)) for row in OVERALL.quick),
    methods=tuple(
        replace(method, grid={next(iter(method.grid)): _LADDERS.get(method.name, _LADDER)}, widths=())
        for method in OVERALL.methods
        if method.own
    ),
    measure=curves.sweep,
)
EXPERIMENTS = (OVERALL, FEW_ROWS, DEFAULTS)
