"""Rows of Dask collections: a pass is a set of pure tasks, one a partition, whose sums are added in a fixed tree.

No actors, no sockets, no scattered data: every task is a function of a partition and of the point at which the pass is
made, so that Dask itself recomputes what a lost worker held, and the bits are the same.  The number of partitions fixes
the tree; workers and their threads do not change it.

On the current `distributed` client, or on threads where there is none.  What Dask's configuration says under
``skmargin.worker-timeout`` (60 seconds) is how long a pass waits while no worker is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from .blocks import Block, Sums, Task, map_blocks, rows_in_block
from .chains import ChainTask, Kept, chain_count, dealt

Graph = dict[Any, Any]  # of Dask: keys and tasks
FAN_IN = 8  # sums that are added by one task: a tree of 64 partitions has two levels
ATTEMPTS = 20  # at a pass whose tasks die with their workers too often for Dask's own patience
FORGET_SECONDS = 1.0  # until a scheduler has forgotten tasks that were cancelled
WORKER_TIMEOUT = 60.0  # seconds without a worker, unless Dask's configuration says otherwise


class PartitionError(ValueError):
    """A partition cannot be used; the message names it."""


class Partition(NamedTuple):
    """Where the rows of a partition are: delayed values, of which the last may be missing."""

    X: Delayed
    y: Delayed
    weight: Delayed | None


@dataclass(frozen=True)
class PartitionFacts:
    """What is learnt of a partition once, before the first pass."""

    n_rows: int  # as stored
    n_features: int
    dtype: str
    labels: np.ndarray  # in order
    counts: np.ndarray  # of rows with a positive weight
    weights: np.ndarray
    n_bytes: int
    sparse: bool
    columns: tuple[Any, ...] | None  # names, of a data frame
    trouble: str  # why it cannot be used, or nothing


class DaskRows:
    """Rows on the workers of a cluster: partitions in the order of the rows, of which each is looked at once here."""

    in_memory, remote = False, True

    def __init__(self, partitions: Sequence[Partition | Delayed], n_jobs: int | None = 1) -> None:
        self.n_jobs = n_jobs  # threads of this process, for what is done with a sample of the rows
        given = [
            value for one in partitions for value in ([one] if isinstance(one, Delayed) else one) if value is not None
        ]
        self._graph = dict(HighLevelGraph.merge(*(value.dask for value in given)))
        self._keys = [_keys_of(partition) for partition in partitions]
        check = _key("skmargin-check")
        asked = {(check, number): (_facts, keys) for number, keys in enumerate(self._keys)}
        facts: list[PartitionFacts] = self._computed(asked, list(asked))
        for number, fact in enumerate(facts):
            if fact.trouble:
                raise PartitionError(f"Partition {number} of {len(facts)}: {fact.trouble}")
        kept = [fact for fact in facts if fact.n_rows]
        if not kept:
            raise PartitionError(f"All {len(facts)} partitions are empty.")
        self.n_features = kept[0].n_features
        for number, fact in enumerate(facts):
            if fact.n_rows and fact.n_features != self.n_features:
                raise PartitionError(
                    f"Partition {number} of {len(facts)} has {fact.n_features} features, the first one "
                    f"{self.n_features}."
                )
            if fact.n_rows and fact.sparse != kept[0].sparse:
                kinds = ("sparse", "dense") if fact.sparse else ("dense", "sparse")
                raise PartitionError(
                    f"Partition {number} of {len(facts)} holds {kinds[0]} rows, the first one {kinds[1]}."
                )
            if fact.n_rows and fact.columns != kept[0].columns:
                raise PartitionError(
                    f"Partition {number} of {len(facts)} has other columns than the first one, or in another order: "
                    f"{_few(fact.columns)}, and the first one {_few(kept[0].columns)}."
                )
        labels = _all_labels(facts)
        counts, mass = np.zeros(len(labels), dtype=np.int64), np.zeros(len(labels))
        for fact in kept:
            at = np.searchsorted(labels, fact.labels)
            counts[at] += fact.counts
            mass[at] += fact.weights
        present = counts > 0  # a label may occur with weight 0 only
        if not present.any():
            raise PartitionError("sample_weight is zero for every row: nothing is left to fit.")
        self.classes, self.class_counts, self.class_mass = labels[present], counts[present], mass[present]
        self.per_class = np.ones(len(self.classes))  # weights of the classes, which multiply those of the rows
        # float32 stays; where partitions differ the wider type is taken, since a block of the core has one
        self.dtype = np.result_type(*(fact.dtype for fact in kept))
        self._sizes = [fact.n_rows for fact in facts]
        self._used = {number: int(fact.counts.sum()) for number, fact in enumerate(facts) if fact.n_rows}
        self._first = np.concatenate([[0], np.cumsum(self._sizes)]).tolist()
        self.n_rows = int(self.class_counts.sum())
        self.n_blocks, self.n_bytes = len(kept), sum(fact.n_bytes for fact in kept)
        self.overviews: dict[Any, Any] = {}

    @property
    def class_weights(self) -> np.ndarray:
        """Weight of each class."""
        return self.class_mass * self.per_class

    def map_sum(self, task: Task[Sums]) -> Sums:
        """The sums of a task over all rows."""
        name = f"skmargin-{task.name}"
        shared = _key(f"{name}-point")
        graph: Graph = {shared: _Shared(task, self.classes, self.per_class, self.dtype)}
        level: list[Any] = []
        work, add = _key(name), _key(f"{name}-add")
        for number, (first, size) in enumerate(zip(self._first, self._sizes, strict=False)):
            if size:
                level.append((work, number))
                graph[level[-1]] = _partition_sums, self._keys[number], number, first, size, shared
        sums: Sums = self._computed(graph, _tree(graph, level, add, shared))[0]
        return sums

    @property
    def n_chains(self) -> int:
        """How many chains `map_chains` makes of the partitions."""
        return chain_count(self.n_blocks)

    def map_chains(self, task: ChainTask, kept: Kept | None = None) -> tuple[Any, Kept]:
        """The sums of a round in which partitions keep something, and what they keep; ``kept`` is of the last round."""
        name = f"skmargin-{task.name}"
        shared, first, carry, work, add, keep = (
            _key(name + end) for end in ("-point", "-open", "-carry", "", "-add", "-keep")
        )
        graph: Graph = {shared: _Shared(task, self.classes, self.per_class, self.dtype)}
        before = Kept() if kept is None else kept
        graph |= before.values
        level: list[Any] = []
        keys: list[Any] = []
        for chain, partitions in enumerate(dealt([number for number, size in enumerate(self._sizes) if size])):
            carried: Any = (first, chain)
            graph[carried] = _opened, shared
            for number in partitions:
                given = (before.key, number) if kept else None
                at = work, number
                graph[at] = (
                    _visited,
                    self._keys[number],
                    number,
                    self._first[number],
                    self._sizes[number],
                    given,
                    carried,
                    shared,
                )
                carried, held = (carry, number), (keep, number)
                graph[carried], graph[held] = (getitem, at, 0), (getitem, at, 1)
                keys.append(held)
            level.append((add, "chain", chain))
            graph[level[-1]] = _closed, carried, shared
        level = _tree(graph, level, add, shared)
        sums, *values = self._computed(graph, level, keys)
        return sums, Kept(keep, dict(zip(keys, values, strict=True)))

    def fetched(self, kept: Kept) -> list[Any]:
        """What the partitions have kept, in their order, in the memory of this process."""
        values = [kept.values[kept.key, number] for number in self._used]
        client = current_client()
        return values if client is None else _gather(client, values)

    def handed(self, make: Callable[[int, int], Any]) -> Kept:
        """What the partitions are to have kept, of values that ``make`` gives for their rows, from one to another."""
        key, begin, values = _key("skmargin-given"), 0, {}
        for number, size in self._used.items():
            values[key, number] = make(begin, begin + size)
            begin += size
        return Kept(key, values)

    def _computed(self, graph: Graph, keys: list[Any], held: Sequence[Any] = ()) -> list[Any]:
        """The values of some keys of a graph over the partitions, and handles of those that stay where they are."""
        whole = {**self._graph, **graph}
        return _compute([Delayed(key, whole) for key in keys], [Delayed(key, whole) for key in held])


class _Shared(NamedTuple):
    """What all tasks of a pass need."""

    task: Any
    classes: np.ndarray
    per_class: np.ndarray
    dtype: Any


def _tree(graph: Graph, level: list[Any], add: str, shared: str) -> list[Any]:
    """Tasks that add up sums in a fixed tree, put into the graph; returned is the list of the one key at its top."""
    while len(level) > 1:
        parts = [level[at : at + FAN_IN] for at in range(0, len(level), FAN_IN)]
        level = [(add, len(graph) + place) for place in range(len(parts))]
        graph |= {key: (_added, part, shared) for key, part in zip(level, parts, strict=True)}
    return level


def _keys_of(partition: Partition | Delayed) -> Any:
    if isinstance(partition, Delayed):
        return partition.key
    return [None if value is None else value.key for value in partition]


def _partition_sums(partition: Sequence[Any], number: int, first: int, size: int, shared: _Shared) -> Any:
    """The sums of a task over one partition."""
    whole = _block(partition, number, first, size, shared)
    step = rows_in_block(whole.X) if len(whole.y) else 1
    blocks = (whole.cut(at, min(at + step, len(whole.y))) for at in range(0, len(whole.y), step))
    return map_blocks(blocks, shared.task, 1, 1)  # threads of a worker have tasks of their own


def _opened(shared: _Shared) -> Any:
    """What a chain begins with."""
    return shared.task.open()


def _visited(
    partition: Sequence[Any], number: int, first: int, size: int, kept: Any, carried: Any, shared: _Shared
) -> tuple[Any, Any]:
    """What a partition hands on, and what it keeps."""
    result: tuple[Any, Any] = shared.task.visit(carried, _block(partition, number, first, size, shared), kept)
    return result


def _closed(carried: Any, shared: _Shared) -> Any:
    """The sums of a chain."""
    return shared.task.close(carried)


def _block(partition: Sequence[Any], number: int, first: int, size: int, shared: _Shared) -> Block:
    """A partition as all tasks see it."""
    X, y, weight = _arrays(*partition)
    if not X.shape[0] == len(y) == len(weight) == size:
        raise PartitionError(
            f"Partition {number} had {size} rows at first and now has {X.shape[0]}: it must be the same each time."
        )
    X = X.astype(shared.dtype, copy=False)
    keep = np.flatnonzero(weight > 0)
    if len(keep) < len(y):
        X, y, weight = X[keep], y[keep], weight[keep]
    codes = np.searchsorted(shared.classes, y).astype(np.int32)
    return Block(X, codes, weight * shared.per_class[codes], first)


def _added(parts: list[Any], shared: _Shared) -> Any:
    """Sums of several partitions, in their order; a fresh object, since Dask may give its inputs to other tasks."""
    out = shared.task.zero()
    for part in parts:
        shared.task.merge(out, part)
    return out


def _arrays(X: Any, y: Any, weight: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows, labels and weights of a partition as arrays; data frames and series become what they hold."""
    return _numbers(X), *_labels(y, weight)


