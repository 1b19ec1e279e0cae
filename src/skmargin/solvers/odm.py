"""The optimal margin distribution machine by majorising and minimising.

Problem (gamma_i = f_{i,y_i} - max_{l != y_i} f_il is the margin, cap_i = C s_i / (sum s (1 - theta)^2); the intercept
is not penalised, or absent)::

    min  T = 1/2 ||W||^2 + sum_i cap_i [ (1 - theta - gamma_i)_+^2 + mu (gamma_i - 1 - theta)_+^2 ]

The second part is not convex.  With a fixed rival r_i it is, and larger or equal::

    Q = 1/2 ||W||^2 + sum_i cap_i [ (1 - theta - gamma_i)_+^2 + mu (f_{i,y_i} - f_{i,r_i} - 1 - theta)_+^2 ]  >=  T,

with equality where r_i is the closest rival.  So::

    W = argmin of T with mu = 0 (convex)
    repeat  r_i = closest rival under W
            W = dual block ascent on Q from the last duals, until Q - D <= max(RHO (T_old - D), FLOOR tol Q)
            stop if T_old - D <= tol T_old      (the old W minimises its own majoriser)

T never rises: T(W) <= Q(W) <= T_old by the inner stopping test; a step that rounding spoils is not taken.
Duals (_core/band_loss.hpp): alpha_il >= 0, but of any sign for the fixed rival.  Where a rival is replaced its negative
dual is set to zero, which is feasible.

given    rows or kernel rows, classes 0..k-1, cap, mu, theta, perhaps the state of an earlier solve
returned the scores' parameters, T after each outer step, the certified gap of the last inner problem

Zhang & Zhou, Multi-class optimal margin distribution machine, ICML 2017; they freeze the score of the rival instead of
its index, which does not majorise: the objective may rise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from skmargin._core import _ext
from skmargin.kernels._rows import KernelRows

from .dual_blocks import ROUNDING, SINGLE_TOL, _arrays, _suitable_rows
from .kernel_blocks import KernelState, solve_kernel

RHO, FLOOR = 0.1, 0.5  # how far an inner problem goes: this share of its possible gain, or of tol
NO_RIVALS = np.zeros(0, np.int32)  # with mu = 0
START_TOL = 1e-2  # of the convex problem that gives the first rivals


@dataclass(frozen=True)
class Machine:
    """The machine without its rows: labels, weights of the losses, parameters."""

    y: np.ndarray
    cap: np.ndarray
    n_classes: int
    mu: float
    theta: float
    fit_intercept: bool = True

    def rivals(self, F: np.ndarray) -> np.ndarray:
        """The closest rival of each sample under the scores ``F`` (n, k)."""
        F = F.copy()
        F[np.arange(len(F)), self.y] = -np.inf
        return F.argmax(axis=1).astype(np.int32)

    def loss(self, F: np.ndarray) -> float:
        """Sum of the true losses under the scores ``F`` (n, k)."""
        i = np.arange(len(F))
        gamma = (F[i, self.y] - F[i, self.rivals(F)]).astype(np.float64)
        low, high = np.maximum(0, 1 - self.theta - gamma), np.maximum(0, gamma - 1 - self.theta)
        return float(self.cap @ (low * low + self.mu * high * high))


class Inner(Protocol):
    """Solver of the inner problems, which remembers its duals."""

    half_norm: float  # 1/2 ||W||^2
    scores: np.ndarray  # (n, k)
    objective: float
    gap: float  # P - D, certified
    n_iter: int

    def solve(self, mu: float, rivals: np.ndarray, tol: float, share: float, reference: float, max_iter: int) -> bool:
        """Minimise Q until its gap is at most max(tol Q, share (reference - Q)); whether that was reached."""

    def point(self) -> Any:
        """Where the last solve ended."""


@dataclass(frozen=True)
class Effort:
    """How long to go on."""

    tol: float
    max_iter: int
    max_outer: int
    n_init: int
    seed: int


@dataclass(frozen=True)
class Descent:
    """Result of `majorize_minimize`."""

    point: Any
    objectives: np.ndarray  # T at the start and after each outer step
    gap: float | None  # relative gap of the last inner problem; None without a dual
    excess: float  # what the last outer step could have gained at most, relative to T
    n_iter: int
    converged: bool

    @property
    def objective(self) -> float:
        """The objective T at the end."""
        return float(self.objectives[-1])


class MajorizeMinimize:
    """The outer loop, with the best point so far."""

    def __init__(self, machine: Machine, inner: Inner, max_iter: int) -> None:
        self.machine, self.inner, self.max_iter = machine, inner, max_iter
        self.objectives: list[float] = []
        self.gap = self.excess = np.inf

    def start(self, tol: float, warm: bool) -> None:
        """The solution with mu = 0, unless there is a point already."""
        machine, inner = self.machine, self.inner
        if machine.mu == 0 or not warm:
            inner.solve(0.0, NO_RIVALS, tol, 0.0, 0.0, self.max_iter)
            self.gap = inner.gap / max(inner.objective, np.finfo(float).tiny)
        if machine.mu == 0:
            self.excess = self.gap
            self.objectives.clear()
        self._accept(inner.half_norm + machine.loss(inner.scores))

    def _accept(self, T: float) -> None:
        self.objectives.append(T)
        self.point, self.closest = self.inner.point(), self.machine.rivals(self.inner.scores)

    def run(self, tol: float, max_outer: int, rivals: np.ndarray | None = None) -> None:
        """Outer steps until none can gain more than the share ``tol`` of T; ``rivals`` are those of the first step."""
        machine, inner = self.machine, self.inner
        floor = FLOOR * tol
        for _ in range(max_outer):
            T = self.objectives[-1]
            if inner.n_iter >= self.max_iter or self.excess <= tol:
                return
            if rivals is not None:  # they do not majorise at the old point
                inner.solve(machine.mu, rivals, START_TOL, 0.0, 0.0, self.max_iter)
                rivals = None
                self.objectives.clear()
                self._accept(inner.half_norm + machine.loss(inner.scores))
                continue
            reached = inner.solve(machine.mu, self.closest, floor, RHO / (1 - RHO), T, self.max_iter)
            self.gap = inner.gap / inner.objective
            self.excess = max(0.0, (T - inner.objective + inner.gap) / T)
            T_new = inner.half_norm + machine.loss(inner.scores)
            if T_new <= T:
                self._accept(T_new)
            if T_new >= T * (1 - ROUNDING):  # rounding, or the inner problem was not solved well enough
                if not reached or floor <= ROUNDING:
                    return
                floor *= 0.1

    def end(self, tol: float) -> Descent:
        """What was reached."""
        return Descent(
            self.point, np.array(self.objectives), self.gap, self.excess, self.inner.n_iter, bool(self.excess <= tol)
        )


def majorize_minimize(
    machine: Machine,
    inner: Inner,
    effort: Effort,
    polish: bool = False,
    rivals: np.ndarray | None = None,
    warm: bool = False,
) -> Descent:
    """Solve to ``tol``; ``polish`` then goes on to rounding, which costs next to nothing for tiny problems."""
    loop = MajorizeMinimize(machine, inner, effort.max_iter)
    loop.start(effort.tol if machine.mu == 0 else max(effort.tol, START_TOL), warm)
    loop.run(effort.tol, effort.max_outer, rivals)
    end = loop.end(effort.tol)
    if not polish or not end.converged or end.n_iter >= effort.max_iter:
        return end
    if machine.mu == 0:
        loop.start(min(ROUNDING, effort.tol), warm=False)
    else:
        loop.run(min(ROUNDING, effort.tol), effort.max_outer)
    return replace(loop.end(effort.tol), converged=True)


@dataclass(frozen=True)
class LinearPoint:
    """Class vectors, intercepts and the duals they came from (CSR arrays), for the weights ``cap``."""

    W: np.ndarray
    b: np.ndarray
    duals: tuple[np.ndarray, np.ndarray, np.ndarray]
    multipliers: np.ndarray
    y: np.ndarray
    cap: np.ndarray


class LinearInner:
    """Inner problems of a linear machine: block ascent on float32 rows while they are exact enough."""

    def __init__(self, X: Any, machine: Machine, tol: float, seed: int, start: LinearPoint | None = None) -> None:
        self.machine, self.seed, self.n_iter = machine, seed, 0
        self.X = X = _suitable_rows(X)
        n, k = len(machine.y), machine.n_classes
        self.mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel() if machine.fit_intercept else None
        small = X.size < 3e5 and not sparse.issparse(X)
        self.dtype: Any = np.float32 if tol >= SINGLE_TOL and not small else np.float64
        self.rows = _arrays(X, self.dtype)
        self.duals = np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        self.multipliers = np.zeros(k)
        if start is not None:
            first, rival, alpha = start.duals
            self.duals = first, rival, alpha * np.repeat(machine.cap / start.cap, np.diff(first))
            self.multipliers = start.multipliers
            self._set(start.W, start.b)

    def _set(self, W: np.ndarray, b: np.ndarray) -> None:
        self.W, self.b = W, b
        self.half_norm = 0.5 * float(np.vdot(W, W))
        self.scores = self.X @ W.T.astype(self.X.dtype if self.dtype == np.float32 else np.float64) + b

    def solve(self, mu: float, rivals: np.ndarray, tol: float, share: float, reference: float, max_iter: int) -> bool:
        """See `Inner`."""
        machine = self.machine
        call = _ext.csr_band if sparse.issparse(self.X) else _ext.dense_band
        while True:
            single = self.dtype == np.float32
            out = call(
                *self.rows, machine.y, machine.cap, machine.n_classes, float(mu), float(machine.theta), rivals,
                self.mean, self.multipliers, *without_stale(self.duals, rivals), float(tol),
                max(1, max_iter - self.n_iter), single or tol <= ROUNDING, float(share), float(reference),
                self.seed + self.n_iter,
            )  # fmt: skip
            self.duals, self.multipliers = out["duals"], out["multipliers"]
            self.objective, self.gap = out["primal"], out["gap"]
            self.n_iter += out["passes"]
            self._set(out["W"], out["b"])
            if out["converged"] or not single or self.n_iter >= max_iter:
                return bool(out["converged"])
            self.dtype, self.rows = np.float64, _arrays(self.X, np.float64)

    def point(self) -> LinearPoint:
        """Where the last solve ended."""
        return LinearPoint(self.W, self.b, self.duals, self.multipliers, self.machine.y, self.machine.cap)


def without_stale(
    duals: tuple[np.ndarray, np.ndarray, np.ndarray], rivals: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Duals with the negative ones of replaced rivals at zero."""
    start, cls, alpha = duals
    fixed = np.repeat(rivals if len(rivals) else np.full(len(start) - 1, -1, np.int32), np.diff(start))
    return start, cls, np.where((alpha < 0) & (cls != fixed), 0.0, alpha)


