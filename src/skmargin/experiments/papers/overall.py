"""Every method of the library and every classic on every data set at hand, tuned alike."""

from __future__ import annotations

from dataclasses import replace

from ...comparison import models
from .. import _measures as measures
from .._sources import RAETSCH, SOURCES
from .._spec import Experiment, Protocol, Row, Source, Split

_SMALL = Protocol(repeats=3, folds=3, rows=800, test_rows=2000, budget=40)
_WIDE = Protocol(repeats=2, folds=3, rows=800, test_rows=2000, budget=40)
_WIDE_SETS = ("usps", "mnist", "cornell", "isolet", "orl", "sector", "dna", "protein-val", "news20", "rcv1", "aloi")
_NARROW = (
    "iris", "wine", "breast_cancer", "digits", "glass", "svmguide2", "svmguide4.train", "vehicle", "australian",
    "fourclass", "waveform", "satimage", "shuttle", "covtype-20k", "vowel", "segment", "pendigits", "letter",
    "connect-4", "sonar", "dermatology", "hhar",
)  # fmt: skip
# The two sets of the collection that are here already in another form are left out.
_TWO = [name for name in RAETSCH if name not in ("waveform", "breast cancer", "diabetes", "heart", "image", "ringnorm")]
_QUICK = Protocol(Split(), repeats=1, folds=3, rows=120, values=(2, 1), budget=20)


OVERALL = Experiment(
    name="overall",
    title="Every method on every data set",
    paper="overall",
    rows=(
        *(Row(SOURCES[name], _SMALL) for name in _NARROW),
        *(Row(SOURCES[name], _WIDE) for name in _WIDE_SETS),
        *(Row(Source(name, raetsch=True), _SMALL) for name in _TWO),
    ),
    quick=tuple(Row(SOURCES[name], _QUICK) for name in ("iris", "wine", "breast_cancer")),
    methods=tuple(models().values()),
    measure=measures.accuracy,
    reference="crammer-singer",
)
# A ladder around each default; the parameter is the one that the grids of the comparison tune.
_LADDERS = {
    "m3": (1e-5, 1e-4, 1e-3, 1e-2),
    "odm": (10.0, 40.0, 100.0, 400.0, 1000.0, 4000.0),
    "uldm": (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3),
}
_LADDER = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
DEFAULTS = replace(
    OVERALL,
    name="overall-defaults",
    title="One value for all data",
    rows=tuple(replace(row, protocol=replace(row.protocol, repeats=1)) for row in OVERALL.rows),
    quick=tuple(replace(row, protocol=replace(row.protocol, values=None)) for row in OVERALL.quick),
    methods=tuple(
        replace(method, grid={next(iter(method.grid)): _LADDERS.get(method.name, _LADDER)})
        for method in OVERALL.methods
        if method.own
    ),
    measure=measures.sweep,
)
EXPERIMENTS = (OVERALL, DEFAULTS)
