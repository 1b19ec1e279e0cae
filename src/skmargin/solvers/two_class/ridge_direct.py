"""One strength of the least-squares machines of `ridge_spectrum`: Cholesky where it has the digits, Krylov for large n.

Direct.  ``coefficients`` or explicit features: the normal equations ``(Z'PZ + s diag(1.., beta)) (a, b) = Z'P y`` with
Z = (Phi, 1), on the smaller side of Phi.  ``kernel``: ``(sqrt(p) K sqrt(p) + s I) u = y~ - q b``.  Their condition is
largest eigenvalue / s, so strengths below `EIGENVALUE_DIGITS` times the largest eigenvalue go to the condensed form,
and those that it cannot solve (kernels with negative eigenvalues) to the spectrum.  So do machines ``kernel`` whose
coefficients cancel: u is the residual over s, of which only the part in the range of K gives scores.
Iterative.  LSMR (Fong & Saunders 2011) on ``min ||A a + q b - y~||^2 + s ||(a, b)||^2``, products with A only; the free
intercept is eliminated by projecting q out.  ``kernel``: conjugate gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import LinearOperator, cg, lsmr

from ..._types import Rows
from .lapack import cholesky, cholesky_solve
from .ridge_condensed import solutions_features, solutions_kernel
from .ridge_spectrum import (
    EIGENVALUE_DIGITS,
    SCORE_DIGITS,
    RidgePath,
    RidgeSolution,
    RidgeSpec,
    score_rounding,
    spectrum_of_features,
    spectrum_of_kernel,
)
from .row_sources import Features
from .weighted_rows import WeightedRows


class Iterated(NamedTuple):
    """Solution of an iterative solver, the iterations it took, and the tolerance that it reached."""

    solution: RidgeSolution
    n_iter: int
    reached: float


def solve_kernel_ridge(K: np.ndarray, weight: np.ndarray, Y: np.ndarray, spec: RidgeSpec, s: float) -> RidgeSolution:
    """Solution on a full symmetric kernel matrix, which is overwritten."""
    largest = float(np.linalg.norm(K, np.inf) * weight.max())
    if s == 0:
        raise ValueError("The system is singular: alpha=0 needs fewer basis points than rows. Use alpha > 0.")
    if spec.penalty == "coefficients":
        largest *= largest / float(weight.sum())
        if s < EIGENVALUE_DIGITS * largest:
            diagonal = K.diagonal().copy()
            found = solutions_kernel(K, weight, Y, spec, np.array([s]))
            if found.solved[0]:
                return found.at(0)
            K = _restored(K, diagonal, weight)
            return RidgePath(spectrum_of_kernel(K, weight, spec), Y, spec).solution(s)
        root = np.sqrt(weight)  # columns: basis points as often as their rows
        K *= root
        p = np.sqrt(spec.weights(weight))
        K *= p[:, None]
        solution = _normal_equations(WeightedRows(K, None, p), Y, spec, s)
        return solution._replace(coef=root[:, None] * solution.coef)
    diagonal = K.diagonal().copy()
    if s >= 1e-12 * largest:
        root = np.sqrt(weight)
        K *= root
        K *= root[:, None]
        K[np.diag_indices_from(K)] += s
        u, b, residual = _dual(K, root, Y, spec, s)
        solution = RidgeSolution(root[:, None] * u, b, residual)
        if score_rounding(solution.coef.T, diagonal.max()).max() <= SCORE_DIGITS:
            return solution
        K = _restored(K, diagonal, weight)
    return RidgePath(spectrum_of_kernel(K, weight, spec), Y, spec).solution(s)


def _restored(K: np.ndarray, diagonal: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The kernel matrix, times roots of weights, of which only what is left of the diagonal was left."""
    root = np.sqrt(weight)
    K = np.tril(K, -1)
    K /= root
    K /= root[:, None]
    K += K.T
    np.fill_diagonal(K, diagonal)
    return K


