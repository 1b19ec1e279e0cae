"""The rows and the problem as the core takes them: features by frequency, in either precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..._core import _ext
from ..._types import Rows
from ..certificate import UNIT, dual_rounding


class Lists(NamedTuple):
    """Rivals of each sample with their duals: CSR arrays."""

    start: np.ndarray
    cls: np.ndarray
    alpha: np.ndarray

    def totals(self, y: np.ndarray, k: int) -> np.ndarray:
        """``sum_i c_il`` of each class."""
        held = np.bincount(np.repeat(y, np.diff(self.start)), self.alpha, k)
        return held - np.bincount(self.cls, self.alpha, k)


def no_lists(n: int) -> Lists:
    """Nobody has a rival."""
    return Lists(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))


def row_lengths(X: Rows) -> np.ndarray:
    """The length of each sparse row."""
    squares = np.square(X.data, dtype=np.float64)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.sqrt(np.bincount(row, squares, X.shape[0]))


def half_square(squares: np.ndarray, p: float) -> float:
    """``1/2 ||V||_{2,p}^2`` from the squared norms of the classes, in units of the largest."""
    top = float(squares.max())
    if p == 2 or not top > 0:
        return 0.5 * float(squares.sum())
    return 0.5 * top * float(((squares / top) ** (p / 2)).sum()) ** (2 / p)


@dataclass
class ManyRows:
    """CSR rows with features numbered by frequency (``_core/many_classes/sparse_rows.hpp``)."""

    X: Rows
    _held: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each row."""
        return row_lengths(self.X)

    def arrays(self, dtype: DTypeLike) -> Any:
        """Row starts, features, values of this type, feature starts, rows of the features, their own numbers."""
        char = np.dtype(dtype).char
        if char in self._held:
            return self._held[char]
        if self._held and (char == "f" or self.X.dtype == np.float32):
            start, features, values, *rest = next(iter(self._held.values()))
            self._held[char] = start, features, values.astype(dtype), *rest
        else:  # also where float64 is asked for after numbers that were rounded
            make = _ext.rows_by_frequency32 if char == "f" else _ext.rows_by_frequency64
            X = self.X
            self._held[char] = make(X.indptr, X.indices, np.ascontiguousarray(X.data), X.shape[1])
        return self._held[char]


@dataclass(frozen=True)
class ManyProblem:
    """What is solved, and calls of the core for it."""

    rows: ManyRows
    y: np.ndarray
    cap: np.ndarray
    k: int
    loss: str
    top_k: int
    p: float
    fit_intercept: bool
    threads: int

    @property
    def q(self) -> float:
        """Norm of the dual."""
        return self.p / (self.p - 1)

    @cached_property
    def core(self) -> Any:
        """As the core takes it."""
        return _ext.Problem(self.y, self.cap, self.k, self.loss, top_k=self.top_k)

    def scan(
        self, dtype: DTypeLike, lists: Lists, b: np.ndarray, most: int, floor: float,
        *, first: np.ndarray | None = None, weight: np.ndarray | None = None, single: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Scores of all samples and classes (``_core/many_classes/class_scan.hpp``)."""
        return _ext.class_scan(
            self.rows.arrays(dtype), self.core, lists, b, first=first, most=most, fit_intercept=self.fit_intercept,
            q=self.q, floor=floor, weight=weight, single=single, threads=self.threads,
        )  # fmt: skip

    def passes(
        self, dtype: DTypeLike, lists: Lists, multipliers: np.ndarray, goal: float, most: int, work: float,
        floor: float, max_drift: float, seed: int,
    ) -> dict[str, Any]:  # fmt: skip
        """Visits over the lists until the sum of the gaps is at the goal, or so many passes or flops are spent."""
        return _ext.list_passes(
            self.rows.arrays(dtype), self.core, lists, multipliers, fit_intercept=self.fit_intercept, q=self.q,
            goal=goal, max_passes=most, max_work=work, floor=floor, max_drift=max_drift, seed=seed,
            threads=self.threads,
        )  # fmt: skip

    def norms(self, lists: Lists) -> np.ndarray:
        """Squared norms of ``v_l = sum_i c_il x_i``."""
        return np.asarray(_ext.class_norms(self.rows.arrays(np.float64), self.core, lists, threads=self.threads))

    def hidden(self, lists: Lists, squares: np.ndarray) -> float:
        """What rounding may hide in the value of these duals, whose class vectors have these squared norms."""
        row = np.repeat(np.arange(len(self.y)), np.diff(lists.start))
        own, rival, pull = self.y[row], lists.cls, lists.alpha * self.rows.lengths[row]

        def of_classes(values: np.ndarray | None) -> np.ndarray:
            return np.bincount(own, values, self.k) + np.bincount(rival, values, self.k)

        additions, longest, totals = of_classes(None), 0.0, np.zeros(self.k)
        if self.fit_intercept:
            longest = float(self.rows.lengths.max(initial=0.0))
            totals = np.abs(lists.totals(self.y, self.k)) + UNIT * additions * of_classes(lists.alpha)
        least = float(np.sqrt(2 * half_square(squares, self.q))) if self.q < 2 else 0.0
        gained = float(lists.alpha.sum())
        return dual_rounding(squares, of_classes(pull), additions, totals, self.rows.X.shape[1], gained, longest, least)

    def circulation(self, lists: Lists, slope: np.ndarray) -> Lists:
        """Duals nearby with ``sum_i c_il = 0`` for every class; they satisfy every other bound as well."""
        return lists._replace(alpha=np.asarray(_ext.list_circulation(self.core, lists, slope)))

    def vectors(self, lists: Lists, weight: np.ndarray, *, single: bool) -> tuple[np.ndarray, ...]:
        """Class vectors ``weight_l v_l`` as CSR arrays (values, features, starts)."""
        arrays = self.rows.arrays(np.float64)
        return _ext.class_vectors(arrays, self.core, lists, weight, single=single, threads=self.threads)