@dataclass(frozen=True)
class KernelPoint:
    """Duals, intercepts and scores of the training rows, for the weights ``cap``."""

    state: KernelState
    y: np.ndarray
    cap: np.ndarray


class KernelInner:
    """Inner problems of a kernel machine."""

    def __init__(self, rows: KernelRows, machine: Machine, seed: int, start: KernelPoint | None = None) -> None:
        self.rows, self.machine, self.seed, self.n_iter = rows, machine, seed, 0
        self.state: KernelState | None = None
        if start is not None:
            ratio = (machine.cap / start.cap)[:, None]
            self._set(start.state)
            self.state = replace(start.state, alpha=ratio * start.state.alpha)

    def _set(self, state: KernelState) -> None:
        machine = self.machine
        assert state.scores is not None
        self.state, self.scores = state, (state.scores.T + state.b).astype(np.float64)
        c = -state.alpha
        c[np.arange(len(c)), machine.y] = state.alpha.sum(axis=1)
        self.half_norm = 0.5 * float(np.vdot(c, state.scores.T))

    def solve(self, mu: float, rivals: np.ndarray, tol: float, share: float, reference: float, max_iter: int) -> bool:
        """See `Inner`."""
        machine, state = self.machine, self.state
        if state is not None:
            alpha, stale = state.alpha, state.alpha < 0
            if len(rivals):
                stale[np.arange(len(rivals)), rivals] = False
            state = replace(state, alpha=np.where(stale, 0.0, alpha))
        state = solve_kernel(
            self.rows, machine.y, machine.cap, machine.n_classes, "band", mu=mu, theta=machine.theta, rivals=rivals,
            fit_intercept=machine.fit_intercept, tol=tol, share=share, reference=reference,
            max_iter=max(1, max_iter - self.n_iter), random_state=self.seed + self.n_iter, state=state,
        )  # fmt: skip
        self.n_iter += state.n_iter
        self.objective, self.gap = state.objective, state.gap * state.objective
        self._set(state)
        return self.gap <= max(tol * self.objective, share * (reference - self.objective))

    def point(self) -> KernelPoint:
        """Where the last solve ended."""
        assert self.state is not None
        return KernelPoint(self.state, self.machine.y, self.machine.cap)


