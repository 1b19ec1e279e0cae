"""Machines whose rows are many: the method for them, forced on rows that are few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skmargin import CrammerSingerSVC, MultiMarginSVC, ODMClassifier, TopKSVC, WestonWatkinsSVC
from skmargin.estimators._base import MarginClassifier
from skmargin.solvers.blocks import newton, plan
from skmargin.solvers.dual import many_rows
from skmargin.solvers.tuning import DEFAULT

ALL = {"rows_per_parameter": 0, "least_pairs": 0.0, "sample_rows": 1000}
MANY = DEFAULT.changed(blocks={**ALL, "sure_rows": 3000, "underestimated": 0.0})  # from 3000 rows on
FEW = DEFAULT.changed(blocks={"most_parameters": 0})  # none


@pytest.fixture
def many(monkeypatch):
    """All rows count as many; how often the method was used."""
    used = []
    monkeypatch.setattr(MarginClassifier, "_tuning", MANY)
    original = plan.solve_blocks

    def counted(*args, **kwargs):
        used.append(original(*args, **kwargs | {"worth": np.inf}))
        return used[-1]

    monkeypatch.setattr(plan, "solve_blocks", counted)
    return used


def data(n=5000, d=5, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return rng.normal(size=(n, d)) + rng.normal(size=(k, d))[y], np.array(list("abcd"))[y]


@pytest.mark.parametrize(
    "machine",
    [
        CrammerSingerSVC(), CrammerSingerSVC(fit_intercept=False), WestonWatkinsSVC(class_weight="balanced"),
        TopKSVC(k=2), ODMClassifier(mu=0), ODMClassifier(C=100), MultiMarginSVC(), MultiMarginSVC(fit_intercept=False),
    ],
    ids=str,
)  # fmt: skip
def test_certified_and_as_good_as_the_other_methods(many, machine):
    X, y = data()
    weight = np.random.default_rng(1).integers(0, 3, size=len(y))
    clf = clone(machine).set_params(random_state=0).fit(X, y, weight)
    assert isinstance(many[-1], newton.BlockState)
    few = clone(machine).set_params(random_state=0, tol=1e-6).fit(X[:2999], y[:2999])  # not many: other methods
    used = len(many)
    assert few.dual_gap_ <= 1e-6
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MarginClassifier, "_tuning", FEW)
        best = clone(machine).set_params(random_state=0, tol=1e-6).fit(X, y, weight)
    assert len(many) == used
    slack = 2e-3 if getattr(machine, "mu", 0) else 1e-5  # not convex
    assert clf.dual_gap_ <= 1e-3
    assert best.objective_ * (1 - slack) <= clf.objective_ <= best.objective_ * (1 + 1e-3 + slack)
    assert (clf.predict(X) == best.predict(X)).mean() > 0.98


def test_a_warm_start_goes_from_method_to_method(many, monkeypatch):
    X, y = data(seed=2)
    clf = CrammerSingerSVC(warm_start=True, random_state=0).fit(X, y)
    first = clf.n_iter_
    assert clf.set_params(C=1.1).fit(X, y).n_iter_ <= first + 1
    monkeypatch.setattr(MarginClassifier, "_tuning", FEW)  # there are no duals to start from
    clf.set_params(C=2.0).fit(X, y)
    assert clf.objective_ == pytest.approx(CrammerSingerSVC(C=2.0, tol=1e-6).fit(X, y).objective_, rel=1e-3)
    monkeypatch.setattr(MarginClassifier, "_tuning", MANY)
    used = len(many)
    clf.set_params(C=3.0).fit(X, y)
    assert len(many) > used
    assert clf.dual_gap_ <= 1e-3


def test_what_is_not_certified_goes_on_with_its_duals(many, monkeypatch):
    X, y = data(seed=3)
    monkeypatch.setattr(MarginClassifier, "_tuning", replace(MANY, blocks=replace(MANY.blocks, most_passes=1)))
    seen = []
    original = many_rows.duals_of
    monkeypatch.setattr(many_rows, "duals_of", lambda *a: seen.append(original(*a)) or seen[-1])
    clf = CrammerSingerSVC(tol=1e-5, random_state=0).fit(X, y)
    assert isinstance(many[-1], newton.Refused)
    assert seen
    assert clf.dual_gap_ <= 1e-5
    assert clf.objective_ == pytest.approx(CrammerSingerSVC(tol=1e-6).fit(X[:, :], y).objective_, rel=2e-5)


def test_same_bits_for_every_number_of_threads_and_read_only_rows(many):
    X, y = data(seed=4)
    X = X.astype(np.float32)
    X.flags.writeable = False
    fits = [WestonWatkinsSVC(random_state=0, n_jobs=jobs).fit(X, y) for jobs in (None, 1, 2, 4, 8, 64, -1)]
    assert all(np.array_equal(fits[0].coef_, other.coef_) for other in fits)
    assert all(fits[0].dual_gap_ == other.dual_gap_ for other in fits)
