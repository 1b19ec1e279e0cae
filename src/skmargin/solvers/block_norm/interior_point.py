"""Interior-point steps for the machine of Lei et al. (2015) with few parameters.

Problem (Z are the rows, with a constant feature for the free intercept; F = 1/2 ||W||_{2,p}^2, 1/p + 1/q = 1)::

    min_{W,t}  F(W) + sum_i cap_i (t_i - f_{i,y_i}),   s_il = t_i - f_il - [l != y_i] >= 0,   f_i = W z_i

One multiplier a_il > 0 for each class of each sample, the own one included: sum_l a_il = cap_i, and the a_il of the
rivals are the dual numbers alpha of the other solvers.  A smooth loss (`margin_loss`) of xi_i = t_i - f_{i,y_i} has no
multiplier of the own class: the sum S_i of the rivals' is cap_i phi'(xi_i), which a step linearises, so that
dS_i / dxi_i stands where a/s of the own class does for the hinge.  With V = sum_i z_i c_i' the optimum has

    V = grad F(W)   or, which is the same,   W = grad G(V),   G = 1/2 ||V||_{2,q}^2;        a_il s_il = 0

A step is Newton's for these equations with a_il s_il = mu, by the predictor and corrector of Mehrotra (1992).  Of the
two forms of the first equation the one with the exponent above 2 is linearised: its derivative is bounded.  For large p
it is nearly zero where a class vector is too short, and steps are too long; there the other form takes over.  Neither C
nor p nor the shape of the data matters much: 10 to 35 steps, each at the cost of a Cholesky factor of k d rows.
Block ascent, whose passes are cheap, is slow where d is small and C or p is large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from ..._runtime.progress import report, report_gap
from ..tuning import DEFAULT, Tuning
from .margin_loss import HINGE, MarginLoss

SHORTEST = 1e-8  # length of a step that is no progress
VANISHED = 1e-30  # sum of a s, relative to the objective, at which only rounding is left to iterate on


@dataclass(frozen=True)
class InteriorPoint:
    """A point near the optimum; the certificate is left to the caller."""

    W: np.ndarray  # (k, d)
    b: np.ndarray  # (k,)
    alpha: np.ndarray  # (n, k) dual numbers, zero for the own class
    objective: float
    n_iter: int


def half_square(M: np.ndarray, r: float) -> float:
    """``1/2 (sum_l ||m_l||^r)^(2/r)``."""
    norms = np.linalg.norm(M, axis=1)
    top = norms.max()
    return 0.5 * top**2 * float(((norms / top) ** r).sum()) ** (2 / r) if top > 0 else 0.0


def class_weights(M: np.ndarray, r: float) -> np.ndarray:
    """The gradient of `half_square` is row l of M times weight l."""
    norms = np.linalg.norm(M, axis=1)
    top = norms.max()
    if top == 0:
        return np.ones(len(M))
    shares = np.maximum(norms / top, 1e-300)
    weights: np.ndarray = (shares / (shares**r).sum() ** (1 / r)) ** (r - 2)
    return weights


def curvature(M: np.ndarray, r: float) -> np.ndarray:
    """Second derivative of `half_square` for r >= 2, as a matrix of size k d."""
    k, d = M.shape
    weights = class_weights(M, r)
    squares = np.maximum(np.square(M).sum(axis=1), 1e-300)
    H = np.zeros((k, d, k, d))
    for l in range(k):
        H[l, :, l, :] = weights[l] * (np.eye(d) + (r - 2) / squares[l] * np.outer(M[l], M[l]))
    slope = (weights[:, None] * M).ravel()
    return H.reshape(k * d, k * d) - (r - 2) / max(float(weights @ squares), 1e-300) * np.outer(slope, slope)


class Root:
    """J with J J' the second derivative of `half_square` for r >= 2.

    With the class weights D, the projection Pi on the m_l and E on sqrt(D) M, which lies within,
    J = sqrt(D) (I + (sqrt(r - 1) - 1) (Pi - E)).
    """

    def __init__(self, M: np.ndarray, r: float) -> None:
        norms = np.maximum(np.linalg.norm(M, axis=1), 1e-300)
        self.weights = np.sqrt(class_weights(M, r))
        self.rays = M / norms[:, None]
        self.shares = self.weights * norms / max(float(np.linalg.norm(self.weights * norms)), 1e-300)
        self.excess = np.sqrt(r - 1) - 1

    def times(self, B: np.ndarray) -> np.ndarray:
        """J B for one vector or m of them, of shape (k, d) or (k, d, m)."""
        return self._weighted(self._bent(B))

    def transposed_times(self, B: np.ndarray) -> np.ndarray:
        """J'B, as `times`."""
        return self._bent(self._weighted(B))

    def _weighted(self, B: np.ndarray) -> np.ndarray:
        return (B.T * self.weights).T

    def _bent(self, B: np.ndarray) -> np.ndarray:
        along = np.einsum("ld,ld...->l...", self.rays, B)
        along -= np.multiply.outer(self.shares, self.shares @ along)
        return B + np.einsum("ld,l...->ld...", self.excess * self.rays, along)