def solve_features_ridge(
    source: Features, rows: np.ndarray, weight: np.ndarray, Y: np.ndarray, spec: RidgeSpec, s: float
) -> RidgeSolution:
    """Solution on some rows of explicit features, dense or sparse; the other arguments are of these rows."""
    given, weight = weight, spec.weights(weight)
    root = np.sqrt(weight)
    A = WeightedRows(source.Phi, rows, root, source.tuning)
    n, N = A.shape
    if s == 0:
        spectrum = spectrum_of_features(source.rows(rows), given, spec, s)
        path = RidgePath(spectrum, Y, spec)
        with_bias = spec.bias != "none"
        if len(spectrum.lam) < N or (with_bias and path.q_rest @ path.q_rest < 1e-12 * weight.sum()):
            raise ValueError(
                f"The system is singular: alpha=0 needs {N} features that are independent of each other and of the "
                f"intercept, but the {n} rows have rank {len(spectrum.lam)}. Use alpha > 0."
            )
        return path.solution(s)
    if s < EIGENVALUE_DIGITS * float(weight @ source.squared_norms[rows]):
        return solutions_features(source, rows, given, Y, spec, np.array([s])).at(0)
    if n > N:
        return _normal_equations(A, Y, spec, s)
    M = A.outer()
    M[np.diag_indices_from(M)] += s
    u, b, residual = _dual(M, root, Y, spec, s)
    return RidgeSolution(A.gathered(u.T).T, b, residual)


def _normal_equations(A: WeightedRows, Y: np.ndarray, spec: RidgeSpec, s: float) -> RidgeSolution:
    """Solution from A = sqrt(p) Phi; one matrix of N x N numbers is made."""
    root, N = A.root, A.shape[1]
    y = root[:, None] * Y.reshape(len(root), -1)
    with_bias = spec.bias != "none"
    S = np.empty((N + with_bias, N + with_bias))
    _, right = A.inner(np.column_stack([y, root]).T, S[:N, :N])
    S[np.arange(N), np.arange(N)] += s
    h = np.empty((N + with_bias, y.shape[1]))
    h[:N] = right[:-1].T
    if with_bias:
        S[:N, N] = S[N, :N] = right[-1]
        S[N, N] = root @ root + (s if spec.bias == "penalised" else 0)
        h[N] = root @ y
    cholesky(S)
    r = cholesky_solve(S, h)
    coef, b = r[:N], r[N] if with_bias else np.zeros(y.shape[1])
    # 1 - h'r as a sum of squares (r minimises): no cancellation where the fit is nearly perfect
    rest = y - A.times(coef) - root[:, None] * b
    penalty = s * (np.einsum("ij,ij->j", coef, coef) + (b**2 if spec.bias == "penalised" else 0))
    return RidgeSolution(coef, b, np.einsum("ij,ij->j", rest, rest) + penalty)


