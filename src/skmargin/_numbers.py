"""Numbers that a user gives, checked where they arrive."""

from __future__ import annotations

from math import inf, isfinite
from numbers import Real

WITH_SQUARE = 1e120  # largest number of which sums and products of squares are still numbers


def checked(name: str, value: object, least: float = 0.0, most: float = inf, *, positive: bool = False) -> float:
    """The value as a float; refused in one sentence where it is no finite number between these (``> 0``)."""
    number = float(value) if isinstance(value, Real) else inf
    if isfinite(number) and least <= number <= most and not (positive and number == 0):
        return number
    wanted = "positive" if positive else f"at least {least:g}"
    wanted += f" and at most {most:g}" if most < inf else ""
    raise ValueError(f"{name} must be a finite number, {wanted}, got {value!r}.")
