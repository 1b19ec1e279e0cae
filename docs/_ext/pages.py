"""Small changes of the pages while they are read: files of the first folder, code, docstrings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]


def quote_attributes(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Names that end in an underscore would be links in "ndarray of shape (n_features_in_,)"."""
    for i, line in enumerate(lines):
        if " : " in line and "shape (" in line:
            head, _, kind = line.partition(" : ")
            lines[i] = f"{head} : " + re.sub(r"\b([a-z]\w*_)(?!\w)", r"`\1`", kind)


def trim_code(app: Sphinx, doctree: nodes.document) -> None:
    """A doctest ends with an empty line before the end of its block; it is not shown."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if text.endswith("\n"):
            block.rawsource = text.rstrip()
            block[:] = [nodes.Text(text.rstrip())]


# Files of the first folder that are pages here, and what links in them to each other and to docs/ become.
ROOT_PAGES = {"contributing": "CONTRIBUTING.md", "changes": "CHANGELOG.md"}
LINKS = {
    "docs/": "",
    "benchmarks/README.md": "benchmarks.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "README.md": "index.md",
}


def read_root_page(app: Sphinx, page: str, source: list[str]) -> None:
    """The text of a file of the first folder in place of the page that stands for it; links to such files."""
    if page in ROOT_PAGES:
        source[0] = (DOCS.parent / ROOT_PAGES[page]).read_text(encoding="utf-8")
    # In the repository a link to an example opens the script, on the site its page.
    source[0] = re.sub(r"\]\(\.\./((?:\.\./)*)examples/([\w/]+)\.py\)", r"](\1auto_examples/\2.rst)", source[0])
    source[0] = source[0].replace("](../examples/README.rst)", "](auto_examples/index.rst)")
    above = "" if page in ROOT_PAGES else "../"
    if "/" not in page:
        for there, here in LINKS.items():
            source[0] = source[0].replace(f"]({above}{there}", f"]({here}")
        if above:  # other files are not part of the site: they are named
            source[0] = re.sub(r"\[`?([^]`]+)`?\]\(\.\./([^)]+)\)", r"\1 (`\2`)", source[0])


def excuse_inherited(app: Sphinx, env: Any, node: Any, text: nodes.Node) -> nodes.Node | None:
    """Docstrings that are inherited from other packages may point at pages of theirs: only the text stays."""
    while node is not None and not node.source:
        node = node.parent
    where = node.source if node is not None else ""
    return text if "docstring of" in where and "docstring of skmargin" not in where else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Docstrings are changed before numpydoc reads them (its priority is 500)."""
    app.connect("source-read", read_root_page)
    app.connect("doctree-read", trim_code)
    app.connect("missing-reference", excuse_inherited, priority=900)  # after the inventories were asked
    app.connect("autodoc-process-docstring", quote_attributes, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
