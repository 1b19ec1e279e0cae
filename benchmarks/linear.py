"""Linear machines: time to reach a relative suboptimality, every solver in turn in the same run."""

from __future__ import annotations

import math
import statistics
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import Data
from benchmarks.measure import pinned
from benchmarks.objectives import primal
from benchmarks.solvers import Ours, Solver

REFERENCE_TOL = 1e-7
TRIES = 5  # fits that tell what is typical of a stopping threshold, where they take little time


@dataclass
class Trial:
    """All fits of one solver with one stopping threshold."""

    objectives: list[float] = field(default_factory=list)
    seconds: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # by number of threads


class Race:
    """One data set, one C: finds the optimum, then the time of every solver to every target."""

    def __init__(self, data: Data, C: float, solvers: list[Solver], targets: list[float], budget: float) -> None:
        self.data, self.C, self.solvers, self.targets, self.budget = data, C, solvers, targets, budget
        self.trials: dict[str, dict[float, Trial]] = {solver.name: {} for solver in solvers}
        self.certified: dict[str, float] = {}  # optimum by loss, from our tightest fit
        self.best: dict[str, float] = {}  # optimum by loss, best value of any solver
        self.stops: dict[tuple[str, float], tuple[float, bool]] = {}  # threshold by solver and target; if it reaches it
        self.complaints: list[str] = []

    def run(self, threads: list[int], repeat: int) -> Iterator[dict[str, Any]]:
        """Measure, and yield one row for each number of threads, target and solver."""
        with pinned(threads[0]):
            for solver in self.solvers:
                self._reference(solver.loss)
            for solver in self.solvers:
                self._explore(solver, threads[0])
        self._best_known()
        for solver in self.solvers:
            for target in self.targets:
                self.stops[solver.name, target] = self._stop(solver, target)
        for count in threads:
            with pinned(count):
                for _ in range(repeat):
                    for target in self.targets:
                        for solver in self.solvers:
                            self._again(solver, target, count, repeat)
        for count in threads:
            for target in self.targets:
                yield from self._rows(count, target)

    def _fit(self, solver: Solver, stop: float, threads: int) -> Trial:
        W, seconds = solver.solve(self.C, stop, threads)
        trial = self.trials[solver.name].setdefault(stop, Trial())
        trial.objectives.append(primal(solver.loss, W, self.data.X, self.data.y, self.C))
        trial.seconds[threads].append(seconds)
        return trial

    def _reference(self, loss: str) -> None:
        """Optimum from a certified fit at 1e-7; without one every ladder is climbed to its end."""
        if loss not in self.certified and any(isinstance(solver, Ours) for solver in self.solvers):
            ours = Ours(loss)
            ours.prepare(self.data.X, self.data.y)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                W, _ = ours.solve(self.C, REFERENCE_TOL, 1)
            if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
                self.complaints.append(f"the reference fit ({loss}) did not reach {REFERENCE_TOL:g}")
            self.certified[loss] = primal(loss, W, self.data.X, self.data.y, self.C)

    def _explore(self, solver: Solver, threads: int) -> None:
        """First fit with every threshold that matters; a ladder ends at the tightest target or at the budget."""
        spent = 0.0
        for stop in solver.ladder or self.targets:
            trial = self._fit(solver, stop, threads)
            spent += trial.seconds[threads][0]
            while len(trial.objectives) < TRIES and sum(trial.seconds[threads]) < self.budget / 30:
                self._fit(solver, stop, threads)
            if not solver.ladder:
                if self._suboptimality(solver, trial) > stop * 1.001:
                    self.complaints.append(
                        f"{solver.name} is off by {self._suboptimality(solver, trial):.1e} at tol={stop:g}"
                    )
            elif spent > self.budget or self._suboptimality(solver, trial) <= min(self.targets):
                break

    def _best_known(self) -> None:
        """Optimum = best value of any solver; one below the certified value proves the certificate wrong."""
        self.best = dict(self.certified)
        for solver in self.solvers:
            best = min(min(trial.objectives) for trial in self.trials[solver.name].values())
            certified = self.certified.get(solver.loss, -math.inf)
            if best < certified * (1 - 10 * REFERENCE_TOL):
                self.complaints.append(f"{solver.name} is below the certified optimum: {best!r} < {certified!r}")
            self.best[solver.loss] = min(best, self.best.get(solver.loss, math.inf))

    def _again(self, solver: Solver, target: float, threads: int, repeat: int) -> None:
        stop, reached = self.stops[solver.name, target]
        seconds = self.trials[solver.name][stop].seconds[threads]
        # Targets that share a threshold share its fits; a solver that is lost, or slow, is not made to run again.
        slow = not reached or sum(seconds) > self.budget / 6
        if len(seconds) < repeat and not (slow and seconds):
            self._fit(solver, stop, threads)

    def _stop(self, solver: Solver, target: float) -> tuple[float, bool]:
        """Loosest threshold that reaches the target, or else the last one tried, and whether it reaches it."""
        trials = self.trials[solver.name]
        if not solver.ladder:
            return target, True
        for stop in sorted(trials, reverse=True):
            if self._suboptimality(solver, trials[stop]) <= target:
                return stop, True
        return min(trials), False

    def _suboptimality(self, solver: Solver, trial: Trial) -> float:
        """Of our worst fit, since it is certified, and of a typical one of the others: no luck, bad or good."""
        optimum = self.best.get(solver.loss, self.certified.get(solver.loss))
        objective = statistics.median(trial.objectives) if solver.ladder else max(trial.objectives)
        return math.inf if optimum is None else (objective - optimum) / optimum

    def _rows(self, threads: int, target: float) -> Iterator[dict[str, Any]]:
        n, d = self.data.X.shape
        first: float | None = None
        for solver in self.solvers:
            stop, reached = self.stops[solver.name, target]
            trial = self.trials[solver.name][stop]
            seconds = statistics.median(trial.seconds[threads])
            first = seconds if first is None else first
            yield {
                "set": self.data.name,
                "group": self.data.group,
                "n": n,
                "d": d,
                "k": int(self.data.y.max()) + 1,
                "C": self.C,
                "threads": threads,
                "target": target,
                "solver": solver.name,
                "stop": stop,
                "seconds": seconds,
                "reached": reached,
                "suboptimality": self._suboptimality(solver, trial),
                "fits": len(trial.seconds[threads]),
                "ratio": seconds / first,
            }


