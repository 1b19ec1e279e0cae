"""Gaussian classes around random centres."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Of any size; ``noise`` is the deviation of a class, that of the centres is 1."""

    name = "gaussian"
    parameters = {"n, d, k": [(2000, 50, 10), (4000, 60, 100)], "noise": [2.0]}  # noqa: RUF012

    def get_data(self):
        """Features in [0, 1]."""
        rng = np.random.default_rng(0)
        y = rng.integers(self.k, size=self.n)
        X = rng.normal(size=(self.k, self.d))[y] + self.noise * rng.normal(size=(self.n, self.d))
        return {"X": (X - X.min(axis=0)) / np.ptp(X, axis=0), "y": y}
