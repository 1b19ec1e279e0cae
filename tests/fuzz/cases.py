"""Random cases: a machine (machines.py) and rows as users have them, in every container, number type and scale."""

import tempfile
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import dask.array
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skmargin import SemiSupervisedMarginSVC
from skmargin.datasets import open_rows
from skmargin.estimators._base import MarginClassifier
from skmargin.rows.collections import is_collection
from skmargin.solvers.blocks import from_rows
from skmargin.solvers.dual import linear
from skmargin.solvers.multi_margin import exact
from skmargin.solvers.odm import many_rows
from skmargin.solvers.tuning import DEFAULT

from .choices import drawn
from .machines import FEW, machine


@dataclass
class Case:
    """A machine and what its ``fit`` is given, as the user has it; rows, labels and weights are the same, plain."""

    model: Any
    given: tuple
    rows: np.ndarray
    labels: np.ndarray
    weight: Any = None
    gear: dict = field(default_factory=dict)  # limits that the planner would have to reach for rarer gears
    gear_name: str = "as planned"

    def user_rows(self):
        """The rows as the user has them, if these have scores of their own, else plain."""
        return self.given[0] if len(self.given) > 1 and not is_collection(self.given[0]) else self.rows

    def fit(self):
        """The fitted machine and the sentences of its warnings; a warning of any other kind is an error."""
        with warnings.catch_warnings(record=True) as heard, ExitStack() as limits:
            for (module, name), value in self.gear.items():
                limits.enter_context(patch.object(module, name, value))
            warnings.simplefilter("error")
            warnings.simplefilter("always", ConvergenceWarning)
            self.model.fit(*self.given)
        return self.model, [str(warning.message) for warning in heard]


def _normal(rng, n):
    return rng.standard_normal(n)


# One column of the rows each: what users have in their tables.
COLUMNS = {
    "normal": _normal,
    "zero": lambda rng, n: np.zeros(n),
    "constant": lambda rng, n: np.full(n, 10.0 ** rng.integers(-8, 13) * rng.uniform(1, 10)),
    "id": lambda rng, n: 10.0 ** rng.integers(3, 13) + rng.permutation(n),
    "timestamp": lambda rng, n: 1.7e9 * 10.0 ** rng.choice([0, 3, 6, 9]) + rng.uniform(0, 86400 * 365, n),
    "offset": lambda rng, n: _normal(rng, n) + 10.0 ** rng.integers(0, 14),
    "tiny": lambda rng, n: _normal(rng, n) * 10.0 ** rng.integers(-30, 0),
    "huge": lambda rng, n: _normal(rng, n) * 10.0 ** rng.integers(0, 15),
    "rare": lambda rng, n: (rng.random(n) < 0.1) * _normal(rng, n),
    "binary": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "year": lambda rng, n: rng.integers(1950, 2030, n).astype(float),
    "nearly constant": lambda rng, n: np.where(np.arange(n) == 0, 1.0, 10.0 ** rng.integers(0, 12)),
}
TAME = ("normal", "zero", "rare", "binary")


def unaligned(X):
    """The same rows one byte further."""
    raw = np.zeros(X.nbytes + 1, np.uint8)
    out = np.ndarray(X.shape, X.dtype, raw.data, 1)
    out[...] = X
    return out


def _read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def _memory_mapped(X):
    with tempfile.TemporaryFile() as file:
        out = np.memmap(file, X.dtype, "w+", shape=X.shape)
    out[...] = X
    return out


def _wide_csr(X):
    X = sparse.csr_array(X)
    return sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


CONTAINERS = {
    "array": lambda X: X,
    "columns": np.asfortranarray,
    "read-only": _read_only,
    "every second": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "unaligned": unaligned,
    "memory map": _memory_mapped,
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csr, 64-bit indices": _wide_csr,
    "csc": sparse.csc_array,
}
ANIMALS = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])
LABELS = {
    "numbers": lambda codes: codes,
    "negative": lambda codes: 3 - 2 * codes,
    "strings": lambda codes: ANIMALS[codes],
    "objects": lambda codes: ANIMALS.astype(object)[codes],
    "floats": lambda codes: codes / 1.0,
}
IN_BLOCKS = {(from_rows, "SMALL_BYTES"): 0}
UNREAD = {**IN_BLOCKS, (from_rows, "MEMORY_SHARE"): 0.0}
MANY_PARAMETERS = {**UNREAD, (MarginClassifier, "_tuning"): DEFAULT.changed(blocks={"most_parameters": 0})}
GEARS = [{}, IN_BLOCKS, UNREAD, MANY_PARAMETERS]
IN_BLOCKS_ONCE = 40  # in so many cases: they start threads and take as long as ten others
BLOCK_PASSES = 30  # most of them over rows of which each pass starts threads


