"""The three routes of the LDM against the statement of the problem in cvxpy, and against LIBLINEAR."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.svm import LinearSVC

from skmargin.solvers import ldm_dual
from skmargin.solvers.ldm_dual import LDMProblem, modified_kernel, solve_features, solve_kernel

rng = np.random.default_rng(2)
N = 60
X = rng.standard_normal((N, 4))
y = np.where(X[:, 0] + 0.6 * rng.standard_normal(N) > 0, 1.0, -1.0)
S = rng.integers(1, 4, N).astype(float)
K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def optimum(R, C, l1, l2):
    p = S / S.sum()
    w = cp.Variable(R.shape[1])
    d = cp.multiply(y, R @ w)
    spread = np.diag(np.sqrt(p)) @ (np.eye(N) - np.outer(np.ones(N), p))
    objective = 0.5 * cp.sum_squares(w) - l1 * p @ d + 0.5 * l2 * cp.sum_squares(spread @ d) + C * S @ cp.pos(1 - d)
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value, R @ w.value


PARAMETERS = [(1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.1, 5.0, 20.0), (0.01, 3.0, 300.0)]


@pytest.mark.parametrize(("C", "l1", "l2"), PARAMETERS)
def test_kernel(C, l1, l2):
    values, vectors = np.linalg.eigh(K)
    objective, f = optimum(vectors * np.sqrt(np.maximum(values, 0)), C, l1, l2)
    state = solve_kernel(K.copy(), LDMProblem(y, S, C, l1, l2), 1e-10, 20000, 0)
    assert state.gap <= 1e-10
    assert_allclose(state.objective, objective, rtol=1e-8)
    assert_allclose(K @ state.coef, f, atol=2e-5)


@pytest.mark.parametrize(("C", "l1", "l2"), PARAMETERS)
@pytest.mark.parametrize("route", ["few features", "rows", "sparse rows"])
def test_features(C, l1, l2, route, monkeypatch):
    objective, f = optimum(X, C, l1, l2)
    if route != "few features":
        monkeypatch.setattr(ldm_dual, "FEW_FEATURES", 0)
    rows = sparse.csr_array(X) if route == "sparse rows" else X
    tol = 1e-10 if route == "few features" or l2 <= 20 else 1e-5
    state = solve_features(rows, LDMProblem(y, S, C, l1, l2), tol, 20000, 0)
    assert state.gap <= tol
    assert_allclose(state.objective, objective, rtol=max(1e-8, tol))
    assert_allclose(X @ state.coef, f, atol=2e-5 if tol == 1e-10 else 1e-2)


def test_loose_tolerance_still_ends_on_the_optimum():
    loose = solve_kernel(K.copy(), LDMProblem(y, S, 1.0, 1.0, 1.0), 1e-2, 20000, 0)
    tight = solve_kernel(K.copy(), LDMProblem(y, S, 1.0, 1.0, 1.0), 1e-11, 20000, 1)
    assert loose.gap < 1e-10
    assert_allclose(K @ loose.coef, K @ tight.coef, atol=1e-8)


def test_modified_kernel():
    problem = LDMProblem(y, S, 1.0, 1.0, 7.0)
    p = problem.p
    spread = np.diag(p) - np.outer(p * y, p * y)
    wanted = np.linalg.solve(np.eye(N) + 7 * K @ spread, K)
    assert_allclose(modified_kernel(K.copy(), problem), wanted, atol=1e-12)


def test_without_mean_and_variance_it_is_the_l1_svm():
    svm = LinearSVC(loss="hinge", fit_intercept=False, C=0.5, tol=1e-10, max_iter=1000000, random_state=0)
    svm.fit(X, y, sample_weight=S)
    state = solve_features(X, LDMProblem(y, S, 0.5, 0.0, 0.0), 1e-10, 100000, 0)
    assert_allclose(state.coef, svm.coef_[0], atol=1e-6)


def test_few_passes_are_reported_with_their_gap():
    state = solve_kernel(K.copy(), LDMProblem(y, S, 1e4, 1.0, 1.0), 1e-14, 1, 0)
    assert state.n_iter == 1
    assert state.gap >= 0


def test_constant_column_is_a_constant_in_the_kernel():
    problem = LDMProblem(y, S, 1.0, 1.0, 1.0)
    state = solve_features(ldm_dual.with_constant(X), problem, 1e-11, 100000, 0)
    dual = solve_kernel(X @ X.T + 1, problem, 1e-11, 100000, 0)
    assert_allclose(X @ state.coef[:-1] + state.coef[-1], (X @ X.T + 1) @ dual.coef, atol=1e-6)
