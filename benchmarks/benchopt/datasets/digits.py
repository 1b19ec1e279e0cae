"""The digits of scikit-learn."""

from benchopt import BaseDataset
from sklearn.datasets import load_digits


class Dataset(BaseDataset):
    """1797 rows, 64 features, 10 classes."""

    name = "digits"
    requirements = ["scikit-learn"]  # noqa: RUF012

    def get_data(self):
        """Features in [0, 1]."""
        X, y = load_digits(return_X_y=True)
        return {"X": X / 16, "y": y}
