"""The data sets of the benchmarks: scikit-learn's, generated ones, and LIBSVM files of a directory.

Dense sets are scaled to [0, 1] (min-max of the training part); sparse sets keep their zeros (max-abs where a value
exceeds 1, else untouched).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Memory
from scipy import sparse
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

# The sets of the project's speed targets, in the order of the tables.
DENSE = ["vehicle", "digits", "waveform", "satimage", "dna", "usps", "isolet", "covtype-20k", "shuttle", "orl", "many"]
DEFAULT_SETS = [*DENSE, "sector", "cornell", "protein-val", "text", "mnist"]
BUILT_IN: dict[str, Callable[..., Any]] = {
    name: getattr(datasets, f"load_{name}") for name in ("iris", "wine", "digits", "breast_cancer")
}
# Parsing text takes longer than most fits.
cached = Memory("build/benchmark-data", verbose=0).cache


class Data(NamedTuple):
    """Training part, and a test part (the training part again where the set has no split of its own)."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @property
    def group(self) -> str:
        """Group whose geometric mean this set enters."""
        if self.name in ("mnist", "many"):  # unlike the others, and one of a kind
            return self.name
        return "sparse" if sparse.issparse(self.X) else "dense"


def load(name: str, directory: Path | None = None) -> Data:
    """Data set ``name``: a file ``name.svm`` or ``name.train.svm`` of ``directory``, a built-in or a generated set."""
    files = {part: found for part in ("", ".train", ".test") if (found := _find(directory, name + part))}
    if ".train" in files:
        X, y, X_test, y_test = _read(str(files[".train"]), str(files.get(".test", files[".train"])))
    elif "" in files:
        X, y, X_test, y_test = _read(str(files[""]), str(files[""]))
    elif name in BUILT_IN:
        X, y = BUILT_IN[name](return_X_y=True)
        X_test, y_test = X, y
    elif name in GENERATED:
        X, y = GENERATED[name]()
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    else:
        known = ", ".join([*BUILT_IN, *GENERATED])
        raise SystemExit(
            f"no data set {name!r}: not one of {known}, and no {name}[.train].svm[.bz2] in --data {directory}"
        )
    y, y_test = _codes(y, y_test)
    return Data(name, *_scale(X, X_test, y, y_test))


def _find(directory: Path | None, stem: str) -> Path | None:
    if directory is None:
        return None
    candidates = (directory / f"{stem}.svm{suffix}" for suffix in ("", ".bz2", ".gz"))
    return next((path for path in candidates if path.exists()), None)


@cached
def _read(train: str, test: str) -> tuple[Any, ...]:
    """Both parts with the same number of columns."""
    return tuple(datasets.load_svmlight_files([train, test], zero_based=False))


def _codes(y: np.ndarray, y_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels 0..k-1; a test label that was never trained becomes -1 (always an error)."""
    classes = np.unique(y)
    place = np.minimum(np.searchsorted(classes, y_test), len(classes) - 1)
    return np.searchsorted(classes, y), np.where(classes[place] == y_test, place, -1)


def _scale(X: Any, X_test: Any, y: np.ndarray, y_test: np.ndarray) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    if sparse.issparse(X) and X.shape[1] > 300 and X.nnz < 0.3 * X.shape[0] * X.shape[1]:
        if abs(X).max() > 1:
            scaler = MaxAbsScaler().fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
        return sparse.csr_matrix(X), y, sparse.csr_matrix(X_test), y_test
    X, X_test = (part.toarray() if sparse.issparse(part) else part for part in (X, X_test))
    scaler = MinMaxScaler().fit(X)
    return np.ascontiguousarray(scaler.transform(X)), y, np.ascontiguousarray(scaler.transform(X_test)), y_test


def text_like(
    n: int = 10000, d: int = 30000, k: int = 30, words: int = 80, topic: float = 0.15, seed: int = 0
) -> tuple[Any, np.ndarray]:
    """Bags of words: Zipf's law over the vocabulary, a share of the words from the class's own, tf-idf, unit rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    length = 1 + rng.poisson(words - 1, size=n)
    row = np.repeat(np.arange(n), length)
    rank = np.minimum(rng.zipf(1.3, size=len(row)), d) - 1
    own = rng.permuted(np.tile(np.arange(d), (k, 1)), axis=1)
    column = np.where(rng.random(len(row)) < topic, own[y[row], rank], rank)
    X = sparse.csr_matrix((np.ones(len(row)), (row, column)), shape=(n, d))
    X.sum_duplicates()
    frequency = np.bincount(X.indices, minlength=d)
    X.data *= np.log((1 + n) / (1 + frequency))[X.indices]
    X.eliminate_zeros()
    norms = sparse.linalg.norm(X, axis=1)
    return sparse.csr_matrix(sparse.diags(1 / np.where(norms > 0, norms, 1)) @ X), y


def many_class(n: int = 10000, d: int = 64, k: int = 200, noise: float = 1.0, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Gaussian classes around random centres; many of them, so that most dual variables are zero."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return rng.normal(size=(k, d))[y] + noise * rng.normal(size=(n, d)), y


GENERATED: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {"text": text_like, "many": many_class}
