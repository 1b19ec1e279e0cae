"""What a task depends on, in words, and a short digest of them that names the task in the results.

Every parameter of an estimator takes part, defaults too, so that a changed default makes other tasks.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

# Raised when a measure computes something else for the same description.
VERSIONS = {"accuracy": 1}
# Parameters and fields that came after the first results, with the value at which everything is as it was before.
LATER: dict[str, dict[str, Any]] = {
    "LpNormSVC": {"loss": "hinge", "solver": "auto"},
    "M3SVC": {"init": "zero", "penalty": "power"},
    "MultiMarginSVC": {"learning_rate": "adaptive"},
    "SemiSupervisedMarginSVC": {
        "solver": "dual", "learning_rate": "adaptive", "kernel": "linear", "gamma": "scale", "degree": 3, "coef0": 0.0,
        "cache_size": 500,
    },
}  # fmt: skip


def digest(*parts: Any) -> str:
    """Eight digits that change with what the parts say.

    Examples
    --------
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.experiments._keys import digest
    >>> digest(CrammerSingerSVC(), {"C": [1.0]}) == digest(CrammerSingerSVC(C=1.0), {"C": [1.0]})
    True
    >>> digest(CrammerSingerSVC(), {"C": [1.0]}) == digest(CrammerSingerSVC(tol=1e-4), {"C": [1.0]})
    False
    """
    return hashlib.sha256(" ".join(map(words, parts)).encode()).hexdigest()[:8]


def words(what: Any) -> str:
    """An estimator or a description with all its parameters; anything else as Python prints it."""
    if isinstance(what, str) and what in VERSIONS:
        return f"{what} {VERSIONS[what]}"
    if hasattr(what, "get_params") and not isinstance(what, type):
        parameters = what.get_params(deep=False)
    elif is_dataclass(what) and not isinstance(what, type):
        parameters = {field.name: getattr(what, field.name) for field in fields(what)}
    else:
        return repr(what)
    name = type(what).__name__
    before = LATER.get(name, {})
    told = [f"{key}={words(value)}" for key, value in sorted(parameters.items()) if before.get(key, _NONE) != value]
    return f"{name}({', '.join(told)})"


_NONE = object()
