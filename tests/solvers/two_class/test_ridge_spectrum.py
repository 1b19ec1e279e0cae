"""Solutions, leave-one-out and folds against least squares written out and solved again for every left-out set."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skmargin.solvers.two_class.ridge_spectrum import (
    RidgePath,
    RidgeSpec,
    scale,
    spectrum_of_features,
    spectrum_of_kernel,
)

rng = np.random.default_rng(0)
N = 40
X = rng.standard_normal((N, 4))
Y = np.where(X[:, :2] + 0.7 * rng.standard_normal((N, 2)) > 0, 1.0, -1.0)
K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
EQUAL, UNEQUAL = np.ones(N), rng.integers(1, 4, N).astype(float)
ULDM, LSSVM = RidgeSpec("coefficients", "penalised", True), RidgeSpec("kernel", "free", False)
FOLDS = [np.arange(i, N, 4) for i in range(4)]


def uldm(Phi, y, alpha, s):
    """Minimise alpha/2 |beta|^2 - mean + var/2: the ridge solution by stacked least squares, then the scale."""
    p = s / s.sum()
    Z = np.c_[Phi, np.ones(len(y))]
    stacked = np.vstack([np.sqrt(p)[:, None] * Z, np.sqrt(alpha) * np.eye(Z.shape[1])])
    target = np.append(np.sqrt(p) * y, np.zeros(Z.shape[1]))
    r = np.linalg.lstsq(stacked, target, rcond=None)[0]
    residual = p @ (y - Z @ r) ** 2 + alpha * r @ r
    return r / residual


def uldm_gradient(beta, Phi, y, alpha, s):
    p = s / s.sum()
    Z = np.c_[Phi, np.ones(len(y))]
    d = y * (Z @ beta)
    return alpha * beta - Z.T @ (p * y) + Z.T @ (p * y * d) - (p @ d) * (Z.T @ (p * y))


def lssvm(K, y, C, s):
    n = len(y)
    A = np.block([[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), K + np.diag(1 / (C * s))]])
    u = np.linalg.solve(A, np.append(0, y))
    return u[1:], u[0]


@pytest.mark.parametrize("s", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("alpha", [1e-12, 1e-8, 1e-4, 0.1])
def test_kernel_machine_and_what_it_leaves_out(s, alpha):
    path = RidgePath(spectrum_of_kernel(K.copy(), s, ULDM), Y, ULDM)
    solution = scale(path.solution(alpha))
    one, (many, machines) = path.leave_one_out(alpha), path.leave_folds_out(alpha, FOLDS)
    Phi, root = K * np.sqrt(s), np.sqrt(s)  # a row of weight 2 is two basis points
    rtol = 2e-5 if alpha < 1e-10 else 1e-8  # the reference itself loses digits there
    for j in range(2):
        beta = uldm(Phi, Y[:, j], alpha, s)
        assert_allclose(solution.coef[:, j], root * beta[:-1], rtol=0, atol=rtol * np.abs(beta).max())
        assert_allclose(solution.intercept[j], beta[-1], rtol=0, atol=rtol * np.abs(beta).max())
        for rows, scores in [*(([i], one) for i in (0, 7, 20)), *((fold, many) for fold in FOLDS)]:
            rest = np.setdiff1d(np.arange(N), rows)
            beta = uldm(Phi[rest], Y[rest, j], alpha, s[rest])
            f = np.c_[Phi, np.ones(N)] @ beta
            assert_allclose(scores[rows, j], f[rows], rtol=0, atol=10 * rtol * np.abs(f).max())
            if scores is many:
                fold = machines[[len(rows) == len(f) and (rows == f).all() for f in FOLDS].index(True)]
                assert_allclose(K @ fold.coef[:, j] + fold.intercept[j], f, rtol=0, atol=10 * rtol * np.abs(f).max())


def test_smallest_alpha_is_stationary():
    solution = scale(RidgePath(spectrum_of_kernel(K.copy(), EQUAL, ULDM), Y[:, :1], ULDM).solution(1e-12))
    beta = np.append(solution.coef[:, 0], solution.intercept)
    gradient = uldm_gradient(beta, K, Y[:, 0], 1e-12, EQUAL)
    largest_margin = np.abs(np.c_[K, np.ones(N)] @ beta).max()
    assert largest_margin > 1e6  # what the terms of the gradient cancel from
    assert np.abs(gradient).max() < 1e-13 * largest_margin


@pytest.mark.parametrize("s", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("alpha", [1e-11, 1e-3])
def test_features(s, container, alpha):
    for features in (X, rng.standard_normal((N, 70))):
        path = RidgePath(spectrum_of_features(container(features), s, ULDM, alpha), Y, ULDM)
        solution = scale(path.solution(alpha))
        one, (many, machines) = path.leave_one_out(alpha), path.leave_folds_out(alpha, FOLDS)
        for j in range(2):
            beta = uldm(features, Y[:, j], alpha, s)
            assert_allclose(np.append(solution.coef[:, j], solution.intercept[j]), beta, rtol=1e-6)
            for number, rows in enumerate(FOLDS):
                rest = np.setdiff1d(np.arange(N), rows)
                f = np.c_[features, np.ones(N)] @ uldm(features[rest], Y[rest, j], alpha, s[rest])
                assert_allclose(many[rows, j], f[rows], rtol=0, atol=1e-6 * np.abs(f).max())
                fold = machines[number]
                scores = features @ fold.coef[:, j] + fold.intercept[j]
                assert_allclose(scores, f, rtol=0, atol=1e-6 * np.abs(f).max())
            for i in (3, 11):
                rest = np.setdiff1d(np.arange(N), [i])
                f = np.append(features[i], 1) @ uldm(features[rest], Y[rest, j], alpha, s[rest])
                assert_allclose(one[i, j], f, rtol=1e-6)


@pytest.mark.parametrize("s", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_least_squares_machine(s, C):
    path = RidgePath(spectrum_of_kernel(K.copy(), s, LSSVM), Y, LSSVM)
    solution = path.solution(1 / C)
    one, (many, _) = path.leave_one_out(1 / C), path.leave_folds_out(1 / C, FOLDS)
    for j in range(2):
        a, b = lssvm(K, Y[:, j], C, s)
        assert_allclose(solution.coef[:, j], a, atol=1e-8 * np.abs(a).max())
        assert_allclose(solution.intercept[j], b, atol=1e-9)
        for rows, scores in [*(([i], one) for i in range(N)), *((fold, many) for fold in FOLDS)]:
            rest = np.setdiff1d(np.arange(N), rows)
            a, b = lssvm(K[np.ix_(rest, rest)], Y[rest, j], C, s[rest])
            assert_allclose(scores[rows, j], K[np.ix_(rows, rest)] @ a + b, atol=1e-8)


def test_without_intercept():
    machine = RidgeSpec("kernel", "none", False)
    path = RidgePath(spectrum_of_kernel(K.copy(), UNEQUAL, machine), Y, machine)
    a = np.linalg.solve(K + np.diag(1 / (5 * UNEQUAL)), Y)
    assert_allclose(path.solution(1 / 5).coef, a, atol=1e-10)
    rest = np.arange(N) % 4 != 0
    a = np.linalg.solve(K[np.ix_(rest, rest)] + np.diag(1 / (5 * UNEQUAL[rest])), Y[rest])
    assert_allclose(path.leave_folds_out(1 / 5, FOLDS)[0][~rest], K[np.ix_(~rest, rest)] @ a, atol=1e-10)


def test_single_precision_stays_single_and_agrees():
    path64 = RidgePath(spectrum_of_kernel(K.copy(), EQUAL, ULDM), Y, ULDM)
    path32 = RidgePath(spectrum_of_kernel(K.astype(np.float32), EQUAL, ULDM), Y, ULDM)
    for alpha in (np.float64(1e-4), 1e-2):
        a, b = path64.leave_one_out(alpha), path32.leave_one_out(alpha)
        assert b.dtype == np.float32
        assert_allclose(a, b, rtol=0, atol=2e-2 * np.abs(a).max())
        scores, machines = path32.leave_folds_out(alpha, FOLDS)
        assert scores.dtype == machines[0].coef.dtype == machines[0].intercept.dtype == np.float32
        assert path32.solution(alpha).coef.dtype == np.float32


def test_indefinite_kernel_is_refused_by_the_kernel_norm():
    with pytest.raises(ValueError, match="positive semi-definite"):
        spectrum_of_kernel(-K, EQUAL, LSSVM)
