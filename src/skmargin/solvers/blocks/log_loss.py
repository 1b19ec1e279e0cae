"""Smooth losses over blocks of rows (M3SVC with the log loss): gradients of all rows, curvature of a sample.

    min_{W,b}  sum_i s_i loss(f_i, y_i) + penalty(W) + eps (||W||^2 + ||b||^2),   f_i = W'x_i + b

A pass sums up value, slopes and dual values.  The step solves with the Hessian of a sample of the rows, weighted so
that it stands for all: the error shrinks by about sqrt(parameters / sample rows) with each pass.  The slopes are a dual
point; where the intercept is free those of the sample are taken at b + delta, so that their sum over all rows is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import softmax

from skmargin._runtime.progress import print_line, report_gap
from skmargin._runtime.threads import blas_threads
from skmargin.losses import LogLoss
from skmargin.rows.blocks import Block, BlockRows, Task, chunks
from skmargin.rows.moments import Sample, overview

from ..._types import Rows
from ..primal.driver import PrimalState, minimise
from ..primal.objective import Certificate, PrimalObjective
from ..tuning import DEFAULT, BlocksTuning

FREE_STEPS = 50  # Newton steps for the shifts of k intercepts: far more than it takes


@dataclass(frozen=True)
class SlopePass(Task[dict[str, np.ndarray]]):
    """Task: value, slopes and dual values of the log loss at ``theta`` (W over b) for features less ``centre``."""

    name = "slopes"
    theta: np.ndarray
    centre: np.ndarray
    intercept: bool

    def zero(self) -> dict[str, np.ndarray]:
        """Empty sums."""
        d, k = len(self.centre), self.theta.shape[1]
        return {"value": np.zeros(1), "dual": np.zeros(1), "into": np.zeros((d, k)), "total": np.zeros(k)}

    def add(self, sums: dict[str, np.ndarray], block: Block) -> None:
        """Add a block."""
        loss, d = LogLoss(), len(self.centre)
        for rows in chunks(len(block.y), d):
            part = block.cut(rows.start, rows.stop)
            X = dense(part.X) - self.centre
            F = X @ self.theta[:d]
            if self.intercept:
                F += self.theta[d]
            own = np.arange(len(X)), part.y
            value, P = loss.value_slopes(F, own, part.weight)
            sums["value"] += value
            sums["into"] += X.T @ P
            sums["total"] += P.sum(axis=0)
            P[own] = 0
            sums["dual"] += loss.dual_value(P / part.weight[:, None], part.weight)


def dense(X: Rows) -> np.ndarray:
    """Rows in double precision."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def suits_log_loss(d: int, k: int, tuning: BlocksTuning = DEFAULT.blocks) -> bool:
    """Whether the Hessian of a sample can be held."""
    return (d + 1) * k <= tuning.most_parameters


def solve_log_loss(
    rows: BlockRows, penalty: Any, fit_intercept: bool, eps: float, *, tol: float, max_iter: int, seed: int = 0,
    verbose: int = 0, tuning: BlocksTuning = DEFAULT.blocks,
) -> PrimalState:  # fmt: skip
    """Solve to a relative duality gap of ``tol``; ``theta`` is for the features as given."""
    k, d = len(rows.class_counts), rows.n_features
    size = max(tuning.sample_rows, tuning.sample_rows_parameter * (d + 1) * k)
    with blas_threads(1):
        seen = overview(rows, (size, 0), tuning.class_rows, seed)
        sample = seen.first
        objective = PrimalObjective(sample.X, sample.y, sample.inflated(), k, LogLoss(), penalty, fit_intercept, eps)
        theta = minimise(objective, None, solver="auto", tol=1e-2, max_iter=max_iter, verbose=0).theta
        return _Descent(rows, objective, sample, fit_intercept, eps).run(
            theta, tol, min(max_iter, tuning.most_passes), verbose
        )


