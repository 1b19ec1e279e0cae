"""Fits of the least-squares machines for many strengths, from one condensed form of each two-class problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from itertools import combinations
from typing import Any

import numpy as np

from .._types import LabelsLike, Rows, RowsLike, WeightsLike
from ..solvers.two_class.pairwise import Subproblem, combine, most_rows, over_threads
from ..solvers.two_class.ridge_condensed import RidgeSolutions, solutions_features, solutions_kernel
from ..solvers.two_class.row_sources import Features, products
from ._base import MarginClassifier
from ._ridge import RidgeMachines

KernelSquare = Callable[[np.ndarray, float], np.ndarray]


class StrengthPath:
    """Fits of ``template`` for several values of its strength.

    ``square(rows, gamma)`` gives the kernel matrix of some of the rows given, at least from its diagonal on, where the
    caller has it.  What the path cannot give (a strength of 0, one that is not allowed or too small, several widths,
    iterative solvers) is left to a fit of its own.
    """

    def __init__(
        self,
        template: RidgeMachines,
        X: Rows,
        y: LabelsLike,
        sample_weight: WeightsLike,
        values: Iterable[Any],
        square: KernelSquare | None = None,
    ) -> None:
        self.template, self._data = template, (X, y, sample_weight)
        self._number = dict.fromkeys(values)
        self._solved: list[RidgeSolutions] | None = None
        good = [value for value in self._number if value > 0 and np.isfinite(value)]
        if not good or np.ndim(template.gamma):
            return
        first = self._with(good[0])
        first._validate_params()
        self._spec = first._spec()
        self._prepared = template._prepare(template._check_problem(X, y, sample_weight), self._spec.penalty)
        if self._prepared.iterative:
            return
        strengths = np.array([float(self._with(value)._strengths()[0]) for value in good])
        self._number.update({value: t for t, value in enumerate(good)})
        problem, source = self._prepared.problem, self._prepared.source

        def work(subproblem: Subproblem) -> RidgeSolutions:
            task = (problem.weight[subproblem.rows], subproblem.Y, self._spec, strengths)
            if isinstance(source, Features):
                return solutions_features(source, subproblem.rows, *task)
            if square is not None:
                return solutions_kernel(square(problem.kept[subproblem.rows], self._prepared.gamma), *task)
            return solutions_kernel(source.square(subproblem.rows), *task)

        self._solved = over_threads(
            work, self._prepared.subproblems, template.n_jobs, most_rows(self._prepared.subproblems)
        )
        self._good = np.all([of_subproblem.solved for of_subproblem in self._solved], axis=0)
        self._bounded = np.all([(one.residual > 0).all(axis=1) for one in self._solved], axis=0)

    def _with(self, value: Any) -> Any:
        model = copy(self.template)
        setattr(model, self.template._strength_name, value)
        return model

    def _place(self, value: Any) -> int | None:
        """Where a value is among the strengths that were solved; None if it was not."""
        number = self._number[value]
        return number if number is not None and self._solved is not None and self._good[number] else None

    def model(self, value: Any) -> Any:
        """The template fitted for one value."""
        number = self._place(value)
        if number is None or self._solved is None:
            return self._with(value).fit(*self._data)
        solutions = ((of_subproblem.at(number), 1, 0.0) for of_subproblem in self._solved)
        return self._with(value)._publish_solutions(self._prepared, self._spec, solutions, 0)

    # -- scores of all values at once ---------------------------------------------------------------------------------

    @property
    def support(self) -> np.ndarray | None:
        """Which of the rows given are the columns of the kernel rows that `scores` takes; None: it takes features."""
        return None if isinstance(self._prepared.source, Features) else self._prepared.problem.kept

    @property
    def gamma(self) -> float:
        """The width of the kernel."""
        return self._prepared.gamma

    def can_score(self, value: Any) -> bool:
        """Whether `scores` has this value: kernels on all rows, or linear machines."""
        number = self._place(value)
        if number is None or self._solved is None or self._prepared.basis is not None:
            return False
        return not self._spec.normalised or bool(self._bounded[number])

    def scores(self, rows: Rows) -> dict[Any, np.ndarray]:
        """For each value the scores of the classes ``(n, k)`` (two classes: one column) as a model would give them."""
        assert self._solved is not None
        k, method = self._prepared.problem.n_classes, self.template.multi_class
        coef, intercept = [one.coef for one in self._solved], [one.intercept for one in self._solved]
        if self._spec.normalised:
            with np.errstate(divide="ignore", invalid="ignore"):  # `can_score` knows them
                coef = [one.coef / one.residual[:, :, None] for one in self._solved]
                intercept = [one.intercept / one.residual for one in self._solved]
        if self.support is None or len(coef) == 1:
            weights = np.concatenate(coef, axis=1)  # (strengths, machines, columns)
            F = products(rows, weights.reshape(-1, weights.shape[2]).T).reshape(-1, *weights.shape[:2])
        else:
            F = self._pair_products(np.asarray(rows), coef, k)
        F = F + np.concatenate(intercept, axis=1)
        out = combine(F.transpose(1, 0, 2).reshape(-1, F.shape[2]), k, method).reshape(F.shape[1], len(F), -1)
        return {value: out[number] for value, number in self._number.items() if number is not None}

    def _pair_products(self, K: np.ndarray, coef: list[np.ndarray], k: int) -> np.ndarray:
        """Sums over the two classes of each pair, ``(n, strengths, pairs)``; the columns of K are sorted by class."""
        size = np.bincount(self._prepared.problem.y, minlength=k)
        ends = np.cumsum(size)
        F = np.zeros((len(K), len(coef[0]), len(coef)))
        parts: list[list[np.ndarray]] = [[] for _ in range(k)]
        pairs: list[list[int]] = [[] for _ in range(k)]
        for number, (i, j) in enumerate(combinations(range(k), 2)):
            for c, part in ((i, slice(0, size[i])), (j, slice(size[i], None))):
                parts[c].append(coef[number][:, 0, part])
                pairs[c].append(number)
        for c in range(k):
            stacked = np.stack(parts[c], axis=1)  # (strengths, k - 1, rows of the class)
            product = K[:, ends[c] - size[c] : ends[c]] @ stacked.reshape(-1, size[c]).T
            F[:, :, pairs[c]] += product.reshape(len(K), len(stacked), -1)
        return F

    def scored(self) -> Scored:
        """The classifier of rows that are what `scores` gave."""
        return Scored(self.template.classes_)


class Scored(MarginClassifier):
    """A classifier of rows that are their own scores: what scorers need of a model whose scores are known."""

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes
        self.classes_ = classes

    def fit(self, X: RowsLike, y: LabelsLike = None) -> Scored:
        """Nothing to do."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _scores(self, X: Rows) -> np.ndarray:
        return np.asarray(X)

    def _check_predict(self, X: Rows) -> Any:
        return X
