"""LpNormSVC: time to a certified gap of 1e-3 for several p, as ratios to p = 2 and to CrammerSingerSVC.

    python -m benchmarks.lp_norm --data DIR [--sets usps,sector,many1000] [--C 1] [--intercept] [--repeat 3]

``DIR`` holds the LIBSVM files; "many1000" is generated.  CPU time of one thread, medians, the fits take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler
from threadpoolctl import threadpool_limits

from benchmarks.data import load, many_class
from skmargin import CrammerSingerSVC, LpNormSVC

POWERS = (2.0, 1.2, 1.5, 3.0, 5.0, 10.0)


def data(name: str, directory: Path | None) -> tuple[Any, np.ndarray]:
    if name == "many1000":
        X, y = many_class(10_000, 64, 1000)
        return MinMaxScaler().fit_transform(X), y
    found = load(name, directory)
    return found.X, found.y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default="usps,sector,many1000")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--intercept", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    settings = {"C": args.C, "fit_intercept": args.intercept, "random_state": 0}
    print(f"{'set':>10s} {'machine':>16s} {'seconds':>8s} {'ratio':>6s} {'gap':>8s} {'passes':>6s}")
    for name in args.sets.split(","):
        X, y = data(name, args.data)
        machines = {f"l_p, p = {p:g}": LpNormSVC(p=p, **settings) for p in POWERS}
        machines["Crammer-Singer"] = CrammerSingerSVC(**settings)
        seconds: dict[str, list[float]] = {label: [] for label in machines}
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows the gap
            for _ in range(args.repeat):
                for label, machine in machines.items():
                    start = time.process_time()
                    machine.fit(X, y)
                    seconds[label].append(time.process_time() - start)
        base = statistics.median(seconds["l_p, p = 2"])
        for label, machine in machines.items():
            median = statistics.median(seconds[label])
            print(
                f"{name:>10s} {label:>16s} {median:8.2f} {median / base:6.1f} {machine.dual_gap_:8.1e} "
                f"{machine.n_iter_:6d}",
                flush=True,
            )


if __name__ == "__main__":
    main()
