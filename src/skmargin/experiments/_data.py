"""Rows and labels of an experiment, and their division into training and test rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from .._types import RowsLike
from ..datasets import BUILT_IN, DataError, load_dataset
from ._spec import COMPRESSED, SUFFIXES, Protocol, Source

DENSE = 0.1  # share of entries that are not zero from which rows are stored in full
OUTER_FOLDS = 5


class MissingData(DataError):
    """The files of a data set are not in the folder."""


def find(source: Source, folder: str | os.PathLike[str] | None) -> list[Path]:
    """The files of a data set; raises `MissingData` with what is wanted."""
    if folder is not None:
        names = (("raetsch.npz",),) if source.raetsch else source.files
        found = [_first(Path(folder), stems) for stems in names]
        if all(path is not None for path in found) and (not source.raetsch or _holds(found[0], _key(source))):
            return [path for path in found if path is not None]
    raise MissingData(f"{source.name}: needs {source.wanted} in the folder of the data (--data).")


def is_here(source: Source, folder: str | os.PathLike[str] | None) -> bool:
    """Whether the data set can be loaded."""
    if not source.files and not source.raetsch:
        return _built_in(source) in BUILT_IN
    try:
        find(source, folder)
    except MissingData:
        return False
    return True


def load(source: Source, folder: str | os.PathLike[str] | None) -> tuple[Any, np.ndarray, int]:
    """Rows, labels as numbers from 0, and how many of the rows belong to the training part of the files."""
    if source.raetsch:
        with np.load(find(source, folder)[0]) as arrays:
            X, y = arrays[f"{_key(source)}_X"].astype(np.float64), arrays[f"{_key(source)}_y"]
        n_train = len(y)
    elif not source.files:
        data = load_dataset(_built_in(source))
        X, y, n_train = data.X, np.asarray(data.y), data.X.shape[0]
    else:
        parts = [load_dataset(path, n_features=source.n_features) for path in find(source, folder)]
        width = max(part.X.shape[1] for part in parts)
        X = sparse.vstack([_widen(part.X, width) for part in parts], format="csr")
        y = np.concatenate([np.asarray(part.y) for part in parts])
        n_train = parts[0].X.shape[0]
        if X.nnz > DENSE * X.shape[0] * X.shape[1]:
            X = X.toarray()
    keep = np.ones(len(y), dtype=bool)
    if source.classes is not None:
        keep &= np.isin(y, source.classes)
    if source.n_classes is not None:
        keep &= np.isin(y, np.unique(y)[: source.n_classes])
    rows = np.flatnonzero(keep)
    if source.rows is not None and len(rows) > source.rows:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[: source.rows])
    n_train = int((rows < n_train).sum())
    if source.scale == "standard, all rows":
        X = StandardScaler().fit_transform(X)
    return X[rows], np.unique(y[rows], return_inverse=True)[1], n_train


def divide(protocol: Protocol, y: np.ndarray, n_train: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of one division."""
    how = protocol.split
    nothing = np.zeros(len(y))
    if how.kind == "given":
        n_train = how.train or n_train
        if n_train in (0, len(y)):
            raise DataError("the files have no test part.")
        train, test = np.arange(n_train), np.arange(n_train, len(y))
    elif how.kind == "kfold":
        turn, fold = divmod(number, OUTER_FOLDS)
        folds = StratifiedKFold(OUTER_FOLDS, shuffle=True, random_state=turn)
        train, test = list(folds.split(nothing, y))[fold]
    else:
        alike = how.kind == "holdout" and np.unique(y, return_counts=True)[1].min() >= 2
        kind = StratifiedShuffleSplit if alike else ShuffleSplit
        test_size = how.test if how.train is None else int(how.test)
        seed = number if how.seed is None else how.seed
        division = kind(1, train_size=how.train, test_size=test_size, random_state=seed)
        train, test = next(division.split(nothing, y))
    rng = np.random.default_rng(number)
    if protocol.rows is not None and len(train) > protocol.rows:
        train = rng.permutation(train)[: protocol.rows]
    if protocol.test_rows is not None and len(test) > protocol.test_rows:
        test = rng.permutation(test)[: protocol.test_rows]
    return train, test


def _built_in(source: Source) -> str:
    return source.name.partition(",")[0]  # "digits, 4 classes" is a part of digits


def _key(source: Source) -> str:
    return source.name.replace(" ", "_")


def _holds(path: Path | None, key: str) -> bool:
    with np.load(str(path)) as arrays:
        return f"{key}_X" in arrays.files


def _first(folder: Path, stems: tuple[str, ...]) -> Path | None:
    candidates = (folder / f"{stem}{suffix}{packed}" for stem in stems for suffix in SUFFIXES for packed in COMPRESSED)
    return next((path for path in candidates if path.is_file()), None)


def _widen(X: RowsLike, width: int) -> Any:
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
