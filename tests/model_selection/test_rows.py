"""Searches and paths over rows in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from skmargin import M3SVC, CrammerSingerSVC, LpNormSVC
from skmargin.datasets import open_rows
from skmargin.model_selection import MarginSearchCV, margin_path
from skmargin.rows.files import counted
from skmargin.rows.labels import row_hash
from skmargin.solvers.blocks import from_rows


@pytest.fixture(autouse=True)
def in_blocks(monkeypatch):
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)


def data(n=4000, d=5, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return rng.normal(size=(n, d)) + rng.normal(size=(k, d))[y], np.array(["a", "b", "c"])[y]


def opened(X, y, reads):
    def blocks():
        reads.append(1)
        yield from ((X[a : a + 700], y[a : a + 700]) for a in range(0, len(X), 700))

    return open_rows(blocks)


def test_a_path_reads_the_rows_a_few_times_for_each_value():
    X, y = data()
    reads: list[int] = []
    rows = opened(X, y, reads)
    values = [0.01, 0.1, 1.0, 10.0]
    models = margin_path(CrammerSingerSVC(random_state=0), rows, None, "C", values)
    assert len(reads) < 3 + 6 * len(values)
    for C, model in zip(values, models, strict=True):
        expected = CrammerSingerSVC(C=C, tol=1e-7).fit(X, y)
        assert model.C == C
        assert model.dual_gap_ <= 1e-3
        assert expected.objective_ * (1 - 1e-6) <= model.objective_ <= expected.objective_ * (1 + 1e-3)


@pytest.mark.parametrize("machine", [CrammerSingerSVC(), M3SVC(loss="log_loss")], ids=str)
def test_a_search_judges_as_one_in_memory_with_the_same_folds(machine):
    X, y = data(seed=1)
    name, values = ("C", [1e-4, 1.0]) if isinstance(machine, CrammerSingerSVC) else ("alpha", [1e4, 1.0])
    search = MarginSearchCV(machine, {name: values}, cv=3).fit(opened(X, y, []))
    fold = (row_hash(np.arange(len(y)), 0) * 3).astype(int)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    expected = MarginSearchCV(machine, {name: values}, cv=splits).fit(X, y)
    assert search.best_params_ == expected.best_params_
    for f in range(3):
        key = f"split{f}_test_score"
        assert np.allclose(search.cv_results_[key], expected.cv_results_[key], atol=0.005)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert np.concatenate(list(search.best_estimator_.predict(opened(X, y, [])))).shape == y.shape
    assert (search.predict(X) == expected.predict(X)).mean() > 0.99


def test_folds_divide_the_rows():
    X, y = data()
    rows = counted(opened(X, y, []))
    parts = [rows.some(f, 4, 0, held_out=True) for f in range(4)]
    assert sum(part.n_rows for part in parts) == len(y)
    assert rows.some(1, 4, 0, held_out=False).n_rows == len(y) - parts[1].n_rows
    assert all(abs(part.n_rows - len(y) / 4) < 200 for part in parts)
    assert np.array_equal(np.sum([part.class_counts for part in parts], axis=0), rows.class_counts)
    weighted = counted(open_rows((X, y, np.arange(1.0, len(y) + 1))))
    part = weighted.some(1, 4, 0, held_out=True)
    inside = (row_hash(np.arange(len(y)), 0) * 4).astype(int) == 1
    expected = [np.arange(1.0, len(y) + 1)[inside & (y == label)].sum() for label in "abc"]
    assert np.allclose(part.class_weights, expected)


def test_what_needs_the_rows_in_memory_is_refused():
    X, y = data(n=300)
    rows = open_rows(X, y)
    grid = {"C": [1.0]}
    with pytest.raises(TypeError, match="LpNormSVC cannot be fitted to rows in blocks"):
        MarginSearchCV(LpNormSVC(), grid).fit(rows)
    with pytest.raises(ValueError, match="judges by accuracy only, got scoring='f1_macro'"):
        MarginSearchCV(CrammerSingerSVC(), grid, scoring="f1_macro").fit(rows)
    with pytest.raises(ValueError, match="takes a number of folds"):
        MarginSearchCV(CrammerSingerSVC(), grid, cv=[([0], [1])]).fit(rows)
    with pytest.raises(ValueError, match="needs racing=False"):
        MarginSearchCV(CrammerSingerSVC(), grid, racing=True).fit(rows)
    with pytest.raises(ValueError, match="takes labels and weights from the rows"):
        MarginSearchCV(CrammerSingerSVC(), grid).fit(rows, y)
