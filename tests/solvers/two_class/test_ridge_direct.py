"""Direct and iterative solutions against the spectrum, which has its own test against written-out least squares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skmargin.solvers.tuning import DEFAULT
from skmargin.solvers.two_class.ridge_direct import (
    iterate_features,
    iterate_kernel,
    solve_features_ridge,
    solve_kernel_ridge,
)
from skmargin.solvers.two_class.ridge_spectrum import RidgePath, RidgeSpec, spectrum_of_features, spectrum_of_kernel
from skmargin.solvers.two_class.row_sources import Features

rng = np.random.default_rng(1)
N = 50
X = rng.standard_normal((N, 5))
Y = np.where(X[:, :1] + rng.standard_normal((N, 1)) > 0, 1.0, -1.0)
K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
S = rng.integers(1, 4, N).astype(float)
MACHINES = [
    RidgeSpec(penalty, bias, penalty == "coefficients")
    for penalty in ("coefficients", "kernel")
    for bias in ("penalised", "free", "none")
]


def agree(a, b, atol):
    assert_allclose(a.coef, b.coef, rtol=0, atol=atol * np.abs(b.coef).max())
    assert_allclose(a.intercept, b.intercept, rtol=0, atol=atol * max(1, np.abs(b.coef).max()))
    assert_allclose(a.residual, b.residual, rtol=1e4 * atol)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("s", [1e-10, 1e-2])
def test_kernel(machine, s):
    wanted = RidgePath(spectrum_of_kernel(K.copy(), S, machine), Y, machine).solution(s)
    agree(solve_kernel_ridge(K.copy(), S, Y, machine, s), wanted, 1e-6 if s < 1e-5 else 1e-10)
    if s == 1e-2:
        cold, *warm = iterate_kernel(K.copy(), S, Y, machine, np.array([s, s, 1e-3, s]), 1e-13, 5000)
        for iterated in (cold, warm[0], warm[-1]):
            assert iterated.reached == 0
            agree(iterated.solution, wanted, 1e-8)
        assert cold.n_iter > 1 and warm[0].n_iter <= 5  # it starts from its own solution
        assert iterate_kernel(K.copy(), S, Y, machine, np.array([s]), 1e-13, 2)[0].reached > 1e-13


@pytest.mark.parametrize("bias", ["penalised", "free", "none"])
def test_kernel_with_negative_eigenvalues(bias):
    machine, indefinite = RidgeSpec("coefficients", bias, True), rng.integers(-1, 2, (N, N)).astype(float)
    indefinite += indefinite.T
    np.fill_diagonal(indefinite, 0)  # no pivot to begin with
    wanted = RidgePath(spectrum_of_kernel(indefinite.copy(), S, machine), Y, machine).solution(1e-14)
    agree(solve_kernel_ridge(indefinite.copy(), S, Y, machine, 1e-14), wanted, 1e-10)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("d", [5, 80])
@pytest.mark.parametrize("thick", [3, 128])
def test_features(machine, container, d, thick):
    pieces = DEFAULT.changed(common={"least_block": thick, "cache_numbers": thick})
    Phi = rng.standard_normal((N, d))
    wanted = RidgePath(spectrum_of_features(Phi, S, machine, 1e-2), Y, machine).solution(1e-2)
    agree(solve_features_ridge(Features(container(Phi), pieces), np.arange(N), S, Y, machine, 1e-2), wanted, 1e-9)
    for iterated in iterate_features(container(Phi), S, Y, machine, np.array([1.0, 1e-2]), 1e-14, 5000):
        assert iterated.reached == 0
    agree(iterated.solution, wanted, 1e-7)


@pytest.mark.parametrize("machine", MACHINES)
def test_iterations_tell_what_they_took_and_reached(machine):
    root = np.sqrt(S)
    easy = np.linalg.eigh(root[:, None] * K * root)[1][:, -1:] / root[:, None]  # one step, without an intercept
    for iterate, rows, other in ((iterate_features, X, np.zeros((N, 1))), (iterate_kernel, K, easy)):
        both, alone = (
            iterate(rows.copy(), S, labels, machine, np.array([1e-2]), 1e-12, 5000)[0]
            for labels in (np.c_[Y, other], Y)
        )
        assert both.reached == 0 and both.n_iter == alone.n_iter > 2
        few = iterate(rows.copy(), S, Y, machine, np.array([1e-2]), 1e-12, 2)[0]
        assert few.reached > 1e-12 and few.n_iter == 2
        first, again = iterate(rows.copy(), S, Y, machine, np.array([1e-2, 1e-2]), 1e-8, 5000)
        assert again.n_iter < first.n_iter  # it starts from its own solution


@pytest.mark.parametrize("bias", ["free", "penalised", "none"])
def test_a_strength_below_rounding_on_repeated_rows(bias):
    """The matrix is singular to rounding: eigenvalues have an answer where a Cholesky factor has none."""
    twice, machine = np.repeat(np.arange(N), 2), RidgeSpec("kernel", bias, False)
    matrix = K[np.ix_(twice, twice)]
    solution = solve_kernel_ridge(matrix.copy(), np.repeat(S, 2), Y[twice], machine, 1e-18)
    assert_allclose(matrix @ solution.coef + solution.intercept, Y[twice], atol=1e-3)


def test_strength_zero_is_plain_least_squares_or_an_error():
    machine = RidgeSpec("coefficients", "penalised", True)
    Z = np.c_[X, np.ones(N)]
    wanted = np.linalg.lstsq(np.sqrt(S)[:, None] * Z, np.sqrt(S)[:, None] * Y, rcond=None)[0]
    solution = solve_features_ridge(Features(X), np.arange(N), S, Y, machine, 0.0)
    assert_allclose(np.vstack([solution.coef, solution.intercept]), wanted, atol=1e-10)
    for Phi in (np.c_[X, X[:, 0]], np.c_[X, np.ones(N)], rng.standard_normal((N, N + 3))):
        with pytest.raises(ValueError, match="singular"):
            solve_features_ridge(Features(Phi), np.arange(N), S, Y, machine, 0.0)
    with pytest.raises(ValueError, match="singular"):
        solve_kernel_ridge(K.copy(), S, Y, machine, 0.0)


def test_indefinite_kernel_is_refused():
    with pytest.raises(ValueError, match="positive semi-definite"):
        solve_kernel_ridge(-K, S, Y, RidgeSpec("kernel", "free", False), 1e-3)
