"""LAPACK on matrices that are overwritten, with the interpreter lock released: threads really run side by side.

SciPy's own wrappers hold the lock during the call.  Here its routines are called through the addresses that it
publishes (``scipy.linalg.cython_lapack``); ctypes releases the lock.  Matrices are symmetric and C contiguous: LAPACK
sees the transposed one, which is the same, so that nothing is copied.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cython_lapack

POWER_STEPS = 10  # towards the largest eigenvalue, of which the first digit is enough

_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_capsule.restype, _capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]


@cache
def _routine(name: str, n_arguments: int) -> Any:
    capsule = cython_lapack.__pyx_capi__[name]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(_capsule(capsule, _name_of(capsule)))


def _call(name: str, *arguments: Any) -> int:
    """Call a routine; letters, numbers and arrays become pointers, and ``info`` is added and returned."""
    info = ctypes.c_int(0)
    held: list[Any] = []  # what the pointers point to
    for value in arguments:
        if isinstance(value, np.ndarray):
            held.append(value)
        elif isinstance(value, str):
            held.append(ctypes.c_char(value.encode()))
        else:
            held.append(ctypes.c_int(value))
    pointers = [value.ctypes.data if isinstance(value, np.ndarray) else ctypes.addressof(value) for value in held]
    _routine(name, len(pointers) + 1)(*pointers, ctypes.addressof(info))
    return info.value


def _letter(A: np.ndarray) -> str:
    """The letter of the number type; anything but a C contiguous matrix of floats has no business here."""
    if not (A.flags.c_contiguous and A.flags.writeable):
        raise ValueError("The matrix must be C contiguous and writeable.")
    return {"f": "s", "d": "d"}[A.dtype.char]


def eigen(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (rising) and eigenvectors (columns) of a symmetric matrix; the vectors take its place.

    Divide and conquer, whose work is two matrices; ``syevr`` needs one, but its single precision vectors are far from
    orthogonal.
    """
    letter, n = _letter(A), len(A)
    w = np.empty(n, A.dtype)
    work, iwork = np.empty(1, A.dtype), np.empty(1, np.intc)
    _call(f"{letter}syevd", "V", "L", n, A, n, w, work, -1, iwork, -1)  # asks for the sizes
    work, iwork = np.empty(int(work[0]), A.dtype), np.empty(iwork[0], np.intc)
    info = _call(f"{letter}syevd", "V", "L", n, A, n, w, work, len(work), iwork, len(iwork))
    if info:
        raise LinAlgError(f"syevd ended with info={info}")
    return w, A.T


def cholesky(A: np.ndarray) -> None:
    """Replace one triangle of a symmetric matrix by its Cholesky factor."""
    if len(A) == 0:  # LAPACK would print a complaint
        return
    info = _call(f"{_letter(A)}potrf", "L", len(A), A, len(A))
    if info:
        raise LinAlgError(f"the leading minor of order {info} is not positive")


def cholesky_solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve ``A X = B`` with A from `cholesky`; B has one or two dimensions."""
    X = np.array(B.T, A.dtype, order="C", ndmin=2)
    cholesky_solve_rows(A, X)
    return X[0] if B.ndim == 1 else X.T


def cholesky_solve_rows(A: np.ndarray, X: np.ndarray) -> None:
    """Replace each row x of X by the solution of ``A z = x``, with A from `cholesky`."""
    if X.size == 0:
        return
    _call(f"{_letter(X)}potrs", "L", len(A), len(X), A, len(A), X, len(A))


def triangular_rows(A: np.ndarray, n_columns: int) -> None:
    """Replace the first columns of A by their product with an orthogonal matrix that is zero right of the diagonal."""
    rows, stride = A.shape
    tau, work = np.empty(rows, A.dtype), np.empty(64 * rows, A.dtype)
    _call(f"{_letter(A)}geqrf", n_columns, rows, A, stride, tau, work, len(work))
    for row in range(min(rows, n_columns)):
        A[row, row + 1 : n_columns] = 0


def is_indefinite(K: np.ndarray, rounding: float) -> bool:
    """Whether a symmetric matrix, which is overwritten, has an eigenvalue below ``-rounding`` times its largest.

    ``K + shift I`` has a Cholesky factor exactly where no eigenvalue of K is below -shift, but for the rounding of the
    factor; that is n^3 / 3 flops, a small part of what the eigenvalues take.  The largest of these is bounded from
    below, by the diagonal and by a Rayleigh quotient, so that at most too much is found indefinite, by a hair.
    """
    size = max(float(K.max(initial=0.0)), -float(K.min(initial=0.0)))
    if size == 0:
        return False
    K /= size
    diagonal = K.diagonal()
    v = K[diagonal.argmax()]
    for _ in range(POWER_STEPS):
        v = K @ v
        v /= np.linalg.norm(v) or 1.0
    K[np.diag_indices_from(K)] += rounding * max(0.0, float(diagonal.max()), float(v @ (K @ v)))
    try:
        cholesky(K)
    except LinAlgError:
        return True
    return False
