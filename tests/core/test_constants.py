"""The constants of the core that steer speed: all in tuning.hpp, few, and each says what it is and what it matters."""

import re
from importlib import import_module
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src" / "skmargin" / "_core"
core = import_module("skmargin._core._ext")

FIELD = re.compile(r"^    (?:u?int(?:\d+_t)?|double) (\w+) = [^;]+;$")
MOST = 43  # a new one has to take the place of another
RATIOS = r"\d+\.\d\d \(\d+\.\d\)"
SENSITIVITY = re.compile(rf"half {RATIOS}, twice {RATIOS}|not measured")

# Compile-time numbers elsewhere: sizes of caches, registers and short sums, rounding, marks.  Thresholds of a method
# belong into tuning.hpp; few_classes, few_rows, min_passes and near_widths are
# the ones that are not there yet.
ELSEWHERE = {
    "base/sums.hpp": {"infinity"},
    "blocks/block_pass.hpp": {"n_values", "piece"},
    "blocks/class_groups.hpp": {"few_rows", "most_held"},
    "intercept/circulation.hpp": {"n_widths", "near_widths"},
    "intercept/class_pairs.hpp": {"few_classes", "none"},
    "kernel/momentum.hpp": {"cache_line"},
    "kernel/rows.hpp": {"strip"},
    "linear/block_ascent.hpp": {"alone_size", "min_passes"},
    "linear/class_vectors.hpp": {"rounding"},
    "linear/dual_lists.hpp": {"min_chunk"},
    "linear/dual_value.hpp": {"batch", "unit"},
    "linear/face_cg.hpp": {"max_parts", "own_class"},
    "linear/load_ascent.hpp": {"balanced_share"},
    "linear/sample_visits.hpp": {"never_scored"},
    "linear/screening.hpp": {"safety"},
    "losses/hinge.hpp": {"slack"},
    "losses/logistic.hpp": {"slack"},
    "losses/odm.hpp": {"slack"},
    "losses/stretch.hpp": {"count"},
    "many_classes/class_pattern.hpp": {"absent", "ahead", "empty", "parts"},
    "many_classes/class_scan.hpp": {"chunk", "groups", "width"},
    "many_classes/tiled_scores.hpp": {"chunk", "groups", "tile_width", "width"},
    "newton/pair_laplacian.hpp": {"chunk", "panel"},
    "newton/point.hpp": {"piece"},
    "newton/rows.hpp": {"most_added"},
    "two_class/ridge_path.hpp": {"largest_residual", "smallest_shift"},
}


def constants():
    """(structure, name, comment) of every run-time constant of tuning.hpp."""
    found, structure, comment = [], None, []
    for line in (CORE / "tuning.hpp").read_text().splitlines():
        if opened := re.match(r"struct (\w+) \{", line):
            structure, comment = opened[1], []
        elif line.startswith("    // "):
            comment.append(line.removeprefix("    // "))
        elif structure and (field := FIELD.match(line)):
            found.append((structure, field[1], " ".join(comment)))
            comment = []
        elif line.startswith("};"):
            structure = None
    return found


def compile_time(path):
    """Names of the numbers that a header fixes at compile time."""
    return set(re.findall(r"\bconstexpr (?:u?int(?:\d+_t)?|size_t|float|double) (\w+)\b(?! *\()", path.read_text()))


def test_there_are_few():
    assert 20 < len(constants()) + len(compile_time(CORE / "tuning.hpp")) <= MOST


@pytest.mark.parametrize(("structure", "name", "comment"), constants(), ids=lambda part: part.split(" ")[0])
def test_each_says_its_unit_its_origin_and_what_halving_and_doubling_cost(structure, name, comment):
    unit, _, rest = comment.partition(" (")
    origin, _, sensitivity = rest.removesuffix(")").rpartition("; ")
    assert len(unit) > 5 and origin.startswith(("by hand", "measured")), comment
    assert SENSITIVITY.fullmatch(sensitivity), comment


def test_python_sees_those_of_the_header_and_no_others():
    listed = {}
    for structure, name, _ in constants():
        listed.setdefault(structure, set()).add(name)
    for structure, expected in listed.items():
        fields = {name: getattr(getattr(core, structure)(), name) for name in dir(getattr(core, structure))}
        assert {name for name, value in fields.items() if isinstance(value, (int, float))} == expected


def test_no_header_keeps_one_of_its_own():
    for path in sorted(CORE.rglob("*.[hc]pp")):
        place = path.relative_to(CORE)
        if place.parts[0] not in ("simd", "rows", "bindings") and place.name != "tuning.hpp":
            assert compile_time(path) == ELSEWHERE.get(str(place), set()), place
