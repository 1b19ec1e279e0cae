"""Pages from results: Markdown beside its pictures, nothing in them that the results file does not hold."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from .._files import atomic_write
from . import _figures, _overall, _views
from ._claims import HOLDS, NOT, OPEN, PART, agreement, judge
from ._curves import boundary
from ._measures import accuracy, best_of_folds, in_turn, margin_histogram
from ._readings import figure_reading, summary, table_reading
from ._registry import EXPERIMENTS
from ._runner import KEY, Result
from ._scores import Scores, finished, scores
from ._tables import BETTER, WORSE, accuracy_table, markdown, most_runs, repeated

_PROSE = tomllib.loads(files(__package__).joinpath("papers", "prose.toml").read_text(encoding="utf-8"))
TITLES, INTRODUCTIONS, REMARKS = _PROSE["titles"], _PROSE["introductions"], _PROSE["remarks"]
CLAIMS, READINGS = _PROSE["claims"], _PROSE["readings"]
FEW_NAMES = 4  # methods that a line names
_COUNTED = {HOLDS: "hold", PART: "in part", NOT: "not", OPEN: "open"}
_LAST_COLUMN = """
The verdict is that on the claim beside it; then the same for all statements that the page checks, which are the paper's
claims and questions about its figures. "Open" are those that the divisions done so far do not decide. The last column
counts the published figures that both readings of the paper's table have, and how many of ours lie within two points:
with the plain reading, and with the one that fits best; of one column, where one is named."""


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

    Examples
    --------
    >>> import tempfile
    >>> from skmargin.experiments import write_pages
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_pages([], folder)
    []
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
        if paper == "overall" and not (parts[0].experiment.name == "overall" and finished(parts[0]).rows):
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
            blocks += _table(part)
        if experiment.name in REMARKS:
            blocks.append(REMARKS[experiment.name])
        blocks += _missing(part)
    return "\n\n".join([*blocks, *_verdicts(paper, parts)]) + "\n"


def _table(part: Scores) -> list[str]:
    """The table that an experiment shows, with its legend and what it says."""
    if part.experiment.view == "seconds":
        legend = "Processor seconds of selection, training and classification; second line the paper's. Fastest bold."
        return [legend, _views.seconds_table(part), *_bullets(_views.speed_reading(part))]
    if part.experiment.view == "parameters":
        return ["Chosen here; second line the paper's C and gamma.", _views.parameters_table(part)]
    if part.experiment.view == "ceiling":
        return ["Accuracy in per cent.", _views.ceiling_table(part)]
    if part.experiment.view == "curve":
        return ["Per cent above the optimum.", _views.curve_table(part)]
    if not finished(part).rows:
        return ["No data set has been tried with every method yet."]
    return [_legend(part), accuracy_table(part), *_bullets(table_reading(part))]


def _verdicts(paper: str, parts: Sequence[Scores]) -> list[str]:
    """What holds and what does not: the claims, the numbers, and the likeliest reason where a claim fails."""
    named = {part.experiment.name: part for part in parts}
    lines = []
    for claim in CLAIMS.get(paper, []):
        finding = judge(claim, named)
        if finding is None:
            continue
        text = f"**{finding.verdict.capitalize()}:** {claim['says']} {finding.evidence}"
        if finding.verdict == OPEN:
            text += " More divisions would decide."
        elif finding.verdict != HOLDS:
            kind = "Reason" if claim.get("proved") else "Likeliest reason (inference)"
            text += f" *{kind}:* {claim['because']}"
        lines.append(text)
    if not lines:
        return []
    return [
        "## What holds and what does not",
        "Verdicts follow from the numbers by fixed rules; sentences marked as inference do not.",
        *_bullets(lines),
    ]


def _overall_page(parts: Sequence[Scores], folder: Path) -> str:
    named = {part.experiment.name: part for part in parts}
    part = _overall.joined(named["overall"], named.get("overall-800"))
    blocks = [f"# {TITLES['overall']}", INTRODUCTIONS["overall"], _made("overall", [part]), _here(part)]
    blocks += ["## Ranks and times", _overall.summary_table(part), REMARKS["overall"]]
    name = "overall-ranks.svg"
    _figures.save(_figures.critical_differences(part.methods, _overall.test_ranks(part)), folder / name)
    blocks += [f"![Critical differences]({name})", "A bar joins methods whose ranks cannot be told apart at 95 %."]
    blocks += ["## Which method for which data", *_bullets(_overall.advice(part))]
    blocks += ["Some pairs:", *_bullets([f"{words}." for words in _overall.pairs(part)])]
    blocks += ["## Accuracy, %", _overall.matrix(part)]
    blocks += ["## Chosen parameters", _overall.parameters(part)]
    if "overall-defaults" in named:
        one = named["overall-defaults"]
        blocks += [f"## {one.experiment.title}", REMARKS[one.experiment.name], _overall.defaults(one)]
    blocks += _missing(part)
    return "\n\n".join([*blocks, *_verdicts("overall", [part])]) + "\n"


def _index(pages: dict[str, list[Scores]]) -> str:
    blocks = [f"# {TITLES['index']}", INTRODUCTIONS["index"], "## In two minutes"]
    rows = [row for paper, parts in pages.items() if paper in READINGS and (row := _summary(paper, parts))]
    header = ["paper", "claim", "verdict", "numbers", "reading that fits best", "within two points: plain, best"]
    if rows:
        blocks += [markdown(header, rows, left=5), _LAST_COLUMN]
    lines = [
        f"- [{TITLES[paper]}]({paper}.md): {', '.join(p.experiment.title for p in parts)}"
        for paper, parts in pages.items()
    ]
    blocks += ["## All pages", "\n".join(lines)]
    parts = [part for paper, found in pages.items() if paper != "overall" for part in found]
    tables = [p for p in parts if p.experiment.name not in _figures.PICTURES and p.experiment.view == "accuracy"]
    found = [[f"[{p.experiment.name}]({p.experiment.paper}.md)", *summary(p)] for p in tables if finished(p).rows]
    header = ["table", "data sets", "within two points", "reference", "first here", "first in the paper"]
    if found:
        blocks += ["## All tables of accuracy", markdown(header, found)]
    return "\n\n".join(blocks) + "\n"


def _summary(paper: str, parts: Sequence[Scores]) -> list[str] | None:
    """The line of a paper on the front page: its first claim, how many claims hold, and two readings of its table."""
    named = {part.experiment.name: part for part in parts}
    found = [(claim, judge(claim, named)) for claim in CLAIMS.get(paper, [])]
    judged = [(claim, finding) for claim, finding in found if finding is not None]
    if not judged or judged[0][0] is not CLAIMS[paper][0]:
        return None
    claim, finding = judged[0]
    numbers = {said: sum(f.verdict == word for _, f in judged) for word, said in _COUNTED.items()}
    counts = [f"{n} {said}" for said, n in numbers.items() if n or said != "open"]
    reading, both = READINGS[paper], "-"
    if reading["first"] in named and reading["best"] in named:
        column = reading.get("column", "")
        before, after, total = agreement(named[reading["first"]], named[reading["best"]], column)
        readings = [before, after] if reading["first"] != reading["best"] else [after]
        both = ", ".join(f"{n} of {total}" for n in readings) + f" ({column})" * bool(column) if total else "-"
    verdict = f"**{finding.verdict}** (all statements: {', '.join(counts)})"
    title = f"[{TITLES[paper].rpartition('(')[2].rstrip(')')}]({paper}.md)"
    return [title, claim["says"], verdict, finding.evidence, reading["words"], both]


def _made(paper: str, parts: Sequence[Scores]) -> str:
    lines = [line for part in parts for found in part.lines.values() for line in found]
    versions = "; ".join(sorted({line["versions"] for line in lines}))
    tasks = len({tuple(line[name] for name in KEY) for line in lines})
    quick = " --quick" if parts[0].run == "quick" else ""
    return (
        f"Written by `skmargin reproduce {paper} --data DIR{quick}` from {tasks} tasks in [results.csv](results.csv); "
        f"{versions}. Do not edit: run the command again."
    )


def _here(part: Scores) -> str:
    """The protocols that were used, each with its data sets."""
    if part.experiment.measure is boundary:
        return "Here: the same."
    tuned = part.experiment.measure in (accuracy, best_of_folds, in_turn, margin_histogram)
    groups: dict[str, list[str]] = {}
    for row in part.rows:
        counts = {method: len(part.values(row.data.name, method)) for method in part.methods}
        done = max(counts.values())
        note = f" ({row.data.note})" if row.data.note else ""
        words = row.protocol.describe(tuned, part.experiment.measure is best_of_folds)
        if 0 < done < row.protocol.repeats:
            words += f"; {done} of the {row.protocol.repeats} divisions done so far"
        fewest = min((count for count in counts.values() if count), default=done)
        if fewest < done:
            behind = [method for method, count in counts.items() if 0 < count < done]
            words += f"; {fewest} by every method" + f" (fewer: {', '.join(behind)})" * (len(behind) <= FEW_NAMES)
        groups.setdefault(words, []).append(row.data.name + note)
    lines = [f"- {', '.join(names)}: {protocol}." for protocol, names in groups.items()]
    return "Here:\n\n" + "\n".join(lines)


def _legend(part: Scores) -> str:
    beside = "; second line the paper's figure and our difference from it" if part.paper else ""
    if part.experiment.statistic == "none" and most_runs(part) > 1:
        return (
            f"Accuracy in per cent, mean ± standard deviation over the choices of folds{beside}. All rows take part in "
            "every one of them, so no test can tell methods apart. Best of a row bold."
        )
    if not repeated(part):
        return f"Accuracy in per cent on one division{beside}. Best of a row bold."
    test = "paired t-test" if part.experiment.statistic == "paired" else "Welch's t-test"
    return (
        f"Accuracy in per cent, mean ± standard deviation over the divisions{beside}. {BETTER} "
        f"{part.experiment.reference} is significantly better, {WORSE} worse ({test}, 95 %). Best of a row bold."
    )


def _missing(part: Scores) -> list[str]:
    rows = [f"{row.data.name} ({row.data.wanted or 'built in'})" for row in part.missing]
    return (
        [f"Not in these results, for want of time or of the files that are named: {'; '.join(rows)}."] if rows else []
    )


def _bullets(sentences: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {sentence}" for sentence in sentences)] if sentences else []


def _write(path: Path, text: str) -> Path:
    with atomic_write(path) as file:
        file.write(text.encode())
    return path