def solve_interior(
    X: np.ndarray, y: np.ndarray, cap: np.ndarray, n_classes: int, p: float, *, fit_intercept: bool, tol: float,
    max_iter: int, tuning: Tuning = DEFAULT, loss: MarginLoss = HINGE,
) -> InteriorPoint:  # fmt: skip
    """Solve to a relative gap of about ``tol`` for dense rows; see the head of this file."""
    problem = _Problem(X, y, cap, n_classes, p, fit_intercept, tuning, loss)
    W, a, s = problem.start()
    found, n_iter = _Found(W, a), 0
    while True:
        V, F = problem.vectors(a), problem.Z @ W.T
        objective = problem.objective(W, F)
        gap = problem.gap(objective, a, V)
        report_gap(gap / max(objective, 1e-300), tol)
        found.add(W, a, objective, gap, n_iter)
        vanished = problem.complementarity(a, s) <= VANISHED * objective
        if gap <= tol * objective or n_iter >= min(max_iter, found.progress_at + tuning.common.patience) or vanished:
            break
        report()
        n_iter += 1
        length, dW, da, ds = problem.step(W, V, a, s, p < 2)
        if p > 2 and not length > SHORTEST:
            other = problem.step(W, V, a, s, True)
            length, dW, da, ds = max((length, dW, da, ds), other, key=lambda step: step[0])
        if not length > SHORTEST:
            break
        W, a, s = W + length * dW, problem.normalised(a + length * da), s + length * ds
    return problem.published(found, n_iter)


class _Found:
    """The point with the lowest objective, the multipliers with the smallest gap, and when the gap last fell."""

    def __init__(self, W: np.ndarray, a: np.ndarray) -> None:
        self.W, self.objective, self.a, self.gap = W, np.inf, a, np.inf
        self.progress_at, self._mark = 0, np.inf

    def add(self, W: np.ndarray, a: np.ndarray, objective: float, gap: float, n_iter: int) -> None:
        if gap < 0.9 * self._mark:
            self._mark, self.progress_at = gap, n_iter
        if objective < self.objective:
            self.W, self.objective = W, objective
        if gap < self.gap:
            self.a, self.gap = a, gap


