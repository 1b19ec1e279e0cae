"""Rounds in which partitions keep something: chains of pure tasks, of which each hands what it carries to the next.

The partitions are dealt into chains, one after the other, by their number alone: workers and their threads do not
change the bits.  What a partition keeps is the result of a task and the input of that of the next round; it stays where
it was made, and what a lost worker held is computed again from the rounds before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

from .blocks import Block, merge_sums

# Rounds grow with the root of their number, not with that of the partitions; the time of one falls with it.  Text, to
# a gap of 1e-2, 8 chains of 8, 32, 128 partitions take 39, 40, 47 rounds, 32 chains of 128 take 78, L-BFGS takes 92.
LEAST_CHAINS, MOST_CHAINS = 8, 32
CHAIN_LENGTH = 4  # partitions, between these


class ChainTask(ABC):
    """What is done with the partitions of a chain, in their order; it has no state and can be pickled."""

    name: ClassVar[str] = "round"

    @abstractmethod
    def zero(self) -> Any:
        """Empty sums."""

    @abstractmethod
    def open(self) -> Any:
        """What is carried at the start of a chain."""

    @abstractmethod
    def visit(self, carried: Any, block: Block, kept: Any) -> tuple[Any, Any]:
        """What a partition hands on and what it keeps; ``kept`` is of the last round, or None.

        Neither input may be changed.
        """

    @abstractmethod
    def close(self, carried: Any) -> Any:
        """The sums of a chain."""

    def merge(self, sums: Any, others: Any) -> None:
        """Add the sums of a later chain."""
        merge_sums(sums, others)


@dataclass(frozen=True)
class Kept:
    """What partitions have kept: futures on a cluster, else the objects; for the next round only."""

    key: str = ""
    values: dict[Any, Any] = field(default_factory=dict)


def chain_count(n_partitions: int) -> int:
    """How many chains so many partitions make."""
    wanted = -(-n_partitions // CHAIN_LENGTH)
    return min(n_partitions, max(LEAST_CHAINS, min(MOST_CHAINS, wanted)))


def dealt(partitions: list[int]) -> list[list[int]]:
    """The partitions of each chain."""
    m = chain_count(len(partitions))
    cuts = [len(partitions) * chain // m for chain in range(m + 1)]
    return [partitions[a:b] for a, b in pairwise(cuts)]
