"""Cases of long runs that once broke a promise, as files: ``python -m tests.fuzz --seed S --only N --keep NAME``.

A number makes its case again only as long as nobody changes what numbers make, so the rows themselves are kept, in
JSON, whose numbers are exact.  Gears that a run forces are not kept.
"""

import json
from pathlib import Path

import numpy as np

import skmargin

from .cases import CONTAINERS, Case

FOLDER = Path(__file__).parent / "kept"
NAMES = {"csr_array": "csr", "csr_matrix": "csr matrix", "csc_array": "csc", "DataFrame": "frame"}


def keep(case, name):
    """Write a case, before it is fitted."""
    parameters = {key: value for key, value in case.model.get_params().items() if not hasattr(value, "fit")}
    kept = {
        "machine": type(case.model).__name__,
        "parameters": parameters,
        "container": NAMES.get(type(case.given[0]).__name__, "array"),
        "dtype": case.rows.dtype.name,
        "rows": case.rows.tolist(),
        "labels": case.labels.tolist(),
        "weight": None if case.weight is None else case.weight.tolist(),
    }
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(kept).replace('], "', '],\n"') + "\n")


def kept_case(name):
    """The case of a file."""
    kept = json.loads((FOLDER / f"{name}.json").read_text())
    model = getattr(skmargin, kept["machine"])(**kept["parameters"])
    rows, labels = np.array(kept["rows"], dtype=kept["dtype"]), np.array(kept["labels"])
    given, weight = (CONTAINERS[kept["container"]](rows), labels), kept["weight"]
    if weight is not None:
        given = (*given, weight := np.array(weight))
    return Case(model, given, rows, labels, weight)


def kept_names():
    """All files."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))
