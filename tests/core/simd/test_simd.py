"""Every set of vector instructions that this machine has (_core/simd/simd.hpp), each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skmargin._core import _ext

LEVELS = ["baseline", "avx2", "avx512"]
HERE = LEVELS[: LEVELS.index(_ext.simd_level()) + 1]

FITS = """
import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from skmargin import CrammerSingerSVC, LpNormSVC, M3SVC, ODMClassifier, WestonWatkinsSVC
from skmargin._core import _ext
X, y = load_digits(return_X_y=True)
X, y = X[:400] / 16, y[:400]
print(_ext.simd_level())
for rows in (X, X.astype(np.float32), sparse.csr_array(X)):
    for machine in (
        CrammerSingerSVC(), WestonWatkinsSVC(C=0.1), CrammerSingerSVC(kernel="rbf"), LpNormSVC(p=1.5),
        ODMClassifier(mu=0.0), M3SVC(),
    ):
        print(machine.set_params(tol=1e-5).fit(rows, y).objective_, machine.score(rows, y))
"""


def run(level, *arguments):
    environment = {**os.environ, "SKMARGIN_SIMD": level, "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("level", HERE)
def test_scores_of_every_instruction_set(level):
    tests = Path(__file__).parents[1] / "rows" / "test_batch_scores.py"
    assert " passed" in run(level, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests))


def test_fits_agree_between_instruction_sets():
    found = {level: run(level, "-c", FITS).split("\n", 1) for level in HERE}
    assert [first for first, _ in found.values()] == HERE
    numbers = [np.array(rest.split(), dtype=float) for _, rest in found.values()]
    for other in numbers[1:]:
        np.testing.assert_allclose(other[::2], numbers[0][::2], rtol=3e-5)
        np.testing.assert_allclose(other[1::2], numbers[0][1::2], atol=0.01)


def test_no_more_than_the_processor_has():
    assert run("avx512", "-c", "from skmargin._core import _ext; print(_ext.simd_level())").strip() == HERE[-1]
