"""The multi-class machine of Xu et al. (2017)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._types import ClassWeight, RandomState, Rows
from ..rows.blocks import BlockRows
from ..rows.collections import Collections
from ..rows.files import OpenRows
from ..solvers.blocks.newton import BlockState
from ..solvers.blocks.passes import BlockProblem
from ..solvers.dual.state import DualState
from ..solvers.multi_margin.exact import block_problem, pairwise_penalty, solve_multi_margin
from ..solvers.multi_margin.svrg import SVRGState, solve_svrg
from ._base import GOAL, Problem
from ._dual import DualMachine
from ._solution import Solution, WarmStart


class MultiMarginMachine(DualMachine):
    """What the machine of Xu et al. is, with or without unlabelled rows."""

    solver: str
    learning_rate: float | str
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DualMachine._parameter_constraints,
        "solver": [StrOptions({"dual", "svrg"})],
        "learning_rate": [StrOptions({"adaptive"}), Interval(Real, 0, None, closed="neither")],
    }

    def _is_exact(self) -> bool:
        return self.solver != "svrg"

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return "sum", n_classes - 1

    def _has_free_intercept(self) -> bool:
        return False

    def _penalty(self, W: np.ndarray, b: np.ndarray) -> float:
        return pairwise_penalty(W, b)

    def _constant_step(self) -> float | None:
        return None if isinstance(self.learning_rate, str) else float(self.learning_rate)

    def _constant_feature(self, n_classes: int) -> float:
        """What a kernel gains by the constant feature that carries the intercept: its square."""
        return n_classes + 1.0 if self.fit_intercept else 0.0

    def _check_kernel(self) -> None:
        if self.solver == "svrg":
            raise ValueError(f"solver='svrg' needs kernel='linear', got kernel={self.kernel!r}; use solver='dual'.")

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("trajectory_", None)


class MultiMarginSVC(MultiMarginMachine):
    """Multi-class SVM of Xu et al.: the margins between all pairs of classes, with a penalised intercept.

    Minimises, with scores ``f_il = w_l'x_i + b_l`` and weights ``s_i``::

        1/2 sum_{j<l} ||w_j - w_l||^2 + 1/2 ||W||^2 + 1/2 ||b||^2
            + C sum_i s_i sum_{l != y_i} max(0, 1 - f_{i,y_i} + f_il)

    With k classes this is k + 1 times the machine of Weston and Watkins with ``C / (k + 1)`` and the constant feature
    ``sqrt(k + 1)``: that is how it is solved.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    solver : {"dual", "svrg"}, default="dual"
        "dual" is exact and certified.  "svrg" is the stochastic gradient method with variance reduction of the paper,
        for linear machines, which publishes ``trajectory_``.  Its gap is certified too, but with a large C, or features
        that are not scaled, it stops far above ``tol``, and says so.
    learning_rate : "adaptive" or float, default="adaptive"
        Step of SVRG.  "adaptive" falls where an epoch gains too little; a number is a constant step, as in the paper,
        for which every epoch counts, also one that raises the objective.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="linear"
        Kernel.  With ``"linear"`` the class vectors themselves are found and stored.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels "rbf", "poly", "sigmoid" and "laplacian".
    degree : float, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    cache_size : float, default=500
        Megabytes for rows of the kernel matrix.
    fit_intercept : bool, default=True
        Fit an intercept for each class; it is penalised, as in the paper.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with the weights of the samples.
    tol : float, default=1e-3
        Relative duality gap at which the fit ends: the objective is within this share of the optimum.
    max_iter : int, default=10000
        Largest number of passes over the data.
    warm_start : bool, default=False
        Start from the solution of the last fit on the same rows, also after a change of ``C``.
    n_jobs : int or None, default=None
        Threads of the long loops; None: as many as BLAS has.  The result is the same for every number.
    random_state : int, RandomState instance or None, default=None
        Seeds the order in which samples are visited.
    verbose : int, default=0
        Print how far a long fit is, once a second, and how the solver of a linear machine ended.

    Attributes
    ----------
    trajectory_ : ndarray of shape (n_iter_ + 1,)
        Objective before the first and after each epoch (``solver="svrg"``).
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Class vectors of a linear machine; with two classes their difference.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts.
    dual_coef_ : ndarray of shape (n_support, n_classes) or (n_support, 1)
        Coefficients of the support vectors of a kernel machine.
    support_ : ndarray of shape (n_support,)
        Positions of the support vectors in the training data (kernel machine).
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, n_features)
        The support vectors (kernel machine, not for ``kernel="precomputed"``).
    objective_ : float
        Value of the primal objective.
    dual_gap_ : float
        Certified relative duality gap.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names.

    See Also
    --------
    WestonWatkinsSVC : The same losses, with an intercept that is not penalised.
    SemiSupervisedMarginSVC : Learns from unlabelled rows as well.

    References
    ----------
    Xu, Liu, Huo, Deng, Nie and Huang, Multi-class support vector machine via maximizing multi-class margins,
    IJCAI 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import MultiMarginSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MultiMarginSVC(C=10).fit(X, y)
    >>> round(clf.score(X, y), 2), bool(clf.dual_gap_ <= clf.tol)
    (0.98, True)
    """

    _in_blocks = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        solver: str = "dual",
        learning_rate: float | str = "adaptive",
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        cache_size: float = 500,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            C, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, cache_size=cache_size,
            fit_intercept=fit_intercept, class_weight=class_weight, tol=tol, max_iter=max_iter,
            warm_start=warm_start, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.solver = solver
        self.learning_rate = learning_rate

    def _fit_linear(self, problem: Problem, seed: int, warm: WarmStart | None) -> Solution:
        task = problem.X, problem.y, self.C * problem.weight, problem.n_classes
        limits = {"tol": GOAL * float(self.tol), "max_iter": self.max_iter, "seed": seed, "verbose": self.verbose}
        options: dict[str, Any] = {**limits, "fit_intercept": bool(self.fit_intercept), "tuning": self._tuning}
        if self.solver == "svrg":
            start = None if warm is None else warm.start(SVRGState, problem.y)
            epochs = solve_svrg(*task, learning_rate=self._constant_step(), state=start, **options)
            self._set_linear(epochs.W, epochs.b)
            self.trajectory_ = epochs.trajectory
            return epochs
        state = solve_multi_margin(
            *task, state=None if warm is None else warm.start(DualState, problem.y), n_jobs=self.n_jobs, **options
        )
        self._set_linear(state.W, state.b)
        return state

    def _fit_rows(self, rows: OpenRows | Collections, checkpoint: Any) -> None:
        if self.solver == "svrg":
            raise ValueError("solver='svrg' needs all rows in memory; use solver='dual' for rows in blocks.")
        super()._fit_rows(rows, checkpoint)

    def _block_problem(self, k: int, total_weight: float) -> BlockProblem:
        return block_problem(k, float(self.C), bool(self.fit_intercept))

    def _solve_sample(
        self, X: Rows, y: np.ndarray, caps: np.ndarray, k: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        found = solve_multi_margin(
            X, y, (k + 1) * caps, k, fit_intercept=bool(self.fit_intercept),
            tol=self._tuning.common.start_tol, seed=seed, n_jobs=self.n_jobs,
        )  # fmt: skip
        return found.W, found.b

    def _publish_blocks(self, rows: BlockRows, problem: BlockProblem, found: BlockState, scale: float = 1.0) -> None:
        super()._publish_blocks(rows, problem, found, len(self.classes_) + 1.0)

    def _fit_kernel(self, problem: Problem, seed: int, warm: WarmStart | None) -> Solution:
        self._check_kernel()
        scale, offset = problem.n_classes + 1, self._constant_feature(problem.n_classes)
        state = self._solve_kernel(problem, self.C * problem.weight / scale, seed, warm, False, offset)
        coef, _ = state.published(problem.y)
        self._set_kernel(problem, coef, offset * coef.sum(axis=0))
        return replace(state, objective=scale * state.objective)
