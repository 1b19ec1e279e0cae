from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import gamma
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from skmargin.inspection import generalization_bound, margins
from skmargin.inspection._bounds import peeled
from skmargin.inspection._gaussian_sums import gaussian_moment, size_factor

X, y = load_iris(return_X_y=True)
MODEL = LinearSVC(random_state=0, fit_intercept=False, max_iter=10_000).fit(X, y)


def norm_of(W, p=2.0):
    return (np.linalg.norm(W, axis=1) ** p).sum() ** (1 / p)


def test_mcodm_bound_term_by_term():
    W = MODEL.coef_ - MODEL.coef_.mean(axis=0)
    radius, theta, n = 100.0, 0.3, 150
    for version, a in {"sharp": 2 * np.sqrt(2), "proof": 4.0, "printed": 16.0}.items():
        got = generalization_bound(MODEL, X, y, 0.1, version=version, theta=theta, radius=radius)
        margin = margins(MODEL, X, y)
        z = np.where(margin <= 0, 1, np.where(margin >= 0.7, 0, (1 - margin / 0.7) ** 2))
        assert_allclose(got.empirical, z.mean())
        assert_allclose(got.complexity, a * radius / (1 - theta) * np.sqrt(2 * np.pi * 3 * (X**2).sum()) / n)
        assert_allclose(got.confidence, 3 * np.sqrt(np.log(2 / 0.1) / (2 * n)))
        assert_allclose(got.norm, np.linalg.norm(W))
        assert got.total == got.empirical + got.complexity + got.confidence


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.0, 5.0])
def test_lp_bound_term_by_term(p):
    got = {v: generalization_bound(MODEL, X, y, bound="lp", p=p, rho=0.5, radius=50, version=v) for v in VERSIONS}
    margin = margins(MODEL, X, y)
    trace = (X**2).sum()
    assert_allclose(got["sharp"].empirical, np.clip(1 - margin / 0.5, 0, 1).mean())
    assert_allclose(got["sharp"].norm, min(norm_of(MODEL.coef_, p), norm_of(MODEL.coef_ - MODEL.coef_.mean(0), p)))
    for version, a in {"sharp": 2.0, "proof": 2 * np.sqrt(2), "printed": 2 * np.sqrt(2)}.items():
        expected = a / 0.5 * np.sqrt(np.pi) / 150 * size_factor(3, p, version) * 50 * np.sqrt(trace)
        assert_allclose(got[version].complexity, expected)
    assert got["sharp"].complexity < got["proof"].complexity <= got["printed"].complexity


VERSIONS = ("sharp", "proof", "printed")


def test_printed_factor_is_the_closed_form_of_the_corollary():
    for k in (3, 10, 100):
        s = 2 * np.log(k)
        corollary = np.sqrt(np.e) * (4 * np.log(k)) ** (1 + 1 / (2 * np.log(k)))
        assert_allclose(size_factor(k, 1.01, "printed") * np.sqrt(2), corollary * k ** (1 / s) / np.sqrt(np.e))
    p_star = 1.9 / 0.9
    assert_allclose(
        size_factor(100, 1.9, "printed") * np.sqrt(2), (2 * p_star) ** (1 + 1 / p_star) * 100 ** (1 / p_star)
    )
    assert_allclose(size_factor(2, 1.01, "printed"), 4**1.5 * np.sqrt(2) / np.sqrt(2))  # clipped at s = 2


@pytest.mark.parametrize("k", [3, 10])
def test_factors_of_the_papers_above_two_are_those_of_two_in_a_larger_ball(k):
    """``||W||_{2,2} <= k^(1/2 - 1/p) ||W||_{2,p}``."""
    assert_allclose(size_factor(k, 4.0, "proof"), k**0.25 * np.sqrt(2 * k))
    assert_allclose(size_factor(k, 4.0, "printed"), k**0.25 * size_factor(k, 2.0, "printed"))
    assert_allclose(size_factor(k, 4.0, "sharp"), k**0.75)  # p* = 4/3


@pytest.mark.parametrize("p", [1.05, 1.3])
@pytest.mark.parametrize("k", [2, 5, 40])
def test_factor_is_the_least_of_all_moments(k, p):
    s = np.linspace(2, p / (p - 1), 20001)
    moments = 2**0.5 * (gamma((s + 1) / 2) / np.sqrt(np.pi)) ** (1 / s)  # of a standard normal
    assert_allclose(size_factor(k, p, "sharp"), (k ** (1 / s) * moments).min(), rtol=1e-6)
    assert_allclose(size_factor(k, p, "proof"), (np.sqrt(s) * k ** (1 / s) * moments).min(), rtol=1e-6)


def test_gaussian_moments():
    assert_allclose([gaussian_moment(2), gaussian_moment(4)], [1, 3**0.25])


