"""The models that take part: an estimator, what stands before it, and the grid that it is tuned over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OutputCodeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.fixes import parse_version

import skmargin

from .._types import ClassWeight, Estimator, RowsLike
from ..datasets._plan import Column, plan_columns
from ..datasets._preprocess import build_preprocessor
from ..model_selection import MarginSearchCV

# Features lie in [-1, 1] whatever the data, so one grid of powers of ten serves all.
_C = (0.1, 1.0, 10.0, 100.0)
_WIDTHS = (0.3, 1.0, 3.0)  # of kernels, as multiples of gamma="scale"
# Class, own parameters and grid.
_OWN: dict[str, tuple[str, str, dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "crammer-singer": ("CrammerSingerSVC", "beats the strongest rival by a margin", {}, {"C": _C}),
    "weston-watkins": ("WestonWatkinsSVC", "beats every rival by a margin", {}, {"C": (0.01, *_C[:-1])}),
    "top-k": ("TopKSVC", "beats the two strongest rivals on average", {"k": 2}, {"C": _C}),
    "m3": (
        "M3SVC", "maximises the margins of all pairs of classes", {},
        {"alpha": (1e-5, 1e-4, 1e-3, 1e-2), "p": (2.0, 4.0)},
    ),
    "multi-margin": ("MultiMarginSVC", "sum of hinges, pairwise margins", {}, {"C": _C}),
    "lp-norm": ("LpNormSVC", "largest hinge, block norm over classes", {}, {"C": _C, "p": (1.2, 1.5, 2.0)}),
    "odm": (
        "ODMClassifier", "margin distribution, linear", {},
        {"C": (10.0, 100.0, 1000.0), "mu": (0.2, 0.5, 0.8), "theta": (0.1, 0.4)},
    ),
    "crammer-singer-rbf": ("CrammerSingerSVC", "Crammer-Singer, RBF kernel", {"kernel": "rbf"}, {"C": _C[1:]}),
    "uldm": ("ULDMClassifier", "mean and variance of the margin, RBF kernel", {}, {"alpha": (1e-6, 1e-4, 1e-2)}),
    "ls-svm": ("LSSVC", "least squares, RBF kernel", {}, {"C": (1.0, 10.0, 100.0)}),
    "ldm": ("LDMClassifier", "margin distribution, pairs of classes, RBF kernel", {}, {"C": (1.0, 10.0, 100.0)}),
}  # fmt: skip
_RBF = {"crammer-singer-rbf", "uldm", "ls-svm", "ldm"}
_SLOW = {"ldm"}  # only by name, or with "all"


SPARSE_VECTORS = "CrammerSingerSVC", "WestonWatkinsSVC", "TopKSVC", "LpNormSVC"


@dataclass(frozen=True)
class Model:
    """One model of a comparison: its name, what it is, the estimator without scaling, and the grid.

    ``widths`` are further candidates for ``gamma``, as multiples of ``"scale"``; ``dense`` says that it takes no
    sparse rows.

    Examples
    --------
    >>> from skmargin.comparison import models
    >>> model = models()["crammer-singer"]
    >>> model.name, list(model.grid)
    ('crammer-singer', ['C'])
    """

    name: str
    description: str
    estimator: Estimator
    grid: dict[str, tuple[Any, ...]]
    default: bool = True
    widths: tuple[float, ...] = ()
    dense: bool = False

    @property
    def own(self) -> bool:
        """Whether it is an estimator of skmargin."""
        return type(self.estimator).__module__.partition(".")[0] == "skmargin"

    @property
    def kernel(self) -> bool:
        """Whether time and memory grow with the square of the number of rows."""
        return getattr(self.estimator, "kernel", "linear") != "linear"

    @property
    def sparse_vectors(self) -> bool:
        """Whether class vectors of very many classes are sparse (solvers/many_classes)."""
        return self.own and not self.kernel and type(self.estimator).__name__ in SPARSE_VECTORS

    def weighted(self, class_weight: ClassWeight) -> Model:
        """The same model with class weights, where its estimator has any."""
        names = [n for n in ("class_weight", "estimator__class_weight") if n in self.estimator.get_params()]
        if class_weight is None or not names:
            return self
        return replace(self, estimator=clone(self.estimator).set_params(**{names[0]: class_weight}))


def models() -> dict[str, Model]:
    """All models by name.

    Examples
    --------
    >>> from skmargin.comparison import models
    >>> models()["crammer-singer"].estimator
    CrammerSingerSVC(random_state=0)
    """
    own = (
        Model(
            name, what, getattr(skmargin, cls)(random_state=0, **params), grid, name not in _SLOW,
            _WIDTHS if name in _RBF else (),
        )
        for name, (cls, what, params, grid) in _OWN.items()
    )  # fmt: skip
    inner = {"estimator__C": _C}
    sparsity: dict[str, Any] = {"l1_ratio": 1.0}
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        sparsity = {"penalty": "l1"}
    linear = LinearSVC(random_state=0)
    classic = (
        Model("one-vs-rest", "linear SVMs, each class against the rest", linear, {"C": _C}),
        Model("one-vs-one", "linear SVMs for all pairs", OneVsOneClassifier(linear), inner),
        Model("ecoc", "error-correcting code", OutputCodeClassifier(linear, code_size=2, random_state=0), inner),
        Model("rbf-svm", "SVMs for all pairs, RBF kernel", SVC(), {"C": _C[1:]}, widths=_WIDTHS),
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
        Model(
            "gradient-boosting", "boosted trees on histograms", HistGradientBoostingClassifier(random_state=0),
            {"max_leaf_nodes": (7, 31)}, dense=True,
        ),
        Model("random-forest", "trees on samples of rows", RandomForestClassifier(random_state=0),
              {"min_samples_leaf": (1, 5)}),
        Model("nearest-neighbours", "vote of the nearest samples", KNeighborsClassifier(), {"n_neighbors": (1, 5, 15)}),
    )  # fmt: skip
    return {model.name: model for model in (*own, *classic)}


def preparation(X: RowsLike, columns: Sequence[Column] | None = None, dense: bool = False) -> tuple[str, Any]:
    """The step before the model: features scaled to [0, 1] (dense) or [-1, 1] (sparse), a raw table preprocessed."""
    if hasattr(X, "iloc"):
        return "table", build_preprocessor(plan_columns(X) if columns is None else columns, sparse=not dense)
    return "scale", MaxAbsScaler() if sparse.issparse(X) else MinMaxScaler()


def tuned(
    model: Model,
    X: RowsLike,
    *,
    cv: int,
    seed: int,
    n_jobs: int | None,
    scoring: str | None = None,
    columns: Sequence[Column] | None = None,
) -> MarginSearchCV:
    """An unfitted search over the grid of a model, with what must stand before it.

    Parameters
    ----------
    model : Model
        Which model.
    X : ndarray, CSR array or data frame
        The training rows, looked at for their kind and, by kernels, for their spread.
    cv : int
        Folds for choosing the parameters.
    seed : int
        Of the folds.
    n_jobs : int or None
        Threads.
    scoring : str, default=None
        Metric that chooses, by the names of scikit-learn; None is accuracy.
    columns : sequence of Column, default=None
        What the columns of a data frame are; None finds out.

    Returns
    -------
    search : MarginSearchCV
        ``best_estimator_`` is a pipeline of the preparation and the estimator.

    Examples
    --------
    >>> from skmargin.comparison import models, tuned
    >>> from skmargin.datasets import load_dataset
    >>> data = load_dataset("iris")
    >>> search = tuned(models()["crammer-singer"], data.X, cv=3, seed=0, n_jobs=None).fit(data.X, data.y)
    >>> bool(search.best_score_ > 0.9)
    True
    """
    step, front = preparation(X, columns, model.dense)
    pipeline = Pipeline([(step, front), ("model", clone(model.estimator))])
    grid = {f"model__{key}": list(values) for key, values in model.grid.items()}
    if "model__n_neighbors" in grid:
        most = X.shape[0] * (cv - 1) // cv
        grid["model__n_neighbors"] = [n for n in grid["model__n_neighbors"] if n <= most] or [1]
    if model.widths:
        spread = kernel_spread(clone(front).fit_transform(X))
        grid["model__gamma"] = [width / spread for width in model.widths]
    folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
    return MarginSearchCV(pipeline, grid, cv=folds, n_jobs=n_jobs, scoring=scoring, error_score="raise")


def kernel_spread(X: RowsLike) -> float:
    """Number of features times their variance: the reciprocal of ``gamma="scale"``.

    Examples
    --------
    >>> import numpy as np
    >>> from skmargin.comparison import kernel_spread
    >>> kernel_spread(np.array([[0.0, 2.0], [2.0, 0.0]]))
    2.0
    """
    if sparse.issparse(X):
        mean = X.sum() / np.prod(X.shape)
        variance = X.multiply(X).sum() / np.prod(X.shape) - mean**2
    else:
        variance = np.var(X)
    return float(X.shape[1] * variance) or 1.0
