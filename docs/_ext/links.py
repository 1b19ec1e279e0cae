"""Names of classes and functions in the text become links to their entries, here or in scikit-learn's documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from reference import public_names
from sphinx import addnodes
from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]


def targets() -> dict[str, str]:
    """Full name of every entry, by its last part; what two modules have in common is left alone."""
    found: dict[str, set[str]] = {}
    for module, names in public_names().items():
        for name in names:
            found.setdefault(name, set()).add(f"{module}.{name}")
    for name in re.findall(r"^(\S+) py:", (DOCS / "inventories.txt").read_text(encoding="utf-8"), re.M):
        found.setdefault(name.rpartition(".")[2], set()).add(name)
    # Plain words are names of functions, too: only what looks like a name in code is linked.
    return {short: full.pop() for short, full in found.items() if len(full) == 1 and re.search("[A-Z_]", short)}


TARGETS = targets()


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Put a reference around each name in code type that is not one already."""
    for literal in list(doctree.findall(nodes.literal)):
        target = TARGETS.get(literal.astext().partition("(")[0])
        if target and isinstance(literal.parent, nodes.paragraph | nodes.term | nodes.entry | nodes.strong):
            page = app.env.current_document.docname
            options = {"refdomain": "py", "reftype": "obj", "reftarget": target, "refdoc": page, "refexplicit": True}
            reference = addnodes.pending_xref("", refwarn=False, **options)
            literal.replace_self(reference)
            reference += literal


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every page when it has been read."""
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
