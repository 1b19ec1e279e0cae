"""A real cluster of processes on this machine."""

import multiprocessing

import dask
import pytest
from distributed import Client, LocalCluster

from skmargin.solvers.blocks import from_rows

# Workers are forked from a process that has imported everything: one that was killed is back in half a second.
multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed", "skmargin"])
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})


@pytest.fixture(scope="package")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    cluster.scale(2)
    with Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture(autouse=True)
def _none_is_small(monkeypatch):
    """Few rows are otherwise read into memory."""
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
