"""Writes the tables of docs/many_classes.md and its picture from the numbers of benchmarks.many_classes.

python -m benchmarks.many_classes --size 10k     # and other sizes: lines of benchmarks/results/many-classes.csv
python -m benchmarks.many_classes_page
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from .many_classes import RESULTS, SIZES

PAGE = Path(__file__).parents[1] / "docs" / "many_classes.md"
PICTURE = PAGE.parent / "figures" / "many-classes.svg"
GROWTH = ["1k", "3k", "10k", "20k", "30k", "large", "huge"]  # of the table of times and memory, in this order
WHOLE = ["small", "small-2k", "small-10k"]  # where one-vs-rest is fitted to all classes
REAL = ["sector", "news20"]
CALLED = {
    "LinearSVC": "`LinearSVC`, one-vs-rest",
    "SGDClassifier": "`SGDClassifier`, one-vs-rest, five passes",
    "Omikuji": "Omikuji, three trees",
}
Line = dict[str, str]


def read() -> list[Line]:
    """What was measured, in the order of the sizes."""
    order = {name: i for i, name in enumerate([*SIZES, *REAL])}
    with RESULTS.open(newline="") as file:
        return sorted(csv.DictReader(file), key=lambda line: order[line["data"]])


def table(lines: list[Line]) -> str:
    """One line a machine."""
    out = ["| rows | features | classes | machine | CPU s | memory, GiB | gap | top-1 | top-5 | macro-F1 |"]
    out.append("|" + "---|" * 10)
    last = ""
    for line in lines:
        size = [f"{int(line[key]):,}" if line["data"] != last else "" for key in ("rows", "features", "classes")]
        last = line["data"]
        name = CALLED.get(line["machine"], f"`{line['machine']}`")
        seconds = f"{float(line['seconds']):,.0f}" if float(line["seconds"]) >= 10 else f"{float(line['seconds']):.1f}"
        if line["timed_classes"] != "0":
            seconds += f", from {line['timed_classes']} classes"
        gap = f"{float(line['gap']):.0e}" if line["gap"] else "none"
        figures = [f"{float(line[key]):.3f}" if line[key] else "" for key in ("top1", "top5", "f1")]
        memory = f"{float(line['gib']):.2f}" if line["gib"] else ""
        out.append("| " + " | ".join([*size, name, seconds, memory, gap, *figures]) + " |")
    return "\n".join(out)


def picture(lines: list[Line]) -> None:
    """Time and memory of Crammer-Singer against the number of classes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "skmargin"
    import matplotlib.pyplot as plt

    lines = [line for line in lines if line["machine"] == "CrammerSingerSVC" and line["data"] not in REAL]
    figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.2), layout="constrained")
    for axes, key, word in zip(panels, ("seconds", "gib"), ("CPU seconds", "GiB beyond the rows"), strict=True):
        for rows in sorted({int(line["rows"]) for line in lines}):
            own = sorted((int(line["classes"]), float(line[key])) for line in lines if int(line["rows"]) == rows)
            axes.loglog(*zip(*own, strict=True), marker="o", label=f"{rows:,} rows")
        axes.set(xlabel="classes", ylabel=word)
    panels[1].legend(frameon=False, loc="lower right")  # where no set lies
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> int:
    """Write both."""
    lines, text = read(), PAGE.read_text(encoding="utf-8")
    picture(lines)
    for name, sizes in (("growth", GROWTH), ("whole", WHOLE), ("real", REAL)):
        found = table([line for line in lines if line["data"] in sizes])
        begin, end = f"<!-- {name}: written by `python -m benchmarks.many_classes_page` -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise ValueError(f"{PAGE} needs a place for {name}.")
        text = f"{text[: text.index(begin)]}{begin}\n\n{found}\n\n{text[text.index(end) :]}"
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
