r"""Writes docs/scaling.md and its picture from the numbers of benchmarks.large.

python -m benchmarks.large --rows 3e4,1e5,3e5,1e6,4e6 --C 0.01,1,100 --loss cs --repeats 3 \
    --out benchmarks/results/large-rows.csv
python -m benchmarks.large --sets three,letters,imbalanced,scales,tails,wide --rows 3e5 \
    --out benchmarks/results/large-shapes.csv
python -m benchmarks.large --sets d10k10,d25k10,d50k10,d100k10,d200k10,d20k3,d20k6,d20k12,d20k24 --rows 2e5 --loss cs \
    --out benchmarks/results/large-growth.csv
python -m benchmarks.large --limit 0.6 --rows 1e7 --out benchmarks/results/large-limited.csv
python -m benchmarks.large --path --rows 1e6 --C 0.01,0.1,1,10,100 --out benchmarks/results/large-path.csv
python -m benchmarks.scaling_page
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from textwrap import fill
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SHAPES = {
    "three": "20 features, 3 classes",
    "letters": "16 features, 26 classes",
    "imbalanced": "30 features, 5 classes, 100 : 1",
    "scales": "30 features of sizes 0.01 to 100, 6 classes",
    "tails": "30 features, 6 classes, Student t with 1.5 degrees",
    "wide": "200 features, 10 classes",
}
SHAPE = re.compile(r"d(\d+)k(\d+) ")
COLORS = {"0.01": "C0", "1": "C1", "100": "C2"}
HEAD = """# Many rows

<!-- Written by `python -m benchmarks.scaling_page` from benchmarks/results/large-*.csv.  Do not edit: run it again. -->

How time, passes and memory grow with the number of rows, and how to fit data that do not fit into memory.

## Which solver, and when

A linear machine chooses by itself:

| rows and parameters, (k - 1)(d + 1) | solver | state |
|---|---|---|
| at least 60 rows for each of at most 2,000 parameters, overlap, lower price | smoothed Newton steps | W and b |
| few rows and parameters, strong losses | Newton steps on the dual | duals of each row |
| text, many parameters, rows that can be separated | block ascent on the dual | duals of each row |

Smoothed Newton steps need a handful of passes whatever `C` and the number of rows are, since each pass is one sum over
rows; below 100,000 rows they are taken where they are expected to be the faster. Rows that can be separated are told
from 3,000 of them; a sample gives the first point and says whether the solver suits; where it does not, or does not
end, the others go on. Every one ends with the same certificate: the relative duality gap in double precision, from the
rows as given.

```python
>>> import numpy as np
>>> from skmargin import CrammerSingerSVC
>>> rng = np.random.default_rng(0)
>>> y = rng.integers(5, size=40_000)
>>> X = (rng.normal(size=(40_000, 10)) + rng.normal(size=(5, 10))[y]).astype(np.float32)
>>> model = CrammerSingerSVC(n_jobs=2).fit(X, y)
>>> model.n_iter_ < 20, bool(model.dual_gap_ <= 1e-3)
(True, True)

```

`n_jobs` (None means one thread, -1 all) shares the passes; the result has the same bits for every number.
"""
FILES = """
## Larger than memory

`fit` takes `numpy.memmap` without a copy. `skmargin.datasets.open_rows` opens Parquet (a file, a folder, a pattern),
CSV, LIBSVM, `.npy` files, or a function that returns an iterator of `(X, y)` or `(X, y, weight)`:

```python
>>> from skmargin.datasets import open_rows
>>> rows = open_rows(lambda: ((X[a : a + 10_000], y[a : a + 10_000]) for a in range(0, 40_000, 10_000)))
>>> model = CrammerSingerSVC().fit(rows)
>>> [labels.shape for labels in model.predict(rows)]
[(10000,), (10000,), (10000,), (10000,)]

```

CSV and LIBSVM files are converted once into a binary copy beside the file, or in the folder `cache`; it is used again
as long as the size and the time of the file stay the same, and what a killed process left is continued. `margin_path`
and `MarginSearchCV` take such rows too: the rows are counted and sampled once, and the candidates of a fold are judged
in one read. `skmargin fit` does all of this by itself for files that are larger than a quarter of the free memory.

