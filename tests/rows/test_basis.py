import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skmargin.rows.basis import METHODS, basis_rows
from skmargin.rows.gram import gram

rng = np.random.default_rng(0)
X = np.vstack([rng.standard_normal((20, 3)) + 5 * i for i in range(4)])


def choose(rows, n, method, seed=0):
    return basis_rows(
        rows, n, method, np.random.RandomState(seed), lambda c: gram(rows, rows[c], "rbf", 0.1), kernel="rbf", gamma=0.1
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_distinct_sorted_rows_and_the_same_for_the_same_seed(method, container):
    rows = choose(container(X), 12, method)
    assert len(rows) == 12
    assert (np.diff(rows) > 0).all()
    assert (rows == choose(container(X), 12, method)).all()


@pytest.mark.parametrize("method", ["kmeans++", "cholesky"])
def test_every_cluster_gets_a_point(method):
    assert len(np.unique(choose(X, 4, method) // 20)) == 4


def test_cholesky_stops_when_the_basis_represents_every_row():
    twice = np.vstack([X[:10], X[:10]])
    rows = choose(twice, 15, "cholesky")
    assert len(rows) == 10
    K = gram(twice, None, "rbf", 0.1)
    C = K[:, rows]
    assert_allclose(C @ np.linalg.solve(K[np.ix_(rows, rows)], C.T), K, atol=1e-8)


def test_unknown_method():
    with pytest.raises(ValueError, match="basis must be one of"):
        choose(X, 4, "best")


def test_cholesky_refuses_a_kernel_without_a_pivot():
    kernel = {"kernel": "sigmoid", "gamma": 0.01, "coef0": -9.0}
    with pytest.raises(ValueError, match="positive semi-definite"):
        basis_rows(X, 4, "cholesky", np.random.RandomState(0), lambda c: gram(X, X[c], **kernel), **kernel)
