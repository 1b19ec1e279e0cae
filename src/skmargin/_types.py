"""Words for types that several storeys share.

SciPy's arrays, data frames and scikit-learn's estimators have no types that mypy reads; a word says at least what is
meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Rows = Any  # ndarray or CSR matrix of shape (n, d)
RowsLike = Any  # what users have as rows: arrays, SciPy's matrices, frames, Dask collections, rows in blocks
Estimator = Any  # with the manners of scikit-learn
RandomState = int | np.random.RandomState | np.random.Generator | None
ClassWeight = Mapping[Any, float] | str | None
LabelsLike = Any  # arrays, series, lists, Dask collections: one label of any type for each row
WeightsLike = Any  # None, a number, or one for each row, likewise