{limited}

{path}

A memory map whose file has become shorter is refused before a pass; where that happens within one, the system ends the
process: give `open_rows` the name of the file, which is then read and not mapped.

Machines: `CrammerSingerSVC`, `WestonWatkinsSVC`, `TopKSVC`, `ODMClassifier`, `MultiMarginSVC`, and `M3SVC` with the log
loss; the others say that they need all rows in memory.

Rows with more than 2,000 parameters, such as text, are read into memory where they fit. Where they do not, and can be
read in any order, block ascent goes over them in loads: the file in small pieces, dealt into loads anew for each pass,
three local passes while a load is in memory. In memory are the class vectors, a few loads of 64 MB, and of the duals of
all rows those that are not zero, nine bytes for each. Every reading is a pass and a certificate. Each load has a piece
of every part of the file, so that sorted files do little harm. LIBSVM, CSV and `.npy` files and arrays can be read in
any order, and Parquet files of at least 16 row groups of at most 256 MB. Other Parquet files and functions can be if
`open_rows(..., cache=folder)` names a folder for a binary copy; without it they go by gradients of the smoothed
problem, with far more readings.
Words of 20 classes, 50,000 rows, 50,000 columns, `tol=1e-3`, eight loads; passes in memory and over the file:

| machine | C | in memory | file | CPU s in memory | CPU s file |
|---|---|---|---|---|---|
| Crammer-Singer | 0.1 | 11 | 6 | 0.6 | 1.4 |
| Crammer-Singer | 1 | 14 | 11 | 1.1 | 2.4 |
| the same, sorted by label | 1 | | 12 | | 2.9 |
| Crammer-Singer | 10 | 23 | 17 | 2.4 | 4.3 |
| Weston-Watkins | 1 | 19 | 13 | 1.6 | 4.1 |
| top-k, k = 5 | 1 | 10 | 8 | 0.8 | 2.9 |

Warm starts and checkpoints keep the duals. Of the table, the sorted file was cut into 64 pieces a load, as it is now,
the others into 32. A fit takes two readings more, which count the rows and draw a sample.
"""


def read(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def number(line: dict[str, str], key: str) -> float:
    return float(line[key])


def table(lines: list[dict[str, str]], names: dict[str, str]) -> str:
    """One line a fit, with the time of logistic regression on the same rows."""
    rival = {line["set"]: number(line, "seconds") for line in lines if line["machine"] == "logistic"}
    out = ["| data | machine | C | CPU s | passes | gap | memory beyond X, MB | LogisticRegression, CPU s |"]
    out.append("|" + "---|" * 8)
    for line in lines:
        if line["machine"] == "logistic":
            continue
        kind, _, rows = line["set"].partition(" ")
        shape = re.fullmatch(r"d(\d+)k(\d+)", kind)
        what = f"{names[kind]}, " if kind in names else f"{shape[1]} features, {shape[2]} classes, " if shape else ""
        out.append(
            f"| {what}{float(rows):,.0f} rows | {line['machine'].upper()} | {number(line, 'C'):g} | "
            f"{number(line, 'seconds'):.2f} | {int(float(line['passes']))} | {number(line, 'gap'):.1e} | "
            f"{number(line, 'beyond'):.0f} | {rival[line['set']]:.2f} |"
        )
    return "\n".join(out)


def picture(rows: list[dict[str, str]], growth: list[dict[str, str]], path: Path) -> None:
    """Time and memory against the number of rows, time against features and classes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "skmargin"
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained")
    many = [(label(line), float(line["set"].split()[1]), line) for line in rows]
    draw(axes[0, 0], [(who, n, number(line, "seconds")) for who, n, line in many])
    axes[0, 0].set(xlabel="rows (50 features, 10 classes)", ylabel="CPU seconds")
    ours = [(who, n, max(1.0, number(line, "beyond"))) for who, n, line in many if line["machine"] != "logistic"]
    draw(axes[0, 1], ours)
    axes[0, 1].set(xlabel="rows", ylabel="memory beyond the rows, MB")
    shapes = [(label(line), *map(int, SHAPE.match(line["set"]).groups()), line) for line in growth]  # type: ignore[union-attr]
    draw(axes[1, 0], [(who, d, number(line, "seconds")) for who, d, k, line in shapes if k == 10])
    axes[1, 0].set(xlabel="features (200,000 rows, 10 classes)", ylabel="CPU seconds")
    draw(axes[1, 1], [(who, k, number(line, "seconds")) for who, d, k, line in shapes if d == 20])
    axes[1, 1].set(xlabel="classes (200,000 rows, 20 features)", ylabel="CPU seconds")
    axes[0, 0].legend(frameon=False, fontsize="small")
    for one in axes.flat:
        one.set_xticks(sorted({x for line in one.lines for x in line.get_xdata()}))
        one.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        for axis in (one.xaxis, one.yaxis):
            axis.set_major_formatter(
                lambda value, _: f"{value:,g}" if value < 1e4 else f"{value:.0e}".replace("e+0", "e")
            )
            axis.set_minor_formatter(NullFormatter())
    figure.savefig(path, metadata={"Date": None})


