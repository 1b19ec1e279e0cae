"""Runs tasks on processes, each with a time limit, and keeps every finished one in a file that can be continued.

The file is tidy: one line for each number, with all that tells it apart.  The lines of a task are written by one call
at the end of the file, so an interrupted run, or two runs at once, leave whole tasks only.
"""

from __future__ import annotations

import csv
import io
import math
import multiprocessing
import os
import platform
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from threadpoolctl import threadpool_limits

import skmargin

from .._types import RowsLike
from ..datasets import DataError
from ._data import divide, is_here, load
from ._spec import Source, Task, in_units

COLUMNS = (
    "experiment", "run", "data", "method", "split", "settings", "quantity", "x", "value", "fit_seconds",
    "predict_seconds", "search_seconds", "params", "status", "n_train", "n_test", "n_features", "n_classes", "versions",
)  # fmt: skip
KEY = ("data", "split", "settings")
OUT = "out of budget"
ROUND = 10
OVER_BUDGET = 77  # exit code of a process that used up its time
PATIENCE = 20  # times the budget that a process may take by the clock
TIMES = ("fit_seconds", "predict_seconds", "search_seconds")
Result = dict[str, str]


def read_results(path: str | os.PathLike[str]) -> list[Result]:
    """The lines of a results file, the unfinished end of an interrupted write left out; none if there is no file.

    Examples
    --------
    >>> from skmargin.experiments import read_results
    >>> read_results("no-such-results.csv")
    []
    """
    path = Path(path)
    if not path.exists():
        return []
    content, head = path.read_bytes(), ",".join(COLUMNS).encode() + b"\n"
    if not content.startswith(head) and not head.startswith(content):  # it would be continued
        raise DataError(f"{path}: is no file of results of experiments; name another folder, or move it away.")
    return list(csv.DictReader(io.StringIO(_whole(content).decode(), newline="")))


def pending(
    tasks: Iterable[Task], results: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None
) -> tuple[list[Task], list[Source]]:
    """The tasks that the results file does not hold yet, and the data sets that are missing, whose tasks are left out.

    A task that several experiments share is there once, for the first of them.  Tasks that failed are tried again, and
    so are those out of budget when the budget has grown.

    Examples
    --------
    >>> from skmargin.experiments import choose, pending
    >>> tasks, missing = pending(choose("xu-table2")[0].tasks(), "no-such-file.csv")
    >>> sorted({task.row.data.name for task in tasks}), len(missing)
    (['iris'], 5)
    """
    status = {tuple(line[name] for name in KEY): line["status"] for line in read_results(results)}
    here: dict[Source, bool] = {}
    asked: set[tuple[str, ...]] = set()
    left = []
    for task in tasks:
        source = task.row.data
        if source not in here:
            here[source] = is_here(source, folder)
        again = _again(status.get(task.key), task.row.protocol.budget)
        if here[source] and again and task.key not in asked:
            left.append(task)
            asked.add(task.key)
    return left, [source for source, there in here.items() if not there]


def _again(status: str | None, budget: float) -> bool:
    """Whether a task with such an outcome, None without one, is to be done."""
    if status is None or status.startswith("failed"):
        return True
    return status.startswith(OUT) and float(status.removeprefix(OUT).strip(" ()s") or 0) < budget


