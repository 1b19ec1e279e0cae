import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from skmargin import LSSVC, M3SVC, CrammerSingerSVC
from skmargin.inspection import generalization_bound, pairwise_margins, pairwise_score_gaps

X, y = load_iris(return_X_y=True)


def test_linear_widths_from_the_definition():
    model = LogisticRegression(solver="newton-cholesky").fit(X, y)
    widths = pairwise_margins(model)
    for k in range(3):
        for l in range(3):
            if k != l:
                assert_allclose(widths[k, l], 2 / np.linalg.norm(model.coef_[k] - model.coef_[l]))
    assert np.isnan(widths.diagonal()).all()


def test_binary_width_is_the_width_of_the_tube():
    A, b = load_breast_cancer(return_X_y=True)
    A = StandardScaler().fit_transform(A)
    model = LinearSVC(random_state=0).fit(A, b)
    assert_allclose(pairwise_margins(model)[0, 1], 2 / np.linalg.norm(model.coef_))
    model = SVC(kernel="linear").fit(A, b)
    assert_allclose(pairwise_margins(model)[0, 1], 2 / np.linalg.norm(model.coef_))


def test_one_vs_one_machines_agree_with_the_machine_of_the_pair_alone():
    for model in [SVC(kernel="linear"), SVC(kernel="rbf", gamma=0.3), SVC(kernel="poly", gamma=0.1, coef0=1)]:
        widths = pairwise_margins(model.fit(X, y))
        for k, l in [(0, 1), (0, 2), (1, 2)]:
            rows = (y == k) | (y == l)
            alone = SVC(**model.get_params()).fit(X[rows], y[rows])
            assert_allclose(widths[k, l], pairwise_margins(alone)[0, 1], rtol=1e-6)
        assert_array_equal(widths, widths.T)
    model = OneVsOneClassifier(LinearSVC(random_state=0)).fit(X, y)
    assert_allclose(pairwise_margins(model)[1, 2], 2 / np.linalg.norm(model.estimators_[2].coef_))


def test_one_vs_rest_pipelines_and_sparse_coefficients():
    model = OneVsRestClassifier(LinearSVC(random_state=0)).fit(X, y)
    whole = LinearSVC(random_state=0).fit(X, y)
    assert_allclose(pairwise_margins(model), pairwise_margins(whole), rtol=1e-3)
    assert_allclose(pairwise_margins(make_pipeline(whole)), pairwise_margins(whole))
    expected = pairwise_margins(whole)
    assert_allclose(pairwise_margins(whole.sparsify()), expected)


def test_two_classes_with_a_vector_each():
    model = LinearSVC(random_state=0).fit(X[:100], y[:100])
    model.coef_, model.intercept_ = np.array([[3.0, 0, 0, 0], [0, 4.0, 0, 0]]), np.zeros(2)
    assert_allclose(pairwise_margins(model)[0, 1], 2 / 5)


def test_equal_vectors_have_an_infinite_width():
    model = LinearSVC(random_state=0).fit(X, y)
    model.coef_ = np.zeros((3, 4))
    assert np.isinf(pairwise_margins(model)[0, 1])


class Upright(BaseEstimator):
    """A machine that keeps a row of coefficients for each support vector instead of a column."""

    def __init__(self, kernel="rbf", gamma=0.3):
        self.kernel = kernel
        self.gamma = gamma

    def fit(self, X, y):
        model = SVC(kernel=self.kernel, gamma=self.gamma).fit(X, y)
        self.classes_, self.support_vectors_ = model.classes_, model.support_vectors_
        self.dual_coef_, self.intercept_ = model.dual_coef_.T, model.intercept_
        return self


def test_coefficients_may_lie_either_way():
    rows = y != 2
    widths = [pairwise_margins(model.fit(X[rows], y[rows])) for model in (SVC(gamma=0.3), Upright())]
    assert_allclose(*widths)


@pytest.mark.parametrize("machine", [CrammerSingerSVC, M3SVC])
def test_kernel_machines_by_linear_ones(machine):
    """A polynomial of degree one is the linear kernel, whose class vectors are known; gamma is the one of the fit."""
    A, t = X[::5] / X.std(), y[::5]
    linear = machine(tol=1e-8).fit(A, t)
    kernel = machine(kernel="poly", degree=1, gamma=1.0, tol=1e-8).fit(A, t)
    assert_allclose(pairwise_margins(kernel), pairwise_margins(linear), rtol=1e-3)
    scaled = machine(kernel="rbf").fit(A, t)
    same = machine(kernel="rbf", gamma=1 / (A.shape[1] * A.var())).fit(A, t)
    assert_allclose(pairwise_margins(scaled), pairwise_margins(same), rtol=1e-6)


def test_as_many_support_vectors_as_classes():
    A, t = np.array([[0.0, 1.0], [2.0, 0.0], [-1.0, -3.0]]), [0, 1, 2]
    linear, kernel = (CrammerSingerSVC(kernel=k, degree=1, gamma=1.0).fit(A, t) for k in ("linear", "poly"))
    assert kernel.dual_coef_.shape == (3, 3)
    kernel.dual_coef_ = kernel.dual_coef_ @ np.diag([1.0, 2.0, 3.0])  # no longer symmetric: class vectors 1, 2, 3 times
    linear.coef_ = linear.coef_ * np.array([[1.0], [2.0], [3.0]])
    assert_allclose(pairwise_margins(kernel), pairwise_margins(linear), rtol=1e-4)


def test_classifiers_without_vectors_are_refused():
    with pytest.raises(TypeError, match="neither coef_ nor dual_coef_"):
        pairwise_margins(GradientBoostingClassifier(n_estimators=1).fit(X, y))
    with pytest.raises(TypeError, match="precomputed"):
        pairwise_margins(SVC(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(TypeError, match="keeps no support vectors"):
        pairwise_margins(CrammerSingerSVC(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(NotFittedError):
        pairwise_margins(LinearSVC())


def test_score_gaps_by_hand():
    scores = np.array([[3.0, 1, 0], [5, 1, 1], [1, 9, 0], [9, 0, 0]])
    gaps = pairwise_score_gaps([0, 0, 1, 0], scores, [0, 1, 2])
    assert_allclose(gaps, [[np.nan, 4, 4], [8, np.nan, 9], [np.nan, np.nan, np.nan]])
    assert_allclose(pairwise_score_gaps(["a", "b"], [-2.0, 3.0], ["a", "b"]), [[np.nan, 2], [3, np.nan]])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("basis", [None, "random"])
def test_pair_machines_of_the_library(kernel, basis):
    parameters = {"kernel": kernel, "gamma": 0.3}
    model = LSSVC(**parameters) if basis is None else LSSVC(**parameters, basis=basis, n_basis=150)
    widths = pairwise_margins(model.fit(X, y))
    rows = y != 2
    alone = LSSVC(**parameters).fit(X[rows], y[rows])
    assert_allclose(widths[0, 1], pairwise_margins(alone)[0, 1], rtol=1e-3)
    with pytest.raises(TypeError, match="decides between pairs"):
        generalization_bound(model, X, y)
    ovr = LSSVC(**parameters, multi_class="ovr").fit(X, y)
    assert generalization_bound(ovr, X, y).norm > 0
