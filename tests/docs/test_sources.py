"""The sources of the site: every public name has an entry, every block of Python is a doctest, nothing is forgotten."""

import ast
import inspect
import pkgutil
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
NEEDS = {"skmargin.torch": "torch", "skmargin.onnx": "skl2onnx"}  # large packages that may be missing


def extension(name):
    """A module of the site's own that needs no Sphinx."""
    spec = spec_from_file_location(name, ROOT / f"docs/_ext/{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = extension("reference")


def listed():
    """Names in the reference, with their modules."""
    found = set()
    for page, parts in reference.sections().items():
        module = ""
        for line in reference.page(page, parts).splitlines():
            if line.startswith(".. currentmodule::"):
                module = line.split()[-1]
            elif re.fullmatch(r"   [A-Za-z]\w*", line) or line.startswith(".. py:data::"):
                found.add(f"{module}.{line.split()[-1]}")
    return found


@pytest.mark.parametrize(
    "module", [m.name for m in pkgutil.iter_modules(skmargin.__path__) if m.name[0] != "_" and m.name != "cli"]
)
def test_reference_has_every_public_name(module):
    name = f"skmargin.{module}"
    if name in NEEDS and not find_spec(NEEDS[name]):
        assert any(entry.startswith(f"{name}.") for entry in listed())
    else:
        names = {f"{name}.{public}" for public in getattr(import_module(name), "__all__", [])}
        assert names <= listed()


def test_reference_has_every_machine_and_nothing_that_is_not_there():
    submodules = {module.name for module in pkgutil.iter_modules(skmargin.__path__)}
    public = {name for name in dir(skmargin) if name not in submodules and not name.startswith("_")}
    assert {f"skmargin.{name}" for name in public} <= listed()
    for entry in listed():
        module, _, name = entry.rpartition(".")
        assert module in NEEDS or hasattr(import_module(module), name), entry


def test_names_that_no_group_lists_are_shown_all_the_same(monkeypatch):
    names = {module: [*names, "newcomer"] for module, names in reference.public_names().items()}
    monkeypatch.setattr(reference, "public_names", lambda: {**names, "skmargin.fresh": ["thing"]})
    assert {f"{module}.newcomer" for module in names} | {"skmargin.fresh.thing"} <= listed()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT / "docs")))
def test_python_on_pages_is_tested(page):
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
        assert block.startswith(">>> "), f"{page.name}: a block of Python that is no doctest:\n{block}"


def test_drawing_names_every_machine():
    drawing = extension("drawing").drawing()
    assert set(re.findall(r"skmargin\.(\w+)\.html", drawing)) == set(skmargin.__all__)


def test_page_about_machines_names_every_one():
    text = (ROOT / "docs/which_machine.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.M)) == set(skmargin.__all__)


def test_gallery_is_large_enough():
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_use_public_names_and_their_own_data(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, line = ast.get_docstring(tree).splitlines()[:2]
    assert re.fullmatch("=+", line) and len(line) == len(title)
    assert "plt.show()" in path.read_text(encoding="utf-8")
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) else []
        assert not [m for m in modules if "._" in m or m.startswith(("skmargin.solvers", "skmargin.rows"))]
        if isinstance(node, ast.Name | ast.Attribute):
            assert not (node.id if isinstance(node, ast.Name) else node.attr).startswith("fetch_")


def test_versions_agree():
    assert f"version: {skmargin.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{skmargin.__version__}}}" in (ROOT / "docs/cite.md").read_text(encoding="utf-8")


def test_badges_are_true():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sklearn = next(line for line in project["dependencies"] if line.startswith("scikit-learn"))
    truth = {"license": project["license"], "python": project["requires-python"].removeprefix(">=") + "+"}
    truth["scikit-learn"] = sklearn.partition(">=")[2] + "+"
    for name, value in truth.items():
        assert f'aria-label="{name}: {value}"' in (ROOT / f"docs/figures/badge-{name}.svg").read_text(encoding="utf-8")
        assert f"{name}: {value}" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: path.name)
def test_links_also_work_in_the_repository(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]


@pytest.mark.parametrize("name", sorted(listed()))
def test_public_name_has_an_example(name):
    """Constants, what must be implemented (protocols) and an error that needs missing files apart."""
    module, _, short = name.rpartition(".")
    if module in NEEDS and not find_spec(NEEDS[module]):
        return
    thing = getattr(import_module(module), short)
    if inspect.isfunction(thing) or (inspect.isclass(thing) and not getattr(thing, "_is_protocol", False)):
        assert short == "MissingData" or ">>>" in inspect.getdoc(thing)


@pytest.mark.parametrize("name", skmargin.__all__)
def test_machine_has_example_paper_and_gallery_entry(name):
    text = inspect.getdoc(getattr(skmargin, name))
    assert "Examples\n----" in text and "References\n----" in text
    assert any(re.search(rf"\b{name}\(", path.read_text(encoding="utf-8")) for path in EXAMPLES)
