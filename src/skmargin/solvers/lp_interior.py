"""Interior-point steps for the machine of Lei et al. (2015) with few parameters.

Problem (Z are the rows, with a constant feature for the free intercept; F = 1/2 ||W||_{2,p}^2, 1/p + 1/q = 1)::

    min_{W,t}  F(W) + sum_i cap_i (t_i - f_{i,y_i}),   s_il = t_i - f_il - [l != y_i] >= 0,   f_i = W z_i

One multiplier a_il > 0 for each class of each sample, the own one included: sum_l a_il = cap_i, and the a_il of the
rivals are the dual numbers alpha of the other solvers.  With V = sum_i z_i c_i' the optimum has

    V = grad F(W)   or, which is the same,   W = grad G(V),   G = 1/2 ||V||_{2,q}^2;        a_il s_il = 0

A step is Newton's for these equations with a_il s_il = mu, by the predictor and corrector of Mehrotra (1992).  Of the
two forms of the first equation the one with the exponent above 2 is linearised: its derivative is bounded.  Neither C
nor p nor the shape of the data matters much: 10 to 35 steps, each of the price of an LU factor of k d rows.
Block ascent, which has no such price, crawls where d is small and C or p is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from skmargin._core import checkpoint

from .progress import tell_gap

SHORTEST = 1e-8  # a step below this is no progress
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


def solve_interior(
    X: np.ndarray, y: np.ndarray, cap: np.ndarray, n_classes: int, p: float, *, fit_intercept: bool, tol: float,
    max_iter: int,
) -> InteriorPoint:  # fmt: skip
    """Solve to a relative gap of about ``tol`` for dense rows; see the head of this file."""
    k, n, d = n_classes, *X.shape
    q = p / (p - 1)
    mean = X.mean(axis=0) if fit_intercept else np.zeros(d)
    rows = X - mean  # the solution is the same, the numbers are better
    scale = float(np.sqrt(np.square(rows).sum(axis=1).mean())) or 1.0
    Z = np.c_[rows, np.full(n, scale)] if fit_intercept else rows
    rival = np.ones((n, k))
    rival[np.arange(n), y] = 0
    own = 1 - rival

    def vectors(a: np.ndarray) -> np.ndarray:
        alpha = a * rival  # never cap - a: what is small must stay exact
        c = alpha.sum(axis=1)[:, None] * own - alpha
        return c.T @ Z

    def mismatch(W: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Of the equation that is linearised."""
        W, V = W[:, :d], V[:, :d]
        if p >= 2:
            return class_weights(W, p)[:, None] * W - V
        return W - class_weights(V, q)[:, None] * V

    # Start: all multipliers alike, and the class vectors of the best point on the ray through their V.
    a = np.repeat(cap[:, None] / k, k, axis=1)
    V = vectors(a)
    size = half_square(V[:, :d], q)
    W = np.zeros((k, Z.shape[1]))
    W[:, :d] = (
        min(0.9, float((a * rival).sum()) / max(2 * size, 1e-300)) * class_weights(V[:, :d], q)[:, None] * V[:, :d]
    )
    F = Z @ W.T
    s = (F + rival).max(axis=1)[:, None] + max(0.1, 0.1 * float(np.abs(F).max())) - F - rival
    n_iter = 0
    while True:
        V = vectors(a)
        mu = float((a * s).mean())
        objective = half_square(W[:, :d], p) + float(cap @ (F + rival - (F * own).sum(axis=1)[:, None]).max(axis=1))
        dual = float((a * rival).sum()) - half_square(V[:, :d], q)
        tell_gap(abs(objective - dual) / max(objective, 1e-300), tol)
        unbalanced = float(np.abs(V[:, d:]).max()) if fit_intercept else 0.0
        if abs(objective - dual) <= tol * objective and unbalanced <= tol * scale * float(cap.sum()) / k:
            break
        if n_iter >= max_iter or a.size * mu <= VANISHED * objective:
            break
        checkpoint()
        n_iter += 1
        error = mismatch(W, V)
        system = _System(Z, a, s, curvature(W[:, :d], p) if p >= 2 else curvature(V[:, :d], q), p >= 2)
        dW, da, ds = system.direction(-a * s, error, V)  # predictor: straight to mu = 0
        reach = min(_longest(a, da), _longest(s, ds))
        ahead = float(((a + reach * da) * (s + reach * ds)).mean())
        dW, da, ds = system.direction(max((ahead / mu) ** 3, 1e-6) * mu - a * s - da * ds, error, V)
        length = 0.99 * min(_longest(a, da), _longest(s, ds))
        # The equation is not linear: it may be missed by a share of the gap, or less than before.
        allowed = 0.1 * np.linalg.norm(V[:, :d] if p >= 2 else W[:, :d]) * min(1.0, a.size * mu / objective)
        before = np.linalg.norm(error)
        while length > SHORTEST:
            after = np.linalg.norm(mismatch(W + length * dW, vectors(a + length * da)))
            if after <= max((1 - 0.1 * length) * before, allowed):
                break
            length *= 0.6
        if not length > SHORTEST:
            break
        W, a, s = W + length * dW, a + length * da, s + length * ds
        a *= (cap / a.sum(axis=1))[:, None]
        F = Z @ W.T
    b = scale * W[:, d] - W[:, :d] @ mean if fit_intercept else np.zeros(k)
    return InteriorPoint(W[:, :d], b, a * rival, objective, n_iter)


