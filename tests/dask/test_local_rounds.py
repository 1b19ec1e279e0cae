"""Many columns: rounds in which partitions keep their duals, and the optimum of the rows in memory."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import dask
import numpy as np
import pytest
from dask_data import blocks, numbers
from distributed import Client, LocalCluster, Status
from scipy import sparse
from sklearn.base import clone

from skmargin import CrammerSingerSVC, TopKSVC, WestonWatkinsSVC
from skmargin._runtime import checkpoint
from skmargin.estimators._base import MarginClassifier
from skmargin.rows import workers
from skmargin.rows.chains import LEAST_CHAINS, MOST_CHAINS, chain_count, dealt
from skmargin.solvers.blocks import local_rounds
from skmargin.solvers.blocks.local_rounds import balance
from skmargin.solvers.blocks.local_task import LocalRound
from skmargin.solvers.blocks.passes import BlockProblem
from skmargin.solvers.tuning import DEFAULT

N, D, K, PARTS = 4000, 3000, 5, 10  # more partitions than chains
# The first point is that of few rows, as where rows are many.
FEW = DEFAULT.changed(blocks={"sample_rows": 400, "class_rows": 10})


@pytest.fixture(autouse=True)
def _small_sample(monkeypatch):
    monkeypatch.setattr(MarginClassifier, "_tuning", FEW)


@pytest.fixture(scope="module")
def rows():
    return made()


def made():
    """Rows, labels and weights."""
    rng = np.random.default_rng(0)
    X = sparse.random(N, D, 12 / D, "csr", random_state=0, dtype=np.float64)
    y = (X @ rng.normal(size=(D, K)) + 0.1 * rng.normal(size=(N, K))).argmax(axis=1)
    return X, y, rng.uniform(0.1, 2.0, N)


def cut(values, pause=0.0, part=N // PARTS):
    return blocks(values, part, pause=pause)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("machine", [CrammerSingerSVC(), WestonWatkinsSVC(C=0.3), TopKSVC(k=2)], ids=str)
def test_optimum_of_the_rows_in_memory(rows, machine, fit_intercept):
    X, y, weight = rows
    model = clone(machine).set_params(tol=1e-2, random_state=0, fit_intercept=fit_intercept)
    model.fit(cut(X), cut(y), sample_weight=cut(weight))
    exact = clone(machine).set_params(tol=1e-6, fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    assert model.dual_gap_ <= 1e-2
    assert exact.objective_ * (1 - 1e-6) <= model.objective_
    assert model.objective_ * (1 - model.dual_gap_) <= exact.objective_ * (1 + 1e-9)


def test_single_precision_and_an_empty_partition(rows):
    X, y, _ = rows
    parts, labels = cut(X.astype(np.float32)), cut(y)
    parts.insert(3, dask.delayed(X[:0]))
    labels.insert(3, dask.delayed(y[:0]))
    model = CrammerSingerSVC(tol=1e-2, random_state=0).fit(parts, labels)
    exact = CrammerSingerSVC(tol=1e-6).fit(X, y)
    assert model.dual_gap_ <= 1e-2
    assert exact.objective_ * (1 - 1e-6) <= model.objective_
    assert model.objective_ * (1 - model.dual_gap_) <= exact.objective_ * (1 + 1e-6)


def test_the_same_bits_on_threads_and_workers(rows, cluster, client, monkeypatch):
    X, y, _ = rows

    def fitted():
        return numbers(CrammerSingerSVC(tol=0.05, random_state=0).fit(cut(X), cut(y)))

    with_two = fitted()
    cluster.scale(1)
    with_one = fitted()
    monkeypatch.setattr(workers, "current_client", lambda: None)
    assert with_two == with_one == fitted()


@pytest.mark.filterwarnings("ignore")
def test_the_same_bits_although_a_worker_is_killed(rows):
    X, y, _ = rows
    calm = numbers(CrammerSingerSVC(tol=0.1, random_state=0).fit(cut(X), cut(y)))
    dead = []

    def kill(cluster):
        ready = [n for n in cluster.workers.values() if n.status == n.process.status == Status.running]
        dead.append(ready[0].pid)
        os.kill(dead[-1], signal.SIGKILL)  # with duals of many rounds in its memory

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 30, "distributed.deploy.lost-worker-timeout": 999}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        rounds = []
        inner = workers.DaskRows.map_chains

        def counted(self, task, kept=None):
            rounds.append(task.name)
            if len(rounds) == 6:
                threading.Timer(0.05, kill, [cluster]).start()
            return inner(self, task, kept)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers.DaskRows, "map_chains", counted)
            assert numbers(CrammerSingerSVC(tol=0.1, random_state=0).fit(cut(X, 0.02), cut(y))) == calm
    assert dead and len(rounds) > 6


CLIENT = """
import os, signal, sys
sys.path[:0] = [{folder!r}]
from skmargin.solvers.blocks import from_rows
from test_local_rounds import FEW, CrammerSingerSVC, MarginClassifier, checkpoint, cut, made
from_rows.SMALL_BYTES, MarginClassifier._tuning = 0, FEW
checkpoint.SECONDS, checkpoint.SHARE = 0.0, float("inf")
save, points = checkpoint.Checkpoint.save, []
def last(self, *point):
    save(self, *point)
    points.append(point)
    if len(points) == {rounds}:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.Checkpoint.save = last
