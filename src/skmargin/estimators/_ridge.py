"""Fit and selection that `ULDMClassifier` and `LSSVC` share: they differ in their penalty and in their intercept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples

from .._runtime.progress import progress_range
from .._types import LabelsLike, Rows, WeightsLike
from ..rows.blocks import BlockRows
from ..rows.class_moments import equivalent_rows
from ..rows.collections import Collections
from ..rows.files import OpenRows
from ..rows.gram import base_matrix, gram_diagonal, kernel_from_base
from ..solvers.two_class.pairwise import Subproblem, most_rows
from ..solvers.two_class.ridge_direct import (
    iterate_features,
    iterate_kernel,
    solve_features_ridge,
    solve_kernel_ridge,
)
from ..solvers.two_class.ridge_search import (
    SearchProblem,
    best_candidate,
    full_search,
    held_out_accuracy,
    iterated_accuracy,
    screened_search,
)
from ..solvers.two_class.ridge_spectrum import RidgeSolution, RidgeSpec, scale
from ..solvers.two_class.row_sources import Features, Source, submatrix
from ._base import Problem, check_finite
from ._pairwise import PairwiseMachines, Prepared

SHARED = ("rbf", "laplacian", "poly", "sigmoid")  # kernels whose widths share a matrix


class RidgeMachines(PairwiseMachines):
    """Least-squares machines; a subclass names the `RidgeSpec` and its strengths."""

    _in_blocks = True
    _strength_name: ClassVar[str]  # the parameter whose values share one factorisation
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PairwiseMachines._parameter_constraints,
        "cv": ["cv_object"],
        "search": [StrOptions({"auto", "exact"})],
    }

    @abstractmethod
    def _spec(self) -> RidgeSpec: ...

    @abstractmethod
    def _strengths(self) -> np.ndarray:
        """Strengths of the penalty as `ridge_spectrum` takes them, one or several."""

    @abstractmethod
    def _publish_strength(self, index: int) -> None:
        """Set the fitted attribute of the strength chosen."""

    @abstractmethod
    def _known_objective(self, residual: np.ndarray, strength: float) -> np.ndarray:
        """Objectives of machines from the residuals of their solutions, not scaled."""

    def _fit(self, X: Rows, y: LabelsLike, sample_weight: WeightsLike) -> Any:
        self._strengths()  # before the rows are looked at
        if np.ndim(self.gamma):
            positive_values("gamma", self.gamma, zero_allowed=False)
        return self._fit_problem(self._check_problem(X, y, sample_weight), _num_samples(X))

    def _fit_rows(self, rows: OpenRows | Collections, checkpoint: Any) -> None:
        """Fit to rows in blocks: one pass sums up all that counts."""
        if checkpoint is not None:
            raise ValueError(f"{type(self).__name__} needs one pass over the rows: checkpoint must be None.")
        if self.kernel != "linear":
            raise ValueError(f"Rows in blocks and Dask collections need kernel='linear', got kernel={self.kernel!r}.")
        if len(self._strengths()) > 1:
            raise ValueError(
                f"Rows in blocks and Dask collections need one value of {self._strength_name}, got "
                f"{getattr(self, self._strength_name)!r}; MarginSearchCV chooses among several in one pass."
            )
        self._fit_blocks(self._count_rows(rows))

    def _fit_blocks(self, rows: BlockRows, checkpoint: Any = None) -> None:
        """Fit to counted rows, wherever they are."""
        most = self._tuning.common.direct_rows
        if rows.n_features > most:
            raise ValueError(
                f"{type(self).__name__} takes rows in blocks and Dask collections of at most {most} features, got "
                f"{rows.n_features}."
            )
        X, y, weight = equivalent_rows(rows)
        self._fit_problem(Problem(X, y, weight, len(self.classes_), np.arange(len(y))), len(y))

    def _fit_problem(self, problem: Problem, n_given: int) -> Any:
        """Fit to checked rows in memory, of which ``n_given`` were given."""
        spec, strengths = self._spec(), self._strengths()
        prepared = self._prepare(problem, spec.penalty)
        chosen = 0
        if hasattr(self, "cv_scores_"):
            del self.cv_scores_  # of an earlier fit
        if np.ndim(self.gamma) or len(strengths) > 1:
            with progress_range(0, 0.9):
                prepared, chosen = self._select(prepared, spec, strengths, n_given)
        s = float(strengths[chosen])
        weight = prepared.problem.weight

        def work(subproblem: Subproblem) -> tuple[RidgeSolution, int, float]:
            return self._solve(prepared.source, subproblem, weight[subproblem.rows], spec, s, prepared.iterative)

        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is refused
            found = self._of_all_subproblems(work, prepared.subproblems, most_rows(prepared.subproblems))
        return self._publish_solutions(prepared, spec, found, chosen)

    def _publish_solutions(
        self, prepared: Prepared, spec: RidgeSpec, solved: Iterable[tuple[RidgeSolution, int, float]], chosen: int
    ) -> Any:
        """Fitted attributes from the solutions of the two-class problems for one of the strengths."""
        self._publish_strength(chosen)
        found = list(solved)
        solutions = [scale(s) if spec.normalised else s for s, _, _ in found]
        numbers = [s.coef for s in solutions], [s.intercept for s in solutions]
        self._publish(prepared, *numbers)
        self.n_iter_ = max(1, *(n_iter for _, n_iter, _ in found))
        self.dual_gap_ = None
        strength = float(self._strengths()[chosen])
        with np.errstate(divide="ignore", over="ignore"):
            known = [float(np.sum(self._known_objective(solution.residual, strength))) for solution, _, _ in found]
        self.objective_, lost = self._published_objective(prepared, *numbers, known)
        check_finite(self, self.objective_)
        self._warn_of_cancelling(lost)
        reached = max(one_reached for _, _, one_reached in found)
        if reached > 0:
            self._warn_not_converged(reached, "relative gradient")
        return self

    def _solve(
        self, source: Source, subproblem: Subproblem, weight: np.ndarray, spec: RidgeSpec, s: float, iterative: bool
    ) -> tuple[RidgeSolution, int, float]:
        """Solution of one problem (not scaled), its iterations, and the tolerance reached where it was missed."""
        if isinstance(source, Features):
            if iterative:
                Phi = source.rows(subproblem.rows)
                return iterate_features(Phi, weight, subproblem.Y, spec, np.array([s]), self.tol, self.max_iter)[0]
            return solve_features_ridge(source, subproblem.rows, weight, subproblem.Y, spec, s), 1, 0.0
        K = source.square(subproblem.rows)
        if iterative:
            return iterate_kernel(K, weight, subproblem.Y, spec, np.array([s]), self.tol, self.max_iter)[0]
        return solve_kernel_ridge(K, weight, subproblem.Y, spec, s), 1, 0.0

    # -- selection ----------------------------------------------------------------------------------------------------

    def _select(self, prepared: Prepared, spec: RidgeSpec, strengths: np.ndarray, n_given: int) -> tuple[Prepared, int]:
        """Choose width and strength; returns the data prepared for the width chosen and the strength's index."""
        problem, many = prepared.problem, np.ndim(self.gamma) > 0
        if many and self.kernel not in SHARED:
            raise ValueError(
                f"gamma={self.gamma!r}: several widths need one of the kernels {SHARED}, got {self.kernel!r}."
            )
        gammas = [float(g) for g in np.ravel(self.gamma)] if many else [prepared.gamma]
        task = SearchProblem(
            problem.y,
            problem.n_classes,
            problem.weight,
            self._folds(problem.y, problem.kept, n_given, prepared.iterative),
            self.multi_class,
            spec,
            self.n_jobs,
        )
        prepare = lambda g: self._with_source(problem, g, prepared.subproblems, spec.penalty)  # noqa: E731
        if prepared.iterative or isinstance(prepared.source, Features) or self.kernel not in SHARED:
            rows: list[np.ndarray] = []
            for g in gammas:
                source = prepare(g).source if many else prepared.source
                if prepared.iterative:
                    rows.append(iterated_accuracy(source, task, strengths, self.tol, self.max_iter))
                else:
                    rows.append(held_out_accuracy(source, task, strengths, np.float64))
            scores = np.array(rows)
        else:
            largest = max(len(subproblem.rows) for subproblem in prepared.subproblems)
            scores = self._search_kernel(problem.X, gammas, task, strengths, largest)
        width, strength = best_candidate(scores, strengths)
        self.cv_scores_ = scores if many else scores[0]
        self._print_line(
            f"chose candidate {(width, strength)} with a held-out accuracy of {scores[width, strength]:.4f}."
        )
        return (prepare(gammas[width]) if many else prepared), strength

    def _search_kernel(
        self, X: Rows, gammas: list[float], task: SearchProblem, strengths: np.ndarray, largest: int
    ) -> np.ndarray:
        """Scores of all widths; ``largest`` is the number of rows of the largest two-class problem.

        The widths share the distances as long as these, the kernel matrix of one width, and in every thread the block
        of a problem with the two matrices of its eigenvectors stay within three kernel matrices.  Otherwise (two or
        three classes) the distances are made anew for each width, in the place of its kernel matrix.
        """
        n = X.shape[0]
        exact = self.search == "exact" or n**3 <= self._tuning.common.call_work
        number: type = np.float64 if exact else np.float32
        in_threads = effective_n_jobs(self.n_jobs) * 3 * (largest / n) ** 2
        shared = len(gammas) > 1 and 2 + in_threads <= 3
        base = base_matrix(X, None, self.kernel, number, max(gammas)) if shared else None
        buffer = None if base is None else np.empty_like(base)

        def kernel_of(g: int, dtype: type) -> Source:
            if base is not None and dtype == base.dtype:
                source, out = base, buffer
            else:
                source = out = base_matrix(X, None, self.kernel, dtype, max(gammas))
            return submatrix(kernel_from_base(source, self.kernel, gammas[g], self.degree, self.coef0, out=out))

        def part_of(g: int, rows: np.ndarray, dtype: type) -> Source:
            part = base_matrix(X[rows], None, self.kernel, dtype, max(gammas))
            return submatrix(kernel_from_base(part, self.kernel, gammas[g], self.degree, self.coef0, out=part))

        if exact:
            return full_search(kernel_of, len(gammas), task, strengths)
        squares = [gram_diagonal(X, self.kernel, gamma, self.degree, self.coef0) for gamma in gammas]
        size = float(np.max(squares))
        rng = check_random_state(self.random_state)
        return screened_search(kernel_of, part_of, len(gammas), task, strengths, size, rng)

    def _folds(self, codes: np.ndarray, kept: np.ndarray, n_given: int, iterative: bool) -> list[np.ndarray] | None:
        """Held-out sets as positions in the sorted rows; None for leave-one-out, which needs a factorisation.

        A splitter sees the rows of positive weight in the order in which they were given; ready-made splits number all
        rows that were given.
        """
        if self.cv is None and not iterative:
            return None
        if self.cv is None:
            self._print_line("iterative solver: 5 folds instead of leave-one-out.")
        order = np.argsort(kept, kind="stable")
        cv = check_cv(self.cv, codes[order], classifier=True)
        folds = [np.asarray(test) for _, test in cv.split(np.zeros(len(codes)), codes[order])]
        if not isinstance(self.cv, Integral) and not hasattr(self.cv, "split"):
            position = np.full(n_given, -1)
            position[kept[order]] = np.arange(len(codes))
            folds = [position[test][position[test] >= 0] for test in folds]
        folds = [order[test] for test in folds if len(test)]
        times = np.bincount(np.concatenate([[], *folds]).astype(np.intp), minlength=len(codes))
        if (times != 1).any():
            raise ValueError(f"cv={self.cv!r} must hold out every row exactly once.")
        return folds


def positive_values(name: str, value: Any, zero_allowed: bool) -> np.ndarray:
    """One value or several as an array, refused with the parameter's name where one is not allowed."""
    try:
        values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    good = np.isfinite(values) & ((values >= 0) if zero_allowed and np.ndim(value) == 0 else (values > 0))
    if values.ndim != 1 or len(values) == 0 or not good.all():
        raise ValueError(f"{name} must be a positive number or a list of positive numbers, got {value!r}.")
    return values
