"""Fits on Dask: rounds, time, what is sent and what Dask itself costs, on a cluster of processes on this machine.

    python -m benchmarks.dask gauss [--rows 4e6]      # one worker and two, in memory; the cost of a round without rows
    python -m benchmarks.dask parquet [--rows 1e7]    # from files, each worker with a memory limit of 1 GB
    python -m benchmarks.dask text [--rows 1e6] [--tol 1e-2,1e-3]
    python -m benchmarks.dask rounds [--rows 1e4]     # of text by gear and number of partitions, on threads
    python -m benchmarks.dask cost                    # of a row of 1,000 features, for the model of time

Each part replaces its own figures in benchmarks/results/dask.json, from which `benchmarks.dask_page` writes the page.
Wall times need a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pickle
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import dask
import numpy as np
from distributed import Client, LocalCluster, wait
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skmargin import CrammerSingerSVC
from skmargin.estimators._base import MarginClassifier
from skmargin.rows.blocks import Block
from skmargin.rows.chains import chain_count
from skmargin.rows.workers import DaskRows, Partition, current_client
from skmargin.solvers.blocks import from_rows, local_rounds
from skmargin.solvers.blocks.gradient import GradientPass
from skmargin.solvers.blocks.passes import BlockProblem, Frame, SmoothPass
from skmargin.solvers.tuning import DEFAULT

from .measure import pinned, timed

OUT = Path(__file__).parent / "results" / "dask.json"
PARTS, D, K = 32, 50, 10
TEXT = 100_000, 20  # features, classes


def gauss_part(part: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of a partition: classes that overlap."""
    rng = np.random.default_rng([1, part])
    means = 2.0 * np.random.default_rng(0).normal(size=(K, D)) / np.sqrt(D)
    y = rng.integers(K, size=n)
    X = rng.standard_normal((n, D), dtype=np.float32)
    X += means.astype(np.float32)[y]
    return X, y


def text_part(part: int, n: int, length: int = 60, features: int = TEXT[0]) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows of words: Zipf's law, topics that shift it for each class, one label of twenty wrong; rows of length 1."""
    d, k, common = features, TEXT[1], np.random.default_rng(0)
    share = 1 / (10.0 + np.arange(d))
    totals = [np.cumsum(share * np.exp(common.normal(size=d))) for _ in range(k)]
    rng = np.random.default_rng([2, part])
    topic = rng.integers(k, size=n)
    size = 1 + rng.poisson(length, size=n)
    row = np.repeat(np.arange(n), size)
    word = np.empty(len(row), dtype=np.int32)
    for c in range(k):
        at = np.flatnonzero(topic[row] == c)
        word[at] = np.searchsorted(totals[c], totals[c][-1] * rng.random(len(at)))
    X = sparse.csr_array((np.ones(len(row), dtype=np.float32), (row, np.minimum(word, d - 1))), shape=(n, d))
    X.sum_duplicates()
    X.data = 1 + np.log(X.data)
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr)).astype(np.float32)
    return X, np.where(rng.random(n) < 0.05, rng.integers(k, size=n), topic)


def collections(make: Any, n: int, client: Client) -> tuple[list[Any], list[Any]]:
    """Rows and labels in `PARTS` partitions, which stay in the memory of the workers."""
    parts = [dask.delayed(make, pure=True)(part, n // PARTS) for part in range(PARTS)]
    X = [dask.delayed(_item, pure=True)(part, 0) for part in parts]
    y = [dask.delayed(_item, pure=True)(part, 1) for part in parts]
    held = client.persist([*X, *y])
    wait(held)
    return held[:PARTS], held[PARTS:]


def _item(pair: tuple[Any, Any], place: int) -> Any:
    return pair[place]


@contextlib.contextmanager
def rounds() -> Iterator[list[dict[str, Any]]]:
    """What each pass over the rows does, how long it takes, and what is sent to the tasks and comes back, in bytes."""
    found: list[dict[str, Any]] = []
    inner = {name: getattr(DaskRows, name) for name in ("map_sum", "map_chains")}

    def watched(name: str) -> Any:
        def run(self: DaskRows, task: Any, *kept: Any) -> Any:
            begin = time.perf_counter()
            result = inner[name](self, task, *kept)
            seconds = time.perf_counter() - begin
            sent, back = (len(pickle.dumps(one)) for one in (task, result if name == "map_sum" else result[0]))
            found.append({"task": task.name, "seconds": seconds, "sent": sent, "back": back})
            return result

        return run

    for name in inner:
        setattr(DaskRows, name, watched(name))
    try:
        yield found
    finally:
        for name, method in inner.items():
            setattr(DaskRows, name, method)


@contextlib.contextmanager
def cluster(n_workers: int, memory: str | None = None) -> Iterator[Client]:
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=memory) as here,
        Client(here) as client,
    ):
        client.wait_for_workers(n_workers)
        yield client