def solve_linear(X: Any, machine: Machine, effort: Effort, start: LinearPoint | None = None) -> Descent:
    """The linear machine; ``start`` belongs to the same rows and labels."""
    return best_of(machine, effort, False, start, lambda first: LinearInner(X, machine, effort.tol, effort.seed, first))


def solve_kernel_machine(
    rows: KernelRows, machine: Machine, effort: Effort, polish: bool = False, start: KernelPoint | None = None
) -> Descent:
    """The kernel machine; ``start`` belongs to the same rows and labels."""
    return best_of(machine, effort, polish, start, lambda first: KernelInner(rows, machine, effort.seed, first))


def best_of(machine: Machine, effort: Effort, polish: bool, start: Any, make: Callable[[Any], Inner]) -> Descent:
    """The best of ``n_init`` descents: the first from ``start`` or mu = 0, the others with random rivals."""
    rng = np.random.default_rng(effort.seed)
    best = None
    for run in range(effort.n_init if machine.mu > 0 else 1):
        rivals = None
        if run > 0:
            rivals = rng.integers(machine.n_classes - 1, size=len(machine.y), dtype=np.int32)
            rivals += rivals >= machine.y
        inner = make(start if run == 0 else None)
        end = majorize_minimize(machine, inner, effort, polish, rivals, warm=run == 0 and start is not None)
        if best is None or end.objective < best.objective:
            best = end
    assert best is not None
    return best
