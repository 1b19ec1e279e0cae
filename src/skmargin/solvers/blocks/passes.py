"""One pass over the rows as a task: what is summed up at a point (W, b) and a width (_core/blocks/block_pass.hpp)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from skmargin._core import _ext
from skmargin.rows.blocks import LANES, Block, Task

from ..._types import Rows
from ..tuning import DEFAULT


@dataclass(frozen=True)
class BlockProblem:
    """A margin machine without its rows.

    minimise  1/2 ||W||^2 + C sum_i s_i loss(f_i),  f_i = W x_i + b
    """

    n_classes: int
    loss: str  # "max", "sum", "top" or "odm" (_core/blocks/smooth_losses.hpp)
    C: float = 1.0
    top_k: int = 1
    mu: float = 0.0
    theta: float = 0.0
    intercept: str = "free"  # or "none", or "penalized": one more weight, of the feature with the value ``constant``
    constant: float = 1.0

    @property
    def feature(self) -> float:
        """The value of the constant feature; 0 for none."""
        return {"free": 1.0, "none": 0.0, "penalized": self.constant}[self.intercept]


@dataclass(frozen=True)
class Frame:
    """How rows are seen: centred, and how far out one is beside a typical one."""

    mean: np.ndarray  # (d,) numbers of float32; zeros unless the intercept is free
    scale: np.ndarray  # (d,)
    reaches: bool = True


@dataclass
class PassSums:
    """The sums of a pass; see _core/blocks/block_pass.hpp."""

    values: np.ndarray  # losses, smoothed losses, residuals, pairs in the band, rows
    gradient: np.ndarray  # (k, D) sum of c_i x_i'
    laplacian: np.ndarray | None  # (pairs, D, D), its upper triangles

    def __getstate__(self) -> dict[str, Any]:
        """What is sent: of the gradient the columns of features that the rows have, of the Laplacian its triangles."""
        L = self.laplacian
        triangles = None if L is None else L[:, *np.triu_indices(L.shape[1])]
        return {"values": self.values, "gradient": packed(self.gradient), "laplacian": triangles}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.values, self.gradient, triangles = state["values"], unpacked(state["gradient"]), state["laplacian"]
        self.laplacian = None
        if triangles is not None:
            D = self.gradient.shape[1]
            self.laplacian = np.zeros((len(triangles), D, D))
            self.laplacian[:, *np.triu_indices(D)] = triangles

    @property
    def loss(self) -> float:
        """Sum of the losses."""
        return float(self.values[0])

    @property
    def smooth(self) -> float:
        """Sum of the smoothed losses."""
        return float(self.values[1])

    @property
    def residual(self) -> float:
        """Sum over the rows of what their duals miss."""
        return float(self.values[2])

    @property
    def pairs(self) -> float:
        """Pairs of classes that rows in the band couple."""
        return float(self.values[3])


@dataclass(frozen=True)
class SmoothPass(Task[PassSums]):
    """Task: the sums of a pass at the point ``W`` (k, D), whose last column belongs to the constant feature."""

    name = "pass"
    problem: BlockProblem
    frame: Frame
    W: np.ndarray
    width: float
    hessian: float = 0.0  # width of the curvature; 0 for none
    single: bool = True  # float32
    _core: list[Any] = field(default_factory=list, repr=False, compare=False)

    def __reduce__(self) -> Any:  # the core's object is made anew elsewhere
        given = self.problem, self.frame, self.W, self.width, self.hessian, self.single
        return SmoothPass, given

    @property
    def lanes(self) -> int:
        """Fewer where the sums are large."""
        k, D = self.W.shape
        size = 8 * (k * D + (k * (k - 1) // 2 * D * D if self.hessian else 0))
        return max(1, min(LANES, DEFAULT.blocks.piece_bytes // size))

    def zero(self) -> PassSums:
        """Empty sums."""
        k, D = self.W.shape
        laplacian = np.zeros((k * (k - 1) // 2, D, D)) if self.hessian else None
        return PassSums(np.zeros(5), np.zeros((k, D)), laplacian)

    def add(self, sums: PassSums, block: Block, base: np.ndarray | None = None) -> None:
        """Add a block; ``base`` (rows, k) is added to its scores."""
        cap = self.problem.C * block.weight
        self.core().add(*arrays(block.X), block.y, cap, base, sums.values, sums.gradient, sums.laplacian)

    def duals(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The duals of a block at this point: row starts, rivals, numbers."""
        return self.core().duals(*arrays(block.X), block.y, self.problem.C * block.weight)

    def core(self) -> Any:
        """The compiled side of it."""
        if not self._core:
            p = self.problem
            self._core.append(
                _ext.BlockPass(
                    np.ascontiguousarray(self.W), self.frame.mean, self.frame.scale, constant=p.feature, loss=p.loss,
                    top_k=p.top_k, mu=p.mu, theta=p.theta, width=float(self.width), hessian=float(self.hessian),
                    single=self.single, reaches=self.frame.reaches,
                )
            )  # fmt: skip
        return self._core[0]

    def at(self, **changes: Any) -> SmoothPass:
        """The same pass but for these changes."""
        return replace(self, **changes, _core=[])


def packed(A: np.ndarray) -> tuple[Any, ...]:
    """A matrix without its columns of zeros, to be sent."""
    kept = np.flatnonzero(A.any(axis=0))
    return (A,) if len(kept) == A.shape[1] else (A[:, kept], kept.astype(np.int32), A.shape[1])


def unpacked(sent: tuple[Any, ...]) -> np.ndarray:
    """The matrix."""
    if len(sent) == 1:
        return sent[0]
    values, kept, width = sent
    A = np.zeros((len(values), width), dtype=values.dtype)
    A[:, kept] = values
    return A


def arrays(X: Rows) -> tuple[Any, ...]:
    """The rows as the core takes them."""
    return (X.indptr, X.indices, X.data) if sparse.issparse(X) else (np.asarray(X),)