def _labels(y: Any, weight: Any) -> tuple[np.ndarray, np.ndarray]:
    y = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return y, np.ones(y.shape[:1]) if weight is None else np.asarray(weight, dtype=np.float64)


def _numbers(X: Any) -> Any:
    """The rows as an array of numbers, or CSR."""
    if hasattr(X, "to_numpy"):
        frame, X = X, X.to_numpy()
        if X.dtype == object:  # nullable columns among others
            X = frame.to_numpy(na_value=np.nan)
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    if X.dtype.kind == "c":
        raise TypeError("they are complex")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def _facts(partition: Sequence[Any]) -> PartitionFacts:
    """What is to be known of a partition; an exception of the data becomes its trouble."""
    none = np.zeros(0)

    def nothing(trouble: str) -> PartitionFacts:
        return PartitionFacts(0, 0, "float64", none, none, none, 0, False, None, trouble)

    try:
        X = _numbers(partition[0])
    except (TypeError, ValueError) as error:
        return nothing(f"its rows are no numbers ({error}).")
    try:
        y, weight = _labels(*partition[1:])
        trouble = _trouble(X, y, weight)
        if trouble or not len(y):
            return nothing(trouble)
        labels, at = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:
        return nothing(f"y or sample_weight cannot be used ({error}).")
    kept = weight > 0
    counts = np.bincount(at[kept], minlength=len(labels))
    weights = np.bincount(at[kept], weight[kept], minlength=len(labels))
    n_bytes = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    columns = tuple(partition[0].columns) if hasattr(partition[0], "columns") else None
    return PartitionFacts(
        len(y), X.shape[1], X.dtype.name, labels, counts, weights, n_bytes, sparse.issparse(X), columns, ""
    )


