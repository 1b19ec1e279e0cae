"""A real cluster of processes on this machine."""

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    cluster.scale(2)
    with Client(cluster) as client:
        client.wait_for_workers(2)
        yield client
