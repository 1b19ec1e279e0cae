"""Machines as they are published, linear or with a kernel (estimators/_scores.py)."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from skmargin import M3SVC, CrammerSingerSVC, LpNormSVC, MultiMarginSVC, ODMClassifier

LINEAR, KERNEL = {"coef_"}, {"dual_coef_", "support_", "support_vectors_"}


@pytest.mark.parametrize("machine", [CrammerSingerSVC, M3SVC, MultiMarginSVC, ODMClassifier, LpNormSVC])
def test_a_refit_with_another_kernel_leaves_nothing_behind(machine):
    X, y = load_iris(return_X_y=True)
    model = machine(tol=1e-2)
    kinds = {"linear": LINEAR, "rbf": KERNEL, "precomputed": KERNEL - {"support_vectors_"}}
    for kernel in ("linear", "rbf", "precomputed", "linear"):
        model.set_params(kernel=kernel).fit(X @ X.T if kernel == "precomputed" else X, y)
        assert (LINEAR | KERNEL) & vars(model).keys() == kinds[kernel]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_class_vectors_may_be_replaced(order, dtype):
    X, y = load_iris(return_X_y=True)
    model = CrammerSingerSVC().fit(X, y)
    expected = model.predict(X)
    model.coef_ = np.array(model.coef_, dtype=dtype, order=order)
    assert (model.predict(X) == expected).mean() > 0.98


@pytest.mark.parametrize("strided", ["data", "indices", "indptr"])
@pytest.mark.parametrize("labels", [np.array(["a", "b", "c"]), np.array([5, 7, 9]), np.array([True, False, True])])
def test_sparse_rows_have_the_scores_of_dense_ones(strided, labels):
    X, y = load_iris(return_X_y=True)
    X[::7] = 0
    model = CrammerSingerSVC(tol=1e-6).fit(X, labels[y])
    rows = sparse.csr_array(X)
    setattr(rows, strided, np.repeat(getattr(rows, strided), 2)[::2])  # every second number of an array
    np.testing.assert_allclose(model.decision_function(rows), model.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))


@pytest.mark.parametrize("machine", [CrammerSingerSVC, M3SVC])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_kernel_machines_predict_the_class_of_the_largest_score(machine, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    model = machine(kernel="rbf", tol=1e-2).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), scores > 0 if n_classes == 2 else scores.argmax(axis=1))


@pytest.mark.parametrize("n_features", [4, 100])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_stored_by_columns(n_features, n_classes):
    """Or with gaps, or of a machine with another kernel: the order in memory changes no score."""
    rng, y = np.random.default_rng(0), np.arange(60) % n_classes
    X = rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(60, n_features))
    for kernel in ("linear", "rbf"):
        model = CrammerSingerSVC(kernel=kernel).fit(X, y)
        scores = model.decision_function(X)
        for rows in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], np.asfortranarray(X)[::-1][::-1]):
            found = model.decision_function(rows)
            np.testing.assert_allclose(found, scores, atol=1e-12)
            assert found.flags.c_contiguous
            np.testing.assert_array_equal(model.predict(rows), model.predict(X))
    broken = np.asfortranarray(X)
    broken[3, 2] = np.nan
    for method in (model.set_params(kernel="linear").fit(X, y).predict, model.decision_function):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            method(broken)
