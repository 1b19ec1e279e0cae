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
duals = np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
b = np.array([0.0, np.nan, 0.0, 0.0])
problem, options = _ext.Problem(y, np.full(n, 0.01), k, "sum"), _ext.Options(tol=1e-3, max_iter=3)
out = _ext.block_ascent(_ext.Rows(X), problem, options, b=b, duals=duals, mean=X.mean(axis=0), fit_intercept=True)
assert not out.converged
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
    if loss == "logistic":
        worst = np.where(np.eye(len(W), dtype=bool)[y], -np.inf, f).max(axis=1) - f[own]
        return 0.5 * np.sum(np.linalg.norm(W, axis=1) ** p) ** (2 / p) + cap @ np.logaddexp(0, worst)
    value = {"max": t[:, 0], "sum": t.sum(axis=1), "top": t[:, :2].mean(axis=1), "odm": t[:, 0] ** 2}[loss]
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
    return {"b": np.zeros(k), "duals": (np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))}


def check_certificates(solve, value):
    """However early a run ends: P is that of the class vectors, and P - gap is below whatever another run attains."""
    bounds, values = [], []
    for face in (True, False):
        for passes, tol in ((3, 1e-9), (17, 1e-9), (400, 1e-2), (400, 1e-4)):
            out = solve(_ext.Options(tol=tol, max_iter=passes, face_steps=face))
            assert out.converged == (out.gap <= tol * out.objective)
            values.append(value(out.W, out.b))
            assert values[-1] == pytest.approx(out.objective, rel=1e-9)
            bounds.append(out.objective - out.gap)
    assert max(bounds) <= min(values) * (1 + 1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["max", "sum", "top"])
def test_every_certificate_holds(loss, fit_intercept):
    for seed in (0, 2, 8, 18, 26, 27, 31, 34, 40, 43, 47, 67):
        X, y, cap, k = problem(seed)
        task = _ext.Rows(X), _ext.Problem(y, cap, k, loss, top_k=2)
        given = {"mean": X.mean(axis=0), "fit_intercept": fit_intercept} | start(len(y), k)
        solve = partial(_ext.block_ascent, *task, **given)
        check_certificates(solve, partial(objective, X=X, y=y, cap=cap, loss=loss))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["max", "odm", "logistic"])
@pytest.mark.parametrize("p", [1.1, 1.5, 3.0, 8.0])
def test_every_certificate_of_a_block_norm_holds(p, loss, fit_intercept):
    for seed in (4, 6, 8, 13, 15, 19):
        X, y, cap, k = problem(seed)
        task = _ext.Rows(X), _ext.Problem(y, cap, k, loss)
        given = {"q": p / (p - 1), "mean": X.mean(axis=0), "fit_intercept": fit_intercept} | start(len(y), k)
        solve = partial(_ext.block_norm_ascent, *task, **given)
        check_certificates(solve, partial(objective, X=X, y=y, cap=cap, loss=loss, p=p))
