"""Inner problems of the optimal margin distribution machine by a semismooth Newton method (linear, few parameters).

The inner problem Q (odm.py) has kinks where rivals tie.  A proximal term in the duals zeta of its lower part, with
centre zbar and weight sigma_i = s kappa_i, kappa = 1/(2 cap), smooths exactly these; the upper part is smooth already::

    phi(W) = 1/2 ||W||^2 + sum_i theta_i(d_i) + sum_i mu cap_i (d_{i,r_i} - 1 - theta)_+^2
    theta_i(d) = max_{z >= 0} (1 - theta) S - kappa/2 S^2 - d'z - sigma/2 ||z - zbar||^2,    S = sum z
    z_l = (v_l - nu)_+,   v_l = zbar_l + (1 - theta - d_l)/sigma,   sum_l z_l = s nu

phi is piecewise quadratic: Newton steps with a line search, Hessian = identity + sum_i M_i (x) x_i x_i', by Cholesky.
Then zbar = z, s falls, and P - D at (z, beta = 2 mu cap (d_r - 1 - theta)_+) is the certificate.  The intercept is the
weight of one more, constant feature with a small proximal term of its own; for the certificate the duals are made a
circulation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from skmargin._core import _ext

from .dual_blocks import TINY
from .kernel_blocks import coefficients
from .odm import Descent, Effort, LinearPoint, Machine, best_of

FIRST, FALL, LEAST = 1.0, 0.1, 1e-3  # of the proximal weight s: first, from step to step, smallest
PARAMETERS, ENTRIES = 400, 2e7  # up to which the Newton system is cheap
STRONG = 5.0  # mean of cap_i ||x_i||^2 from which it is cheaper than block ascent
CONSTANT = 1e-3  # proximal weight of the intercept, times s


class NewtonInner:
    """Inner problems of a linear machine with dense rows."""

    def __init__(self, X: Any, machine: Machine, start: LinearPoint | None = None) -> None:
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        self.machine, self.n_iter = machine, 0
        (n, d), k = X.shape, machine.n_classes
        self.kappa = 1 / (2 * machine.cap)
        self.mean, self.constant = np.zeros(d), 0.0
        if machine.fit_intercept:
            self.mean = X.mean(axis=0)
            X = X - self.mean
            self.constant = float(np.sqrt((X * X).sum() / n)) or 1.0
            X = np.column_stack([X, np.full(n, self.constant)])
        self.X, self.d = X, d
        self.V, self.zeta, self.alpha = np.zeros((k, X.shape[1])), np.zeros((n, k)), np.zeros((n, k))
        if start is not None:
            self.V[:, :d] = start.W
            if machine.fit_intercept:
                self.V[:, d] = (start.b + start.W @ self.mean) / self.constant
            first, rival, alpha = start.duals
            ratio = np.repeat(machine.cap / start.cap, np.diff(first))
            self.zeta[np.repeat(np.arange(n), np.diff(first)), rival] = np.maximum(0, alpha * ratio)
        self._measure()

    def _measure(self) -> None:
        self.scores = self.X @ self.V.T
        self.half_norm = 0.5 * float(np.vdot(self.V[:, : self.d], self.V[:, : self.d]))

    def solve(self, mu: float, rivals: np.ndarray, tol: float, share: float, reference: float, max_iter: int) -> bool:
        """Minimise Q until its gap is at most max(tol Q, share (reference - Q)); whether that was reached."""
        s = FIRST if mu == 0 else FIRST * FALL
        best, failures = np.inf, 0
        while True:
            self._minimize_phi(mu, rivals, s, tol, max_iter)
            self._certify(mu, rivals)
            if self.gap <= max(tol * self.objective, share * (reference - self.objective)):
                return True
            failures = failures + 1 if self.gap > 0.5 * best else 0
            best = min(best, self.gap)
            if failures == 5 or self.n_iter >= max_iter:
                return False
            s = max(LEAST, FALL * s)

    def _minimize_phi(self, mu: float, rivals: np.ndarray, s: float, tol: float, max_iter: int) -> None:
        penalty = np.ones(self.X.shape[1])
        centre = np.zeros_like(self.V)
        if self.machine.fit_intercept:
            penalty[self.d] = CONSTANT * s
            centre[:, self.d] = self.V[:, self.d]
        zbar, F = self.zeta, self.X @ self.V.T
        phi, Q, parts = self._losses(F, zbar, mu, rivals, s)
        phi += 0.5 * float((penalty * (self.V - centre) ** 2).sum())
        while self.n_iter < max_iter:
            G = penalty * (self.V - centre) + Q.T @ self.X
            # The gap of this smooth problem is at most half the squared gradient in the metric of its penalty.
            if 0.5 * float((G * G / penalty).sum()) <= 0.01 * tol * phi:
                break
            step = -self._newton(G, penalty, parts, s)
            self.n_iter += 1
            slope = float(np.vdot(G, step))
            dF = self.X @ step.T
            t = 1.0
            while True:
                V = self.V + t * step
                value, Q, parts = self._losses(F + t * dF, zbar, mu, rivals, s)
                value += 0.5 * float((penalty * (V - centre) ** 2).sum())
                if value <= phi + 1e-4 * t * slope or t < 1e-10:
                    break
                t *= 0.5
            gain = phi - value
            if gain < 0:
                _, Q, parts = self._losses(F, zbar, mu, rivals, s)
                break
            self.V, phi, F = V, value, F + t * dF
            if gain <= 1e-16 * phi:
                break
        self.zeta = parts[0]

    def _losses(
        self, F: np.ndarray, zbar: np.ndarray, mu: float, rivals: np.ndarray, s: float
    ) -> tuple[float, np.ndarray, Any]:
        """Sum of the smoothed losses, its gradient in the scores, and what the Hessian needs."""
        machine, i = self.machine, np.arange(len(F))
        sigma = s * self.kappa
        own = F[i, machine.y]
        hinge = 1 - machine.theta - own[:, None] + F
        v = zbar + hinge / sigma[:, None]
        v[i, machine.y] = -np.inf
        # The root of sum (v - nu)_+ = s nu is the largest of the means over the j largest v.
        partial = np.cumsum(-np.sort(-v, axis=1)[:, :-1], axis=1) / (s + np.arange(1, F.shape[1]))
        nu = np.maximum(0, partial.max(axis=1))
        z = np.maximum(0, v - nu[:, None])
        S = z.sum(axis=1)
        hinge[i, machine.y] = 0
        value = (z * hinge).sum(axis=1) - 0.5 * self.kappa * S**2 - 0.5 * sigma * ((z - zbar) ** 2).sum(axis=1)
        Q = z.copy()
        Q[i, machine.y] = -S
        over = np.zeros(len(F))
        if mu > 0:
            over = np.maximum(0, own - F[i, rivals] - 1 - machine.theta)
            value = value + mu * machine.cap * over**2
            beta = 2 * mu * machine.cap * over
            Q[i, machine.y] += beta
            Q[i, rivals] -= beta
        return float(value.sum()), Q, (z, z > 0, over > 0, mu, rivals)

    def _newton(self, G: np.ndarray, penalty: np.ndarray, parts: Any, s: float) -> np.ndarray:
        """The Newton step for the gradient ``G``."""
        _, inside, over, mu, rivals = parts
        k, D = G.shape
        moving = np.flatnonzero(inside.any(axis=1) | over)
        M = self._curvature(moving, inside, over, mu, rivals, s)
        H = np.zeros((k, D, k, D))
        X = self.X[moving]
        for j in range(k):
            for l in range(j, k):
                weight = M[:, j, l]
                used = np.flatnonzero(weight)
                if len(used) == 0:
                    continue
                Xu = X if len(used) == len(X) else X[used]
                H[j, :, l, :] = (Xu * weight[used, None]).T @ Xu
                H[l, :, j, :] = H[j, :, l, :].T
        square = H.reshape(k * D, k * D)
        square[np.diag_indices(k * D)] += np.tile(penalty, k)
        return cho_solve(cho_factor(square, overwrite_a=True, check_finite=False), G.ravel()).reshape(k, D)

    def _curvature(
        self, rows: np.ndarray, inside: np.ndarray, over: np.ndarray, mu: float, rivals: np.ndarray, s: float
    ) -> np.ndarray:
        """Second derivatives M_i (k, k) of the smoothed losses in the scores."""
        y, i = self.machine.y[rows], np.arange(len(rows))
        a = inside[rows].astype(np.float64)
        j = a.sum(axis=1)
        scale = 1 / (s * self.kappa[rows])
        M = -(scale / (s + j))[:, None, None] * a[:, :, None] * a[:, None, :]
        k = a.shape[1]
        M[:, np.arange(k), np.arange(k)] += scale[:, None] * a
        own = -(scale * s / (s + j))[:, None] * a  # rows of M sum to zero
        M[i, y, :] += own
        M[i, :, y] += own
        M[i, y, y] -= own.sum(axis=1)
        if mu > 0:
            r, w = rivals[rows], 2 * mu * self.machine.cap[rows] * over[rows]
            M[i, y, y] += w
            M[i, r, r] += w
            M[i, y, r] -= w
            M[i, r, y] -= w
        return M

    def _certify(self, mu: float, rivals: np.ndarray) -> None:
        """Objective Q and its gap at duals that satisfy every constraint."""
        machine, n, d = self.machine, len(self.zeta), self.d
        self._measure()
        i, F, alpha = np.arange(n), self.scores, self.zeta.copy()
        gamma = F[i, machine.y] - F[i, machine.rivals(F)]
        loss = np.maximum(0, 1 - machine.theta - gamma) ** 2
        if mu > 0:
            over = np.maximum(0, F[i, machine.y] - F[i, rivals] - 1 - machine.theta)
            loss += mu * over**2
            alpha[i, rivals] -= 2 * mu * machine.cap * over
        self.objective = self.half_norm + float(machine.cap @ loss)
        self.alpha = alpha.copy()
        if machine.fit_intercept:
            _ext.kernel_balance(alpha, machine.y, machine.cap, ("band", 1, mu, machine.theta, rivals))
        W = coefficients(alpha, machine.y).T @ self.X[:, :d]
        S, beta = np.maximum(0, alpha).sum(axis=1), np.maximum(0, -alpha).sum(axis=1)
        dual = (1 - machine.theta) * S - 0.5 * self.kappa * S**2 - (1 + machine.theta) * beta
        if mu > 0:
            dual -= 0.5 * self.kappa / mu * beta**2
        self.gap = max(0.0, self.objective - float(dual.sum()) + 0.5 * float(np.vdot(W, W)))

    def point(self) -> LinearPoint:
        """Where the last solve ended."""
        machine, W = self.machine, self.V[:, : self.d].copy()
        b = self.V[:, self.d] * self.constant - W @ self.mean if machine.fit_intercept else np.zeros(machine.n_classes)
        duals = sparse.csr_array(self.alpha)
        arrays = duals.indptr.astype(np.int64), duals.indices.astype(np.int32), duals.data
        return LinearPoint(W, b, arrays, b + W @ self.mean, machine.y, machine.cap)


def solve_newton(X: Any, machine: Machine, effort: Effort, start: LinearPoint | None = None) -> Descent:
    """The linear machine; ``start`` belongs to the same rows and labels.  Tiny problems are solved to rounding."""
    polish = X.shape[0] * X.shape[1] * machine.n_classes <= TINY
    return best_of(machine, effort, polish, start, lambda first: NewtonInner(X, machine, first))


def newton_pays(X: Any, machine: Machine) -> bool:
    """Few parameters, and losses that are strong against the penalty: there block ascent is slow."""
    n, d = X.shape
    if n * d * machine.n_classes <= TINY:
        return True
    if sparse.issparse(X) or d * machine.n_classes > PARAMETERS or n * machine.n_classes**2 > ENTRIES:
        return False
    return bool(machine.cap @ np.einsum("ij,ij->i", X, X) >= STRONG * n)
