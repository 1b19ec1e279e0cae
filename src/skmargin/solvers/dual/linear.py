"""Linear machines by block ascent on the dual.

    primal  min_{W,b}  1/2 ||W||^2 + sum_i value_i(f_{i,y_i} - f_il),   f_i = W x_i + b
    dual    max_alpha  sum_i dual_i(alpha_i) - 1/2 ||W||^2,   W = sum_i x_i c_i',
            c_{i,y_i} = sum_l alpha_il,  c_il = -alpha_il,  with a free intercept also sum_i c_i = 0

given    X (dense or CSR), classes 0..k-1, the weight ``cap`` = C s_i of each sample, a loss ("max": Crammer-Singer,
         "sum": Weston-Watkins, "top": the top_k largest hinges), and perhaps the state of an earlier solve
returned W, b, the duals, P and the certified duality gap

The methods are block passes (_core/linear/block_ascent.hpp, face_cg.hpp), in float32 as long as it is exact enough and
then in float64, Newton steps (newton.py), and smoothed Newton steps for many rows and few parameters (many_rows.py);
plan.py chooses.  Crammer & Singer (2001), Weston & Watkins (1998), Keerthi et al. (2008).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from ..._core import _ext
from ..._runtime.progress import print_line
from ..._runtime.threads import thread_count
from ..._types import Rows
from ...rows.arrays import core_rows, suitable_storage
from ..blocks.plan import suits
from ..tuning import DEFAULT, Tuning
from .many_rows import solve_many_rows
from .newton import newton_steps
from .plan import LinearPlan, Stage, plan_linear
from .state import DualLists, DualState, LinearProblem, best_of_both, cold_start, relative_gap


def solve_linear(
    X: Rows,
    y: np.ndarray,
    cap: np.ndarray,
    n_classes: int,
    loss: str,
    top_k: int = 1,
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
    """Solve to a relative duality gap of ``tol``; see the head of this file."""
    problem = LinearProblem(suitable_storage(X, tuning), y, cap, n_classes, loss, top_k, fit_intercept)
    plan = plan_linear(problem, tol, max_iter, tuning)
    methods = _Methods(problem, plan, thread_count(n_jobs) if plan.threaded else 1, seed, verbose)
    done = False
    if suits(problem.X, n_classes, plan.block_flops, tuning.blocks):

        def of_sample(X: Rows, y: np.ndarray, cap: np.ndarray) -> DualState:
            return solve_linear(
                X, y, cap, n_classes, loss, top_k, fit_intercept=fit_intercept, tol=tuning.common.start_tol, seed=seed,
                n_jobs=n_jobs, tuning=tuning,
            )  # fmt: skip

        found = solve_many_rows(
            problem, of_sample, tol, max_iter, seed, state, n_jobs, verbose, plan.block_flops, tuning.blocks
        )
        if found is not None and (found.gap <= tol or found.n_iter >= max_iter):
            return found
        state = found or state
    if state is not None and state.width > 0:  # without lists of duals there is no start for what follows
        state = None
    if state is not None:
        state = replace(state.rescaled(cap), n_iter=0)
    elif plan.newton_first:
        state, done = _newton_unless_separable(methods)
    else:
        state = cold_start(problem.shape, cap)
        if plan.sample_step > 1:
            state = replace(state, multipliers=_first_intercepts(problem, plan, seed, tuning))
    return state if done else _finished(methods, _block_stages(methods, state))


@dataclass
class _Methods:
    """The methods of one solve, and the flops that block passes have spent."""

    problem: LinearProblem
    plan: LinearPlan
    threads: int
    seed: int
    verbose: int
    spent: float = 0.0

    def block_passes(self, state: DualState, stage: Stage, budget: float, max_passes: int) -> DualState:
        """Block passes from a state on, until ``max_passes`` in all have been made or ``budget`` flops spent."""
        problem, plan = self.problem, self.plan
        options = _ext.Options(
            tol=stage.goal,
            max_iter=max(1, max_passes - state.n_iter),
            max_work=budget,
            stop_on_stall=stage.may_stall,
            face_steps=plan.face_steps,
            seed=self.seed + state.n_iter,
            threads=self.threads,
        )
        out = _ext.block_ascent(
            core_rows(problem.X, stage.dtype), problem.core(), options, b=state.multipliers, duals=state.duals,
            mean=plan.mean, fit_intercept=problem.fit_intercept,
        )  # fmt: skip
        self.spent += out.work
        passes = state.n_iter + out.n_iter
        gap = relative_gap(out.objective, out.gap)
        if self.verbose:
            print_line(
                f"{'sparse' if sparse.issparse(problem.X) else 'dense'} rows, {np.dtype(stage.dtype).name}: "
                f"{passes} passes, objective {out.objective:.6g}, relative gap {gap:.1e}"
            )
        return DualState(
            out.W, out.b, DualLists(*out.duals), out.multipliers, problem.cap, out.objective, gap, passes,
            score_size=out.score_size,
        )  # fmt: skip

    def newton(self, state: DualState, max_iter: int) -> DualState:
        """Newton steps from a state on."""
        return newton_steps(self.problem, state, self.plan.mean, self.plan.goal, max_iter, self.seed, self.verbose)

    @property
    def left(self) -> float:
        """Flops that block passes may still spend."""
        return self.plan.budget - self.spent


def _newton_unless_separable(methods: _Methods) -> tuple[DualState, bool]:
    """One pass shows whether the rows are separable, or nearly so; if not, Newton steps from zero.

    Returns where the block passes start, or the solution, and which of the two it is.
    """
    problem, plan = methods.problem, methods.plan
    start = cold_start(problem.shape, problem.cap)
    trial = methods.block_passes(start, plan.stages[0], plan.budget, 1)
    if trial.gap <= plan.goal or error_rate(problem, trial) == 0:
        return trial, trial.gap <= plan.goal or plan.max_iter == 1
    methods.spent = 0.0  # the pass is not continued
    found = methods.newton(start, plan.max_iter)
    return found, found.gap <= plan.tol or found.n_iter >= plan.max_iter


def _block_stages(methods: _Methods, state: DualState) -> DualState:
    """Block passes, in float32 as long as it is exact enough and then in float64."""
    plan = methods.plan
    for stage in plan.stages:
        state = methods.block_passes(state, stage, methods.left, plan.block_iterations)
        enough = stage.dtype is np.float32 and plan.tol >= plan.tuning.common.float32_tol
        if state.n_iter >= plan.block_iterations or (enough and state.gap <= plan.tuning.common.inner_goal * plan.tol):
            break
    return state


def _finished(methods: _Methods, state: DualState) -> DualState:
    """Newton steps where block passes have not reached the goal, and block passes again where these have not."""
    plan = methods.plan
    if state.gap <= plan.goal or state.n_iter >= plan.max_iter or plan.newton_flops == np.inf:
        return state
    state = methods.newton(state, plan.max_iter - state.n_iter)
    if state.gap > plan.tol and state.n_iter < plan.max_iter:
        last = methods.block_passes(state, Stage(np.float64, plan.tol, True), np.inf, plan.max_iter)
        state = best_of_both(state, last)
    return state


def _first_intercepts(problem: LinearProblem, plan: LinearPlan, seed: int, tuning: Tuning) -> np.ndarray:
    """Multipliers of the free intercept from a sample of the rows that keeps the weight of each class.

    Where one class holds most of the rows the intercepts are large, and passes over all rows while they grow are dear.
    """
    y, cap, k, step = problem.y, problem.cap, problem.n_classes, plan.sample_step
    order = np.argsort(y.astype(np.int16) if k < 1 << 15 else y, kind="stable")  # short numbers are counted, not sorted
    ends = np.cumsum(np.bincount(y, minlength=k)).tolist()
    rows = np.sort(np.concatenate([order[a:b:step] for a, b in zip([0, *ends], ends, strict=False)]))
    some = y[rows]
    scale = np.bincount(y, cap, k) / np.maximum(np.bincount(some, cap[rows], k), np.finfo(float).tiny)
    state = solve_linear(
        problem.X[rows], some, cap[rows] * scale[some], k, problem.loss, problem.top_k, seed=seed, tuning=tuning
    )
    b = state.b + state.W @ plan.mean
    return b - b.mean()


def error_rate(problem: LinearProblem, state: DualState) -> float:
    """Share of the rows that a linear model gets wrong."""
    return float(np.mean((problem.X @ state.W.T + state.b).argmax(axis=1) != problem.y))
