"""Least-squares support vector classifier, Suykens and Vandewalle (1999)."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .._types import ClassWeight, LabelsLike, RandomState, RowsLike, WeightsLike
from ..solvers.two_class.ridge_spectrum import RidgeSpec
from ._base import MOST_CAP, Problem, check_caps, fitting
from ._ridge import RidgeMachines, positive_values


class LSSVC(RidgeMachines):
    """Least-squares support vector classifier.

    For labels -1 and +1 it minimises ``1/2 ||w||^2 + C/2 sum_i s_i (y_i - f(x_i))^2`` over ``f(x) = w'phi(x) + b`` with
    a free intercept.  Several classes are told apart by one machine for each pair of them (or against the rest).  ``C``
    and ``gamma`` may hold several values: exact held-out scores choose among them.

    Parameters
    ----------
    C : float or array-like, default=1.0
        Weight of the squared errors.  Of several values the best is chosen.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        Kernel, positive semi-definite.  The linear machine works on the features themselves.
    gamma : {"scale", "auto"}, float or array-like, default="scale"
        Kernel width; ``"scale"`` is 1 / (n_features var(X)), ``"auto"`` 1 / n_features.
    degree : float, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    multi_class : {"fuzzy_pairwise", "ovo", "ovr"}, default="fuzzy_pairwise"
        How two-class machines decide between several classes: by the least lost pair, by votes, or each class against
        the rest.
    cv : int, splitter or None, default=None
        Held-out sets for choosing among several values; None leaves one row out at a time.  Every row must be held out
        once.
    search : {"auto", "exact"}, default="auto"
        "auto" screens many widths on a quarter of the rows, in single precision, where there are more than 1000 rows;
        "exact" evaluates every candidate.
    basis : {"auto", "all", "random", "kmeans++", "cholesky"}, default="auto"
        Rows that span ``w``: all, or ``n_basis`` of them.  "auto" takes all up to 6000 rows in a two-class problem.
    n_basis : int, default=1000
        Number of basis points.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    tol : float, default=1e-8
        Tolerance of the iterative solver, which is used where a two-class problem has more than 6000 rows and features.
    max_iter : int, default=10000
        Limit of its iterations.
    n_jobs : int or None, default=None
        Threads over the two-class problems.
    random_state : int, RandomState or None, default=None
        Draws the basis and the rows for screening.
    verbose : int, default=0
        Print how far a long fit is, once a second, and what was chosen automatically.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    C_, gamma_ : float
        The values used.
    cv_scores_ : ndarray of shape (n_gammas, n_Cs) or (n_Cs,)
        Held-out accuracy of each candidate, nan where screening left it out; only where several values were given.
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
    dual_gap_ : None
        The solution is that of a linear system.
    n_iter_ : int
        Iterations of the iterative solver, otherwise 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names.

    References
    ----------
    J. A. K. Suykens and J. Vandewalle, "Least squares support vector machine classifiers", Neural Processing Letters 9
    (1999) 293-300.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import LSSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSSVC(C=[0.1, 1.0, 10.0]).fit(X, y)
    >>> float(round(model.cv_scores_.max(), 3))
    0.973
    """

    _strength_name = "C"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RidgeMachines._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither"), "array-like"],
    }

    def __init__(
        self,
        C: Any = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        multi_class: str = "fuzzy_pairwise",
        cv: Any = None,
        search: str = "auto",
        basis: str = "auto",
        n_basis: int = 1000,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-8,
        max_iter: int = 10000,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.multi_class = multi_class
        self.cv = cv
        self.search = search
        self.basis = basis
        self.n_basis = n_basis
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike = None) -> LSSVC:
        """Fit the machines, after choosing ``C`` and ``gamma`` where several values were given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows (for a precomputed kernel the square kernel matrix).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared errors: 2 is a row repeated, 0 a row removed.

        Returns
        -------
        self : LSSVC
        """
        return self._fit(X, y, sample_weight)

    def _fit_problem(self, problem: Problem, n_given: int) -> Any:
        for strength in self._strengths():
            check_caps(1 / float(strength), problem.weight, MOST_CAP)
        return super()._fit_problem(problem, n_given)

    def _spec(self) -> RidgeSpec:
        return RidgeSpec("kernel", "free" if self.fit_intercept else "none", False)

    def _strengths(self) -> np.ndarray:
        return 1 / positive_values("C", self.C, zero_allowed=False)

    def _publish_strength(self, index: int) -> None:
        self.C_ = float(positive_values("C", self.C, zero_allowed=False)[index])

    def _objective(
        self, d: np.ndarray, weight: np.ndarray, square: np.ndarray, ridge: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        return 0.5 * square + 0.5 * self.C_ * (weight * np.square(1 - d)).sum(axis=0)

    def _known_objective(self, residual: np.ndarray, strength: float) -> np.ndarray:
        return 0.5 * residual / strength