def spread(lines: list[dict[str, str]]) -> float:
    """How much the time of a row differs."""
    each = [number(x, "seconds") / float(x["set"].split()[1]) for x in lines if x["machine"] != "logistic"]
    return max(each) / min(each)


def limited_words() -> str:
    """The file that is larger than the memory."""
    (line,) = read("large-limited.csv")
    return (
        f"{number(line, 'rows'):,.0f} rows of 50 features ({number(line, 'gigabytes'):.1f} GB) in a process "
        f"that may use {line['limit']} GB (`python -m benchmarks.large --limit {line['limit']} --rows 1e7`): "
        f"{line['reads']} reads of the file, the one that counts among them, {number(line, 'seconds'):.1f} CPU "
        f"seconds, a peak of {number(line, 'peak'):.0f} MB, a gap of {number(line, 'gap'):.1e}."
    )


def path_words() -> str:
    """What a path over C costs."""
    lines = read("large-path.csv")
    values = ", ".join(f"{number(line, 'C'):g}" for line in lines)
    passes = ", ".join(line["passes"] for line in lines)
    return (
        f"A path over C = {values} on {number(lines[0], 'rows'):,.0f} such rows takes {passes} passes, and "
        f"{lines[0]['reads']} reads in all, with those that count and sample the rows."
    )


def label(line: dict[str, str]) -> str:
    """What is drawn, and with which strength of the losses."""
    return "LogisticRegression" if line["machine"] == "logistic" else f"CrammerSingerSVC, C = {number(line, 'C'):g}"


def draw(axes: Any, points: list[tuple[str, float, float]]) -> None:
    """A line for each label."""
    for who in dict.fromkeys(who for who, _, _ in points):
        here = sorted((x, y) for one, x, y in points if one == who)
        color = "gray" if who.startswith("Log") else COLORS[who.rpartition(" ")[2]]
        axes.loglog(*zip(*here, strict=True), marker="o", label=who, color=color, ls="--" if color == "gray" else "-")


def main() -> int:
    rows, shapes, growth = (read(f"large-{name}.csv") for name in ("rows", "shapes", "growth"))
    picture(rows, growth, ROOT / "docs" / "figures" / "scaling-rows.svg")
    parts: list[Any] = [
        HEAD,
        "## Measured\n",
        "Gaussian classes that overlap, float32, `tol=1e-3`, free intercept, one core, the whole `fit`, in one run.",
        "Only ratios of one run mean something. The time of a row differs by a factor of "
        f"{spread(rows):.1f} over all of these numbers of rows and strengths: where rows are few the steps on the "
        "sample weigh most, which are the same for any number of rows.\n",
        "![Time against rows, features and classes, and memory](figures/scaling-rows.svg)\n",
        table(rows, {}),
        "\nMore features and classes; a pass costs `n k d`, a step the cube of the parameters:\n",
        table(growth, {}),
        "\nOther shapes:\n",
        table(shapes, SHAPES),
        FILES.replace("{limited}", fill(limited_words(), 120)).replace("{path}", fill(path_words(), 120)),
    ]
    (ROOT / "docs" / "scaling.md").write_text("\n".join(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
