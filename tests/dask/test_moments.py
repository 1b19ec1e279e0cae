"""Machines whose solution depends on means and products of features only: one pass, and the solution of all rows."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask_data import arrays
from scipy import sparse

from skmargin import LSSVC, ULDMClassifier
from skmargin.datasets import open_rows

N, D, PART = 3000, 6, 450


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])
    X = rng.normal(size=(4, D))[y] + rng.normal(size=(N, D)) + 20.0
    weight = np.where(np.arange(N) % 5 == 0, 0.0, rng.uniform(0.1, 2.0, N))
    return X, np.array(["ant", "bee", "cat", "dog"])[y], weight


@pytest.mark.parametrize("multi_class", ["fuzzy_pairwise", "ovr"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"ant": 3.0}])
@pytest.mark.parametrize(("machine", "strengths"), [(ULDMClassifier, ("alpha", 1e-9, 1.0)), (LSSVC, ("C", 1e-4, 1e6))])
def test_the_solution_of_the_rows_in_memory(rows, machine, strengths, multi_class, fit_intercept, class_weight):
    X, y, weight = rows
    name, *values = strengths
    for value in values:
        given = {"multi_class": multi_class, "fit_intercept": fit_intercept, "class_weight": class_weight, name: value}
        model = machine(kernel="linear", **given)
        exact = machine(kernel="linear", **given).fit(X, y, sample_weight=weight)
        Xd, yd, wd = arrays(X, y, weight, part=PART)
        model.fit(Xd, yd, sample_weight=wd)
        np.testing.assert_allclose(model.coef_, exact.coef_, rtol=0, atol=1e-8 * np.abs(exact.coef_).max())
        np.testing.assert_allclose(model.intercept_, exact.intercept_, rtol=1e-8, atol=1e-8)
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-10)
        assert np.array_equal(model.predict(Xd).compute(), exact.predict(X))


def test_normal_equations_of_two_classes(rows):
    X, y, _ = rows
    few = np.flatnonzero(y < "c")
    A, sign = np.column_stack([X[few], np.ones(len(few))]), np.where(y[few] == "bee", 1.0, -1.0)
    C = 0.3
    w = np.linalg.solve(C * A.T @ A + np.diag([1.0] * D + [0.0]), C * A.T @ sign)
    model = LSSVC(C=C, kernel="linear").fit(*arrays(X[few], y[few], part=PART))
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), w, rtol=1e-7)


def test_sparse_blocks_few_rows_and_rows_of_files(rows):
    X, y, _ = rows
    S = sparse.random(40, 60, 0.2, "csr", random_state=0)  # fewer rows of a class than features
    labels = y[:40]
    parts = [dask.delayed(S[at : at + 10]) for at in range(0, 40, 10)]
    model = LSSVC(kernel="linear").fit(parts, [dask.delayed(labels[at : at + 10]) for at in range(0, 40, 10)])
    np.testing.assert_allclose(model.coef_, LSSVC(kernel="linear").fit(S, labels).coef_, atol=1e-10)
    blocks = open_rows(lambda: ((X[at : at + 700], y[at : at + 700]) for at in range(0, N, 700)))
    of_files = ULDMClassifier(alpha=1e-3, kernel="linear").fit(blocks)
    exact = ULDMClassifier(alpha=1e-3, kernel="linear").fit(X, y)
    np.testing.assert_allclose(of_files.coef_, exact.coef_, rtol=1e-8)


def test_what_is_refused(rows, tmp_path, monkeypatch):
    Xd, yd = arrays(*rows[:2], part=PART)
    with pytest.raises(ValueError, match="need kernel='linear', got kernel='rbf'"):
        LSSVC().fit(Xd, yd)
    with pytest.raises(ValueError, match=r"need one value of C, got \[1, 2\]; MarginSearchCV chooses"):
        LSSVC(C=[1, 2], kernel="linear").fit(Xd, yd)
    with pytest.raises(ValueError, match="one pass over the rows: checkpoint must be None"):
        LSSVC(kernel="linear").fit(Xd, yd, checkpoint=tmp_path / "fit.npz")
    wide = da.zeros((20, 7000), chunks=(10, 7000))
    with pytest.raises(ValueError, match="LSSVC takes rows in blocks and Dask collections of at most 6000 features"):
        LSSVC(kernel="linear").fit(wide, yd[:20].rechunk(10))
