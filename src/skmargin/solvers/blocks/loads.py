"""Block ascent over loads of rows: any number of parameters, rows in files that can be read in any order.

    pass   the file in pieces, dealt into loads anew; for each load a few passes of block ascent over its rows
    gap    P at the point of the beginning of a pass, D at its end (_core/linear/load_ascent.hpp): every reading of the
           file is a pass and, where the gap may be small enough, a certificate

Loads that are always the same would need several times as many readings, and so would loads that tell little of all
rows: of each run of pieces that follow each other in the file, as many as there are loads, each load gets one, whatever
the rows are sorted by.

A penalised intercept is the weight of one more feature.  The loss of ODM with mu > 0 is solved as in ../odm/outer.py,
with an outer step for each pass: the rivals are those at the point of its beginning, and its gap is that of the convex
problem with these rivals.  The problem with mu = 0 gives the first ones.

given    rows in blocks, a problem, perhaps the point and the duals of a solve of the same rows
returned the point, its objective and certified gap; in memory are the class vectors, a load, and the duals of all rows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from scipy import sparse

from ..._core import _ext
from ..._runtime.progress import print_line, report_gap
from ..._runtime.threads import thread_count
from ..._types import Rows
from ...rows.arrays import core_rows, with_constant
from ...rows.blocks import Block
from ...rows.files import CountedRows, prefetched
from ...rows.moments import Overview
from ..dual.state import DualLists, dual_rescaling, relative_gap
from ..odm.inner_linear import with_rivals
from ..odm.outer import NO_RIVALS, closest_rivals
from ..tuning import DEFAULT
from .descent import SavePoint
from .newton import BlockState
from .passes import BlockProblem

LEAST_LOADS = 8
PIECES = 64  # of a load
LOCAL_PASSES = 3  # over the rows of a load
SCORE_FROM = 4.0  # gap of a pass, in targets, from which on the next one takes P


class RowDuals(NamedTuple):
    """The duals of rows, in little memory."""

    size: np.ndarray  # of the list of each row
    rivals: np.ndarray
    alpha: np.ndarray
    multipliers: np.ndarray | None = None  # of the free intercept, where they are not those of the point


class LoadStart(NamedTuple):
    """A point (W, b) with the duals of all rows, in their order, that it is the sum of."""

    W: np.ndarray
    b: np.ndarray
    duals: RowDuals


@dataclass(frozen=True)
class LoadState(BlockState):
    """A point with its certificate, and where another solve may start."""

    end: LoadStart | None = None

    def start(self, C: float) -> LoadStart | None:
        """The start for another C: bounds of the duals, and the duals with them, grow or shrink alike."""
        if self.end is None:
            return None
        W, b, duals = self.end
        if (duals.alpha < 0).any():  # ODM: no bounds
            ratio = C / self.C
            return LoadStart(ratio * W, b, duals._replace(alpha=ratio * duals.alpha))
        ratio = dual_rescaling(np.array([C / self.C]), float(duals.alpha.sum()), float(np.vdot(W, W)))[0]
        return LoadStart(ratio * W, b, duals._replace(alpha=ratio * duals.alpha))


def suits_loads(rows: Rows) -> TypeGuard[CountedRows]:
    """Whether this method can read such rows."""
    return getattr(rows, "in_any_order", False)


def solve_loads(
    rows: CountedRows,
    problem: BlockProblem,
    seen: Overview,
    *,
    tol: float,
    max_passes: int,
    seed: int = 0,
    start: LoadStart | None = None,
    verbose: int = 0,
    save: SavePoint | None = None,
) -> LoadState:
    """Solve to a relative duality gap of ``tol``; see the head of this file."""
    loads = _Loads(rows, problem, seed, start)
    core = _ext.Loads(
        rows.n_rows, problem.n_classes, problem.C * float(rows.class_weights.sum()),
        mean=seen.mean if problem.intercept == "free" else None, tol=tol, threads=thread_count(rows.n_jobs),
    )  # fmt: skip
    if start is not None:
        core.start(*(np.ascontiguousarray(part, dtype=np.float64) for part in loads.joined(start.W, start.b)))
    best, bound, gap = np.inf, 0.0, np.inf
    point: tuple[np.ndarray, np.ndarray] | None = None
    convex = not problem.mu > 0
    upper = not convex and (start is not None or max_passes == 1)  # whether the part that is not convex is in
    for done in range(1, max_passes + 1):
        scored = upper or done == max_passes or (gap < np.inf and gap <= SCORE_FROM * tol * (bound + gap))
        if upper:
            loads.fix_rivals(core.publish(False) if done > 1 else (loads.joined(start.W, start.b) if start else None))
            best, bound = np.inf, 0.0  # of a problem with other rivals
        core.begin_pass(scored)
        for load in loads.of_pass(done):
            loads.keep(load, core.visit(*loads.given(load), passes=LOCAL_PASSES, last=load.last, seed=load.seed))
        loads.known = True
        gap, objective, dual, balanced = core.found()
        bound = max(bound, dual) if balanced else bound
        if objective < best:
            best, point = objective, core.publish(True)
        relative = relative_gap(best, best - bound) if best < np.inf else min(1.0, gap / max(bound + gap, 1e-300))
        report_gap(relative, tol)
        if verbose:
            certified = f"objective {best:.6g}, gap" if best < np.inf else "about"
            print_line(f"blocks: pass {done} in {loads.n_loads} loads, {certified} {relative:.1e}")
        if best < np.inf and relative <= tol and (convex or upper):
            break
        upper = upper or not (convex or (relative > DEFAULT.common.start_tol and done + 1 < max_passes))
        if save is not None:
            save(*loads.split(*core.publish(False)), loads.duals)
    if point is None:  # no objective was finite: the estimator refuses it, and says what to change
        best, point = objective, core.publish(True)
    W, b = loads.split(*point)
    end = LoadStart(*loads.split(*core.publish(False)), loads.duals())
    return LoadState(W, b, 0.0, best, relative, done, problem.C, seen.sizes(), loads.single, end)


class _Load(NamedTuple):
    pieces: list[int]
    block: Block
    sizes: list[int]  # rows of each piece
    last: bool
    seed: int


class _Loads:
    """The rows in loads, and the duals of all rows."""

    def __init__(self, rows: CountedRows, problem: BlockProblem, seed: int, start: LoadStart | None) -> None:
        self.rows, self.problem, self.seed = rows, problem, seed
        self.n_loads = max(LEAST_LOADS, -(-rows.n_bytes // DEFAULT.blocks.piece_bytes))
        places = np.linspace(0, rows.n_given, PIECES * self.n_loads + 1).astype(int)
        if rows.edges is not None:
            places = rows.edges[np.searchsorted(rows.edges, places)]
        cuts = np.unique(places).tolist()
        self.ranges = list(pairwise(cuts))
        self.n_loads = min(self.n_loads, len(self.ranges))
        small = np.min_scalar_type(problem.n_classes - 1)
        self.small = small if small.itemsize < 4 else np.dtype(np.int32)
        kept = np.concatenate([[0], np.cumsum(np.concatenate(rows.codes) >= 0)])[cuts].tolist()
        none = np.zeros(0, dtype=self.small)
        duals = RowDuals(np.zeros(rows.n_rows, dtype=self.small), none, np.zeros(0)) if start is None else start.duals
        self.lists = _cut(duals, list(pairwise(kept)))
        self.known = start is None  # that they satisfy their bounds
        self.constant = problem.constant if problem.intercept == "penalized" else 0.0  # one more feature
        self.stored = self.constant
        self.rivals_at: tuple[np.ndarray, np.ndarray] | None = None  # point that gives the rivals of ODM
        self.mu = 0.0
        self.single = False

    def of_pass(self, number: int) -> Iterator[_Load]:
        """All rows, dealt anew, while a thread reads the next load."""
        rng = np.random.default_rng([self.seed, number])
        hands: list[list[int]] = [[] for _ in range(self.n_loads)]
        for first in range(0, len(self.ranges), self.n_loads):
            run = np.arange(first, min(first + self.n_loads, len(self.ranges)))
            for hand, piece in zip(rng.permutation(self.n_loads).tolist(), run.tolist(), strict=False):
                hands[hand].append(piece)
        seeds = rng.integers(1 << 62, size=self.n_loads).tolist()
        return prefetched(self._read(hands, seeds))

    def _read(self, hands: list[list[int]], seeds: list[int]) -> Iterator[_Load]:
        blocks = self.rows.pieces([self.ranges[piece] for hand in hands for piece in hand])
        for place, (hand, seed) in enumerate(zip(hands, seeds, strict=True)):
            parts = [next(blocks) for _ in hand]
            X = [part.X for part in parts]
            joined = sparse.csr_array(sparse.vstack(X, format="csr")) if sparse.issparse(X[0]) else np.concatenate(X)
            y, weight = (np.concatenate(column) for column in zip(*((p.y, p.weight) for p in parts), strict=True))
            sizes = [len(part.y) for part in parts]
            yield _Load(hand, Block(joined, y, weight, 0), sizes, place == len(hands) - 1, seed)
        next(blocks, None)  # the last look at whether the file has changed

    def given(self, load: _Load) -> tuple[Any, Any, Any]:
        """Rows, problem and duals of a load, as the core takes them."""
        p, block = self.problem, load.block
        X, dtype = block.X, block.X.dtype.type
        if self.constant:  # as rows hold it, and with a square that is no smaller: bounds stay bounds
            self.stored = float(np.nextafter(dtype(self.constant), dtype(np.inf)))
            X = with_constant(X, self.stored)
        self.single = dtype is np.float32
        rivals = self._rivals(X, block.y)
        problem = _ext.Problem(
            block.y, p.C * block.weight, p.n_classes, p.loss, top_k=p.top_k, mu=self.mu, theta=p.theta,
            fixed_rivals=rivals if self.mu > 0 else None,
        )  # fmt: skip
        held = _joined([self.lists[piece] for piece in load.pieces])
        start = np.concatenate([[0], np.cumsum(held.size, dtype=np.int64)])
        alpha = held.alpha if self.known else self._within_bounds(start, held.alpha, p.C * block.weight)
        duals = DualLists(start, held.rivals.astype(np.int32), alpha)
        return core_rows(X, dtype), problem, with_rivals(duals, rivals) if p.loss == "odm" else duals

    def fix_rivals(self, point: tuple[np.ndarray, np.ndarray] | None) -> None:
        """From now on with the part of ODM that is not convex, the rivals being those at a point (None: zero)."""
        self.mu, self.rivals_at = self.problem.mu, point

    def _rivals(self, X: Rows, y: np.ndarray) -> np.ndarray:
        if not self.mu > 0:
            return NO_RIVALS
        if self.rivals_at is None:
            return closest_rivals(np.zeros((len(y), self.problem.n_classes)), y)
        W, b = self.rivals_at
        return closest_rivals(np.asarray(X @ W.T.astype(X.dtype)) + b, y)

    def split(self, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Class vectors and intercepts of the machine from those of the core."""
        if not self.constant:
            return W, b
        return np.ascontiguousarray(W[:, :-1]), self.stored * W[:, -1]

    def joined(self, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of the core from those of the machine."""
        return (np.column_stack([W, b / self.stored]), np.zeros_like(b)) if self.constant else (W, b)

    def _within_bounds(self, start: np.ndarray, alpha: np.ndarray, cap: np.ndarray) -> np.ndarray:
        """The duals of other weights, shrunk until they satisfy the bounds of these."""
        row = np.repeat(np.arange(len(cap)), np.diff(start))
        most, total = np.zeros(len(cap)), np.bincount(row, alpha, minlength=len(cap))
        np.maximum.at(most, row, alpha)
        loss, tiny = self.problem.loss, np.finfo(float).tiny
        share = np.ones(len(cap))
        if loss in ("max", "top"):
            share = np.minimum(share, cap / np.maximum(total, tiny))
        if loss in ("sum", "top"):
            each = cap / self.problem.top_k if loss == "top" else cap
            share = np.minimum(share, each / np.maximum(most, tiny))
        return alpha * share[row]

    def duals(self) -> RowDuals:
        """The duals of all rows, in their order."""
        return _joined(self.lists)

    def keep(self, load: _Load, duals: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        """Hold the duals of a load."""
        start, rivals, alpha = duals
        held = RowDuals(np.diff(start).astype(self.small), rivals.astype(self.small), alpha)
        ends = np.cumsum(load.sizes).tolist()
        parts = _cut(held, list(pairwise([0, *ends])))
        for piece, part in zip(load.pieces, parts, strict=True):
            self.lists[piece] = part


def _cut(duals: RowDuals, ranges: list[tuple[int, int]]) -> list[RowDuals]:
    """The duals of ranges of the rows, copied: what they were cut from need not be kept."""
    start = np.concatenate([[0], np.cumsum(duals.size, dtype=np.int64)])
    found = []
    for begin, end in ranges:
        some = slice(int(start[begin]), int(start[end]))
        found.append(RowDuals(duals.size[begin:end].copy(), duals.rivals[some].copy(), duals.alpha[some].copy()))
    return found


def _joined(parts: list[RowDuals]) -> RowDuals:
    return RowDuals(*(np.concatenate(column) for column in zip(*(part[:3] for part in parts), strict=True)))
