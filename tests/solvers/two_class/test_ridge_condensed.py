"""All strengths from one condensed form, against the normal equations in many digits of their own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse
from sklearn.metrics.pairwise import rbf_kernel

from skmargin.solvers.tuning import DEFAULT
from skmargin.solvers.two_class.ridge_condensed import solutions_features, solutions_kernel
from skmargin.solvers.two_class.ridge_spectrum import RidgePath, RidgeSpec, spectrum_of_kernel
from skmargin.solvers.two_class.row_sources import Features

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
        RidgeSpec("coefficients", "penalised", True),
        RidgeSpec("coefficients", "none", True),
        RidgeSpec("kernel", "free", False),
        RidgeSpec("kernel", "penalised", False),
        RidgeSpec("kernel", "none", False),
    ],
)
def test_equals_the_stationarity_equations(machine, weight):
    K = rbf_kernel(X, gamma=1.0)
    found = solutions_kernel(K.copy(), weight, Y, machine, STRENGTHS)
    assert found.solved.all()
    for number, s in enumerate(STRENGTHS):
        solution = found.at(number)
        for column in range(2):
            scores, residual = direct(K, weight, Y[:, column], machine, s)
            assert_allclose(K @ solution.coef[:, column] + solution.intercept[column], scores, atol=1e-7)
            assert_allclose(solution.residual[column], residual, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 100.0])
def test_smallest_strengths_keep_the_digits_of_the_eigenvalues(gamma):
    machine, K = RidgeSpec("coefficients", "penalised", True), rbf_kernel(X, gamma=gamma)
    path = RidgePath(spectrum_of_kernel(K.copy(), WEIGHT, machine), Y, machine)
    strengths = np.array([1e-12, 1e-10])
    K[np.tril_indices(60, -1)] = np.nan  # is not read
    found = solutions_kernel(K.copy(), WEIGHT, Y, machine, strengths)
    K = rbf_kernel(X, gamma=gamma)
    for number, s in enumerate(strengths):
        solution = found.at(number)
        scores = K @ solution.coef + solution.intercept
        other = path.solution(s)
        assert_allclose(scores, K @ other.coef + other.intercept, atol=1e-7)


@pytest.mark.parametrize(
    "n", [1, 2, 3, 16, 17, 18, 33, 100, 399, 400, 433, 465]
)  # one panel, several, narrow and wide bands
@pytest.mark.parametrize("machine", [RidgeSpec("coefficients", "penalised", True), RidgeSpec("kernel", "free", False)])
def test_every_size_and_number_of_strengths(machine, n):
    rng = np.random.default_rng(n)
    K = rbf_kernel(rng.normal(size=(n, 4)), gamma=0.5)
    y, weight = np.sign(rng.normal(size=(n, 1))), rng.uniform(0.5, 2, n)
    strengths = np.logspace(-4, 0, 9)  # more than one vector register
    found = solutions_kernel(K.copy(), weight, y, machine, strengths)
    assert found.solved.all()
    path = RidgePath(spectrum_of_kernel(K.copy(), weight, machine), y, machine)
    for number, s in enumerate(strengths):
        solution, other = found.at(number), path.solution(s)
        assert_allclose(
            K @ solution.coef + solution.intercept, K @ other.coef + other.intercept, atol=1e-9, err_msg=f"{s}"
        )
        assert_allclose(solution.residual, other.residual, rtol=1e-7, atol=1e-12)


def test_kernels_with_negative_eigenvalues():
    """What the systems without pivots do not solve is left to others; what they call solved is."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(80, 80))
    K = (A + A.T) / 8
    machine, strengths = RidgeSpec("coefficients", "penalised", True), np.array([1e-12, 1e-6, 1e-2])
    found = solutions_kernel(K.copy(), np.ones(80), np.sign(A[:, :1]), machine, strengths)
    assert found.solved[2]
    path = RidgePath(spectrum_of_kernel(K.copy(), np.ones(80), machine), np.sign(A[:, :1]), machine)
    for number in np.flatnonzero(found.solved):
        solution, other = found.at(number), path.solution(strengths[number])
        assert_allclose(solution.coef, other.coef, atol=1e-7 * np.abs(other.coef).max())


def test_strengths_that_are_too_small_are_left_to_others():
    machine, K = RidgeSpec("kernel", "free", False), rbf_kernel(X, gamma=1.0)
    found = solutions_kernel(K.copy(), np.ones(60), Y, machine, np.array([1e-16, 1.0]))
    assert found.solved.tolist() == [False, True]
    assert not solutions_kernel(K - 0.5 * np.eye(60), np.ones(60), Y, machine, np.array([0.1])).solved.any()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(60, 7), (60, 60), (20, 60), (8, 7), (5, 1), (1, 5)])
@pytest.mark.parametrize("smallest", [1e-12, 1e-3])  # A itself, and its smaller square
@pytest.mark.parametrize("bias", ["penalised", "free", "none"])
@pytest.mark.parametrize("thick", [3, 128])  # rows or columns of a piece
def test_features_equal_least_squares_on_stacked_rows(thick, bias, smallest, shape, container):
    pieces = DEFAULT.changed(common={"least_block": thick, "cache_numbers": thick})
    n, N = shape
    Phi = np.random.default_rng(n).normal(size=shape)
    weight, y = WEIGHT[:n], Y[:n]
    machine = RidgeSpec("coefficients", bias, normalised=True)
    strengths = np.array([1e-2, smallest])
    mixed = RNG.permutation(2 * n)
    twice = np.vstack([Phi, np.full_like(Phi, 7.0)])[mixed]  # among other rows
    rows = np.argsort(mixed)[:n]
    found = solutions_features(Features(container(twice), pieces), rows, weight, y, machine, strengths)
    assert found.solved.all()
    p = np.sqrt(weight / weight.sum())
    Z = np.column_stack([p[:, None] * Phi] + ([p] if bias != "none" else []))
    for number, s in enumerate(strengths):
        penalty = np.sqrt(s) * np.eye(Z.shape[1])
        if bias == "free":
            penalty[N, N] = 0
        stacked = np.vstack([Z, penalty])
        target = np.vstack([p[:, None] * y, np.zeros((Z.shape[1], 2))])
        r = linalg.lstsq(stacked, target)[0]
        solution = found.at(number)
        scale = 1e-6 * (1 + np.abs(r).max())
        assert_allclose(solution.coef, r[:N], atol=scale)
        assert_allclose(solution.intercept, r[N] if bias != "none" else 0, atol=scale)
        assert_allclose(solution.residual, ((target - stacked @ r) ** 2).sum(axis=0), rtol=1e-5, atol=1e-12)
