"""The losses of LpNormSVC beside the hinge: against cvxpy, LIBLINEAR, logistic regression and their definitions."""

from inspect import signature

import cvxpy as cp
import numpy as np
import onnxruntime
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import LpNormSVC, ODMClassifier, get_config, set_config
from skmargin.model_files import load_model, save_model
from skmargin.onnx import to_onnx
from skmargin.solvers.block_norm.interior_point import solve_interior
from skmargin.solvers.block_norm.margin_loss import MarginLoss

LOSSES = ("squared_hinge", "log_loss")
EXACT = {"approx": False} if "approx" in signature(cp.pnorm).parameters else {}  # as in test_lp_norm


@parametrize_with_checks([
    LpNormSVC(loss="squared_hinge"),
    LpNormSVC(loss="log_loss", p=3.0),
    LpNormSVC(loss="log_loss", kernel="rbf"),
])  # fmt: skip
def test_scikit_learn(estimator, check):
    check(estimator)


def toy(n=30, d=8, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


def optimum(X, y, C, p, loss, weight=None, intercept=False):
    """The problem written a second time, for cvxpy; ``worst`` is minus the margin, or what costs nothing."""
    n, k = len(y), y.max() + 1
    W, b, worst = cp.Variable((X.shape[1], k)), cp.Variable(k), cp.Variable(n)
    F = X @ W + (np.ones((n, 1)) @ cp.reshape(b, (1, k), order="C") if intercept else 0)
    f = cp.vec(F, order="C")
    i, rival = np.nonzero(np.arange(k) != y[:, None])
    penalty = cp.sum_squares(W) if p == 2 else cp.square(cp.pnorm(cp.norm(W, 2, axis=0), p, **EXACT))
    losses, least = (cp.square(1 + worst), -1) if loss == "squared_hinge" else (cp.logistic(worst), -1e6)
    objective = 0.5 * penalty + C * (np.ones(n) if weight is None else weight) @ losses
    constraints = [worst[i] >= f[i * k + rival] - f[i * k + y[i]], worst >= least, cp.sum(b) == 0]
    problem = cp.Problem(cp.Minimize(objective), constraints)
    return problem.solve(solver="CLARABEL", tol_gap_rel=1e-7, tol_gap_abs=1e-7, tol_feas=1e-7)


def losses_of(F, y, loss):
    """By their definition."""
    own = np.arange(len(y)), y
    f = F[own]
    rivals = F.copy()
    rivals[own] = -np.inf
    margin = f - rivals.max(axis=1)
    return np.maximum(0, 1 - margin) ** 2 if loss == "squared_hinge" else np.log1p(np.exp(-margin))


def objective(clf, X, y, weight=1.0):
    norms = np.linalg.norm(clf.coef_, axis=1)
    losses = losses_of(clf.decision_function(X), y, clf.loss)
    return 0.5 * (norms**clf.p).sum() ** (2 / clf.p) + clf.C * (weight * losses).sum()


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # at 1e-7; what is compared here says if it is
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.1, 2.0, 3.0, 8.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("d", "C"), [(3, 10.0), (8, 0.1), (8, 100.0)])
def test_optimum_is_that_of_cvxpy(loss, p, intercept, d, C):
    X, y = toy(d=d)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y))
    best = optimum(X, y, C, p, loss, weight, intercept)
    for rows in (X, sparse.csr_array(X)):
        clf = LpNormSVC(C=C, p=p, loss=loss, fit_intercept=intercept, tol=1e-7).fit(rows, y, weight)
        assert clf.objective_ == pytest.approx(best, rel=1e-6)
        assert 0 <= clf.dual_gap_ <= 1e-7
        assert objective(clf, X, y, weight) == pytest.approx(clf.objective_, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.2, 2.0, 5.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_kernel_optimum_is_that_of_cvxpy(loss, p, intercept):
    X, y = toy(seed=3)
    K = rbf_kernel(X, gamma=0.1)
    best = optimum(np.linalg.cholesky(K + 1e-12 * np.eye(len(y))), y, 0.5, p, loss, None, intercept)
    settings = {"C": 0.5, "p": p, "loss": loss, "fit_intercept": intercept, "tol": 1e-6}
    clf = LpNormSVC(kernel="rbf", gamma=0.1, **settings).fit(X, y)
    assert clf.objective_ == pytest.approx(best, rel=2e-6)
    assert clf.dual_gap_ <= 1e-6
    given = LpNormSVC(kernel="precomputed", **settings).fit(K, y)
    assert given.objective_ == pytest.approx(best, rel=2e-6)
    coef = np.zeros((len(y), 4))
    coef[given.support_] = given.dual_coef_
    norms = np.sqrt(np.einsum("il,il->l", coef, K @ coef))
    value = 0.5 * (norms**p).sum() ** (2 / p) + 0.5 * losses_of(given.decision_function(K), y, loss).sum()
    assert given.objective_ == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("p", [1.3, 2.0, 6.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_two_classes_with_the_log_loss_are_logistic_regression(p, intercept):
    """Two vectors of opposite sign and half of w each: the penalty is 2^(2/p) ||w||^2 / 8."""
    X, y = toy(60, 5, 2, seed=4)
    clf = LpNormSVC(C=0.7, p=p, loss="log_loss", fit_intercept=intercept, tol=1e-10).fit(X, y)
    strength = 0.7 * 4 / 2 ** (2 / p)
    theirs = LogisticRegression(C=strength, fit_intercept=intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(clf.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(clf.intercept_, theirs.intercept_, atol=1e-4)


def test_two_classes_with_the_squared_hinge_are_those_of_liblinear():
    X, y = toy(60, 5, 2, seed=4)
    clf = LpNormSVC(C=0.7, p=4, loss="squared_hinge", fit_intercept=False, tol=1e-10).fit(X, y)
    theirs = LinearSVC(C=0.7 * 4 / 2**0.5, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(clf.coef_, theirs.coef_, atol=1e-4)


def test_the_squared_hinge_with_two_is_the_margin_distribution_without_its_upper_part():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16, y[:400]
    clf = LpNormSVC(C=0.1, p=2, loss="squared_hinge", tol=1e-6).fit(X, y)
    odm = ODMClassifier(C=40, mu=0, theta=0, tol=1e-6).fit(X, y)
    assert clf.objective_ == pytest.approx(odm.objective_, rel=3e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.05, 3.0, 50.0])
@pytest.mark.parametrize("size", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("shape", [(60, 3, 4), (12, 40, 3), (40, 2, 2)])
def test_interior_points_know_no_scale(loss, p, size, shape):
    """Few steps to a small gap by the definitions of both problems, where block ascent would crawl."""
    n, d, k = shape
    cap = np.random.default_rng(1).uniform(1, 30, n)
    X, y = toy(n, d, k, seed=2)
    point = solve_interior(size * X, y, cap, k, p, fit_intercept=True, tol=1e-9, max_iter=100, loss=MarginLoss(loss))
    assert point.n_iter < 90
    S = point.alpha.sum(axis=1)
    if loss == "squared_hinge":
        dual = (S - S**2 / (4 * cap)).sum()
    else:
        assert (cap * (1 + 1e-9) >= S).all()
        u = np.clip(S / cap, 1e-300, 1 - 1e-16)
        dual = -(cap * (u * np.log(u) + (1 - u) * np.log1p(-u))).sum()
    coef = -point.alpha
    coef[np.arange(n), y] = S
    lengths, q = np.linalg.norm(coef.T @ (size * X), axis=1), p / (p - 1)
    dual -= 0.5 * lengths.max() ** 2 * ((lengths / lengths.max()) ** q).sum() ** (2 / q)
    assert point.objective == pytest.approx(dual, rel=1e-7)
    np.testing.assert_allclose(coef.sum(axis=0), 0, atol=1e-6 * cap.max())
    assert (point.alpha >= 0).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.05, 1.5, 4.0, 50.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_every_p_is_certified(loss, p, container):
    """Too many parameters for interior points: block ascent alone; float32 rows have the same machine."""
    X, y = load_digits(return_X_y=True)
    X = np.hstack([X[:500] / 16, np.random.default_rng(0).normal(size=(500, 150)) / 10])
    clf = LpNormSVC(C=0.1, p=p, loss=loss, random_state=0).fit(container(X), y[:500])
    assert clf.dual_gap_ <= 1e-3
    assert objective(clf, X, y[:500]) == pytest.approx(clf.objective_, rel=1e-9)
    single = clone(clf).fit(container(X.astype(np.float32)), y[:500])
    assert single.decision_function(X[:3].astype(np.float32)).dtype == np.float32
    assert single.objective_ == pytest.approx(clf.objective_, rel=2e-3)
    exact = clone(clf).set_params(tol=1e-6).fit(container(X), y[:500])
    assert exact.dual_gap_ <= 1e-6
    assert clf.objective_ * (1 - clf.dual_gap_) <= exact.objective_ <= clf.objective_ * (1 + 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_warm_start_along_C_and_p(loss, kernel):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    clf = LpNormSVC(C=0.1, p=1.5, loss=loss, warm_start=True, random_state=0, kernel=kernel, tol=1e-4).fit(X, y)
    first = clf.n_iter_
    assert clf.fit(X, y).n_iter_ < max(2, first / 2)
    for change in ({"C": 0.05}, {"C": 0.2}, {"p": 1.7}, {"p": 3.0}, {"loss": "hinge"}):
        clf.set_params(**change).fit(X, y)
        assert clf.objective_ == pytest.approx(clone(clf).fit(X, y).objective_, rel=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.3, 4.0])
def test_weights_are_repetitions(loss, p):
    X, y = toy(40, 6, 3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    base = LpNormSVC(C=0.2, p=p, loss=loss, tol=1e-6, class_weight="balanced", random_state=0)
    weighted = clone(base).fit(X, y, sample_weight=times)
    repeated = clone(base).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [1.1, 6.0])
def test_edges(loss, p):
    X, y = toy(30, 3, 3)
    X = np.vstack([X, np.zeros(3), X[:2]])  # a zero row, duplicate rows
    names = np.array(["a", "b", "ü<c>"])[np.r_[y, 0, y[:2]]]
    X.setflags(write=False)
    for intercept in (False, True):
        clf = LpNormSVC(C=0.1, p=p, loss=loss, fit_intercept=intercept).fit(X, names)
        assert set(clf.predict(X)) <= set(names) and clf.dual_gap_ <= 1e-3
    nothing = LpNormSVC(p=p, loss=loss).fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
    assert np.all(nothing.coef_ == 0) and nothing.dual_gap_ <= 1e-3
    assert nothing.objective_ == pytest.approx(6 if loss == "squared_hinge" else 6 * np.log(2))
    far = LpNormSVC(C=0.1, p=p, loss=loss, tol=1e-5).fit(X + 1e6, names)  # a free intercept takes the offset
    assert far.objective_ == pytest.approx(clf.objective_, rel=2e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_many_classes(loss):
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(1000, 20)), 2, axis=0), np.repeat(np.arange(1000), 2)
    clf = LpNormSVC(p=1.5, loss=loss, tol=1e-2).fit(X, y)
    assert clf.dual_gap_ <= 1e-2 and clf.score(X, y) > 0.9


def test_class_vectors_that_only_the_hinge_can_have_are_refused():
    X, y = toy(30, 8, 3)
    before = get_config()["max_dense_bytes"]
    try:
        set_config(max_dense_bytes=100)
        with pytest.raises(ValueError, match=r"loss='log_loss' with solver='auto' needs dense .* max_dense_bytes=100"):
            LpNormSVC(loss="log_loss").fit(sparse.csr_array(X), y)
        assert LpNormSVC().fit(sparse.csr_array(X), y).dual_gap_ <= 1e-3
    finally:
        set_config(max_dense_bytes=before)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_files_and_graphs_score_the_same(kernel, tmp_path):
    X, y = toy(40, 6, 3)
    clf = LpNormSVC(loss="log_loss", solver="paper", p=1.5, kernel=kernel).fit(X, y)
    save_model(clf, tmp_path / "model.skm")
    again = load_model(tmp_path / "model.skm")
    assert again.get_params() == clf.get_params()
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(again.outer_objectives_, clf.outer_objectives_)
    session = onnxruntime.InferenceSession(to_onnx(clf, X).SerializeToString(), providers=["CPUExecutionProvider"])
    labels = session.run(None, {session.get_inputs()[0].name: X})[0]
    np.testing.assert_array_equal(labels.ravel(), clf.predict(X))
