"""CrammerSingerSVC and WestonWatkinsSVC of this library: the tolerance is a certified relative duality gap."""

import warnings

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """The whole ``fit``, with its input checks and its certificate."""

    name = "skmargin"
    requirements = ["pip::skmargin"]  # noqa: RUF012

    def set_objective(self, X, y, C, loss):
        """Keep the problem."""
        from skmargin import CrammerSingerSVC, WestonWatkinsSVC

        self.machine = {"crammer-singer": CrammerSingerSVC, "weston-watkins": WestonWatkinsSVC}[loss]
        self.X, self.y, self.C = X, y, C

    def run(self, tolerance):
        """Fit once."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a tolerance beyond double precision
            model = self.machine(C=self.C, tol=max(tolerance, 1e-12), fit_intercept=False, random_state=0)
            model.fit(self.X, self.y)
        W = model.coef_
        self.W = np.vstack([-W, W]) / 2 if len(W) == 1 else W

    def get_result(self):
        """The class vectors."""
        return {"W": self.W}