def _once():
    """A rule that says yes, and then no: the gear solves a sample of the rows first, which is no case for it."""
    answers = iter([True])
    return lambda *_: next(answers, False)


def weights(choices, n, rng):
    """None, ordinary weights, some of them zero, or of extreme sizes."""
    kind = choices.pick(["none", "none", "ordinary", "zeros", "extreme", "all extreme"])
    if kind == "none":
        return None
    weight = rng.uniform(0.5, 2.0, n)
    if kind == "zeros":
        weight[rng.random(n) < 0.3] = 0.0
        weight[: min(n, 6)] = 1.0
    if kind == "extreme":
        weight *= 10.0 ** rng.integers(-12, 13, n)
    if kind == "all extreme":
        weight *= choices.power(-110, 110)
    return weight


def _rows(choices, rng, n, k, wild):
    """Rows and the codes of their classes."""
    kinds = [choices.pick(sorted(COLUMNS) if wild else TAME) for _ in range(choices.integer(1, 5))]
    rows = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds])
    codes = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    if choices.pick([True, False]):  # classes that can be told apart, at least in part
        rows[:, 0] += codes * (np.ptp(rows[:, 0]) or 1.0)
    if choices.one_in(6):
        rows[1::2] = rows[0]
    with np.errstate(over="ignore"):
        rows = rows.astype(choices.pick([np.float64, np.float64, np.float32]))
    order = rng.permutation(n)
    return np.ascontiguousarray(rows[order]), codes[order]


def make_case(choices, name=None, wild=True, largest=24):
    """A case; ``wild`` ones have parameters, columns and weights of any size, others those of everyday."""
    rng = choices.generator()
    k = choices.pick([2, 2, 3, 3, 4, 6])
    n = k + choices.integer(0, largest)
    rows, codes = _rows(choices, rng, n, k, wild)
    model = machine(choices, name, wild)
    weight = weights(choices, n, rng) if wild else None
    labels = LABELS[choices.pick(sorted(LABELS))](codes)
    if isinstance(model, SemiSupervisedMarginSVC):
        labels = np.where(rng.random(n) < 0.3, -1, codes)
    if choices.one_in(10) and getattr(model, "kernel", "linear") != "linear":
        unit = rows / np.float64(np.abs(rows).max() or 1.0)
        rows = unit @ unit.T
        rows = (rows + rows.T) / 2
        model.set_params(kernel="precomputed")
    container = choices.pick(sorted(CONTAINERS))
    if container == "list":
        rows = rows.astype(np.float64)
    given = (CONTAINERS[container](rows), labels) if weight is None else (CONTAINERS[container](rows), labels, weight)
    case = Case(model, given, rows, labels, weight)
    if getattr(model, "kernel", "linear") == "linear":
        _take_gear(choices, case)
    return case


def _take_gear(choices, case):
    """Once in a while a gear that only larger rows would have: in blocks, of very many classes, of many rows."""
    if sparse.issparse(case.given[0]) and choices.one_in(4):
        case.model._tuning, case.gear_name = FEW, "very many classes"
    elif choices.one_in(30):
        case.gear = {(module, "suits"): _once() for module in (linear, exact, many_rows)}
        case.gear_name = "many rows"
    elif getattr(case.model, "_in_blocks", False) and choices.one_in(IN_BLOCKS_ONCE):
        case.gear_name = "in blocks"
        _in_blocks(choices, case)


def _in_blocks(choices, case):
    """The rows of a case as arrays, a function or (rarely: a graph takes longer than many fits) a Dask collection."""
    held = case.given[0] if sparse.issparse(case.given[0]) else case.rows
    if isinstance(held, sparse.csc_array):
        held = held.tocsr()
    plain, half = (held, *case.given[1:]), (len(case.rows) + 1) // 2
    case.gear = choices.pick(GEARS)
    if case.gear is MANY_PARAMETERS and hasattr(case.model, "max_iter"):
        case.model.set_params(max_iter=BLOCK_PASSES)
    if choices.one_in(40):
        plain = (case.rows, *case.given[1:])
        case.given = tuple(dask.array.from_array(part, chunks=(half, *part.shape[1:])) for part in plain)
    elif choices.one_in(2):
        case.given = (open_rows(plain),)
    else:
        case.given = (open_rows(lambda: (tuple(part[:half] for part in plain), tuple(part[half:] for part in plain))),)


def cases(name=None, wild=True, largest=24):
    """The hypothesis strategy of cases."""
    return drawn(make_case, name, wild, largest)
