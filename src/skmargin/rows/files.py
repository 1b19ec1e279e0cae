"""Rows that are read again for each pass: from files, memory maps, or a function that returns an iterator.

`OpenRows` is what `skmargin.datasets.open_rows` returns: named batches of rows as they are.  A fit reads them once to
count and to check them (`counted`), and from then on as the blocks of a solver (`CountedRows`); only the classes of
the rows, a byte or two for each, stay in memory.  The next batch is read while a thread works on the last.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._types import Rows
from ..solvers.tuning import DEFAULT
from .blocks import Block, Sums, Task, map_blocks
from .labels import LabelBook

LARGEST = {"d": 1e120, "f": 1e15}  # number of each type whose square can still be added up


class Batch(NamedTuple):
    """Some rows with their labels, if there are any, and weights, if there are any."""

    X: Rows
    y: np.ndarray | None
    weight: np.ndarray | None


class OpenRows:
    """Rows in blocks that can be read many times; made by `skmargin.datasets.open_rows`.

    Iterating yields ``(X, y, weight)`` for each block, with None for labels or weights that there are not.

    Attributes
    ----------
    name : str
        For messages.
    n_features : int
        Number of features.
    n_rows : int or None
        Number of rows, where it is known before they are read.
    feature_names : list of str or None
        Names of the features, where the source has any.
    """

    def __init__(
        self,
        name: str,
        batches: Callable[[], Iterator[Batch]],
        n_features: int,
        *,
        n_rows: int | None = None,
        feature_names: list[str] | None = None,
        labels: np.ndarray | None = None,
        stamp: Callable[[], Any] | None = None,
        pieces: Callable[[list[tuple[int, int]]], Iterator[Batch]] | None = None,
        edges: np.ndarray | None = None,
    ) -> None:
        self.name, self.n_features, self.n_rows, self.feature_names = name, n_features, n_rows, feature_names
        self._batches, self._labels, self._stamp = batches, labels, stamp
        self._seen = stamp() if stamp else None
        self._pieces = pieces
        self.edges = edges  # rows at which pieces had better begin and end, the first and the last among them
        self.counts: tuple[np.ndarray, list[np.ndarray], np.ndarray] | None = None  # of the first read (`counted`)
        self.n_bytes = 0  # of all rows, once they are counted
        self.overviews: dict[Any, Any] = {}  # what solvers have seen of the rows, shared by fits on them

    def __repr__(self) -> str:
        rows = "rows" if self.n_rows is None else f"{self.n_rows} rows"
        return f"<{rows} of {self.n_features} features in blocks: {self.name}>"

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray | None, np.ndarray | None]]:
        for batch in self.batches():
            y = batch.y
            yield batch.X, y if y is None or self._labels is None else self._labels[y], batch.weight

    @property
    def labels(self) -> np.ndarray | None:
        """The labels that the numbers in the batches stand for, where batches hold numbers of labels."""
        return self._labels

    def batches(self) -> Iterator[Batch]:
        """The batches, each checked: rows as a solver takes them, finite, with one label and weight for each."""
        self.refuse_change()
        for place, batch in enumerate(self._batches()):
            yield _checked(batch, self.n_features, f"{self.name}, block {place}")
        self.refuse_change()

    @property
    def in_any_order(self) -> bool:
        """Whether rows can be read in another order than their own."""
        return self._pieces is not None

    def pieces(self, ranges: list[tuple[int, int]]) -> Iterator[Batch]:
        """The rows from a first one up to a last one, for each of the ranges, each checked."""
        assert self._pieces is not None
        self.refuse_change()
        for (begin, end), batch in zip(ranges, self._pieces(ranges), strict=True):
            yield _checked(batch, self.n_features, f"{self.name}, rows {begin} to {end}")
        self.refuse_change()

    def counted(self, n_jobs: int | None = 1) -> CountedRows:
        """The rows as a solver takes them, after they were read once."""
        return counted(self, n_jobs)

    def refuse_change(self) -> None:
        """Refuse files that are no longer what they were when they were opened."""
        if self._stamp is not None and self._stamp() != self._seen:
            raise ValueError(f"{self.name} changed while it was read; open it again.")


def _checked(batch: Batch, d: int, where: str) -> Batch:
    X = batch.X
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        X.sum_duplicates()
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"{where}: rows must be a table of two dimensions, got {X.ndim}.")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"{where}: rows must hold numbers, got the type {X.dtype}.")
    if X.shape[1] != d:
        raise ValueError(f"{where}: has {X.shape[1]} features, the blocks before have {d}.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X)
    _check_numbers(X, where)
    n, y, weight = X.shape[0], batch.y, batch.weight
    for name, values in (("labels", y), ("weights", weight)):
        if values is not None and np.shape(values) != (n,):
            raise ValueError(f"{where}: {n} rows, but {name} of shape {np.shape(values)}.")
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        bad = np.flatnonzero(~((weight >= 0) & (weight <= LARGEST["d"])))
        if len(bad):
            raise ValueError(f"{where}, row {bad[0]}: the weight {weight[bad[0]]} is not a finite number of 0 or more.")
    return Batch(X, None if y is None else np.asarray(y), weight)


def _check_numbers(X: Rows, where: str) -> None:
    values = X.data if sparse.issparse(X) else X
    most = LARGEST[X.dtype.char]
    if values.size == 0 or max(values.max(), -values.min()) <= most:  # False for NaN
        return
    bad = np.flatnonzero(~(np.abs(values.ravel()) <= most))[0]
    if sparse.issparse(X):
        row, column = int(np.searchsorted(X.indptr, bad, side="right")) - 1, int(X.indices[bad])
    else:
        row, column = divmod(int(bad), X.shape[1])
    value = values.ravel()[bad]
    what = "is missing (NaN)" if np.isnan(value) else f"is {value}, too large to compute with"
    raise ValueError(f"{where}, row {row}: feature {column} {what}.")


class CountedRows:
    """Open rows as the blocks of a solver; made by `counted`."""

    in_memory, remote = False, False

    def __init__(
        self, rows: OpenRows, classes: np.ndarray, codes: list[np.ndarray], mass: np.ndarray, n_jobs: int | None
    ) -> None:
        self.rows, self.classes, self.codes, self.n_jobs = rows, classes, codes, n_jobs
        self.n_features, self.n_blocks = rows.n_features, len(codes)
        k = len(classes)
        self.class_counts = np.sum([np.bincount(one[one >= 0], minlength=k) for one in codes], axis=0)
        self.n_rows = int(self.class_counts.sum())
        self.class_mass = mass  # (k,) weight of each class before those of the classes
        self.per_class = np.ones(k)
        self.overviews, self.n_bytes = rows.overviews, rows.n_bytes

    @property
    def class_weights(self) -> np.ndarray:
        """Weight of each class."""
        return self.class_mass * self.per_class

    def __iter__(self) -> Iterator[Block]:
        first = place = 0
        for place, batch in enumerate(prefetched(self.rows.batches())):
            y = self.codes[place] if place < self.n_blocks else None
            if y is None or len(y) != batch.X.shape[0]:
                raise self._changed(place)
            block = self._block(batch, y, first)
            if len(block.y):
                yield block
            first += len(block.y)
        if first != self.n_rows:
            raise self._changed(place + 1)

    def _block(self, batch: Batch, y: np.ndarray, first: int) -> Block:
        """A batch without its rows of weight 0; ``y`` are the numbers of its classes."""
        kept = y >= 0
        X, y, weight = batch.X, y.astype(np.int32), batch.weight
        if not kept.all():
            at = np.flatnonzero(kept)
            X, y, weight = X[at], y[at], None if weight is None else weight[at]
        return Block(X, y, self.per_class[y] if weight is None else weight * self.per_class[y], first)

    @property
    def in_any_order(self) -> bool:
        """Whether there are `pieces`."""
        return self.rows.in_any_order

    @property
    def edges(self) -> np.ndarray | None:
        """Rows at which `pieces` had better begin and end."""
        return self.rows.edges

    @property
    def n_given(self) -> int:
        """Number of rows, those of weight 0 among them."""
        return sum(map(len, self.codes))

    def pieces(self, ranges: list[tuple[int, int]]) -> Iterator[Block]:
        """The rows of ranges of the rows as given, each as a block, which may have none of them."""
        codes = np.concatenate(self.codes)
        for (begin, end), batch in zip(ranges, prefetched(self.rows.pieces(ranges)), strict=True):
            if batch.X.shape[0] != end - begin:
                raise ValueError(f"{self.rows.name}: has other rows than when it was first read.")
            yield self._block(batch, codes[begin:end], begin)

    def _changed(self, place: int) -> ValueError:
        return ValueError(f"{self.rows.name}, block {place}: has other rows than when it was first read.")

    def map_sum(self, task: Task[Sums]) -> Sums:
        """The sums of a task over all rows."""
        return map_blocks(gathered(iter(self)), task, self.n_jobs)


def counted(rows: OpenRows, n_jobs: int | None = 1) -> CountedRows:
    """Read all rows once: check them, number their labels, count them.  Rows of weight 0 are left out from now on.

    Rows that were counted before are not read again.
    """
    if rows.counts is None:
        rows.counts = _counts(rows)
    return CountedRows(rows, *rows.counts, n_jobs)


def _of_one_kind(rows: OpenRows) -> Iterator[Batch]:
    """The batches, all of them dense or all sparse."""
    kind = ""
    for place, batch in enumerate(prefetched(rows.batches())):
        its = "sparse" if sparse.issparse(batch.X) else "dense"
        if its != (kind := kind or its):
            raise ValueError(f"{rows.name}, block {place}: its rows are {its}, those of the blocks before are {kind}.")
        yield batch


def _counts(rows: OpenRows) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """The classes, the number of its class for each row of each batch (-1 for none), and the weight of each class."""
    book, codes, mass = LabelBook(), [], np.zeros(0)
    rows.n_bytes = 0
    of_labels = None if rows.labels is None else book.encode(rows.labels)  # batches hold numbers of them
    for place, batch in enumerate(_of_one_kind(rows)):
        if batch.y is None:
            raise ValueError(f"{rows.name}: has no labels; name their column: open_rows(..., target=...).")
        try:
            y = book.encode(batch.y) if of_labels is None else of_labels[batch.y]
        except ValueError as error:
            raise ValueError(f"{rows.name}, block {place}: {error}.") from None
        if batch.weight is not None:
            y[batch.weight == 0] = -1
        rows.n_bytes += batch.X.data.nbytes + batch.X.indices.nbytes if sparse.issparse(batch.X) else batch.X.nbytes
        seen = y[y >= 0]
        here = np.bincount(seen, None if batch.weight is None else batch.weight[y >= 0], len(book.codes)).astype(float)
        here[: len(mass)] += mass
        mass = here
        codes.append(y.astype(np.int16) if len(book.codes) < 1 << 15 else y)
    if not codes or not sum(len(one) for one in codes):
        raise ValueError(f"{rows.name}: holds no rows.")
    classes, order = book.classes()
    present = np.zeros(len(classes), dtype=bool)
    for one in codes:
        present[order[one[one >= 0]]] = True  # a label may occur with weight 0 only
    place_of = np.where(present, np.cumsum(present) - 1, -1)[order]
    small = np.int8 if len(classes) < 1 << 7 else np.int16 if len(classes) < 1 << 15 else np.int32
    codes = [np.where(one >= 0, place_of[one], -1).astype(small) for one in codes]
    total = np.zeros(int(present.sum()))
    for old, new in enumerate(place_of.tolist()):
        if new >= 0:
            total[new] = mass[old]
    return classes[present], codes, total


def gathered(blocks: Iterator[Block]) -> Iterator[Block]:
    """Small blocks put together, so that threads have something to share."""
    held: list[Block] = []
    for block in blocks:
        held.append(block)
        if sum(len(one.y) for one in held) >= DEFAULT.blocks.lane_rows:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    X = [one.X for one in blocks]
    joined = sparse.csr_array(sparse.vstack(X, format="csr")) if sparse.issparse(X[0]) else np.concatenate(X)
    y, weight = (np.concatenate(column) for column in zip(*((one.y, one.weight) for one in blocks), strict=True))
    return Block(joined, y, weight, blocks[0].first)


class _Failure(NamedTuple):
    error: BaseException


def prefetched(items: Iterator[Any]) -> Iterator[Any]:
    """The items, of which a thread makes the next while this one is in use."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=1)
    stop = threading.Event()
    end = object()

    def put(item: Any) -> None:
        while not stop.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=0.05)
                return

    def read() -> None:
        try:
            for item in items:
                put(item)
                if stop.is_set():
                    return
            put(end)
        except BaseException as error:  # handed over: it is raised where the items are used
            put(_Failure(error))

    thread = threading.Thread(target=read, name="skmargin-read", daemon=True)
    thread.start()
    try:
        while True:
            item = _next(ready)
            if item is end:
                return
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        stop.set()
        thread.join()


def _next(ready: queue.Queue[Any]) -> Any:
    while True:  # a wait without a limit cannot be interrupted on Windows
        with suppress(queue.Empty):
            return ready.get(timeout=0.05)
