"""Kernel machines of `linear_system` for several strengths, from one tridiagonal form of the kernel matrix.

With M = sqrt(p) K sqrt(p) = H T H' (a third of the time of the eigenvectors) every strength s is a system with T:

``kernel``        ``(M + s I)^{-1} x = H (T + s I)^{-1} H'x``
``coefficients``  the matrix is M^2 + s I (M divided by the sum of the weights' root).  It is not formed: with the
                  complex shift ``z = (T - i sqrt(s) I)^{-1} H'x``, the real part of z is ``M (M^2 + s I)^{-1} x`` and
                  the imaginary part is ``sqrt(s) (M^2 + s I)^{-1} x``.  The condition number is that of M, not its
                  square, so alpha = 1e-12 keeps its digits.

Held-out scores need the eigenvectors (`linear_system`); fits do not.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from .lapack import Tridiagonal
from .linear_system import Machine, Solution

SMALLEST = 1e-12  # strength / largest eigenvalue from which K + s I keeps its digits


def solutions_kernel(
    K: np.ndarray, weight: np.ndarray, Y: np.ndarray, machine: Machine, strengths: np.ndarray
) -> list[Solution | None]:
    """Solutions for several positive strengths on a full symmetric kernel matrix, which is overwritten.

    None where a strength of the kernel norm is too small for the matrix: that is for the eigenvalues.
    """
    raw, root = np.sqrt(weight), np.sqrt(machine.weights(weight))
    K *= raw
    K *= raw[:, None]
    form = Tridiagonal(K)
    Y = Y.reshape(len(raw), -1)
    m, with_bias = Y.shape[1], machine.bias != "none"
    x = form.to(np.column_stack([root[:, None] * Y, root if with_bias else np.zeros_like(root)]))
    solved = _shifted(form.diagonal, form.beside, root[0] / raw[0], machine.penalty, strengths, x)
    kept = [number for number, z in enumerate(solved) if z is not None]
    if not kept:
        return [None] * len(strengths)
    s, z = strengths[kept, None], np.array([solved[number] for number in kept])  # (strengths, rows, labels and q)
    if machine.penalty == "coefficients":
        shrunk, gained = np.sqrt(s)[:, None] * z.imag, z.real
    else:
        shrunk, gained = s[:, None] * z, z
    b = np.zeros((len(kept), m))
    qy = x[:, m] @ shrunk
    if with_bias:
        b = qy[:, :m] / (s * (machine.bias == "penalised") + qy[:, m:])
    residual = np.einsum("ij,sij->sj", x[:, :m], shrunk[:, :, :m]) - qy[:, :m] * b
    inner = gained[:, :, :m] - gained[:, :, m:] * b[:, None]
    coef = raw[:, None] * form.back(inner.transpose(1, 0, 2).reshape(len(raw), -1))
    out: list[Solution | None] = [None] * len(strengths)
    for place, number in enumerate(kept):
        out[number] = Solution(coef[:, place * m : (place + 1) * m], b[place], residual[place])
    return out


def _shifted(
    d: np.ndarray, e: np.ndarray, shrink: float, penalty: str, strengths: np.ndarray, x: np.ndarray
) -> list[np.ndarray | None]:
    """Solutions of the systems with the shifted tridiagonal matrix, for every strength."""
    if penalty == "coefficients":
        d, e = shrink * d, shrink * e
        return [lapack.zgtsv(e, d - 1j * np.sqrt(s), e, x)[3] for s in strengths]
    largest = np.abs(d).max() + 2 * np.abs(e).max(initial=0)
    out: list[np.ndarray | None] = []
    for s in strengths:
        *_, z, info = lapack.dptsv(d + s, e, x)
        out.append(None if info or s < SMALLEST * largest else z)
    return out