class _Problem:
    """The problem in centred coordinates of the span of the rows, with a constant feature for the intercept."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, cap: np.ndarray, n_classes: int, p: float, fit_intercept: bool,
        tuning: Tuning, loss: MarginLoss,
    ) -> None:  # fmt: skip
        n, d = X.shape
        self.y, self.loss = y, loss
        self.cap, self.k, self.p, self.q, self.fit_intercept = cap, n_classes, p, p / (p - 1), fit_intercept
        self.tuning = tuning
        self.mean = X.mean(axis=0) if fit_intercept else np.zeros(d)
        rows = X - self.mean  # the solution is the same, the numbers are better
        self.axes = None
        if d > n:  # the class vectors lie in the span of the rows
            self.axes, rows = _axes(rows, tuning.common.least_block)
        self.d = min(n, d)  # features, without the constant
        self.scale = float(np.sqrt(np.square(rows).sum(axis=1).mean())) or 1.0
        self.Z = np.c_[rows, np.full(n, self.scale)] if fit_intercept else rows
        self.rival = np.ones((n, n_classes))
        self.rival[np.arange(n), y] = 0
        self.own = 1 - self.rival
        self.margin = loss.target * self.rival
        everywhere = np.ones((n, n_classes), dtype=bool)
        self.barrier = self.rival > 0 if loss.smooth else everywhere  # where a s is to vanish, and s to stay positive
        self.positive = self.rival > 0 if loss.name == "squared_hinge" else everywhere  # where a is to stay so

    def start(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All multipliers alike, and the class vectors of the best point on the ray through their V; W, a and s."""
        d = self.d
        a = np.repeat(self.cap[:, None] / self.k, self.k, axis=1)
        V = self.vectors(a)
        size = half_square(V[:, :d], self.q)
        W = np.zeros((self.k, self.Z.shape[1]))
        best = min(0.9, float((a * self.rival).sum()) / max(2 * size, 1e-300))
        W[:, :d] = best * class_weights(V[:, :d], self.q)[:, None] * V[:, :d]
        F = self.Z @ W.T
        s = (F + self.margin).max(axis=1)[:, None] + max(0.1, 0.1 * float(np.abs(F).max())) - F - self.margin
        if self.loss.smooth:
            S = (self.cap * self.loss.slope(self._excess(s)))[:, None]
            a = S / (self.k - 1) * self.rival + (self.cap[:, None] - S) * self.own
        return W, a, s

    def _excess(self, s: np.ndarray) -> np.ndarray:
        """``xi`` of the samples, which is s of their own class."""
        return (s * self.own).sum(axis=1)

    def complementarity(self, a: np.ndarray, s: np.ndarray) -> float:
        """The sum of what is to vanish."""
        return float((a * s).sum(where=self.barrier))

    def normalised(self, a: np.ndarray) -> np.ndarray:
        """Multipliers of the hinge with their sums exact."""
        return a if self.loss.smooth else a * (self.cap / a.sum(axis=1))[:, None]

    def linearised(self, a: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Curvature of each smooth loss, and by how much the sum of the rivals' multipliers misses its slope."""
        return self.loss.linearised((a * self.rival).sum(axis=1), self._excess(s), self.cap)

    def _reach(self, a: np.ndarray, da: np.ndarray, s: np.ndarray, ds: np.ndarray) -> float:
        """Longest step up to 1 that keeps a and s positive."""
        falls = (-da[self.positive] / a[self.positive]).max(), (-ds[self.barrier] / s[self.barrier]).max()
        return 1 / max(1.0, float(max(falls)))

    def vectors(self, a: np.ndarray) -> np.ndarray:
        """V of multipliers."""
        alpha = a * self.rival  # never cap - a: what is small must stay exact
        c = alpha.sum(axis=1)[:, None] * self.own - alpha
        return c.T @ self.Z

    def objective(self, W: np.ndarray, F: np.ndarray) -> float:
        """The primal objective of class vectors with the scores F."""
        losses = self.loss.value(self.loss.excess(F, self.y))
        return half_square(W[:, : self.d], self.p) + float(self.cap @ losses)

    def gap(self, objective: float, a: np.ndarray, V: np.ndarray) -> float:
        """About the duality gap: a sum of c that is not zero is made up by duals, each at the cost of a margin."""
        dual = float(self.loss.dual((a * self.rival).sum(axis=1), self.cap).sum())
        dual -= half_square(V[:, : self.d], self.q)
        return abs(objective - dual) + float(np.abs(V[:, self.d :]).sum()) / self.scale

    def mismatch(self, W: np.ndarray, V: np.ndarray, linked: bool) -> np.ndarray:
        """Of W = grad G(V), where ``linked``, or V = grad F(W)."""
        W, V = W[:, : self.d], V[:, : self.d]
        if not linked:
            return class_weights(W, self.p)[:, None] * W - V
        return W - class_weights(V, self.q)[:, None] * V

    def step(
        self, W: np.ndarray, V: np.ndarray, a: np.ndarray, s: np.ndarray, linked: bool
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """How far to go, and the directions of W, a and s."""
        d, total = self.d, self.complementarity(a, s)
        mu = total / float(self.barrier.sum())
        error, missed = self.mismatch(W, V, linked), np.zeros(len(a))
        slack = np.where(self.barrier, s, 1.0)
        theta = a / slack
        if self.loss.smooth:
            curvature, missed = self.linearised(a, s)
            theta = np.where(self.barrier, theta, curvature[:, None])
        system = _System(
            self.Z, theta, W[:, :d], V, self.p, error, self.vectors, linked, self.tuning.common.product_work
        )
        if system.factor is None:
            return 0.0, W, a, s

        def direction(change: np.ndarray, solves: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return system.direction(np.where(self.barrier, change / slack, missed[:, None]), solves)

        dW, da, ds = direction(-a * s, 1)  # predictor: straight to mu = 0
        reach = self._reach(a, da, s, ds)
        ahead = self.complementarity(a + reach * da, s + reach * ds)
        dW, da, ds = direction(max((ahead / total) ** 3, 1e-6) * mu - a * s - da * ds)
        length = 0.99 * self._reach(a, da, s, ds)
        return self._searched(length, W, a, s, (dW, da, ds), linked), dW, da, ds

    def _searched(
        self, length: float, W: np.ndarray, a: np.ndarray, s: np.ndarray, step: tuple[np.ndarray, ...], linked: bool
    ) -> float:
        """A shorter step where equations that are not linear are missed by more than before.

        They may be missed by what costs a share of the gap: of a loss the square of it over the curvature.
        """
        d, (dW, da, ds), total = self.d, step, self.complementarity(a, s)
        V = self.vectors(a)
        sizes = float(np.linalg.norm(V[:, :d])), float(np.linalg.norm(W[:, :d]))
        allowed = 0.1 * sizes[linked] * min(1.0, total / max(sizes[0] * sizes[1], 1e-300))
        before = float(np.linalg.norm(self.mismatch(W, V, linked)))

        def cost(a: np.ndarray, s: np.ndarray) -> float:
            curvature, missed = self.linearised(a, s)
            return float((missed**2 / np.maximum(curvature, 1e-300)).sum())

        cost_before = cost(a, s) if self.loss.smooth else 0.0
        while length > SHORTEST:
            a_new, share = a + length * da, 1 - 0.1 * length
            after = float(np.linalg.norm(self.mismatch(W + length * dW, self.vectors(a_new), linked)))
            if after <= max(share * before, allowed) and (
                not self.loss.smooth or cost(a_new, s + length * ds) <= max(share * cost_before, 0.1 * total)
            ):
                break
            length *= 0.6
        return length

    def published(self, found: _Found, n_iter: int) -> InteriorPoint:
        """The best point, in the coordinates of the features."""
        W, d = found.W, self.d
        features = W[:, :d] if self.axes is None else W[:, :d] @ self.axes.T
        b = self.scale * W[:, d] - features @ self.mean if self.fit_intercept else np.zeros(self.k)
        return InteriorPoint(features, b, found.a * self.rival, found.objective, n_iter)


def _axes(rows: np.ndarray, panel: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal axes (d, n) of the span of n rows, and the rows in these coordinates: QR, panel by panel."""
    n, d = rows.shape
    A, panels = np.array(rows.T, order="F"), []
    for j in range(0, n, panel):
        end = min(n, j + panel)
        reflectors, tau, _, _ = lapack.dgeqrf(A[j:, j:end])
        panels.append((j, reflectors, tau))
        A[j:, j:end] = np.triu(reflectors)
        if end < n:
            A[j:, end:] = lapack.dormqr("L", "T", reflectors, tau, A[j:, end:], panel * n)[0]
        report()
    axes = np.eye(d, n, order="F")
    for j, reflectors, tau in reversed(panels):
        axes[j:, j:] = lapack.dormqr("L", "N", reflectors, tau, axes[j:, j:], panel * n)[0]
        report()
    return axes, A[:n].T


class _System:
    """The linear equations of one step, reduced to as many unknowns as W has numbers.

    With theta = a/s (or what stands for it, see the head), f_i = W z_i and the sum of a sample's multipliers fixed,
    da_i = const + L_i df_i where L_i = diag(theta_i) - theta_i theta_i' / sum(theta_i).
     S = sum_i L_i (x) z_i z_i' is then what -V grows by.
    Where V = grad F(W) is linearised, with the second derivative J J', the matrix is J J' + S and the unknown dW; where
    W = grad G(V) is, the matrix is I + J'S J and the unknown x in dW = J x - error.  Both are positive definite, and a
    Cholesky factor in units of the diagonal keeps the digits of features and classes of all scales.
    """

    def __init__(
        self, Z: np.ndarray, theta: np.ndarray, W: np.ndarray, V: np.ndarray, p: float, error: np.ndarray,
        vectors: Callable[[np.ndarray], np.ndarray], linked: bool, product_work: float,
    ) -> None:  # fmt: skip
        (n, k), d, width = theta.shape, W.shape[1], Z.shape[1]
        self.Z, self.V, self.error, self.vectors = Z, V, error, vectors
        self.d, self.primal = d, p >= 2
        if self.primal and linked:  # from W = grad G(V) to equations in V: the derivatives of F and G are inverse
            W = class_weights(V[:, :d], p / (p - 1))[:, None] * V[:, :d]
        self.root = Root(W, p) if self.primal else Root(V[:, :d], p / (p - 1))
        if self.primal and linked:
            self.error = self.root.times(self.root.transposed_times(error))
        self.theta = theta
        self.total = total = theta.sum(axis=1)
        self.lead = np.arange(n), theta.argmax(axis=1)
        S = np.zeros((k, width, k, width))
        own = np.zeros((k, width, width))
        # theta - theta^2/total without the difference, in which all digits can be lost
        inner = theta * (theta @ (1 - np.eye(k))) / total[:, None]
        size = max(1, int(product_work / (k * width * max(k * width, 1000))))  # to make a number costs as much
        for start in range(0, n, size):
            part = slice(start, start + size)
            outer = (theta[part, :, None] * Z[part, None, :]).reshape(-1, k * width) / np.sqrt(total[part])[:, None]
            S -= (outer.T @ outer).reshape(S.shape)
            for l in range(k):
                own[l] += (Z[part] * inner[part, l, None]).T @ Z[part]
            report()
        for l in range(k):
            S[l, :, l, :] = own[l]
        if d < width:  # a constant added to all intercepts changes nothing: hold it
            S[:, d, :, d] += np.diagonal(S[:, d, :, d]).min()
        if self.primal:
            S[:, :d, :, :d] += curvature(W, p).reshape(k, d, k, d)
        else:
            for _ in range(2):  # S is symmetric
                S[:, :d] = self.root.transposed_times(S[:, :d].reshape(k, d, -1)).reshape(k, d, k, width)
                S = S.transpose(2, 3, 0, 1)
            S[:, :d, :, :d] += np.eye(k * d).reshape(k, d, k, d)
        A = S.reshape(k * width, k * width)
        self.unit = 1 / np.sqrt(np.maximum(np.diagonal(A), 1e-300))
        A *= self.unit * self.unit[:, None]
        self.factor = _cholesky(A)

    def direction(self, pull: np.ndarray, solves: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """dW, da and ds for which da + theta ds is ``pull`` and the equations of V and W hold."""
        x = np.zeros_like(self.V)
        for _ in range(solves):  # the second for what rounding has left
            missed = self._missed(x, pull).ravel() * self.unit
            x += (lapack.dpotrs(self.factor, missed, lower=1)[0] * self.unit).reshape(x.shape)
        dW = self._dW(x)
        return dW, *self._follow(dW, pull)

    def _dW(self, x: np.ndarray) -> np.ndarray:
        if self.primal:
            return x
        return np.concatenate([self.root.times(x[:, : self.d]) - self.error, x[:, self.d :]], axis=1)

    def _follow(self, dW: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a and s change by with W.

        The largest theta of a sample can be all of cap over next to nothing.  It has to meet no difference of scores,
        and its da is what keeps the sum: otherwise rounding there is larger than the other multipliers.
        """
        dF = self.Z @ dW.T
        dF -= dF[self.lead][:, None]
        ds = ((pull.sum(axis=1) + (self.theta * dF).sum(axis=1)) / self.total)[:, None] - dF
        da = pull - self.theta * ds
        da[self.lead] = 0
        da[self.lead] = -da.sum(axis=1)
        return da, ds

    def _missed(self, x: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """By how much x misses the equations, in their own terms: products with S have lost the small numbers."""
        d, root = self.d, self.root
        dV = self.vectors(self._follow(self._dW(x), pull)[0])
        if self.primal:
            penalised = dV[:, :d] - self.error - root.times(root.transposed_times(x[:, :d]))
        else:
            penalised = root.transposed_times(dV[:, :d]) - x[:, :d]
        return np.concatenate([penalised, self.V[:, d:] + dV[:, d:]], axis=1)


def _cholesky(A: np.ndarray) -> np.ndarray | None:
    """The factor of a matrix with unit diagonal that is positive definite but for rounding; None if it is not."""
    for lift in (1e-15, 1e-14, 1e-13, 1e-12, 1e-11):
        A[np.diag_indices(len(A))] = 1 + lift
        factor, failed = lapack.dpotrf(A.T, lower=1, clean=0)
        if not failed:
            return np.asarray(factor)
    return None
