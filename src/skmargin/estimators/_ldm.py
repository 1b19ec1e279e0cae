"""Large margin distribution machine, Zhang and Zhou (2014), in the notation of Abe (2017)."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._numbers import WITH_SQUARE, checked
from .._types import ClassWeight, LabelsLike, RandomState, RowsLike, WeightsLike
from ..rows.arrays import with_constant
from ..rows.gram import eigenvalue_rtol, is_definite
from ..solvers.two_class import ldm as ldm_dual
from ..solvers.two_class.ldm import LDMState
from ..solvers.two_class.ldm_certificate import LDMProblem
from ..solvers.two_class.pairwise import Subproblem, most_rows
from ..solvers.two_class.ridge_direct import iterate_features, iterate_kernel, solve_features_ridge, solve_kernel_ridge
from ..solvers.two_class.ridge_spectrum import RidgeSpec
from ..solvers.two_class.row_sources import Features
from ._base import check_finite, fitting, seed_of
from ._pairwise import PairwiseMachines, Prepared, mean_and_variance
from ._solution import WarmStart

GRADIENT_TOL = 1e-8  # of least squares: a gradient says less of the objective than a gap


class Fitted(NamedTuple):
    """The machines of one two-class problem: one column each."""

    coef: np.ndarray
    intercept: np.ndarray
    objective: float
    gap: float
    n_iter: int
    states: tuple[LDMState | None, ...]


States = tuple[tuple[LDMState | None, ...], ...]  # one for each machine of every two-class problem


class LDMClassifier(PairwiseMachines):
    """Large margin distribution machine: margin mean and variance beside the hinge loss.

    For labels -1 and +1, margins ``d_i = y_i f(x_i)`` and weights s_i it minimises
    ``1/2 ||w||^2 - lambda1 mean(d) + lambda2/2 var(d) + C sum_i s_i max(0, 1 - d_i)``, or with the squared errors
    ``C/2 sum_i s_i (1 - d_i)^2`` instead of the hinge.  Several classes are told apart by one machine for each pair of
    them (or against the rest).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    lambda1 : float, default=1.0
        Weight of the margin mean.
    lambda2 : float, default=1.0
        Weight of the margin variance.
    loss : {"hinge", "least_squares"}, default="hinge"
        The loss: the LDM, or Abe's least-squares LDM, which is one linear system.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        Kernel, positive semi-definite.  The linear machine works on the features themselves.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel width; ``"scale"`` is 1 / (n_features var(X)), ``"auto"`` 1 / n_features.
    degree : float, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    multi_class : {"fuzzy_pairwise", "ovo", "ovr"}, default="fuzzy_pairwise"
        How two-class machines decide between several classes: by the least lost pair, by votes, or each class against
        the rest.
    basis : {"auto", "all", "random", "kmeans++", "cholesky"}, default="auto"
        Rows that span ``w``: all, or ``n_basis`` of them.  "auto" takes all up to 6000 rows in a two-class problem.
    n_basis : int, default=1000
        Number of basis points.
    fit_intercept : bool, default=True
        Whether a constant feature is added.  The published machine has no intercept of its own: its coefficient is
        penalised like the others (1 is added to the kernel).
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    tol : float, default=1e-3
        Relative duality gap at which the hinge machine stops.  With least squares, where the system is too large to
        be factorised, the relative gradient, at most 1e-8.
    max_iter : int, default=10000
        Limit of the passes over the rows.
    warm_start : bool, default=False
        Whether the hinge machine starts from the solution of the last fit, where the labels are the same.
    n_jobs : int or None, default=None
        Threads over the two-class problems.
    random_state : int, RandomState or None, default=None
        Order of the rows in the passes, and the basis.
    verbose : int, default=0
        Print how far a long fit is, once a second, and what was chosen automatically.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    gamma_ : float
        The kernel width used.
    coef_ : ndarray of shape (n_machines, n_features)
        Linear machines: one row a machine, pairs in the order (0, 1), (0, 2), ...; positive for the second class.
    dual_coef_ : ndarray
        Kernel machines: (n_classes - 1, n_support) as in `sklearn.svm.SVC` for pairs; otherwise one row a machine.
    support_ : ndarray
        Rows of the training data that ``dual_coef_`` belongs to.
    n_support_ : ndarray of shape (n_classes,)
        Number of these rows in each class; not where they are a basis.
    intercept_ : ndarray of shape (n_machines,)
        Intercepts.
    objective_ : float
        Sum of the objectives of the machines.
    dual_gap_ : float or None
        Largest duality gap of the machines, relative to the sizes of the terms of their objectives, which may cancel;
        None for the least-squares machine.
    n_iter_ : int
        Largest number of passes of a machine; 1 for a linear system.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    S. Abe, "Unconstrained large margin distribution machines", Pattern Recognition Letters 98 (2017) 96-102.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import LDMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LDMClassifier(C=10.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.96 and model.dual_gap_ <= 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PairwiseMachines._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "lambda1": [Interval(Real, 0.0, None, closed="left")],
        "lambda2": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"hinge", "least_squares"})],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        lambda1: float = 1.0,
        lambda2: float = 1.0,
        *,
        loss: str = "hinge",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        multi_class: str = "fuzzy_pairwise",
        basis: str = "auto",
        n_basis: int = 1000,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 10000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.multi_class = multi_class
        self.basis = basis
        self.n_basis = n_basis
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike = None) -> LDMClassifier:
        """Fit the machines.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows (for a precomputed kernel the square kernel matrix).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights in the loss, the mean and the variance: 2 is a row repeated, 0 a row removed.

        Returns
        -------
        self : LDMClassifier
        """
        for name in ("C", "lambda1", "lambda2"):  # an interval would compare in the number type of the value
            checked(name, getattr(self, name), most=WITH_SQUARE)
        prepared = self._prepare(self._check_problem(X, y, sample_weight), "kernel")
        seed = seed_of(self.random_state)
        shapes = tuple(subproblem.Y.shape[1] for subproblem in prepared.subproblems)
        starts = self._starts(prepared.problem.y, shapes)

        def work(task: tuple[Subproblem, tuple[LDMState | None, ...]]) -> Fitted:
            if self.loss == "hinge":
                return self._hinge(prepared, *task, seed)
            return self._least_squares(prepared, task[0])

        items = list(zip(prepared.subproblems, starts, strict=True))
        fitted = self._of_all_subproblems(work, items, most_rows(prepared.subproblems))
        if self.warm_start and self.loss == "hinge":
            problem, states = prepared.problem, tuple(one.states for one in fitted)
            self._warm_state = WarmStart(states, problem.y, problem.weight, shapes)
        self._publish_fitted(prepared, fitted)
        return self

    def _starts(self, y: np.ndarray, shapes: tuple[int, ...]) -> States:
        """Where the machines of all problems start: at the last fit, if it fits, or (None) at zero."""
        warm = getattr(self, "_warm_state", None) if self.warm_start else None
        self.__dict__.pop("_warm_state", None)
        starts = warm.start(tuple, y) if warm is not None and warm.setting == shapes else None
        return tuple((None,) * n for n in shapes) if starts is None else starts

    def _publish_fitted(self, prepared: Prepared, fitted: list[Fitted]) -> None:
        """Set the fitted attributes; warn where the tolerance was missed."""
        gap = max(one.gap for one in fitted)
        if not np.isfinite([one.objective + one.gap for one in fitted]).all():
            raise ValueError(
                f"LDMClassifier met numbers beyond double precision: C={self.C:.3g}, lambda1={self.lambda1:.3g} or "
                f"lambda2={self.lambda2:.3g} is too large for these features."
            )
        numbers = [one.coef for one in fitted], [one.intercept for one in fitted]
        self._publish(prepared, *numbers)
        self.n_iter_ = max(one.n_iter for one in fitted)
        known = [one.objective for one in fitted]
        self.objective_, lost = self._published_objective(prepared, *numbers, known)
        check_finite(self, self.objective_)
        self.dual_gap_ = None
        if self.loss == "hinge":  # what the published machines have more than those of the solver is part of the gap
            risen = max(0.0, self.objective_ - sum(known)) / max(abs(sum(known)), self.lambda1, np.finfo(float).tiny)
            self.dual_gap_ = gap = gap + risen
        if self.loss == "hinge" and gap > self.tol:
            self._warn_not_converged(gap)
        elif self.loss != "hinge" and gap > 0:  # what was reached instead of the tolerance
            self._warn_not_converged(gap, "relative gradient")
        if self.loss != "hinge":
            self._warn_of_cancelling(lost)

    def _objective(
        self, d: np.ndarray, weight: np.ndarray, square: np.ndarray, ridge: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        mean, variance = mean_and_variance(d, weight)
        losses = np.maximum(1 - d, 0.0) if self.loss == "hinge" else 0.5 * np.square(1 - d)
        spread = 0.5 * self.lambda2 * variance - self.lambda1 * mean
        return 0.5 * (square + b * b) + spread + self.C * (weight * losses).sum(axis=0)

    def _problem(self, prepared: Prepared, subproblem: Subproblem, y: np.ndarray) -> LDMProblem:
        weight = prepared.problem.weight[subproblem.rows]
        return LDMProblem(np.ascontiguousarray(y), weight, float(self.C), float(self.lambda1), float(self.lambda2))

    def _hinge(
        self, prepared: Prepared, subproblem: Subproblem, starts: tuple[LDMState | None, ...], seed: int
    ) -> Fitted:
        source, problems = prepared.source, [self._problem(prepared, subproblem, y) for y in subproblem.Y.T]
        limits, tuning = (self.tol, self.max_iter, seed), self._tuning
        if isinstance(source, Features):
            Phi = source.rows(subproblem.rows)
            Phi = with_constant(Phi) if self.fit_intercept else Phi
            states = [
                ldm_dual.solve_features_ldm(Phi, one, *limits, start, tuning)
                for one, start in zip(problems, starts, strict=True)
            ]
            coef = np.array([state.coef for state in states]).T
            coef, intercept = (coef[:-1], coef[-1]) if self.fit_intercept else (coef, np.zeros(len(states)))
        else:
            K = source.square(subproblem.rows)
            if self.fit_intercept:
                K += 1
            if not is_definite(self.kernel, self.degree, self.coef0):
                ldm_dual.check_definite(K, eigenvalue_rtol(prepared.problem.X.dtype))
            states = [
                ldm_dual.solve_kernel_ldm(K, one, *limits, start, tuning)
                for one, start in zip(problems, starts, strict=True)
            ]
            coef = np.array([state.coef for state in states]).T
            intercept = coef.sum(axis=0) if self.fit_intercept else np.zeros(len(states))
        objective = sum(state.objective for state in states)
        gap, n_iter = max(state.gap for state in states), max(state.n_iter for state in states)
        return Fitted(coef, intercept, objective, gap, n_iter, tuple(states))

    def _least_squares(self, prepared: Prepared, subproblem: Subproblem) -> Fitted:
        problem = self._problem(prepared, subproblem, subproblem.Y[:, 0])
        spec = RidgeSpec("kernel", "penalised" if self.fit_intercept else "none", False)
        strength = 1 / (problem.C + problem.l2 / float(problem.weight.sum()))
        task = (problem.weight, subproblem.Y, spec)
        iterations = (np.array([strength]), min(self.tol, GRADIENT_TOL), self.max_iter)
        n_iter, reached = 1, 0.0
        if isinstance(prepared.source, Features):
            if prepared.iterative:
                Phi = prepared.source.rows(subproblem.rows)
                (solution, n_iter, reached), *_ = iterate_features(Phi, *task, *iterations)
            else:
                solution = solve_features_ridge(prepared.source, subproblem.rows, *task, strength)
        elif prepared.iterative:
            K = prepared.source.square(subproblem.rows)
            (solution, n_iter, reached), *_ = iterate_kernel(K, *task, *iterations)
        else:
            solution = solve_kernel_ridge(prepared.source.square(subproblem.rows), *task, strength)
        solution, objective = ldm_dual.least_squares_factor(solution, problem)
        return Fitted(solution.coef, solution.intercept, objective, reached, n_iter, ())
