"""What a partition does in an accelerated local round (local_rounds.py), as pure tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..._core import _ext
from ...rows.arrays import core_rows
from ...rows.blocks import Block
from ...rows.chains import ChainTask
from .gradient import CHUNK, coefficients, of_scores
from .passes import BlockProblem, packed, unpacked

PASSES = 2  # of block ascent over a partition; five took as many rounds
STRETCHES = (1.0, 1.02, 1.05, 1.1, 1.2)  # of the primal point


@dataclass
class RoundSums:
    """The sums of a round."""

    values: np.ndarray  # of the duals, of their number, then of the losses at each stretch
    gradient: np.ndarray  # (k, d + 1) sum of c_i x_i', and of c_i
    flows: np.ndarray  # (k, k) duals of each class against each rival

    @classmethod
    def zero(cls, k: int, d: int) -> RoundSums:
        """No rows."""
        return cls(np.zeros(2 + len(STRETCHES)), np.zeros((k, d + 1)), np.zeros((k, k)))

    def __getstate__(self) -> tuple[Any, ...]:  # features that the rows do not have are not sent
        return self.values, packed(self.gradient), self.flows

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.values, gradient, self.flows = state
        self.gradient = unpacked(gradient)

    dual = property(lambda self: float(self.values[0]))
    count = property(lambda self: int(self.values[1]))
    losses = property(lambda self: self.values[2:])
    vectors = property(lambda self: self.gradient[:, :-1])
    total = property(lambda self: self.gradient[:, -1])


@dataclass(frozen=True)
class Duals:
    """Lists of duals: row starts, rivals, numbers."""

    start: np.ndarray
    rivals: np.ndarray
    alpha: np.ndarray

    def matrix(self, k: int) -> sparse.csr_array:
        """As a matrix (rows, k); a copy, since SciPy may sort the lists of a matrix in place."""
        shape = len(self.start) - 1, k
        return sparse.csr_array((self.alpha.copy(), self.rivals.copy(), self.start), shape=shape)


@dataclass(frozen=True)
class Past:
    """What a partition keeps: its duals of the last two rounds."""

    now: Duals
    before: Duals


@dataclass(frozen=True)
class Carried:
    """What goes down a chain: class vectors that its steps have moved, and sums so far."""

    W: np.ndarray
    b: np.ndarray
    sums: RoundSums


@dataclass(frozen=True)
class LocalRound(ChainTask):
    """Task: losses at the class vectors ``W`` and intercepts ``b``, and steps of block ascent of the duals from there.

    The first round takes the duals from the scores at a width; the next ones make steps.
    """

    name = "ascend"
    problem: BlockProblem
    W: np.ndarray  # (k, d) in the number type of the rows
    b: np.ndarray
    share: float  # of the last change of the duals, by which the point lies beyond them
    chains: int
    proximal: float
    seed: int
    width: float
    mean: np.ndarray  # (d,), zeros unless the intercept is free

    def __reduce__(self) -> Any:  # features that no row has had so far are not sent
        rest = {name: getattr(self, name) for name in ("b", "share", "chains", "proximal", "seed", "width")}
        return _received, (self.problem, packed(self.W), packed(self.mean[None]), rest)

    def zero(self) -> RoundSums:
        """Empty sums."""
        return RoundSums.zero(*self.W.shape)

    def open(self) -> Carried:
        """The point as all chains see it."""
        return Carried(self.W.astype(np.float64), self.b, self.zero())

    def visit(self, carried: Carried, block: Block, kept: Past | None) -> tuple[Carried, Past]:
        """Losses at the point, then steps from what is carried."""
        sums = replace(carried.sums, values=carried.sums.values.copy())
        first = self._add_losses(sums, block, kept is None)
        if kept is None:
            assert first is not None
            return Carried(carried.W, carried.b, _with_duals(sums, first, block)), Past(first, first)
        start, moved = self._beyond(block, kept)
        W, b = carried.W, carried.b
        if moved is not None:
            W, b = self._moved(W, b, moved, block)
        W, b, duals = self._ascended(W, b, block, start)
        return Carried(W, b, _with_duals(sums, duals, block)), Past(duals, kept.now)

    def close(self, carried: Carried) -> RoundSums:
        """The sums of the chain."""
        return carried.sums

    def _beyond(self, block: Block, kept: Past) -> tuple[Duals, sparse.csr_array | None]:
        """The duals of the point, moved into their bounds, and by how much the coefficients move for that.

        Steps that began at the last duals would first have to make up for the way to the point, and those of the first
        partition of a chain would do so for all of it.
        """
        if self.share == 0:
            return kept.now, None
        p, n = self.problem, len(block.y)
        now, before = (one.matrix(p.n_classes) for one in (kept.now, kept.before))
        there = (now + self.share * (now - before)).tocsr()
        cap = p.C * block.weight
        row = np.repeat(np.arange(n), np.diff(there.indptr))
        inside = np.clip(there.data, 0.0, cap[row] / (p.top_k if p.loss == "top" else 1))
        if p.loss != "sum":
            total = np.bincount(row, inside, minlength=n)
            inside *= np.divide(cap, total, out=np.ones(n), where=total > cap)[row]
        moved = coefficients(there.indptr, there.indices, inside - there.data, block.y, p.n_classes)
        kept_ones = inside > 0
        start = np.concatenate([[0], np.cumsum(np.bincount(row[kept_ones], minlength=n))])
        return Duals(start, there.indices[kept_ones].astype(np.int32), inside[kept_ones]), moved

    def _moved(
        self, W: np.ndarray, b: np.ndarray, moved: sparse.csr_array, block: Block
    ) -> tuple[np.ndarray, np.ndarray]:
        """Class vectors and intercepts after coefficients have moved; as often as there are chains, see `_ascended`."""
        change, total = np.zeros(W.shape), self.chains * np.asarray(moved.sum(axis=0)).ravel()
        _add_vectors(change, self.chains * moved, block)
        change -= np.outer(total, self.mean)
        return W + change, b + self.proximal * total - change @ self.mean

    def _add_losses(self, sums: RoundSums, block: Block, wanted: bool) -> Duals | None:
        """Add losses at the point; its duals at the width if they are wanted."""
        p, found = self.problem, []
        V = np.ascontiguousarray(self.W.T)
        for at in range(0, len(block.y), CHUNK):
            part = block.cut(at, min(at + CHUNK, len(block.y)))
            scores = np.ascontiguousarray(part.X @ V, dtype=np.float64) + self.b
            for place, factor in enumerate(STRETCHES, start=2):
                F = factor * scores
                loss, _ = _ext.published_losses(
                    F, np.zeros(len(F)), part.y, np.ascontiguousarray(part.weight), p.loss, p.top_k
                )
                sums.values[place] += loss
            if wanted:
                found.append(of_scores(p, self.width).duals(part._replace(X=scores)))
        if not wanted:
            return None
        sizes = np.concatenate([np.diff(start) for start, _, _ in found])
        start = np.concatenate([[0], np.cumsum(sizes)])
        return Duals(start, np.concatenate([r for _, r, _ in found]), np.concatenate([a for _, _, a in found]))

    def _ascended(
        self, W: np.ndarray, b: np.ndarray, block: Block, duals: Duals
    ) -> tuple[np.ndarray, np.ndarray, Duals]:
        """Class vectors and intercepts after the steps, and the new duals.

        Steps of a chain count as often as there are chains: as in a problem whose caps and duals are so much larger.
        """
        p, chains = self.problem, float(self.chains)
        free = p.intercept == "free"
        given = _ext.Problem(block.y, chains * p.C * block.weight, p.n_classes, p.loss, p.top_k, 0.0, 0.0, None)
        W, b, (start, rivals, alpha) = _ext.ascend_part(
            core_rows(block.X, block.X.dtype), given, _ext.Options(tol=1.0, max_iter=PASSES, seed=self.seed),
            W=W, b=b, duals=(duals.start, duals.rivals, chains * duals.alpha),
            mean=self.mean if free else None, proximal=self.proximal,
        )  # fmt: skip
        return W, b, Duals(start, rivals, alpha / chains)


def _received(problem: BlockProblem, W: tuple[Any, ...], mean: tuple[Any, ...], rest: dict[str, Any]) -> LocalRound:
    return LocalRound(problem, unpacked(W), mean=unpacked(mean)[0], **rest)


@dataclass(frozen=True)
class Scaling(ChainTask):
    """Task: the duals that are kept, those of each class times a factor."""

    name = "scale"
    n_classes: int
    n_features: int
    factors: np.ndarray

    def zero(self) -> RoundSums:
        """Empty sums."""
        return RoundSums.zero(self.n_classes, self.n_features)

    def open(self) -> RoundSums:
        """Empty sums."""
        return self.zero()

    def visit(self, carried: RoundSums, block: Block, kept: Past | None) -> tuple[RoundSums, Past]:
        """Scale those of a partition."""
        assert kept is not None
        now = kept.now
        scaled = replace(now, alpha=np.repeat(self.factors[block.y], np.diff(now.start)) * now.alpha)
        return _with_duals(carried, scaled, block), Past(scaled, scaled)

    def close(self, carried: RoundSums) -> RoundSums:
        """The sums of the chain."""
        return carried


def _with_duals(sums: RoundSums, duals: Duals, block: Block) -> RoundSums:
    """Sums with those of the duals of a block; fresh ones, since inputs of a task may be those of others."""
    k = len(sums.flows)
    values, gradient = sums.values.copy(), sums.gradient.copy()
    values[:2] += duals.alpha.sum(), len(duals.alpha)
    c = coefficients(duals.start, duals.rivals, duals.alpha, block.y, k)
    _add_vectors(gradient[:, :-1], c, block)
    gradient[:, -1] += np.asarray(c.sum(axis=0)).ravel()
    own = np.repeat(block.y, np.diff(duals.start))
    flows = np.bincount(own * k + duals.rivals, duals.alpha, minlength=k * k).reshape(k, k)
    return RoundSums(values, gradient, sums.flows + flows)


def _add_vectors(vectors: np.ndarray, c: sparse.csr_array, block: Block) -> None:
    """Add sum_i c_i x_i' of a block to class vectors (k, d)."""
    for at in range(0, len(block.y), CHUNK):
        rows = slice(at, at + CHUNK)
        X = block.X[rows]
        vectors[...] += (X.T @ c[rows].astype(X.dtype)).T  # a sum with a sparse matrix is a new one
