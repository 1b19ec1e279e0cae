"""Linear machines by block ascent on the dual.

    primal  min_{W,b}  1/2 ||W||^2 + sum_i value_i(f_{i,y_i} - f_il),   f_i = W x_i + b
    dual    max_alpha  sum_i dual_i(alpha_i) - 1/2 ||W||^2,   W = sum_i x_i c_i',
            c_{i,y_i} = sum_l alpha_il,  c_il = -alpha_il,  with a free intercept also sum_i c_i = 0

given    X (dense or CSR), classes 0..k-1, the weight ``cap`` = C s_i of each sample, a loss ("max": Crammer-Singer,
         "sum": Weston-Watkins, "top": the top_k largest hinges), and perhaps the state of an earlier solve
returned W, b, the duals, P and the certified duality gap

The loops are in ``_core/linear/`` (block_ascent.hpp, face_cg.hpp) and ``_core/newton/newton.hpp``; here the gear is
chosen: dense or sparse rows, float32 as long as it is exact enough and then float64; Newton steps where block ascent
converges slowly and W has few numbers.  Crammer & Singer (2001), Weston & Watkins (1998), Keerthi et al. (2008).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..._core import _ext
from ..._runtime.progress import print_line
from ..._runtime.shared_rows import converted
from ..._runtime.threads import blas_threads, thread_count
from ..blocks.newton import BlockState, Refused
from ..blocks.passes import BlockProblem
from ..blocks.plan import duals_of, solve_in_memory, suits

FLOAT32_TOL = 1e-3  # float32 stalls between 1e-5 and 1e-4; down to here its gap is that of float64 to one per cent
FLOAT32_MAX_OFFSET = 1e4  # squared mean over the variance of the rows up to which that holds
TINY_PROBLEM, TINY_ROWS = 20_000, 100  # n d k, and rows: a solve to rounding costs no more than the call
GAP_FLOOR = 1e-14
NEWTON_STEPS_COLD, NEWTON_STEPS_WARM = 40, 10  # usual steps of the Newton gear; from a gap below 0.1
SEPARABLE_ERROR_RATE = 0.01  # error rate after one pass up to which rows count as separable
RESERVED_ITERATIONS = 500  # kept for a second gear: cheap passes over few rows could use up all of them
NEWTON_UNKNOWNS, NEWTON_NUMBERS = 6000, 10**8  # most that it holds: square root of its matrix, and the rest
CENTRE_FROM = 0.1  # squared mean over variance below which dense rows are not centred
SPLIT_STRENGTH, SPLIT_MEAN_MAX, SPLIT_MEAN_SUM = 0.01, 0.3, 3.0  # C times variance, C times squared mean
SUBSAMPLE_ROWS, SUBSAMPLE_STEP = 100, 32  # rows a number of W for first intercepts from one row of so many
SUBSAMPLE_STRENGTH = 0.3  # `strength` below which this pays: above it W moves the intercepts again
THREADED_WORK = 10**6  # n d k from which loops may be long enough for two threads
SAMPLE_TOL = 1e-2  # of the sample that gives the smoothed Newton gear its first point
SPARSE_BELOW = 0.25  # share of non-zeros from which dense rows are faster


@dataclass(frozen=True)
class DualState:
    """A dual point with its primal point and certificate; plain arrays, ready to start the next solve from."""

    W: np.ndarray  # (k, d)
    b: np.ndarray  # (k,) intercepts, f = W x + b
    start: np.ndarray  # CSR arrays of the duals: row starts, rivals, numbers
    rivals: np.ndarray
    alpha: np.ndarray
    multipliers: np.ndarray  # (k,) of the free intercept: f = W (x - mean) + multipliers
    cap: np.ndarray  # (n,) C s_i that the duals belong to
    objective: float
    gap: float  # relative duality gap (P - D)/P, certified
    n_iter: int
    width: float = 0.0  # above 0: there are no lists of duals, which are a function of W, b and this (solvers/blocks)

    def rescaled(self, cap: np.ndarray) -> DualState:
        """The same point for other weights: duals stay feasible when they shrink or grow with their bounds."""
        ratio = dual_rescaling(
            cap / self.cap, float(self.alpha.sum()), float(np.square(self.W, dtype=np.float64).sum())
        )
        return replace(self, alpha=self.alpha * np.repeat(ratio, np.diff(self.start)), cap=cap)


def dual_rescaling(ratio: np.ndarray, dual_sum: float, squared_norm: float) -> np.ndarray:
    """Factors of the duals of an earlier solve where their bounds have changed by ``ratio``.

    ``dual_sum`` is the sum of the duals and ``squared_norm`` is ``||W||^2``.  Where all bounds grow, the duals grow at
    most to the best point of their ray, ``dual_sum / squared_norm``: separable rows have one solution for all large C.
    """
    best = max(1.0, dual_sum / squared_norm) if squared_norm > 0 else np.inf
    return np.minimum(ratio, best) if ratio.min() >= 1 and squared_norm > 0 else ratio


def solve_linear(
    X: Any,
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
) -> DualState:
    """Solve to a relative duality gap of ``tol``; see the head of this file."""
    n, k = len(y), n_classes
    X = suitable_storage(X)
    threads = thread_count(n_jobs) if stored_numbers(X) * k >= THREADED_WORK else 1
    mean, square = moments(X)
    single = float32_suffices(mean, square)
    mean_cap = float(np.add.reduce(cap)) / n
    strength, mean_strength = mean_cap * total_variance(mean, square), mean_cap * _square(mean)
    mean_is_small = mean_strength < CENTRE_FROM * strength and not sparse.issparse(X)
    if mean_is_small or not (fit_intercept or splits_off_mean(strength, mean_strength, loss)):
        strength = mean_cap * square
        mean = np.zeros_like(mean)
    tiny = n <= TINY_ROWS and n * X.shape[1] * k <= TINY_PROBLEM
    goal = min(tol, GAP_FLOOR) if tiny else tol
    stages = [(np.float64, goal, True)] if tiny else precision_stages(X, tol, single)
    step = newton_step_flops(n, X.shape[1], k)
    budget = NEWTON_STEPS_COLD * step
    crawls = block_flops(n, X.shape[1], k, strength) > budget
    if suits(X, k, crawls or np.isinf(step)):
        found = _many_rows(X, y, cap, k, loss, top_k, fit_intercept, tol, max_iter, seed, state, n_jobs, verbose)
        if isinstance(found, DualState) and (found.gap <= tol or found.n_iter >= max_iter):
            return found
        state = found or state
    if state is not None and state.width > 0:  # without duals there is no start for the passes below
        state = None
    most = first_gear_iterations(max_iter) if step < np.inf else max_iter

    def ascend(
        state: DualState, dtype: type, goal: float, may_stall: bool, budget: float, most: int
    ) -> tuple[DualState, float]:
        """Block passes from a state on, ``most`` in all, and what they cost."""
        solve = _ext.csr_blocks if sparse.issparse(X) else _ext.dense_blocks
        settled = state.n_iter > 1  # after another stage: a trial has n_iter = 1, a start from other weights 0
        out = solve(
            *core_arrays(X, dtype), y, cap, k, loss, top_k, mean, fit_intercept,
            state.multipliers, state.start, state.rivals, state.alpha,
            float(goal), max(1, most - state.n_iter), float(budget), float(NEWTON_STEPS_WARM * step), may_stall,
            face_steps_pay(X, k), settled, seed + state.n_iter, threads,
        )  # fmt: skip
        passes = state.n_iter + out["passes"]
        start, rivals, alpha = out["duals"]
        state = DualState(
            out["W"], out["b"], start, rivals, alpha, out["multipliers"], cap, out["primal"],
            relative_gap(out["primal"], out["gap"]), passes,
        )  # fmt: skip
        if verbose:
            print_line(
                f"{'sparse' if sparse.issparse(X) else 'dense'} rows, {np.dtype(dtype).name}: "
                f"{passes} passes, objective {state.objective:.6g}, relative gap {state.gap:.1e}"
            )
        return state, out["work"]

    if state is not None:
        state = replace(state.rescaled(cap), n_iter=0)
    else:
        state = _cold_start(n, X.shape[1], k, cap)
        if crawls:
            trial, work = ascend(state, *stages[0], budget, 1)
            if trial.gap > goal and error_rate(X, y, trial) > SEPARABLE_ERROR_RATE:
                state = _newton(X, y, state, k, loss, top_k, fit_intercept, mean, goal, max_iter, seed, verbose)
                if state.gap <= tol or state.n_iter >= max_iter:
                    return state
            elif trial.gap <= goal or max_iter == 1:
                return trial
            else:
                state, budget = trial, budget - work
        elif fit_intercept and strength < SUBSAMPLE_STRENGTH and n >= SUBSAMPLE_ROWS * X.shape[1] * k:
            state = replace(state, multipliers=_first_intercepts(X, y, cap, k, mean, loss, top_k, seed))

    for dtype, stage_tol, may_stall in stages:
        state, work = ascend(state, dtype, stage_tol, may_stall, budget, most)
        budget -= work
        if state.n_iter >= most or (dtype is np.float32 and tol >= FLOAT32_TOL and state.gap <= 0.9 * tol):
            break
    if state.gap > goal and state.n_iter < max_iter and step < np.inf:
        state = _newton(X, y, state, k, loss, top_k, fit_intercept, mean, goal, max_iter - state.n_iter, seed, verbose)
        if state.gap > tol and state.n_iter < max_iter:  # no gear is left: passes for as long as they gain
            state = best_of_both(state, ascend(state, np.float64, tol, True, np.inf, max_iter)[0])
    return state


def _many_rows(
    X: Any, y: np.ndarray, cap: np.ndarray, k: int, loss: str, top_k: int, fit_intercept: bool, tol: float,
    max_iter: int, seed: int, state: DualState | None, n_jobs: int | None, verbose: int,
) -> DualState | None:  # fmt: skip
    """The smoothed Newton gear (solvers/blocks): its solution, or its best point with duals; None where it is unfit."""
    problem = BlockProblem(k, loss, top_k=min(top_k, k - 1), intercept="free" if fit_intercept else "none")

    def solve_sample(X: Any, y: np.ndarray, cap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = solve_linear(
            X, y, cap, k, loss, top_k, fit_intercept=fit_intercept, tol=SAMPLE_TOL, seed=seed, n_jobs=n_jobs
        )
        return found.W, found.b

    found = solve_in_memory(
        X, y, cap, problem, solve_sample, tol=tol, max_iter=max_iter, seed=seed,
        start=None if state is None else (state.W, state.b), n_jobs=n_jobs, verbose=verbose,
    )  # fmt: skip
    if isinstance(found, Refused):
        if verbose:
            print_line(f"blocks: {found.reason}; block ascent goes on")
        if found.state is None:
            return None
        duals = duals_of(X, y, cap, problem, found.state)
        return _of_blocks(X, found.state, duals, cap, 0.0)
    nothing = np.zeros(len(y) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    return _of_blocks(X, found, nothing, cap, found.width)


def _of_blocks(
    X: Any, found: BlockState, duals: tuple[np.ndarray, np.ndarray, np.ndarray], cap: np.ndarray, width: float
) -> DualState:
    b = found.b + found.W @ moments(X)[0] if width == 0 else found.b
    return DualState(found.W, found.b, *duals, b - b.mean(), cap, found.objective, found.gap, found.n_iter, width)


def _first_intercepts(
    X: Any, y: np.ndarray, cap: np.ndarray, k: int, mean: np.ndarray, loss: str, top_k: int, seed: int
) -> np.ndarray:
    """Multipliers of the free intercept from a sample of the rows that keeps the weight of each class.

    Where one class holds most of the rows the intercepts are large, and passes over all rows while they grow are dear.
    """
    order = np.argsort(y.astype(np.int16) if k < 1 << 15 else y, kind="stable")  # short numbers are counted, not sorted
    ends = np.cumsum(np.bincount(y, minlength=k)).tolist()
    rows = np.sort(np.concatenate([order[a:b:SUBSAMPLE_STEP] for a, b in zip([0, *ends], ends, strict=False)]))
    some = y[rows]
    scale = np.bincount(y, cap, k) / np.maximum(np.bincount(some, cap[rows], k), np.finfo(float).tiny)
    state = solve_linear(X[rows], some, cap[rows] * scale[some], k, loss, top_k, tol=1e-3, seed=seed)
    b = state.b + state.W @ mean
    return b - b.mean()


def best_of_both(old: DualState, new: DualState) -> DualState:
    """The state with the lower objective, its gap taken to the higher of both lower bounds."""
    best, bound = min(old, new, key=lambda s: s.objective), max(s.objective * (1 - s.gap) for s in (old, new))
    return replace(best, gap=relative_gap(best.objective, best.objective - bound), n_iter=new.n_iter)


def first_gear_iterations(max_iter: int) -> int:
    """Iterations that the first gear may use."""
    return max_iter - RESERVED_ITERATIONS if max_iter > 2 * RESERVED_ITERATIONS else max_iter


def newton_step_flops(n: int, d: int, k: int) -> float:
    """Cost of a Newton step in flops of the block passes (measured); infinite where it needs too much memory.

    The first gear may spend what the second should cost: the total is then at most twice that of the better one.
    """
    unknowns = (k - 1) * (d + 1)
    if unknowns > NEWTON_UNKNOWNS or n * (d + 8 * k) > NEWTON_NUMBERS:
        return np.inf
    return 0.13 * unknowns**3 + 390 * n * k + 13 * n * d * k


def block_flops(n: int, d: int, k: int, strength: float) -> float:
    """What the block passes are expected to cost down to a gap of 1e-3 from nothing.

    Where there are far more rows than parameters the number of passes grows with a power of ``strength``, C times the
    total variance of the rows (fitted to measurements); otherwise the rows are separable, or nearly so, and C hardly
    matters.  Many rows may be separable too: `solve_linear` makes one pass before it relies on a large number.
    """
    return 15 * strength**0.66 * 2 * n * k * (d + 128) if n >= 10 * k * d else 0.0


def error_rate(X: Any, y: np.ndarray, state: DualState) -> float:
    """Share of the rows that a linear model gets wrong."""
    return float(np.mean((X @ state.W.T + state.b).argmax(axis=1) != y))


def moments(X: Any) -> tuple[np.ndarray, float]:
    """The mean of the rows and the mean of their squared norms, in double precision."""
    if not sparse.issparse(X):
        return _ext.moments(np.ascontiguousarray(X))
    n, d = X.shape
    chunk = max(d, 1 << 13)  # SciPy's mean would copy the rows
    parts = (slice(at, min(at + chunk, X.nnz)) for at in range(0, X.nnz, chunk))
    total = sum((np.bincount(X.indices[p], X.data[p], minlength=d) for p in parts), start=np.zeros(d))
    return total / n, _square(X.data) / n


def splits_off_mean(strength: float, mean_strength: float, loss: str = "max") -> bool:
    """Whether it pays, without an intercept, to treat the direction of the mean separately.

    See _core/linear/class_vectors.hpp.  ``strength`` is C times the total variance of the rows, ``mean_strength`` C
    times their squared mean.  Fitted to measurements: losses with many hinges a sample need a larger mean.
    """
    return strength >= SPLIT_STRENGTH or mean_strength >= (SPLIT_MEAN_MAX if loss == "max" else SPLIT_MEAN_SUM)


def total_variance(mean: np.ndarray, square: float) -> float:
    """Mean squared distance of a row from the mean of the rows."""
    return max(0.0, square - _square(mean))


def float32_suffices(mean: np.ndarray, square: float) -> bool:
    """Whether scores in float32 still tell rows apart whose mean lies far from zero."""
    return _square(mean) <= FLOAT32_MAX_OFFSET * total_variance(mean, square)


def _square(numbers: np.ndarray) -> float:
    """Sum of squares; not by BLAS, which would wait for its threads."""
    return float(np.einsum("i,i->", numbers, numbers, dtype=np.float64))


def _cold_start(n: int, d: int, k: int, cap: np.ndarray) -> DualState:
    """All duals zero."""
    nothing = np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    return DualState(np.zeros((k, d)), np.zeros(k), *nothing, np.zeros(k), cap, np.inf, np.inf, 0)


def _newton(
    X: Any, y: np.ndarray, blocks: DualState, k: int, loss: str, top_k: int, fit_intercept: bool, mean: np.ndarray,
    tol: float, max_iter: int, seed: int, verbose: int,
) -> DualState:  # fmt: skip
    """The semismooth Newton gear (_core/newton/newton.hpp) from the duals of the block passes; the best of both.

    ``mean`` is where the block passes centre the features: there its intercepts are their multipliers.
    """
    X = X.toarray() if sparse.issparse(X) else X
    with blas_threads(1):
        out = _ext.newton(
            np.ascontiguousarray(X, dtype=np.float64), y, blocks.cap, k, loss, top_k, fit_intercept, tol, max_iter,
            (blocks.start, blocks.rivals, blocks.alpha) if len(blocks.alpha) else None, blocks.b, seed,
        )  # fmt: skip
    if not np.isfinite(out["objective"]):  # numbers beyond double precision on the way
        return blocks
    gap = relative_gap(out["objective"], out["gap"])
    if verbose:
        print_line(f"Newton: {out['n_newton']} steps, objective {out['objective']:.6g}, relative gap {gap:.1e}")
    newton = DualState(
        out["W"], out["b"], out["indptr"], out["classes"], out["alpha"], out["b"] + out["W"] @ mean, blocks.cap,
        out["objective"], gap, blocks.n_iter + out["n_newton"],
    )  # fmt: skip
    return newton if np.isinf(blocks.objective) else best_of_both(blocks, newton)


def relative_gap(objective: float, gap: float) -> float:
    """The relative gap: no rounding takes it below zero, and zero is a lower bound of every objective."""
    return min(1.0, max(0.0, gap) / max(objective, np.finfo(float).tiny)) if np.isfinite(gap) else 1.0


def suitable_storage(X: Any) -> Any:
    """Dense rows for dense data and CSR for sparse data, whatever container the user chose."""
    n, d = X.shape
    if sparse.issparse(X):
        return X.toarray() if X.nnz > SPARSE_BELOW * n * d else X
    if d < 32 or (stored := int(np.count_nonzero(X))) >= SPARSE_BELOW * n * d:
        return X
    if stored > np.iinfo(np.int32).max:
        return sparse.csr_array(X)
    return sparse.csr_array(_ext.to_csr(np.ascontiguousarray(X), stored), shape=X.shape)


def precision_stages(X: Any, tol: float, single: bool) -> list[tuple[type, float, bool]]:
    """Number types, the gap to reach with each, and whether the stage may stop when it makes no progress.

    ``single``: float32 is exact enough for these rows.
    """
    size = X.shape[0] * X.shape[1]
    if single and X.dtype == np.float32 and tol >= FLOAT32_TOL:
        return [(np.float32, tol, False)]
    if not single or (size < 3e5 and not sparse.issparse(X)):
        return [(np.float64, tol, False)]
    return [(np.float32, max(0.9 * tol, 0.9 * FLOAT32_TOL), True), (np.float64, tol, False)]


def core_arrays(X: Any, dtype: type) -> tuple[Any, ...]:
    """The rows as the core takes them: one dense array, or the CSR arrays and the number of features."""
    if sparse.issparse(X):
        return X.indptr, X.indices, _as(X.data, dtype), X.shape[1]
    return (np.ascontiguousarray(_as(X, dtype)),)


def _as(numbers: np.ndarray, dtype: type) -> np.ndarray:
    return numbers if numbers.dtype == dtype else converted(numbers, dtype, lambda whole: whole.astype(dtype))


def face_steps_pay(X: Any, k: int) -> bool:
    """Whether steps on the face of the dual pay: each reads all of W, which for text is larger than X."""
    return X.shape[1] * k <= 4 * stored_numbers(X)


def stored_numbers(X: Any) -> int:
    """How many numbers the rows hold."""
    return X.nnz if sparse.issparse(X) else X.size