def in_rounds(tasks: Iterable[Task], results: str | os.PathLike[str] | None = None) -> list[Task]:
    """The first ten divisions of everything, then the next ten; in each round the data sets that cost least first.

    A run that is stopped then leaves no table empty and has filled the most of them.  What a division costs the earlier
    ones in the results file tell; a method without any may need its whole budget.  Tasks of one data set stay together.

    Examples
    --------
    >>> from skmargin.experiments import choose, in_rounds
    >>> tasks = in_rounds(choose("xu-table2")[0].tasks())
    >>> tasks[0].split
    0
    """
    seconds: dict[str, list[float]] = {}
    for line in read_results(results) if results is not None else []:
        if any(line[name] for name in TIMES):
            seconds.setdefault(line["settings"], []).append(sum(float(line[name] or 0) for name in TIMES))
    tasks = list(tasks)
    cost: dict[tuple[int, str, str], float] = {}
    for task in tasks:
        known = seconds.get(task.settings)
        group = _group(task)
        cost[group] = cost.get(group, 0.0) + (sum(known) / len(known) if known else task.row.protocol.budget)
    return sorted(tasks, key=lambda task: (task.split // ROUND, cost[_group(task)]))


def _group(task: Task) -> tuple[int, str, str]:
    """Of a round, the tasks that one table has on one data set."""
    return task.split // ROUND, task.experiment.name, task.row.data.name


def run(
    tasks: Sequence[Task],
    results: str | os.PathLike[str],
    *,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
) -> Iterator[tuple[Task, str]]:
    """Do tasks; yields each with its outcome when it is in the results file.

    Parameters
    ----------
    tasks : sequence of Task
        From `pending`.
    results : path
        CSV file that results are appended to.
    folder : path, default=None
        Where the data files are.
    n_jobs : int, default=1
        Number of processes, each with one BLAS thread.

    Yields
    ------
    task : Task
        That is done.
    outcome : str
        "ok", "not converged", "out of budget (... s)", "left out" or "failed: ...".

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skmargin.experiments import choose, pending, read_results, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results.csv"
    ...     tasks, _ = pending(choose("xu-table2")[0].tasks(quick=True), path)
    ...     print(len(list(run(tasks[:1], path))), len(read_results(path)) > 0)
    1 True
    """
    path = Path(results)
    if path.exists():
        os.truncate(path, len(_whole(path.read_bytes())))
    workers = [_Worker(folder) for _ in range(min(n_jobs, len(tasks)))]
    try:
        waiting = iter(tasks)
        busy = {worker: task for worker, task in zip(workers, waiting, strict=False)}  # noqa: C416
        for worker, task in busy.items():
            worker.start(task)
        while busy:
            for worker in _ready(list(busy)):
                task = busy.pop(worker)
                records = worker.finish()
                _append(path, task, records)
                following = next(waiting, None)
                if following is not None:
                    busy[worker] = following
                    worker.start(following)
                yield task, records[0].get("status", "ok")
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that does one task at a time and is replaced when a task exceeds its budget."""

    def __init__(self, folder: Any) -> None:
        self._folder = folder
        self._launch()

    def _launch(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._folder), daemon=True)
        self._process.start()
        theirs.close()

    def start(self, task: Task) -> None:
        # The process watches its own processor time; this is for one that hangs.
        self._budget = task.row.protocol.budget
        self.deadline = time.monotonic() + PATIENCE * self._budget
        self.connection.send(task)

    def finish(self) -> list[dict[str, Any]]:
        outcome = f"{OUT} ({self._budget:g} s)"
        try:
            if self.connection.poll():
                records: list[dict[str, Any]] = self.connection.recv()
                return records
        except (EOFError, ConnectionError):  # the process has ended: recv says so, on Windows poll already
            self._process.join()
            if self._process.exitcode != OVER_BUDGET:
                outcome = f"failed: the process ended ({self._process.exitcode})"
        self.stop()
        self._launch()
        return [{"quantity": "nothing", "status": outcome}]

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _ready(busy: list[_Worker]) -> list[_Worker]:
    """Workers that answered or are past their deadline; waits for the first."""
    while True:
        answered = wait([worker.connection for worker in busy], timeout=0.25)
        now = time.monotonic()
        found = [worker for worker in busy if worker.connection in answered or now > worker.deadline]
        if found:
            return found


def _serve(connection: Connection, folder: Any) -> None:
    """Life of a process: tasks in, records out; the data set of the last task is kept."""
    loaded: tuple[Source | None, Any] = (None, None)
    watch = _Watch()
    watch.start()
    with threadpool_limits(limits=1):
        while True:
            try:
                task = connection.recv()
            except (EOFError, KeyboardInterrupt):
                return
            try:
                if loaded[0] != task.row.data:
                    loaded = (task.row.data, load(task.row.data, folder))
                watch.limit = time.process_time() + task.row.protocol.budget
                records = compute(task, *loaded[1])
            except KeyboardInterrupt:
                return
            except Exception as error:  # one method that cannot cope must not cost the others their results
                records = [{"quantity": "nothing", "status": f"failed: {type(error).__name__}: {error}"}]
            watch.limit = math.inf
            connection.send(records)


class _Watch(threading.Thread):
    """Ends the process when its parent is gone or it has used more processor time than ``limit``."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.limit = math.inf

    def run(self) -> None:
        parent = multiprocessing.parent_process()
        while time.process_time() < self.limit and parent is not None and parent.is_alive():
            time.sleep(0.2)
        os._exit(OVER_BUDGET)


def compute(task: Task, X: RowsLike, y: np.ndarray, n_train: int) -> list[dict[str, Any]]:
    """The records of one task, for rows, labels and the number of training rows of the files."""
    n_classes = int(y.max()) + 1
    protocol = replace(task.row.protocol, values=task.experiment.values(task.row, task.method))
    train, test = divide(protocol, y, n_train, task.split)
    size = {"n_train": len(train), "n_test": len(test), "n_features": X.shape[1], "n_classes": n_classes}
    most = task.experiment.max_classes.get(task.method.name, n_classes)
    if n_classes > most or (task.method.dense and sparse.issparse(X)):
        return [{"quantity": "nothing", "status": "left out", **size}]
    method = in_units(task.method, task.experiment.units.get(task.method.name, ""), len(train), n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = task.experiment.measure(method, protocol, task.row.data.scale, X, y, train, test, task.split)
    return [{"status": "ok", **size, **record} for record in records]


def versions() -> str:
    """What the numbers were made with."""
    packages = {"skmargin": skmargin, "scikit-learn": sklearn, "numpy": np}
    words = [f"{name} {package.__version__}" for name, package in packages.items()]
    return "; ".join([*words, f"python {platform.python_version()}"])


def _append(path: Path, task: Task, records: list[dict[str, Any]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", restval="")
    if not path.exists() or path.stat().st_size == 0:
        writer.writeheader()
    common = dict(zip(KEY, task.key, strict=True)) | {"versions": versions(), "run": "quick" if task.quick else "full"}
    common |= {"experiment": task.experiment.name, "method": task.method.name}
    for record in records:
        rounded = {name: f"{value:.3g}" if name in TIMES else value for name, value in record.items()}
        rounded |= {name: f"{record[name]:.6g}" for name in ("x", "value") if name in record}
        writer.writerow({**common, **rounded, "status": str(record.get("status", "ok")).replace("\n", " ")[:200]})
    with open(path, "ab") as file:
        file.write(text.getvalue().encode())
        file.flush()
        os.fsync(file.fileno())


def _whole(content: bytes) -> bytes:
    """The content without the unfinished line of an interrupted write and what else its task may have written."""
    lines = content.splitlines(keepends=True)
    if not lines or lines[-1].endswith(b"\n"):
        return content
    lines.pop()
    task = _task_of(lines[-1]) if lines else None
    while len(lines) > 1 and _task_of(lines[-1]) == task:
        lines.pop()
    return b"".join(lines)


def _task_of(line: bytes) -> list[str]:
    return next(csv.reader([line.decode()]))[: len(KEY)]
