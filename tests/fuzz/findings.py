"""Cases that once broke a promise, kept for ever: each is judged as a random case is."""

import numpy as np
from scipy import sparse

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    LDMClassifier,
    LpNormSVC,
    MultiMarginSVC,
    ODMClassifier,
    TopKSVC,
    ULDMClassifier,
    WestonWatkinsSVC,
)
from skmargin.datasets import open_rows

from .cases import MANY_PARAMETERS, UNREAD, Case, unaligned


def _case(model, X, y, weight=None):
    plain = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return Case(model, (X, y) if weight is None else (X, y, weight), plain, np.asarray(y), weight)


def _in_blocks(model, X, y, gear):
    return Case(model, (open_rows((X, y)),), X, y, gear=gear)


def _one_column_a_class(size):
    return np.tile(size * np.eye(3), (10, 1)), np.arange(30) % 3


def _far_constant():
    rng = np.random.default_rng(20)
    X = np.c_[rng.standard_normal(600), np.full(600, 1.7e12)]
    return X, np.r_[[0, 1], rng.integers(0, 2, 598)]


def _normal(n=30, d=3, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), np.arange(n) % k


def _rank_one(n=17):
    """A kernel matrix whose smaller eigenvalues are rounding, and two classes."""
    rng = np.random.default_rng(5)
    v = np.r_[1.0, rng.uniform(-1, 1, n - 1)]
    return np.outer(v, v), np.arange(n) % 2


def _offset(by, dtype=np.float64):
    X, y = _normal(60)
    return (X + by).astype(dtype), y


FINDINGS = {
    "constant column of 1.7e12": lambda: _case(WestonWatkinsSVC(random_state=0), *_far_constant()),
    "constant rows of 1e8": lambda: _case(CrammerSingerSVC(), np.full((4, 10), 1e8), [3, 0, 2, 1]),
    "sparse constant column": lambda: _case(
        TopKSVC(k=2), sparse.csr_array(np.c_[_normal()[0], np.full(30, 1e10)]), _normal()[1]
    ),
    "timestamps": lambda: _case(CrammerSingerSVC(tol=1e-5), *_offset(1.7e9)),
    "beyond double precision": lambda: _case(WestonWatkinsSVC(tol=1e-5), *_offset(1.7e15)),
    "C=1e300": lambda: _case(CrammerSingerSVC(C=1e300), np.float32([[1], [2], [3]]) + np.float32(1e8), [0, 1, 1]),
    "float32 far from zero": lambda: _case(LpNormSVC(p=1.5), *_offset(1e6, np.float32)),
    "block norm, C=1e200": lambda: _case(LpNormSVC(C=1e200, p=1.1, tol=10.0), *_normal()),
    "Adam, alpha=1e300": lambda: _case(M3SVC(alpha=1e300, solver="adam", max_iter=5), *_normal()),
    "Adam, alpha=1e90": lambda: _case(M3SVC(alpha=1e90, solver="adam", max_iter=5), *_normal()),
    "narrow kernel in float32": lambda: _case(
        CrammerSingerSVC(kernel="rbf", gamma=1e39), _normal()[0].astype(np.float32), _normal()[1]
    ),
    "kernel of timestamps": lambda: _case(CrammerSingerSVC(kernel="rbf", gamma=10.0), *_offset(1e9)),
    "indefinite kernel": lambda: _case(WestonWatkinsSVC(C=100.0, kernel="sigmoid", gamma=1.0, coef0=1.0), *_normal()),
    "weights of 1e-90": lambda: _case(MultiMarginSVC(), *_normal(), np.full(30, 1e-90)),
    "weights of 1e90": lambda: _case(ODMClassifier(), *_normal(), np.full(30, 1e90)),
    "X that is not aligned": lambda: _case(CrammerSingerSVC(), unaligned(_normal()[0]), _normal()[1]),
    "zero kernel, no basis": lambda: _case(LSSVC(basis="cholesky", kernel="poly"), np.zeros((4, 2)), [0, 1, 0, 1]),
    "zero kernel, no intercept": lambda: _case(
        LSSVC(basis="random", kernel="poly", fit_intercept=False), np.zeros((4, 2)), [0, 1, 0, 1]
    ),
    "Newton on constant rows": lambda: _case(
        M3SVC(solver="newton-cg", loss="log_loss", alpha=1e3), np.full((30, 5), 1e8), np.arange(30) % 3,
        np.linspace(0.5, 2.0, 30),
    ),
    "rows without numbers in a box": lambda: _case(LDMClassifier(gamma=1e300, C=1e-150), *_normal(k=2)),
    "linear box of far rows": lambda: _case(LDMClassifier(kernel="linear"), *_offset(1e9)),
    "ridge of far rows": lambda: _case(ULDMClassifier(kernel="linear"), *_offset(1e9)),
    "least squares of far rows": lambda: _case(LSSVC(kernel="linear"), *_offset(1e12)),
    "kernel of rank one, weights of 1e43": lambda: _case(
        LDMClassifier(C=0.1, kernel="precomputed", tol=1e-5, random_state=0), *_rank_one(), np.full(17, 1e42)
    ),
    "C=1e-167 shared by weights of 1e104": lambda: _case(
        ODMClassifier(C=1e-167, mu=1.0, theta=0.9, tol=0.01), *_offset(1e8), np.full(60, 1e104)
    ),
    "loads without a finite objective": lambda: _in_blocks(
        CrammerSingerSVC(C=1e66, max_iter=3), *_offset(1e6, np.float32), MANY_PARAMETERS
    ),
    "loads with an objective of zero": lambda: _in_blocks(
        TopKSVC(C=1e33, k=1, max_iter=30), *_offset(1e6, np.float32), MANY_PARAMETERS
    ),
    "fresh rows without any loss": lambda: _in_blocks(
        CrammerSingerSVC(max_iter=9), *_one_column_a_class(1e100), UNREAD
    ),
}  # fmt: skip
