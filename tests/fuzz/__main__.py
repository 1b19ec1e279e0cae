"""A long run: ``python -m tests.fuzz --fits 100000 --seed 1`` (or ``make fuzz``) counts what breaks, and how.

Every failure is printed with the case that has it; the exit code says whether there was one.
"""

import argparse
import pickle
import re
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from .cases import MACHINES, cases
from .judge import judge

SLOW = 5.0  # seconds that a fit of so few rows may take


def describe(case):
    """The case in a few lines, as code would make it."""
    with np.printoptions(threshold=60, precision=17, linewidth=120):
        rows = f"  X = {type(case.X).__name__} {case.rows.dtype} {case.rows!r}"
        return f"{case.model!r}\n{rows}\n  y = {case.labels!r}\n  w = {case.weight!r}"


def run(machine, fits, start, largest, show, keep):
    """Fit so many random cases of a machine; what happened, by kind."""
    found, shown = Counter(), Counter()

    @seed(start)
    @settings(
        max_examples=fits, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases(machine=machine, largest=largest))
    def each(case):
        before = time.process_time()
        try:
            kind = "fitted" if judge(case) else "refused"
        except Exception as error:
            where = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)][-3:]
            kind = f"FAILED {type(error).__name__} {str(error)[:30]!r} {' '.join(where)}".replace("\n", " ")
            kind = re.sub(r"(np.float64\()?-?\d[\d.]*(e[+-]\d+)?\)?", "#", kind.split("' ")[0]) + " " + " ".join(where)
            if shown[kind] < show:
                shown[kind] += 1
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    with open(keep / f"{machine}-{sum(shown.values())}.pickle", "wb") as file:
                        pickle.dump(case, file)
                print(f"--- {machine}: {type(error).__name__}: {error}\n{describe(case)}", flush=True)
        found[kind] += 1
        if time.process_time() - before > SLOW:
            found["FAILED slow"] += 1
            print(f"--- {machine}: {time.process_time() - before:.1f} s\n{describe(case)}", flush=True)

    each()
    return found


def main():
    """Run, and print a line for each kind of ending."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--fits", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=40, help="most rows of a case")
    parser.add_argument("--machines", nargs="*", default=sorted(MACHINES))
    parser.add_argument("--show", type=int, default=1, help="cases printed of each kind of failure")
    parser.add_argument("--keep", type=Path, help="folder for pickles of these cases")
    options = parser.parse_args()
    total = Counter()
    for machine in options.machines:
        started = time.process_time()
        each = max(1, options.fits // len(options.machines))
        found = run(machine, each, options.seed, options.largest, options.show, options.keep)
        total += found
        print(f"=== {machine}: {time.process_time() - started:.0f} s of CPU")
        for kind, times in found.most_common():
            print(f"    {times:8d}  {kind}", flush=True)
    failed = sum(times for kind, times in total.items() if kind.startswith("FAILED"))
    print(f"{total['fitted']} fitted, {total['refused']} refused, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
