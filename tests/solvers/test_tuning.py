"""The constants that steer speed: each says what it is, and none can be changed behind a solver's back."""

import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest

import skmargin
from skmargin import CrammerSingerSVC
from skmargin.solvers.tuning import DEFAULT, Tuning

OWN = [group.name for group in fields(Tuning) if group.name != "blocks"]  # the blocks are counted in a test of theirs
CONSTANTS = [(group.name, one) for group in fields(Tuning) for one in fields(getattr(DEFAULT, group.name))]
MOST = 50  # of these groups: a new rule replaces one that is here, or shares its constant

# Numbers in capitals that are not among the constants, and why: what they steer is not speed.
PACKAGES = "solvers", "rows", "_runtime", "model_selection", "estimators", "inspection"
ROUNDING = """
    ACCURATE CACHE_LINE_BYTES DENSE EIGENVALUE_DIGITS EXACT FACTOR_BYTES FACTOR_RTOL FAR FLOAT32_GAP_SHARE
    FLOAT32_MAX_OFFSET FLOAT32_MAX_SQUARE FLOAT32_MAX_VALUE GAP_FLOOR GOAL GRADIENT_TOL GRAM32_RTOL LARGEST_WEIGHT
    LONGER LOST LOST_DIGITS LOST_SCORES MOST_CAP MOST_KERNEL_CAP MOST_MOMENT NEGLIGIBLE NO_BOUND NO_EIGENVALUE
    ROUNDING_DEVIATIONS SAMPLE SAMPLE_NUMBERS SCORE_DIGITS SHORTEST SPLIT_SUMS_ABOVE TINY UNIT VALUE_STEPS VANISHED
    WORSE _DAMPING _DROPPED _FAR _LARGE _LOST _LOWEST _PROGRESS _SMALLEST _UNSEEN
"""
METHOD = """
    DRAWS EXAMINED FIRST LEVEL N_WIDTHS_KEPT POWER_STEPS PROBE SIMULATION_SHARE STAGES TEMPERATURES
    UNBALANCED _BETA1 _BETA2 _EPS
"""  # parameters of a published method or of a test, which change the answer
LIMIT = """
    ATTEMPTS INTERIOR_STEPS MOST_EIGENVALUES POLISH_STEPS REFINEMENTS SWEEPS _MAX_CG _MAX_SLOW_STEPS
"""  # that usual runs do not meet
ORDER = "CHAIN_LENGTH FAN_IN LANES LEAST_CHAINS MOST_CHAINS"  # of the sums of blocks: it decides their bits
CLOCK = "FORGET_SECONDS GRACE_SECONDS SECONDS SHARE WORKER_TIMEOUT"
DISPLAY = "MOST_LETTERS MOST_NAMES STEPS"
ACCEPTED = {name for why in (ROUNDING, METHOD, LIMIT, ORDER, CLOCK, DISPLAY) for name in why.split()}


@pytest.mark.parametrize(("group", "one"), CONSTANTS, ids=[f"{group}.{one.name}" for group, one in CONSTANTS])
def test_every_constant_is_a_positive_number_with_unit_and_origin(group, one):
    value = getattr(getattr(DEFAULT, group), one.name)
    assert isinstance(value, (int, float)) and 0 < value < np.inf
    assert one.metadata["unit"] and one.metadata["origin"]
    with pytest.raises(FrozenInstanceError):
        setattr(getattr(DEFAULT, group), one.name, value)


@pytest.mark.parametrize(("group", "one"), [(group, one) for group, one in CONSTANTS if group in OWN])
def test_every_constant_says_what_halving_and_doubling_it_costs(group, one):
    assert re.match(r"same bits|\d\.\d\d \(\d+\.\d\), \d\.\d\d \(\d+\.\d\)", one.metadata["sensitivity"])


def test_constants_do_not_become_more():
    assert sum(group in OWN for group, _ in CONSTANTS) <= MOST


def test_no_other_number_steers_speed():
    """A number in capitals is among the constants, or here with the reason why it is none."""
    root, found = Path(skmargin.__file__).parent, set()
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            if root / "solvers" / "blocks" not in path.parents:
                for names in re.findall(r"^(_?[A-Z][A-Z_0-9, ]*)(?:: \w+)? = [-(]?[0-9.]", path.read_text(), re.M):
                    found |= set(names.split(", "))
    assert found == ACCEPTED


def test_changed_constants_leave_the_others_and_the_default_as_they_are():
    other = DEFAULT.changed(common={"tiny_work": 7}, kernel={"min_set": 8})
    assert (other.common.tiny_work, other.kernel.min_set) == (7, 8)
    assert other.common.patience == DEFAULT.common.patience and other.primal is DEFAULT.primal
    assert DEFAULT.common.tiny_work != 7
    with pytest.raises(TypeError, match="no_such"):
        DEFAULT.changed(linear={"no_such": 1})


def test_estimators_hand_their_constants_to_the_solver():
    """Without the Newton method, and without a solve to rounding, a few rows take other steps to the same optimum."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 80)
    X = rng.normal(size=(3, 4))[y] + rng.normal(size=(80, 4))
    usual, other = CrammerSingerSVC(random_state=0).fit(X, y), CrammerSingerSVC(random_state=0)
    other._tuning = DEFAULT.changed(common={"tiny_work": 0, "dense_numbers": 0})
    other.fit(X, y)
    assert usual.dual_gap_ < 1e-9 < other.dual_gap_ <= 1e-3
    assert usual.objective_ <= other.objective_ <= usual.objective_ * (1 + 1e-3)
