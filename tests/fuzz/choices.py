"""Where the choices of a random case come from: hypothesis, which knows how to shrink them, or a plain generator.

A long run takes the generator: it costs microseconds instead of milliseconds, and the number of a case is all that is
needed to make it again.
"""

import numpy as np
from hypothesis import strategies as st


class Choices:
    """What cases are made of, from one source of whole numbers."""

    def integer(self, low, high):
        """A whole number from ``low`` to ``high``, both of them possible."""
        raise NotImplementedError

    def pick(self, values):
        """One of these values."""
        return values[self.integer(0, len(values) - 1)]

    def one_in(self, number):
        """True once in so many times."""
        return self.integer(1, number) == number

    def power(self, low, high):
        """A power of ten, with an exponent from ``low`` to ``high``."""
        return 10.0 ** self.integer(low, high)

    def generator(self):
        """A generator of random numbers for the rows."""
        return np.random.default_rng(self.integer(0, 2**32 - 1))


class Drawn(Choices):
    """Choices of hypothesis."""

    def __init__(self, draw):
        self._draw = draw

    def integer(self, low, high):
        return self._draw(st.integers(low, high))


class Numbered(Choices):
    """The choices of the case with this number of a run with this seed."""

    def __init__(self, *numbers):
        self._rng = np.random.default_rng(numbers)

    def integer(self, low, high):
        return int(self._rng.integers(low, high, endpoint=True))


def drawn(make, *arguments):
    """The hypothesis strategy of what ``make(choices, *arguments)`` makes."""
    return st.composite(lambda draw: make(Drawn(draw), *arguments))()
