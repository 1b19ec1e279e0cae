"""What machines with a smooth primal problem share: factors of the rows, start, solver, certificate."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .._runtime.threads import blas_threads
from ..losses import SmoothLoss
from ..regularizers import SmoothPenalty
from ..rows.gram import gram, resolve_gamma, value_steps
from ..solvers.certificate import UNIT, Evaluation, Losses, at_origin, evaluate, far_origin, minus
from ..solvers.primal.adam import random_start, run_adam
from ..solvers.primal.driver import PrimalState, minimise
from ..solvers.primal.factor import GramFactor, WideRows, factorise, wide_rows
from ..solvers.primal.objective import PrimalObjective
from ._base import GOAL, MOST_CAP, Problem, check_caps, check_finite
from ._scores import KernelScores


class PrimalMachine(KernelScores):
    """A machine whose objective is a smooth loss plus a penalty on the class vectors; a subclass names the two."""

    objective_: float
    dual_gap_: float | None
    n_iter_: int
    _weight_seen: float  # of all rows, against which partial_fit sets new ones
    _model_state = ("_gamma", "_weight_seen")

    @abstractmethod
    def _loss(self) -> SmoothLoss:
        """The loss."""

    @abstractmethod
    def _penalty(self) -> SmoothPenalty:
        """The penalty on the class vectors."""

    def _is_exact(self) -> bool:
        return bool(self.solver != "adam")

    def _fit_problem(self, problem: Problem, old: PrimalMachine | None = None) -> None:
        """Fit to checked rows in memory."""
        check_caps(float(self.alpha), np.ones(1), MOST_CAP, "alpha")
        with blas_threads(1), np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # refused at the end
            gap = self._solve(problem, old)
        if not self._has_no_certificate() and gap > self.tol:
            self._warn_not_converged(gap)

    def _solve(self, given: Problem, old: PrimalMachine | None) -> float:
        """Solve, publish, and return the certified gap."""
        origin = None
        if self._is("linear") and self.fit_intercept and self.eps == 0 and self._is_exact():
            origin = far_origin(given.X)
        problem = given if origin is None else given._replace(X=minus(given.X, origin))
        factor, rows, columns = self._factor(problem)
        objective = PrimalObjective(
            rows,
            problem.y,
            problem.weight,
            problem.n_classes,
            self._loss(),
            self._penalty(),
            bool(self.fit_intercept),
            self.eps,
            self._tuning,
            self.n_jobs,
        )
        theta = self._start(old, problem, factor, objective, origin)
        if self.solver == "adam":
            state = self._run_adam(objective, theta)
        else:
            state = minimise(
                objective,
                theta,
                solver=self.solver,
                tol=GOAL * float(self.tol),
                max_iter=self.max_iter,
                verbose=self.verbose,
            )
        self._publish(state, objective, problem, factor)
        if origin is not None:
            self.intercept_ = at_origin(self.coef_, self.intercept_, origin)
        penalty = objective.penalty
        del objective, factor, rows, theta  # the evaluation needs the rows as they were given only
        return self._certify(state, penalty, given, columns)

    def _run_adam(self, objective: PrimalObjective, theta: np.ndarray | None) -> PrimalState:
        rng = check_random_state(self.random_state)
        if theta is not None:
            theta = objective.uncentred(theta)
        elif self.init == "random":
            theta = random_start(objective.shape, objective.rows.shape[1], rng)
        else:
            theta = np.zeros(objective.shape)
        return run_adam(
            objective, theta, learning_rate=self.learning_rate, batch_size=self.batch_size,
            tol=GOAL * float(self.tol), max_iter=self.max_iter, rng=rng, verbose=self.verbose,
        )  # fmt: skip

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (theta[:-1], theta[-1]) if self.fit_intercept else (theta, np.zeros(theta.shape[1], theta.dtype))

    def _factor(self, problem: Problem) -> tuple[GramFactor | WideRows | None, Any, np.ndarray | None]:
        """A factor of the Gram matrix for kernels and for dense rows with many more features than samples; the rows.

        Of kernels also the values of all rows with those that span the solution.
        """
        X = problem.X
        self._gamma = resolve_gamma(self.gamma, X, problem.weight, self.kernel)
        if self.kernel == "linear":
            n, d = X.shape
            if sparse.issparse(X) or 2 * n > d or self.solver == "adam" or not X.any():
                return None, X, None
            return *wide_rows(X, self._tuning), None
        if self.kernel == "precomputed":
            X = X[:, problem.kept]
        self._indefinite = self._is_indefinite(X)
        K = gram(X, None, self.kernel, self._gamma, self.degree, self.coef0, dtype=np.float64)
        given = callable(self.kernel) or self.kernel == "precomputed"  # the others are computed in double here
        factor = factorise(np.array(K, order="C"), X.dtype if given else np.float64)
        return factor, factor.R, K[:, factor.pivots]

    def _start(
        self,
        old: PrimalMachine | None,
        problem: Problem,
        factor: GramFactor | WideRows | None,
        objective: PrimalObjective,
        origin: np.ndarray | None,
    ) -> np.ndarray | None:
        """The last solution in the coordinates of the new problem, where it has the same classes and features."""
        if (
            old is None
            or not np.array_equal(old.classes_, self.classes_)
            or old.n_features_in_ != self.n_features_in_
            or hasattr(old, "coef_") != (self.kernel == "linear")
        ):
            return None
        theta = np.zeros(objective.shape)
        W, b = self._split(theta)
        if not isinstance(factor, GramFactor):
            old._fill(theta, factor)
            if origin is not None:
                b += all_classes(old.coef_) @ origin
        else:
            scores = old._scores(problem.X[factor.pivots]) - old.intercept_
            W[:] = factor.start(all_classes(scores.T).T)
            if self.fit_intercept:
                b[:] = all_classes(old.intercept_[:, None])[:, 0]
        return objective.centred(theta)

    def _fill(self, theta: np.ndarray, wide: WideRows | None = None) -> None:
        """Write the published solution into ``theta``."""
        W, b = self._split(theta)
        coef = all_classes(self.coef_).T
        W[:] = coef if wide is None else wide.start(coef)
        b[:] = all_classes(self.intercept_[:, None])[:, 0]

    def _publish(
        self, state: PrimalState, objective: PrimalObjective, problem: Problem, factor: GramFactor | WideRows | None
    ) -> None:
        """Publish the solution without what all classes share, of which only eps knows."""
        theta = objective.uncentred(state.theta)
        theta -= theta.mean(axis=1, keepdims=True)
        self._set_solution(theta, problem, factor)
        check_finite(self)

    def _certify(self, state: PrimalState, penalty: Any, problem: Problem, columns: np.ndarray | None) -> float:
        """Objective and gap of what is published; returns the gap."""
        if columns is not None:
            found = self._evaluated_kernel(problem, columns)
        else:
            W, b = all_classes(self.coef_).T, all_classes(self.intercept_[:, None])[:, 0]
            value = penalty.value(W) + self.eps * float(np.vdot(W, W) + b @ b)
            found = evaluate(problem.X, self.coef_, self.intercept_, self._sums(problem), value, self.tol, self.n_jobs)
        check_finite(self, found.objective)
        # What rounding does to the losses it does to their slopes, which make the bound.
        self.objective_, self.dual_gap_ = found.objective, found.gap(state.certificate.dual - found.rounding)
        self.n_iter_ = max(1, state.n_iter)
        return self.dual_gap_

    def _sums(self, problem: Problem) -> Losses:
        """The losses of a block of scores: their sum, and the largest that it is within the rounding of the scores."""
        loss = self._loss()

        def losses(rows: slice, F: np.ndarray, error: np.ndarray) -> tuple[float, float]:
            own, weight = (np.arange(len(F)), problem.y[rows]), problem.weight[rows]
            value = loss.value(F, own, weight)
            F[own] -= 2 * error
            return value, loss.value(F, own, weight)

        return losses

    def _evaluated_kernel(self, problem: Problem, K: np.ndarray) -> Evaluation:
        """The machine with a kernel as it is published, from the kernel of all rows with the support vectors."""
        W, b = all_classes(self.dual_coef_.T).T, all_classes(self.intercept_[:, None])[:, 0]
        own = np.searchsorted(problem.kept, self.support_)
        inner = W.T @ (K[own] @ W)
        steps = UNIT * (len(W) + value_steps(self.kernel, problem.X.shape[1], self.degree))
        error = steps * (np.abs(K).max(axis=1) * np.abs(W).sum(axis=0).max() + np.abs(b).max())
        value, largest = self._sums(problem)(slice(0, len(K)), K @ W + b, error)
        distances = self._penalty()
        penalty = distances.value_of_gram(inner) + self.eps * float(np.trace(inner) + b @ b)
        longest = float(np.square(np.sqrt(np.maximum(np.diagonal(K[own]), 0.0)) @ np.abs(W)).max())
        lost = (
            distances.degree * steps * longest / max(float(np.trace(inner)), np.finfo(float).tiny)
        )  # digits of the penalty
        return Evaluation(value + penalty, max(0.0, largest - value) + min(1.0, lost) * penalty)

    def _set_solution(self, theta: np.ndarray, problem: Problem, factor: GramFactor | WideRows | None) -> None:
        W, b = self._split(theta)
        self.__dict__.pop("_adam", None)
        self._weight_seen = float(problem.weight.sum())
        if not isinstance(factor, GramFactor):
            self._set_linear((W if factor is None else factor.vectors(W)).T, b)
        else:
            self._set_kernel(problem, factor.coefficients(W), b, factor.pivots)


def all_classes(rows: np.ndarray) -> np.ndarray:
    """One row a class from the published form, which holds the difference where there are two classes."""
    return np.vstack([-rows / 2, rows / 2]) if len(rows) == 1 else rows
