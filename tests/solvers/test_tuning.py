"""The constants that steer speed: each says what it is, and none can be changed behind a solver's back."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from skmargin import CrammerSingerSVC
from skmargin.solvers.tuning import DEFAULT, Tuning

CONSTANTS = [(group.name, one) for group in fields(Tuning) for one in fields(getattr(DEFAULT, group.name))]


@pytest.mark.parametrize(("group", "one"), CONSTANTS, ids=[f"{group}.{one.name}" for group, one in CONSTANTS])
def test_every_constant_is_a_positive_number_with_unit_and_origin(group, one):
    value = getattr(getattr(DEFAULT, group), one.name)
    assert isinstance(value, (int, float)) and 0 < value < np.inf
    assert one.metadata["unit"] and one.metadata["origin"]
    with pytest.raises(FrozenInstanceError):
        setattr(getattr(DEFAULT, group), one.name, value)


def test_changed_constants_leave_the_others_and_the_default_as_they_are():
    other = DEFAULT.changed(linear={"tiny_work": 7}, kernel={"min_set": 8})
    assert (other.linear.tiny_work, other.kernel.min_set) == (7, 8)
    assert other.linear.tiny_rows == DEFAULT.linear.tiny_rows and other.odm is DEFAULT.odm
    assert DEFAULT.linear.tiny_work != 7
    with pytest.raises(TypeError, match="no_such"):
        DEFAULT.changed(linear={"no_such": 1})


def test_estimators_hand_their_constants_to_the_solver():
    """Without the Newton method, and without a solve to rounding, a few rows take other steps to the same optimum."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 80)
    X = rng.normal(size=(3, 4))[y] + rng.normal(size=(80, 4))
    usual, other = CrammerSingerSVC(random_state=0).fit(X, y), CrammerSingerSVC(random_state=0)
    other._tuning = DEFAULT.changed(linear={"tiny_work": 0, "newton_unknowns": 0})
    other.fit(X, y)
    assert usual.dual_gap_ < 1e-9 < other.dual_gap_ <= 1e-3
    assert usual.objective_ <= other.objective_ <= usual.objective_ * (1 + 1e-3)
