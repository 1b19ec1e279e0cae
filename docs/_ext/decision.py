"""The drawing of the page "Which machine for my data?": questions down the left side, answers on the right."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Each question, and what to take where the answer is yes.  Names in backquotes are classes.
LADDER = [
    ("Have some rows no label?", ["`SemiSupervisedMarginSVC`"]),
    (
        "At most about 10,000 rows, and fewer|features than rows?",
        [
            "With the kernel RBF: `LSSVC` or `ULDMClassifier`, whose parameters are tuned almost for free;",
            "`CrammerSingerSVC` where predictions must be fast (fewer support vectors);",
            "`LDMClassifier` was as accurate as these two and took longest.",
        ],
    ),
    ("Do you have a two-class machine already?", ["`FuzzyPairwiseClassifier` puts it to work on all pairs of classes"]),
    ("Is the right class enough if it is|among the first k?", ["`TopKSVC`"]),
    (
        "Do you need probabilities, a stream|of rows, or a last layer of a network?",
        ['`M3SVC` with loss="log_loss", partial_fit, or skmargin.torch'],
    ),
    ("Many classes of unequal difficulty?", ["`LpNormSVC`, p between 1 and 2, tuned together with C"]),
    ("Does the spread of the margins matter,|not only the smallest ones?", ["`ODMClassifier`"]),
    (
        "None of these",
        [
            "`CrammerSingerSVC`; `WestonWatkinsSVC` is the fastest to fit and often as good.",
            "`MultiMarginSVC` is the same as the latter with all pairwise margins in the penalty.",
        ],
    ),
]


def drawing() -> str:
    """The picture as SVG; its colours are those of the page (``site.css``)."""
    parts, y = [], 10
    for place, (question, answers) in enumerate(LADDER):
        lines = question.split("|")
        height = 24 + 20 * max(len(lines), len(answers))
        middle = y + height / 2
        parts.append(f'<rect class="box question" x="10" y="{y}" width="300" height="{height}" rx="8"/>')
        parts += _lines(lines, 160, middle, 'text-anchor="middle"')
        parts.append(f'<rect class="box" x="390" y="{y}" width="720" height="{height}" rx="8"/>')
        parts += _lines(answers, 405, middle, "")
        parts.append(f'<path class="arrow" d="M310 {middle}H382"/><path class="tip" d="M390 {middle}l-9 -5v10z"/>')
        last = place == len(LADDER) - 1
        if not last:
            parts.append(f'<text class="note" x="345" y="{middle - 7}" text-anchor="middle">yes</text>')
            end = y + height + 26
            parts.append(f'<path class="arrow" d="M160 {y + height}V{end - 8}"/><path class="tip" d="M160 {end}l-5 -9h10z"/>')
            parts.append(f'<text class="note" x="170" y="{y + height + 17}">no</text>')
        y += height + 26
    words = "Questions about the data, one below the other, each with the machine to take where the answer is yes"
    head = f'<svg viewBox="0 0 1120 {y - 16}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{words}">'
    return f'<div class="decision">{head}{"".join(parts)}</svg></div>'


def _lines(lines: list[str], x: float, middle: float, anchor: str) -> list[str]:
    first = middle - 10 * (len(lines) - 1) + 5
    return [f'<text x="{x}" y="{first + 20 * i}" {anchor}>{_linked(line)}</text>' for i, line in enumerate(lines)]


def _linked(line: str) -> str:
    link = r'<a href="api/generated/skmargin.\1.html"><tspan>\1</tspan></a>'
    return re.sub(r"`(\w+)`", link, escape(line, quote=False))


class Drawing(SphinxDirective):
    """``{decision}``: the drawing; for pages in the first folder."""

    def run(self) -> list[nodes.Node]:
        """One raw node."""
        return [nodes.raw("", drawing(), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("decision", Drawing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
