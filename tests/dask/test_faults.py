"""Workers that die, join late or are slow; clients that die; nobody left; Ctrl-C."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from _thread import interrupt_main

import dask
import dask.array as da
import numpy as np
import pytest
from dask_data import numbers
from distributed import Client, LocalCluster, Status

from skmargin import CrammerSingerSVC

N, D, K, PARTS = 24_000, 8, 4, 12
KILLS = 10
LOUD = pytest.mark.filterwarnings("ignore")  # Dask tells of every worker that is lost


def made(part, pause=0.0):
    """Rows and labels of a partition, which take their time."""
    time.sleep(pause)
    rng = np.random.default_rng(part)
    y = rng.integers(0, K, N // PARTS)
    return np.random.default_rng(99).normal(size=(K, D))[y] + 1.3 * rng.normal(size=(N // PARTS, D)), y


def collections(pause=0.0):
    parts = [dask.delayed(made)(part, pause) for part in range(PARTS)]
    return [dask.delayed(lambda part: part[0])(part) for part in parts], [
        dask.delayed(lambda part: part[1])(part) for part in parts
    ]


class Killer(threading.Thread):
    """Kills a worker of a cluster by SIGKILL at random times, while all of them are there."""

    def __init__(self, cluster, seed):
        super().__init__()
        self.cluster, self.rng, self.over = cluster, np.random.default_rng(seed), threading.Event()
        self.dead = set()  # addresses; a nanny that restarts its worker gives it a new one

    def run(self):
        while len(self.dead) < KILLS and not self.over.wait(self.rng.uniform(0.2, 1.0)):
            known, nannies = set(self.cluster.scheduler.workers), list(self.cluster.workers.values())
            ready = [n for n in nannies if n.status == n.process.status == Status.running]
            there = {nanny.worker_address: nanny.pid for nanny in ready if nanny.worker_address in known - self.dead}
            if len(there) == len(nannies):  # one that dies while it starts does not come back
                address = self.rng.choice(sorted(there))
                self.dead.add(address)
                os.kill(there[address], signal.SIGKILL)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


@LOUD
def test_the_same_bits_although_workers_are_killed_ten_times():
    calm = numbers(CrammerSingerSVC(random_state=0).fit(*collections()))
    with (
        # One partition may be on more than three of the workers that are killed, after which Dask would blame it; and a
        # local cluster gives up a worker that is not there 15 seconds after it was lost, even for the second time.
        dask.config.set({"distributed.scheduler.allowed-failures": 30, "distributed.deploy.lost-worker-timeout": 999}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster,
        Client(cluster),
        Killer(cluster, seed=0) as killer,
    ):
        for _ in range(40):  # fits
            assert numbers(CrammerSingerSVC(random_state=0).fit(*collections(0.02))) == calm
            if len(killer.dead) == KILLS:
                break
    assert len(killer.dead) == KILLS


@LOUD
def test_a_worker_that_joins_late():
    calm = numbers(CrammerSingerSVC(random_state=0).fit(*collections()))
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        timer = threading.Timer(0.3, cluster.scale, [2])
        timer.start()
        assert numbers(CrammerSingerSVC(random_state=0).fit(*collections(0.03))) == calm
        timer.join()


@LOUD
def test_a_worker_that_is_slow():
    calm = numbers(CrammerSingerSVC(random_state=0).fit(*collections()))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        slow, over = next(iter(cluster.workers.values())).pid, threading.Event()

        def hinder():  # it stands still two thirds of the time
            while not over.wait(0.05):
                os.kill(slow, signal.SIGSTOP)
                over.wait(0.1)
                os.kill(slow, signal.SIGCONT)

        thread = threading.Thread(target=hinder)
        thread.start()
        try:
            found = numbers(CrammerSingerSVC(random_state=0).fit(*collections(0.02)))
        finally:
            over.set()
            thread.join()
    assert found == calm


@LOUD
def test_nobody_left_is_an_error_after_a_time():
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        threading.Timer(1.0, cluster.scale, [0]).start()
        with (
            dask.config.set({"skmargin.worker-timeout": 1.0}),
            pytest.raises(RuntimeError, match="No Dask worker is left, for 1 seconds now"),
        ):
            CrammerSingerSVC().fit(*collections(1.0))


def test_ctrl_c_cancels_the_tasks(client):
    threading.Timer(1.5, interrupt_main).start()
    model = CrammerSingerSVC()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*collections(5.0))
    assert not hasattr(model, "n_iter_")
    limit = time.monotonic() + 30
    while any(client.processing().values()) and time.monotonic() < limit:
        time.sleep(0.1)  # a task that has begun goes on to its end
    assert not any("skmargin" in str(key) for keys in client.processing().values() for key in keys)


def test_a_fit_goes_on_where_a_dead_client_left_it(tmp_path):
    path, began = tmp_path / "fit.npz", tmp_path / "began"
    code = f"""
        import pathlib, time
        import dask.array as da, numpy as np
        from skmargin import CrammerSingerSVC
        from skmargin._runtime import checkpoint
        from skmargin.solvers.blocks import from_rows, newton
        from_rows.SMALL_BYTES = 0
        save = checkpoint.Checkpoint.save
        def slow(self, W, b):
            save(self, W, b)
            pathlib.Path({str(began)!r}).touch()
            time.sleep(60)
        checkpoint.Checkpoint.save = slow
        rng = np.random.default_rng(0)
        y = rng.integers(0, 4, 20_000)
        X = rng.normal(size=(4, 6))[y] + rng.normal(size=(20_000, 6))
        CrammerSingerSVC(random_state=0).fit(
            da.from_array(X, chunks=(5000, 6)), da.from_array(y, chunks=5000), checkpoint={str(path)!r}
        )
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    limit = time.monotonic() + 120
    while not began.exists():
        assert process.poll() is None and time.monotonic() < limit
        time.sleep(0.05)
    process.kill()
    process.wait()
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 20_000)
    X = rng.normal(size=(4, 6))[y] + rng.normal(size=(20_000, 6))
    collections = da.from_array(X, chunks=(5000, 6)), da.from_array(y, chunks=5000)
    with pytest.raises(ValueError, match=r"fit.npz is the checkpoint of another fit"):
        CrammerSingerSVC(C=2.0, random_state=0).fit(*collections, checkpoint=path)
    went_on = CrammerSingerSVC(random_state=0).fit(*collections, checkpoint=path)
    assert not path.exists()
    whole = CrammerSingerSVC(random_state=0).fit(*collections)
    assert went_on.dual_gap_ <= 1e-3
    assert went_on.objective_ == pytest.approx(whole.objective_, rel=1e-3)


def test_checkpoints_that_are_none(tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(ValueError, match=r"broken.npz is no checkpoint; move it away"):
        CrammerSingerSVC().fit(*collections(), checkpoint=broken)
    with pytest.raises(ValueError, match="there is no folder"):
        CrammerSingerSVC().fit(*collections(), checkpoint=tmp_path / "none" / "fit.npz")
    with pytest.raises(ValueError, match="checkpoint is for rows in blocks"):
        CrammerSingerSVC().fit(*made(0), checkpoint=tmp_path / "fit.npz")
