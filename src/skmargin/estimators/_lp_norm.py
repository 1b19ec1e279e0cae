"""The multi-class machine of Lei et al. (2015)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from .._config import get_config
from .._types import ClassWeight, RandomState, Rows
from ..rows.gram import gram, gram_diagonal, value_steps
from ..rows.kernel_rows import KernelRows
from ..rows.row_cache import RowCache
from ..solvers.block_norm.ascent import LpKernelState, solve_lp, solve_lp_kernel
from ..solvers.block_norm.interior_point import half_square
from ..solvers.block_norm.margin_loss import MarginLoss
from ..solvers.block_norm.published import PublishedProblem, solve_published, solve_published_kernel
from ..solvers.certificate import UNIT, Evaluation
from ..solvers.dual.kernel_factor import factor
from ..solvers.dual.plan import can_factor
from ..solvers.dual.state import DualState, lower_bound
from ..solvers.many_classes import suits
from ..solvers.many_classes.plan import dense_bytes
from ._base import GOAL, Problem
from ._dual import DualMachine
from ._solution import Solution, WarmStart


class LpNormSVC(DualMachine):
    """Multi-class SVM of Lei et al.: the norms of the class vectors are coupled by a p-norm.

    Minimises, with scores ``f_il = w_l'x_i + b_l``, margins ``t_i = f_{i,y_i} - max_{l != y_i} f_il`` and weights
    ``s_i``::

        1/2 (sum_l ||w_l||^p)^(2/p) + C sum_i s_i loss(t_i)

    ``p = 2`` with the hinge is the machine of Crammer and Singer.  ``p`` near 1 lets few classes have long vectors, a
    large ``p`` makes all of them equally long.  With equal ``C`` a larger ``p`` is a weaker penalty: tune both.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    p : float, default=1.5
        The norm, from 1.05 to 50.
    loss : {"hinge", "squared_hinge", "log_loss"}, default="hinge"
        Loss of the margin ``t``: ``max(0, 1 - t)``, its square, or ``log(1 + exp(-t))``.  The last is that of the
        smallest margin, as in the paper: with more than two classes it is not the loss of multinomial logistic
        regression, and gives no probabilities.
    solver : {"auto", "paper"}, default="auto"
        ``"auto"`` solves the problem for every ``p``.  ``"paper"`` repeats the published alternation of class weights
        and weighted machines for comparison: it needs many rounds for ``p`` near 1, and for ``p`` above 2, where it
        rests on an equation that does not hold, it may overshoot and end, with a warning, far from the optimum.
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
    coef_ : {ndarray, CSR array} of shape (n_classes, n_features) or (1, n_features)
        Class vectors of a linear machine; with two classes their difference.  Sparse where so many classes and
        features would take more than `max_dense_bytes` (`skmargin.get_config`).
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
    outer_objectives_ : ndarray of shape (n_rounds,)
        The objective after each round (``solver="paper"`` only).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names.

    See Also
    --------
    CrammerSingerSVC : The case ``p = 2``.

    Notes
    -----
    A kernel machine (``p`` other than 2) keeps the kernel matrix of the training rows if it fits into ``cache_size``;
    otherwise it keeps as many rows as fit and computes the others where they are needed, which is slower.

    References
    ----------
    Lei, Dogan, Binder and Kloft, Multi-class SVMs: from tighter data-dependent generalization bounds to novel
    algorithms, NeurIPS 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import LpNormSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LpNormSVC(C=10, p=1.2).fit(X, y)
    >>> round(clf.score(X, y), 2), bool(clf.dual_gap_ <= clf.tol)
    (0.98, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DualMachine._parameter_constraints,
        "p": [Interval(Real, 1.05, 50, closed="both")],
        "loss": [StrOptions({"hinge", "squared_hinge", "log_loss"})],
        "solver": [StrOptions({"auto", "paper"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        p: float = 1.5,
        *,
        loss: str = "hinge",
        solver: str = "auto",
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
        self.p = p
        self.loss = loss
        self.solver = solver

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return MarginLoss(self.loss).core, 1

    def _penalty(self, W: np.ndarray, b: np.ndarray) -> float:
        if self.p == 2:
            return super()._penalty(W, b)
        norms = np.sqrt(np.einsum("ij,ij->i", W, W))
        largest = float(norms.max())
        p = float(self.p)
        return 0.5 * largest**2 * float(((norms / largest) ** p).sum()) ** (2 / p) if largest > 0 else 0.0

    def _fit_linear(self, problem: Problem, seed: int, warm: WarmStart | None) -> Solution:
        self.__dict__.pop("outer_objectives_", None)
        if suits(problem.X, problem.n_classes, self._tuning) and self._is_plain():
            return self._fit_many(problem, seed, warm, float(self.p))
        self._check_dense(problem)
        start = None if warm is None else warm.start(DualState, problem.y)
        if self.solver == "paper":
            task = self._published_problem(problem, seed, GOAL * float(self.tol))
            state, self.outer_objectives_ = solve_published(problem.X, task, start, self._tuning)
        else:
            state = solve_lp(
                problem.X, problem.y, self.C * problem.weight, problem.n_classes, float(self.p), MarginLoss(self.loss),
                fit_intercept=bool(self.fit_intercept), tol=GOAL * float(self.tol), max_iter=self.max_iter, seed=seed,
                n_jobs=self.n_jobs, verbose=self.verbose, tuning=self._tuning, state=start,
            )  # fmt: skip
        self._set_linear(state.W, state.b)
        return state

    def _is_plain(self) -> bool:
        """Whether this is the machine that all solvers know."""
        return bool(self.loss == "hinge" and self.solver == "auto")

    def _check_dense(self, problem: Problem) -> None:
        """Refuse class vectors that only the solver for very many classes could hold."""
        size, most = dense_bytes(problem.X.shape[1], problem.n_classes), get_config()["max_dense_bytes"]
        if size > most and sparse.issparse(problem.X):
            raise ValueError(
                f"loss={self.loss!r} with solver={self.solver!r} needs dense class vectors, which take {size} bytes, "
                f"and max_dense_bytes={most}: set a larger one with skmargin.set_config, or use loss='hinge' with "
                "solver='auto'."
            )

    def _published_problem(self, problem: Problem, seed: int, tol: float) -> PublishedProblem:
        return PublishedProblem(
            problem.y, self.C * problem.weight, problem.n_classes, float(self.p), MarginLoss(self.loss),
            bool(self.fit_intercept), tol, self.max_iter, seed, self.verbose,
        )  # fmt: skip

    def _fit_kernel(self, problem: Problem, seed: int, warm: WarmStart | None) -> Solution:
        self.__dict__.pop("outer_objectives_", None)
        if self.p == 2 and self._is_plain():
            return super()._fit_kernel(problem, seed, warm)
        X, y, k = self._kernel_points(problem), problem.y, problem.n_classes
        n = len(y)
        arguments = (self.kernel, self._gamma, self.degree, self.coef0)

        def whole(dtype: DTypeLike) -> np.ndarray | RowCache:
            if self.kernel == "precomputed" or n**2 * np.dtype(dtype).itemsize <= self.cache_size * 2**20:
                return np.ascontiguousarray(gram(X, None, *arguments, dtype=dtype), dtype=dtype)
            return RowCache(X, *arguments, dtype, self.cache_size)

        def matrix(rows: np.ndarray | None) -> np.ndarray | RowCache:
            if rows is None or self.kernel == "precomputed":
                return whole(np.float64)
            K = RowCache(X, *arguments, np.float64, self.cache_size)
            K.prepare(rows)
            return K

        # Not a function, which may take long: it would be asked twice.
        single = (
            n**2 > self._tuning.common.cache_numbers
            and isinstance(self.kernel, str)
            and self._row_dtype(X) == np.float32
        )

        def all_rows() -> KernelRows:
            return KernelRows(X, *arguments, np.float64, self.cache_size, self.n_jobs)

        def factored() -> np.ndarray | None:
            return factor(all_rows()) if can_factor(n, self.cache_size, self._tuning) else None

        start = None if warm is None else warm.start(LpKernelState, y)
        if self.solver == "paper":
            K = whole(np.float64)
            task = self._published_problem(problem, seed, float(self.tol))
            times = _products(all_rows()) if isinstance(K, RowCache) else K.__matmul__
            state, self.outer_objectives_ = solve_published_kernel(K, times, task, start, self._tuning)
        else:
            state = solve_lp_kernel(
                matrix, y, self.C * problem.weight, k, float(self.p), MarginLoss(self.loss),
                coarse=(lambda: whole(np.float32)) if single else None, factored=factored,
                fit_intercept=bool(self.fit_intercept), tol=self.tol, max_iter=self.max_iter, seed=seed,
                verbose=self.verbose, tuning=self._tuning, state=start,
            )  # fmt: skip
        self._set_kernel(problem, state.W, state.b)
        evaluation = self._evaluated_kernel(problem, X, state, _products(all_rows()))
        bound = lower_bound(state.objective, state.gap)
        return replace(state, objective=evaluation.objective, gap=evaluation.gap(bound))

    def _evaluated_kernel(
        self, problem: Problem, X: Rows, state: LpKernelState, times: Callable[[np.ndarray], np.ndarray]
    ) -> Evaluation:
        """The objective of the published coefficients, whose scores and lengths are sums over all rows."""
        diagonal = np.abs(gram_diagonal(X, self.kernel, self._gamma, self.degree, self.coef0))
        F, loss = times(state.W), MarginLoss(self.loss)
        squares = np.maximum(np.einsum("il,il->l", state.W, F), 0.0)
        cap, sizes = self.C * problem.weight, np.sqrt(diagonal) @ np.abs(state.W)
        losses = float(cap @ loss.value(loss.excess(F + state.b, problem.y)))
        steps = UNIT * (len(state.W) + value_steps(self.kernel, X.shape[1], self.degree))
        error = steps * (np.sqrt(float(diagonal.max())) * float(sizes.max()) + float(np.abs(state.b).max()))
        slope = total = float(cap.sum())  # of all losses together; those of a square add up to the root of their sum
        if self.loss == "squared_hinge":
            slope = 2 * (np.sqrt(total * losses) + total * error)
        longest, p = squares + steps * sizes**2, float(self.p)
        penalty, longer = (half_square(np.sqrt(q)[:, None], p) for q in (squares, longest))
        return Evaluation(penalty + losses, 2 * slope * error + longer - penalty)


def _products(rows: KernelRows) -> Callable[[np.ndarray], np.ndarray]:
    """The map from coefficients (n, k) to the product of the kernel matrix with them."""

    def times(coef: np.ndarray) -> np.ndarray:
        F = np.zeros(coef.shape[::-1])
        rows.add(F, np.arange(rows.n), coef)
        return F.T

    return times
