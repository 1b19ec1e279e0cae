"""Block ascent over loads of rows, forced on problems small enough for an oracle."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skmargin import CrammerSingerSVC, MultiMarginSVC, ODMClassifier, TopKSVC, WestonWatkinsSVC
from skmargin.datasets import open_rows
from skmargin.estimators._base import MarginClassifier
from skmargin.solvers.blocks import from_rows, loads
from skmargin.solvers.tuning import DEFAULT


@pytest.fixture(autouse=True)
def files_only(monkeypatch):
    """No rows fit into memory, and all have too many parameters for smoothed Newton steps; several pieces a load."""
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(blocks={"most_parameters": 5}))
    monkeypatch.setattr(loads, "PIECES", 4)
    monkeypatch.setattr("skmargin.estimators._dual.free_memory", lambda: 1000)


def data(n=120, d=60, k=4, seed=0, far=0.5):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return rng.normal(size=(n, d)) + far * rng.normal(size=(k, d))[y], y, rng.uniform(0.2, 2.0, size=n)


def optimum(X, y, weight, machine):
    """The objective of the machine by cvxpy."""
    n, k = len(y), y.max() + 1
    W, b = cp.Variable((k, X.shape[1])), cp.Variable((1, k))
    F = X @ W.T + (np.ones((n, 1)) @ b if machine.fit_intercept else 0)
    own = np.eye(k)[y]
    margin = cp.reshape(cp.sum(cp.multiply(F, own), axis=1), (n, 1), order="C") @ np.ones((1, k)) - F
    penalty, C = 0.5 * cp.sum_squares(W), machine.C
    hinges = cp.multiply(cp.pos(1 - margin), 1 - own)
    if isinstance(machine, ODMClassifier):
        losses = cp.square(cp.max(cp.multiply(cp.pos(1 - machine.theta - margin), 1 - own), axis=1))
        C = C / (weight.sum() * (1 - machine.theta) ** 2)
    elif isinstance(machine, WestonWatkinsSVC | MultiMarginSVC):
        losses = cp.sum(hinges, axis=1)
    elif isinstance(machine, TopKSVC):
        losses = cp.hstack([cp.sum_largest(hinges[i], machine.k) / machine.k for i in range(n)])
    else:
        losses = cp.max(hinges, axis=1)
    if isinstance(machine, MultiMarginSVC):
        pairs = [0.5 * cp.sum_squares(W[j] - W[l]) for j in range(k) for l in range(j)]
        penalty += sum(pairs) + 0.5 * cp.sum_squares(b)
    problem = cp.Problem(cp.Minimize(penalty + C * (weight @ losses)))
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize(
    "machine",
    [
        CrammerSingerSVC(C=0.05),
        WestonWatkinsSVC(C=0.3),
        TopKSVC(k=2),
        ODMClassifier(C=300.0, mu=0.0),
        MultiMarginSVC(C=0.5),
    ],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "sorted"])
def test_the_optimum_and_its_certificate(machine, fit_intercept, kind):
    X, y, weight = data()
    if kind == "float32":
        X = X.astype(np.float32)
    if kind == "sorted":
        order = np.argsort(y)
        X, y, weight = X[order], y[order], weight[order]
    weight[::7] = 0
    machine = machine.set_params(fit_intercept=fit_intercept, tol=1e-4)
    machine.fit(open_rows((sparse.csr_array(X) if kind == "sparse" else X, y, weight)))
    least = optimum(X.astype(float), y, weight, machine)
    assert machine.dual_gap_ <= 1e-4
    assert machine.objective_ * (1 - machine.dual_gap_) <= least * (1 + 1e-7)
    assert least * (1 - 1e-7) <= machine.objective_ <= least * (1 + 1.1e-4)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_part_of_odm_that_is_not_convex(fit_intercept):
    X, y, weight = data()
    machine = ODMClassifier(C=300.0, mu=0.7, theta=0.3, fit_intercept=fit_intercept, tol=1e-4, warm_start=True)
    machine.fit(open_rows((X, y, weight)))
    margin = scores_beyond_rivals(machine, X, y)
    losses = np.maximum(0, 0.7 - margin) ** 2 + 0.7 * np.maximum(0, margin - 1.3) ** 2
    objective = 0.5 * np.sum(machine.coef_**2) + 300 / (weight.sum() * 0.7**2) * weight @ losses
    assert machine.objective_ == pytest.approx(objective, rel=1e-10)
    # The convex problem with the rivals of the solution has the objective of the machine, but for the gap.
    F, k, n = machine.decision_function(X), 4, len(y)
    F[np.arange(n), y] = -np.inf
    W, b = cp.Variable((k, X.shape[1])), cp.Variable((1, k))
    G = X @ W.T + (np.ones((n, 1)) @ b if fit_intercept else 0)
    own, rival = np.eye(k)[y], np.eye(k)[F.argmax(axis=1)]
    lead = cp.reshape(cp.sum(cp.multiply(G, own), axis=1), (n, 1), order="C") @ np.ones((1, k)) - G
    low = cp.max(cp.multiply(cp.pos(0.7 - lead), 1 - own), axis=1)
    high = cp.pos(cp.sum(cp.multiply(lead, rival), axis=1) - 1.3)
    losses = weight @ (cp.square(low) + 0.7 * cp.square(high))
    least = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + 300 / (weight.sum() * 0.7**2) * losses)).solve(
        solver=cp.CLARABEL
    )
    assert machine.dual_gap_ <= 1e-4
    assert least * (1 - 1e-7) <= objective <= least * (1 + 1.1e-4)
    passes = machine.n_iter_
    assert machine.fit(open_rows((X, y, weight))).n_iter_ <= 3 < passes


def scores_beyond_rivals(machine, X, y):
    F, i = machine.decision_function(X), np.arange(len(y))
    own = F[i, y]
    F[i, y] = -np.inf
    return own - F.max(axis=1)


def test_same_bits_for_the_same_seed_and_any_number_of_threads():
    X, y, _ = data()
    fits = [CrammerSingerSVC(random_state=0, n_jobs=jobs).fit(open_rows(X, y)) for jobs in (1, 1, 4)]
    for other in fits[1:]:
        assert np.array_equal(fits[0].coef_, other.coef_)
        assert fits[0].dual_gap_ == other.dual_gap_


def test_a_class_of_one_row_and_few_rows():
    X, y, _ = data(n=60)
    y[y == 3] = 2
    y[5] = 3
    machine = CrammerSingerSVC(tol=1e-4, C=10.0).fit(open_rows(X, y))
    least = optimum(X, y, np.ones(len(y)), machine)
    assert machine.dual_gap_ <= 1e-4
    assert machine.objective_ * (1 - machine.dual_gap_) <= least * (1 + 1e-7)


def test_warm_starts_save_passes_and_keep_the_bounds_of_other_weights():
    X, y, weight = data(n=600, d=300)
    machine = CrammerSingerSVC(warm_start=True, random_state=0).fit(open_rows(X, y))
    cold = machine.n_iter_
    machine.fit(open_rows(X, y))
    assert machine.n_iter_ <= 3 < cold
    machine.fit(open_rows((X, y, 0.1 * weight)))  # the duals of before are too large for these
    exact = CrammerSingerSVC(tol=1e-6).fit(X, y, sample_weight=0.1 * weight)
    assert machine.objective_ * (1 - machine.dual_gap_) <= exact.objective_
    assert machine.dual_gap_ <= 1e-3
    machine.set_params(C=2.0).fit(open_rows((X, y, 0.1 * weight)))
    exact = CrammerSingerSVC(tol=1e-6, C=2.0).fit(X, y, sample_weight=0.1 * weight)
    assert exact.objective_ * (1 - 1e-6) <= machine.objective_ <= exact.objective_ * 1.0011


def test_a_fit_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("skmargin._runtime.checkpoint.SECONDS", 0.0)
    monkeypatch.setattr("skmargin._runtime.checkpoint.SHARE", float("inf"))  # each point, however slow the disk is
    X, y, _ = data(n=600, d=300, far=0.3)
    path = tmp_path / "fit.npz"
    whole = CrammerSingerSVC(random_state=0, tol=1e-5).fit(open_rows(X, y))
    passes = [0]
    inner = loads.report_gap

    def stop(gap, tol):
        passes[0] += 1
        if passes[0] == whole.n_iter_ - 3:
            raise KeyboardInterrupt
        inner(gap, tol)

    monkeypatch.setattr(loads, "report_gap", stop)
    with pytest.raises(KeyboardInterrupt):
        CrammerSingerSVC(random_state=0, tol=1e-5).fit(open_rows(X, y), checkpoint=path)
    assert path.exists()
    went_on = CrammerSingerSVC(random_state=0, tol=1e-5).fit(open_rows(X, y), checkpoint=path)
    assert went_on.n_iter_ <= 8 < whole.n_iter_
    assert went_on.dual_gap_ <= 1e-5
    assert not path.exists()


def test_a_file_that_changes_between_passes(tmp_path, monkeypatch):
    X, y, _ = data(n=600)
    np.save(tmp_path / "X.npy", X)
    rows = open_rows((tmp_path / "X.npy", y))
    inner = loads.report_gap

    def change(gap, tol):
        np.save(tmp_path / "X.npy", X[::-1])
        inner(gap, tol)

    monkeypatch.setattr(loads, "report_gap", change)
    with pytest.raises(ValueError, match="changed while it was read"):
        CrammerSingerSVC().fit(rows)


@pytest.mark.parametrize("suffix", ["svm", "csv", "parquet", "function"])
def test_files_and_functions(tmp_path, suffix):
    from sklearn.datasets import dump_svmlight_file

    X, y, _ = data(n=200)
    path = tmp_path / f"rows.{suffix}"
    if suffix == "svm":
        dump_svmlight_file(X, y, str(path))
        rows = open_rows(path)
    elif suffix == "parquet":
        names = [f"x{j}" for j in range(60)]
        pd.DataFrame(X, columns=names).assign(y=y).to_parquet(path, row_group_size=11)
        rows = open_rows(path, target="y")
    elif suffix == "function":
        rows = open_rows(lambda: ((X[a : a + 20], y[a : a + 20]) for a in range(0, 200, 20)), cache=tmp_path)
    else:
        np.savetxt(path, np.column_stack([X, y]), delimiter=",", fmt=["%.17g"] * 60 + ["%d"])
        rows = open_rows(path, target=60)
    machine = CrammerSingerSVC(tol=1e-4, warm_start=True).fit(rows)
    assert machine._warm_state.solution.end is not None  # by block ascent over loads
    exact = CrammerSingerSVC(tol=1e-6).fit(X, y)
    assert exact.objective_ * (1 - 1e-6) <= machine.objective_ <= exact.objective_ * (1 + 1.1e-4)


def test_each_load_has_its_share_of_every_run_of_the_file():
    X, y, _ = data(n=4096, d=5)
    rows = open_rows(X, y).counted()
    dealt = loads._Loads(rows, from_rows.BlockProblem(4, "max"), 0, None)
    for number in (1, 2):
        hands = [load.pieces for load in dealt.of_pass(number)]
        assert sorted(piece for hand in hands for piece in hand) == list(range(len(dealt.ranges)))
        for hand in hands:
            assert sorted(piece // dealt.n_loads for piece in hand) == list(range(loads.PIECES))
    assert hands != [load.pieces for load in dealt.of_pass(1)]


@pytest.mark.perf
@pytest.mark.parametrize("in_order", [False, True])
def test_few_more_passes_than_in_memory(in_order):
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=6000)
    X = sparse.random_array((6000, 3000), density=0.01, rng=rng, format="csr")
    X = sparse.csr_array(X + sparse.csr_array((np.full(6000, 1.0), (np.arange(6000), y)), shape=X.shape))
    if in_order:
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    memory = CrammerSingerSVC(random_state=0).fit(X, y)
    file = CrammerSingerSVC(random_state=0).fit(open_rows(X, y))
    assert file.dual_gap_ <= 1e-3
    assert file.n_iter_ <= 1.5 * memory.n_iter_
