"""The models that take part: an estimator, what stands before it, and the grid that it is tuned over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OutputCodeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.fixes import parse_version

import skmargin

from ..model_selection import MarginSearchCV

# Features lie in [-1, 1] whatever the data, so one grid of powers of ten serves all.
_C = (0.1, 1.0, 10.0, 100.0)
# Class, own parameters and grid.
_OWN: dict[str, tuple[str, str, dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "crammer-singer": ("CrammerSingerSVC", "beats the strongest rival by a margin", {}, {"C": _C}),
    "weston-watkins": ("WestonWatkinsSVC", "beats every rival by a margin", {}, {"C": (0.01, *_C[:-1])}),
    "top-k": ("TopKSVC", "beats the two strongest rivals on average", {"k": 2}, {"C": _C}),
    "m3": ("M3SVC", "maximises the margins of all pairs of classes", {}, {"alpha": (1e-5, 1e-4, 1e-3, 1e-2)}),
    "multi-margin": ("MultiMarginSVC", "sum of hinges, pairwise margins", {}, {"C": _C}),
    "lp-norm": ("LpNormSVC", "largest hinge, block norm over classes", {}, {"C": _C}),
    "odm": ("ODMClassifier", "margin distribution, linear", {}, {"C": (10.0, 100.0, 1000.0)}),
    "crammer-singer-rbf": ("CrammerSingerSVC", "Crammer-Singer, RBF kernel", {"kernel": "rbf"}, {"C": _C[1:]}),
    "uldm": ("ULDMClassifier", "mean and variance of the margin, RBF kernel", {}, {"alpha": (1e-6, 1e-4, 1e-2)}),
    "ls-svm": ("LSSVC", "least squares, RBF kernel", {}, {"C": (1.0, 10.0, 100.0)}),
    "ldm": ("LDMClassifier", "margin distribution, pairs of classes, RBF kernel", {}, {"C": (1.0, 10.0, 100.0)}),
}
_SLOW = {"ldm"}  # only by name, or with "all"


@dataclass(frozen=True)
class Model:
    """One model of a comparison: its name, what it is, the estimator without scaling, and the grid."""

    name: str
    description: str
    estimator: Any
    grid: dict[str, tuple[Any, ...]]
    default: bool = True

    @property
    def own(self) -> bool:
        """Whether it is an estimator of skmargin, which a model file can hold."""
        return type(self.estimator).__module__.partition(".")[0] == "skmargin"

    @property
    def kernel(self) -> bool:
        """Whether time and memory grow with the square of the number of rows."""
        return getattr(self.estimator, "kernel", "linear") != "linear"


def models() -> dict[str, Model]:
    """All models by name.

    Examples
    --------
    >>> from skmargin.comparison import models
    >>> models()["crammer-singer"].estimator
    CrammerSingerSVC(random_state=0)
    """
    own = (
        Model(name, what, getattr(skmargin, cls)(random_state=0, **params), grid, name not in _SLOW)
        for name, (cls, what, params, grid) in _OWN.items()
    )
    inner = {"estimator__C": _C}
    sparsity: dict[str, Any] = {"l1_ratio": 1.0}
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        sparsity = {"penalty": "l1"}
    linear = LinearSVC(random_state=0)
    classic = (
        Model("one-vs-rest", "linear SVMs, each class against the rest", linear, {"C": _C}),
        Model("one-vs-one", "linear SVMs for all pairs", OneVsOneClassifier(linear), inner),
        Model("ecoc", "error-correcting code", OutputCodeClassifier(linear, code_size=2, random_state=0), inner),
        Model("rbf-svm", "SVMs for all pairs, RBF kernel", SVC(), {"C": _C[1:]}),
        Model("logistic", "multinomial logistic regression", LogisticRegression(max_iter=1000), {"C": _C}),
        Model(
            "sparse-logistic", "multinomial logistic regression, L1 penalty",
            LogisticRegression(solver="saga", tol=1e-2, max_iter=1000, random_state=0, **sparsity),
            {"C": (1.0, 10.0, 100.0)},
        ),
        Model(
            "l1-svm", "linear SVM, L1 penalty",
            LinearSVC(penalty="l1", dual=False, tol=1e-3, max_iter=5000, random_state=0), {"C": (0.1, 1.0, 10.0)},
        ),
    )  # fmt: skip
    return {model.name: model for model in (*own, *classic)}


def tuned(model: Model, X: Any, *, cv: int, seed: int, n_jobs: int | None) -> MarginSearchCV:
    """An unfitted search over the grid of a model, features scaled to [0, 1] (dense) or [-1, 1] (sparse) before it.

    Parameters
    ----------
    model : Model
        Which model.
    X : ndarray or CSR array
        The rows, looked at only for whether they are sparse.
    cv : int
        Folds for choosing the parameters.
    seed : int
        Of the folds.
    n_jobs : int or None
        Threads.

    Returns
    -------
    search : MarginSearchCV
        ``best_estimator_`` is a pipeline of a scaler and the estimator.
    """
    scaler = MaxAbsScaler() if sparse.issparse(X) else MinMaxScaler()
    pipeline = Pipeline([("scale", scaler), ("model", clone(model.estimator))])
    grid = {f"model__{key}": list(values) for key, values in model.grid.items()}
    folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
    return MarginSearchCV(pipeline, grid, cv=folds, n_jobs=n_jobs, error_score="raise")