def fit(X: Any, y: Any, tol: float = 1e-3, C: float = 1.0) -> dict[str, Any]:
    """The figures of one fit."""
    client = current_client()
    with rounds() as passes, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        before = {} if client is None else client.run(time.process_time)
        begin, own = time.perf_counter(), time.process_time()
        model = CrammerSingerSVC(C=C, tol=tol, n_jobs=2, random_state=0).fit(X, y)
        seconds, own = time.perf_counter() - begin, time.process_time() - own
        after = {} if client is None else client.run(time.process_time)
    return {
        "seconds": seconds, "client_cpu": own, "worker_cpu": [after[worker] - before[worker] for worker in before],
        "rounds": len(passes), "gap": model.dual_gap_, "tol": tol,
        "pass_seconds": statistics.median(one["seconds"] for one in passes[1:]),
        "sent": max(one["sent"] for one in passes), "back": max(one["back"] for one in passes[1:]),
        "in_passes": sum(one["seconds"] for one in passes), "objective": model.objective_,
    }  # fmt: skip


def gauss(n: int, times: int = 7) -> dict[str, Any]:
    found: dict[str, Any] = {"rows": n, "features": D, "classes": K, "partitions": PARTS, "repeats": times}
    with cluster(1) as one, cluster(2) as two:
        rows = {1: collections(gauss_part, n, one), 2: collections(gauss_part, n, two)}
        fits: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
        for _ in range(times):  # in turns
            for workers, client in ((1, one), (2, two)):
                with client.as_current():
                    fits[workers].append(fit(*rows[workers]))
        for workers, some in fits.items():  # in the middle
            found[f"workers_{workers}"] = sorted(some, key=lambda fit: fit["seconds"])[times // 2]
        with two.as_current():
            found["empty_round"] = empty_round(two)
    found["speedup"] = found["workers_1"]["seconds"] / found["workers_2"]["seconds"]
    # What it were on a machine that does nothing else: the busiest worker and the client, which includes the scheduler.
    one, two = (statistics.median(max(fit["worker_cpu"]) + fit["client_cpu"] for fit in fits[n]) for n in (1, 2))
    found["speedup_cpu"] = one / two
    return found


def empty_round(client: Client, times: int = 25) -> dict[str, float]:
    """What a round costs that has next to no rows: with sums of all of the curvature, and of the gradient only.

    CPU seconds are those of the client, with the scheduler, and of the busiest worker.
    """
    X, y = collections(gauss_part, PARTS * K * 4, client)
    rows = DaskRows([Partition(*parts, None) for parts in zip(X, y, strict=True)])
    frame = Frame(np.zeros(D), np.ones(D))
    out = {}
    for name, hessian in (("gradient", 0.0), ("curvature", 0.1)):
        task = SmoothPass(BlockProblem(K, "max"), frame, np.zeros((K, D + 1)), 0.1, hessian)
        taken = []
        workers, own = client.run(time.process_time), time.process_time()
        for _ in range(times):
            begin = time.perf_counter()
            rows.map_sum(task)
            taken.append(time.perf_counter() - begin)
        own = time.process_time() - own
        busiest = max(after - workers[one] for one, after in client.run(time.process_time).items())
        out[name] = statistics.median(taken)
        out[f"{name}_cpu"] = (own + busiest) / times
    return out


def cost(n: int) -> dict[str, Any]:
    """CPU seconds of a pass for each row, on one core: what the model of time takes for 1,000 features."""
    d, found = 1000, {}
    for name, k in (("gradient", K), ("curvature", 2)):
        rng = np.random.default_rng(0)
        block = Block(
            rng.standard_normal((n, d), dtype=np.float32), rng.integers(k, size=n).astype(np.int32), np.ones(n), 0
        )
        problem = BlockProblem(k, "max")
        task: Any = GradientPass(problem, 0.01 * rng.standard_normal((k, d), dtype=np.float32), np.zeros(k), 0.1)
        if name == "curvature":
            W = 0.01 * rng.standard_normal((k, d + 1))
            task = SmoothPass(problem, Frame(np.zeros(d), np.ones(d)), W, 0.1, 0.1)
        with pinned(1):
            sums = task.zero()
            _, seconds = timed(lambda task=task, sums=sums, block=block: task.add(sums, block), 1)
        found[name] = {"features": d, "classes": k, "rows": n, "seconds_per_row": seconds / n}
    return found


def write_parquet(folder: Path, n: int, step: int = 250_000) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for part in range(-(-n // step)):
        X, y = gauss_part(part, min(step, n - part * step))
        columns = {f"x{j}": X[:, j] for j in range(D)}
        pq.write_table(pa.table({**columns, "label": y}), folder / f"{part:04d}.parquet", compression="none")


def parquet(n: int) -> dict[str, Any]:
    import dask.dataframe as dd

    with tempfile.TemporaryDirectory() as folder:
        write_parquet(Path(folder), n)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        with cluster(2, "1GB") as client:
            frame = dd.read_parquet(f"{folder}/*.parquet")
            found = fit(frame[[f"x{j}" for j in range(D)]], frame["label"])
            peak = max(client.run(_peak).values())
            spilled = sum(client.run(_spilled).values())
    return {"rows": n, "bytes": size, "limit": 1e9, "peak": peak, "spilled": spilled, **found}


def _peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _spilled(dask_worker: Any) -> float:
    total = getattr(dask_worker.data, "spilled_total", None)
    return float(total.disk) if total is not None else 0.0


def text(n: int, tols: list[float]) -> dict[str, Any]:
    found: dict[str, Any] = {"rows": n, "features": TEXT[0], "classes": TEXT[1], "partitions": PARTS, "fits": []}
    with cluster(2) as client:
        X, y = collections(text_part, n, client)
        found["stored"] = sum(client.run(_stored).values())
        for tol in tols:
            found["fits"].append(fit(X, y, tol))
            print(found["fits"][-1], flush=True)  # a long run may be cut
    return found


def gears(n: int) -> dict[str, Any]:
    """Rounds of text by gear, partitions, C and tolerance: on the threads of this process, which changes no bit.

    The first point is that of a tenth of the rows, as where rows are many.
    """
    d, k = 20_000, TEXT[1]
    found: dict[str, Any] = {"rows": n, "features": d, "classes": k, "fits": []}
    X, y = text_part(0, n, features=d)
    tenth = DEFAULT.changed(blocks={"sample_rows": n // 10, "class_rows": 10})
    for gear, partitions, C, tol in (
        ("local", 8, 1.0, 1e-2), ("local", 32, 1.0, 1e-2), ("gradients", 8, 1.0, 1e-2), ("local", 32, 1.0, 1e-3),
        ("local", 32, 0.1, 1e-2), ("gradients", 8, 0.1, 1e-2), ("local", 32, 10.0, 1e-2), ("gradients", 8, 10.0, 1e-2),
        ("local", 128, 1.0, 1e-2),
    ):  # fmt: skip
        cuts = [n * part // partitions for part in range(partitions + 1)]
        parts = [[dask.delayed(values[a:b]) for a, b in pairwise(cuts)] for values in (X, y)]
        with (
            mock.patch.object(local_rounds, "suits", lambda problem, gear=gear: gear == "local"),
            mock.patch.object(from_rows, "SMALL_BYTES", 0),
            mock.patch.object(MarginClassifier, "_tuning", tenth),
        ):
            begin = time.process_time()
            one = fit(*parts, tol, C)
        cpu = time.process_time() - begin
        found["fits"].append(
            {"gear": gear, "partitions": partitions, "chains": chain_count(partitions), "C": C, "cpu": cpu, **one}
        )
        print(found["fits"][-1], flush=True)
    return found


def _stored(dask_worker: Any) -> int:
    return sum(int(value.nnz) for value in dask_worker.data.values() if sparse.issparse(value))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("gauss", "parquet", "text", "rounds", "cost"))
    parser.add_argument("--rows", type=float)
    parser.add_argument("--tol", default="1e-2,1e-3")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args(argv)
    rows = int(args.rows or {"gauss": 4e6, "parquet": 1e7, "text": 1e6, "rounds": 1e4, "cost": 2e4}[args.part])
    tols = [float(tol) for tol in args.tol.split(",")]
    parts = {"gauss": gauss, "parquet": parquet, "rounds": gears, "cost": cost}
    found = text(rows, tols) if args.part == "text" else parts[args.part](rows)
    known = json.loads(args.out.read_text()) if args.out.exists() else {}
    args.out.write_text(json.dumps({**known, args.part: found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
