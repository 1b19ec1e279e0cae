"""The page of benchmarks is what its command makes of the results file, and says where the numbers come from."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).parents[2]
spec = spec_from_file_location("page", ROOT / "benchmarks/page.py")
page = module_from_spec(spec)
spec.loader.exec_module(page)


def test_page_is_what_the_command_writes():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(json.loads(page.RESULTS.read_text(encoding="utf-8")))


def test_pictures_are_there():
    for name in ("curves", "growth", "logistic"):
        assert (page.FIGURES / f"benchmarks-{name}.svg").stat().st_size > 1000


def test_rivals_stop_as_soon_as_they_are_there_and_ours_pays_for_its_tolerance():
    points = [[1.0, 0.1, 0.5], [0.1, 0.3, 0.009], [0.01, 0.7, 0.004], [0.001, 0.9, 0.0]]
    assert page.reached({"solver": "liblinear", "points": points}, 1e-2) == 0.3
    assert page.reached({"solver": "liblinear", "points": points}, 1e-9) == 0.9
    assert page.reached({"solver": "liblinear", "points": points[:1]}, 1e-2) == float("inf")
    assert page.reached({"solver": "skmargin", "points": points}, 1e-2) == 0.7
    assert page.reached({"solver": "skmargin-ww", "points": points}, 1e-5) == float("inf")


def test_machine_and_versions_are_told():
    results = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    text = page.PAGE.read_text(encoding="utf-8")
    assert results["machine"]["processor"] in text
    for name, number in results["versions"].items():
        assert f"{name} {number}" in text
