"""Block ascent of the core, called directly."""

import subprocess
import sys

HANGS = """
import numpy as np
from skmargin._core import _ext

n, k = 20, 4
X, y = np.random.default_rng(0).normal(size=(n, 2)), (np.arange(n) % k).astype(np.int32)
nothing = np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
b = np.array([0.0, np.nan, 0.0, 0.0])
task = X, y, np.full(n, 0.01), k, "sum", k - 1, X.mean(axis=0), True, b, *nothing
out = _ext.dense_blocks(*task, 1e-3, 3, np.inf, np.inf, False, False, False, 0, 1)
assert not out["converged"]
"""


def test_what_is_no_number_does_not_hang():
    """A block whose scores are beyond double precision has no root to look for."""
    subprocess.run([sys.executable, "-c", HANGS], check=True, timeout=60)
