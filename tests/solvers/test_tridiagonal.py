"""All strengths from one tridiagonal form, against the normal equations in many digits of their own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from sklearn.metrics.pairwise import rbf_kernel

from skmargin.solvers.linear_system import Machine, RidgePath, spectrum_of_kernel
from skmargin.solvers.tridiagonal import solutions_kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sign(RNG.normal(size=(60, 2)))
WEIGHT = RNG.integers(1, 4, 60).astype(float)
STRENGTHS = np.array([1e-6, 1e-2, 1.0])


def direct(K, weight, y, machine, s):
    """Minimise sum p (y - Ka - b)^2 + s (a'R a + beta b^2) by the stationarity equations."""
    n = len(y)
    p = weight / weight.sum() if machine.normalised else weight
    Z = np.column_stack([K, np.ones(n)]) if machine.bias != "none" else K
    R = np.zeros((Z.shape[1], Z.shape[1]))
    R[:n, :n] = np.diag(1 / weight) if machine.penalty == "coefficients" else K
    if machine.bias == "penalised":
        R[n, n] = 1
    r = linalg.lstsq(Z.T @ (p[:, None] * Z) + s * R, Z.T @ (p * y), cond=1e-15)[0]
    rest = y - Z @ r
    return Z @ r, float(p @ rest**2 + s * r @ R @ r)


@pytest.mark.parametrize("weight", [np.ones(60), WEIGHT])
@pytest.mark.parametrize(
    "machine",
    [
        Machine("coefficients", "penalised", True),
        Machine("coefficients", "none", True),
        Machine("kernel", "free", False),
        Machine("kernel", "penalised", False),
        Machine("kernel", "none", False),
    ],
)
def test_equals_the_stationarity_equations(machine, weight):
    K = rbf_kernel(X, gamma=1.0)
    for s, solution in zip(STRENGTHS, solutions_kernel(K.copy(), weight, Y, machine, STRENGTHS), strict=True):
        for column in range(2):
            scores, residual = direct(K, weight, Y[:, column], machine, s)
            assert_allclose(K @ solution.coef[:, column] + solution.intercept[column], scores, atol=1e-7)
            assert_allclose(solution.residual[column], residual, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 100.0])
def test_smallest_strengths_keep_the_digits_of_the_eigenvalues(gamma):
    machine, K = Machine("coefficients", "penalised", True), rbf_kernel(X, gamma=gamma)
    path = RidgePath(spectrum_of_kernel(K.copy(), WEIGHT, machine), Y, machine)
    strengths = np.array([1e-12, 1e-10])
    for s, solution in zip(strengths, solutions_kernel(K.copy(), WEIGHT, Y, machine, strengths), strict=True):
        scores = K @ solution.coef + solution.intercept
        other = path.solution(s)
        assert_allclose(scores, K @ other.coef + other.intercept, atol=1e-7)


def test_strengths_that_are_too_small_are_left_to_others():
    machine, K = Machine("kernel", "free", False), rbf_kernel(X, gamma=1.0)
    first, second = solutions_kernel(K.copy(), np.ones(60), Y, machine, np.array([1e-16, 1.0]))
    assert first is None and second is not None
    assert solutions_kernel(K.copy(), np.ones(60), Y, machine, np.array([1e-16])) == [None]
    indefinite = K - 0.5 * np.eye(60)
    assert solutions_kernel(indefinite, np.ones(60), Y, machine, np.array([0.1])) == [None]
