"""Many columns: rounds in which partitions keep their duals, and the optimum of the rows in memory."""

import os
import pickle
import signal
import threading
import time

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster, Status
from scipy import sparse
from sklearn.base import clone

from skmargin import CrammerSingerSVC, TopKSVC, WestonWatkinsSVC
from skmargin._runtime import checkpoint
from skmargin.rows import workers
from skmargin.rows.chains import LEAST_CHAINS, MOST_CHAINS, chain_count, dealt
from skmargin.solvers.blocks import from_rows
from skmargin.solvers.blocks.local_rounds import balance
from skmargin.solvers.blocks.local_task import LocalRound
from skmargin.solvers.blocks.passes import BlockProblem

N, D, K, PARTS = 4000, 3000, 5, 10  # more partitions than chains


@pytest.fixture(autouse=True)
def _none_is_small(monkeypatch):
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
    monkeypatch.setattr(from_rows, "SAMPLE_ROWS", 400)  # the first point is that of few rows, as where rows are many
    monkeypatch.setattr(from_rows, "CLASS_ROWS", 10)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = sparse.random(N, D, 12 / D, "csr", random_state=0, dtype=np.float64)
    y = (X @ rng.normal(size=(D, K)) + 0.1 * rng.normal(size=(N, K))).argmax(axis=1)
    return X, y, rng.uniform(0.1, 2.0, N)


def cut(values, pause=0.0):
    """Partitions that take their time to be made."""

    def part(at):
        time.sleep(pause)
        return values[at : at + N // PARTS]

    return [dask.delayed(part)(at) for at in range(0, N, N // PARTS)]


def numbers(model):
    return model.coef_.tobytes(), model.intercept_.tobytes(), model.objective_, model.dual_gap_, model.n_iter_


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


def test_a_checkpoint_is_where_the_fit_goes_on(rows, tmp_path, monkeypatch, capsys):
    X, y, _ = rows
    path, removed = tmp_path / "fit.npz", []
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint.Checkpoint, "remove", lambda self: removed.append(self))
    firsts, models = [], []
    for _ in range(2):  # the file stays as a client leaves it that dies in the last round
        model = CrammerSingerSVC(tol=0.02, random_state=0, verbose=1).fit(cut(X), cut(y), checkpoint=path)
        lines = [line for line in capsys.readouterr().out.splitlines() if "local round 2," in line]
        firsts.append(float(lines[0].split("objective ")[1].split(",")[0]))
        models.append(model)
    assert removed and all(model.dual_gap_ <= 0.02 for model in models)
    assert firsts[0] > 1.1 * models[0].objective_  # from a sample, and not so from the file
    assert firsts[1] <= 1.001 * models[0].objective_


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
