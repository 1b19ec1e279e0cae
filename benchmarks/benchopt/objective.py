"""The linear multi-class SVMs without intercept; the objective is computed from the class vectors."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Half of the squared length of the class vectors plus C times the hinges."""

    name = "Multi-class SVM"
    min_benchopt_version = "1.6"
    parameters = {"loss": ["crammer-singer", "weston-watkins"], "C": [1.0]}  # noqa: RUF012
    sampling_strategy = "tolerance"

    def set_data(self, X, y):
        """Rows, and labels from 0 to k - 1."""
        self.X, self.y, self.k = X, y, int(y.max()) + 1

    def get_objective(self):
        """What a solver is given."""
        return {"X": self.X, "y": self.y, "C": self.C, "loss": self.loss}

    def evaluate_result(self, W):
        """Objective, and the share of errors on the training rows."""
        scores = self.X @ W.T
        rows = np.arange(len(self.y))
        hinges = 1 + scores - scores[rows, self.y][:, None]
        hinges[rows, self.y] = 0
        hinges = np.maximum(hinges, 0)
        loss = hinges.max(axis=1).sum() if self.loss == "crammer-singer" else hinges.sum()
        error = float(np.mean(scores.argmax(axis=1) != self.y))
        return {"value": 0.5 * float(np.vdot(W, W)) + self.C * float(loss), "training error": error}

    def get_one_result(self):
        """Zero vectors, for benchopt's own tests."""
        return {"W": np.zeros((self.k, self.X.shape[1]))}
