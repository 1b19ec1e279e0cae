"""The drawing of the page "Which machine for my data?": questions down the left side, answers on the right."""

from __future__ import annotations

import re
from html import escape
from textwrap import wrap

# Each question, and what to take where the answer is yes.  Names in backquotes are classes.
LADDER = [
    ("Have some rows no label?", "`SemiSupervisedMarginSVC`"),
    (
        "At most about 10,000 rows, and fewer features than rows?",
        "With the kernel RBF: `LSSVC` or `ULDMClassifier`, whose parameters are tuned almost for free; "
        "`CrammerSingerSVC` where predictions must be fast, as it keeps fewer rows. "
        "`LDMClassifier` was as accurate and took longest.",
    ),
    ("Do you have a two-class machine already?", "`FuzzyPairwiseClassifier` puts it to work on all pairs of classes"),
    ("Is it enough if the right class is among the first k?", "`TopKSVC`"),
    (
        "Probabilities, a stream of rows, the last layer of a network?",
        "`M3SVC`: the log loss, partial_fit, skmargin.torch",
    ),
    ("Many classes of unequal difficulty?", "`LpNormSVC`, p between 1 and 2, tuned together with C"),
    ("Does the spread of the margins matter, not only the smallest ones?", "`ODMClassifier`"),
    (
        "None of these",
        "`CrammerSingerSVC`. `WestonWatkinsSVC` is the fastest to fit and often as good; `MultiMarginSVC` is the same "
        "with the margins of all pairs in its penalty.",
    ),
]
QUESTION, GAP, ANSWER = 250, 60, 490  # widths


def drawing() -> str:
    """The picture as SVG; its colours are those of the page (``site.css``)."""
    parts, y, left = [], 5, 5 + QUESTION + GAP
    for place, (question, answer) in enumerate(LADDER):
        asked, given = wrap(question, 30), wrap(answer, 60)
        height = 22 + 20 * max(len(asked), len(given))
        middle, bottom = y + height / 2, y + height
        parts.append(f'<rect class="box question" x="5" y="{y}" width="{QUESTION}" height="{height}" rx="8"/>')
        parts += _lines(asked, 5 + QUESTION / 2, middle, 'text-anchor="middle"')
        parts.append(f'<rect class="box" x="{left}" y="{y}" width="{ANSWER}" height="{height}" rx="8"/>')
        parts += _lines(given, left + 12, middle, "")
        parts.append(f'<path class="arrow" d="M{5 + QUESTION} {middle}H{left - 8}"/>')
        parts.append(f'<path class="tip" d="M{left} {middle}l-9 -5v10z"/>')
        if place < len(LADDER) - 1:
            x = 5 + QUESTION / 2
            parts.append(f'<text class="note" x="{left - 33}" y="{middle - 7}" text-anchor="middle">yes</text>')
            parts.append(
                f'<path class="arrow" d="M{x} {bottom}v16"/><path class="tip" d="M{x} {bottom + 24}l-5 -9h10z"/>'
            )
            parts.append(f'<text class="note" x="{x + 9}" y="{bottom + 16}">no</text>')
        y += height + 24
    words = "Questions about the data, one below the other, each with the machine to take where the answer is yes"
    size = f"0 0 {left + ANSWER + 5} {y - 19}"
    head = f'<svg viewBox="{size}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{words}">'
    return f'<div class="decision">{head}{"".join(parts)}</svg></div>'


def _lines(lines: list[str], x: float, middle: float, anchor: str) -> list[str]:
    first = middle - 10 * (len(lines) - 1) + 5
    return [f'<text x="{x}" y="{first + 20 * i}" {anchor}>{_linked(line)}</text>' for i, line in enumerate(lines)]


def _linked(line: str) -> str:
    link = r'<a href="api/generated/skmargin.\1.html"><tspan>\1</tspan></a>'
    return re.sub(r"`(\w+)`", link, escape(line, quote=False))