X, y, _ = made()
CrammerSingerSVC(tol=0.02, random_state=0, verbose=1).fit(cut(X), cut(y), checkpoint={path!r})
"""


def gaps(text):
    """Estimates of the gap of all rounds, as a fit tells them."""
    return [float(line.split("gap about ")[1].split(",")[0]) for line in text.splitlines() if "gap about" in line]


def test_a_client_that_died_loses_no_more_than_the_last_round(rows, tmp_path, capsys):
    X, y, _ = rows
    path, rounds = tmp_path / "fit.npz", 20
    code = CLIENT.format(folder=str(Path(__file__).parent), path=str(path), rounds=rounds)
    search = os.pathsep.join(sys.path)  # where the helpers of the tests are
    told = subprocess.run(
        [sys.executable, "-u", "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": search}
    )
    assert told.returncode == -signal.SIGKILL and path.exists()
    before = gaps(told.stdout)
    model = CrammerSingerSVC(tol=0.02, random_state=0, verbose=1).fit(cut(X), cut(y), checkpoint=path)
    after = gaps(capsys.readouterr().out)
    whole = CrammerSingerSVC(tol=0.02, random_state=0).fit(cut(X), cut(y))
    assert model.dual_gap_ <= 0.02 and not path.exists()
    assert len(before) == rounds and after[0] <= 1.01 * before[-1] < 0.5 * before[4]
    assert whole.n_iter_ > rounds + 10
    assert rounds + len(after) <= 1.3 * whole.n_iter_  # the acceleration begins anew


def test_a_checkpoint_is_for_rows_in_any_partitions_and_too_many_duals_are_left_out(rows, tmp_path, monkeypatch):
    X, y, weight = rows
    # Rows that are left out have no duals; multiples of 1/8 have the same sums in all partitions.
    weight = np.where(np.arange(N) % 3 == 0, 0.0, np.ceil(8 * weight) / 8)
    path = tmp_path / "fit.npz"
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    monkeypatch.setattr(checkpoint.Checkpoint, "remove", lambda self: None)
    given = {"tol": 0.05, "random_state": 0, "fit_intercept": False}
    first = CrammerSingerSVC(**given).fit(cut(X), cut(y), sample_weight=cut(weight), checkpoint=path)
    parts = [cut(value, part=N // 16) for value in (X, y, weight)]
    again = CrammerSingerSVC(**given).fit(*parts[:2], sample_weight=parts[2], checkpoint=path)
    assert again.dual_gap_ <= 0.05 and again.n_iter_ <= 4 < first.n_iter_
    assert again.objective_ <= first.objective_ * (1 + 1e-6)
    path.unlink()
    monkeypatch.setattr(local_rounds, "MOST_KEPT", 0)
    CrammerSingerSVC(**given).fit(cut(X), cut(y), checkpoint=path)
    with np.load(path) as held:
        assert set(held.files) == {"mark", "W", "b"}


def test_partitions_of_a_chain_cost_no_rounds(rows):
    X, y, _ = rows
    few, many = (
        CrammerSingerSVC(tol=0.02, random_state=0, fit_intercept=False).fit(cut(X, part=part), cut(y, part=part))
        for part in (N // LEAST_CHAINS, N // (4 * LEAST_CHAINS))
    )
    assert few.dual_gap_ <= 0.02 and many.n_iter_ <= 1.3 * few.n_iter_


def test_chains_hold_all_partitions_in_their_order():
    for n in (1, 2, 7, 8, 9, 33, 128, 1000):
        chains = dealt(list(range(n)))
        assert [one for chain in chains for one in chain] == list(range(n)) and all(chains)
        assert len(chains) == chain_count(n) and min(n, LEAST_CHAINS) <= len(chains) <= MOST_CHAINS


def test_balance_is_the_largest_feasible_scaling():
    rng = np.random.default_rng(0)
    k = 6
    flows = rng.uniform(0.5, 1.5, (k, k))
    np.fill_diagonal(flows, 0.0)
    flows[:, 4] = 0.0  # nobody holds duals against this class: its own have to go
    flows[2:4, 5] = 0.0
    caps = np.full(k, flows.sum())
    factors = balance(flows, caps)
    scaled = factors[:, None] * flows
    np.testing.assert_allclose(scaled.sum(axis=0), scaled.sum(axis=1), atol=1e-11)
    assert factors[4] <= 1e-11 and factors.max() == 1.0 and factors[[0, 1, 2, 3, 5]].min() > 0.1
    other = np.delete(np.delete(flows, 4, 0), 4, 1)  # the circulation of the rest: a null vector, which is unique
    _, _, Vt = np.linalg.svd(np.diag(other.sum(axis=1) + np.delete(flows[:, 4], 4)) - other.T)
    expected = np.abs(Vt[-1]) / np.abs(Vt[-1]).max()
    np.testing.assert_allclose(np.delete(factors, 4), expected, rtol=1e-8)


def test_a_round_arrives_as_it_was_sent_without_features_that_no_row_has():
    W, mean = np.zeros((3, 50_000), dtype=np.float32), np.zeros(50_000)
    W[:, 7:40], mean[9:30] = 1.5, 0.25
    task = LocalRound(BlockProblem(3, "max"), W, np.arange(3.0), 0.5, 8, 0.1, 3, 0.3, mean)
    sums = task.zero()
    sums.gradient[:, 11], sums.values[:] = 2.0, 1.0
    for sent in (task, sums):
        data = pickle.dumps(sent)
        there = pickle.loads(data)
        assert len(data) < 5000
        for name, value in vars(sent).items():
            assert np.array_equal(getattr(there, name), value) or value == getattr(there, name)