def _few(names: tuple[Any, ...] | None) -> str:
    """Some names of columns, for a message."""
    return "none" if names is None else ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def _is_missing(label: Any) -> bool:
    same = label == label  # neither true nor false for pandas.NA
    return label is None or not (isinstance(same, (bool, np.bool_)) and same)


def _trouble(X: Any, y: np.ndarray, weight: np.ndarray) -> str:
    """Why a partition cannot be used, in one sentence; nothing if it can."""
    if X.ndim != 2:
        return f"X must have two dimensions, got {X.ndim}."
    if not X.shape[1]:
        return "X has no features."
    if y.ndim == 2 and y.shape[1] == 1:
        return "y must have one dimension, got a column; use y[:, 0]."
    if y.ndim != 1:
        return f"y must have one dimension, got {y.ndim}."
    if not X.shape[0] == len(y) == len(weight):
        return f"X has {X.shape[0]} rows, y {len(y)} and sample_weight {len(weight)}; divide them alike."
    values = X.data if sparse.issparse(X) else X
    if not np.isfinite(values.sum(dtype=np.float64)) and not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(X.toarray() if sparse.issparse(X) else X).all(axis=1))[0]
        return f"X holds NaN or infinity in row {bad} of the partition."
    if not np.isfinite(weight).all() or (weight < 0).any():
        return "sample_weight must be finite and not negative."
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        return f"y holds NaN or infinity in row {np.flatnonzero(~np.isfinite(y))[0]} of the partition."
    if y.dtype == object and any(map(_is_missing, y)):
        return "y holds missing values."
    if len(y) and type_of_target(y).startswith("continuous"):
        return f"y holds numbers that are no labels, such as {y[0]!r}; Unknown label type: continuous."
    return ""


