"""The multi-class machine of Xu et al. (2017)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ..rows.files import OpenRows
from ..solvers.blocks.newton import BlockState
from ..solvers.blocks.passes import BlockProblem
from ..solvers.dual.many_rows import SAMPLE_TOL
from ..solvers.dual.state import DualState, KernelState
from ..solvers.multi_margin.exact import block_problem, solve_multi_margin
from ..solvers.multi_margin.svrg import SVRGState, solve_svrg
from ._base import Problem
from ._documented import documented
from ._dual import DualMachine, WarmStart


@documented
class MultiMarginSVC(DualMachine):
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
    {parameters}

    Attributes
    ----------
    trajectory_ : ndarray of shape (n_iter_ + 1,)
        Objective before the first and after each epoch (``solver="svrg"``).
    {attributes}

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
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DualMachine._parameter_constraints,
        "solver": [StrOptions({"dual", "svrg"})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        solver: str = "dual",
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
        self.solver = solver

    def _is_exact(self) -> bool:
        return self.solver != "svrg"

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return "sum", n_classes - 1

    def _fit_linear(self, problem: Problem, seed: int, warm: WarmStart | None) -> DualState | SVRGState:  # type: ignore[override]
        kind: type = SVRGState if self.solver == "svrg" else DualState
        start = warm.solution if warm is not None and warm.fits(problem, kind) else None
        solve: Any = solve_svrg if self.solver == "svrg" else partial(solve_multi_margin, n_jobs=self.n_jobs)
        state = solve(
            problem.X, problem.y, self.C * problem.weight, problem.n_classes,
            fit_intercept=bool(self.fit_intercept), tol=self.tol, max_iter=self.max_iter, seed=seed, state=start,
            verbose=self.verbose, tuning=self._tuning,
        )  # fmt: skip
        self._set_linear(state.W, state.b)
        if self.solver == "svrg":
            self.trajectory_ = state.trajectory
        return state

    def _fit_rows(self, rows: OpenRows) -> None:
        if self.solver == "svrg":
            raise ValueError("solver='svrg' needs all rows in memory; use solver='dual' for rows in blocks.")
        super()._fit_rows(rows)

    def _block_problem(self, k: int, total_weight: float) -> BlockProblem:
        return block_problem(k, float(self.C), bool(self.fit_intercept))

    def _solve_sample(
        self, X: Any, y: np.ndarray, caps: np.ndarray, k: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        found = solve_multi_margin(
            X, y, (k + 1) * caps, k, fit_intercept=bool(self.fit_intercept), tol=SAMPLE_TOL, seed=seed,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        return found.W, found.b

    def _publish_blocks(self, found: BlockState) -> None:
        super()._publish_blocks(replace(found, objective=(len(self.classes_) + 1) * found.objective))

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("trajectory_", None)

    def _fit_kernel(self, problem: Problem, seed: int, warm: WarmStart | None) -> KernelState:
        if self.solver == "svrg":
            raise ValueError(f"solver='svrg' needs kernel='linear', got kernel={self.kernel!r}; use solver='dual'.")
        scale = problem.n_classes + 1
        offset = float(scale) if self.fit_intercept else 0.0  # the square of the constant feature
        state = self._solve_kernel(problem, self.C * problem.weight / scale, seed, warm, False, offset)
        coef, _ = state.machine(problem.y)
        self._set_kernel(problem, coef, offset * coef.sum(axis=0))
        return replace(state, objective=scale * state.objective)


assert MultiMarginSVC.__doc__ is not None
MultiMarginSVC.__doc__ = MultiMarginSVC.__doc__.replace("it is not penalised", "it is penalised, as in the paper")