class _Descent:
    def __init__(
        self, rows: BlockRows, objective: PrimalObjective, sample: Sample, fit_intercept: bool, eps: float
    ) -> None:
        self.rows, self.objective, self.sample = rows, objective, sample
        self.intercept, self.eps = fit_intercept, eps
        self.d, self.k = rows.n_features, objective.n_classes
        self.block = Block(sample.X, sample.y, sample.weight, 0)

    def run(self, theta: np.ndarray, tol: float, max_iter: int, verbose: int) -> PrimalState:
        sums = self._pass(theta)
        passes, damping = 1, 0.0
        value, gradient = self._value(theta, sums)
        while True:
            certificate = self._certificate(theta, sums, value)
            report_gap(min(1.0, certificate.relative), tol)
            if verbose:
                print_line(f"blocks: pass {passes}, objective {value:.6g}, relative gap {certificate.relative:.1e}")
            if certificate.relative <= tol or passes >= max_iter:
                return PrimalState(self.objective.uncentred(theta), certificate, 0.0, passes)
            step = self._step(theta, gradient, damping)
            slope = float(np.vdot(gradient, step))
            trial_sums = self._pass(theta + step)
            passes += 1
            trial = self._value(theta + step, trial_sums)
            if trial[0] <= value + 0.1 * slope or float(np.vdot(trial[1], step)) <= 0:
                theta, sums, (value, gradient), damping = theta + step, trial_sums, trial, 0.1 * damping
            else:
                damping = max(4 * damping, 0.1)

    def _pass(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        return self.rows.map_sum(SlopePass(theta, self.objective.centre, self.intercept))

    def _value(self, theta: np.ndarray, sums: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
        extra, slopes = self.objective.penalty.value_gradient(theta[: self.d])
        gradient = 2 * self.eps * theta
        gradient[: self.d] += sums["into"] + slopes
        if self.intercept:
            gradient[self.d] += sums["total"]
        return float(sums["value"][0]) + extra + self.eps * float(np.vdot(theta, theta)), gradient

    def _step(self, theta: np.ndarray, gradient: np.ndarray, damping: float) -> np.ndarray:
        H = self.objective.explicit_hessian(self.objective.point(theta))
        scale = float(np.trace(H)) / len(H)
        # The losses do not see a vector common to all classes: it has a curvature of its own, and no gradient.
        shared = H.reshape(theta.shape * 2)
        places = np.arange(len(theta))
        shared[places, :, places, :] += scale / self.k
        H.flat[:: len(H) + 1] *= 1 + damping
        H.flat[:: len(H) + 1] += 1e-12 * scale
        factor, info = lapack.dpotrf(H, lower=1)
        if info:
            return -gradient / np.diagonal(H).reshape(theta.shape)
        return lapack.dpotrs(factor, -gradient.ravel(), lower=1)[0].reshape(theta.shape)

    def _certificate(self, theta: np.ndarray, sums: dict[str, np.ndarray], value: float) -> Certificate:
        """The objective, and a lower bound of its minimum from the slopes of all rows."""
        W = theta[: self.d]
        into, total, dual = sums["into"], sums["total"], float(sums["dual"][0])
        if self.intercept and not self.eps:
            moved = self._balanced(theta, total)
            if moved is None:
                return Certificate(value, 0.0)
            into, dual = into + moved["into"], dual + float(moved["dual"][0])
        parts = self.objective.penalty.split(W, -into - 2 * self.eps * W)
        factor, bound = self.objective.penalty.conjugate(parts)
        if factor < 1:  # p = 1: the dual value of scaled slopes is at least the scaled one, since that of none is zero
            dual *= factor
        dual -= bound
        if self.eps:
            dual -= factor**2 * self.eps * float(np.vdot(W, W))
            if self.intercept:
                dual -= factor**2 * float((total**2).sum()) / (4 * self.eps)
        return Certificate(value, dual)

    def _balanced(self, theta: np.ndarray, total: np.ndarray) -> dict[str, np.ndarray] | None:
        """How the sums change when the slopes of the sample are taken at other intercepts, so that all sum to zero."""
        here_task = SlopePass(theta, self.objective.centre, True)
        here = here_task.zero()
        here_task.add(here, self.block)
        X, weight = dense(self.sample.X) - self.objective.centre, self.sample.weight
        F = X @ theta[: self.d] + theta[self.d]
        own = np.zeros_like(F)
        own[np.arange(len(F)), self.sample.y] = weight
        rest = total - here["total"]
        delta, size = np.zeros(self.k), float(weight.sum())
        for _ in range(FREE_STEPS):
            Q = softmax(F + delta, axis=1)
            excess = weight @ Q - own.sum(axis=0) + rest
            excess -= excess.mean()
            if np.abs(excess).max() <= 1e-13 * size:
                break
            H = np.diag(weight @ Q) - (Q * weight[:, None]).T @ Q + np.full((self.k, self.k), size / self.k)
            step = np.linalg.solve(H + 1e-14 * size * np.eye(self.k), -excess)
            step -= step.mean()
            delta = delta + step * min(1.0, 1 / max(np.abs(step).max(), 1e-300))
        else:
            if np.abs(excess).max() > 1e-10 * size:
                return None
        shifted = theta.copy()
        shifted[self.d] += delta
        task = SlopePass(shifted, self.objective.centre, True)
        moved = task.zero()
        task.add(moved, self.block)
        return {name: moved[name] - here[name] for name in ("into", "dual")}
