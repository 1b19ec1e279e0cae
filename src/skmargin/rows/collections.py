"""Dask collections as partitions: arrays (dense, or with CSR blocks), data frames, lists of delayed blocks.

Nothing of Dask is imported unless the user has given a collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Estimator, Rows, WeightsLike

if TYPE_CHECKING:
    from .workers import DaskRows, Partition


def is_collection(X: Rows) -> bool:
    """Whether X is a Dask array or data frame, or a list of delayed blocks."""
    first = X[0] if isinstance(X, (list, tuple)) and X else X
    return type(first).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(first, "dask")


@dataclass(frozen=True)
class Collections:
    """Rows, labels and weights that are Dask collections, divided alike or to be divided so."""

    X: Rows
    y: Any
    sample_weight: WeightsLike = None

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns of a data frame, where all are strings."""
        columns = getattr(self.X, "columns", None)
        if columns is None or not all(isinstance(name, str) for name in columns):
            return None
        return list(columns)

    def counted(self, n_jobs: int | None = None) -> DaskRows:
        """The rows as a solver takes them, after a first look at all of them; workers have threads of their own."""
        from .workers import DaskRows

        return DaskRows(partitions_of(self.X, self.y, self.sample_weight), n_jobs)


def partitions_of(X: Rows, y: Any, sample_weight: WeightsLike) -> list[Partition | Any]:
    """One partition for each block of rows of X: three delayed values, or one that holds them."""
    from .workers import Partition

    given = [X, y] if sample_weight is None else [X, y, sample_weight]
    if all(hasattr(one, "map_partitions") and hasattr(one, "divisions") for one in given):
        return _of_frames(given)
    rows = _blocks_of_rows(X)
    labels = _like(y, "y", X, len(rows))
    weights = [None] * len(rows) if sample_weight is None else _like(sample_weight, "sample_weight", X, len(rows))
    return [Partition(*parts) for parts in zip(rows, labels, weights, strict=True)]


def _of_frames(given: list[Any]) -> list[Any]:
    """Partitions of frames, read together: each by itself may be read in other pieces, since it has other columns."""
    import dask.dataframe as dd

    X, *others = given
    for name, one in zip(("y", "sample_weight"), others, strict=False):
        _check_one_column(one, name)
        _check_count(name, one.npartitions, X.npartitions)
    together = dd.map_partitions(
        _three, *given, meta=(None, object), align_dataframes=False, enforce_metadata=False, transform_divisions=False
    )
    return list(together.to_delayed())


def _three(X: Rows, y: Any, sample_weight: WeightsLike = None) -> tuple[Any, Any, Any]:
    return X, y, sample_weight


def _blocks_of_rows(X: Rows) -> list[Any]:
    if isinstance(X, (list, tuple)):
        return _all_delayed(X, "X")
    if hasattr(X, "to_delayed") and hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}.")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return [block[0] for block in X.to_delayed()]
    return list(X.to_delayed())


def _like(values: Any, name: str, X: Rows, count: int) -> list[Any]:
    """The blocks of labels or weights, divided as the rows are."""
    if not is_collection(values):
        raise TypeError(
            f"{name} must be a Dask collection where X is one, got {type(values).__name__}; "
            f"dask.array.from_array({name}, chunks=...) makes one."
        )
    if isinstance(values, (list, tuple)):
        blocks = _all_delayed(values, name)
    else:
        _check_one_column(values, name)
        if hasattr(values, "chunks") and hasattr(X, "chunks") and values.chunks[0] != X.chunks[0]:
            known = not any(np.isnan(size) for size in (*values.chunks[0], *X.chunks[0]))
            if known and sum(values.chunks[0]) != sum(X.chunks[0]):
                raise ValueError(f"{name} has {sum(values.chunks[0])} rows and X has {sum(X.chunks[0])}.")
            if known:
                values = values.rechunk((X.chunks[0],))
        blocks = list(np.ravel(values.to_delayed()))
    _check_count(name, len(blocks), count)
    return blocks


def _all_delayed(values: Sequence[Any], name: str) -> list[Any]:
    for place, value in enumerate(values):
        if not (hasattr(value, "dask") and hasattr(value, "key")):
            raise TypeError(
                f"{name}[{place}] must be a delayed block, as the first one is, got {type(value).__name__}; "
                "dask.delayed(...) makes one."
            )
    return list(values)


def _check_one_column(values: Any, name: str) -> None:
    if getattr(values, "ndim", 1) == 2:  # a frame with one column, or an array of one
        raise ValueError(f"{name} must have one dimension, got two; choose one column.")


def _check_count(name: str, count: int, wanted: int) -> None:
    if count != wanted:
        raise ValueError(
            f"{name} has {count} partitions and X has {wanted}; divide them alike, for instance with repartition or "
            "rechunk, or compute_chunk_sizes() where sizes are not known."
        )


def lazily(X: Rows, function: Any, like: np.ndarray) -> Any:
    """``function`` of each block of rows, as a lazy Dask array; ``like`` is what it gives for no rows."""
    import dask.array as da

    if isinstance(X, (list, tuple)):
        shape = (np.nan, *like.shape[1:])
        return da.concatenate([da.from_delayed(_call(function, part), shape, dtype=like.dtype) for part in X])
    if hasattr(X, "chunks"):
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if like.ndim == 1:
            return X.map_blocks(function, dtype=like.dtype, drop_axis=1, meta=like)
        return X.map_blocks(function, dtype=like.dtype, chunks=(X.chunks[0], (like.shape[1],)), meta=like)
    return X.map_partitions(function, meta=like)


def _call(function: Any, part: Any) -> Any:
    import dask

    return dask.delayed(function, pure=True)(part)


def lazy_accuracy(model: Estimator, X: Rows, y: Any, sample_weight: WeightsLike) -> Any:
    """Share of the rows that a model classifies correctly, as a lazy number."""
    import dask

    sums = [dask.delayed(_right)(model, partition) for partition in partitions_of(X, y, sample_weight)]
    return dask.delayed(_share)(sums)


def _right(model: Estimator, partition: Any) -> tuple[float, float]:
    """Weight of the rows that are right, and of all."""
    X, y, weight = partition
    if not len(y):
        return 0.0, 0.0
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    return float(weight @ (model.predict(X) == np.asarray(y))), float(weight.sum())


def _share(sums: list[tuple[float, float]]) -> float:
    right, total = np.sum(sums, axis=0)
    return float(right / total)
