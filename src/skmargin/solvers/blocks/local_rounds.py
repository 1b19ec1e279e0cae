"""Accelerated local rounds, for rows on workers with very many columns: each round solves a little of every chain.

    dual     max_a  D(a) = sum_i dual_i(a_i) - 1/2 ||V||^2,   V = sum_i (x_i - m) c_i',   b free:  sum_i c_i = 0
    chain p  max over its own a_p, the others fixed at the point y:  the square above is at most
             1/2 ||V(y)||^2 + <V(y), V(a) - V(y)> + S/2 sum_p ||V_p(a) - V_p(y)||^2,   S = number of chains
    steps    a+ from block ascent on that, from y moved into the bounds of a (local_task.py);
             y = a + beta (a - a of the round before), Nesterov's beta, which starts anew where D falls (O'Donoghue and
             Candes 2015)
    b        by multipliers: b += t sum_i c_i, with t/2 ||sum_i c_i||^2 in the dual
    primal   the class vectors V(y), sent to the workers anyway, stretched by one of a few factors: the dual converges
             first, and the primal lags
    gap      P - D; with a free intercept duals of each class are first scaled down so that sum_i c_i = 0 (`balance`)

That is CoCoA+ (Ma et al. 2015) with acceleration.  A round sends one matrix of k d numbers and adds up another; its
work is some passes over the rows.  Rounds grow with the root of the number of chains, hence few (rows/chains.py).

given    rows on workers, a problem with a hinge loss, a first point, perhaps with duals that were kept
returned the point, its objective and certified gap
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..._runtime.progress import print_line, report_gap
from ...rows.chains import Kept
from ...rows.moments import Overview
from .descent import SavePoint
from .lbfgs import Bound
from .loads import LoadStart, RowDuals
from .local_task import STRETCHES, Duals, LocalRound, Past, RoundSums, Scaling
from .newton import BlockState
from .passes import BlockProblem
from .published import PublishedLosses

FIRST_WIDTH = 0.3  # of the duals that the first point gives, in margins
PROXIMAL_SHARE, PAIRS = 0.2, 2000  # t beside the typical inner product of two rows; so many pairs say what is typical
MOST_SWEEPS, BALANCED = 100_000, 1e-13  # of the balance of k classes; what may be left, beside the duals of a class
MOST_KEPT = 1 << 26  # duals that a checkpoint takes, about 1 GB: of more rows the point alone
TRY_AGAIN = 0.9  # share of the gap at the last certificate that failed, from which the next one is worth a pass


def suits(problem: BlockProblem) -> bool:
    """Whether the machine is one whose duals block ascent knows."""
    return problem.loss in ("max", "sum", "top") and problem.intercept in ("free", "none")


def solve_local_rounds(
    rows: Any,
    problem: BlockProblem,
    seen: Overview,
    start: tuple[np.ndarray, np.ndarray] | LoadStart,
    *,
    tol: float,
    max_rounds: int,
    seed: int = 0,
    verbose: int = 0,
    save: SavePoint | None = None,
) -> BlockState:
    """Solve to a relative duality gap of ``tol``; see the head of this file."""
    run = _Run(rows, problem, seen, tol, seed, verbose)
    return run.ascend(start, max_rounds, save)


@dataclass
class _Point:
    """Class vectors as sums over the rows (k, d), not centred, the sum of their coefficients, and values."""

    V: np.ndarray
    total: np.ndarray

    def beyond(self, before: _Point, share: float) -> _Point:
        return _Point(self.V + share * (self.V - before.V), self.total + share * (self.total - before.total))


class _Run:
    """The state of a solve but for the duals, which the partitions keep."""

    def __init__(self, rows: Any, problem: BlockProblem, seen: Overview, tol: float, seed: int, verbose: int) -> None:
        self.rows, self.problem, self.tol, self.seed, self.verbose = rows, problem, tol, seed, verbose
        self.seen = seen
        self.dtype = seen.first.X.dtype
        self.free = problem.intercept == "free"
        self.mean = seen.mean if self.free else np.zeros(rows.n_features)
        self.proximal = proximal_weight(seen.first.X, self.mean, seed) if self.free else 0.0
        self.b = np.zeros(problem.n_classes)  # multipliers, of the centred features
        self.rounds = 0
        self.bound = Bound((problem.n_classes, rows.n_features))
        self.best: tuple[float, np.ndarray, np.ndarray] | None = None
        self.refused = np.inf  # estimate of the gap at the last certificate that failed

    def ascend(
        self, start: tuple[np.ndarray, np.ndarray] | LoadStart, max_rounds: int, save: SavePoint | None
    ) -> BlockState:
        """Rounds until the gap is certified, or they are used up."""
        kept, sums = self._resumed(start) if isinstance(start, LoadStart) else self._begun(*start)
        here = before = _Point(sums.vectors, sums.total)
        age, last = 1.0, -np.inf
        while not self._ended(kept, sums) and self.rounds < max_rounds:
            value = self._augmented(here, sums)
            if value < last:
                age = 1.0
            next_age = 0.5 + np.sqrt(0.25 + age * age)
            share, age, last = (age - 1) / next_age, next_age, value
            self.b = self.b + self.proximal * here.total
            kept, sums = self._round(kept, *self._vectors(here.beyond(before, share)), share)
            here, before = _Point(sums.vectors, sums.total), here
            assert self.best is not None
            if save is not None:
                save(*self.best[1:], partial(self._held, kept) if sums.count <= MOST_KEPT else None)
        assert self.best is not None
        objective, W, b = self.best
        gap = min(1.0, (objective - self.bound.value) / objective)
        single = self.dtype == np.float32
        return BlockState(W, b, 0.0, objective, gap, self.rounds, self.problem.C, self.seen.sizes(), single)

    def _begun(self, W: np.ndarray, b: np.ndarray) -> tuple[Kept, RoundSums]:
        """The duals that a point gives."""
        if not self.free:
            b = np.zeros_like(b)
        kept, sums = self._round(None, W, b, 0.0)
        self.b = b + W @ self.mean
        # Duals of all rows from a point that few rows gave add up to far too much: the factor at which D is largest.
        centred = sums.vectors - np.outer(sums.total, self.mean)
        factor = min(1.0, sums.dual / max(float(np.vdot(centred, centred)), np.finfo(float).tiny))
        sums, kept = self._scaled(kept, np.full(len(b), factor))
        return kept, sums

    def _resumed(self, start: LoadStart) -> tuple[Kept, RoundSums]:
        """The duals and the best point of an earlier solve; what is lost is its acceleration."""
        W, b, duals = start
        p = self.problem
        losses = self.rows.map_sum(PublishedLosses(W, b, (p.loss, p.top_k, 0.0, 0.0), None))
        self.rounds += 1
        self.best = 0.5 * float(np.vdot(W, W)) + p.C * float(losses[0]), W, b
        self.b = b + W @ self.mean if duals.multipliers is None else duals.multipliers
        ends = np.concatenate([[0], np.cumsum(duals.size, dtype=np.int64)])

        def past(begin: int, end: int) -> Past:
            some = slice(int(ends[begin]), int(ends[end]))
            now = Duals(ends[begin : end + 1] - ends[begin], duals.rivals[some], duals.alpha[some])
            return Past(now, now)

        sums, kept = self._scaled(self.rows.handed(past), np.ones(p.n_classes))
        return kept, sums

    def _held(self, kept: Kept) -> RowDuals:
        """The duals of all rows, for a checkpoint."""
        parts = [past.now for past in self.rows.fetched(kept)]
        size = np.concatenate([np.diff(part.start) for part in parts]).astype(np.int32)
        rivals, alpha = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rivals", "alpha"))
        return RowDuals(size, rivals, alpha, self.b)

    def _round(self, kept: Kept | None, W: np.ndarray, b: np.ndarray, share: float) -> tuple[Kept, RoundSums]:
        """A round at this point; what the losses there say of the primal is noted."""
        W = W.astype(self.dtype)
        task = LocalRound(
            self.problem, W, b, share, self.rows.n_chains, self.proximal, self.seed + self.rounds, FIRST_WIDTH,
            self.mean,
        )  # fmt: skip
        sums: RoundSums
        sums, kept = self.rows.map_chains(task, kept)
        self.rounds += 1
        half = 0.5 * float(np.square(W, dtype=np.float64).sum())
        for factor, loss in zip(STRETCHES, sums.losses, strict=True):
            objective = factor**2 * half + self.problem.C * float(loss)
            if self.best is None or objective < self.best[0]:
                self.best = objective, factor * W.astype(np.float64), factor * b
        return kept, sums

    def _vectors(self, point: _Point) -> tuple[np.ndarray, np.ndarray]:
        """W and b of a point, for the features as given."""
        W = point.V - np.outer(point.total, self.mean)
        return W, self.b + self.proximal * point.total - W @ self.mean if self.free else np.zeros_like(self.b)

    def _augmented(self, here: _Point, sums: RoundSums) -> float:
        """The dual with what the multipliers add to it."""
        value = self._dual(here, sums) - float(self.b @ here.total)
        return value - 0.5 * self.proximal * float(here.total @ here.total)

    def _dual(self, here: _Point, sums: RoundSums) -> float:
        centred = here.V - np.outer(here.total, self.mean)
        return sums.dual - 0.5 * float(np.vdot(centred, centred))

    def _ended(self, kept: Kept, sums: RoundSums) -> bool:
        """Whether the gap is certified."""
        assert self.best is not None
        objective = self.best[0]
        if not self.free:
            self.bound.rise(sums.dual, sums.vectors)
        estimate = objective - self._dual(_Point(sums.vectors, sums.total), sums)
        if self.free and estimate <= self.tol * objective and estimate <= TRY_AGAIN * self.refused:
            self._certify(kept, sums)
            self.refused = estimate
        gap = objective - self.bound.value
        report_gap(min(1.0, max(estimate, 0.0) / objective), self.tol)
        if self.verbose:
            print_line(
                f"blocks: local round {self.rounds}, objective {objective:.6g}, gap about {estimate / objective:.1e}, "
                f"certified {gap / objective:.1e}"
            )
        return bool(gap <= self.tol * objective)

    def _certify(self, kept: Kept, sums: RoundSums) -> None:
        """Let the duals raise the bound, scaled down so that the coefficients sum to zero."""
        factors = balance(sums.flows, self.problem.C * self.rows.class_weights)
        if factors is None:
            return
        found, _ = self._scaled(kept, factors)
        self.bound.rise(found.dual, found.vectors)

    def _scaled(self, kept: Kept, factors: np.ndarray) -> tuple[RoundSums, Kept]:
        """The duals of each class times a factor."""
        task = Scaling(self.problem.n_classes, self.rows.n_features, factors)
        found: tuple[RoundSums, Kept] = self.rows.map_chains(task, kept)
        self.rounds += 1
        return found


def proximal_weight(X: Any, mean: np.ndarray, seed: int) -> float:
    """The weight t of the square of the intercepts: small beside the typical product of two centred rows."""
    n = X.shape[0]
    i, j = np.random.default_rng(seed).integers(n, size=(2, PAIRS))
    A, B = X[i], X[j]
    products = np.asarray(A.multiply(B).sum(axis=1) if sparse.issparse(X) else (A * B).sum(axis=1)).ravel()
    typical = float(np.abs(products - A @ mean - B @ mean + mean @ mean).mean())
    return PROXIMAL_SHARE * typical if typical > 0 else 1.0


def balance(flows: np.ndarray, caps: np.ndarray) -> np.ndarray | None:
    """The largest factors of the duals of each class, at most 1, with which the coefficients sum to zero.

    ``flows`` (k, k) holds the sums of the duals of each class (rows) against each rival.  The factors are the greatest
    solution of  f_l out_l = min(out_l, sum_m f_m flows_ml):  sweeps from f = 1 fall towards it, and as the sums of both
    sides over l are the same, neither can be less.
    """
    out = flows.sum(axis=1)
    factors = np.ones(len(out))
    for _ in range(MOST_SWEEPS):
        into = factors @ flows
        if (np.abs(into - factors * out) <= BALANCED * caps).all():
            return factors
        factors = np.minimum(factors, np.divide(into, out, out=np.zeros_like(out), where=out > 0))
    return None
