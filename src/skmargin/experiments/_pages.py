"""Pages from results: Markdown beside its pictures, nothing in them that the results file does not hold."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from .._files import atomic_write
from . import _figures, _overall
from ._measures import accuracy, boundary, margin_histogram
from ._readings import figure_reading, summary, table_reading
from ._registry import EXPERIMENTS
from ._runner import Result
from ._scores import Scores, published, scores
from ._tables import BETTER, WORSE, accuracy_table, markdown

_PROSE = tomllib.loads(files(__package__).joinpath("papers", "prose.toml").read_text(encoding="utf-8"))
TITLES, INTRODUCTIONS, REMARKS = _PROSE["titles"], _PROSE["introductions"], _PROSE["remarks"]


def write_pages(results: Sequence[Result], folder: str | os.PathLike[str], run: str = "full") -> list[Path]:
    """Write a page for each paper with results, their pictures, and an index.

    Parameters
    ----------
    results : sequence of dict
        Lines of a results file, from `read_results`.
    folder : path
        Where to write.
    run : {"full", "quick"}, default="full"
        Which results.

    Returns
    -------
    pages : list of Path
        What was written, without the pictures.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = [scores(experiment, results, run) for experiment in EXPERIMENTS.values()]
    pages: dict[str, list[Scores]] = {}
    for one in found:
        if one.rows:
            pages.setdefault(one.experiment.paper, []).append(one)
    written = []
    for paper, parts in pages.items():
        if paper == "overall" and not (parts[0].experiment.name == "overall" and _overall.finished(parts[0]).rows):
            continue
        text = _overall_page(parts, folder) if paper == "overall" else _page(paper, parts, folder)
        written.append(_write(folder / f"{paper}.md", text))
    if pages:
        written.append(_write(folder / "README.md", _index(pages)))
    return written


def _page(paper: str, parts: Sequence[Scores], folder: Path) -> str:
    blocks = [f"# {TITLES[paper]}", INTRODUCTIONS[paper], _made(paper, parts)]
    for part in parts:
        experiment = part.experiment
        blocks += [f"## {experiment.title}", f"Paper: {experiment.protocol}", _here(part)]
        if experiment.name in _figures.PICTURES:
            name = f"{experiment.name}.svg"
            _figures.save(_figures.PICTURES[experiment.name](part), folder / name)
            blocks += [f"![{experiment.title}]({name})", *_bullets(figure_reading(part))]
        else:
            blocks += [_legend(part), accuracy_table(part), *_bullets(table_reading(part))]
        if experiment.name in REMARKS:
            blocks.append(REMARKS[experiment.name])
        blocks += _missing(part)
    return "\n\n".join(blocks) + "\n"


def _overall_page(parts: Sequence[Scores], folder: Path) -> str:
    part = _overall.finished(parts[0])
    blocks = [f"# {TITLES['overall']}", INTRODUCTIONS["overall"], _made("overall", [part]), _here(part)]
    blocks += ["## Ranks and times", _overall.summary_table(part), REMARKS["overall"]]
    name = "overall-ranks.svg"
    _figures.save(_figures.critical_differences(part.methods, _overall.test_ranks(part)), folder / name)
    blocks += [f"![Critical differences]({name})", "A bar joins methods whose ranks cannot be told apart at 95 %."]
    blocks += ["## Which method for which data", *_bullets(_overall.advice(part))]
    blocks += ["Some pairs:", *_bullets([f"{words}." for words in _overall.pairs(part)])]
    blocks += ["## Accuracy, %", _overall.matrix(part)]
    blocks += ["## Chosen parameters", _overall.parameters(part)]
    for one in parts[1:]:
        blocks += [f"## {one.experiment.title}", REMARKS[one.experiment.name], _overall.defaults(one)]
    blocks += _missing(part)
    return "\n\n".join(blocks) + "\n"


def _index(pages: dict[str, list[Scores]]) -> str:
    lines = [
        f"- [{TITLES[paper]}]({paper}.md): {', '.join(p.experiment.title for p in parts)}"
        for paper, parts in pages.items()
    ]
    blocks = [f"# {TITLES['index']}", INTRODUCTIONS["index"], "\n".join(lines)]
    parts = [part for paper, found in pages.items() if paper != "overall" for part in found]
    tables = [part for part in parts if part.experiment.name not in _figures.PICTURES]
    rows = [[f"[{p.experiment.name}]({p.experiment.paper}.md)", *summary(p)] for p in tables]
    header = ["table", "data sets", "within two points", "reference", "first here", "first in the paper"]
    if rows:
        blocks.append(markdown(header, rows))
    return "\n\n".join(blocks) + "\n"


def _made(paper: str, parts: Sequence[Scores]) -> str:
    lines = [line for part in parts for found in part.lines.values() for line in found]
    versions = "; ".join(sorted({line["versions"] for line in lines}))
    tasks = len({(line["experiment"], line["data"], line["method"], line["split"]) for line in lines})
    quick = " --quick" if parts[0].run == "quick" else ""
    return (
        f"Written by `skmargin reproduce {paper} --data DIR{quick}` from {tasks} tasks in [results.csv](results.csv); "
        f"{versions}. Do not edit: run the command again."
    )


def _here(part: Scores) -> str:
    """The protocols that were used, each with its data sets."""
    if part.experiment.measure is boundary:
        return "Here: the same."
    tuned = part.experiment.measure in (accuracy, margin_histogram)
    groups: dict[str, list[str]] = {}
    for row in part.rows:
        counts = {method: len(part.values(row.data.name, method)) for method in part.methods}
        done = max(counts.values())
        note = f" ({row.data.note})" if row.data.note else ""
        words = row.protocol.describe(tuned)
        if 0 < done < row.protocol.repeats:
            words += f"; {done} of the {row.protocol.repeats} divisions done so far"
        fewer = [f"{method} {count}" for method, count in counts.items() if 0 < count < done]
        if fewer:
            words += f"; fewer divisions: {', '.join(fewer)}"
        groups.setdefault(words, []).append(row.data.name + note)
    lines = [f"- {', '.join(names)}: {protocol}." for protocol, names in groups.items()]
    return "Here:\n\n" + "\n".join(lines)


def _legend(part: Scores) -> str:
    test = "paired t-test" if part.experiment.statistic == "paired" else "Welch's t-test"
    beside = "; second line the paper's figure and our difference from it" if published(part.experiment.name) else ""
    return (
        f"Accuracy in per cent, mean ± standard deviation over the divisions{beside}. {BETTER} "
        f"{part.experiment.reference} is significantly better, {WORSE} worse ({test}, 95 %). Best of a row bold."
    )


def _missing(part: Scores) -> list[str]:
    rows = [f"{row.data.name} ({row.data.wanted or 'built in'})" for row in part.missing]
    return (
        [f"Not in these results; with their files in the folder they are run too: {'; '.join(rows)}."] if rows else []
    )


def _bullets(sentences: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {sentence}" for sentence in sentences)] if sentences else []


def _write(path: Path, text: str) -> Path:
    with atomic_write(path) as file:
        file.write(text.encode())
    return path
