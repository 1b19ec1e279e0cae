"""The optimal margin distribution machine by L-BFGS on a smoothed objective (linear machines).

The largest score of the rivals is replaced by ``tau log sum_{l != y} exp(f_l / tau)``, too large by at most
``tau log(k - 1)``; tau falls in stages, first with mu = 0 (convex), then with mu::

    gradient in the scores   Q_{i,y_i} = g_i,   Q_il = -g_i P_il,     g_i = 2 cap_i (mu high_i - low_i)

with P the soft-max weights of the rivals and low, high the two hinge parts.  The exact objective T is computed after
each stage and the best point is kept.  Statement of the problem: outer.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from ..._types import Rows
from ..dual.state import DualLists
from .inner_linear import LinearPoint
from .outer import Limits, OdmProblem, OdmSolution

TEMPERATURES = (0.1, 0.03, 0.01, 0.003)


def smoothed(problem: OdmProblem, F: np.ndarray, mu: float, tau: float) -> tuple[float, np.ndarray]:
    """Smoothed loss of the scores ``F`` (n, k) and its gradient."""
    i = np.arange(len(F))
    G = F / tau
    G[i, problem.y] = -np.inf
    top = G.max(axis=1)
    P = np.exp(G - top[:, None])
    mass = P.sum(axis=1)
    P /= mass[:, None]
    gamma = F[i, problem.y] - tau * (top + np.log(mass))
    low = np.maximum(0, 1 - problem.theta - gamma)
    high = np.maximum(0, gamma - 1 - problem.theta)
    slope = 2 * problem.cap * (mu * high - low)
    P *= -slope[:, None]
    P[i, problem.y] = slope
    return float(problem.cap @ (low * low + mu * high * high)), P


def solve_odm_smooth(X: Rows, problem: OdmProblem, limits: Limits, start: LinearPoint | None = None) -> OdmSolution:
    """The best of ``n_init`` descents: the first from ``start`` or from zero, the others from random vectors."""
    best = _descend(X, problem, limits, start)
    rng = np.random.default_rng(limits.seed)
    for _ in range(limits.n_init - 1 if problem.mu > 0 else 0):
        W = rng.normal(scale=np.sqrt(np.mean(best.point.W**2)), size=best.point.W.shape)
        end = _descend(X, problem, limits, replace(best.point, W=W))
        best = min(best, end, key=lambda descent: descent.objective)
    return best


def _descend(X: Rows, problem: OdmProblem, limits: Limits, start: LinearPoint | None) -> OdmSolution:
    smooth = _Smoothed(X, problem)
    theta = smooth.vector(start)
    stages = [(problem.mu, tau) for tau in TEMPERATURES]
    if start is None and problem.mu > 0:
        stages = [(0.0, tau) for tau in TEMPERATURES] + stages
    best, objectives, n_iter, converged = theta, [smooth.true_objective(theta)], 0, False
    for mu, tau in stages:
        theta, steps, converged = smooth.minimize(theta, mu, tau, limits, n_iter)
        n_iter += steps
        T = smooth.true_objective(theta)
        if mu == problem.mu and objectives[-1] >= T:
            best = theta
            objectives.append(T)
        if n_iter >= limits.max_iter:
            break
    return OdmSolution(smooth.point(best), np.array(objectives), None, np.nan, n_iter, converged)


class _Smoothed:
    """The smoothed objective as a function of one vector: the class vectors, then the intercepts.

    Centred features change the intercept only; sparse rows stay as they are.
    """

    def __init__(self, X: Rows, problem: OdmProblem) -> None:
        self.problem = problem
        self.k, self.d = problem.n_classes, X.shape[1]
        self.size = self.k * self.d
        centred = problem.fit_intercept and not sparse.issparse(X)
        self.mean = np.asarray(X.mean(axis=0), np.float64) if centred else np.zeros(self.d)
        self.X = X.astype(np.float64) - self.mean if centred else X
        # Curvatures at most: parameters in these units do not depend on the scales of the features.
        squares = problem.cap @ (self.X.multiply(self.X) if sparse.issparse(X) else np.square(self.X))
        ones = np.full(self.k * problem.fit_intercept, 2 * problem.cap.sum())
        self.unit = np.sqrt(np.concatenate([np.tile(1 + 2 * squares, self.k), ones]))

    def vector(self, start: LinearPoint | None) -> np.ndarray:
        theta = np.zeros(self.size + self.k * self.problem.fit_intercept)
        if start is not None:
            theta[: self.size] = start.W.ravel()
            theta[self.size :] = (start.b + start.W @ self.mean)[: len(theta) - self.size]
        return theta

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = theta[self.size :] if self.problem.fit_intercept else np.zeros(self.k)
        return theta[: self.size].reshape(self.k, self.d), b

    def scores(self, theta: np.ndarray) -> np.ndarray:
        W, b = self.split(theta)
        return self.X @ W.T + b

    def half_norm(self, theta: np.ndarray) -> float:
        return 0.5 * float(np.vdot(theta[: self.size], theta[: self.size]))

    def true_objective(self, theta: np.ndarray) -> float:
        return self.half_norm(theta) + self.problem.loss(self.scores(theta))

    def minimize(
        self, theta: np.ndarray, mu: float, tau: float, limits: Limits, done: int
    ) -> tuple[np.ndarray, int, bool]:
        """L-BFGS; returns the end, the number of iterations, and whether it ended because it gained no more."""
        size = self.half_norm(theta) + smoothed(self.problem, self.scores(theta), mu, tau)[0]

        def value_and_gradient(u: np.ndarray) -> tuple[float, np.ndarray]:
            v = u / self.unit
            value, Q = smoothed(self.problem, self.scores(v), mu, tau)
            gradient = v.copy()
            gradient[: self.size] += (self.X.T @ Q).T.ravel()
            if self.problem.fit_intercept:
                gradient[self.size :] = Q.sum(axis=0)
            gradient /= self.unit * size
            return (self.half_norm(v) + value) / size, gradient

        options = {
            "maxiter": max(1, limits.max_iter - done),
            "maxfun": 10 * limits.max_iter,
            "maxcor": limits.tuning.common.lbfgs_memory,
            "ftol": 1e-3 * limits.tol,
            "gtol": 0.0,
        }
        out = minimize(value_and_gradient, theta * self.unit, method="L-BFGS-B", jac=True, options=options)
        return out.x / self.unit, int(out.nit), out.status == 0

    def point(self, theta: np.ndarray) -> LinearPoint:
        W, b = self.split(theta)
        duals = DualLists.zero(len(self.problem.y))
        return LinearPoint(W, b - W @ self.mean, duals, b.copy(), self.problem.y, self.problem.cap)
