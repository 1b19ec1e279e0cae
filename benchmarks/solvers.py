"""One adapter for each solver.  All take prepared data and return the class vectors and the time they needed.

``ladder`` is the sequence of stopping thresholds to try for a solver whose own rule is not the relative suboptimality:
its time to a target is that of the loosest threshold which reaches it, as if it had known when to stop.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.measure import timed

LADDER: Sequence[float] = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)


class Solver(Protocol):
    """What the runner needs from a solver of the linear problem without intercept."""

    name: str
    loss: str
    ladder: Sequence[float]  # empty: ``stop`` is the target itself, certified by the solver

    def prepare(self, X: Any, y: np.ndarray) -> None:
        """Convert the data; not timed."""

    def solve(self, C: float, stop: float, threads: int) -> tuple[np.ndarray, float]:
        """Class vectors (k, d) and seconds."""


class Ours:
    """skmargin: the whole ``fit`` is timed, conversion and certificate included."""

    ladder: Sequence[float] = ()

    def __init__(self, loss: str) -> None:
        from skmargin import CrammerSingerSVC, WestonWatkinsSVC

        self.loss, self.name = loss, "skmargin" if loss == "cs" else f"skmargin-{loss}"
        self.estimator = {"cs": CrammerSingerSVC, "ww": WestonWatkinsSVC}[loss]

    def prepare(self, X: Any, y: np.ndarray) -> None:
        self.X, self.y, self.k = X, y, int(y.max()) + 1

    def make(self, C: float, stop: float, threads: int, fit_intercept: bool = False) -> Any:
        parameters: dict[str, Any] = {"C": C, "tol": stop, "fit_intercept": fit_intercept, "random_state": 0}
        if "n_jobs" in inspect.signature(self.estimator).parameters:
            parameters["n_jobs"] = threads
        return self.estimator(**parameters)

    def solve(self, C: float, stop: float, threads: int, fit_intercept: bool = False) -> tuple[np.ndarray, float]:
        model = self.make(C, stop, threads, fit_intercept)
        _, seconds = timed(lambda: model.fit(self.X, self.y), threads)
        return both_classes(model.coef_), seconds


class Liblinear:
    """LIBLINEAR 2.50 ``-s 4``, called directly: its problem object is built once and not timed."""

    name, loss = "liblinear", "cs"
    ladder = LADDER

    def prepare(self, X: Any, y: np.ndarray) -> None:
        from liblinear.liblinear import problem

        self.problem = problem(y.astype(float), sparse.csr_matrix(X))

    def solve(self, C: float, stop: float, threads: int) -> tuple[np.ndarray, float]:
        from liblinear.liblinear import liblinear, parameter, toPyModel

        options = parameter(f"-s 4 -c {C!r} -e {stop!r} -q")
        pointer, seconds = timed(lambda: liblinear.train(self.problem, options), threads)
        model = toPyModel(pointer)
        shape = (model.get_nr_feature(), model.get_nr_class())
        W = np.empty(shape[::-1])
        W[model.get_labels()] = np.ctypeslib.as_array(model.w, shape=shape).T
        return W, seconds


class LinearSVCSolver:
    """scikit-learn's ``LinearSVC(multi_class="crammer_singer")``: the whole ``fit`` is timed."""

    name, loss = "LinearSVC", "cs"
    ladder = LADDER

    def prepare(self, X: Any, y: np.ndarray) -> None:
        self.X, self.y = X, y

    def solve(self, C: float, stop: float, threads: int) -> tuple[np.ndarray, float]:
        model = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=stop, random_state=0)
        with warnings.catch_warnings():  # its warning counts iterations of another solver
            warnings.simplefilter("ignore", ConvergenceWarning)
            _, seconds = timed(lambda: model.fit(self.X, self.y), threads)
        return both_classes(model.coef_), seconds


def both_classes(coef: np.ndarray) -> np.ndarray:
    """One row a class: with two classes the difference w is split into -w/2 and w/2, which is the optimal way."""
    return np.vstack([-coef, coef]) / 2 if len(coef) == 1 else coef


SOLVERS: dict[str, Callable[[str], Solver]] = {
    "skmargin": Ours,
    "liblinear": lambda loss: Liblinear(),
    "LinearSVC": lambda loss: LinearSVCSolver(),
}
