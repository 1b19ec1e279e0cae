"""The machine of Lei et al. (2015), linear or with a kernel, by block ascent on the dual.

    primal  min_{W,b}  1/2 ||W||_{2,p}^2 + sum_i cap_i phi(target - f_{i,y_i} + max_{l != y_i} f_il),  f_i = W x_i + b
            ||W||_{2,p} = (sum_l ||w_l||^p)^(1/p),   1/p + 1/q = 1
    dual    max_alpha  sum_i dual_i(sum_l alpha_il) - 1/2 ||V||_{2,q}^2,   alpha_il >= 0
            phi, target and dual_i are those of `margin_loss`: for the hinge dual_i(S) = S up to cap_i
            V = sum_i x_i c_i',   c_{i,y_i} = sum_l alpha_il,  c_il = -alpha_il;   with an intercept also sum_i c_i = 0
    link    w_l = (||v_l|| / ||V||_{2,q})^(q-2) v_l

given    X (dense or CSR) or a kernel matrix, classes 0..k-1, the weight ``cap`` = C s_i of each sample, p, the loss,
         and perhaps the state of an earlier solve, for the same rows and loss: its duals are feasible for every p and,
         rescaled, for every C
returned W, b, the duals, P and the certified duality gap P(link(alpha)) - D(alpha)

The block steps are in ``_core/block_norm/class_vectors.hpp``, those on the face of the dual in ``face_newton.hpp``
there.  Where they have cost as much as interior-point steps would, and few parameters allow those, ``interior_point``
takes over.

The paper alternates between class weights (its equation 14) and a weighted machine of Crammer and Singer
(`published`), which is valid for p <= 2 only; this ascent is valid for every p > 1.  p = 2 with the hinge is the
machine of Crammer and Singer itself, and its solver is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from ..._core import _ext
from ..._runtime.progress import print_line
from ..._runtime.threads import blas_threads
from ..._types import Rows
from ...rows.arrays import core_rows, moments, suitable_storage
from ...rows.row_cache import RowCache
from ..dual.linear import solve_linear
from ..dual.plan import face_steps_pay, float32_suffices, precision_stages, splits_off_mean
from ..dual.state import GAP_FLOOR, DualLists, DualState, bound_below, coefficients, lower_bound, relative_gap
from ..tuning import DEFAULT, Tuning
from .interior_point import InteriorPoint, half_square, solve_interior
from .margin_loss import HINGE, MarginLoss

POLISH_STEPS = 50  # interior-point steps beyond what the user asked for; half of them are usual
Matrix = np.ndarray | RowCache
CoreRows = _ext.Rows | _ext.KernelMatrix


@dataclass(frozen=True)
class LpKernelState(DualState):
    """As `DualState`, but ``W`` (n, k) holds the coefficients of the rows: f = sum_i K(x, x_i) W_i + b."""


class Stage(NamedTuple):
    """Block ascent on the rows in one number type: the relative gap to reach, and whether it may give up."""

    rows: CoreRows
    goal: float
    may_stall: bool


@dataclass(frozen=True)
class _Plan:
    """Methods of one solve: block ascent in stages, then interior-point steps where `dense_rows` are within reach."""

    stages: list[Stage]
    linear: bool  # rows of features, not of a kernel matrix
    mean: np.ndarray | None  # taken off the features
    face_steps: bool
    dense_rows: Callable[[], np.ndarray] | None  # for interior-point steps; None: too many parameters
    rank: int  # of the rows, at most
    tuning: Tuning

    def ascent_passes(self, n_classes: int, max_iter: int) -> int:
        """Passes before interior-point steps.

        One of these costs about (d k)^2 n, a pass at most 4 d k n: with some twenty steps both then cost the same.
        """
        if self.dense_rows is None:
            return max_iter
        return min(max_iter, int(self.tuning.common.passes_per_parameter * self.rank * n_classes))

    def needed(self, tol: float) -> float:
        """The gap to reach: where a solve to rounding costs next to nothing, less than the user asked for."""
        return tol if self.stages[-1].goal == tol else min(tol, self.tuning.block_norm.polish_gap)


def solve_lp(
    X: Rows,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    p: float,
    loss: MarginLoss = HINGE,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: DualState | None = None,
    n_jobs: int | None = 1,
    verbose: int = 0,
    tuning: Tuning = DEFAULT,
) -> DualState:
    """Solve for rows ``X`` to a relative duality gap of ``tol``; see the head of this file."""
    if p == 2 and loss == HINGE:
        return solve_linear(
            X, y, cap, n_classes, "max", fit_intercept=fit_intercept,
            tol=tol, max_iter=max_iter, seed=seed, state=state, n_jobs=n_jobs, verbose=verbose, tuning=tuning,
        )  # fmt: skip
    X = suitable_storage(X, tuning)
    centre, square = moments(X)
    if X.shape[0] * X.shape[1] * n_classes <= tuning.common.tiny_work:
        stages = _tiny(core_rows(X, np.float64), tol)
    else:
        kinds = precision_stages(X, tol, float32_suffices(centre, square), tuning)
        stages = [Stage(core_rows(X, dtype), goal, may_stall) for dtype, goal, may_stall in kinds]
    plan = _Plan(
        stages,
        True,
        centre if fit_intercept or splits_off_mean(float(cap.mean()), centre) else None,
        face_steps_pay(X, n_classes),
        (lambda: X.toarray() if sparse.issparse(X) else X) if few_parameters(X.shape, n_classes, tuning) else None,
        min(X.shape),
        tuning,
    )
    problem = _Problem(y, cap, n_classes, p, loss, fit_intercept, tol, max_iter, seed, verbose)
    return _solve(problem, plan, state).state()


def solve_lp_kernel(
    matrix: Callable[[np.ndarray | None], Matrix],
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    p: float,
    loss: MarginLoss = HINGE,
    *,
    coarse: Callable[[], Matrix] | None = None,
    factored: Callable[[], np.ndarray | None] | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    seed: int = 0,
    state: LpKernelState | None = None,
    verbose: int = 0,
    tuning: Tuning = DEFAULT,
) -> LpKernelState:
    """Solve for a kernel matrix to a relative duality gap of ``tol``; see the head of this file.

    ``matrix`` gives it in float64, whose objective and gap are returned; its argument are the rows that are sure to be
    needed, None for all.  ``coarse`` gives it in float32, for passes twice as fast that come first.  ``factored`` gives
    R with K = R R' (kernel_factor.py), or None.
    """
    n, k = len(y), n_classes
    tiny = n * n * k <= tuning.common.tiny_work

    def run(K: Matrix, state: LpKernelState | None, passes: int, R: np.ndarray | None = None) -> LpKernelState:
        single = (K.diagonal if isinstance(K, RowCache) else K).dtype == np.float32
        goal = 0.9 * tol if single else tol
        problem = _Problem(y, cap, k, p, loss, fit_intercept, goal, passes, seed, verbose)
        end = _solve(problem, _kernel_plan(K, problem, tiny, tol, R, tuning), state)
        return _as_kernel_state(end.state(), end.interior, y, R, p, loss)

    # The rank of the matrix says whether interior-point steps are within reach.  A factor costs n^3/3, a pass at most
    # 4 n^2 k: it may be tried after this many passes.
    most = max_iter if factored is None else min(max_iter, 100 + n // k)
    factor: np.ndarray | None = None
    support: np.ndarray | None = None
    left, needed = max_iter, min(tol, tuning.block_norm.polish_gap) if tiny else tol
    if coarse is not None:
        K = coarse()
        state = run(K, state, most)
        left -= state.n_iter
        if factored is not None and state.gap > 0.9 * tol and left > 0:
            factor = factored()
            if factor is None or not few_parameters(factor.shape, k, tuning):
                factored, state = None, run(K, state, left)
                left -= state.n_iter
        most = left if factored is None else most - (max_iter - left)
        if factored is None or factor is None:  # nothing but a certificate is to come, or little more
            support = np.flatnonzero(state.W.any(axis=1))
        del K  # before there is another one
    K = matrix(support)
    first = run(K, state, min(most, left))
    left -= first.n_iter
    if factored is None or first.gap <= needed or left <= 0:
        return replace(first, n_iter=max_iter - left)
    second = run(K, first, left, factored() if factor is None else factor)
    return replace(min(first, second, key=lambda s: s.gap), n_iter=max_iter - left + second.n_iter)


def few_parameters(shape: tuple[int, int], k: int, tuning: Tuning = DEFAULT) -> bool:
    """Whether interior-point steps are within reach."""
    n, d = shape
    return tuning.common.can_factor(min(n, d) * k) and n * (d + 8 * k) <= tuning.common.dense_numbers


def _tiny(rows: CoreRows, tol: float) -> list[Stage]:
    """What the user asked for, and then rounding, which costs next to nothing here."""
    return [Stage(rows, tol, False), Stage(rows, min(tol, GAP_FLOOR), True)]


def as_core_matrix(K: Matrix) -> _ext.KernelMatrix:
    """A kernel matrix as the core takes it."""
    return _ext.KernelMatrix(K, K.diagonal) if isinstance(K, RowCache) else _ext.KernelMatrix(K)


def _kernel_plan(K: Matrix, problem: _Problem, tiny: bool, tol: float, R: np.ndarray | None, tuning: Tuning) -> _Plan:
    n, k = len(problem.y), problem.n_classes
    rows = as_core_matrix(K)
    stages = _tiny(rows, tol) if tiny else [Stage(rows, problem.tol, bool(problem.tol < tol))]  # float32 may stall
    reachable = R is not None and few_parameters(R.shape, k, tuning)
    return _Plan(
        stages,
        False,
        np.zeros(n) if problem.fit_intercept else None,
        True,
        (lambda: np.asarray(R)) if reachable else None,
        n if R is None else R.shape[1],
        tuning,
    )


@dataclass(frozen=True)
class _Problem:
    y: np.ndarray
    cap: np.ndarray
    n_classes: int
    p: float
    loss: MarginLoss
    fit_intercept: bool
    tol: float
    max_iter: int
    seed: int
    verbose: int


def _solve(problem: _Problem, plan: _Plan, state: DualState | None) -> _Solve:
    """Block ascent; interior-point steps where it has not reached the gap that is needed; the rest where these fail."""
    run = _Solve(problem, plan, state)
    run.ascend(plan.stages, plan.ascent_passes(problem.n_classes, problem.max_iter))
    if plan.dense_rows is not None and not run.reached(plan.needed(problem.tol)):
        run.take_interior_steps(plan.dense_rows)
        if not run.reached(plan.needed(problem.tol)):
            run.ascend([plan.stages[-1]._replace(may_stall=True)], problem.max_iter)
    return run


class _Solve:
    """The best point of all methods so far, and the best lower bound, which holds for all of them.

    ``rough``: only float32 has run so far, towards another tolerance: it certifies nothing.
    ``interior``: the class vectors are those of an interior point, not the link of the duals.
    """

    def __init__(self, problem: _Problem, plan: _Plan, state: DualState | None) -> None:
        self.problem, self.plan = problem, plan
        self.duals, self.multipliers = DualLists.zero(len(problem.y)), np.zeros(problem.n_classes)
        if state is not None:
            state = state.rescaled(problem.cap)
            self.duals, self.multipliers = state.duals, state.multipliers
        self.best: _ext.Result | None = None
        self.bound, self.passes, self.rough, self.interior = -np.inf, 0, False, False

    def ascend(self, stages: list[Stage], most: int) -> None:
        """Block ascent, stage by stage, until so many iterations have been made in all."""
        problem, plan = self.problem, self.plan
        for stage in stages:
            options = _ext.Options(
                tol=stage.goal, max_iter=most - self.passes, stop_on_stall=stage.may_stall, face_steps=plan.face_steps,
                seed=problem.seed + self.passes,
            )  # fmt: skip
            out = self._block_ascent(stage.rows, options, plan.mean, self.multipliers, self.duals)
            self.duals, self.multipliers = DualLists(*out.duals), out.multipliers
            self.passes += out.n_iter
            gap = relative_gap(out.objective, out.gap)
            self._print(f"{self.passes} passes", out.objective, gap)
            if self.rough:
                self.best, self.bound = None, -np.inf
            self.rough = stage.goal > problem.tol
            self.bound = max(self.bound, bound_below(out.objective, out.gap))
            if self.best is None or out.objective <= self.best.objective:
                self.best, self.interior = out, False
            # Only float32 stages have a goal below tol that is not rounding: where they reach it, that is enough.
            if self.passes >= most or (problem.tol > stage.goal > GAP_FLOOR and gap <= stage.goal):
                break

    def _is_within(self, tol: float) -> bool:
        assert self.best is not None
        return bool(self.best.objective - self.bound <= tol * self.best.objective) and not self.rough

    def reached(self, tol: float) -> bool:
        """Whether the gap is reached, or the iterations used up."""
        return self._is_within(tol) or self.passes >= self.problem.max_iter

    def take_interior_steps(self, dense_rows: Callable[[], np.ndarray]) -> None:
        """Interior-point steps from the beginning; block ascent of no pass certifies where they end."""
        problem, plan = self.problem, self.plan
        needed, left = plan.needed(problem.tol), problem.max_iter - self.passes
        if self._is_within(problem.tol):  # the rest is beyond what the user asked for
            left = min(left, POLISH_STEPS)
        with blas_threads(1), np.errstate(over="ignore", invalid="ignore"):  # its certificate is what counts
            rows = np.asarray(dense_rows(), dtype=np.float64)
            point = solve_interior(
                rows, problem.y, problem.cap, problem.n_classes, problem.p, fit_intercept=problem.fit_intercept,
                tol=0.1 * needed, max_iter=left, tuning=plan.tuning, loss=problem.loss,
            )  # fmt: skip
        self.passes += point.n_iter
        out = self._certificate(point)
        self._print(f"{point.n_iter} interior-point steps", out.objective, relative_gap(out.objective, out.gap))
        self.bound = max(-np.inf if self.rough else self.bound, bound_below(out.objective, out.gap))
        if point.objective < out.objective:
            out.W, out.b, out.objective = point.W, point.b, point.objective
            self.interior = True
        assert self.best is not None
        if self.rough or out.objective <= self.best.objective:
            self.best = out
        else:
            self.interior = False
        self.rough = False

    def _certificate(self, point: InteriorPoint) -> _ext.Result:
        problem, plan = self.problem, self.plan
        b = point.b
        if problem.fit_intercept and plan.linear:
            b = b + point.W @ plan.mean
        options = _ext.Options(tol=problem.tol, max_iter=0, seed=problem.seed)
        mean = plan.mean if problem.fit_intercept else None
        duals = DualLists.of_table(problem.loss.feasible(point.alpha, problem.cap))
        return self._block_ascent(plan.stages[-1].rows, options, mean, b, duals)

    def _block_ascent(
        self, rows: CoreRows, options: _ext.Options, mean: np.ndarray | None, b: np.ndarray, duals: DualLists
    ) -> _ext.Result:
        problem = self.problem
        return _ext.block_norm_ascent(
            rows, problem.loss.problem(problem.y, problem.cap, problem.n_classes), options,
            q=problem.p / (problem.p - 1), b=b, duals=duals, mean=mean, fit_intercept=problem.fit_intercept,
        )  # fmt: skip

    def _print(self, what: str, objective: float, gap: float) -> None:
        if self.problem.verbose:
            print_line(f"p={self.problem.p:g}: {what}, objective {objective:.6g}, relative gap {gap:.1e}")

    def state(self) -> DualState:
        """The best point with its certificate."""
        best = self.best
        assert best is not None
        gap = max(best.objective - self.bound, 0.0) / max(best.objective, np.finfo(float).tiny)
        b = best.b - best.b.mean()  # a constant added to all intercepts changes nothing: the one with sum zero
        return DualState(
            best.W, b, DualLists(*best.duals), best.multipliers, self.problem.cap, best.objective, gap, self.passes
        )  # fmt: skip


def _as_kernel_state(
    found: DualState, interior: bool, y: np.ndarray, R: np.ndarray | None, p: float, loss: MarginLoss = HINGE
) -> LpKernelState:
    """With coefficients of the rows: the duals times the weights of the classes, or those of an interior point.

    The link of the duals is lost where p is large: the ||v_l|| are the (p-1)-th powers of the ||w_l||, and those of
    short w_l vanish beside rounding.  The class vectors of an interior point have coefficients of their own.
    """
    if not interior:
        alpha = found.duals.table(len(found.b))
        return LpKernelState(**vars(found) | {"W": coefficients(alpha, y) * found.W[:, 0]})
    assert R is not None
    coef = linalg.lstsq(R.T, found.W.T)[0]
    W = coef.T @ R  # what is published, to rounding the interior point
    objective = half_square(W, p) + float(found.cap @ loss.value(loss.excess(R @ W.T + found.b, y)))
    bound = lower_bound(found.objective, found.gap)
    gap = max(0.0, objective - bound) / max(objective, np.finfo(float).tiny)
    return LpKernelState(**vars(found) | {"W": coef, "objective": objective, "gap": gap})
