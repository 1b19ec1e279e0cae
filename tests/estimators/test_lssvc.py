import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import LSSVC, LDMClassifier
from skmargin.estimators._base import MarginClassifier
from skmargin.model_selection import margin_path
from skmargin.solvers.tuning import DEFAULT

IRIS, SPECIES = load_iris(return_X_y=True)
TWO = SPECIES > 0
X, Y = IRIS[TWO], SPECIES[TWO]
SIGN = np.where(Y == 2, 1.0, -1.0)


@parametrize_with_checks([LSSVC(), LSSVC(kernel="linear", multi_class="ovr"), LSSVC(C=[0.1, 1.0], multi_class="ovo")])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_linear_machine_is_ridge_regression_with_a_free_intercept():
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    model = LSSVC(C=3.0, kernel="linear").fit(X, Y, sample_weight=weight)
    ridge = Ridge(alpha=1 / 3, solver="cholesky").fit(X, SIGN, sample_weight=weight)
    assert_allclose(model.coef_[0], ridge.coef_, rtol=1e-8)
    assert_allclose(model.intercept_[0], ridge.intercept_, rtol=1e-8)
    residual = SIGN - model.decision_function(X)
    assert_allclose(model.objective_, 0.5 * (model.coef_**2).sum() + 1.5 * weight @ residual**2)
    sparse_model = LSSVC(C=3.0, kernel="linear").fit(sparse.csr_array(X), Y, sample_weight=weight)
    assert_allclose(sparse_model.coef_, model.coef_, rtol=1e-8)
    plain = LSSVC(C=3.0, kernel="linear", fit_intercept=False).fit(X, Y)
    assert_allclose(plain.coef_[0], Ridge(alpha=1 / 3, fit_intercept=False).fit(X, SIGN).coef_, rtol=1e-8)


def test_kernel_machine_solves_its_linear_system():
    model = LSSVC(C=10.0, gamma=0.4).fit(X, Y)
    K = rbf_kernel(X, gamma=0.4)
    n = len(X)
    A = np.block([[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), K + np.eye(n) / 10]])
    solution = np.linalg.solve(A, np.append(0, SIGN))
    assert_allclose(model.decision_function(X), K @ solution[1:] + solution[0], atol=1e-9)
    assert_allclose(model.dual_coef_.sum(), 0, atol=1e-9)
    a = model.dual_coef_[0]
    assert_allclose(model.objective_, 0.5 * a @ K @ a + 5 * ((SIGN - model.decision_function(X)) ** 2).sum())


def quadratic(X):
    """Features of the kernel (x'z + 1)^2."""
    i, j = np.triu_indices(X.shape[1], 1)
    return np.hstack([np.ones((len(X), 1)), np.sqrt(2) * X, X**2, np.sqrt(2) * X[:, i] * X[:, j]])


@pytest.mark.parametrize("C", [1e8, 1e12, 1e16])
@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_of_a_kernel_of_low_rank_do_not_cancel(C, intercept):
    """Along vectors of which the kernel knows nothing they would be C times the residual: 1e4 times the scores."""
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(60, 4)), rng.normal(size=(30, 4))
    y = np.where(rows[:, 0] + 0.8 * rng.normal(size=60) > 0, 1.0, -1.0)
    weight = rng.integers(1, 4, 60).astype(float)
    Phi = quadratic(rows)
    A = np.hstack([Phi, np.full((60, 1), float(intercept))])
    stacked = np.vstack([np.sqrt(weight)[:, None] * A, np.eye(15, 16) / np.sqrt(C)])
    w = np.linalg.lstsq(stacked, np.append(np.sqrt(weight) * y, np.zeros(15)), rcond=1e-14)[0]
    truth = quadratic(others) @ w[:-1] + w[-1] * intercept
    kernel = {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 1.0, "fit_intercept": intercept}
    model = LSSVC(C=C, **kernel).fit(rows, y, sample_weight=weight)
    assert_allclose(model.decision_function(others), truth, atol=1e-5)
    path = margin_path(LSSVC(**kernel), rows, y, "C", [1.0, C], sample_weight=weight)
    assert_allclose(path[1].decision_function(others), truth, atol=1e-5)
    if not intercept:
        ldm = LDMClassifier(C=C, lambda1=0, lambda2=0, loss="least_squares", **kernel)
        ldm.fit(rows, y, sample_weight=weight)
        assert_allclose(ldm.decision_function(others), truth, atol=1e-5)


