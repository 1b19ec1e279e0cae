"""At the usual tol, where most fits are, nothing is computed twice: in float32, and then again in double precision."""

import re

import numpy as np
import pytest
from scipy import sparse

from skmargin import CrammerSingerSVC, TopKSVC, WestonWatkinsSVC


def classes(n, d, k):
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    return rng.standard_normal((k, d))[y] + 2 * rng.standard_normal((n, d)), y


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
@pytest.mark.parametrize("machine", [CrammerSingerSVC, WestonWatkinsSVC, TopKSVC])
def test_block_passes_of_a_default_fit_are_in_float32(machine, kind, capsys):
    X, y = classes(4000, 80, 6)
    X = sparse.csr_array(np.where(X > 2, X, 0)) if kind == "sparse" else X.astype(kind)
    model = machine(fit_intercept=False, C=1e-3, verbose=1).fit(X, y)
    assert model.dual_gap_ <= model.tol
    assert re.findall(r"rows, (float\d+): ", capsys.readouterr().out) == ["float32"]
