"""The multi-class machine of Lei et al. (2015)."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from ..rows.gram import gram
from ..rows.kernel_rows import KernelRows
from ..rows.row_cache import RowCache
from ..solvers.block_norm.ascent import LpKernelState, solve_lp, solve_lp_kernel
from ..solvers.dual.kernel_factor import factor
from ..solvers.dual.plan import can_factor
from ..solvers.dual.state import DualState, KernelState
from ._base import Problem
from ._documented import documented
from ._dual import DualMachine, WarmStart


@documented
class LpNormSVC(DualMachine):
    """Multi-class SVM of Lei et al.: the norms of the class vectors are coupled by a p-norm.

    Minimises, with scores ``f_il = w_l'x_i + b_l`` and weights ``s_i``::

        1/2 (sum_l ||w_l||^p)^(2/p) + C sum_i s_i max(0, 1 - f_{i,y_i} + max_{l != y_i} f_il)

    ``p = 2`` is the machine of Crammer and Singer.  ``p`` near 1 lets few classes have long vectors, a large
    ``p`` makes all of them equally long.  With equal ``C`` a larger ``p`` is a weaker penalty: tune both.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    p : float, default=1.5
        The norm, from 1.05 to 50.
    {parameters}

    Attributes
    ----------
    {attributes}

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
    }

    def __init__(
        self,
        C: float = 1.0,
        p: float = 1.5,
        *,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        cache_size: float = 500,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            C, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, cache_size=cache_size,
            fit_intercept=fit_intercept, class_weight=class_weight, tol=tol, max_iter=max_iter,
            warm_start=warm_start, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.p = p

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return "max", 1

    def _fit_linear(self, problem: Problem, seed: int, warm: WarmStart | None) -> DualState:
        state = solve_lp(
            problem.X, problem.y, self.C * problem.weight, problem.n_classes, float(self.p),
            fit_intercept=bool(self.fit_intercept), tol=self.tol, max_iter=self.max_iter, seed=seed,
            n_jobs=self.n_jobs, verbose=self.verbose, tuning=self._tuning,
            state=warm.solution if warm is not None and warm.fits(problem, DualState) else None,
        )  # fmt: skip
        self._set_linear(state.W, state.b)
        return state

    def _fit_kernel(  # type: ignore[override]
        self, problem: Problem, seed: int, warm: WarmStart | None
    ) -> LpKernelState | KernelState:
        if self.p == 2:
            return super()._fit_kernel(problem, seed, warm)
        X, y, k = self._kernel_points(problem), problem.y, problem.n_classes
        n = len(y)
        arguments = (self.kernel, self._gamma, self.degree, self.coef0)

        def whole(dtype: Any) -> np.ndarray | RowCache:
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
            n > self._tuning.block_norm.float64_rows
            and isinstance(self.kernel, str)
            and self._row_dtype(X) == np.float32
        )

        def factored() -> np.ndarray | None:
            rows = KernelRows(X, *arguments, np.float64, self.cache_size, self.n_jobs)
            return factor(rows) if can_factor(n, self.cache_size, self._tuning.kernel) else None

        state = solve_lp_kernel(
            matrix, y, self.C * problem.weight, k, float(self.p),
            coarse=(lambda: whole(np.float32)) if single else None, factored=factored,
            fit_intercept=bool(self.fit_intercept), tol=self.tol, max_iter=self.max_iter, seed=seed,
            verbose=self.verbose, tuning=self._tuning,
            state=warm.solution if warm is not None and warm.fits(problem, LpKernelState) else None,
        )  # fmt: skip
        self._set_kernel(problem, state.W, state.b)
        return state
