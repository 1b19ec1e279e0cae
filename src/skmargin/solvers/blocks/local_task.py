"""What a partition does in an accelerated local round (local_rounds.py), as pure tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

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

    values: np.ndarray  # of the duals, then of the losses at each stretch
    gradient: np.ndarray  # (k, d + 1) sum of c_i x_i', and of c_i
    flows: np.ndarray  # (k, k) duals of each class against each rival

    @classmethod
    def zero(cls, k: int, d: int) -> RoundSums:
        """No rows."""
        return cls(np.zeros(1 + len(STRETCHES)), np.zeros((k, d + 1)), np.zeros((k, k)))

    def __getstate__(self) -> tuple[Any, ...]:  # features that the rows do not have are not sent
        return self.values, packed(self.gradient), self.flows

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.values, gradient, self.flows = state
        self.gradient = unpacked(gradient)

    dual = property(lambda self: float(self.values[0]))
    losses = property(lambda self: self.values[1:])
    vectors = property(lambda self: self.gradient[:, :-1])
    total = property(lambda self: self.gradient[:, -1])


@dataclass(frozen=True)
class Duals:
    """Lists of duals: row starts, rivals, numbers."""

    start: np.ndarray
    rivals: np.ndarray
    alpha: np.ndarray


@dataclass(frozen=True)
class Carried:
    """What goes down a chain: class vectors that its steps have moved, and sums so far."""

    W: np.ndarray
    b: np.ndarray
    sums: RoundSums


@dataclass(frozen=True)
class ChainPast:
    """What the rows of a chain add to the class vectors and to the sum of the coefficients, in the last two rounds."""

    now: np.ndarray  # (k, d + 1)
    before: np.ndarray


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

    def open(self, kept: ChainPast | None) -> Carried:
        """The point as the chain sees it: the quadratic bound has its weight around the chain's own part of it."""
        W, b = self.W.astype(np.float64), self.b
        if kept is not None:
            move = self.chains * self.share * (kept.now - kept.before)
            total = move[:, -1]
            change = move[:, :-1] - np.outer(total, self.mean)
            W -= change
            b = b - (self.proximal * total - change @ self.mean)
        return Carried(W, b, self.zero())

    def visit(self, carried: Carried, block: Block, kept: Duals | None) -> tuple[Carried, Duals]:
        """Losses at the point, then steps from what is carried."""
        sums = replace(carried.sums, values=carried.sums.values.copy())
        W, b, duals = carried.W, carried.b, kept
        first = self._add_losses(sums, block, kept is None)
        if duals is None:
            duals = first
        else:
            W, b, duals = self._ascended(carried, block, duals)
        assert duals is not None
        return Carried(W, b, _with_duals(sums, duals, block)), duals

    def close(self, carried: Carried, kept: ChainPast | None) -> tuple[RoundSums, ChainPast]:
        """The sums of the chain, which are also its part of the class vectors."""
        now = carried.sums.gradient
        return carried.sums, ChainPast(now, now if kept is None else kept.now)

    def _add_losses(self, sums: RoundSums, block: Block, wanted: bool) -> Duals | None:
        """Add losses at the point; its duals at the width if they are wanted."""
        p, found = self.problem, []
        V = np.ascontiguousarray(self.W.T)
        for at in range(0, len(block.y), CHUNK):
            part = block.cut(at, min(at + CHUNK, len(block.y)))
            scores = np.ascontiguousarray(part.X @ V, dtype=np.float64) + self.b
            for place, factor in enumerate(STRETCHES, start=1):
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

    def _ascended(self, carried: Carried, block: Block, duals: Duals) -> tuple[np.ndarray, np.ndarray, Duals]:
        """Class vectors and intercepts after the steps, and the new duals.

        Steps of a chain count as often as there are chains: as in a problem whose caps and duals are so much larger.
        """
        p, chains = self.problem, float(self.chains)
        free = p.intercept == "free"
        given = _ext.Problem(block.y, chains * p.C * block.weight, p.n_classes, p.loss, p.top_k, 0.0, 0.0, None)
        W, b, (start, rivals, alpha) = _ext.ascend_part(
            core_rows(block.X, block.X.dtype), given, _ext.Options(tol=1.0, max_iter=PASSES, seed=self.seed),
            W=carried.W, b=carried.b, duals=(duals.start, duals.rivals, chains * duals.alpha),
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

    def open(self, kept: ChainPast | None) -> RoundSums:
        """Empty sums."""
        return self.zero()

    def visit(self, carried: RoundSums, block: Block, kept: Duals | None) -> tuple[RoundSums, Duals]:
        """Scale those of a partition."""
        assert kept is not None
        scaled = replace(kept, alpha=np.repeat(self.factors[block.y], np.diff(kept.start)) * kept.alpha)
        return _with_duals(carried, scaled, block), scaled

    def close(self, carried: RoundSums, kept: ChainPast | None) -> tuple[RoundSums, ChainPast]:
        """The sums of the chain, which are also its part of the class vectors."""
        return carried, ChainPast(carried.gradient, carried.gradient)


def _with_duals(sums: RoundSums, duals: Duals, block: Block) -> RoundSums:
    """Sums with those of the duals of a block; fresh ones, since inputs of a task may be those of others."""
    k = len(sums.flows)
    values, gradient = sums.values.copy(), sums.gradient.copy()
    values[0] += duals.alpha.sum()
    c = coefficients(duals.start, duals.rivals, duals.alpha, block.y, k)
    for at in range(0, len(block.y), CHUNK):
        rows = slice(at, at + CHUNK)
        X = block.X[rows]
        gradient[:, :-1] += (X.T @ c[rows].astype(X.dtype)).T
    gradient[:, -1] += np.asarray(c.sum(axis=0)).ravel()
    own = np.repeat(block.y, np.diff(duals.start))
    flows = np.bincount(own * k + duals.rivals, duals.alpha, minlength=k * k).reshape(k, k)
    return RoundSums(values, gradient, sums.flows + flows)
