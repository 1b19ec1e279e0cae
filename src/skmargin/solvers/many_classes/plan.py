"""Whether the solver for very many classes is the right one."""

from __future__ import annotations

from scipy import sparse

from ..._config import get_config
from ..._types import Rows
from ..tuning import DEFAULT, Tuning


def dense_bytes(n_features: int, n_classes: int) -> int:
    """What dense class vectors take in double precision."""
    return 8 * n_features * n_classes


def suits(X: Rows, n_classes: int, tuning: Tuning = DEFAULT) -> bool:
    """Whether these rows and so many classes are a case for `solve_many`.

    The other solver holds W densely: it is out of the question where that exceeds what the user allows.  Else both
    score all classes for all rows, one in tiles and the other, slower, row by row, with rows x non-zeros x classes
    multiply-adds; what this one adds, visits with class vectors in hash tables, does not depend on the number of
    classes.  So this number alone tells which one is faster.
    """
    if not sparse.issparse(X):
        return False
    if dense_bytes(X.shape[1], n_classes) > get_config()["max_dense_bytes"]:
        return n_classes > 2
    return n_classes >= tuning.many_classes.many
