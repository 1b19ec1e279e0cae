"""``skmargin fit --dask``: the rows of files on the workers of a cluster."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from ..datasets import DataError
from ..datasets._open_parquet import choose_columns as columns_of

SECONDS = 30  # until a scheduler must have answered


@contextmanager
def workers(where: str, jobs: int | None) -> Iterator[None]:
    """The cluster in force: that of a scheduler's address, or processes on this machine for "local"."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError("--dask needs Dask: pip install 'skmargin[dask]'.") from None
    if where == "local":
        count = jobs or os.cpu_count() or 1
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster),
        ):
            yield
        return
    if "://" not in where:
        raise DataError(f"--dask takes 'local' or the address of a scheduler, such as tcp://host:8786; got {where!r}.")
    try:
        client = Client(where, timeout=SECONDS)
    except (OSError, ValueError):
        raise DataError(f"--dask {where}: no scheduler answers there.") from None
    with client:
        yield


class Table:
    """Columns of Parquet or CSV files as Dask collections, scaled to [0, 1]."""

    def __init__(self, data: str, target: str | None) -> None:
        frame = read(data)
        names = [str(name) for name in frame.columns]
        at, chosen = columns_of(names, target, None, data)
        if at is None:
            raise DataError(f"{data}: has no labels; name their column with --target.")
        frame.columns = names
        self.feature_names = [names[place] for place in chosen]
        X = frame[self.feature_names]
        text = [name for name in self.feature_names if X[name].dtype.kind not in "fiub"]
        if text:
            raise DataError(f"{data}, column {text[0]!r}: holds {X[text[0]].dtype}, not numbers; --dask needs numbers.")
        import dask

        least, most, self.n_rows = dask.compute(X.min(), X.max(), frame.shape[0])
        # Missing values are left to the fit, which names their partition.
        self.scaler = MinMaxScaler().fit(np.array([least, most], dtype=np.float64))
        self.X = [dask.delayed(_scaled, pure=True)(self.scaler, part) for part in X.to_delayed()]
        self.y = frame[names[at]].to_delayed()


def _scaled(scaler: MinMaxScaler, part: Any) -> np.ndarray:
    X = part.to_numpy()
    return scaler.transform(X) if len(X) else X


def read(data: str) -> Any:
    """A data frame of files, of which nothing is read yet but the names and types of the columns."""
    import dask.dataframe as dd

    kinds = {".parquet": dd.read_parquet, ".pq": dd.read_parquet, ".csv": dd.read_csv}
    suffix = os.path.splitext(data)[1]
    if not suffix and os.path.isdir(data):
        suffix = ".parquet"
    if suffix not in kinds:
        raise DataError(f"{data}: --dask reads Parquet and CSV files (*.parquet, *.csv), or a folder of Parquet files.")
    if "://" not in data and not os.path.exists(data) and not glob.glob(data):
        raise DataError(f"{data}: no file has such a name.")
    try:
        return kinds[suffix](data)
    except (OSError, ValueError) as error:
        raise DataError(f"{data}: cannot be read ({str(error).splitlines()[0][:200]}).") from None
