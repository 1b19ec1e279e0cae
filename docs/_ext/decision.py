"""The directive ``{decision}``: the drawing of the page "Which machine for my data?"."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from drawing import drawing
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Drawing(SphinxDirective):
    """``{decision}``: the drawing; for pages in the first folder."""

    def run(self) -> list[nodes.Node]:
        """One raw node."""
        return [nodes.raw("", drawing(), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("decision", Drawing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