def _all_labels(facts: Sequence[PartitionFacts]) -> np.ndarray:
    parts = [fact.labels for fact in facts if len(fact.labels)]
    kinds = {"text" if part.dtype.kind in "OUS" else "numbers" for part in parts}
    if len(kinds) > 1:
        raise PartitionError("y holds text in some partitions and numbers in others.")
    return np.unique(np.concatenate(parts))


def _key(name: str) -> str:
    return f"{name}-{dask.base.tokenize(object())}"


def _compute(values: list[Delayed], held: Sequence[Delayed] = ()) -> list[Any]:
    """The results, on the current client or on threads; an interrupt cancels the tasks.

    Those of ``held`` stay on the workers: returned are their futures.
    """
    client = current_client()
    if client is None:
        return list(dask.compute(*values, *held, scheduler="threads"))
    return _on_cluster(client, values, held)


def current_client() -> Any:
    """The client of `distributed` that is in force, or None."""
    try:
        from distributed import default_client

        client = default_client()
    except (ImportError, ValueError):
        return None
    return client if client.status == "running" else None


def _on_cluster(client: Any, values: list[Delayed], held: Sequence[Delayed] = ()) -> list[Any]:
    from distributed import CancelledError, KilledWorker

    for _ in range(ATTEMPTS):
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):  # a point may be large
            futures = client.compute([*values, *held])
        try:
            return [*_gather(client, futures[: len(values)]), *futures[len(values) :]]
        except (KilledWorker, CancelledError):
            # A task was on so many workers that died that Dask blames the task, or gives up those that need it.  Ours
            # do not kill workers: again, once the scheduler has forgotten them, which nothing may refer to any more.
            if client.status != "running":
                raise
        except BaseException:
            client.cancel(futures, force=True)
            raise
        client.cancel(futures, force=True)
        del futures
        time.sleep(FORGET_SECONDS)
    raise RuntimeError(
        f"Workers died in {ATTEMPTS} attempts at one pass; give them more memory, or use smaller partitions."
    )


def _gather(client: Any, futures: list[Any]) -> list[Any]:
    from distributed import TimeoutError as DaskTimeout
    from distributed import wait

    limit = float(dask.config.get("skmargin.worker-timeout", WORKER_TIMEOUT))
    alone_since: float | None = None
    while True:
        try:
            wait(futures, timeout=0.5)
        except (DaskTimeout, TimeoutError):
            workers = client.scheduler_info(n_workers=-1)["workers"] if client.status == "running" else {}
            now = time.monotonic()
            alone_since = None if workers else alone_since or now
            if alone_since is not None and now - alone_since > limit:
                raise RuntimeError(
                    f"No Dask worker is left, for {limit:g} seconds now (skmargin.worker-timeout in Dask's "
                    "configuration); start workers and fit again, with checkpoint=path to go on where this fit ended."
                ) from None
            continue
        return list(client.gather(futures))
