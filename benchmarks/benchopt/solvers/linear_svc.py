"""scikit-learn's LinearSVC(multi_class="crammer_singer")."""

import warnings

import numpy as np
from benchopt import BaseSolver
from sklearn.svm import LinearSVC


class Solver(BaseSolver):
    """The whole ``fit``."""

    name = "LinearSVC"
    requirements = ["scikit-learn"]  # noqa: RUF012

    def skip(self, X, y, C, loss):
        """It has one of the two losses."""
        return loss != "crammer-singer", "LinearSVC has the loss of Crammer and Singer only"

    def set_objective(self, X, y, C, loss):
        """Keep the problem."""
        self.X, self.y, self.C = X, y, C

    def run(self, tolerance):
        """Fit once."""
        model = LinearSVC(C=self.C, multi_class="crammer_singer", fit_intercept=False, tol=max(tolerance, 1e-10))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its warning counts iterations of another solver
            W = model.set_params(random_state=0).fit(self.X, self.y).coef_
        self.W = np.vstack([-W, W]) / 2 if len(W) == 1 else W

    def get_result(self):
        """The class vectors."""
        return {"W": self.W}
