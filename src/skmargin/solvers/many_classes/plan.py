"""Whether the solver for very many classes is the right one."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from ..._config import get_config
from ..tuning import DEFAULT, ManyClassesTuning


def dense_bytes(n_features: int, n_classes: int) -> int:
    """What dense class vectors take in double precision."""
    return 8 * n_features * n_classes


def suits(X: Any, n_classes: int, tuning: ManyClassesTuning = DEFAULT.many_classes) -> bool:
    """Whether these rows and so many classes are a case for `solve_many`.

    The other solver holds W densely: it is out of the question where that exceeds what the user allows, and slower
    where W is far larger than the cache and has so many classes that each check, row by row, reads all of it.
    """
    if not sparse.issparse(X):
        return False
    d = X.shape[1]
    if dense_bytes(d, n_classes) > get_config()["max_dense_bytes"]:
        return n_classes > 2
    return n_classes >= tuning.many and d * n_classes >= tuning.large_w
