"""The machine with unlabelled rows: kernels, and stochastic gradients inside."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import MultiMarginSVC, SemiSupervisedMarginSVC


@parametrize_with_checks([SemiSupervisedMarginSVC(kernel="rbf")])
def test_scikit_learn(estimator, check):
    check(estimator)


def clouds(n=60, k=3, shown=0.25, seed=0):
    """Rows, the labels of some of them, and which those are."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    X = 2 * rng.normal(size=(k, 3))[y] + rng.normal(size=(n, 3))
    known = rng.random(n) < shown
    known[:k] = True
    return X, np.where(known, y, -1), known


def minimum(factor, labels, cap):
    """The optimum of the convex machine for these labels by cvxpy; ``factor`` has the rows of the kernel's map."""
    n, k = len(labels), labels.max() + 1
    W, b, E = cp.Variable((factor.shape[1], k)), cp.Variable((1, k)), np.eye(k)[labels]
    F = factor @ W + np.ones((n, 1)) @ b
    own = cp.sum(cp.multiply(F, E), axis=1, keepdims=True)
    hinges = cp.sum(cp.multiply(cp.pos(1 - own @ np.ones((1, k)) + F), (1 - E) * cap[:, None]))
    pairs = sum(cp.sum_squares(W[:, j] - W[:, l]) for j in range(k) for l in range(j + 1, k))
    value = 0.5 * (pairs + cp.sum_squares(W) + cp.sum_squares(b)) + hinges
    return cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL", tol_gap_rel=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("C_unlabeled", ["auto", "even", 0.3])
def test_a_kernel_machine_is_optimal_for_its_labels(container, C_unlabeled):
    X, partly, known = clouds()
    X = X.astype(np.float32).astype(np.float64)
    model = SemiSupervisedMarginSVC(2.0, C_unlabeled=C_unlabeled, kernel="rbf", gamma=0.3, tol=1e-5, random_state=0)
    model.fit(container(X), partly)
    named = {"auto": 1 / (~known).sum(), "even": 2 * known.sum() / (~known).sum()}
    cap = np.where(known, 2.0, named.get(C_unlabeled, C_unlabeled))
    K = rbf_kernel(X, gamma=0.3)
    best = minimum(np.linalg.cholesky(K + 1e-12 * np.eye(len(K))), model.transduction_, cap)
    assert model.objective_ == pytest.approx(best, rel=2e-5)
    assert model.dual_gap_ <= 1e-5
    assert np.array_equal(model.transduction_[known], partly[known])
    for stage in (0.01, 0.1, 1.0):
        assert (np.diff(model.trajectory_[model.trajectory_[:, 0] == stage, 1]) <= 1e-9).all()
    F = model.decision_function(X)  # the labels are those of least loss, unless the balance asks for others
    assert np.mean(F.argmax(axis=1)[~known] == model.transduction_[~known]) > 0.9


def test_a_linear_kernel_is_the_linear_machine():
    X, partly, _ = clouds(80)
    linear = SemiSupervisedMarginSVC(tol=1e-7, random_state=0).fit(X, partly)
    given = SemiSupervisedMarginSVC(tol=1e-7, kernel="precomputed", random_state=0).fit(X @ X.T, partly)
    np.testing.assert_array_equal(given.transduction_, linear.transduction_)
    assert given.objective_ == pytest.approx(linear.objective_, rel=1e-6)
    np.testing.assert_allclose(given.decision_function(X @ X.T), linear.decision_function(X), atol=1e-3)
    two = np.array([-1, "a", "b", -1], dtype=object)[partly + 1]
    named = SemiSupervisedMarginSVC(kernel="rbf", random_state=0).fit(X, two)
    assert set(named.transduction_) == {"a", "b"}
    assert named.dual_coef_.shape[1] == 1


def test_weights_of_a_kernel_machine_are_repetitions():
    X, partly, _ = clouds()
    times = np.random.default_rng(1).integers(0, 4, len(partly))
    times[:3] = 1
    model = SemiSupervisedMarginSVC(kernel="rbf", balance=False, tol=1e-8, random_state=0)
    weighted = clone(model).fit(X, partly, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(partly, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_array_equal(np.repeat(weighted.transduction_, times), repeated.transduction_)
    lost = np.flatnonzero((times == 0) & (partly < 0))
    np.testing.assert_array_equal(weighted.transduction_[lost], weighted.predict(X[lost]))


@pytest.mark.parametrize("settings", [{"kernel": "rbf"}, {"solver": "svrg", "tol": 0.1}])
def test_without_unlabelled_rows_it_is_the_supervised_machine(settings):
    X, y = load_iris(return_X_y=True)
    ours, theirs = (kind(0.1, random_state=0, **settings) for kind in (SemiSupervisedMarginSVC, MultiMarginSVC))
    ours, theirs = ours.fit(X, y), theirs.fit(X, y)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-12)
    np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))


@pytest.mark.filterwarnings("ignore:SemiSupervisedMarginSVC stopped")
@pytest.mark.parametrize("learning_rate", ["adaptive", 1e-4])
def test_stochastic_gradients_inside(learning_rate):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    partly = np.where(np.arange(300) < 60, y, -1)
    options = {"C_unlabeled": "even", "random_state": 0}
    svrg = SemiSupervisedMarginSVC(0.1, solver="svrg", learning_rate=learning_rate, max_iter=200, **options)
    svrg.fit(X, partly)
    for stage in (0.01, 0.1, 1.0):
        assert (np.diff(svrg.trajectory_[svrg.trajectory_[:, 0] == stage, 1]) <= 0).all()
    cap = np.where(partly < 0, 60 / 240, 1.0)
    best = MultiMarginSVC(0.1, tol=1e-7).fit(X, svrg.transduction_, sample_weight=cap).objective_
    assert best * (1 - 1e-6) <= svrg.objective_ <= 1.1 * best
    assert svrg.objective_ * (1 - svrg.dual_gap_) <= best * (1 + 1e-6)
    exact = SemiSupervisedMarginSVC(0.1, **options).fit(X, partly)
    assert np.mean(svrg.transduction_ == exact.transduction_) > 0.9


def test_what_does_not_fit_is_refused():
    X, partly, _ = clouds()
    with pytest.raises(ValueError, match="solver='svrg' needs kernel='linear'"):
        SemiSupervisedMarginSVC(solver="svrg", kernel="rbf").fit(X, partly)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model = SemiSupervisedMarginSVC(kernel="sigmoid", gamma=1.0, coef0=-1.0, max_iter=50).fit(X, partly)
    assert model.dual_gap_ is None
