"""The multi-class optimal margin distribution machine of Zhang and Zhou (2017)."""

from __future__ import annotations

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
from ..solvers.odm.inner_kernel import KernelPoint, solve_odm_kernel
from ..solvers.odm.inner_linear import LinearPoint, newton_pays, solve_odm_linear, solve_odm_newton
from ..solvers.odm.many_rows import solve_many, solve_sample
from ..solvers.odm.outer import Limits, OdmProblem, OdmSolution
from ..solvers.odm.published import FrozenPoint, solve_odm_published, solve_odm_published_kernel
from ..solvers.odm.smooth import solve_odm_smooth
from ._base import COUNT, Problem, warn_of_fit
from ._dual import DualMachine
from ._solution import Solution, WarmStart


class ODMClassifier(DualMachine):
    """Optimal margin distribution machine: margins near one, neither below nor far above.

    With the margin ``gamma_i = f_{i,y_i} - max_{l != y_i} f_il`` and the weights ``s_i`` it minimises::

        1/2 ||W||^2 + c sum_i s_i [ (1 - theta - gamma_i)_+^2 + mu (gamma_i - 1 - theta)_+^2 ],
        c = C / (sum_j s_j (1 - theta)^2)

    A margin below the band ``[1 - theta, 1 + theta]`` costs, and so does, less, one above it: their mean is held near
    one and their variance small.  The objective is not convex unless ``mu = 0`` or there are two classes; it never
    rises during a fit.

    Parameters
    ----------
    C : float, default=400.0
        Weight of the mean loss against the penalty, the paper's lambda.  It is divided by the number of samples: ``C``
        equal to that number is as strong as ``C=1`` of `CrammerSingerSVC`.
    mu : float in [0, 1], default=0.5
        Price of margins above the band; those below it cost one.
    theta : float in [0, 0.99], default=0.2
        Half the width of the band in which margins are free.  A wider band leaves fewer support vectors.
    solver : {"auto", "mm", "newton", "lbfgs", "paper"}, default="auto"
        ``"mm"`` minimises convex majorisers by dual block ascent: certified, for sparse rows and kernels as well; where
        it is slow and the parameters are few, Newton steps take over.  ``"newton"`` minimises the same majorisers by
        Newton steps from the beginning.  ``"lbfgs"`` smooths the maximum over the rivals and has no certificate.
        ``"paper"`` repeats the published outer loop for comparison: its objective may rise, and it penalises the
        intercept.  ``"newton"`` and ``"lbfgs"`` are for ``kernel="linear"`` only.  ``"auto"`` chooses between the
        first two.
    n_init : int, default=1
        Number of starts; the best end is kept.  The first start is the solution with ``mu=0``, the others begin with
        random rivals.
    max_outer : int, default=20
        Largest number of majorisers.
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
        Fit an intercept for each class; it is not penalised.
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
    outer_objectives_ : ndarray of shape (n_outer_iter_ + 1,)
        The objective at the start and after each majoriser.
    n_outer_iter_ : int
        Number of majorisers that were minimised.

    See Also
    --------
    CrammerSingerSVC : Only the smallest margins count.

    Notes
    -----
    ``objective_`` is the objective above.  ``dual_gap_`` belongs to the last convex problem (None for ``"lbfgs"``).
    The algorithm printed in the paper freezes the score of the rival instead of the rival, which does not majorise.

    References
    ----------
    Zhang and Zhou, Multi-class optimal margin distribution machine, ICML 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import ODMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ODMClassifier().fit(X, y)
    >>> round(clf.score(X, y), 2), bool((clf.outer_objectives_[1:] <= clf.outer_objectives_[:-1]).all())
    (0.98, True)
    """

    _in_blocks = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DualMachine._parameter_constraints,
        "mu": [Interval(Real, 0, 1, closed="both")],
        "theta": [Interval(Real, 0, 0.99, closed="both")],
        "solver": [StrOptions({"auto", "mm", "newton", "lbfgs", "paper"})],
        "n_init": COUNT,
        "max_outer": COUNT,
    }

    def __init__(
        self,
        C: float = 400.0,
        mu: float = 0.5,
        theta: float = 0.2,
        *,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        cache_size: float = 500,
        solver: str = "auto",
        n_init: int = 1,
        max_outer: int = 20,
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
            fit_intercept=fit_intercept, class_weight=class_weight, tol=tol, max_iter=max_iter, warm_start=warm_start,
            n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.mu = mu
        self.theta = theta
        self.solver = solver
        self.n_init = n_init
        self.max_outer = max_outer

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return "odm", 1

    def _has_free_intercept(self) -> bool:
        return bool(self.fit_intercept) and self.solver != "paper"

    def _margin_loss(self, problem: Problem) -> tuple[np.ndarray, tuple[Any, ...]]:
        machine = self._problem(problem)
        return machine.cap, ("odm", 1, machine.mu, machine.theta)

    def _penalty(self, W: np.ndarray, b: np.ndarray) -> float:
        return super()._penalty(W, b) + (0.5 * float(b @ b) if self.solver == "paper" else 0.0)

    def _problem(self, problem: Problem) -> OdmProblem:
        mu, theta = float(self.mu), float(self.theta)
        cap = float(self.C) / (problem.weight.sum() * (1 - theta) ** 2) * problem.weight
        return OdmProblem(
            problem.y, cap, problem.n_classes, mu if mu >= 1e-12 else 0.0, theta, bool(self.fit_intercept)
        )

    def _fit_linear(self, problem: Problem, seed: int, warm: WarmStart | None) -> Solution:
        odm, X = self._problem(problem), problem.X
        last = None if warm is None else warm.start(OdmSolution, problem.y)
        start = None if last is None else last.point
        if not isinstance(start, LinearPoint) or start.W.shape[1] != X.shape[1]:
            start = None
        solver = self.solver
        if solver == "auto":
            found = solve_many(X, odm, self._limits(seed), start, self.n_jobs, self.verbose)
            if found is not None:
                self._set_linear(found.point.W, found.point.b)
                return self._published(found)
            solver = "newton" if newton_pays(X, odm, self._tuning) else "mm"
        solve = {
            "mm": solve_odm_linear,
            "newton": solve_odm_newton,
            "lbfgs": solve_odm_smooth,
            "paper": solve_odm_published,
        }[solver]
        end = solve(X, odm, self._limits(seed), start)
        self._set_linear(end.point.W, end.point.b)
        return self._published(end)

    def _fit_rows(self, rows: OpenRows | Collections, checkpoint: Any) -> None:
        if self.solver not in ("auto", "newton"):
            raise ValueError(
                f"Rows in blocks and Dask collections need solver='auto' or 'newton', got solver={self.solver!r}."
            )
        super()._fit_rows(rows, checkpoint)

    def _block_problem(self, k: int, total_weight: float) -> BlockProblem:
        mu, theta = float(self.mu), float(self.theta)
        return BlockProblem(
            k, "odm", float(self.C) / (total_weight * (1 - theta) ** 2), mu=mu if mu >= 1e-12 else 0.0, theta=theta,
            intercept="free" if self.fit_intercept else "none",
        )  # fmt: skip

    def _solve_sample(
        self, X: Rows, y: np.ndarray, caps: np.ndarray, k: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        return solve_sample(X, y, caps, self._block_problem(k, 1.0), self._limits(seed))

    def _publish_blocks(self, rows: BlockRows, problem: BlockProblem, found: BlockState, scale: float = 1.0) -> None:
        super()._publish_blocks(rows, problem, found, scale)
        self.outer_objectives_, self.n_outer_iter_ = np.array([self.objective_]), 0

    def _fit_kernel(self, problem: Problem, seed: int, warm: WarmStart | None) -> Solution:
        odm, limits = self._problem(problem), self._limits(seed)
        last = None if warm is None else warm.start(OdmSolution, problem.y)
        start = None if last is None else last.point
        if self.solver == "paper":
            rows, _ = self._kernel_rows(problem, offset=float(self.fit_intercept))
            end = solve_odm_published_kernel(rows, odm, limits, start if isinstance(start, FrozenPoint) else None)
            coef, b = end.point.coef, end.point.b
        elif self.solver in ("auto", "mm"):
            rows, tiny = self._kernel_rows(problem)
            end = solve_odm_kernel(rows, odm, limits, tiny, start if isinstance(start, KernelPoint) else None)
            coef, b = end.point.coef, end.point.state.b
        else:
            raise ValueError(
                f"solver={self.solver!r} fits kernel='linear' only, got kernel={self.kernel!r}; use solver='mm'."
            )
        self._set_kernel(problem, coef, b)
        return self._published(end)

    def _limits(self, seed: int) -> Limits:
        return Limits(float(self.tol), int(self.max_iter), int(self.max_outer), self.n_init, seed, self._tuning)

    def _published(self, end: OdmSolution) -> OdmSolution:
        self.outer_objectives_, self.n_outer_iter_ = end.objectives, len(end.objectives) - 1
        return end

    def _warn_unless_converged(self, solution: Solution) -> None:
        assert isinstance(solution, OdmSolution)
        published = 0.0 if self.dual_gap_ is None else self.dual_gap_
        if solution.converged and published <= max(self.tol, solution.gap or 0.0):
            return
        within = f"within max_iter={self.max_iter} passes and max_outer={self.max_outer} majorisers"
        stuck = solution.stuck or solution.converged  # as far as double precision goes
        if stuck:
            within = f"in {solution.n_iter} passes, after which nothing moved any more"
        last = "" if solution.gap is None else f", the last majoriser with a relative duality gap of {solution.gap:.2e}"
        warn_of_fit(
            f"{type(self).__name__} did not reach tol={self.tol:.2e} {within}{last}. Increase "
            f"{'' if stuck else 'max_iter, max_outer or '}tol, or scale the features."
        )
