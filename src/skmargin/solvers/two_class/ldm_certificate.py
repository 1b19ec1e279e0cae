"""What a large margin distribution machine is worth: its objective, its gap to a dual point, and their rounding.

The parts of the gap are those of the head of ldm.py, where no part is negative.  What rounding of the scores and of w~
may do to each part is added; the published gap is at least what the objective may be larger than it is said to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._types import Rows
from ...rows.gram import row_blocks, squared_norms
from ..certificate import NEGLIGIBLE, UNIT
from .row_sources import products

TINY = 1e-300  # no size is smaller
VALUE_STEPS = 8  # units of rounding of a computed kernel value, beside the lengths of its two rows


class Rounding(NamedTuple):
    """Bounds on what rounding does to the scores (n,), to ``||w||^2`` and to the length of ``w - w~``.

    ``values`` (n,) is what that of computed kernel values adds to the first: the objective is that of the values as
    they are, the bound is below both.
    """

    f: np.ndarray
    norm: float
    w: float
    values: np.ndarray | float = 0.0


class LdmPoint(NamedTuple):
    """Coefficients, their scores, ``||w||^2``, the last two parts of the gap (head of the file), and the rounding."""

    coef: np.ndarray
    f: np.ndarray
    norm: float
    rest: float
    rounding: Rounding


def row_lengths(X: Rows) -> np.ndarray:
    """The length of each row."""
    return np.sqrt(squared_norms(X, np.float64).astype(np.float64))


def linear_scores(X: Rows, lengths: np.ndarray, w: np.ndarray, enough: float) -> tuple[np.ndarray, np.ndarray]:
    """``X w`` of rows with these lengths, and a bound on its rounding (n,).

    In extended precision where that would be more than ``enough`` of ``||w||^2``.
    """
    square = float(w @ w)
    steps = (len(w) + 4) * np.sqrt(square) * lengths
    if UNIT * steps.max() <= enough * square:
        return products(X, w), UNIT * steps
    wide = w.astype(np.longdouble)
    f = np.concatenate([np.asarray(X[rows].astype(np.longdouble) @ wide) for rows in row_blocks(*X.shape)])
    f = f.astype(np.float64)
    return f, 0.5 * float(np.finfo(np.longdouble).eps) * steps + UNIT * np.abs(f)


def linear_rounding(lengths: np.ndarray, w: np.ndarray, terms: np.ndarray, of_scores: np.ndarray) -> Rounding:
    """Of class vector w, rows with these lengths and the terms (n,) that the coefficients of w~ are sums of."""
    of_norm = (len(w) + 4) * UNIT * float(w @ w)
    return Rounding(of_scores, of_norm, (len(lengths) + 16) * UNIT * float(terms @ lengths))


def kernel_scores(
    K: np.ndarray, a: np.ndarray, terms: np.ndarray, enough: float
) -> tuple[np.ndarray, np.ndarray, float, Rounding]:
    """a, ``f = K a``, ``a'f`` and their rounding: in extended precision where that of f would be more than ``enough``.

    The sums are rounded as badly as they can be; the values of K, where these are computed, independently.
    """
    lengths = np.sqrt(np.maximum(K.diagonal(), 0))
    total, shared = float(np.abs(a) @ lengths), VALUE_STEPS * UNIT * float(np.linalg.norm(a * lengths))
    number: type = np.float64
    if (len(a) + 16) * UNIT * total * lengths.max() > enough:
        number = np.longdouble
    wide: np.ndarray = a.astype(number)
    unit = 0.5 * float(np.finfo(number).eps)
    f = np.concatenate([K[rows].astype(number, copy=False) @ wide for rows in row_blocks(*K.shape)])
    norm, error = float(wide @ f), (len(a) + 16) * unit * total
    f = f.astype(np.float64)
    of_norm = error * total + shared * float(np.linalg.norm(a * lengths))
    moved = (len(a) + 16) * UNIT * float(terms @ lengths)
    return a, f, norm, Rounding(error * lengths + UNIT * np.abs(f), of_norm, moved, shared * lengths)


@dataclass(frozen=True)
class LDMProblem:
    """Labels -1, +1, weights and parameters."""

    y: np.ndarray
    weight: np.ndarray
    C: float
    l1: float
    l2: float

    @property
    def p(self) -> np.ndarray:
        """Weights that sum to one."""
        return self.weight / self.weight.sum()

    def enough(self, tol: float) -> float:
        """Rounding of the scores, beside ``||w||^2``, that costs a negligible part of a relative gap of ``tol``."""
        return NEGLIGIBLE * tol / (2 * (self.C * float(self.weight.sum()) + self.l1 + TINY))

    def spread(self, f: np.ndarray) -> np.ndarray:
        """``sqrt(l2) B f``: half of its square is the term of the variance."""
        p = self.p
        return np.sqrt(self.l2 * p) * (f - self.y * ((p * self.y) @ f))

    def gathered(self, z: np.ndarray) -> np.ndarray:
        """``sqrt(l2) B'z``."""
        axis = np.sqrt(self.p) * self.y
        return np.sqrt(self.l2 * self.p) * (z - axis * (axis @ z))

    def certificate(self, g: np.ndarray, machine: LdmPoint) -> tuple[float, float, float]:
        """Objective of a machine, its gap to the dual point g, and the size that a relative gap refers to."""
        cap, e = self.C * self.weight, machine.rounding.f + machine.rounding.values
        d, z = self.y * machine.f, self.spread(machine.f)
        u, loss = np.clip(g - self.l1 * self.p, 0, cap), cap * np.maximum(0, 1 - d)
        spread = float(z @ z)
        square, hinge, mean = 0.5 * (machine.norm + spread), float(loss.sum()), self.l1 * float(self.p @ d)
        parts = np.maximum(loss - u * (1 - d), 0) + (u + self.l1 * self.p) * e
        squares, wrong_z = self._squares_rounding(machine.rounding, spread)
        rest = np.sqrt(2 * machine.rest) + wrong_z + machine.rounding.w
        gap = float(parts.sum()) + squares + 0.5 * float(rest * rest)
        return (
            square + hinge - mean,
            max(gap, self.objective_rounding(machine, spread)),
            max(square + hinge + abs(mean), TINY),
        )

    def _squares_rounding(self, rounding: Rounding, spread: float) -> tuple[float, float]:
        """What rounding may do to half the squares in the objective, and to the length of z~, whose square is known."""
        wrong_z = float(np.sqrt(self.l2 * (self.p @ np.square(rounding.f))))
        return 0.5 * rounding.norm + wrong_z * (float(np.sqrt(spread)) + 0.5 * wrong_z), wrong_z

    def objective_rounding(self, machine: LdmPoint, spread: float) -> float:
        """By how much the objective of a machine may be larger than the one computed."""
        d, e = self.y * machine.f, machine.rounding.f
        losses = self.C * self.weight * (np.maximum(0, 1 - d + e) - np.maximum(0, 1 - d))
        return float(losses.sum() + self.l1 * (self.p @ e)) + self._squares_rounding(machine.rounding, spread)[0]


def gap_of_rows(
    problem: LDMProblem,
    machine: LdmPoint,
    duals: tuple[np.ndarray, np.ndarray],
    feasible: np.ndarray,
) -> tuple[float, float, float]:
    """`LDMProblem.certificate` from any u in its box and margins t (head of the file), whose w is ``feasible``."""
    (u, t), p, l1, l2 = duals, problem.p, problem.l1, problem.l2
    d, cap = problem.y * machine.f, problem.C * problem.weight
    mean, mean_t = float(p @ d), float(p @ t)
    hinge, spread = float(cap @ np.maximum(0, 1 - d)), l2 * float(p @ (d - mean) ** 2)
    square, length = 0.5 * (machine.norm + spread), float(np.linalg.norm(feasible))
    variance = 0.5 * l2 * float(p @ (t - mean_t) ** 2)
    objective, gained = square + hinge - l1 * mean, float(u.sum())
    moved, size = machine.rounding.w, max(square + hinge + abs(l1 * mean), TINY)
    wrong = moved * (length + 0.5 * moved) + (len(p) + 16) * UNIT * (size + gained + variance)
    gap = objective - (gained - 0.5 * length * length - variance) + wrong
    return objective, max(gap, problem.objective_rounding(machine, spread)), size
