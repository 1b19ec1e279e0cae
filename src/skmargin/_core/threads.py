"""How many threads the matrix library has."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks at every library of the process, which takes longer than a small solve


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """While this is open BLAS has so many threads; on small products several would only wait for each other."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=count, user_api="blas")
    return limited
