import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from skmargin.rows.gram import (
    base_matrix,
    check_symmetric,
    gram,
    gram_diagonal,
    is_definite,
    kernel_from_base,
    resolve_gamma,
    squared_distances,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((70, 5))
Z = rng.standard_normal((40, 5))
PARAMETERS = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.3, "degree": 2, "coef0": 1.0},
    "sigmoid": {"gamma": 0.1, "coef0": 0.5},
    "laplacian": {"gamma": 0.3},
}


def long_indices(A):
    """CSR with 64-bit indices."""
    A = sparse.csr_array(A)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


@pytest.mark.parametrize("kernel", PARAMETERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix, long_indices])
def test_equals_scikit_learn(kernel, dtype, container):
    A, B = container(X.astype(dtype)), container(Z.astype(dtype))
    wanted = pairwise_kernels(X, Z, metric=kernel, **PARAMETERS[kernel])
    K = gram(A, B, kernel, **PARAMETERS[kernel])
    assert K.dtype == dtype
    assert_allclose(K, wanted, rtol=0, atol=1e-12 if dtype == np.float64 else 2e-5)
    assert_allclose(gram(A, A, kernel, **PARAMETERS[kernel]), gram(A, None, kernel, **PARAMETERS[kernel]), atol=2e-5)


@pytest.mark.parametrize("kernel", PARAMETERS)
def test_itself_is_symmetric_and_diagonal_agrees(kernel):
    K = gram(X, None, kernel, **PARAMETERS[kernel])
    assert_array_equal(K, K.T)
    assert_allclose(gram_diagonal(X, kernel, **PARAMETERS[kernel]), K.diagonal(), rtol=1e-12)


def test_callable_and_precomputed():
    K = gram(X, Z, lambda A, B: A @ B.T)
    assert_allclose(K, X @ Z.T)
    assert_array_equal(gram(K, None, "precomputed"), K)
    with pytest.raises(ValueError, match="shape"):
        gram(X, Z, lambda A, B: A)
    with pytest.raises(ValueError, match="kernel must be"):
        gram(X, Z, "cosine")


def test_distances_survive_an_offset_and_duplicates():
    far = X.astype(np.float32) + 1000
    exact = ((far[:, None].astype(float) - far[None].astype(float)) ** 2).sum(axis=2)
    assert_allclose(squared_distances(far), exact, atol=1e-4)
    near, single = squared_distances(X), np.float32
    assert_allclose(squared_distances(X + 1e7, None, single), near, atol=1e-4)
    assert_allclose(squared_distances(X + 1e7, X[:9] + 1e7, single), near[:, :9], atol=1e-4)
    twice = np.vstack([X, X])
    D = squared_distances(twice)
    assert (D >= 0).all()
    assert_allclose(D[:70, 70:].diagonal(), 0, atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_gamma_scale_counts_weights_as_repeats(container):
    svc = SVC().fit(X, rng.integers(0, 2, len(X)))
    assert_allclose(resolve_gamma("scale", container(X)), svc._gamma)
    weight = rng.integers(1, 4, len(X)).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    assert_allclose(resolve_gamma("scale", container(X), weight), resolve_gamma("scale", repeated))
    assert resolve_gamma("auto", X) == 1 / 5
    assert resolve_gamma(0.7, X) == 0.7
    assert resolve_gamma("scale", np.zeros((3, 2))) == 1.0
    with pytest.raises(ValueError, match="gamma must be"):
        resolve_gamma("wide", X)


def test_gamma_scale_counts_what_sparse_rows_do_not_store():
    rows = 3 + X * (np.abs(X) > 0.7)
    rows[np.abs(X) < 0.7] = 0
    weight = rng.uniform(0.5, 2, len(X))
    for w in (None, weight):
        assert_allclose(resolve_gamma("scale", sparse.csr_array(rows), w), resolve_gamma("scale", rows, w))


def test_distances_of_rows_to_themselves_are_exactly_zero():
    far = 1e3 * np.random.default_rng(0).random((70, 5))
    for rows in (far, sparse.csr_array(far)):
        assert not squared_distances(rows).diagonal().any()
        assert (gram(rows, None, "rbf", 1.0).diagonal() == 1).all()


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("sign", [1, -1])
def test_symmetry_is_relative_to_the_size_of_the_matrix(size, container, sign):
    K = sign * size * (X @ X.T + 100)
    K[3, 5] += 1e-7 * np.abs(K).max()
    check_symmetric(container(K))
    K[3, 5] += 1e-4 * np.abs(K).max()
    with pytest.raises(ValueError, match="must be symmetric"):
        check_symmetric(container(K))


@pytest.mark.parametrize(
    ("kernel", "degree", "coef0", "definite"),
    [
        ("linear", 0.5, -1.0, True), ("rbf", 0.5, -1.0, True), ("laplacian", 0.5, -1.0, True), ("poly", 3, 0.0, True),
        ("poly", 2.0, 1.0, True), ("poly", 0.5, 1.0, False), ("poly", 2, -1.0, False), ("sigmoid", 3, 1.0, False),
        ("precomputed", 3, 0.0, False), (np.inner, 3, 0.0, False),
    ],
)  # fmt: skip
def test_kernels_that_are_scalar_products_whatever_the_rows(kernel, degree, coef0, definite):
    assert is_definite(kernel, degree, coef0) is definite
    if kernel == "poly":  # three rows are enough to see it
        K = gram(np.array([[1.0], [0.5], [0.1]]), None, kernel, 1.0, degree, coef0)
        assert (np.linalg.eigvalsh(K).min() > -1e-9) == definite


def test_a_linear_kernel_from_its_products():
    base = base_matrix(X, Z, "linear")
    for out in (None, np.full_like(base, np.nan), base):
        assert_array_equal(kernel_from_base(base, "linear", out=out), X @ Z.T)


def test_sparse_float32_rows_are_multiplied_as_asked():
    rng = np.random.default_rng(0)
    X = (100 + rng.normal(size=(40, 6))).astype(np.float32)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(squared_distances(rows, None, np.float64), squared_distances(X.astype(float)), atol=1e-9)
    for kernel in ("rbf", "poly", "linear"):
        wide = gram(X.astype(float), None, kernel, 0.01)
        np.testing.assert_allclose(gram(rows, None, kernel, 0.01, dtype=np.float64), wide, rtol=1e-10)
        np.testing.assert_allclose(gram(rows, rows[:9], kernel, 0.01, dtype=np.float64), wide[:, :9], rtol=1e-10)
    assert resolve_gamma("scale", rows) == pytest.approx(1 / (6 * X.astype(float).var()), rel=1e-6)


def test_read_only_input():
    A = X.copy()
    A.flags.writeable = False
    before = A.copy()
    gram(A, None, "rbf", 0.5)
    gram(A, None, "poly", 0.5)
    assert_array_equal(A, before)