def _longest(x: np.ndarray, dx: np.ndarray) -> float:
    """Longest step up to 1 that keeps x >= 0."""
    falls = dx < 0
    return min(1.0, float((x[falls] / -dx[falls]).min())) if falls.any() else 1.0


class _System:
    """The linear equations of one step, reduced to dW.

    With theta = a/s, f_i = W z_i and the sum of a sample's multipliers fixed, da_i = const + L_i df_i where
    L_i = diag(theta_i) - theta_i theta_i' / sum(theta_i).  S = sum_i L_i (x) z_i z_i' is then what -V grows by.
    """

    def __init__(self, Z: np.ndarray, a: np.ndarray, s: np.ndarray, H: np.ndarray, primal: bool) -> None:
        (n, k), d = a.shape, Z.shape[1]
        self.Z, self.s, self.theta, self.H, self.primal = Z, s, a / s, H, primal
        theta, total = self.theta, self.theta.sum(axis=1)
        self.total = total
        outer = (theta[:, :, None] * Z[:, None, :]).reshape(n, k * d) / np.sqrt(total)[:, None]
        S = -(outer.T @ outer).reshape(k, d, k, d)
        for l in range(k):  # theta - theta^2/total without the difference, in which all digits can be lost
            others = np.delete(theta, l, axis=1).sum(axis=1)
            S[l, :, l, :] = (Z * (theta[:, l] * others / total)[:, None]).T @ Z
        S = S.reshape(k * d, k * d)
        self.n_penalised = H.shape[0] // k
        self.penalised = np.tile(np.arange(d) < self.n_penalised, k)
        if self.n_penalised < d:  # a constant added to all intercepts changes nothing: hold it
            at = np.flatnonzero(~self.penalised)
            S[np.ix_(at, at)] += S[at, at].min()
        if primal:
            S[np.ix_(self.penalised, self.penalised)] += H
            S[np.diag_indices(k * d)] *= 1 + 1e-15
        else:
            S[self.penalised] = H @ S[self.penalised]
            S[np.diag_indices(k * d)] += self.penalised
        self.factor = linalg.lu_factor(S, overwrite_a=True, check_finite=False)

    def direction(self, change: np.ndarray, error: np.ndarray, V: np.ndarray) -> tuple[Any, Any, Any]:
        """dW, da and ds for which a s changes by ``change`` and the equations of V and W hold."""
        d = self.n_penalised
        pull = change / self.s
        fixed = pull - self.theta * (pull.sum(axis=1) / self.total)[:, None]
        right = -fixed.T @ self.Z
        if self.primal:
            right[:, :d] -= error
        else:
            right[:, :d] = (self.H @ right[:, :d].ravel()).reshape(error.shape) - error
        right[:, d:] += V[:, d:]
        dW = linalg.lu_solve(self.factor, right.ravel(), overwrite_b=True, check_finite=False).reshape(right.shape)
        dF = self.Z @ dW.T
        ds = ((pull.sum(axis=1) + (self.theta * dF).sum(axis=1)) / self.total)[:, None] - dF
        return dW, pull - self.theta * ds, ds
