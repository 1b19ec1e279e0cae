"""Block ascent of the core, called directly."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from skmargin._core import _ext

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


def objective(W, b, X, y, cap, loss, p=2.0):
    """By its definition."""
    f, own = X @ W.T + b, (np.arange(len(y)), y)
    t = np.maximum(0, 1 - f[own][:, None] + f)
    t[own] = 0
    t = -np.sort(-t, axis=1)
    value = {"max": t[:, 0], "sum": t.sum(axis=1), "top": t[:, :2].mean(axis=1)}[loss]
    return 0.5 * np.sum(np.linalg.norm(W, axis=1) ** p) ** (2 / p) + cap @ value


def problem(seed):
    """Rows that differ much in length: samples which a check passes over are soon where they must not be."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.choice([200, 600])), int(rng.choice([1, 2, 3, 5])), int(rng.integers(3, 7))
    spread, box = rng.uniform(0.3, 2), (-4, rng.choice([4, 12, 40]))
    X, y = make_blobs(n, d, centers=k, cluster_std=spread, center_box=box, random_state=seed)
    X *= np.exp(rng.choice([0, 0.5, 1, 1.5]) * rng.normal(size=n))[:, None]
    y = np.where(rng.random(n) < rng.choice([0, 0.02, 0.1]), (y + 1) % k, y).astype(np.int32)
    return X, y, 10.0 ** rng.integers(-4, 1) * rng.uniform(0.5, 2, n), k


def start(n, k):
    """Intercepts and duals of the zero vector."""
    return np.zeros(k), np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)


def check_certificates(solve, value):
    """However early a run ends: P is that of the class vectors, and P - gap is below whatever another run attains."""
    bounds, values = [], []
    for face in (True, False):
        for passes, tol in ((3, 1e-9), (17, 1e-9), (400, 1e-2), (400, 1e-4)):
            out = solve(tol, passes, face)
            values.append(value(out["W"], out["b"]))
            assert values[-1] == pytest.approx(out["primal"], rel=1e-9)
            bounds.append(out["primal"] - out["gap"])
    assert max(bounds) <= min(values) * (1 + 1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["max", "sum", "top"])
def test_every_certificate_holds(loss, fit_intercept):
    for seed in (0, 2, 8, 18, 26, 27, 31, 34, 40, 43, 47, 67):
        X, y, cap, k = problem(seed)
        task = X, y, cap, k, loss, {"max": 1, "sum": k - 1, "top": 2}[loss], X.mean(axis=0), fit_intercept

        def solve(tol, passes, face, task=task):
            limits = tol, passes, np.inf, np.inf, False, face, False, 0, 1
            out = _ext.dense_blocks(*task, *start(len(task[1]), task[3]), *limits)
            assert out["converged"] == (out["gap"] <= tol * out["primal"])
            return out

        check_certificates(solve, partial(objective, X=X, y=y, cap=cap, loss=loss))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [1.1, 1.5, 3.0, 8.0])
def test_every_certificate_of_a_block_norm_holds(p, fit_intercept):
    for seed in (4, 6, 8, 13, 15, 19):
        X, y, cap, k = problem(seed)
        task = X, y, cap, k, p / (p - 1), X.mean(axis=0), fit_intercept, *start(len(y), k)

        def solve(tol, passes, face, task=task):
            return _ext.lp_dense(*task, tol, passes, False, face, 0)

        check_certificates(solve, partial(objective, X=X, y=y, cap=cap, loss="max", p=p))
