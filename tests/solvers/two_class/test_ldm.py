"""The three routes of the LDM against the statement of the problem in cvxpy, and against LIBLINEAR."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.svm import LinearSVC

from skmargin._core import _ext
from skmargin.rows.arrays import with_constant
from skmargin.solvers.tuning import DEFAULT
from skmargin.solvers.two_class import box as box_dual
from skmargin.solvers.two_class.ldm import (
    LDMProblem,
    check_definite,
    modified_kernel,
    solve_features_ldm,
    solve_kernel_ldm,
)

rng = np.random.default_rng(2)
N = 60
X = rng.standard_normal((N, 4))
y = np.where(X[:, 0] + 0.6 * rng.standard_normal(N) > 0, 1.0, -1.0)
S = rng.integers(1, 4, N).astype(float)
K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def optimum(R, C, l1, l2, y=y, s=S):
    p = s / s.sum()
    w = cp.Variable(R.shape[1])
    d = cp.multiply(y, R @ w)
    spread = np.diag(np.sqrt(0.5 * l2 * p)) @ (np.eye(len(p)) - np.outer(np.ones(len(p)), p))
    objective = 0.5 * cp.sum_squares(w) - l1 * p @ d + cp.sum_squares(spread @ d) + C * s @ cp.pos(1 - d)
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value, R @ w.value


ROWS = DEFAULT.changed(common={"call_work": 0, "dense_numbers": 0})  # passes over the rows
PARAMETERS = [(1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.1, 5.0, 20.0), (0.01, 3.0, 300.0)]


@pytest.mark.parametrize(("C", "l1", "l2"), PARAMETERS)
def test_kernel(C, l1, l2):
    values, vectors = np.linalg.eigh(K)
    objective, f = optimum(vectors * np.sqrt(np.maximum(values, 0)), C, l1, l2)
    state = solve_kernel_ldm(K.copy(), LDMProblem(y, S, C, l1, l2), 1e-10, 20000, 0)
    assert state.gap <= 1e-10
    assert_allclose(state.objective, objective, rtol=1e-8)
    assert_allclose(K @ state.coef, f, atol=2e-5)


@pytest.mark.parametrize(("C", "l1", "l2"), PARAMETERS)
@pytest.mark.parametrize("route", ["few features", "rows", "sparse rows"])
def test_features(C, l1, l2, route):
    objective, f = optimum(X, C, l1, l2)
    tuning = DEFAULT if route == "few features" else ROWS
    rows = sparse.csr_array(X) if route == "sparse rows" else X
    tol = 1e-10 if route == "few features" or l2 <= 20 else 1e-5
    state = solve_features_ldm(rows, LDMProblem(y, S, C, l1, l2), tol, 20000, 0, tuning=tuning)
    assert state.gap <= tol
    assert_allclose(state.objective, objective, rtol=max(1e-8, tol))
    assert_allclose(X @ state.coef, f, atol=2e-5 if tol == 1e-10 else 1e-2)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_single_precision_certifies_what_is_true(form, tol):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 1500)).astype(np.float32)
    problem = LDMProblem(np.where(rng.random(200) < 0.5, 1.0, -1.0), np.ones(200), 0.1, 0.0, 0.0)
    best = solve_features_ldm(rows.astype(np.float64), problem, 1e-13, 20000, 0)
    state = solve_features_ldm(form(rows), problem, tol, 2000, 0, tuning=ROWS)
    assert state.gap <= tol
    assert state.objective * (1 - state.gap) <= best.objective * (1 + 1e-12)


@pytest.mark.parametrize("linear", [0.0, 0.3])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_every_method_of_the_box_dual_certifies_what_is_true(linear, C):
    """Objective and gap of any point by their definition; of the interior point and the active set against cvxpy."""
    M = K + 1e-9 * np.eye(N)
    box = box_dual.Box(
        y, C * S, linear * S / S.sum(), M.diagonal(), N * N, lambda c: M @ c,
        lambda theta: lambda right: np.linalg.solve(M + np.diag(theta), right), 10, lambda rows: M[np.ix_(rows, rows)],
        ascend=None,
    )  # fmt: skip
    w = cp.Variable(N)
    d = cp.multiply(y, np.linalg.cholesky(M) @ w)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) - box.lin @ d + box.cap @ cp.pos(1 - d)))
    best = problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    rough = np.random.default_rng(0).random(N) * box.cap
    interior = box_dual._interior(box, box.lin + rough, 1e-6)
    polished = box_dual.polish(box, interior[0], interior[2])
    assert interior[2] <= 1e-6 and polished[2] <= 1e-10
    for g, *told in ((box.lin + rough,), (box.lin + box.cap,), interior, polished):
        u, f = g - box.lin, M @ (y * g)
        assert (u >= 0).all() and (u <= box.cap * (1 + 1e-12)).all()
        square, hinge = (y * g) @ f, box.cap @ np.maximum(0, 1 - y * f)
        primal, dual = 0.5 * square - box.lin @ (y * f) + hinge, u.sum() - 0.5 * square
        size = 0.5 * square + hinge + abs(box.lin @ (y * f))
        objective, gap = told or box.certificate(u, y * f)
        assert objective == pytest.approx(primal, rel=1e-9)
        assert gap == pytest.approx((primal - dual) / size, abs=1e-9)
        assert dual <= best + 1e-7 * size and primal >= best - 1e-7 * size


@pytest.mark.parametrize("kappa", [0.0, 0.7])
@pytest.mark.parametrize("rows", ["kernel", "dense", "csr"])
def test_the_certificate_of_the_ascent_is_that_of_its_point(kappa, rows):
    """No pass at all: loss, conjugate (the least of three candidates) and sizes once more."""
    rng = np.random.default_rng(0)
    cap, lin = rng.uniform(0.1, 3, N), rng.uniform(0, 0.2, N)
    g = lin + rng.random(N) * cap - kappa * rng.random(N)
    G = K if rows == "kernel" else X @ X.T
    A = sparse.csr_array(X)
    given = {
        "kernel": lambda: K,
        "dense": lambda: _ext.Rows(X),
        "csr": lambda: _ext.Rows(A.indptr, A.indices, A.data, 4),
    }
    found = _ext.box_ascent(given[rows](), y, cap, lin, np.full(N, kappa), g, _ext.Options(tol=1e-3, max_iter=0))
    d = y * (G @ (y * g))

    def loss(t):
        return cap * np.maximum(0, 1 - t) + 0.5 * kappa * t**2 - lin * t

    where = [np.ones(N), *([(lin - g) / kappa, (lin + cap - g) / kappa] if kappa else [])]
    lowest = np.min([loss(t) + g * t for t in where], axis=0)
    primal, gap = 0.5 * g @ d + loss(d).sum(), (loss(d) + g * d - lowest).sum()
    size = primal + lin @ d + abs(lin @ d)
    assert_allclose(found.g, g)
    assert_allclose(found.state, d * y if rows == "kernel" else X.T @ (y * g), atol=1e-10)
    assert_allclose((found.objective, found.gap, found.relative_gap), (primal, gap, gap / size), rtol=1e-9)
    assert found.n_iter == 0


def objective_of(f, norm, problem):
    d, p = problem.y * f, problem.p
    variance = p @ (d - p @ d) ** 2
    hinge = problem.weight @ np.maximum(0, 1 - d)
    return 0.5 * norm - problem.l1 * p @ d + 0.5 * problem.l2 * variance + problem.C * hinge


@pytest.mark.parametrize("l2", [1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_large_weights_of_the_variance(l2, shift):
    # a = c - l2 N f leaves no digit; the certificate is that of the coefficients, whatever the steps before lost
    values, vectors = np.linalg.eigh(K + shift)
    wanted, _ = optimum(vectors * np.sqrt(np.maximum(values, 0)), 1.0, 1.0, l2)
    problem = LDMProblem(y, S, 1.0, 1.0, l2)
    state = solve_kernel_ldm(K + shift, problem, 1e-6, 20000, 0)
    f = (K + shift) @ state.coef
    assert state.gap <= 1e-6
    assert_allclose(state.objective, objective_of(f, state.coef @ f, problem), rtol=1e-9)
    assert_allclose(state.objective, wanted, rtol=1e-5)


@pytest.mark.parametrize("l2", [0.0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.float32])
def test_large_weights_of_the_variance_on_features(l2, form):
    problem, rows = LDMProblem(y, S, 1.0, 1.0, l2), form(X)
    wanted, _ = optimum(rows.astype(np.float64) if form is np.float32 else X, 1.0, 1.0, l2)
    state = solve_features_ldm(rows, problem, 1e-6, 20000, 0)
    assert state.gap <= 1e-6
    assert_allclose(state.objective, objective_of(rows @ state.coef, state.coef @ state.coef, problem), rtol=1e-9)
    assert_allclose(state.objective, wanted, rtol=1e-5)


def few_rows(seed, n, d, scale):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.integers(0, 2, n) > 0, 1.0, -1.0)
    return scale(rng, rng.standard_normal((n, d))), labels


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("C", "l1", "l2"), [(100.0, 0.0, 10.0), (1e-3, 10.0, 1e3), (1.0, 1.0, 1.0)])
def test_few_rows_of_very_many_features(C, l1, l2, container):
    rows, labels = few_rows(5, 90, 2100, lambda rng, Z: 100 * np.abs(Z))
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    wanted, _ = optimum(left * values, C, l1, l2, labels, np.ones(90))
    state = solve_features_ldm(container(rows), LDMProblem(labels, np.ones(90), C, l1, l2), 1e-4, 10000, 0)
    assert state.coef.shape == (2100,)
    assert state.gap <= 1e-4
    assert_allclose(state.objective, wanted, rtol=2e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("l2", [0.0, 1e-6, 1.0, 1e8])
def test_fewer_rows_than_features_of_very_different_sizes(seed, l2):
    rows, labels = few_rows(seed, 40, 60, lambda rng, Z: Z * 10.0 ** rng.integers(-4, 5, 60))
    rows[:2], labels[:4] = rows[2:4], [1, 1, -1, -1]  # two pairs of rows that contradict each other
    weight = np.random.default_rng(seed).integers(1, 4, 40).astype(float)
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    wanted, _ = optimum(left * values, 8000.0, 0.1, l2, labels, weight)
    state = solve_features_ldm(rows, LDMProblem(labels, weight, 8000.0, 0.1, l2), 1e-3, 10000, 0)
    assert state.gap <= 1e-3
    assert_allclose(state.objective, wanted, rtol=2e-3)


@pytest.mark.parametrize("route", ["kernel", "few features", "rows"])
def test_numbers_beyond_double_precision_are_no_solution(route):
    problem = LDMProblem(y, S, 1.0, 1e160, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        if route == "kernel":
            state = solve_kernel_ldm(K.copy(), problem, 1e-3, 100, 0)
        else:
            tuning = DEFAULT if route == "few features" else DEFAULT.changed(common={"call_work": 0})
            state = solve_features_ldm(X, problem, 1e-3, 100, 0, tuning=tuning)
    assert not np.isfinite(state.objective + state.gap)


def test_a_variance_beyond_the_rounding_of_the_kernel_is_refused():
    line = np.linspace(-1, 1, N)
    smooth = np.exp(-0.1 * (line[:, None] - line) ** 2)
    with pytest.raises(ValueError, match=r"lambda2=1e\+25 is too large"):
        solve_kernel_ldm(smooth, LDMProblem(y, S, 1.0, 1.0, 1e25), 1e-3, 100, 0)


@pytest.mark.parametrize("rounding", [1.5e-8, 1e-5])
def test_indefinite_kernels(rounding):
    values, vectors = np.linalg.eigh(K)
    for share, refused in ((-1e-12, False), (-0.5 * rounding, False), (-2 * rounding, True), (-1.0, True)):
        changed = np.maximum(values, 0)
        changed[0] = share * values[-1]
        matrix = (vectors * changed) @ vectors.T
        if refused:
            with pytest.raises(ValueError, match=r"not positive semi-definite \(smallest eigenvalue -"):
                check_definite(matrix, rounding)
        else:
            check_definite(matrix, rounding)
    check_definite(np.zeros((3, 3)), rounding)


def test_loose_tolerance_still_ends_on_the_optimum():
    loose = solve_kernel_ldm(K.copy(), LDMProblem(y, S, 1.0, 1.0, 1.0), 1e-2, 20000, 0)
    tight = solve_kernel_ldm(K.copy(), LDMProblem(y, S, 1.0, 1.0, 1.0), 1e-11, 20000, 1)
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
    state = solve_features_ldm(X, LDMProblem(y, S, 0.5, 0.0, 0.0), 1e-10, 100000, 0)
    assert_allclose(state.coef, svm.coef_[0], atol=1e-6)


def test_few_passes_are_reported_with_their_gap():
    state = solve_kernel_ldm(K.copy(), LDMProblem(y, S, 1e4, 1.0, 1.0), 1e-14, 1, 0)
    assert state.n_iter == 1
    assert state.gap >= 0


def test_constant_column_is_a_constant_in_the_kernel():
    problem = LDMProblem(y, S, 1.0, 1.0, 1.0)
    state = solve_features_ldm(with_constant(X), problem, 1e-11, 100000, 0)
    dual = solve_kernel_ldm(X @ X.T + 1, problem, 1e-11, 100000, 0)
    assert_allclose(X @ state.coef[:-1] + state.coef[-1], (X @ X.T + 1) @ dual.coef, atol=1e-6)
