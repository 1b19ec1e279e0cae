"""What the machines of Abe (2017) share: kernels, two-class machines for many classes, coefficients and scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import linalg, sparse
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .._runtime.progress import counting, print_line
from .._types import Rows
from ..rows.basis import METHODS as BASES
from ..rows.basis import basis_rows
from ..rows.gram import KERNELS, check_symmetric, gram, gram_diagonal, resolve_gamma, row_blocks
from ..solvers.certificate import ACCURATE, exact_scores
from ..solvers.two_class.pairwise import METHODS, Subproblem, combine, n_machines, over_threads, subproblems
from ..solvers.two_class.ridge_spectrum import dense, score_rounding
from ..solvers.two_class.row_sources import Features, KernelBlocks, Source, products
from ._base import COUNT, JOBS, MarginClassifier, Problem, check_finite, warn_of_fit

LOST_SCORES = 1e-4  # rounding of scores from which on a user is told


class Basis(NamedTuple):
    """Rows that span the machines, and what maps coefficients of the features to those of the rows (None: nothing)."""

    rows: np.ndarray
    to_rows: np.ndarray | None


WORSE = 1e-6  # share of the terms of an objective, or of one, by which rounding may take it above that of zero


class Prepared(NamedTuple):
    """Training data, for kernels with the rows sorted by class, and what the two-class machines are fitted on."""

    problem: Problem
    gamma: float
    source: Source
    iterative: bool
    subproblems: list[Subproblem]
    basis: Basis | None = None  # None: all rows, or the features themselves


class PairwiseMachines(MarginClassifier):
    """Base of the classifiers made of two-class machines ``f(x) = sum_j a_j K(x, z_j) + b`` or ``w'x + b``."""

    _model_state = ("_fitted_rows",)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither"), "array-like"],
        "degree": [Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "multi_class": [StrOptions(set(METHODS))],
        "basis": [StrOptions({"auto", "all", *BASES})],
        "n_basis": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": COUNT,
        "n_jobs": JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # -- training data ------------------------------------------------------------------------------------------------

    def _prepare(self, problem: Problem, penalty: str) -> Prepared:
        """Sort checked rows by class (kernels), resolve the width, and choose the basis."""
        X = problem.X
        if self.kernel == "precomputed":
            X = self._square(X, problem.kept)
        order = np.argsort(problem.y, kind="stable")
        if self.kernel == "linear":
            order = np.arange(len(problem.y))  # its coefficients are not of rows: no copy of X
        if (np.diff(order) < 0).any():
            X = X[order[:, None], order] if self.kernel == "precomputed" else X[order]
        problem = Problem(X, problem.y[order], problem.weight[order], problem.n_classes, problem.kept[order])
        given = np.asarray(self.gamma).ravel()[0] if np.ndim(self.gamma) else self.gamma
        gamma = resolve_gamma(given, X, problem.weight, self.kernel)
        parts = subproblems(problem.y, problem.n_classes, self.multi_class)
        return self._with_source(problem, gamma, parts, penalty)

    def _with_source(self, problem: Problem, gamma: float, parts: list[Subproblem], penalty: str) -> Prepared:
        largest = max(len(subproblem.rows) for subproblem in parts)
        if self.kernel == "linear":
            iterative = min(largest, problem.X.shape[1]) > self._tuning.common.direct_rows
            if iterative:
                self._print_line(f"{largest} rows and {problem.X.shape[1]} features: iterative solver.")
            return Prepared(problem, gamma, Features(problem.X, self._tuning), iterative, parts)
        basis = self.basis
        if basis == "auto":
            basis = "all"
            if largest > self._tuning.common.direct_rows:
                basis = "random"
                self._print_line(
                    f"{largest} rows in a two-class problem: basis of {self.n_basis} random rows (basis='auto')."
                )
        if basis == "all":
            if largest > self._tuning.common.direct_rows:
                self._print_line(f"{largest} rows in a two-class problem: iterative solver.")
            blocks = KernelBlocks(lambda rows, columns: self._block(problem.X, rows, columns, gamma))
            return Prepared(problem, gamma, blocks, largest > self._tuning.common.direct_rows, parts)
        chosen, Phi = self._basis_features(problem, gamma, basis, penalty)
        return Prepared(problem, gamma, Features(Phi, self._tuning), False, parts, chosen)

    def _block(self, X: Rows, rows: np.ndarray, columns: np.ndarray, gamma: float) -> np.ndarray:
        if self.kernel == "precomputed":
            return np.asarray(X[rows[:, None], columns], dtype=np.float64)
        left = X[rows]
        K = self._gram(left, None if columns is rows else X[columns], gamma)
        if columns is rows and callable(self.kernel):
            check_symmetric(K)
        return K

    def _basis_features(self, problem: Problem, gamma: float, basis: str, penalty: str) -> tuple[Basis, np.ndarray]:
        """The basis, and the kernel of all rows with it; where the kernel norm is the penalty, times ``K^(-1/2)``."""
        X = problem.X
        everything = np.arange(X.shape[0])
        kernel = {"kernel": self.kernel, "gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        rows = basis_rows(
            X,
            min(self.n_basis, X.shape[0]),
            basis,
            check_random_state(self.random_state),
            lambda columns: self._block(X, everything, columns, gamma),
            **kernel,
        )
        Phi = self._block(X, everything, rows, gamma)
        if penalty != "kernel":
            return Basis(rows, None), Phi
        w, Q = linalg.eigh(Phi[rows])
        kept = w > 1e-10 * w[-1]
        to_rows = Q[:, kept] / np.sqrt(w[kept])
        return Basis(rows, to_rows), Phi @ to_rows

    def _square(self, X: Rows, kept: np.ndarray) -> np.ndarray:
        X = X.toarray() if sparse.issparse(X) else X
        return X[:, kept] if len(kept) < X.shape[1] else X

    def _print_line(self, message: str) -> None:
        if self.verbose:
            print_line(f"{type(self).__name__}: {message}")

    def _of_all_subproblems(self, work: Callable[[Any], Any], items: list[Any], n_rows: int) -> list[Any]:
        """``work`` of each subproblem, on threads; the largest has ``n_rows`` rows."""
        return over_threads(counting(work, len(items)), items, self.n_jobs, n_rows, self._tuning)

    # -- the fitted machines ------------------------------------------------------------------------------------------

    def _publish(self, prepared: Prepared, coef: list[np.ndarray], intercept: list[np.ndarray]) -> None:
        """Store the coefficients of the machines: those of problem t are ``coef[t]`` (rows or features, machines)."""
        problem, k = prepared.problem, prepared.problem.n_classes
        for name in ("coef_", "dual_coef_", "support_", "n_support_", "_fitted_rows"):  # of a fit with another kernel
            self.__dict__.pop(name, None)
        self.gamma_ = prepared.gamma
        self.intercept_ = np.concatenate(intercept)
        check_finite(self, *coef)
        if self.kernel == "linear":
            self.coef_ = np.ascontiguousarray(np.hstack(coef).T)
            return
        if (basis := prepared.basis) is not None:  # one row a machine
            stacked = np.hstack(coef)
            self.dual_coef_ = np.ascontiguousarray((stacked if basis.to_rows is None else basis.to_rows @ stacked).T)
            self.support_ = problem.kept[basis.rows]
            self._fitted_rows = None if self.kernel == "precomputed" else problem.X[basis.rows]
            return
        self.support_ = problem.kept
        self.n_support_ = np.bincount(problem.y, minlength=k)
        self._fitted_rows = None if self.kernel == "precomputed" else problem.X
        if len(prepared.subproblems) == 1:
            self.dual_coef_ = np.ascontiguousarray(coef[0].T)
            return
        self.dual_coef_ = np.empty((k - 1, len(problem.y)))
        ends = np.cumsum(self.n_support_)
        starts = ends - self.n_support_
        for (i, j), a in zip(combinations(range(k), 2), coef, strict=True):  # rows are sorted by class
            self.dual_coef_[j - 1, starts[i] : ends[i]] = a[: self.n_support_[i], 0]
            self.dual_coef_[i, starts[j] : ends[j]] = a[self.n_support_[i] :, 0]

    def _published_objective(
        self, prepared: Prepared, coef: list[np.ndarray], intercept: list[np.ndarray], known: list[float]
    ) -> tuple[float, float]:
        """Sum of the objectives of the machines as they are published, from their scores and lengths.

        Also which part of the scores is rounding of kernel values, beside what tells the rows apart.

        The kernel matrices are not made again where the solver's objectives, ``known``, cannot be far off: rounding of
        scores that is nothing beside margins of one, times the weight of the losses that see it.
        """
        total, lost, linear = 0.0, 0.0, isinstance(prepared.source, Features)
        C = float(getattr(self, "C_", getattr(self, "C", 0.0)))
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused by the caller
            longest = 0.0 if linear else self._longest(prepared)
            for subproblem, a, b, value in zip(prepared.subproblems, coef, intercept, known, strict=True):
                scale = 1 + C * float(prepared.problem.weight[subproblem.rows].sum())
                if not linear and scale * len(a) * score_rounding(a.T, longest).max() <= ACCURATE:
                    total += value
                    continue
                weight = prepared.problem.weight[subproblem.rows]
                F, square, ridge = self._evaluated(prepared, subproblem.rows, weight, a, b)
                if not linear:
                    lost = max(lost, float((score_rounding(a.T, longest) / _spread(F)).max()))
                d, terms = subproblem.Y * F, (weight[:, None], square, ridge, b)
                objective = self._objective(d, *terms)
                self._check_better_than_zero(objective, np.maximum(objective, self._objective(-d, *terms)), weight)
                total += float(np.sum(objective))
        return total, lost

    def _check_better_than_zero(self, objective: np.ndarray, size: np.ndarray, weight: np.ndarray) -> None:
        """Refuse solutions of a linear system that are worse than none: rounding has taken all of their digits.

        Iterations that were cut short may be worse, too, and warn.
        """
        if self.n_iter_ >= self.max_iter > 1:
            return
        nothing = np.zeros(1)
        zero = float(self._objective(np.zeros((len(weight), 1)), weight[:, None], nothing, nothing, nothing)[0])
        if (objective - zero > WORSE * np.maximum(size, 1.0)).any():
            raise ValueError(
                f"{type(self).__name__}: rounding has taken all digits of the solution, whose objective is above that "
                "of zero; scale the features, or make its parameters and the weights less extreme."
            )

    def _evaluated(
        self, prepared: Prepared, rows: np.ndarray, weight: np.ndarray, coef: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores of the rows of a problem (n, m), ``||w||^2`` and the squared length of its machines' coefficients.

        Kernels: a row of weight two is two basis points, which share its coefficient.
        """
        source = prepared.source
        if isinstance(source, Features):
            step = self._tuning.common.block_of(len(coef))  # rows at a time: they are copied
            blocks = [rows[at : at + step] for at in range(0, len(rows), step)]
            F = np.concatenate([exact_scores(source.rows(part), coef.T, b) for part in blocks])
            if _lost(F, coef, np.sqrt(source.squared_norms[rows].max())):
                F = np.concatenate([_wide_product(source.rows(part), coef) for part in blocks]) + b
            square = np.einsum("ij,ij->j", coef, coef)
            return F, square, square
        K = source.square(rows)
        F, ridge = K @ coef, np.einsum("ij,ij->j", coef, coef / weight[:, None])
        if _lost(F, coef, np.abs(K.diagonal()).max()):
            F = _wide_product(K, coef)
        return F + b, np.einsum("ij,ij->j", coef, F), ridge

    @abstractmethod
    def _objective(
        self, d: np.ndarray, weight: np.ndarray, square: np.ndarray, ridge: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        """Objectives of machines with the margins ``d`` (n, m), weights (n, 1), lengths and intercepts."""

    def _warn_of_cancelling(self, lost: float) -> None:
        """Say that the scores of kernel machines are mostly rounding, of which this is the part, where they are."""
        if lost > LOST_SCORES:
            more = f"Increase alpha={self.alpha_:.1e}" if hasattr(self, "alpha_") else "Decrease C"
            warn_of_fit(
                f"{type(self).__name__} has coefficients that cancel: its scores are wrong by about {lost:.0e} of what "
                f"tells the rows apart. {more}, or make the kernel narrower."
            )

    def _longest(self, prepared: Prepared) -> float:
        """The largest K(x, x)."""
        diagonal = gram_diagonal(prepared.problem.X, self.kernel, prepared.gamma, self.degree, self.coef0)
        return float(np.abs(diagonal).max())

    def _gram(self, X: Rows, Z: Any, gamma: float) -> np.ndarray:
        return gram(X, Z, self.kernel, gamma, self.degree, self.coef0, dtype=np.float64)

    def _machine_scores(self, X: Rows) -> np.ndarray:
        """Scores ``(n, machines)`` of checked rows."""
        if self.kernel == "linear":
            return products(X, self.coef_.T) + self.intercept_
        k = len(self.classes_)
        by_class = hasattr(self, "n_support_") and k > 2 and self.multi_class != "ovr"  # no basis, one machine a pair
        F = np.empty((X.shape[0], n_machines(k, self.multi_class)))
        for rows in row_blocks(X.shape[0], self.dual_coef_.shape[1] // 4 + 1):
            if self.kernel == "precomputed":
                K = np.asarray(X[rows].toarray() if sparse.issparse(X) else X[rows])
                K = K[:, self.support_]
            else:
                K = self._gram(X[rows], self._fitted_rows, self.gamma_)
            F[rows] = self._pair_products(K, k) if by_class else K @ self.dual_coef_.T
        F += self.intercept_
        return F

    def _pair_products(self, K: np.ndarray, k: int) -> np.ndarray:
        """Sums over the two classes of each pair; class c has one row of coefficients for each other class."""
        F = np.zeros((len(K), k * (k - 1) // 2))
        number = {pair: t for t, pair in enumerate(combinations(range(k), 2))}
        ends = np.cumsum(self.n_support_)
        for c in range(k):
            mine = slice(ends[c] - self.n_support_[c], ends[c])
            columns = [number[min(c, other), max(c, other)] for other in range(k) if other != c]
            F[:, columns] += K[:, mine] @ self.dual_coef_[:, mine].T
        return F

    def _scores(self, X: Rows) -> np.ndarray:
        return combine(self._machine_scores(X), len(self.classes_), self.multi_class)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _spread(F: np.ndarray) -> np.ndarray:
    """What rounding of the scores of machines is compared with: margins of one, and what tells margins apart.

    Where a penalty is next to nothing class vectors are so long that the variance of the margins has no digits left.
    """
    return np.maximum(1.0, np.abs(F).std(axis=0))


def _lost(F: np.ndarray, coef: np.ndarray, size: float) -> bool:
    """Whether the rounding of scores, of rows or kernel values of this size, counts."""
    return bool((score_rounding(coef.T, size) > ACCURATE * _spread(F)).any())


def _wide_product(A: Any, coef: np.ndarray) -> np.ndarray:
    """``A coef`` in extended precision, a few rows at a time."""
    wide = coef.astype(np.longdouble)
    parts = [A[rows] for rows in row_blocks(*A.shape)]
    return np.concatenate([np.asarray(dense(part), dtype=np.longdouble) @ wide for part in parts])


def mean_and_variance(d: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of each column, in the precision of the margins."""
    share = weight.astype(d.dtype, copy=False)
    share = share / share.sum()
    mean = (share * d).sum(axis=0)
    return mean, (share * np.square(d - mean)).sum(axis=0)
