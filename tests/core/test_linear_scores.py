"""Scores of linear machines in the core (_core/linear_scores.hpp)."""

import numpy as np
import pytest

from skmargin._core import _ext


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("d", [1, 5, 64])
def test_scores_and_labels_are_those_of_numpy(dtype, k, d):
    rng = np.random.default_rng(k + d)
    W, b = rng.normal(size=(d, k)).astype(dtype), rng.normal(size=k).astype(dtype)
    for n in (1, 3, 4, 6, 63, 64, 65, 300):
        X = rng.normal(size=(n, d)).astype(dtype)
        X.flags.writeable = False
        scores = _ext.linear_scores(X, W, b)
        assert scores.dtype == dtype and scores.shape == (n, k)
        expected = np.einsum("ij,jl->il", X, W) + b  # BLAS may compute with what lies behind an array, and warn of it
        np.testing.assert_allclose(scores, expected, rtol=0, atol=50 * d * np.finfo(dtype).eps)
        labels = 10 * np.arange(max(k, 2))
        found, finite = _ext.linear_labels(X, W, b, labels)
        assert finite
        np.testing.assert_array_equal(found, labels.take(scores[:, 0] > 0 if k == 1 else scores.argmax(axis=1)))
        alone = np.vstack([_ext.linear_scores(row[None], W, b) for row in X])
        np.testing.assert_array_equal(alone, scores)  # whatever rows stand beside it


def test_the_first_of_equals_wins():
    labels, _ = _ext.linear_labels(np.ones((5, 2)), np.ones((2, 3)), np.array([0.0, 1.0, 1.0]), np.arange(3))
    np.testing.assert_array_equal(labels, 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_rows_that_are_not_finite_are_seen(bad, weight):
    for row in (0, 6, 99):
        X = np.ones((100, 3))
        X[row, 1] = bad
        assert not _ext.linear_labels(X, np.full((3, 4), weight), np.zeros(4), np.arange(4))[1]


def test_what_does_not_fit_is_refused():
    for d, k in ((3, 4), (2, 5), (2, 0)):
        with pytest.raises(ValueError, match="do not fit"):
            _ext.linear_scores(np.ones((5, 2)), np.ones((d, k)), np.ones(4 if k else 0))
    with pytest.raises(ValueError, match="for each class"):
        _ext.linear_labels(np.ones((5, 2)), np.ones((2, 3)), np.ones(3), np.arange(2))
