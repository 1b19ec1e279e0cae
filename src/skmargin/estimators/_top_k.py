"""The top-k machine of Lapin, Hein and Schiele (2015)."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from .._types import ClassWeight, RandomState
from ..rows.blocks import BlockRows
from ..solvers.blocks.newton import BlockState
from ..solvers.blocks.passes import BlockProblem
from ._base import Problem, warn_of_fit
from ._dual import DualMachine


class TopKSVC(DualMachine):
    """Multi-class SVM of the k closest rivals, for tasks that are judged by their top-k error.

    Minimises, with scores ``f_il = w_l'x_i + b_l`` and weights ``s_i``::

        1/2 ||W||^2 + C sum_i s_i (mean of the k largest max(0, 1 - f_{i,y_i} + f_il), l != y_i)

    ``k=1`` is the machine of Crammer and Singer; with all rivals it is that of Weston and Watkins with ``C / k``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the penalty.
    k : int, default=5
        Number of rivals that count; at most the number of classes less one is used.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="linear"
        Kernel.  With ``"linear"`` the class vectors themselves are found and stored.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels "rbf", "poly", "sigmoid" and "laplacian".
    degree : float, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    cache_size : float, default=500
        Megabytes for rows of the kernel matrix.
    fit_intercept : bool, default=True
        Fit an intercept for each class; it is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with the weights of the samples.
    tol : float, default=1e-3
        Relative duality gap at which the fit ends: the objective is within this share of the optimum.
    max_iter : int, default=10000
        Largest number of passes over the data.
    warm_start : bool, default=False
        Start from the solution of the last fit on the same rows, also after a change of ``C``.
    n_jobs : int or None, default=None
        Threads of the long loops; None: as many as BLAS has.  The result is the same for every number.
    random_state : int, RandomState instance or None, default=None
        Seeds the order in which samples are visited.
    verbose : int, default=0
        Print how far a long fit is, once a second, and how the solver of a linear machine ended.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : {ndarray, CSR array} of shape (n_classes, n_features) or (1, n_features)
        Class vectors of a linear machine; with two classes their difference.  Sparse where so many classes and
        features would take more than `max_dense_bytes` (`skmargin.get_config`).
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts.
    dual_coef_ : ndarray of shape (n_support, n_classes) or (n_support, 1)
        Coefficients of the support vectors of a kernel machine.
    support_ : ndarray of shape (n_support,)
        Positions of the support vectors in the training data (kernel machine).
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, n_features)
        The support vectors (kernel machine, not for ``kernel="precomputed"``).
    objective_ : float
        Value of the primal objective.
    dual_gap_ : float
        Certified relative duality gap.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names.

    See Also
    --------
    CrammerSingerSVC : The closest rival only.
    WestonWatkinsSVC : Every rival.

    References
    ----------
    Lapin, Hein and Schiele, Top-k multiclass SVM, NeurIPS 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmargin import TopKSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = TopKSVC(k=2).fit(X / 16, y)
    >>> bool(clf.score(X / 16, y) > 0.97), bool(clf.dual_gap_ <= clf.tol)
    (True, True)
    """

    _in_blocks = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DualMachine._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 1.0,
        k: int = 5,
        *,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        cache_size: float = 500,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            C, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, cache_size=cache_size,
            fit_intercept=fit_intercept,
            class_weight=class_weight, tol=tol, max_iter=max_iter, warm_start=warm_start, n_jobs=n_jobs,
            random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.k = k

    def _loss(self, n_classes: int) -> tuple[str, int]:
        return "top", min(self.k, n_classes - 1)

    def _fit_problem(self, problem: Problem) -> None:
        super()._fit_problem(problem)
        self._warn_of_few_rivals()

    def _publish_blocks(self, rows: BlockRows, problem: BlockProblem, found: BlockState, scale: float = 1.0) -> None:
        super()._publish_blocks(rows, problem, found, scale)
        self._warn_of_few_rivals()

    def _warn_of_few_rivals(self) -> None:
        rivals = len(self.classes_) - 1
        if self.k > rivals > 1:  # with one rival every k is the same machine
            warn_of_fit(
                f"TopKSVC with k={self.k} has only {rivals} rivals for each of its {rivals + 1} classes: all of them "
                f"count, as with k={rivals}.",
                UserWarning,
            )
