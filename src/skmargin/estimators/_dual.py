"""What the machines with a dual share: linear or kernel, weights, warm start, certificate."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._runtime.checkpoint import Checkpoint
from .._runtime.memory import free_memory
from .._runtime.threads import blas_threads
from .._types import ClassWeight, LabelsLike, RandomState, Rows, RowsLike, WeightsLike
from ..rows.blocks import BlockRows
from ..rows.collections import Collections
from ..rows.files import OpenRows
from ..rows.gram import GRAM32_RTOL, KERNELS, check_symmetric, gram, resolve_gamma
from ..rows.kernel_rows import KernelRows, max_squared_norm, row_dtype
from ..rows.moments import Sample
from ..solvers import certificate
from ..solvers.blocks.from_rows import Loaded, is_small, load, solve_rows
from ..solvers.blocks.loads import LoadStart, LoadState, RowDuals
from ..solvers.blocks.newton import BlockState
from ..solvers.blocks.passes import BlockProblem
from ..solvers.blocks.published import certified
from ..solvers.dual.kernel import solve_kernel_dual
from ..solvers.dual.kernel_factor import solve_kernel_factor
from ..solvers.dual.linear import solve_linear
from ..solvers.dual.plan import can_factor, factor_cost, first_method_iterations
from ..solvers.dual.state import DualState, KernelState, lower_bound
from ..solvers.many_classes import ManyState, solve_many, suits
from ._base import COUNT, GOAL, JOBS, MOST_CAP, Problem, check_caps, check_finite, fitting, seed_of, warn_of_fit
from ._scores import KernelScores
from ._solution import Solution, WarmStart

LONGER = (1 / 32, 1 / 8, 1 / 3)  # by these shares of the tolerance class vectors may be longer than the solver's
LOST = 1e-9  # share of the objective that rounding must have warm it is blamed
MOST_KERNEL_CAP = 1e15  # bound of a dual beyond which sums of a kernel machine lose its margins
PROBE = 64  # rows on which a kernel function is tried


class DualMachine(KernelScores):
    """A convex machine that is solved in the dual; a subclass names its loss."""

    _in_blocks = False  # whether a linear machine can be fitted to rows in blocks
    _model_state = ("_gamma",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": COUNT,
        "warm_start": ["boolean"],
        "n_jobs": JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
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
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cache_size = cache_size
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _loss(self, n_classes: int) -> tuple[str, int]:
        """Name of the loss in the core and, for "top", how many rivals count."""

    @fitting
    def fit(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike = None, checkpoint: Any = None) -> DualMachine:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the kernel matrix (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the losses: weight 0 removes a row, weight 2 repeats it.
        checkpoint : path, default=None
            For rows in blocks and Dask collections: a file that keeps the point reached, so that the same call goes on
            from there after its process has ended; removed at the end.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if checkpoint is not None:
            raise ValueError("checkpoint is for rows in blocks (open_rows) and Dask collections; X is in memory.")
        self._fit_problem(self._check_problem(X, y, sample_weight))
        return self

    def _fit_problem(self, problem: Problem) -> None:
        """Fit to checked rows in memory."""
        caps, _ = self._margin_loss(problem)
        check_caps(float(self.C), caps / float(self.C), MOST_CAP if self._is_linear() else MOST_KERNEL_CAP)
        seed = seed_of(self.random_state)
        warm = getattr(self, "_warm_state", None) if self.warm_start else None
        self.__dict__.pop("_warm_state", None)
        loss = self._loss(problem.n_classes)
        if warm is not None and warm.setting != loss:  # its duals need not lie within the bounds of this one
            warm = None
        solution: Solution
        if self._is_linear():
            many = suits(problem.X, problem.n_classes, self._tuning)
            origin = certificate.far_origin(problem.X) if self._has_free_intercept() and not many else None
            solution = self._fit_centred(problem, seed, warm, origin)
        else:
            # Kernel rows have threads of their own, which those of BLAS would keep waiting.
            with blas_threads(1):
                solution = self._fit_kernel(problem, seed, warm)
        objective, gap, lost = solution.objective, solution.gap, 0.0
        if self._is_linear():
            objective, gap, lost = self._certified(problem, solution, origin is not None)
        check_finite(self, objective)
        if self.warm_start:
            self._warm_state = WarmStart(solution, problem.y, self.C * problem.weight, loss)
        self.objective_, self.dual_gap_, self.n_iter_ = objective, gap, solution.n_iter
        if self._has_no_certificate():
            return
        if gap is not None and (solution.gap or 0.0) <= self.tol < gap and lost > max(LOST, 0.1 * self.tol):
            self._warn_of_lost_digits(problem.X, gap)
        else:
            self._warn_unless_converged(solution)

    def _fit_centred(self, problem: Problem, seed: int, warm: WarmStart | None, origin: np.ndarray | None) -> Any:
        """Fit a linear machine; where a free intercept makes up for it, on rows taken from an origin near them."""
        if origin is None:
            return self._fit_linear(problem, seed, warm)
        solution = self._fit_linear(problem._replace(X=certificate.minus(problem.X, origin)), seed, warm)
        self.intercept_ = certificate.at_origin(self.coef_, self.intercept_, origin)
        return solution

    def _has_free_intercept(self) -> bool:
        return bool(self.fit_intercept)

    def _certified(self, problem: Problem, solution: Any, centred: bool) -> tuple[float, float | None, float]:
        """Objective and gap of the linear machine as it is published, and which share of the objective is rounding.

        Class vectors that are a little longer take samples away from the kinks of their losses, where rounding counts:
        where it would cost the certificate, and they do better, they are published.
        """
        cap, loss = self._margin_loss(problem)
        if isinstance(solution, ManyState):  # its last scan was of the published class vectors, in double precision
            terms = int(np.diff(problem.X.indptr).max(initial=0))
            rounding = certificate.solver_rounding(solution, terms, cap, loss, problem.n_classes)
            found = certificate.Evaluation(solution.objective, rounding)
            gap = found.gap(lower_bound(solution.objective, solution.gap))
            return solution.objective, gap, rounding / max(solution.objective, np.finfo(float).tiny)
        if not centred and loss[0] != "odm" and solution.gap is not None:
            known = certificate.negligible_rounding(
                solution, problem.X.shape[1], cap, loss, problem.n_classes, self.tol
            )
            if known is not None:
                return solution.objective, min(1.0, solution.gap + known / solution.objective), 0.0
        found = self._evaluated(problem)
        if solution.gap is None:
            return found.objective, None, 0.0
        bound = lower_bound(solution.objective, solution.gap)
        if not found.gap(bound) <= self.tol and solution.gap <= self.tol:
            coef, intercept, best = self.coef_, self.intercept_, (found.gap(bound), found, 1.0)
            for share in LONGER:
                self.coef_, self.intercept_ = (1 + share * self.tol) * coef, (1 + share * self.tol) * intercept
                found = self._evaluated(problem)
                best = min(best, (found.gap(bound), found, 1 + share * self.tol))
            self.coef_, self.intercept_ = best[2] * coef, best[2] * intercept
            found = best[1]
        lost = found.rounding + max(0.0, found.objective - solution.objective)
        return found.objective, found.gap(bound), lost / max(found.objective, np.finfo(float).tiny)

    def _evaluated(self, problem: Problem) -> certificate.Evaluation:
        """The linear machine as it is published, on the rows as they were given."""
        cap, loss = self._margin_loss(problem)
        return certificate.evaluate_margins(
            problem.X, problem.y, cap, self.coef_, self.intercept_, loss, self._penalty, self.tol, self.n_jobs
        )

    def _margin_loss(self, problem: Problem) -> tuple[np.ndarray, tuple[Any, ...]]:
        """The weights of the losses, and the loss as `_ext.published_losses` takes it."""
        return float(self.C) * problem.weight, self._loss(problem.n_classes)

    def _penalty(self, W: np.ndarray, b: np.ndarray) -> float:
        """The penalty of class vectors and intercepts."""
        flat = W.ravel(order="K")  # as it lies in memory: vdot would copy it first
        return 0.5 * float(flat @ flat)

    def _warn_of_lost_digits(self, X: Rows, gap: float) -> None:
        column = certificate.heaviest_column(X, self.coef_)
        name = f"{self.feature_names_in_[column]!r}" if hasattr(self, "feature_names_in_") else f"{column}"
        warn_of_fit(
            f"{type(self).__name__} has a certified gap of {gap:.2e} instead of tol={self.tol:.2e}: double precision "
            f"cannot carry column {name} of X, whose numbers are too large beside what tells them apart. Take an "
            "offset off the column, scale it, or leave it out."
        )

    def _warn_unless_converged(self, solution: Solution) -> None:
        if self.dual_gap_ is not None and self.dual_gap_ > self.tol:
            self._warn_not_converged(self.dual_gap_)

    def _fit_linear(self, problem: Problem, seed: int, warm: WarmStart | None) -> Solution:
        """Solve for class vectors, and publish them."""
        if suits(problem.X, problem.n_classes, self._tuning):
            return self._fit_many(problem, seed, warm)
        state = solve_linear(
            problem.X, problem.y, self.C * problem.weight, problem.n_classes, *self._loss(problem.n_classes),
            fit_intercept=bool(self.fit_intercept), tol=GOAL * float(self.tol), max_iter=self.max_iter, seed=seed,
            state=None if warm is None else warm.start(DualState, problem.y), n_jobs=self.n_jobs,
            verbose=self.verbose, tuning=self._tuning,
        )  # fmt: skip
        self._set_linear(state.W, state.b)
        return state

    def _fit_many(self, problem: Problem, seed: int, warm: WarmStart | None, p: float = 2.0) -> Solution:
        """A linear machine of so many classes that its class vectors are sparse."""
        state = solve_many(
            problem.X, problem.y, self.C * problem.weight, problem.n_classes, *self._loss(problem.n_classes), p,
            fit_intercept=bool(self.fit_intercept), tol=self.tol, max_iter=self.max_iter, seed=seed,
            state=None if warm is None else warm.start(ManyState, problem.y), n_jobs=self.n_jobs,
            verbose=self.verbose, tuning=self._tuning,
        )  # fmt: skip
        self._set_linear(state.W, state.b)
        return state

    def _fit_rows(self, rows: OpenRows | Collections, checkpoint: Any) -> None:
        """Fit to rows in blocks."""
        if not self._is_linear():
            raise ValueError(f"Rows in blocks and Dask collections need kernel='linear', got kernel={self.kernel!r}.")
        self._fit_blocks(self._count_rows(rows), checkpoint)

    def _fit_blocks(self, rows: BlockRows, checkpoint: Any = None) -> None:
        """Fit to counted rows, wherever they are; ``classes_`` and ``n_features_in_`` are set."""
        k, seed = len(self.classes_), seed_of(self.random_state)
        start = self._class_vectors() if self.warm_start else None
        warm = self.__dict__.pop("_warm_state", None) if self.warm_start else None
        self.__dict__.pop("_warm_state", None)
        if is_small(rows):
            return self._fit_loaded(load(rows))
        points = None if checkpoint is None else Checkpoint(checkpoint, self._checkpoint_key(rows))
        problem = self._block_problem(k, float(rows.class_weights.sum()))
        check_caps(float(self.C), problem.C / float(self.C) * rows.class_weights, MOST_CAP)
        load_start = self._load_start(rows, warm, problem)
        if points is not None and (held := points.load()) is not None:
            start, load_start = held, LoadStart(*held, RowDuals(*points.duals)) if points.duals else None

        def solve_sample(sample: Sample, caps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return self._solve_sample(sample.X, sample.y, caps, k, seed)

        found = solve_rows(
            rows, problem, solve_sample, self._fit_loaded, free_memory, tol=GOAL * float(self.tol),
            max_iter=self.max_iter, seed=seed, start=start, load_start=load_start, verbose=self.verbose,
            save=None if points is None else points.save, tuning=self._tuning.blocks,
        )  # fmt: skip
        if found is not None:
            self._publish_blocks(rows, problem, found)
            if self.warm_start and isinstance(found, LoadState):
                codes, cap = np.concatenate(rows.codes), rows.class_weights  # type: ignore[attr-defined]
                self._warm_state = WarmStart(found, codes, cap, self._loss(k))
        if points is not None:
            points.remove()

    def _load_start(self, rows: BlockRows, warm: WarmStart | None, problem: BlockProblem) -> LoadStart | None:
        """Where block ascent over loads may start."""
        if warm is None or not hasattr(rows, "codes") or warm.setting != self._loss(len(self.classes_)):
            return None
        state = warm.start(LoadState, np.concatenate(rows.codes))
        if state is None or state.W.shape != (problem.n_classes, rows.n_features):
            return None
        return state.start(problem.C)

    def _checkpoint_key(self, rows: BlockRows) -> tuple[object, ...]:
        """All that the solution depends on, as far as it is known before."""
        steering = ("n_jobs", "verbose", "max_iter", "warm_start")
        params = {name: value for name, value in self.get_params().items() if name not in steering}
        return type(self).__name__, params, rows.n_rows, self.classes_.tolist(), rows.class_weights.tolist()

    def _fit_loaded(self, loaded: Loaded) -> None:
        X, y, weight = loaded
        self._fit_problem(Problem(X, y, weight, len(self.classes_), np.arange(len(y))))

    def _block_problem(self, k: int, total_weight: float) -> BlockProblem:
        """The machine for rows in blocks."""
        loss, top_k = self._loss(k)
        return BlockProblem(k, loss, float(self.C), top_k, intercept="free" if self.fit_intercept else "none")

    def _solve_sample(
        self, X: Rows, y: np.ndarray, caps: np.ndarray, k: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Class vectors and intercepts for some rows in memory with these weights, those of C among them."""
        found = solve_linear(
            X, y, caps, k, *self._loss(k), fit_intercept=bool(self.fit_intercept),
            tol=self._tuning.common.start_tol, seed=seed, n_jobs=self.n_jobs,
        )  # fmt: skip
        return found.W, found.b

    def _publish_blocks(self, rows: BlockRows, problem: BlockProblem, found: BlockState, scale: float = 1.0) -> None:
        """Publish a solution for rows in blocks; the objective is ``scale`` times that of the block problem."""
        self._set_linear(found.W, found.b)
        self.objective_, self.dual_gap_ = certified(
            rows, problem, found, self.coef_, self.intercept_, self._penalty, self.tol, scale
        )
        check_finite(self, self.objective_, self.dual_gap_)
        self.n_iter_ = found.n_iter
        if self.dual_gap_ > self.tol:
            self._warn_not_converged(self.dual_gap_)

    def _fit_kernel(self, problem: Problem, seed: int, warm: WarmStart | None) -> Solution:
        """Solve for coefficients of the rows, and publish them."""
        state = self._solve_kernel(problem, self.C * problem.weight, seed, warm, bool(self.fit_intercept))
        self._set_kernel(problem, *state.published(problem.y))
        return state

    def _kernel_points(self, problem: Problem) -> Any:
        """Rows between which the kernel is taken, of a precomputed kernel its square; sets the width."""
        X = problem.X
        if self.kernel == "precomputed":
            X = X[:, problem.kept]
        elif callable(self.kernel):  # on a few rows: later only parts of the matrix are asked for
            check_symmetric(gram(X[:PROBE], None, self.kernel, dtype=np.float64))
        self._gamma = resolve_gamma(self.gamma, X, problem.weight, self.kernel)
        self._indefinite = self._is_indefinite(X)
        return X

    def _kernel_rows(self, problem: Problem, offset: float = 0.0) -> tuple[KernelRows, bool]:
        """The kernel matrix, and whether a solve to rounding costs next to nothing."""
        return self._rows_between(self._kernel_points(problem), problem.n_classes, offset)

    def _rows_between(self, X: Rows, n_classes: int, offset: float) -> tuple[KernelRows, bool]:
        """The same for points whose kernel has its width."""
        tiny = X.shape[0] ** 2 * n_classes <= self._tuning.common.tiny_work
        dtype = np.float64 if tiny else self._row_dtype(X)
        rows = KernelRows(
            X,
            self.kernel,
            self._gamma,
            self.degree,
            self.coef0,
            dtype,
            self.cache_size,
            self.n_jobs,
            offset,
            self._tuning,
        )
        least, largest = rows.diagonal.min(), rows.diagonal.max()
        if least < -GRAM32_RTOL * max(largest, -least):  # other signs take as long to find as the fit
            raise ValueError(f"kernel={self.kernel!r} is not positive semi-definite: a row has K(x, x) = {least:.3g}.")
        return rows, tiny

    def _row_dtype(self, X: Rows) -> Any:
        square = max_squared_norm(X) if isinstance(self.kernel, str) and self.kernel == "rbf" else 0.0
        return row_dtype(self.tol, self.kernel, self._gamma, square)

    def _solve_kernel(
        self,
        problem: Problem,
        cap: np.ndarray,
        seed: int,
        warm: WarmStart | None,
        free_intercept: bool,
        offset: float = 0.0,
    ) -> KernelState:
        state = None if warm is None else warm.start(KernelState, problem.y)
        if state is not None and warm is not None:
            state = state.rescaled(self.C * problem.weight / warm.cap, problem.y)
        rows = self._kernel_rows(problem, offset)
        return self._solve_between(*rows, problem.y, cap, problem.n_classes, seed, state, free_intercept)

    def _solve_between(
        self,
        rows: KernelRows,
        tiny: bool,
        y: np.ndarray,
        cap: np.ndarray,
        n_classes: int,
        seed: int,
        state: KernelState | None = None,
        free_intercept: bool = False,
    ) -> KernelState:
        """The machine for rows of a kernel matrix: block ascent, then a factor of the matrix where that pays."""
        task = rows, y, cap, n_classes, *self._loss(n_classes)

        def ascend(passes: int, start: KernelState | None, updates: float = np.inf) -> KernelState:
            return solve_kernel_dual(
                *task, fit_intercept=free_intercept, tol=self.tol, max_iter=passes, random_state=seed, state=start,
                max_updates=updates, tuning=self._tuning,
            )  # fmt: skip

        tuning = self._tuning
        if not can_factor(rows.n, rows.cache_size, tuning):
            return ascend(self.max_iter, state)
        state = ascend(first_method_iterations(self.max_iter), state, factor_cost(rows.n, tuning))
        if (tiny or state.gap > self.tol) and state.n_iter < self.max_iter:
            state = solve_kernel_factor(
                *task, fit_intercept=free_intercept, tol=self.tol, max_iter=self.max_iter, seed=seed, start=state,
                tuning=tuning,
            )  # fmt: skip
        if state.gap > self.tol and state.n_iter < self.max_iter:  # an indefinite kernel has no factor
            last = ascend(self.max_iter - state.n_iter, state)
            state = replace(min(state, last, key=lambda s: s.gap), n_iter=state.n_iter + last.n_iter)
        return state

    def _is_linear(self) -> bool:
        return self._is("linear")
