"""Machines of `ridge_spectrum` for several strengths, from one condensed form of their matrix.

On a kernel matrix, with M = sqrt(p) K sqrt(p) = H T H' and T a band matrix (a quarter of the time of the eigenvectors,
all of it in products of matrices), every strength s is a system with T:

``kernel``        ``(M + s I)^{-1} x = H (T + s I)^{-1} H'x``
``coefficients``  the matrix is M^2 + s I (M divided by the sum of the weights' root).  It is not formed: with the
                  complex shift ``z = (T - i sqrt(s) I)^{-1} H'x``, the real part of z is ``M (M^2 + s I)^{-1} x`` and
                  the imaginary part is ``sqrt(s) (M^2 + s I)^{-1} x``.  The condition number is that of M, not its
                  square, so alpha = 1e-12 keeps its digits.

On features, with A = sqrt(p) Phi, M is the smaller of A'A and A A' where it has the digits; otherwise A itself (with
many rows the triangle of its QR factors) is made bidiagonal.  The loops are in ``_core/two_class/ridge_path.hpp``.
Held-out scores need the eigenvectors (`ridge_spectrum`); fits do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._core import _ext
from .ridge_spectrum import EIGENVALUE_DIGITS, SCORE_DIGITS, RidgeSolution, RidgeSpec, score_rounding
from .row_sources import Features
from .weighted_rows import WeightedRows


class RidgeSolutions(NamedTuple):
    """Solutions for several strengths: coefficients ``(strengths, m, N)`` and the other arrays of `RidgeSolution`.

    ``solved`` is False where a strength is too small for the matrix or coefficients cancel: eigenvalues are for that.
    """

    coef: np.ndarray
    intercept: np.ndarray
    residual: np.ndarray
    solved: np.ndarray

    def at(self, number: int) -> RidgeSolution:
        """The solution for one of the strengths, which was solved."""
        return RidgeSolution(self.coef[number].T, self.intercept[number], self.residual[number])


def solutions_kernel(
    K: np.ndarray, weight: np.ndarray, Y: np.ndarray, spec: RidgeSpec, strengths: np.ndarray
) -> RidgeSolutions:
    """Solutions for several positive strengths on a symmetric kernel matrix, which is overwritten.

    Only its diagonal and what is right of it are read and lost; the rest is multiplied by the roots of the weights.
    """
    raw, root = np.sqrt(weight), np.sqrt(spec.weights(weight))
    if (weight != 1).any():
        K *= raw
        K *= raw[:, None]
    squared = spec.penalty == "coefficients"
    x, rest = _vectors(root, Y, spec)
    form, shrink = ("squared", root[0] / raw[0]) if squared else ("shifted", 1.0)
    square = float((K.diagonal() / weight).max())
    found = RidgeSolutions(*_ext.ridge_symmetric(K, x, rest, strengths, form, shrink, *_bias(spec)))
    coef, solved = found.coef * raw, found.solved.astype(bool)
    exact = (score_rounding(coef, square) <= SCORE_DIGITS).all(axis=1)
    return found._replace(coef=coef, solved=solved if squared else solved & exact)


def solutions_features(
    source: Features, rows: np.ndarray, weight: np.ndarray, Y: np.ndarray, spec: RidgeSpec, strengths: np.ndarray
) -> RidgeSolutions:
    """Solutions for several positive strengths on some rows of explicit features, dense or sparse.

    The other arguments are of these rows.  They are copied where there are fewer of them than features and strengths
    for which A itself is made bidiagonal, otherwise read piece by piece.
    """
    p = spec.weights(weight)
    root = np.sqrt(p)
    A = WeightedRows(source.Phi, rows, root, source.tuning)
    n, N = A.shape
    x, rest = _vectors(root, Y, spec)
    if strengths.min() < EIGENVALUE_DIGITS * float(p @ source.squared_norms[rows]):  # the sum of all eigenvalues
        square = A.triangle(x) if n > N else (A.dense(), x, rest)
        found = _ext.ridge_bidiagonal(*square, strengths, *_bias(spec))
    elif n >= N:
        M, right = A.inner(x)
        found = _ext.ridge_symmetric(M, right, x @ x.T, strengths, "normal", 1.0, *_bias(spec))
    else:
        u, b, residual, solved = _ext.ridge_symmetric(A.outer(), x, rest, strengths, "shifted", 1.0, *_bias(spec))
        found = A.gathered(u.reshape(-1, n)).reshape(*u.shape[:2], N), b, residual, solved
    solutions = RidgeSolutions(*found)
    return solutions._replace(solved=solutions.solved.astype(bool))


def _vectors(root: np.ndarray, Y: np.ndarray, spec: RidgeSpec) -> tuple[np.ndarray, np.ndarray]:
    """The labels and behind them the column of the intercept, one row each, times sqrt(p); and zeros for ``rest``."""
    Y = Y.reshape(len(root), -1)
    x = np.zeros((Y.shape[1] + 1, len(root)))
    np.multiply(root, Y.T, out=x[:-1])
    if spec.bias != "none":
        x[-1] = root
    return x, np.zeros((len(x), len(x)))


def _bias(spec: RidgeSpec) -> tuple[bool, float]:
    return spec.bias != "none", float(spec.bias == "penalised")
