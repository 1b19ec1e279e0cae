"""Kernel rows on demand against whole matrices."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from skmargin._core import _ext
from skmargin._runtime.threads import blas_threads
from skmargin.rows.gram import gram
from skmargin.rows.kernel_rows import KernelRows, _Scorer, kernel_scores, kernel_winners, row_dtype
from skmargin.solvers.tuning import DEFAULT

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 7)) * (RNG.random((90, 7)) < 0.6) + 0.3
PARAMETERS = {"gamma": 0.2, "degree": 2, "coef0": 0.5}
WANTED = {
    "linear": pairwise_kernels(X, metric="linear"),
    "rbf": pairwise_kernels(X, metric="rbf", gamma=0.2),
    "poly": pairwise_kernels(X, metric="polynomial", gamma=0.2, degree=2, coef0=0.5),
    "sigmoid": pairwise_kernels(X, metric="sigmoid", gamma=0.2, coef0=0.5),
    "laplacian": pairwise_kernels(X, metric="laplacian", gamma=0.2),
    "precomputed": pairwise_kernels(X, metric="rbf", gamma=0.2),
}


def cosine(A, B):
    A, B = (M.toarray() if sparse.issparse(M) else M for M in (A, B))
    return np.cos(A.sum(axis=1)[:, None] - B.sum(axis=1))


WANTED[cosine] = cosine(X, X)  # type: ignore[index]


def data_for(kernel, container):
    return container(WANTED["precomputed"] if kernel == "precomputed" else X)


@pytest.mark.parametrize("cache_size", [100, 0.02])
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
@pytest.mark.parametrize("kernel", WANTED)
@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 3e-5), (np.float64, 1e-12)])
def test_squares_and_sums_are_those_of_the_matrix(kernel, container, dtype, atol, cache_size):
    rows = KernelRows(data_for(kernel, container), kernel, **PARAMETERS, dtype=dtype, cache_size=cache_size)
    K = WANTED[kernel]
    np.testing.assert_allclose(rows.diagonal, K.diagonal(), atol=1e-12, rtol=1e-12)
    for samples in (np.arange(3, 50, 2), np.arange(90)[::-1].copy(), np.array([1, 4, 88])):
        samples = samples[: rows.limit]
        rows.keep(samples)
        square = rows.square(samples)
        assert square.dtype == rows.dtype and square.shape[1] % 16 == 0
        np.testing.assert_allclose(square[:, : len(samples)], K[np.ix_(samples, samples)], atol=atol)
        assert not square[:, len(samples) :].any()
        matrix, row, column = rows.within(samples)
        if len(row):
            assert matrix is rows._store and len(samples) > 30
        else:
            row = column = np.arange(len(samples))
        np.testing.assert_allclose(matrix[np.ix_(row, column)], K[np.ix_(samples, samples)], atol=atol)
        coef = RNG.normal(size=(len(samples), 3))
        F = np.ones((3, 90), dtype=rows.dtype)
        rows.add(F, samples, coef)
        np.testing.assert_allclose(F, 1 + coef.T @ K[samples], atol=30 * atol)
    assert rows.has().sum() * 90 * rows.dtype.itemsize <= cache_size * 2**20 or kernel == "precomputed"


def test_long_sums_of_large_numbers_lose_about_as_much_as_the_rows_did():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(2000, 3))
    rows, samples, coef = KernelRows(Z, "rbf", 0.01), np.arange(2000), 1e3 * rng.normal(size=(2000, 2))
    rows.keep(samples)
    F = np.zeros((2, 2000), dtype=np.float32)
    rows.add(F, samples, coef)
    exact = coef.T @ rows._store[rows._slot].astype(np.float64)
    rounding = np.finfo(np.float32).eps * np.linalg.norm(coef, axis=0).mean()  # of the rows
    assert np.abs(F - exact).mean() < 2 * rounding  # five times in one sum


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_rows_of_many_features_are_completed_from_those_that_are_kept(kernel, container, monkeypatch):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(60, 200))
    K = gram(Z, kernel=kernel, gamma=0.01, coef0=1.0)
    rows = KernelRows(container(Z), kernel, 0.01, coef0=1.0, dtype=np.float64)
    computed, fill = [], KernelRows._fill

    def counted(self, samples, out, columns=None, scatter=False):
        computed.append(self.n if columns is None else len(columns))
        fill(self, samples, out, columns, scatter)

    monkeypatch.setattr(KernelRows, "_fill", counted)
    order = rng.permutation(60)
    for samples in (order[:30], order[25:45], order):
        rows.keep(samples)
    assert computed == [60, 30, 15]
    np.testing.assert_allclose(rows._store[rows._slot], K, atol=1e-12)


def test_rows_are_computed_once_and_evicted_only_for_wanted_ones():
    rows = KernelRows(X, "rbf", 0.2, dtype=np.float64, cache_size=0.05)
    kept = len(rows._store)
    assert 10 < kept < 60
    first = np.arange(10)
    rows.keep(first)
    rows.keep(first)
    assert rows.n_computed == 10
    rows.keep(np.r_[np.arange(5), np.arange(30, 30 + kept - 5)])
    assert rows.has()[:5].all() and rows.has().sum() == kept
    assert rows.n_computed == 10 + kept - 5


def test_precomputed_matrix_is_not_copied():
    K = WANTED["precomputed"]
    K.flags.writeable = False
    rows = KernelRows(K, "precomputed", dtype=np.float32)
    assert rows.dtype == np.float64  # the type of the matrix, better than asked for
    assert np.shares_memory(rows._store, K)
    rows.square(np.arange(5))
    K.flags.writeable = True


def test_number_type_of_a_tolerance():
    assert row_dtype(1e-3) == np.float32
    assert row_dtype(2e-4) == np.float32
    assert row_dtype(1e-4) == np.float64


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 3e-7), (np.float64, 5e-16)])
def test_vectorised_exponential(dtype, rtol):
    z = np.r_[0.0, np.geomspace(1e-30, 80, 20_001)].astype(dtype)  # exp(-z), z = norm + 0 - 2 * 0
    rows = np.zeros((1, len(z)), dtype=dtype)
    _ext.kernel_rbf(rows, np.zeros(1, dtype=dtype), z, 1.0)
    wanted = np.exp(-z.astype(np.longdouble))
    # an error of the argument by half a unit in the last place is unavoidable and grows with |z|
    np.testing.assert_array_less(abs(rows[0] - wanted) / wanted, rtol * (1 + z))
    assert rows[0, 0] == 1.0
    far = np.full((1, 9), -1e8, dtype=dtype)
    _ext.kernel_rbf(far, np.zeros(1, dtype=dtype), np.zeros(9, dtype=dtype), 1.0)
    assert (far >= 0).all() and (far < 1e-37).all()


def test_an_offset_costs_no_digits():
    rows = KernelRows(X + 1000.0, "rbf", 0.2, dtype=np.float32)
    square = rows.square(np.arange(90))[:, :90]
    np.testing.assert_allclose(square, WANTED["rbf"], atol=1e-6)


@pytest.mark.parametrize("new", [np.array, sparse.csr_array])
@pytest.mark.parametrize("old", [np.array, sparse.csr_array])
@pytest.mark.parametrize("kernel", WANTED)
def test_scores(kernel, old, new):
    Z = RNG.normal(size=(1100, 7))
    coef, intercept = RNG.normal(size=(90, 3)) * 100, np.array([1.0, 2.0, -3.0])
    full = gram(Z, X, "rbf" if kernel == "precomputed" else kernel, **PARAMETERS)
    rows = new(full if kernel == "precomputed" else Z)
    support = None if kernel == "precomputed" else old(X)
    scores = kernel_scores(rows, support, coef, intercept, kernel, **PARAMETERS)
    wanted = full @ coef + intercept
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, wanted, rtol=0, atol=1e-11 * abs(wanted).max())
    single = kernel_scores(rows.astype(np.float32), support, coef, intercept, kernel, **PARAMETERS)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, wanted, rtol=0, atol=2e-5 * abs(wanted).max())


@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_threads_do_not_change_a_bit(kernel, container):
    tuning = DEFAULT.changed(common={"product_work": 1e5})  # several products in each call
    Z, all_rows = container(np.random.default_rng(0).normal(size=(700, 150))), np.arange(700)
    found = []
    for jobs, blas in [(1, 1), (2, 1), (3, 2), (None, 2)]:
        with blas_threads(blas):
            rows = KernelRows(Z, kernel, 0.01, n_jobs=jobs, tuning=tuning)
            for some in (all_rows[::3], all_rows):  # the second time completed from what is kept
                rows.keep(some)
            found.append(rows.square(all_rows))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def machine(n_classes, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    support, rows = rng.normal(size=(80, 5)), rng.normal(size=(2 * DEFAULT.common.block_of(80) + 30, 5))
    return rows, (support, scale * rng.normal(size=(80, n_classes)), rng.normal(size=n_classes))


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])  # no row is doubtful, some, all
@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_winners_have_the_largest_scores(n_classes, scale):
    rows, model = machine(n_classes, scale=scale)
    scores = kernel_scores(rows, *model, "rbf", 0.3)
    wanted = scores[:, 0] > 0 if n_classes == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(kernel_winners(rows, *model, 0.3), wanted)


def test_winners_that_float32_cannot_tell():
    rows, (support, coef, intercept) = machine(4)
    coef[:, 2], intercept[2] = coef[:, 0] * (1 + 1e-10), intercept[0]  # one is ahead by the sign of the other's score
    coef[:, 1], coef[:, 3], intercept[[1, 3]] = coef[:, 0], coef[:, 0], intercept[0] - 5
    scores = kernel_scores(rows, support, coef, intercept, "rbf", 0.3)
    wanted = scores.argmax(axis=1)
    assert set(wanted) == {0, 2}
    np.testing.assert_array_equal(kernel_winners(rows, support, coef, intercept, 0.3), wanted)
    far = 1e60 * rows  # infinite in float32: all kernel values are zero
    np.testing.assert_array_equal(kernel_winners(far, support, coef, np.arange(4.0), 0.3), np.full(len(far), 3))


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_rounding_of_scores_is_within_its_bound(scale):
    rows, model = machine(5, scale=scale)
    rows += 10  # far from the support vectors as well
    single = _Scorer(*model, "rbf", 0.3, 1, 0.0, np.float32)
    off = np.abs(single.scores(rows) - kernel_scores(rows, *model, "rbf", 0.3)).max(axis=1)
    assert off.any() and (off <= single.error(rows)).all()