def _dual(
    M: np.ndarray, root: np.ndarray, Y: np.ndarray, spec: RidgeSpec, s: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(M + q q'/beta) u = y~`` with M already shifted by s; M is overwritten."""
    y = root[:, None] * Y.reshape(len(root), -1)
    try:
        cholesky(M)
    except LinAlgError as error:
        raise ValueError(
            f"The system is singular or the kernel is not positive semi-definite ({error}): use a smaller C, or a "
            "kernel that is a scalar product."
        ) from error
    u = cholesky_solve(M, y)
    b = np.zeros(y.shape[1])
    if spec.bias != "none":
        v = cholesky_solve(M, root)
        b = (v @ y) / ((spec.bias == "penalised") + root @ v)
        u -= np.outer(v, b)
    return u, b, s * np.einsum("ij,ij->j", y, u)


def iterate_features(
    Phi: Any, weight: np.ndarray, Y: np.ndarray, spec: RidgeSpec, strengths: np.ndarray, tol: float, max_iter: int
) -> list[Iterated]:
    """Solutions on features that are used in products only: nothing of size N x N or n x n is formed.

    Each strength starts from the solution of the one before: give them from the largest to the smallest.
    """
    n, N = Phi.shape
    Y = Y.reshape(n, -1)
    weight = spec.weights(weight)
    root = np.sqrt(weight)
    free, penalised = spec.bias == "free", spec.bias == "penalised"
    q = root / np.sqrt(weight.sum())

    def project(v: np.ndarray) -> np.ndarray:
        return v - q * (q @ v) if free else v

    def forward(x: np.ndarray) -> np.ndarray:
        out = root * (Phi @ x[:N])
        return project(out + root * x[N] if penalised else out)

    def backward(v: np.ndarray) -> np.ndarray:
        v = root * project(v)
        out = Phi.T @ v
        return np.append(out, v.sum()) if penalised else out

    out = []
    X: Rows = [None] * Y.shape[1]
    n_unknown = N + penalised
    nothing = np.zeros(n_unknown)
    for s in strengths:
        # the penalty as rows of the matrix: the damping of lsmr would pull towards the start instead of zero
        damp = np.sqrt(s)
        A = LinearOperator(
            (n + n_unknown, n_unknown),
            matvec=lambda x: np.concatenate([forward(x), damp * x]),  # noqa: B023
            rmatvec=lambda v: backward(v[:n]) + damp * v[n:],  # noqa: B023
            dtype=np.float64,
        )
        n_iter, reached = 0, 0.0
        for column, y in enumerate((root[:, None] * Y).T):
            right = np.concatenate([project(y), nothing])
            X[column], stop, steps, norm, gradient, norm_A, *_ = lsmr(
                A, right, atol=tol, btol=tol, conlim=0, maxiter=max_iter, x0=X[column]
            )
            n_iter = max(n_iter, steps)
            if stop == 7:
                reached = max(reached, gradient / (norm_A * norm))
        x = np.array(X).T
        coef, b = x[:N], x[N] if penalised else np.zeros(Y.shape[1])
        if free:
            b = weight @ (Y - Phi @ coef) / weight.sum()
        f = Phi @ coef + b
        penalty = s * (np.einsum("ij,ij->j", coef, coef) + (b**2 if penalised else 0))
        out.append(Iterated(RidgeSolution(coef, b, weight @ (Y - f) ** 2 + penalty), n_iter, reached))
    return out


def iterate_kernel(
    K: np.ndarray, weight: np.ndarray, Y: np.ndarray, spec: RidgeSpec, strengths: np.ndarray, tol: float, max_iter: int
) -> list[Iterated]:
    """As `iterate_features` for a full kernel matrix, which is overwritten."""
    root = np.sqrt(weight)
    if spec.penalty == "coefficients":
        K *= root
        return [
            one._replace(solution=one.solution._replace(coef=root[:, None] * one.solution.coef))
            for one in iterate_features(K, weight, Y, spec, strengths, tol, max_iter)
        ]
    y = root[:, None] * Y.reshape(len(root), -1)
    columns = (*y.T, root) if spec.bias != "none" else tuple(y.T)
    solved: list[Any] = [None] * len(columns)
    out = []
    for s in strengths:
        M = LinearOperator(K.shape, matvec=lambda x: root * (K @ (root * x)) + s * x, dtype=np.float64)  # noqa: B023
        counter, reached = _Counter(), 0.0
        for number, column in enumerate(columns):
            counter.n = 0
            x, failed = cg(M, column, x0=solved[number], rtol=tol, maxiter=max_iter, callback=counter)
            if failed:
                reached = max(reached, float(np.linalg.norm(M @ x - column) / np.linalg.norm(column)))
            solved[number] = x
        u = np.array(solved[: y.shape[1]]).T
        b = np.zeros(y.shape[1])
        if spec.bias != "none":
            v = solved[-1]
            b = (v @ y) / ((spec.bias == "penalised") + root @ v)
            u = u - np.outer(v, b)
        solution = RidgeSolution(root[:, None] * u, b, s * np.einsum("ij,ij->j", y, u))
        out.append(Iterated(solution, counter.most, reached))
    return out


class _Counter:
    def __init__(self) -> None:
        self.n = self.most = 0

    def __call__(self, _: np.ndarray) -> None:
        self.n += 1
        self.most = max(self.most, self.n)
