"""Scores of linear machines in the core (_core/rows/batch_scores.hpp)."""

import numpy as np
import pytest
from scipy import sparse

from skmargin._core import _ext


def labels_of(X, W, b, names):
    out = np.empty(len(X), dtype=names.dtype)
    return out, _ext.linear_labels(X, W, b, names, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("d", [1, 5, 64])
def test_scores_and_labels_are_those_of_numpy(dtype, k, d):
    rng = np.random.default_rng(k + d)
    W, b = np.asfortranarray(rng.normal(size=(k, d)), dtype=dtype), rng.normal(size=k).astype(dtype)
    for n in (1, 3, 4, 6, 8, 16, 17, 63, 64, 65, 300, 1030):
        X = rng.normal(size=(n, d)).astype(dtype)
        X.flags.writeable = False
        scores = _ext.linear_scores(X, W, b)
        assert scores.dtype == dtype and scores.shape == (n, k)
        expected = np.einsum("ij,lj->il", X, W) + b  # BLAS may compute with what lies behind an array, and warn of it
        np.testing.assert_allclose(scores, expected, rtol=0, atol=50 * d * np.finfo(dtype).eps)
        winners = scores[:, 0] > 0 if k == 1 else scores.argmax(axis=1)
        for names in (10 * np.arange(max(k, 2)) - 2**40, np.linspace(-1, 1, max(k, 2))):
            names.flags.writeable = False
            found, finite = labels_of(X, W, b, names)
            assert finite
            np.testing.assert_array_equal(found, names.take(winners))
        alone = np.vstack([_ext.linear_scores(row[None], W, b) for row in X])
        np.testing.assert_array_equal(alone, scores)  # whatever rows stand beside it


def arrays_of(X, index=np.int32):
    X = sparse.csr_array(X)
    return X.indptr.astype(index), X.indices.astype(index), X.data


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3, 7, 8, 9, 16, 17, 33, 45, 61, 77, 85, 93, 105, 210])
def test_scores_and_labels_of_sparse_rows(dtype, k, index):
    rng = np.random.default_rng(k)
    for d in (1, 2, 5, 40):
        # Nothing lies behind the last feature: the sanitizer would see a vector that reads there.
        W, b = np.asfortranarray(rng.normal(size=(k, d)), dtype=dtype), rng.normal(size=k).astype(dtype)
        for n in (1, 3, 50):
            X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)).astype(dtype)
            X[n // 2] = 0
            rows = arrays_of(X, index)
            for array in rows:
                array.flags.writeable = False
            scores = _ext.linear_scores(*rows, W, b)
            assert scores.dtype == dtype and scores.shape == (n, k)
            expected = np.einsum("ij,lj->il", X, W) + b
            np.testing.assert_allclose(scores, expected, rtol=0, atol=50 * d * np.finfo(dtype).eps)
            names, labels = np.linspace(-1, 1, max(k, 2)), np.empty(n)
            assert _ext.linear_labels(*rows, W, b, names, labels)
            np.testing.assert_array_equal(labels, names.take(scores[:, 0] > 0 if k == 1 else scores.argmax(axis=1)))


@pytest.mark.parametrize("k", [1, 3, 30])
def test_sparse_rows_that_are_broken_or_not_finite_are_seen(k):
    W, b, names = np.zeros((k, 4), order="F"), np.zeros(k), np.arange(max(k, 2))
    start, at, labels = np.array([0, 1, 2]), np.array([0, 3]), np.empty(2, dtype=np.int64)
    assert _ext.linear_labels(start, at, np.ones(2), W, b, names, labels)
    for bad in (np.nan, np.inf, -np.inf):
        assert not _ext.linear_labels(start, at, np.array([1, bad]), W, b, names, labels)
    for column in (-1, 4, 2**40, -(2**40)):  # no feature of W
        assert not _ext.linear_labels(start, np.array([0, column]), np.ones(2), W, b, names, labels)
        for place in range(6):  # of six numbers in one row
            columns = np.where(np.arange(6) == place, column, 1)
            assert not _ext.linear_labels(np.array([0, 6, 6]), columns, np.ones(6), W, b, names, labels)
    for wrong in ([0, 1, 3], [1, 1, 2], [0, 3, 2]):
        with pytest.raises(ValueError, match="CSR"):
            _ext.linear_labels(np.array(wrong), at, np.ones(2), W, b, names, labels)
    with pytest.raises(ValueError, match="do not fit"):
        _ext.linear_labels(start, at, np.ones(2), W, np.zeros(k + 1), names, labels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_of_equals_wins(dtype):
    X = np.ones((50, 2), dtype=dtype)
    for k in (2, 3, 4, 5, 8, 12, 17, 24):
        for first in range(k):
            b = np.where(np.arange(k) < first, 0, 1).astype(dtype)
            labels, _ = labels_of(X, np.ones((k, 2), dtype=dtype, order="F"), b, np.arange(k))
            np.testing.assert_array_equal(labels, first)
            _ext.linear_labels(*arrays_of(X), np.ones((k, 2), dtype=dtype, order="F"), b, np.arange(k), labels)
            np.testing.assert_array_equal(labels, first)
    zero = np.zeros((1, 2), dtype=dtype, order="F"), np.zeros(1, dtype=dtype), np.arange(2)
    labels, _ = labels_of(X, *zero)
    np.testing.assert_array_equal(labels, 0)  # a score of 0 is not positive
    _ext.linear_labels(*arrays_of(X), *zero, labels := np.ones(len(X), dtype=np.int64))
    np.testing.assert_array_equal(labels, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 5, 8, 33])
def test_scores_that_overflow_have_the_label_of_a_class(dtype, k):
    """All of them minus infinity: the label was 0, whatever the classes."""
    X = np.full((20, 2), np.finfo(dtype).max, dtype=dtype)
    W, b = np.full((k, 2), -2, dtype=dtype, order="F"), np.zeros(k, dtype=dtype)
    labels, finite = labels_of(X, W, b, np.arange(k) + 5)
    assert not finite
    np.testing.assert_array_equal(labels, 5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("k", [1, 3, 4, 7, 20])
def test_rows_that_are_not_finite_are_seen(bad, weight, k):
    for dtype in (np.float32, np.float64):
        W, b = np.full((k, 3), weight, dtype=dtype, order="F"), np.zeros(k, dtype=dtype)
        names = np.arange(max(k, 2))
        for row in (0, 6, 99):
            X = np.ones((100, 3), dtype=dtype)
            assert labels_of(X, W, b, names)[1]
            X[row, 1] = bad
            assert not labels_of(X, W, b, names)[1]


def test_what_does_not_fit_is_refused():
    X, names = np.ones((5, 2)), np.arange(3)
    for d, k in ((3, 4), (2, 5), (2, 0)):
        with pytest.raises(ValueError, match="do not fit"):
            _ext.linear_scores(X, np.ones((k, d), order="F"), np.ones(4 if k else 0))
    machine = np.ones((3, 2), order="F"), np.ones(3)
    for wrong in (np.arange(2), names.astype(np.int32)):
        with pytest.raises(ValueError, match="for each class"):
            _ext.linear_labels(X, *machine, wrong, np.empty(5, dtype=np.int64))
    for wrong in (np.empty(4), np.empty(5, dtype=np.int32)):
        with pytest.raises(ValueError, match="one place of eight bytes"):
            _ext.linear_labels(X, *machine, names, wrong)
