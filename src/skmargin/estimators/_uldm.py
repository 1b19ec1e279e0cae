"""Unconstrained large margin distribution machine, Abe (2017)."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .._types import ClassWeight, LabelsLike, RandomState, RowsLike, WeightsLike
from ..solvers.two_class.ridge_spectrum import RidgeSpec
from ._base import fitting
from ._pairwise import mean_and_variance
from ._ridge import RidgeMachines, positive_values


class ULDMClassifier(RidgeMachines):
    """Unconstrained large margin distribution machine: margin mean and variance by one linear system.

    For labels -1 and +1 and margins ``d_i = y_i f(x_i)`` it minimises ``alpha/2 (||a||^2 + b^2) - mean(d) + var(d)/2``
    over ``f(x) = sum_j a_j K(x, z_j) + b`` (linear machine: ``w'x + b``).  The penalty is on the coefficients and on
    the intercept, as in the paper.  Several classes are told apart by one machine for each pair of them (or against the
    rest).  ``alpha`` and ``gamma`` may hold several values: exact held-out scores choose among them.

    Parameters
    ----------
    alpha : float or array-like, default=1e-6
        Strength of the penalty, the paper's C.  Of several values the best is chosen.  0 needs independent features.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        Kernel.  The linear machine works on the features themselves.
    gamma : {"scale", "auto"}, float or array-like, default="scale"
        Kernel width; ``"scale"`` is 1 / (n_features var(X)), ``"auto"`` 1 / n_features.  The paper's gamma is divided
        by the number of features first.
    degree : float, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    multi_class : {"fuzzy_pairwise", "ovo", "ovr"}, default="fuzzy_pairwise"
        How two-class machines decide between several classes: by the least lost pair, by votes, or each class against
        the rest.
    cv : int, splitter or None, default=None
        Held-out sets for choosing among several values; None leaves one row out at a time.  Every row must be held out
        once.  The rows held out stay in the set of basis points (the ``z_j``).  The iterative solver fits every fold
        anew, without its rows as basis points; for it None means 5 folds.
    search : {"auto", "exact"}, default="auto"
        "auto" screens many widths on a quarter of the rows, in single precision, where there are more than 1000 rows;
        "exact" evaluates every candidate.
    basis : {"auto", "all", "random", "kmeans++", "cholesky"}, default="auto"
        The ``z_j``: all rows, or ``n_basis`` of them.  "auto" takes all up to 6000 rows in a two-class problem.  With
        all rows, a row of weight 2 is two basis points.
    n_basis : int, default=1000
        Number of basis points.
    fit_intercept : bool, default=True
        Whether there is an intercept.
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
    alpha_, gamma_ : float
        The values used.
    cv_scores_ : ndarray of shape (n_gammas, n_alphas) or (n_alphas,)
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
    S. Abe, "Unconstrained large margin distribution machines", Pattern Recognition Letters 98 (2017) 96-102.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import ULDMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ULDMClassifier(alpha=[1e-6, 1e-4, 1e-2], gamma=[0.1, 1.0]).fit(X, y)
    >>> model.alpha_, model.gamma_
    (0.01, 0.1)
    >>> bool(model.cv_scores_.max() > 0.97)
    True
    """

    _strength_name = "alpha"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RidgeMachines._parameter_constraints,
        "alpha": [Interval(Real, 0.0, None, closed="left"), "array-like"],
    }

    def __init__(
        self,
        alpha: Any = 1e-6,
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
        self.alpha = alpha
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
    def fit(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike = None) -> ULDMClassifier:
        """Fit the machines, after choosing ``alpha`` and ``gamma`` where several values were given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows (for a precomputed kernel the square kernel matrix).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights in the mean and in the variance of the margin: 2 is a row repeated, 0 a row removed.

        Returns
        -------
        self : ULDMClassifier
        """
        return self._fit(X, y, sample_weight)

    def _spec(self) -> RidgeSpec:
        return RidgeSpec("coefficients", "penalised" if self.fit_intercept else "none", True)

    def _strengths(self) -> np.ndarray:
        return positive_values("alpha", self.alpha, zero_allowed=True)

    def _publish_strength(self, index: int) -> None:
        self.alpha_ = float(self._strengths()[index])

    def _objective(
        self, d: np.ndarray, weight: np.ndarray, square: np.ndarray, ridge: np.ndarray, b: np.ndarray
    ) -> np.ndarray:
        mean, variance = mean_and_variance(d, weight)
        return 0.5 * self.alpha_ * (ridge + b * b) - mean + 0.5 * variance

    def _known_objective(self, residual: np.ndarray, strength: float) -> np.ndarray:
        return -0.5 * (1 - residual) / residual  # -h'beta/2 with beta = r/(1 - h'r)