def test_coefficients_that_must_cancel_are_told():
    labels = np.random.default_rng(0).permutation(SIGN)
    LSSVC(C=1e6, gamma=1e-4).fit(X, labels)
    with pytest.warns(ConvergenceWarning, match="cancel"):
        LSSVC(C=1e14, gamma=1e-4).fit(X, labels)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_leave_one_out_equals_explicit_refits(kernel):
    values = [0.01, 1.0, 100.0]
    rows = np.arange(0, 150, 3)
    model = LSSVC(C=values, kernel=kernel, gamma=0.5).fit(IRIS[rows], SPECIES[rows])
    for C, score in zip(values, model.cv_scores_, strict=True):
        one = LSSVC(C=C, kernel=kernel, gamma=0.5)
        explicit = cross_val_predict(one, IRIS[rows], SPECIES[rows], cv=LeaveOneOut())
        assert_allclose(score, (explicit == SPECIES[rows]).mean())
    assert model.C_ in values


def test_folds_equal_explicit_refits_for_every_width():
    model = LSSVC(C=[0.1, 10.0], gamma=[0.05, 0.5], cv=4, multi_class="ovr").fit(IRIS, SPECIES)
    for g, gamma in enumerate((0.05, 0.5)):
        for c, C in enumerate((0.1, 10.0)):
            explicit = cross_val_predict(LSSVC(C=C, gamma=gamma, multi_class="ovr"), IRIS, SPECIES, cv=4)
            assert_allclose(model.cv_scores_[g, c], (explicit == SPECIES).mean())
    assert (model.C_, model.gamma_) == ([0.1, 10.0][model.cv_scores_.max(axis=0).argmax()], model.gamma_)


def test_basis_of_all_rows_is_the_full_machine():
    full = LSSVC(C=2.0, gamma=0.5).fit(X, Y)
    basis = LSSVC(C=2.0, gamma=0.5, basis="random", n_basis=len(X), random_state=0).fit(X, Y)
    assert_allclose(basis.decision_function(X), full.decision_function(X), atol=1e-5)
    few = LSSVC(C=2.0, gamma=0.5, basis="cholesky", n_basis=30).fit(IRIS, SPECIES)
    assert few.dual_coef_.shape == (3, 30)
    assert few.score(IRIS, SPECIES) > 0.94


def test_iterative_solver_agrees(monkeypatch):
    direct = LSSVC(C=2.0, gamma=0.5).fit(IRIS, SPECIES)
    linear = LSSVC(C=2.0, kernel="linear").fit(IRIS, SPECIES)
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 3**2}))
    again = LSSVC(C=2.0, gamma=0.5, basis="all", tol=1e-12).fit(IRIS, SPECIES)
    assert again.n_iter_ > 1
    assert_allclose(again.decision_function(IRIS), direct.decision_function(IRIS), atol=1e-8)
    again = LSSVC(C=2.0, kernel="linear", tol=1e-14).fit(IRIS, SPECIES)
    assert_allclose(again.decision_function(IRIS), linear.decision_function(IRIS), atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C"),
        ({"C": [1.0, -1.0]}, "C must be"),
        ({"kernel": lambda A, B: -(A @ B.T)}, "positive semi-definite"),
    ],
)
def test_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        LSSVC(**parameters).fit(IRIS, SPECIES)
