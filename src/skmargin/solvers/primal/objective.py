"""The smooth primal problem over the data: scores, value, gradient, Hessian products, certificate.

    min_{W,b}  sum_i s_i loss(f_i, y_i) + penalty(W) + eps (||W||^2 + ||b||^2),      f_i = W'x_i + b

``theta`` stacks ``W`` (d, k) and, with an intercept, ``b`` as its last row.  Where the intercept is free (eps = 0) the
features are centred implicitly, ``f_i = W'(x_i - mean) + b``: the same minimum, better conditioned, and sparse rows
stay sparse. A line through ``theta`` costs one product with the rows for all its trial points, since the scores are
linear in ``theta``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..._core import _ext
from ..._numbers import WITH_SQUARE
from ..._runtime.shared_rows import window
from ..._types import Rows
from ...losses import Own, SmoothLoss
from ...regularizers import SmoothPenalty
from ...rows.gram import row_blocks, squared_norms
from ..tuning import DEFAULT, Tuning
from .rows import RowProducts

_LARGE = 30.0  # times the median variance, from which a feature has its own unit in the preconditioner
_SMALLEST = 1 / WITH_SQUARE  # length of rows up to which a ``w`` that moves a score has squares beyond double precision
_DROPPED = 1e-7  # share of the curvature that the samples left out of an explicit Hessian may have


def _largest(sizes: np.ndarray, rest: float) -> np.ndarray:
    """Places of the largest numbers, in order, such that the others sum to at most the share ``rest`` of all."""
    order = np.argsort(sizes)
    below = np.cumsum(sizes[order], dtype=np.float64)
    return np.sort(order[np.searchsorted(below, rest * below[-1], side="right") :])


@dataclass
class Point:
    """A point, its scores, and what the loss and the penalty say there."""

    theta: np.ndarray
    F: np.ndarray
    value: float
    P: np.ndarray
    penalty_gradient: np.ndarray


@dataclass
class Certificate:
    """Value of the problem at a point and a lower bound of its minimum."""

    primal: float
    dual: float

    @property
    def relative(self) -> float:
        """Relative gap; zero is a lower bound of every objective, and by rounding alone a bound exceeds the value."""
        return max(self.primal - max(self.dual, 0.0), 0.0) / max(self.primal, np.finfo(float).tiny)


class PrimalObjective:
    """The problem above for given rows, labels, weights, loss and penalty, in double precision whatever the rows'."""

    def __init__(
        self,
        X: Rows,
        y: np.ndarray,
        weight: np.ndarray,
        n_classes: int,
        loss: SmoothLoss,
        penalty: SmoothPenalty,
        fit_intercept: bool = True,
        eps: float = 0.0,
        tuning: Tuning = DEFAULT,
        n_jobs: int | None = 1,
    ) -> None:
        self.rows, self.tuning = RowProducts(X, dtype=np.float64, tuning=tuning, n_jobs=n_jobs), tuning
        self.weight, self.total = weight, float(weight.sum())
        self.own = (np.arange(len(y)), y)
        self.n_classes, self.loss, self.penalty = n_classes, loss, penalty
        self.fit_intercept, self.eps = fit_intercept, eps
        d = self.rows.shape[1]
        self.centre = np.zeros(d)
        if fit_intercept and eps == 0:
            share = weight / self.total
            parts = (np.asarray(window(X, rows).T @ share[rows]) for rows in row_blocks(*X.shape))
            self.centre = sum(parts, np.zeros(d))
        self.shape = (d + fit_intercept, n_classes)

    def with_pieces(self, loss: SmoothLoss, penalty: SmoothPenalty) -> PrimalObjective:
        """The same data with another loss and penalty."""
        other = copy.copy(self)
        other.loss, other.penalty = loss, penalty
        return other

    def astype(self, dtype: DTypeLike) -> PrimalObjective:
        """The same problem with rows and parameters in another precision."""
        other = copy.copy(self)
        other.rows, other.centre = self.rows.astype(dtype), self.centre.astype(dtype)
        return other

    def some_rows(self, point: Point, kept: np.ndarray) -> tuple[PrimalObjective, Point]:
        """The problem on some of the samples (the centre stays) and the point's place in it."""
        other = copy.copy(self)
        other.rows, other.weight = self.rows.some(kept), self.weight[kept]
        other.own = (np.arange(len(kept)), self.own[1][kept])
        F = np.asarray(point.F[kept], order="C" if self.rows.sparse else "F")
        return other, replace(point, F=F)

    @cached_property
    def row_size(self) -> float:
        """Root mean square length of the centred rows: the natural unit of ``1 / ||w||``; 1 where they vanish."""
        mean_square = float(self.weight @ squared_norms(self.rows.X)) / self.total
        size = float(np.sqrt(max(mean_square - float(self.centre @ self.centre), 0.0)))
        return size if size > _SMALLEST else 1.0

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, Any]:
        return (theta[:-1], theta[-1]) if self.fit_intercept else (theta, 0)

    def centred(self, theta: np.ndarray) -> np.ndarray:
        """Parameters for the centred features from those for the features as given."""
        return self._shifted(theta, 1)

    def uncentred(self, theta: np.ndarray) -> np.ndarray:
        """Inverse of :meth:`centred`."""
        return self._shifted(theta, -1)

    def _shifted(self, theta: np.ndarray, sign: int) -> np.ndarray:
        theta = theta.copy()
        if self.fit_intercept:
            theta[-1] += sign * (self.centre @ theta[:-1])
        return theta

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """``f_i`` of all rows (n, k); linear in ``theta``."""
        W, b = self._split(theta)
        F = self.rows.times(W)
        F += b - self.centre @ W
        return F

    def _blocks_of_rows(self) -> Iterator[tuple[slice, Own, np.ndarray]]:
        """Slices of the samples with what the loss must know of them: its temporaries stay in the cache."""
        for rows in row_blocks(len(self.weight), self.n_classes):
            yield rows, self._own(rows), self.weight[rows]

    def _own(self, rows: slice) -> Own:
        return self.own[0][: rows.stop - rows.start], self.own[1][rows]

    def pull_back(self, P: np.ndarray) -> np.ndarray:
        """Transpose of :meth:`scores`: the gradient in ``theta`` of a function whose slopes in the scores are ``P``."""
        return self._pulled_back(self.rows.transposed_times(P), P.sum(axis=0))

    def _pulled_back(self, XtP: np.ndarray, total: np.ndarray) -> np.ndarray:
        """The same from ``X'P`` and the sums of the columns of ``P``."""
        G = np.empty(self.shape, self.rows.dtype)
        W, _ = self._split(G)
        W[:] = XtP
        W -= np.outer(self.centre, total)
        if self.fit_intercept:
            G[-1] = total
        return G

    def point(self, theta: np.ndarray, F: np.ndarray | None = None) -> Point:
        """Evaluate at ``theta``; ``F`` are its scores where they are known."""
        F = self.scores(theta) if F is None else F
        value, P = 0.0, np.empty_like(F)
        for rows, own, weight in self._blocks_of_rows():
            part, P[rows] = self.loss.value_slopes(F[rows], own, weight)
            value += part
        extra, gradient = self.penalty.value_gradient(self._split(theta)[0])
        if self.eps:
            extra += self.eps * float(np.vdot(theta, theta))
        return Point(theta, F, value + extra, P, gradient)

    def slope(self, point: Point, D: np.ndarray, R: np.ndarray) -> float:
        """Derivative at the point along ``D``, whose scores are ``R``: no product with the rows."""
        slope = float(np.vdot(point.P.T, R.T)) + float(np.vdot(point.penalty_gradient, self._split(D)[0]))
        return slope + 2 * self.eps * float(np.vdot(point.theta, D))

    def gradient(self, point: Point) -> np.ndarray:
        """Gradient in ``theta``."""
        G = self.pull_back(point.P)
        W, _ = self._split(G)
        W += point.penalty_gradient
        if self.eps:
            G += 2 * self.eps * point.theta
        return G

    def hessian(self, point: Point) -> Callable[[np.ndarray], np.ndarray]:
        """The map ``V -> Hessian V`` at the point."""
        curvatures = [
            self.loss.curvature(point.F[part], self._own(part), self.weight[part]) for part in self.rows.parts()
        ]
        penalty = self.penalty.hessian(self._split(point.theta)[0])

        def product(V: np.ndarray) -> np.ndarray:
            W, b = self._split(V)
            shift = b - self.centre @ W
            steps = [lambda F, of=of: of.product(np.add(F, shift, out=F)) for of in curvatures]
            G = self._pulled_back(*self.rows.congruence(W, steps))
            self._split(G)[0][:] += penalty(W)
            if self.eps:
                G += 2 * self.eps * V
            return G

        return product

    def explicit_hessian(self, point: Point) -> np.ndarray:
        """The Hessian as a matrix over ``theta.ravel()``: for few parameters only.

        Samples without curvature, at small smoothing nearly all, are left out; the others are taken block by block.
        """
        kept = _largest(self.loss.curvature(point.F, self.own, self.weight).sizes(), _DROPPED)
        own = (np.arange(len(kept)), self.own[1][kept])
        F = point.F[kept].astype(np.float64)  # single precision would spoil the directions without curvature
        diagonal, left, right = self.loss.curvature(F, own, self.weight[kept]).factors()
        size, k = self.shape
        H, same = np.zeros((size * k, size * k)), np.zeros((size, size * k))
        for block in row_blocks(len(kept), size * k):
            X = self.rows.X[kept[block]].astype(np.float64)
            X = (X.toarray() if self.rows.sparse else X) - self.centre
            X = X.T if not self.fit_intercept else np.vstack([X.T, np.ones(len(X))])
            # along the samples, which are many, not along the classes
            a, b, c = ((X[:, None, :] * f[block].T.copy()).reshape(size * k, -1) for f in (left, right, diagonal))
            H -= a @ b.T
            same += X @ c.T  # one block a class
        H = 0.5 * (H + H.T)
        H.reshape(size, k, size, k)[:, np.arange(k), :, np.arange(k)] += same.reshape(size, size, k).transpose(2, 0, 1)
        W, _ = self._split(point.theta)
        d = W.shape[0]
        H[: d * k, : d * k] += self.penalty.explicit_hessian(W)
        H.flat[:: len(H) + 1] += 2 * self.eps
        return H

    def preconditioner(self) -> Callable[[np.ndarray], np.ndarray]:
        """Approximate inverse of the Hessian up to a factor: the same ``(B'B + 3 t I)^-1`` for every class.

        ``B`` holds some weighted rows and ``t`` is the mean eigenvalue of ``B'B``: only the few strong directions,
        which rows of correlated features have, are damped.  Woodbury's formula needs one small inverse.  Features that
        are much larger than most are taken in their own unit.  Sparse rows: the identity.
        """
        n, d = self.rows.shape
        if self.rows.sparse:
            return lambda G: G
        some = slice(0, n, max(1, n // self.tuning.primal.precondition_rows))
        weight = self.weight[some] / float(self.weight[some].sum())
        B = (self.rows.X[some] - self.centre) * np.sqrt(weight).astype(self.rows.dtype)[:, None]
        sizes = np.einsum("ij,ij->j", B, B, dtype=np.float64)
        if float(sizes.sum()) <= _SMALLEST**2:
            return lambda G: G
        unit = np.sqrt(np.maximum(1.0, sizes / (_LARGE * np.median(sizes) or 1.0))).astype(B.dtype)
        B /= unit
        shift = 3 * float(np.vdot(B, B)) / d or 1.0
        K = (B @ B.T).astype(np.float64)
        K.flat[:: len(K) + 1] += shift
        inner = np.linalg.inv(K).astype(B.dtype)

        def apply(G: np.ndarray) -> np.ndarray:
            out = G.copy()
            W, _ = self._split(out)
            W /= unit[:, None]
            W -= B.T @ (inner @ (B @ W))
            W /= shift * unit[:, None]
            return out

        return apply

    def certificate(self, point: Point, target: PrimalObjective) -> Certificate:
        """Value of the ``target`` problem at the point and a lower bound of its minimum."""
        return self.certificates(point, target)[0]

    def certificates(self, point: Point, *targets: PrimalObjective) -> list[Certificate]:
        """The same for several targets with these data.

        The slopes of this (smoother) problem's loss are a dual point of the target's.  A free intercept asks
        that they sum to zero in every class (_core/intercept/table_circulation.hpp).
        ``-X'A`` is then written over the terms of the penalty, whose conjugates are bounded one by one.
        """
        W, _ = self._split(point.theta.astype(np.float64, copy=False))
        P = point.P.astype(np.float64)  # the dual point A, each sample's times its weight
        P[self.own] = 0
        if self.fit_intercept and not self.eps:
            _ext.table_circulation(P, self.own[1], self.weight, self.loss.duals_share_a_bound)
        feasible = 1.0
        for rows, _, weight in self._blocks_of_rows():
            feasible = min(feasible, self.loss.feasible_factor(P[rows] / weight[:, None]))
        P *= feasible
        P[self.own] = -P.sum(axis=1)
        Z = -self._split(self.pull_back(P.astype(self.rows.dtype, copy=False)).astype(np.float64, copy=False))[0]
        parts = self.penalty.split(W, Z - 2 * self.eps * W)  # the rest is the share of eps ||W||^2
        class_sums = P.sum(axis=0)
        P[self.own] = 0
        return [self._bound(target, point, W, P, parts, class_sums) for target in targets]

    def _bound(
        self,
        target: PrimalObjective,
        point: Point,
        W: np.ndarray,
        P: np.ndarray,
        parts: np.ndarray,
        class_sums: np.ndarray,
    ) -> Certificate:
        primal = target.penalty.value(W) + self.eps * float(np.vdot(point.theta, point.theta))
        factor, bound = target.penalty.conjugate(parts)
        dual = -bound
        for rows, own, weight in self._blocks_of_rows():
            primal += target.loss.value(point.F[rows], own, weight)
            dual += target.loss.dual_value(P[rows] * (factor / weight)[:, None], weight)
        if self.eps:
            dual -= factor**2 * self.eps * float(np.vdot(W, W))
            if self.fit_intercept:
                dual -= factor**2 * float((class_sums**2).sum()) / (4 * self.eps)
        return Certificate(primal, dual)
