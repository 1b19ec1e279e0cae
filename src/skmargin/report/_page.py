"""The page itself: template, style and script of this folder, with the results put in as data."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
from importlib.resources import files
from typing import Any

from .._files import atomic_write
from ._results import Results


def render_report(results: Results) -> str:
    """Make the page: one HTML document that needs no network.

    All text of the results goes in as JSON data that the script shows as text, never as markup; a content security
    policy allows nothing but the page's own script.

    Parameters
    ----------
    results : Results
        What to show.

    Returns
    -------
    page : str
        The document.

    Examples
    --------
    >>> from skmargin.report import DatasetSummary, ModelResult, Results, render_report
    >>> data = DatasetSummary("toy", 4, 2, ["a", "<b>"], [2, 2])
    >>> page = render_report(Results("A <title>", data, [ModelResult("model", test_score=0.75)]))
    >>> "A &lt;title&gt;" in page, "<b>" in page
    (True, False)
    """
    folder = files(__package__)
    script, style, template = ((folder / name).read_text("utf-8") for name in ("page.js", "page.css", "page.html"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = results.to_dict()
    data["dataset"]["feature_names"] = None  # the samples name their own; a hundred thousand names would fill the page
    slots = {
        "POLICY": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
        "TITLE": html.escape(results.title),
        "STYLE": style,
        "DATA": _json(data),
        "SCRIPT": script,
    }
    parts = template.split("@@")  # text, name, text, name, ...: what is put in is never looked at again
    return "".join(part if i % 2 == 0 else slots[part] for i, part in enumerate(parts))


def write_report(results: Results, path: str | os.PathLike[str]) -> None:
    """Write the page to a file, whole or not at all.

    Parameters
    ----------
    results : Results
        What to show.
    path : path
        The file, by custom ``*.html``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from skmargin.report import ModelResult, Results, summarize_dataset, write_report
    >>> summary = summarize_dataset("iris", *load_iris(return_X_y=True))
    >>> results = Results("Iris", summary, [ModelResult("a", test_score=0.9)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     write_report(results, path)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    page = render_report(results).encode("utf-8", "replace")
    with atomic_write(path) as file:
        file.write(page)


def _json(value: Any) -> str:
    """JSON that is safe inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _finite(value: Any) -> Any:
    """Numbers with six digits, None for what is not finite."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
