"""Hinge machines for very many classes, sparse rows: few scans of all classes, visits over lists in between.

    primal  min_{W,b}  1/2 ||W||_{2,p}^2 + sum_i value_i(f_{i,y_i} - f_il),   f_i = W x_i + b
    dual    max_alpha  sum_il alpha_il - 1/2 ||V||_{2,q}^2,   V = sum_i x_i c_i',
            c_{i,y_i} = sum_l alpha_il,  c_il = -alpha_il,  with a free intercept also sum_i c_i = 0
    link    w_l = (||v_l|| / ||V||_{2,q})^(q-2) v_l;   p = q = 2: W = V

given    CSR rows X, classes 0..k-1, the weight ``cap`` = C s_i of each sample, a loss ("max", "sum", "top"; with "max"
         also another p than 2), and perhaps the state of an earlier solve
returned W (sparse, or dense where it is small), b, feasible duals, P and the certified duality gap

No array of n x k, d x k or k x k numbers is made.  The duals are lists: the rivals that a sample has met.  A *scan*
(``_core/many_classes/class_scan.hpp``) scores all classes in tiles and gives each sample its closest new rivals; then
*passes* visit the samples over their lists, with class vectors that are sparse by feature
(``_core/many_classes/class_pattern.hpp``).  The last scan is made in double precision, from the class vectors as they
are published: its P and the dual at an exactly feasible point are the certificate.

Crammer & Singer (2001); active sets of rivals: Yen et al., PD-Sparse (2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..._config import get_config
from ..._runtime.progress import print_line, report_gap
from ..._runtime.threads import thread_count
from ..._types import Rows
from ..dual.state import dual_rescaling, relative_gap
from ..tuning import DEFAULT, Tuning
from .plan import dense_bytes
from .rows import Lists, ManyProblem, ManyRows, half_square, no_lists, row_lengths


@dataclass(frozen=True)
class ManyState:
    """A feasible dual point with a primal point and certificate; plain arrays, ready to start the next solve from."""

    W: Any  # (k, d), CSR array or ndarray
    b: np.ndarray  # (k,)
    start: np.ndarray  # CSR arrays of the duals: row starts, rivals, numbers
    rivals: np.ndarray
    alpha: np.ndarray
    multipliers: np.ndarray  # (k,) of the free intercept
    cap: np.ndarray  # (n,) C s_i that the duals belong to
    square: float  # ||V||_{2,q}^2
    objective: float
    gap: float
    n_iter: int
    score_size: float  # what the terms of a score add up to; all of the last scan was in double precision

    def rescaled(self, cap: np.ndarray) -> Lists:
        """The duals for other weights: they stay feasible when they shrink or grow with their bounds."""
        ratio = dual_rescaling(cap / self.cap, float(self.alpha.sum()), self.square)
        return Lists(self.start, self.rivals, self.alpha * np.repeat(ratio, np.diff(self.start)))


@dataclass(frozen=True)
class _Point:
    """A dual point on the way, with what the last scan found."""

    lists: Lists
    b: np.ndarray
    multipliers: np.ndarray
    weight: np.ndarray
    primal: float
    dual: float
    feasible: Lists  # the dual point that the dual value belongs to
    square: float
    unlisted: float  # losses of rivals that the lists before the scan did not hold

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.primal - self.dual)


def solve_many(
    X: Rows,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    loss: str,
    top_k: int = 1,
    p: float = 2.0,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: ManyState | None = None,
    n_jobs: int | None = 1,
    verbose: int = 0,
    tuning: Tuning = DEFAULT,
) -> ManyState:
    """Solve to a relative duality gap of ``tol``; see the head of this file."""
    problem = ManyProblem(
        ManyRows(X), y, cap, n_classes, loss, top_k, p, fit_intercept, thread_count(n_jobs)
    )  # fmt: skip
    sparse_W = dense_bytes(X.shape[1], n_classes) > get_config()["max_dense_bytes"]
    solver = _Solver(problem, tol, max_iter, seed, sparse_W and X.dtype == np.float32, verbose, tuning)
    point = solver.run(state)
    values, features, start = problem.vectors(point.lists, point.weight, single=solver.single)
    W: Any = sparse.csr_array((values, features, start), shape=(n_classes, X.shape[1]))
    if not sparse_W:
        W = W.toarray(order="F")
    return ManyState(
        W, point.b, *point.feasible, point.multipliers, cap, point.square, point.primal, point.gap, solver.n_iter,
        _score_size(problem.rows.lengths, W, point.b),
    )  # fmt: skip


class _Solver:
    """Plan, stages, certificate."""

    def __init__(
        self,
        problem: ManyProblem,
        tol: float,
        max_iter: int,
        seed: int,
        single: bool,
        verbose: int,
        tuning: Tuning,
    ) -> None:
        self.problem, self.tol, self.max_iter, self.seed, self.verbose = problem, tol, max_iter, seed, verbose
        self.tuning, self.float32_gap = tuning, tuning.common.float32_tol
        self.single = single  # whether class vectors are published in float32
        self.n_iter = 0
        self.floor = min(max(1e-2 * tol, 1e-10), 1e-4)  # of the weights of the classes, see BlockNormVectors
        self.most = min(tuning.many_classes.new_rivals + (problem.top_k if problem.loss == "top" else 0), problem.k - 1)
        self.scan_flops = 2.0 * problem.rows.X.nnz * problem.k

    def run(self, state: ManyState | None) -> _Point:
        """Stages of passes and a scan until the certificate says enough."""
        problem, tuning = self.problem, self.tuning.many_classes
        lists, multipliers = self._start(state)
        primal = full = self._value_at_zero()
        found, best = 4.0, None
        lowest, since, drift_cost = np.inf, 0, 0.0
        while True:
            dtype = np.float32 if full > self.float32_gap * primal else np.float64
            goal = tuning.drop * full
            out = problem.passes(
                dtype, lists, multipliers, goal, self.max_iter - self.n_iter, self.scan_flops, self.floor,
                goal / drift_cost if drift_cost > 0 else np.inf, self.seed + self.n_iter,
            )  # fmt: skip
            self.n_iter += max(1, out["passes"])
            multipliers, duals = out["b"], Lists(*out["duals"])
            last = self.n_iter >= self.max_iter or since >= self.tuning.common.patience or not len(duals.cls)
            exact = last or out["gap"] * found <= self.tol * primal
            point, lists, full = self._check(duals, multipliers, out["t"], dtype, exact=exact, last=last)
            if not exact and full <= self.tol * point.primal:  # sooner than expected
                point, lists, full = self._check(duals, multipliers, out["t"], dtype, exact=True, last=last)
            primal = point.primal
            self._report(point, full)
            if np.isfinite(point.dual):
                best = point if best is None or point.gap < best.gap else best
            if last or (best is not None and best.gap <= self.tol):
                return point if best is None else best  # without a number as its bound the gap is one
            found = min(4.0, max(1.0, full / max(out["gap"], 1e-300)))
            # Lists are those of one intercept: what the scan found beyond them grows as it moves.
            drift_cost = point.unlisted / out["drift"] if out["drift"] > 0 else 0.0
            since = 0 if full <= 0.9 * lowest else since + 1
            lowest = min(lowest, full)

    def _start(self, state: ManyState | None) -> tuple[Lists, np.ndarray]:
        """The first lists: rivals of an earlier solve, or the classes whose mean is closest."""
        problem, k = self.problem, self.problem.k
        if state is not None:
            duals = state.rescaled(problem.cap)
            return self._check(duals, state.multipliers, 0.0, np.float32, exact=False, last=False)[1], state.multipliers
        size = np.bincount(problem.y, minlength=k)
        own = 1 / np.sqrt(size[problem.y])
        out = problem.scan(
            np.float32, no_lists(len(problem.y)), np.zeros(k), self.most, self.floor, first=own, weight=np.ones(k)
        )
        return Lists(out["start"], out["cls"], np.zeros(len(out["cls"]))), np.zeros(k)

    def _value_at_zero(self) -> float:
        rivals = self.problem.k - 1 if self.problem.loss == "sum" else 1
        return float(self.problem.cap.sum()) * rivals

    def _check(
        self, duals: Lists, multipliers: np.ndarray, t: float, dtype: DTypeLike, *, exact: bool, last: bool
    ) -> tuple[_Point, Lists, float]:
        """A scan: the point with its value, new lists, and the sum of the gaps of all samples.

        The dual value is known (finite) after an ``exact`` scan only, whose class vectors are those to be published.
        """
        problem = self.problem
        b = multipliers
        if problem.fit_intercept:
            b = multipliers + t * duals.totals(problem.y, problem.k)
            b = b - b.mean()  # a constant added to all intercepts changes nothing
        weight = None
        if exact:
            dtype, weight = np.float64, np.ones(problem.k)
            if problem.p != 2:
                weight = self._weights(problem.norms(duals))
        out = problem.scan(dtype, duals, b, self.most, self.floor, weight=weight, single=exact and self.single)
        lists = Lists(out["start"], out["cls"], out["alpha"])
        primal = out["losses"] + half_square(out["published"], problem.p)
        square = 2 * half_square(out["squares"], problem.q)
        dual, feasible, gap = -np.inf, duals, primal - (out["duals"] - 0.5 * square)
        if problem.fit_intercept:  # the gap of the proximal problem in b
            gap += float(b @ out["total"])
            if exact and (last or gap <= self.tol * primal):
                feasible = _without_zeros(problem.circulation(lists, out["slope"]))
                squares = problem.norms(feasible)
                square = 2 * half_square(squares, problem.q)
                dual = float(feasible.alpha.sum()) - 0.5 * square - problem.hidden(feasible, squares)
        elif exact:
            dual = out["duals"] - 0.5 * square - problem.hidden(duals, out["squares"])
        point = _Point(duals, b, multipliers, out["weight"], primal, dual, feasible, square, out["unlisted"])
        return point, lists, gap

    def _weights(self, squares: np.ndarray) -> np.ndarray:
        """The link: ``w_l = weight_l v_l``."""
        q, top = self.problem.q, squares.max()
        if not top > 0:
            return np.ones(len(squares))
        lengths = squares / top + self.floor**2
        weight = lengths ** (q / 2 - 1)
        return weight * float(weight @ lengths) ** ((2 - q) / q)

    def _report(self, point: _Point, full: float) -> None:
        report_gap(relative_gap(point.primal, full), self.tol)
        if self.verbose:
            size = len(point.lists.alpha) / len(self.problem.y)
            print_line(
                f"many classes: {self.n_iter} passes, objective {point.primal:.6g}, relative gap "
                f"{relative_gap(point.primal, full):.1e}, {size:.1f} duals a sample"
            )


def _without_zeros(lists: Lists) -> Lists:
    kept = lists.alpha != 0
    start = np.concatenate([[0], np.cumsum(kept)])[lists.start]
    return Lists(start.astype(np.int64), lists.cls[kept], lists.alpha[kept])


def _score_size(lengths: np.ndarray, W: Any, b: np.ndarray) -> float:
    """The longest row times the longest class vector, and the largest intercept."""
    of_classes = row_lengths(W) if sparse.issparse(W) else np.sqrt(np.einsum("ij,ij->i", W, W))
    longest = float(lengths.max(initial=0.0)) * float(of_classes.max(initial=0.0))
    return longest + float(np.abs(b).max(initial=0.0))
