"""What an estimator needs of a solver's result, and what it keeps of it for a warm start."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np


class Solution(Protocol):
    """Result of a solver, with its certificate."""

    @property
    def objective(self) -> float:
        """The primal objective."""

    @property
    def gap(self) -> float | None:
        """Certified relative duality gap; None where the solver has no certificate."""

    @property
    def n_iter(self) -> int:
        """Iterations."""


Kind = TypeVar("Kind")


@dataclass(frozen=True)
class WarmStart:
    """The solution of the last fit, with what must be the same for the next one to start from it."""

    solution: object
    y: np.ndarray  # codes of the classes: the same labels mean, by contract, the same rows
    cap: np.ndarray  # weights of the losses
    setting: Hashable  # what else it depends on: the loss, or the shapes of the two-class problems

    def start(self, kind: type[Kind], y: np.ndarray) -> Kind | None:
        """The solution, if it is of this kind and belongs to these labels."""
        return self.solution if isinstance(self.solution, kind) and np.array_equal(self.y, y) else None