@pytest.mark.parametrize("k", [2, 5, 40])
@pytest.mark.parametrize("p", [1.05, 1.3, 2.0, 3.0, 10.0])
def test_sharp_factor_dominates_the_gaussian_sum(k, p):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 6)) * rng.exponential(size=6)
    conjugate = p / (p - 1)
    sums = np.linalg.norm(np.einsum("nd,tnk->tkd", A, rng.normal(size=(1500, 30, k))), axis=2)
    draws = (sums**conjugate).sum(axis=1) ** (1 / conjugate) / np.linalg.norm(A)
    mean, error = draws.mean(), draws.std() / np.sqrt(len(draws))
    assert mean - 4 * error <= size_factor(k, p, "sharp") <= size_factor(k, p, "proof") * (1 + 1e-12)


@pytest.mark.parametrize("k", [2, 3, 6])
def test_one_comparison_dominates_the_rademacher_sum_of_margins(k):
    """sup over ||W|| <= 1 of sum_i s_i margin_i, by ascent from many starts, stays below sqrt(pi k tr K)."""
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(12, 3)), rng.integers(k, size=12)
    rows = np.arange(12)
    total = []
    for _ in range(60):
        sign = rng.choice([-1.0, 1.0], size=12)
        W = rng.normal(size=(200, k, 3))
        best = -np.inf
        for _ in range(30):
            W /= np.linalg.norm(W, axis=(1, 2), keepdims=True)
            F = np.einsum("nd,wkd->wnk", A, W)
            own = F[:, rows, b]
            F[:, rows, b] = -np.inf
            rival = F.argmax(axis=2)
            best = max(best, float(((own - F.max(axis=2)) @ sign).max()))
            step = np.zeros_like(W)
            for i in rows:
                step[:, b[i]] += sign[i] * A[i]
                step[np.arange(200), rival[:, i]] -= sign[i] * A[i]
            W = W + 0.3 * step / np.linalg.norm(step, axis=(1, 2), keepdims=True)
        total.append(best)
    assert np.mean(total) <= np.sqrt(np.pi * k * (A**2).sum())


def test_peeling_pays_for_the_choice_of_the_ball():
    assert peeled(0.0, 0.05) == (1.0, 0.025)
    assert peeled(1.0, 0.05) == (1.0, 0.025)
    assert peeled(5.0, 0.05) == (8.0, 0.05 / 20)
    assert_allclose(sum(peeled(2.0**j, 0.05)[1] for j in range(1000)), 0.05, rtol=2e-3)
    chosen = generalization_bound(MODEL, X, y)
    assert chosen.norm <= chosen.radius < 2 * max(chosen.norm, 0.5)
    fixed = generalization_bound(MODEL, X, y, radius=chosen.radius)
    assert fixed.confidence < chosen.confidence and fixed.complexity == chosen.complexity
    assert generalization_bound(MODEL, X, y, radius=chosen.norm).radius == chosen.norm


def test_what_is_not_given_is_what_the_documentation_says():
    given = {"delta": 0.05, "version": "sharp", "theta": 0.2, "p": 2.0, "rho": 1.0}
    assert generalization_bound(MODEL, X, y) == generalization_bound(MODEL, X, y, bound="mcodm", **given)
    assert generalization_bound(MODEL, X, y, bound="lp") == generalization_bound(MODEL, X, y, bound="lp", **given)


def test_no_vectors_have_no_norm():
    model = LinearSVC(random_state=0, fit_intercept=False).fit(X, y)
    model.coef_ = np.zeros((3, 4))
    got = generalization_bound(model, X, y, bound="lp", p=1.5)
    assert (got.empirical, got.norm, got.radius) == (1, 0, 1)
    rows = np.vstack([X, np.zeros(4)])  # a row without length is no kernel that is negative
    assert generalization_bound(MODEL, rows, np.r_[y, 0]).norm == generalization_bound(MODEL, X, y).norm


def test_intercept_is_one_more_feature():
    with_intercept = LinearSVC(random_state=0, max_iter=10_000).fit(X, y)
    with_intercept.intercept_[1] = 0  # one of them may be zero
    extended = LinearSVC(random_state=0, fit_intercept=False).fit(np.c_[X, np.ones(150)], y)
    extended.coef_ = np.c_[with_intercept.coef_, with_intercept.intercept_]
    a = generalization_bound(with_intercept, X, y)
    b = generalization_bound(extended, np.c_[X, np.ones(150)], y)
    assert_allclose([a.empirical, a.complexity, a.norm], [b.empirical, b.complexity, b.norm])


