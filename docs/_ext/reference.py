"""The pages of the API reference: groups by use, in an order that helps; a name that is listed nowhere goes to the end.

The names come from the ``__all__`` of each module as it is written, since a module may need a package that is missing.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "skmargin"
PRIVATE = ("cli",)  # a command, not a module to import


class Section(NamedTuple):
    """A heading, a sentence, and the names of a module that are shown first; None shows all that are left."""

    title: str
    text: str
    module: str
    first: str | None = None


PAGES = {
    "machines": (
        "Machines",
        [
            Section(
                "One machine for all classes",
                "The classes are separated together, in one problem. :doc:`Which of them? </which_machine>`",
                "skmargin",
                "CrammerSingerSVC WestonWatkinsSVC TopKSVC ODMClassifier M3SVC MultiMarginSVC LpNormSVC",
            ),
            Section("With unlabelled rows", "", "skmargin", "SemiSupervisedMarginSVC"),
            Section(
                "Machines for pairs of classes",
                "Each solves two-class problems, and a rule puts them together.",
                "skmargin",
                "ULDMClassifier LSSVC LDMClassifier FuzzyPairwiseClassifier",
            ),
        ],
    ),
    "choosing": (
        "Choose and compare",
        [
            Section("Choose parameters", "", "skmargin.model_selection"),
            Section("Compare models", "", "skmargin.comparison", "Comparison Fold Model models tuned advise"),
        ],
    ),
    "margins": (
        "Margins and reports",
        [
            Section(
                "Look at margins",
                "For any fitted classifier with ``decision_function``, not only those of skmargin.",
                "skmargin.inspection",
                "margins margins_from_scores margin_statistics MarginStatistics class_scores pairwise_margins "
                "pairwise_score_gaps generalization_bound GeneralizationBound",
            ),
            Section(
                "Write a report",
                "",
                "skmargin.report",
                "summarize_dataset summarize_model rank_models corrected_paired_ttest render_report write_report",
            ),
        ],
    ),
    "files": (
        "Data and files",
        [
            Section(
                "Read data",
                "",
                "skmargin.datasets",
                "load_dataset read_csv read_libsvm read_parquet open_rows table_preprocessor plan_columns",
            ),
            Section("Save models", "", "skmargin.model_files", "save_model load_model describe_model"),
            Section(
                "Export models",
                'Needs skl2onnx: ``pip install "skmargin[onnx]"``. Importing ``skmargin.onnx`` makes skl2onnx know the '
                "machines.",
                "skmargin.onnx",
            ),
        ],
    ),
    "networks": (
        "Networks",
        [Section("For torch", 'Needs torch: ``pip install "skmargin[torch]"``.', "skmargin.torch")],
    ),
    "research": ("Research", [Section("Repeat the papers' experiments", "", "skmargin.experiments")]),
    "parts": (
        "Parts for new machines",
        [
            Section(
                "Losses",
                "Parts of `~skmargin.M3SVC` that can be exchanged; :doc:`/contributing` says how.",
                "skmargin.losses",
                "SmoothLoss LogLoss SmoothedSumHinge Curvature",
            ),
            Section("Penalties", "", "skmargin.regularizers"),
        ],
    ),
}
# Aliases of types are no objects with a docstring of their own.
ALIASES = {"skmargin.losses.Own": "The type of the positions of each row's own class, as `SmoothLoss` is given them."}


def public_names() -> dict[str, list[str]]:
    """The names in the ``__all__`` of each public module."""
    found = {"skmargin": _all(SOURCE / "__init__.py")}
    for path in sorted([*SOURCE.glob("[a-z]*/__init__.py"), *SOURCE.glob("[a-z]*.py")]):
        name = path.parent.name if path.name == "__init__.py" else path.stem
        if name not in PRIVATE and (names := _all(path)):
            found[f"skmargin.{name}"] = names
    return found


def _all(path: Path) -> list[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def sections() -> dict[str, list[tuple[Section, list[str]]]]:
    """The sections of each page with their names; every public name is in one of them."""
    left = {module: list(names) for module, names in public_names().items()}
    pages: dict[str, list[tuple[Section, list[str]]]] = {page: [] for page in PAGES}
    for page, (_, parts) in PAGES.items():
        for section in parts:
            wanted = section.first.split() if section.first else list(left[section.module])
            names = [name for name in wanted if name in left[section.module]]
            left[section.module] = [name for name in left[section.module] if name not in names]
            pages[page].append((section, names))
    last = {section.module: names for parts in pages.values() for section, names in parts}
    for module, names in left.items():
        if module in last:
            last[module] += names
        elif names:
            pages["parts"].append((Section(module, "", module), names))
    return pages


def page(title: str, parts: list[tuple[Section, list[str]]]) -> str:
    """The text of one page."""
    lines = [title, "=" * len(title), ""]
    for section, names in parts:
        if len(parts) > 1:
            lines += [section.title, "-" * len(section.title), ""]
        lines += [section.text, "", f".. currentmodule:: {section.module}", ""]
        lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names if f"{section.module}.{name}" not in ALIASES]
        for name in names:
            if text := ALIASES.get(f"{section.module}.{name}"):
                lines += ["", f".. py:data:: {name}", "", f"   {text}"]
        lines.append("")
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Write the pages that have changed."""
    for name, parts in sections().items():
        text = page(PAGES[name][0], parts)
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
