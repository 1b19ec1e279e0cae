"""Theorems 5 and 7 and Remark 6 of Lei et al. (2015) as numbers, against the Gaussian sums by their definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from skmargin import LpNormSVC
from skmargin.inspection import generalization_bound
from skmargin.inspection._gaussian_sums import mean_square_norm, simulated_factor, size_factor


def gaussian_sum(factor, k, p, draws=1500, seed=0):
    """Mean of ``||(sum_i g_ij x_i)_j||_{2,p*}`` over ``sqrt(tr K)`` for the rows of a matrix, and its error."""
    rng = np.random.default_rng(seed)
    lengths = np.linalg.norm(np.einsum("nd,tnk->tkd", factor, rng.normal(size=(draws, len(factor), k))), axis=2)
    conjugate = np.inf if p == 1 else 1 / (1 - 1 / p)
    sums = np.linalg.norm(lengths, ord=conjugate, axis=1) / np.linalg.norm(factor)
    return sums.mean(), sums.std() / np.sqrt(draws)


def rows(n=25, d=6):
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, d)) * rng.exponential(size=d)


@pytest.mark.parametrize("k", [2, 5, 40])
@pytest.mark.parametrize("p", [1.0, 1.05, 1.5, 2.0, 3.0, 10.0, np.inf])
def test_theorem_5_is_the_gaussian_sum_itself(k, p):
    X = rows()
    mean, error = gaussian_sum(X, k, p)
    found = simulated_factor(np.linalg.eigvalsh(X.T @ X), k, p, 1e-3, np.random.RandomState(0))
    assert found.mean == pytest.approx(mean, abs=6 * error)
    assert mean - 4 * error <= found.mean + found.error
    # Theorem 7 bounds that sum, and both are below what the corollary makes of it.
    assert mean - 4 * error <= size_factor(k, p, "theorem7") <= size_factor(k, p, "proof") * (1 + 1e-12)


def test_the_error_of_the_simulation_covers_its_mean():
    """Of 300 simulations none may lie below the expectation by more than an error that holds with 1 - 1e-3."""
    spectrum = np.array([3.0, 1.0, 0.1])
    found = [simulated_factor(spectrum, 4, 1.3, 1e-3, np.random.RandomState(seed)) for seed in range(300)]
    means = np.array([f.mean for f in found])
    assert (means + found[0].error >= means.mean()).all()
    assert means.std() < found[0].error < 0.2 * means.mean()


@pytest.mark.parametrize("k", [2, 5, 100])
@pytest.mark.parametrize("s", [2.0, 2.04, 2.06, 2.5, 4.0, 18.0, 40.0])
def test_mean_square_of_a_norm_of_normal_numbers(k, s):
    g = np.abs(np.random.default_rng(0).normal(size=(100_000, k)))
    squares = np.linalg.norm(g, ord=s, axis=1) ** 2
    error = squares.std() / np.sqrt(len(squares))
    expected = squares if s > 2.05 else (g**2).sum(axis=1)
    assert mean_square_norm(k, s) == pytest.approx(expected.mean(), abs=5 * error)
    assert squares.mean() - 4 * error <= mean_square_norm(k, s)


@pytest.mark.parametrize("k", [2, 7, 60])
@pytest.mark.parametrize("p", [1.05, 1.4, 2.0])
def test_theorem_7_takes_the_best_exponent(k, p):
    """Half the square of the norm of exponent q is 1/(s - 1)-strongly convex, s conjugate to q."""
    s = np.linspace(2.06, p / (p - 1), 200) if p < 2 else []
    least = min([np.sqrt(k), *(np.sqrt((t - 1) * mean_square_norm(k, t)) for t in s)])
    assert_allclose(size_factor(k, p, "theorem7"), least, rtol=1e-3)


def test_remark_6_is_four_times_the_classes_times_one_complexity():
    X, y = load_iris(return_X_y=True)
    model = LpNormSVC(p=1.2, fit_intercept=False).fit(X, y)
    got = generalization_bound(model, X, y, bound="lp", p=1.2, rho=0.5, radius=100, version="remark6")
    assert_allclose(got.complexity, 4 / 0.5 * 3 * 100 * np.linalg.norm(X) / 150)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(2000, 150))
    one_class = np.linalg.norm(signs @ X, axis=1)  # sup of sum_i s_i w'x_i over ||w|| <= 1
    assert one_class.mean() <= np.linalg.norm(X)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_theorem_5_for_a_fitted_machine(container, intercept, wide):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300:10] / 16 if wide else X[:300] / 16, y[:300:10] if wide else y[:300]
    model = LpNormSVC(p=1.3, fit_intercept=intercept).fit(container(X), y)
    settings = {"bound": "lp", "p": 1.3, "rho": 2.0, "radius": 1e3}
    got = generalization_bound(model, container(X), y, 0.1, version="theorem5", **settings)
    sharp = generalization_bound(model, container(X), y, 0.1, **settings)
    Z = np.c_[X, np.ones(len(X))] if intercept else X
    mean, error = gaussian_sum(Z, len(model.classes_), 1.3, draws=300)
    unit = 2 * np.sqrt(2 * np.pi) / 2.0 * 1e3 * np.linalg.norm(Z) / len(y)
    assert got.complexity == pytest.approx(unit * mean, rel=0.15)
    assert got.complexity >= unit * (mean - 4 * error)
    assert got.empirical == sharp.empirical
    assert_allclose(got.confidence, 3 * np.sqrt(np.log(2 / 0.099) / (2 * len(y))))
    again = generalization_bound(model, container(X), y, 0.1, version="theorem5", random_state=0, **settings)
    other = generalization_bound(model, container(X), y, 0.1, version="theorem5", random_state=1, **settings)
    assert again == got and other != got


def test_theorem_5_of_a_kernel_pays_off_where_rows_have_many_directions():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    model = LpNormSVC(p=1.2, kernel="rbf", gamma=0.1).fit(X, y)
    five, seven, sharp, old = (
        generalization_bound(model, X, y, bound="lp", p=1.2, radius=16, version=v).complexity
        for v in ("theorem5", "theorem7", "sharp", "remark6")
    )
    factor = np.linalg.cholesky(rbf_kernel(X, gamma=0.1) + 1 + 1e-10 * np.eye(200))
    mean, error = gaussian_sum(factor, 10, 1.2, draws=300)
    assert five >= 2 * np.sqrt(2 * np.pi) * 16 * np.linalg.norm(factor) / 200 * (mean - 4 * error)
    assert five < seven < old and sharp < seven


def test_statements_of_one_paper_are_not_those_of_another():
    X, y = load_iris(return_X_y=True)
    model = LpNormSVC().fit(StandardScaler().fit_transform(X), y)
    for bound in ("mcodm", "m3"):
        with pytest.raises(ValueError, match=r"version='theorem7' is a statement of Lei .* got bound='m"):
            generalization_bound(model, X, y, bound=bound, version="theorem7")
    many = sparse.random_array((9000, 9000), density=1e-4, random_state=0, format="csr")
    classes = np.arange(9000) % 3
    fitted = LpNormSVC(tol=0.1).fit(many, classes)
    with pytest.raises(ValueError, match="version='theorem5' takes eigenvalues of a matrix with 9000 rows, and 8000"):
        generalization_bound(fitted, many, classes, bound="lp", version="theorem5")