def test_kernels_pipelines_and_sparse_rows():
    rows = y < 2
    linear, kernel = SVC(kernel="linear"), SVC(kernel="poly", degree=1, gamma=1.0)
    a, b = (generalization_bound(m.fit(X[rows], y[rows]), X[rows], y[rows]) for m in (linear, kernel))
    assert_allclose(a.total, b.total, rtol=1e-6)
    rbf = SVC().fit(X[rows], y[rows])
    a = generalization_bound(rbf, X[rows], y[rows], radius=64.0, theta=0.0)
    assert_allclose(a.complexity, 2 * np.sqrt(2) * 64 * np.sqrt(2 * np.pi * 2 * 2 * 100) / 100)  # k(x, x) + 1 = 2
    for steps in ((), (StandardScaler(),), (StandardScaler(), MinMaxScaler())):
        pipe = make_pipeline(*steps, LinearSVC(random_state=0)).fit(X, y)
        rows = pipe[:-1].transform(X) if steps else X
        assert_allclose(generalization_bound(pipe, X, y).total, generalization_bound(pipe[-1], rows, y).total)
    A, b = load_digits(return_X_y=True)
    model = LinearSVC(random_state=0, C=1e-3).fit(A, b)
    dense, csr = (generalization_bound(model, Z, b) for Z in (A, sparse.csr_array(A)))
    assert_allclose(dense.total, csr.total)


def test_refusals_name_the_parameter():
    with pytest.raises(ValueError, match="'delta' parameter"):
        generalization_bound(MODEL, X, y, delta=1.0)
    with pytest.raises(ValueError, match="'bound' parameter"):
        generalization_bound(MODEL, X, y, bound="vc")
    with pytest.raises(ValueError, match="'theta' parameter"):
        generalization_bound(MODEL, X, y, theta=1.0)
    with pytest.raises(ValueError, match=r"radius=0.1 is smaller than the norm"):
        generalization_bound(MODEL, X, y, radius=0.1)
    with pytest.raises(TypeError, match="decides between pairs"):
        generalization_bound(SVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="positive semi-definite"):
        rows = y < 2
        generalization_bound(SVC(kernel="sigmoid", gamma=0.01, coef0=-0.4).fit(X[rows], y[rows]), X[rows], y[rows])


def pair_norm(vectors, p):
    """Of the differences of all pairs."""
    return np.linalg.norm([np.linalg.norm(a - b) for a, b in combinations(vectors, 2)], p)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0, np.inf])
@pytest.mark.parametrize("intercept", [False, True])
def test_m3_bound_term_by_term(p, intercept):
    model = LinearSVC(random_state=0, fit_intercept=intercept, max_iter=10_000).fit(X, y)
    got = generalization_bound(model, X, y, bound="m3", p=p, rho=0.5, radius=50)
    W, rows = np.c_[model.coef_, np.ravel(model.intercept_) * np.ones(3)], np.c_[X, np.full(len(X), float(intercept))]
    assert_allclose(got.norm, pair_norm(W, p))
    assert_allclose(got.empirical, np.clip(1 - margins(model, X, y) / 0.5, 0, 1).mean())
    factor = np.sqrt(2) / 3 * size_factor(3, p, "sharp")  # three classes have three pairs
    assert_allclose(got.complexity, 2 / 0.5 * np.sqrt(np.pi) / 150 * factor * 50 * np.linalg.norm(rows))
    # Theorem 6 itself: the left side over all rows is at most its right side
    scores = model.decision_function(X)
    left = max(np.linalg.norm([a - b for a, b in combinations(row, 2)], p) for row in scores)
    assert_allclose(got.spread, np.linalg.norm(rows, axis=1).max() * pair_norm(W, p))
    assert left <= got.spread * (1 + 1e-12)
    assert generalization_bound(model, X, y, bound="lp", p=p).spread is None


@pytest.mark.parametrize("p", [1.0, 1.5, 4.0, np.inf])
def test_m3_factor_bounds_the_gaussian_sum(p):
    """The mean over Gaussian g of the largest ``sum_ij g_ij w_j'x_i`` in the unit ball, found by cvxpy."""
    rng = np.random.default_rng(0)
    k, rows = 4, rng.normal(size=(6, 3))
    W, G = cp.Variable((k, 3)), cp.Parameter((k, 3))
    ball = cp.norm(cp.hstack([cp.norm(W[a] - W[b]) for a, b in combinations(range(k), 2)]), p) <= 1
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(W, G))), [ball, cp.sum(W, axis=0) == 0])
    found = []
    for _ in range(20):
        G.value = rng.normal(size=(k, 6)) @ rows
        found.append(problem.solve(solver="CLARABEL"))
    bound = np.sqrt(2) / k * size_factor(6, p, "sharp") * np.linalg.norm(rows)
    assert 0.4 * bound <= np.mean(found) <= bound


def test_m3_has_no_printed_constants():
    with pytest.raises(ValueError, match="version='sharp'"):
        generalization_bound(MODEL, X, y, bound="m3", version="printed")


def test_the_largest_length_is_a_norm_too():
    got = generalization_bound(MODEL, X, y, bound="lp", p=np.inf)
    centred = MODEL.coef_ - MODEL.coef_.mean(axis=0)
    assert_allclose(got.norm, min(np.linalg.norm(W, axis=1).max() for W in (MODEL.coef_, centred)))
    assert_allclose(size_factor(7, np.inf, "sharp"), 7)
