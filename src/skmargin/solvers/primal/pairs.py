"""Inverse of the Hessian of few pairs: the preconditioner of Newton's method where the smoothing is narrow.

The Hessian of a margin loss is a sum over pairs of a sample and another class,

    sum_il h_il u_il u_il',      u_il = x_i (e_l - e_{y_i})',

beside a penalty whose Hessian is within a factor of ``M`` for every feature alike.  Where the smoothing is narrow few
pairs, those close to their margin, have nearly all of ``h``.  With these pairs as they are, and the others spread
evenly over the features and added to ``M``, Woodbury's formula needs one Cholesky factor,

    M^-1 - M^-1 U (1/h + K)^-1 U' M^-1,      K_{il,jm} = x_i'x_j (e_l - e_{y_i})' M^-1 (e_m - e_{y_j}).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...rows.gram import row_blocks
from .objective import Point, PrimalObjective

Map = Callable[[np.ndarray], np.ndarray]

_LOST = 1e-4  # share of the curvature in the intercepts, which no penalty has, that they may have
_UNSEEN = 1e-2  # share of the penalty that stands for the intercepts, which it does not see


class Pairs:
    """Pairs of sample and class at a point of an objective.

    The strength of a pair is its curvature in units of the penalty's, ``h_il |x|^2 (e_l - e_y)' M^-1 (e_l - e_y)``.
    """

    def __init__(self, objective: PrimalObjective, point: Point) -> None:
        self.objective, self.point, self.tuning = objective, point, objective.tuning
        k, y = objective.n_classes, objective.own[1]
        W, _ = objective._split(point.theta)
        self.n_features, self.size = len(W), objective.row_size**2
        self.h = objective.loss.curvature(point.F, objective.own, objective.weight).pairs()
        self.penalty = objective.penalty.class_metric(W.astype(np.float64))
        self.penalty.flat[:: k + 1] += 2 * objective.eps
        # where all class vectors coincide the penalty may have no curvature at all
        self.spread = _spread(np.stack([np.bincount(y, column, minlength=k) for column in self.h.T], axis=1))
        self.penalty += self.spread * (1e-10 * self.size / self.n_features)
        inverse = _inverse(self.penalty)
        squares = np.diagonal(inverse)
        distances = (squares[:, None] + squares - 2 * inverse) * self.size
        self.strength = self.h * distances.astype(self.h.dtype)[y]

    def are_few(self) -> bool:
        """Whether few pairs have more curvature than the penalty."""
        return int(np.count_nonzero(self.strength > 1)) <= self.tuning.primal.few_pairs

    def _strongest(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples and classes of at most so many pairs; all where they are that few."""
        strong = self.strength >= (self.tuning.primal.strong_pair if self.strength.size > most else 0)
        n_strong = int(np.count_nonzero(strong))
        if n_strong > most:
            strong &= self.strength >= np.partition(self.strength[strong], n_strong - most)[n_strong - most]
        sample, other = np.nonzero(strong)
        return sample[:most], other[:most]

    def hessian(self) -> Map:
        """The Hessian's map without the samples that hardly count, where these are most of them."""
        sizes, weights = (A.sum(axis=1, dtype=np.float64) for A in (self.strength, self.h))
        order = np.argsort(sizes)
        dropped, lost = np.cumsum(sizes[order]), np.cumsum(weights[order])
        first = np.searchsorted(dropped, self.tuning.primal.strong_pair * self.n_features, side="right")
        first = min(first, np.searchsorted(lost, _LOST * lost[-1], side="right"))
        if 2 * first < len(order):
            return self.objective.hessian(self.point)
        some, at = self.objective.some_rows(self.point, np.sort(order[first:]))
        return some.hessian(at)

    def preconditioner(self, most: int) -> Map:
        """The inverse above for the strongest pairs, at most so many."""
        objective, k, y = self.objective, self.objective.n_classes, self.objective.own[1]
        sample, other = self._strongest(most)
        own, weight = y[sample], self.h[sample, other].astype(np.float64)
        dtype = objective.rows.dtype
        root = np.sqrt(weight).astype(dtype)
        spread = self.spread - _spread(np.bincount(own * k + other, weight, minlength=k * k).reshape(k, k))
        inverse = _inverse(self.penalty + spread * (self.size / self.n_features)).astype(dtype)
        intercept = _inverse(self.penalty * (_UNSEEN / self.size) + spread).astype(dtype)

        chosen, row = np.unique(sample, return_inverse=True)
        some, _ = objective.some_rows(self.point, chosen)
        E = np.zeros((len(row), k), dtype)
        E[np.arange(len(row)), other] = root
        E[np.arange(len(row)), own] = -root
        K = some.rows.gram(objective.centre)
        if len(row) > len(chosen):
            K = K[np.ix_(row, row)]
        for block in row_blocks(len(K), len(K)):
            K[block] *= E[block] @ inverse @ E.T
            if objective.fit_intercept:
                K[block] += E[block] @ intercept @ E.T
        K.flat[:: len(K) + 1] += 1
        factor = _cholesky(K)
        at, mine = row * k + other, (np.arange(len(chosen)), y[chosen])

        def metric(G: np.ndarray) -> np.ndarray:
            V = G @ inverse
            if objective.fit_intercept:
                V[-1] = G[-1] @ intercept
            return V

        def apply(G: np.ndarray) -> np.ndarray:
            V = metric(G)
            if not len(row):
                return V
            F = some.scores(V)
            u = root * cho_solve(factor, root * (F[row, other] - F[row, own]), check_finite=False)
            P = np.bincount(at, u, minlength=len(chosen) * k).reshape(-1, k).astype(G.dtype)
            P[mine] = -P.sum(axis=1)
            return V - metric(some.pull_back(P))

        return apply


def _spread(T: np.ndarray) -> np.ndarray:
    """``sum_jl T_jl (e_l - e_j)(e_l - e_j)'``."""
    T = T + T.T
    return np.diag(T.sum(axis=1)) - T


def _cholesky(K: np.ndarray) -> tuple[np.ndarray, bool]:
    """Cholesky factor in the place of ``K``; a matrix that is definite in double precision only is factored there."""
    diagonal = np.diagonal(K).copy()
    try:
        return cho_factor(K.T, overwrite_a=True, check_finite=False)  # of K it would make a copy
    except np.linalg.LinAlgError:
        K = np.triu(K, 1).astype(np.float64)  # what was not overwritten
        K += K.T
        np.fill_diagonal(K, diagonal)
        return cho_factor(K, check_finite=False)


def _inverse(A: np.ndarray) -> np.ndarray:
    """Inverse; what all classes share has no curvature and gets the mean one."""
    k = len(A)
    ridge = float(np.trace(A)) / k or 1.0
    A = A + ridge / k
    A.flat[:: k + 1] += 1e-10 * ridge
    return np.linalg.inv(A)
