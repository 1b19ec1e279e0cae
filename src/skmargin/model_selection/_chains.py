"""The order of a search: candidates that differ in one parameter only form a chain, strongest penalty first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

# Parameters along which one solution is a good start for the next; the first that varies makes the chains.
PATH = ("C", "alpha", "p", "theta", "mu", "gamma")
FALLING = frozenset({"alpha"})  # the penalty is weaker where the value is smaller


class Chain(NamedTuple):
    """Numbers of the candidates in the order of their fits, and the parameter in which they differ (None: none)."""

    candidates: list[int]
    parameter: str | None


def prefix_of(estimator: BaseEstimator) -> str:
    """What comes before the names of the classifier's parameters: the name of the last step of a pipeline."""
    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


def in_path_order(parameter: str, values: Iterable[Any]) -> list[int]:
    """Positions of the values from the strongest penalty to the weakest; as they are where they are no numbers."""
    values = list(values)
    if not all(is_number(value) for value in values):
        return list(range(len(values)))
    return sorted(range(len(values)), key=values.__getitem__, reverse=parameter.rpartition("__")[2] in FALLING)


def key_of(params: dict[str, Any]) -> frozenset[Any]:
    """What tells settings apart: numbers and words by their value, other objects by their identity."""
    return frozenset(
        (name, type(v).__name__, v if v is None or isinstance(v, (Real, str)) else id(v)) for name, v in params.items()
    )


def chains(candidates: Sequence[dict[str, Any]], prefix: str) -> list[Chain]:
    """Split the candidates into chains."""
    parameter = next((prefix + name for name in PATH if _varies(prefix + name, candidates)), None)
    groups: dict[Any, list[int]] = {}
    for number, candidate in enumerate(candidates):
        on_path = parameter is not None and is_number(candidate.get(parameter))
        rest = {name: value for name, value in candidate.items() if not on_path or name != parameter}
        key = key_of(rest) if on_path else number
        groups.setdefault(key, []).append(number)
    out = []
    for numbers in groups.values():
        if parameter is None or len(numbers) == 1:
            out.append(Chain(numbers, None))
        else:
            order = in_path_order(parameter, [candidates[c][parameter] for c in numbers])
            out.append(Chain([numbers[i] for i in order], parameter))
    return out


def _varies(name: str, candidates: Sequence[dict[str, Any]]) -> bool:
    return len({c[name] for c in candidates if is_number(c.get(name))}) > 1


def is_number(value: Any) -> bool:
    """Whether a value has a place on a path."""
    return isinstance(value, Real) and not isinstance(value, bool)
