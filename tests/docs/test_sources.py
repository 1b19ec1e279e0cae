"""The sources of the site: every public name has an entry, every block of Python is a doctest, nothing is forgotten."""

import ast
import inspect
import re
import tomllib
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import skmargin

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"auto_examples", "_build"} & set(path.parts))
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))
# Where a public name lives: packages with a list of their names, and modules that are one file.
HOMES = [*(ROOT / "src/skmargin").glob("[a-z]*/__init__.py"), *(ROOT / "src/skmargin").glob("[a-z]*.py")]
MODULES = sorted(
    f"skmargin.{p.parent.name if p.stem == '__init__' else p.stem}" for p in HOMES if "__all__" in p.read_text()
)
NEEDS = {"skmargin.torch": "torch", "skmargin.onnx": "skl2onnx"}  # large packages that may be missing
MODULES = ["skmargin", *(module for module in MODULES if module != "skmargin.cli")]


def entries():
    """Names in the lists of the API reference, with their modules."""
    found, module = set(), ""
    for path in (ROOT / "docs/api").glob("[!i]*.rst"):  # index.rst lists pages
        for line in path.read_text().splitlines():
            if line.startswith(".. currentmodule::"):
                module = line.split()[-1]
            elif re.fullmatch(r"   [A-Za-z]\w*", line) or line.startswith(".. py:data::"):
                found.add(f"{module}.{line.split()[-1]}")
    return found


def names_of(module):
    """``__all__`` as it is written: the module itself may need a package that is not installed."""
    where = find_spec(module).origin
    for node in ast.parse(Path(where).read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


@pytest.mark.parametrize("module", MODULES)
def test_reference_has_every_public_name(module):
    missing = {f"{module}.{name}" for name in names_of(module)} - entries()
    assert not missing


def test_reference_names_exist():
    for entry in entries():
        module, _, name = entry.rpartition(".")
        if module in NEEDS and not find_spec(NEEDS[module]):
            continue
        assert hasattr(import_module(module), name), entry


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT / "docs")))
def test_python_on_pages_is_tested(page):
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
        assert block.startswith(">>> "), f"{page.name}: a block of Python that is no doctest:\n{block}"


def test_drawing_names_every_machine():
    spec = spec_from_file_location("drawing", ROOT / "docs/_ext/drawing.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert set(re.findall(r"skmargin\.(\w+)\.html", module.drawing())) == set(skmargin.__all__)


def test_page_about_machines_names_every_one():
    text = (ROOT / "docs/which_machine.md").read_text()
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.M)) == set(skmargin.__all__)


def test_gallery_is_large_enough():
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_use_public_names_and_their_own_data(path):
    tree = ast.parse(path.read_text())
    title, line = ast.get_docstring(tree).splitlines()[:2]
    assert re.fullmatch("=+", line) and len(line) == len(title)
    assert "plt.show()" in path.read_text()
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) else []
        assert not [m for m in modules if "._" in m or m.startswith(("skmargin.solvers", "skmargin.rows"))]
        if isinstance(node, ast.Name | ast.Attribute):
            assert not (node.id if isinstance(node, ast.Name) else node.attr).startswith("fetch_")


def test_versions_agree():
    assert f"version: {skmargin.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{skmargin.__version__}}}" in (ROOT / "docs/cite.md").read_text()


def test_badges_are_true():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sklearn = next(line for line in project["dependencies"] if line.startswith("scikit-learn"))
    truth = {"license": project["license"], "python": project["requires-python"].removeprefix(">=") + "+"}
    truth["scikit-learn"] = sklearn.partition(">=")[2] + "+"
    for name, value in truth.items():
        assert f'aria-label="{name}: {value}"' in (ROOT / f"docs/figures/badge-{name}.svg").read_text()
        assert f"{name}: {value}" in (ROOT / "README.md").read_text()


def test_readme_leads_to_pages_that_exist():
    for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize("name", skmargin.__all__)
def test_machine_has_example_paper_and_gallery_entry(name):
    text = inspect.getdoc(getattr(skmargin, name))
    assert "Examples\n----" in text and "References\n----" in text
    assert any(re.search(rf"\b{name}\(", path.read_text()) for path in EXAMPLES)
