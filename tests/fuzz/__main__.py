"""A long run: ``python -m tests.fuzz --fits 100000 --seed 1`` (or ``make fuzz``) counts what breaks, and how.

The number of a case is all that is needed to make it again (``--only``).  With ``--state`` a run that ended, or was
ended (SIGTERM: it prints what it has counted), goes on where it was: the file holds the number of the case at hand, so
that it names one that ended the process.  ``--part 0/2`` and ``--part 1/2``, with a state each, share a run between two
processes.  Every failure is printed with its case; the exit code says whether there was one.
"""

import argparse
import faulthandler
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from .cases import make_case
from .choices import Numbered
from .judge import judge
from .kept import keep
from .machines import MACHINES

SLOW = 5.0  # seconds that a fit of so few rows may take
RIVAL = 100  # one case of so many is compared with cvxpy, which takes longer than many fits
REPORT = 5000  # cases between two lines


def describe(case):
    """The case in a few lines, as code would make it."""
    with np.printoptions(threshold=60, precision=17, linewidth=120):
        kind = type(case.given[0]).__name__
        limits = {name: value for (_, name), value in case.gear.items()}
        rows = f"  X = {kind} {case.rows.dtype} {case.rows!r}"
        return f"{case.model!r} {limits or ''}\n{rows}\n  y = {case.labels!r}\n  w = {case.weight!r}"


def kind_of(error):
    """What broke and where, without the numbers."""
    where = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)][-3:]
    said = re.sub(r"(np.float64\()?-?\d[\d.]*(e[+-]\d+)?\)?", "#", str(error)[:60].replace("\n", " "))
    return f"FAILED {type(error).__name__} {said} {' '.join(where)}"


class Run:
    """Cases one after the other; what happened, by kind."""

    def __init__(self, options):
        self.options, self.found, self.shown = options, Counter(), Counter()
        self.spent = Counter()
        self.state = None
        if options.state is not None:
            if not options.state.exists():
                np.save(options.state, np.zeros(1, dtype=np.int64))
            self.state = np.load(options.state, mmap_mode="r+")

    def numbers(self):
        """The numbers of the cases that are still to come."""
        if self.options.only is not None:
            return [self.options.only]
        part, parts = self.options.part
        first = part if self.state is None else max(part, int(self.state[0]))
        return range(first + (part - first) % parts, self.options.fits, parts)

    def __call__(self):
        """Try all of them."""
        for number in self.numbers():
            if self.state is not None:
                self.state[0] = number + 1  # one that ends the process has its turn only once
            self.one(number)
            if self.found["inputs"] % REPORT == 0:
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                failed = sum(times for kind, times in self.found.items() if kind.startswith("FAILED"))
                cpu = time.process_time()
                tried = f"{self.found['inputs']} cases, the last one {number}"
                print(f"... {tried}, {failed} failed, {cpu:.0f} s, at most {memory} MB", flush=True)

    def one(self, number):
        """Make a case, fit it, judge it."""
        before = time.process_time()
        choices = Numbered(self.options.seed, number)
        name = self.options.machines[number % len(self.options.machines)] if self.options.machines else None
        case = make_case(choices, name, largest=self.options.largest)
        self.found["inputs"] += 1
        self.found[f"gear {case.gear_name}"] += 1
        self.found[f"machine {type(case.model).__name__}"] += 1
        if self.options.keep:
            keep(case, self.options.keep)
        rival = number % RIVAL == 0
        try:
            kind = "fitted" if judge(case, rival) else "refused"
            self.found["compared with cvxpy"] += rival and kind == "fitted"
        except Exception as error:
            kind = kind_of(error)
            self.show(kind, f"{type(error).__name__}: {error}", number, case)
        self.found[kind] += 1
        spent = time.process_time() - before
        self.spent[type(case.model).__name__] += spent
        if spent > SLOW:
            self.found["FAILED slow"] += 1
            self.show("slow", f"{spent:.1f} s", number, case)

    def show(self, kind, said, number, case):
        """Print the first cases of a kind."""
        self.shown[kind] += 1
        if self.shown[kind] <= self.options.show:
            print(f"--- seed {self.options.seed}, case {number}: {said}\n{describe(case)}", flush=True)


def part_of(text):
    """The two numbers of "0/2": which part of the cases, of how many."""
    part, parts = (int(number) for number in text.split("/"))
    if not 0 <= part < parts:
        raise ValueError(text)
    return part, parts


def main():
    """Run, and print a line for each kind of ending."""
    faulthandler.enable()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--fits", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one case")
    parser.add_argument("--keep", help="name of the file in tests/fuzz/kept to write the case of --only to")
    parser.add_argument("--state", type=Path, help="file with the number of the case at hand (.npy)")
    parser.add_argument("--part", type=part_of, default=(0, 1), help='share of the cases: "0/2" is every second one')
    parser.add_argument("--largest", type=int, default=24, help="most rows of a case")
    parser.add_argument("--machines", nargs="*", choices=sorted(MACHINES), help="in turn; default: all, by cost")
    parser.add_argument("--show", type=int, default=2, help="cases printed of each kind of failure")
    run = Run(parser.parse_args())
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        print("ended early")
    for kind, times in run.found.most_common():
        print(f"    {times:8d}  {kind}")
    print("CPU seconds:", ", ".join(f"{name} {spent:.0f}" for name, spent in run.spent.most_common()))
    sys.exit(any(kind.startswith("FAILED") for kind in run.found))


if __name__ == "__main__":
    main()
