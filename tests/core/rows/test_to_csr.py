"""Dense rows with many zeros become CSR rows."""

import numpy as np
import pytest
from scipy import sparse

from skmargin._core import _ext
from skmargin.rows.arrays import suitable_storage


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.2])
def test_the_same_rows_as_those_of_scipy(dtype, density):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 40)) < density, rng.normal(size=(50, 40)), -0.0).astype(dtype)
    X[-1] = X[3] = 0
    X.flags.writeable = False
    for rows in (X, X[::2], np.asfortranarray(X)):
        found, expected = suitable_storage(rows), sparse.csr_array(rows)
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert found.shape == rows.shape and found.dtype == dtype


def test_dense_and_narrow_rows_stay_as_they_are():
    for X in (np.ones((5, 40)), np.zeros((5, 4))):
        assert suitable_storage(X) is X


def test_a_number_of_zeros_that_is_wrong_harms_nothing():
    for stored in (0, 3, 100):
        data, indices, _ = _ext.to_csr(np.eye(8), stored)
        assert len(data) == len(indices) == min(8, stored)
