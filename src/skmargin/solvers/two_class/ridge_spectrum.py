"""Least squares on +-1 labels for every strength of the penalty, from one factorisation.

The problem, for labels y of -1 and +1, weights p_i > 0, features phi_i (the rows of Phi) and the strength s::

    min over (a, b)   sum_i p_i (y_i - phi_i'a - b)^2  +  s (a'R a + beta b^2)

``coefficients`` : R = I.  Unconstrained LDM, Abe (2017) Eq. 35: the features are kernel rows (or x itself), sum p = 1,
s = alpha.  Its solution is ``(a, b) / (1 - h'r)``, the ridge solution times one number (Sherman-Morrison), see `scale`.
On a full kernel matrix a row of weight 2 is two basis points, which share its coefficient: R = diag(1/weight), so that
A = sqrt(weight) K sqrt(weight) / sqrt(sum of weights) is symmetric, whatever the weights.
``kernel`` : Phi = R = K.  The LS-SVM (Suykens et al. 2002) with p = sample weights and s = 1/C.
beta is 1 (penalised intercept, Abe), 0 (free intercept, LS-SVM); without intercept the column is left out.

With A = sqrt(p) Phi and M = A A' (``kernel``: M = sqrt(p) K sqrt(p)), q = sqrt(p) and y~ = sqrt(p) y, the residual is
s u, where ``(M + q q'/beta + s I) u = y~``.  With M = U diag(lam) U', e = s/(lam + s) and t_x = U'x::

    s G x   = U (e t_x) + (x - U t_x)                     the second part vanishes where U is square
    b       = q'sG y~ / (beta s + q'sG q)                  (beta = 0: free)
    s u     = s G (y~ - q b),     a = V (gain/(lam + s) (t_y - b t_q))
    held-out set B:   f_B = y_B - p_B^(-1/2) t_B,   t_B solves  (s G_q)_BB t_B = (s u)_B
    G_q = G - (G q)(G q)'/(beta + q'G q);   B = {i}: a division
    1 - h'r = y~'s u;   after B is left out:  y~'s u - (s u)_B't_B, divided by the weight that is left

``lam`` is formed from the singular values of A (from the eigenvalues of A where it is symmetric), never from the
eigenvalues of A A', wherever the smallest strength asks for it: alpha = 1e-12 keeps 8 digits.
Where the weights are normalised, leaving a part w_B of them out changes the strength to s (1 - w_B): the closed forms
do that, so they equal a fit of the remaining rows on the same features exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ...rows.gram import refuse_indefinite, row_blocks
from .lapack import cholesky, cholesky_solve, eigen

EIGENVALUE_DIGITS = 1e-8  # smallest strength / largest eigenvalue for which eigenvalues of A'A keep 8 digits

NO_EIGENVALUE = 4e-15  # of the largest: five times the rounding that was met, up to 2000 rows
SCORE_DIGITS = 1e-6  # rounding that scores of kernel machines may have before eigenvalues are worth their time


class RidgeSpec(NamedTuple):
    """Which of the least-squares machines: see the head of the file.

    ``normalised``: the weights are divided by their sum, and solutions are multiplied by ``1 / (1 - h'r)``.
    """

    penalty: str  # "coefficients" or "kernel"
    bias: str  # "penalised", "free" or "none"
    normalised: bool

    def weights(self, weight: np.ndarray) -> np.ndarray:
        """The p of the problem."""
        return weight / weight.sum() if self.normalised else weight


class RidgeSolution(NamedTuple):
    """Coefficients ``(N, m)``, intercepts ``(m,)`` and residuals ``1 - h'r`` ``(m,)`` of m label vectors."""

    coef: np.ndarray
    intercept: np.ndarray
    residual: np.ndarray


@dataclass(frozen=True)
class Spectrum:
    """``M = U diag(lam) U'`` and the way back from its coordinates to coefficients, ``diag(back) V diag(gain)``."""

    U: np.ndarray
    lam: np.ndarray
    V: np.ndarray
    gain: np.ndarray
    back: np.ndarray
    root: np.ndarray  # square roots of the weights
    complete: bool  # U is square


def symmetric_eigen(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of a symmetric matrix, which is overwritten."""
    try:
        return eigen(np.ascontiguousarray(K))
    except linalg.LinAlgError as error:
        raise ValueError(
            f"The eigenvalues of the kernel matrix were not found ({error}): scale the features."
        ) from error


def spectrum_of_kernel(K: np.ndarray, weight: np.ndarray, spec: RidgeSpec) -> Spectrum:
    """Factorise a machine on a full symmetric kernel matrix, which is overwritten."""
    raw = np.sqrt(weight).astype(K.dtype)
    root = np.sqrt(spec.weights(weight)).astype(K.dtype)
    K *= raw
    K *= raw[:, None]
    w, Q = symmetric_eigen(K)
    if spec.penalty == "kernel":
        refuse_indefinite(w[0], w[-1], np.sqrt(np.finfo(K.dtype).eps))
        # Eigenvalues that are rounding are none: a small s would see them.  Along their eigenvectors coefficients are
        # the residual over s and have no score: they would only cancel.
        some = w > NO_EIGENVALUE * w[-1]
        return Spectrum(Q, np.where(some, w, 0), Q, some.astype(w.dtype), raw, root, True)
    gain = w * (root[0] / raw[0])
    return Spectrum(Q, gain**2, Q, gain, raw, root, True)


def spectrum_of_features(Phi: Any, weight: np.ndarray, spec: RidgeSpec, smallest: float) -> Spectrum:
    """Factorise a machine on explicit features, dense or sparse, on the smaller side of the matrix.

    ``smallest`` is the smallest strength that will be asked for: it decides whether eigenvalues have enough digits.
    """
    n, N = Phi.shape
    root = np.sqrt(spec.weights(weight))
    A = scale_rows(Phi, root)
    gram = dense(A.T @ A) if n >= N else dense(A @ A.T)
    largest = float(np.linalg.norm(gram, np.inf))
    if smallest >= EIGENVALUE_DIGITS * largest:
        lam, W = symmetric_eigen(gram)
        kept = lam > 1e-14 * max(lam[-1], 1e-300)
        lam, W = lam[kept], W[:, kept]
        sv = np.sqrt(lam)
        other = np.asarray((A if n >= N else A.T) @ (W / sv))
        U, V = (other, W) if n >= N else (W, other)
    else:
        del gram
        U, sv, Vt = linalg.svd(dense(A), full_matrices=False, check_finite=False)
        kept = sv > 1e-15 * max(n, N) * max(sv[0], 1e-300)
        U, sv, V = U[:, kept], sv[kept], Vt[kept].T
    return Spectrum(U, sv**2, V, sv, np.ones(N), root, U.shape[1] == n)


class RidgePath:
    """Solutions and held-out scores of ``m`` label vectors for any strength, from one `Spectrum`."""

    def __init__(self, spectrum: Spectrum, Y: np.ndarray, spec: RidgeSpec) -> None:
        number = spectrum.U.dtype
        self.spectrum, self.spec = spectrum, spec
        self.Y = Y.reshape(len(spectrum.root), -1).astype(number)
        self.q = spectrum.root if spec.bias != "none" else np.zeros_like(spectrum.root)
        self.q = self.q.astype(number)
        y = spectrum.root.astype(number)[:, None] * self.Y
        U = spectrum.U
        self.ty, self.tq = U.T @ y, U.T @ self.q
        self.y_rest = np.zeros_like(y) if spectrum.complete else y - U @ self.ty
        self.q_rest = np.zeros_like(self.q) if spectrum.complete else self.q - U @ self.tq
        self.y = y
        self.beta = number.type(spec.bias != "free")

    def _shrunk(self, s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """``e``, the intercepts ``b``, ``beta s + q'sGq`` and ``1 - h'r``."""
        s = self.ty.dtype.type(s)
        e = s / (self.spectrum.lam + s)
        den = self.beta * s + self.tq @ (e * self.tq) + self.q_rest @ self.q_rest
        qy = (e * self.tq) @ self.ty + self.q_rest @ self.y_rest
        if self.spec.bias == "none":
            b, den = np.zeros_like(qy), self.ty.dtype.type(1)
        else:
            b = qy / den
        residual = e @ (self.ty * self.ty) + np.einsum("ij,ij->j", self.y_rest, self.y_rest) - qy * b
        return e, b, den, residual

    def solution(self, s: float) -> RidgeSolution:
        """Coefficients, intercepts and ``1 - h'r`` for the strength ``s``, not scaled."""
        _, b, _, residual = self._shrunk(s)
        return RidgeSolution(self._coefficients(self.ty, b, s), b, residual)

    def _coefficients(self, ty: np.ndarray, b: np.ndarray, s: float) -> np.ndarray:
        spectrum = self.spectrum
        inner = spectrum.gain / (spectrum.lam + self.ty.dtype.type(s))  # a float64 number would widen it
        return spectrum.back[:, None] * (spectrum.V @ (inner[:, None] * (ty - self.tq[:, None] * b)))

    def leave_one_out(self, s: float) -> np.ndarray:
        """Scores ``(n, m)`` of every row by the machine fitted without it."""
        part = self._part_of_each_row()
        out = np.empty_like(self.Y)
        for value in np.unique(part):  # equal weights: one group
            self._leave_one_out(s * (1 - value), value, np.flatnonzero(part == value), out)
        return out

    def _leave_one_out(self, s: float, part: float, rows: np.ndarray, out: np.ndarray) -> None:
        e, b, den, residual = self._shrunk(s)
        everything = len(rows) == len(out)
        U = self.spectrum.U if everything else self.spectrum.U[rows]
        u = U @ (e[:, None] * (self.ty - self.tq[:, None] * b)) + self.y_rest[rows] - self.q_rest[rows, None] * b
        v = U @ (e * self.tq) + self.q_rest[rows]
        G = -v * v / den
        for block in row_blocks(*U.shape):
            G[block] += np.square(U[block]) @ e
        if not self.spectrum.complete:
            G += np.maximum(1 - np.einsum("ij,ij->i", U, U), 0)
        self._write(out, rows, u, u / G[:, None], residual - u * u / G[:, None], part)

    def leave_folds_out(self, s: float, folds: list[np.ndarray]) -> tuple[np.ndarray, list[RidgeSolution]]:
        """Scores of the rows of each fold by the machine fitted without them, and these machines (scaled).

        A fold may have none of the rows, or all of them: a machine fitted to nothing is zero.
        """
        parts = self._part_of_each_row()
        out, machines = np.zeros_like(self.Y), []
        for rows in folds:
            if len(rows) == len(out):
                none = np.zeros_like(self.ty)
                b = np.zeros(none.shape[1], none.dtype)
                machines.append(RidgeSolution(self._coefficients(none, b, s), b, b))
                continue
            part = float(parts[rows].sum())
            s_fold = self.ty.dtype.type(s * (1 - part))
            e, b, den, residual = self._shrunk(s_fold)
            U = self.spectrum.U[rows]
            u = U @ (e[:, None] * (self.ty - self.tq[:, None] * b)) + self.y_rest[rows] - self.q_rest[rows, None] * b
            v = U @ (e * self.tq) + self.q_rest[rows]
            t = u
            if len(rows):
                G = _held_out_block(U, e, self.spectrum.complete)
                G -= np.outer(v, v / den)
                cholesky(G)
                t = cholesky_solve(G, u)
            residual = residual - np.einsum("ij,ij->j", u, t)
            factor = self._write(out, rows, u, t, residual, part)
            # the machine without the fold: the same system with y~ - t on the fold
            ty = self.ty - U.T @ t
            if self.spec.bias == "none":
                b = np.zeros_like(b)
            else:
                rest = self.q_rest @ self.y_rest - self.q_rest[rows] @ t
                b = ((e * self.tq) @ ty + rest) / den
            machines.append(RidgeSolution(self._coefficients(ty, b, s_fold) * factor, b * factor, residual))
        return out, machines

    def _part_of_each_row(self) -> np.ndarray:
        if not self.spec.normalised:
            return np.zeros(len(self.Y))
        weight = np.square(self.spectrum.root, dtype=np.float64)
        if np.ptp(weight) <= 1e-6 * weight[0]:
            return np.full(len(weight), 1 / len(weight))
        return weight / weight.sum()

    def _write(
        self, out: np.ndarray, rows: np.ndarray, u: np.ndarray, t: np.ndarray, residual: np.ndarray, part: float
    ) -> Any:
        """Write the held-out scores and return the factor that scales the machines."""
        out[rows] = self.Y[rows] - t / self.spectrum.root[rows, None].astype(u.dtype)
        if not self.spec.normalised:
            return u.dtype.type(1)
        factor = (1 - u.dtype.type(part)) / np.maximum(residual, np.finfo(u.dtype).tiny)
        out[rows] *= factor
        return factor


def _held_out_block(U: np.ndarray, e: np.ndarray, complete: bool) -> np.ndarray:
    """``(s G)_BB`` without the intercept."""
    if complete:
        half = U * np.sqrt(e)
        return half @ half.T
    half = U * np.sqrt(1 - e)
    G = half @ half.T
    np.negative(G, out=G)
    G[np.diag_indices_from(G)] += 1
    return G


def score_rounding(coef: np.ndarray, square: float) -> np.ndarray:
    """Rounding of scores with these coefficients ``(..., n)``, where ``square`` is the largest K(x, x)."""
    return np.finfo(np.float64).eps * square * np.linalg.norm(coef, axis=-1)


def scale(solution: RidgeSolution) -> RidgeSolution:
    """The unconstrained LDM from its ridge solution: divided by ``1 - h'r``, which is alpha y'u > 0."""
    if not (solution.residual > 0).all():
        raise ValueError(
            "The system is singular: the margins can be made equal (variance 0), so that the margin mean has no bound. "
            "alpha must be larger."
        )
    return RidgeSolution(solution.coef / solution.residual, solution.intercept / solution.residual, solution.residual)


def scale_rows(A: Any, factor: np.ndarray) -> Any:
    """``diag(factor) A`` for a dense or sparse matrix, in double precision."""
    if sparse.issparse(A):
        return sparse.diags_array(factor).tocsr() @ A.astype(np.float64)
    return factor[:, None] * A


def dense(A: Any) -> np.ndarray:
    """A as an ndarray."""
    return A.toarray() if sparse.issparse(A) else np.asarray(A)