def print_rows(rows: list[dict[str, Any]]) -> None:
    """One line for each number of threads: seconds at every target, and in brackets the ratio to the first solver."""
    for threads in dict.fromkeys(row["threads"] for row in rows):
        some = [row for row in rows if row["threads"] == threads]
        line = f"{some[0]['set']:>12} C={some[0]['C']:<6g} {threads} thread{'s' if threads > 1 else ' '}"
        for target in dict.fromkeys(row["target"] for row in some):
            line += f" | {target:.0e}:"
            for row in (row for row in some if row["target"] == target):
                bound = "" if row["reached"] else ">"
                ratio = "" if row is some[0] or row["solver"] == some[0]["solver"] else f" ({bound}{row['ratio']:.1f}x)"
                line += f"  {row['solver']} {bound}{row['seconds']:.3f}{ratio}"
        print(line, flush=True)


def print_summary(rows: list[dict[str, Any]]) -> None:
    """Geometric means of the ratios by group, over all C and for each C, and the worst case."""
    if not rows:
        return
    reference = rows[0]["solver"]
    print(f"\nTimes as multiples of {reference}'s: geometric means ('>' = counted at its bound, so at least)")
    keys = dict.fromkeys((row["threads"], row["group"], row["target"], row["solver"]) for row in rows)
    for threads, group, target, solver in keys:
        if solver == reference:
            continue
        some = [
            row
            for row in rows
            if (row["threads"], row["group"], row["target"], row["solver"]) == (threads, group, target, solver)
        ]
        by_C = "  ".join(
            f"C={C:g}: {geometric_mean([row for row in some if row['C'] == C])}"
            for C in sorted({row["C"] for row in some})
        )
        worst = min(some, key=lambda row: row["ratio"])
        print(
            f"{threads} thread{'s' if threads > 1 else ' '} {group:>6} {target:.0e} {solver:>10}: "
            f"{geometric_mean(some):>6} over {len(some)} problems, "
            f"worst {worst['ratio']:.2f} ({worst['set']}, C={worst['C']:g});  {by_C}"
        )


def geometric_mean(rows: list[dict[str, Any]]) -> str:
    """Geometric mean of the ratios, with '>' where some are bounds only."""
    mean = float(np.exp(np.mean(np.log([row["ratio"] for row in rows]))))
    return f"{'' if all(row['reached'] for row in rows) else '>'}{mean:.2f}"
