"""One command for all benchmarks: ``python -m benchmarks.run --help``.

Each data set and C is one race: every solver runs in turn in the same process, pinned to one core (CPU time) and then
to two (wall time).  Ours is timed over the whole ``fit`` with ``tol`` = target, so it pays for conversion and for the
certificate.  A rival without a certificate gets a perfect stopping rule: its time is that of the loosest setting whose
result is within the target of the optimum.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

from benchmarks import costs, kernels, linear
from benchmarks.data import BUILT_IN, DEFAULT_SETS, GENERATED, load
from benchmarks.solvers import SOLVERS, Ours


def numbers(text: str) -> list[float]:
    """Comma-separated numbers."""
    return [float(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    """Comma-separated names."""
    return text.split(",")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sets", type=names, help="comma-separated; default: digits, text, many; with --data all of the project's"
    )
    parser.add_argument("--data", type=Path, help="directory of LIBSVM files NAME.svm, NAME.train.svm (also .bz2, .gz)")
    parser.add_argument("--C", type=numbers, help="default 0.01,0.1,1,10,100; for --kernel 10")
    parser.add_argument(
        "--loss", choices=["cs", "ww"], default="cs", help="ww: LIBLINEAR's cs time is shown as a yardstick only"
    )
    parser.add_argument(
        "--solvers", type=names, default=list(SOLVERS), help="the first one is the reference of the ratios"
    )
    parser.add_argument("--tol", type=numbers, help="default 1e-2,1e-3,1e-5; elsewhere 1e-3")
    parser.add_argument("--threads", type=numbers, default=[1, 2], help="default 1,2")
    parser.add_argument("--repeat", type=int, default=3, help="medians of so many fits (slow ones are not repeated)")
    parser.add_argument("--budget", type=float, default=60, help="seconds after which a rival's ladder is given up")
    parser.add_argument("--kernel", help="kernel machines against SVC instead: rbf, poly, ...")
    parser.add_argument("--intercept", action="store_true", help="fits with and without the intercept instead")
    parser.add_argument("--predict", action="store_true", help="predict against the bare matrix product instead")
    parser.add_argument("--out", type=Path, help="write all rows to this CSV file")
    options = parser.parse_args(arguments)
    if unknown := set(options.solvers) - set(SOLVERS):
        parser.error(f"--solvers: {', '.join(sorted(unknown))} not among {', '.join(SOLVERS)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; 1 where a certificate turned out wrong."""
    options = parse(arguments)
    special = options.kernel or options.intercept or options.predict
    options.C = options.C or ([10.0] if options.kernel else [0.01, 0.1, 1, 10, 100])
    options.tol = options.tol or ([1e-3] if special else [1e-2, 1e-3, 1e-5])
    if options.sets is None:
        options.sets = [name for name in DEFAULT_SETS if options.data or name in BUILT_IN or name in GENERATED]
    if options.loss != "cs" and not special:
        print("The rivals solve the Crammer-Singer problem: their times are a yardstick, not a comparison.")
    rows: list[dict[str, Any]] = []
    complaints: list[str] = []
    for name in options.sets:
        run = compare_kernels if options.kernel else measure_costs if special else race
        run(name, options, rows, complaints)
        if options.out and rows:
            write(options.out, rows)
    if not special:
        linear.print_summary(rows)
    for complaint in complaints:
        print(f"WRONG: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


def race(name: str, options: argparse.Namespace, rows: list[dict[str, Any]], complaints: list[str]) -> None:
    """Time to accuracy of the linear machines."""
    data = load(name, options.data)
    solvers = [SOLVERS[solver](options.loss) for solver in options.solvers]
    for solver in solvers:
        solver.prepare(data.X, data.y)
    for C in options.C:
        contest = linear.Race(data, C, solvers, sorted(options.tol, reverse=True), options.budget)
        new = list(contest.run([int(count) for count in options.threads], options.repeat))
        linear.print_rows(new)
        rows.extend(new)
        complaints.extend(f"{name}, C={C:g}: {complaint}" for complaint in contest.complaints)


def compare_kernels(name: str, options: argparse.Namespace, rows: list[dict[str, Any]], complaints: list[str]) -> None:
    """Kernel machines against SVC."""
    data = load(name, options.data)
    for C in options.C:
        for tol in options.tol:
            new = list(kernels.compare(data, options.data, options.loss, options.kernel, C, tol, options.repeat))
            kernels.print_rows(new)
            rows.extend(new)


def measure_costs(name: str, options: argparse.Namespace, rows: list[dict[str, Any]], complaints: list[str]) -> None:
    """Cost of the intercept or of predicting."""
    data = load(name, options.data)
    ours = Ours(options.loss)
    ours.prepare(data.X, data.y)
    measure = costs.intercept if options.intercept else costs.predict
    rows.extend(measure(data, ours, C, tol, options.repeat) for C in options.C for tol in options.tol)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """All rows so far: a run that is stopped keeps what it has measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
