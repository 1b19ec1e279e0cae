"""LIBLINEAR -s 4 by its own Python interface; its data structure is built before the clock runs."""

import numpy as np
from benchopt import BaseSolver
from scipy import sparse


class Solver(BaseSolver):
    """Sequential dual method for the machine of Crammer and Singer."""

    name = "liblinear"
    requirements = ["pip::liblinear-official"]  # noqa: RUF012

    def skip(self, X, y, C, loss):
        """It has one of the two losses."""
        return loss != "crammer-singer", "LIBLINEAR has the loss of Crammer and Singer only"

    def set_objective(self, X, y, C, loss):
        """Build the problem."""
        from liblinear.liblinear import problem

        self.problem, self.C = problem(y.astype(float), sparse.csr_matrix(X)), C

    def run(self, tolerance):
        """Train once; the tolerance is LIBLINEAR's own measure."""
        from liblinear.liblinear import liblinear, parameter, toPyModel

        options = parameter(f"-s 4 -c {self.C!r} -e {max(tolerance, 1e-10)!r} -q")
        model = toPyModel(liblinear.train(self.problem, options))
        shape = (model.get_nr_feature(), model.get_nr_class())
        self.W = np.empty(shape[::-1])
        self.W[model.get_labels()] = np.ctypeslib.as_array(model.w, shape=shape).T

    def get_result(self):
        """The class vectors."""
        return {"W": self.W}
