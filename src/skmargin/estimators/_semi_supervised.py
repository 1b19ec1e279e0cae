"""The machine of Xu et al. (2017) with unlabelled rows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from .._runtime.threads import blas_threads
from .._types import ClassWeight, LabelsLike, RandomState, Rows, RowsLike, WeightsLike
from ..rows.gram import value_steps
from ..rows.kernel_rows import KernelRows, kernel_scores
from ..solvers.certificate import UNIT, evaluate_margins
from ..solvers.dual.state import KernelState, lower_bound
from ..solvers.multi_margin.exact import pairwise_penalty
from ..solvers.multi_margin.half_steps import ConvexSteps, DualSteps, Step, StochasticSteps
from ..solvers.multi_margin.labels import likely_shares
from ..solvers.multi_margin.semi_supervised import SemiSupervisedState, solve_semi_supervised
from ._base import (
    GOAL,
    MOST_CAP,
    Problem,
    canonical_csr,
    check_caps,
    check_finite,
    check_labels,
    encode_labels,
    fitting,
    seed_of,
)
from ._dual import MOST_KERNEL_CAP
from ._multi_margin import MultiMarginMachine


class SemiSupervisedMarginSVC(MultiMarginMachine):
    """Multi-class SVM of Xu et al. that labels unlabelled rows while it learns.

    Minimises, with scores ``f_il = w_l'x_i + b_l`` and weights ``s_i``, over the class vectors, the intercepts **and**
    the labels ``z_i`` of the unlabelled rows::

        1/2 sum_{j<l} ||w_j - w_l||^2 + 1/2 ||W||^2 + 1/2 ||b||^2
            + C sum_labelled s_i loss(f_i, y_i) + C_unlabeled sum_unlabelled s_i loss(f_i, z_i)
        loss(f, l) = sum_{j != l} max(0, 1 - f_l + f_j)

    The weight of the unlabelled rows grows in three stages (1 %, 10 %, all of it).  In a stage, giving labels and
    solving the convex machine for them take turns, and neither raises the objective.  The result is a local optimum.
    Without an unlabelled row it is `MultiMarginSVC`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses of the labelled rows.
    C_unlabeled : "auto", "even" or float, default="auto"
        Weight of the losses of the unlabelled rows.  "auto" is one over their number, as in the paper; "even" gives
        both parts the same total weight.
    balance : bool or array-like of shape (n_classes,), default=True
        Shares of the classes among the unlabelled rows: True keeps them within one standard error of those among the
        labelled rows, an array prescribes them (in the order of ``classes_``), False leaves them free.
    solver : {"dual", "svrg"}, default="dual"
        Of the convex machines: "dual" is exact and certified, "svrg" the paper's stochastic gradients (linear kernel
        only), which may stop above ``tol``, and say so.
    learning_rate : "adaptive" or float, default="adaptive"
        Step of SVRG, as for `MultiMarginSVC`.
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
        Fit an intercept for each class; it is penalised, as in the paper.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes of the labelled rows, multiplied with the weights of the samples.
    tol : float, default=1e-3
        Relative duality gap of each convex machine.
    max_iter : int, default=10000
        Largest number of passes over the data for each convex machine.
    n_jobs : int or None, default=None
        Threads of the long loops; None means one, -1 all.  The result is the same for every number.
    random_state : int, RandomState instance or None, default=None
        Seeds the order in which samples are visited.
    verbose : int, default=0
        Print how far a long fit is, once a second, and how each convex machine ended.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Class vectors of a linear machine; with two classes their difference.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts.
    dual_coef_ : ndarray of shape (n_support, n_classes) or (n_support, 1)
        Coefficients of the support vectors of a kernel machine.
    support_ : ndarray of shape (n_support,)
        Positions of the support vectors in the training data (kernel machine).
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, n_features)
        The support vectors (kernel machine, not for ``kernel="precomputed"``).
    transduction_ : ndarray of shape (n_samples,)
        Label of every training row: as given, or as found.
    labeled_iter_ : ndarray of shape (n_samples,)
        Round that gave a row its label: 0 for labelled rows, -1 for unlabelled rows of weight zero.
    trajectory_ : ndarray of shape (n_steps, 2)
        Share of ``C_unlabeled`` in force and the objective with it, after each half step.
    objective_ : float
        Value of the objective.
    dual_gap_ : float or None
        Relative duality gap of the last convex machine; None where the kernel is not positive semi-definite.
    n_iter_ : int
        Passes over the data, of all machines together.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names.

    See Also
    --------
    MultiMarginSVC : The supervised machine.

    Notes
    -----
    As everywhere in scikit-learn the label -1 says "unlabelled"; string labels come as an object array with the
    number -1.
    Where -1 and one other label are all there is, both are taken as classes: the usual signs of a two-class problem.

    References
    ----------
    Xu, Liu, Huo, Deng, Nie and Huang, Multi-class support vector machine via maximizing multi-class margins,
    IJCAI 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import SemiSupervisedMarginSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> partly = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    >>> clf = SemiSupervisedMarginSVC(C=10).fit(X, partly)
    >>> bool((clf.transduction_ == y).mean() > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: of for name, of in MultiMarginMachine._parameter_constraints.items() if name != "warm_start"},
        "C_unlabeled": [StrOptions({"auto", "even"}), Interval(Real, 0, None, closed="neither")],
        "balance": ["boolean", "array-like"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        C_unlabeled: float | str = "auto",
        balance: Any = True,
        solver: str = "dual",
        learning_rate: float | str = "adaptive",
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        cache_size: float = 500,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            C, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0,
            cache_size=cache_size, fit_intercept=fit_intercept, class_weight=class_weight, tol=tol, max_iter=max_iter,
            n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
        self.C_unlabeled = C_unlabeled
        self.balance = balance
        self.solver = solver
        self.learning_rate = learning_rate

    @fitting
    def fit(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike = None) -> SemiSupervisedMarginSVC:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; for ``kernel="precomputed"`` the kernel matrix (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Labels; -1 for an unlabelled row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the losses: weight 0 removes a row, weight 2 repeats it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self.__dict__.pop("n_iter_", None)  # a fit that is interrupted leaves the estimator unfitted
        X, y = self._check_rows(X, y)
        if sparse.issparse(X):
            X = canonical_csr(X)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        rows, codes, cap, shares = self._read_labels(y, weight)
        k = len(self.classes_)
        problem = Problem(X if len(rows) == len(y) else X[rows], codes[rows], weight[rows], k, rows)
        # Kernel rows have threads of their own, which those of BLAS would keep waiting.
        with nullcontext() if self._is_linear() else blas_threads(1):
            state = solve_semi_supervised(self._steps(problem), problem.y, cap[rows], shares, tuning=self._tuning)
            self._publish(problem, cap[rows], state.machine, state.labels)
        self.trajectory_, self.n_iter_ = state.trajectory, state.n_iter
        self._publish_labels(X, y, rows, state)
        if not self._has_no_certificate() and self.dual_gap_ is not None and self.dual_gap_ > self.tol:
            self._warn_not_converged(self.dual_gap_)
        return self

    def _read_labels(self, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
        """Rows with a weight; the codes of all, -1 for none; the weights of their losses, with C; shares of classes."""
        if y.dtype.kind in "UO" and (y == "-1").any():  # as NumPy and pandas make it of strings and -1
            raise ValueError(
                "y holds the text '-1'; for unlabelled rows give an array of type object with the number -1."
            )
        free = unlabeled_rows(y)
        given = np.flatnonzero(~free)
        if len(given) == 0:
            raise ValueError(f"{type(self).__name__} needs labels of at least two classes, got -1 for every row.")
        check_labels(y[given])
        self.classes_, known, given_weight, kept = encode_labels(y[given], weight[given], self.class_weight)
        k = len(self.classes_)
        if k < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes among the labelled rows (rows of weight 0 do not "
                f"count), got one class: {self.classes_.tolist()[0]!r}."
            )
        given, mass = given[kept], float(weight[free].sum())
        codes, cap = np.full(len(y), -1, dtype=np.int32), np.zeros(len(y))
        cap[free] = weight[free] * self._unlabeled_weight(given_weight.sum(), mass)
        codes[given], cap[given] = known, self.C * given_weight
        rows = np.sort(np.r_[given, np.flatnonzero(free & (weight > 0))])
        check_caps(float(self.C), cap[rows] / self.C, MOST_CAP if self._is_linear() else MOST_KERNEL_CAP)
        return rows, codes, cap, self._shares(np.bincount(known, weight[given], k), mass)

    def _publish_labels(self, X: Rows, y: np.ndarray, rows: np.ndarray, state: SemiSupervisedState) -> None:
        """``transduction_`` and ``labeled_iter_`` of all rows; unlabelled ones of weight 0 are predicted."""
        free = unlabeled_rows(y)
        self.transduction_, self.labeled_iter_ = y.copy(), np.where(free, -1, 0)
        self.labeled_iter_[rows] = state.labeled_iter
        found = free[rows]
        self.transduction_[rows[found]] = self.classes_[state.labels[found]]
        lost = np.flatnonzero(self.labeled_iter_ < 0)
        if len(lost):
            self.transduction_[lost] = self._labels(X[lost])  # rows that are checked, and have lost their names

    def _steps(self, problem: Problem) -> ConvexSteps:
        """How the convex machines are solved."""
        seed = seed_of(self.random_state)
        if not self._is_linear():
            self._check_kernel()
            return KernelSteps(self, problem, seed)
        options: dict[str, Any] = {
            "fit_intercept": bool(self.fit_intercept), "tol": GOAL * float(self.tol), "max_iter": self.max_iter,
            "seed": seed, "verbose": self.verbose, "tuning": self._tuning,
        }  # fmt: skip
        if self.solver == "svrg":
            return StochasticSteps(problem.X, problem.n_classes, learning_rate=self._constant_step(), **options)
        return DualSteps(problem.X, problem.n_classes, n_jobs=self.n_jobs, **options)

    def _publish(self, problem: Problem, cap: np.ndarray, machine: Step, labels: np.ndarray) -> None:
        """Publish the last machine, with its objective and gap for the labels found."""
        if not self._is_linear():
            self._set_kernel(problem, machine.W, machine.b)
            check_finite(self, machine.objective)
            self.objective_ = machine.objective
            self.dual_gap_ = max(0.0, 1 - machine.bound / max(machine.objective, np.finfo(float).tiny))
            return
        self._set_linear(machine.W, machine.b)
        found = evaluate_margins(
            problem.X, labels, cap, self.coef_, self.intercept_, ("sum", problem.n_classes - 1),
            pairwise_penalty, self.tol, self.n_jobs,
        )  # fmt: skip
        scores = self._scores(problem.X)  # in the number type of the rows, which is that of predictions
        check_finite(self, found.objective, scores)
        self.objective_, self.dual_gap_ = found.objective, found.gap(machine.bound)

    def _unlabeled_weight(self, labeled: float, unlabeled: float) -> float:
        if isinstance(self.C_unlabeled, str):
            total = self.C * labeled if self.C_unlabeled == "even" else 1.0
            return total / unlabeled if unlabeled > 0 else 1.0
        return float(self.C_unlabeled)

    def _shares(self, labeled: np.ndarray, unlabeled: float) -> tuple[np.ndarray, np.ndarray] | None:
        given = isinstance(self.balance, (bool, np.bool_))
        if unlabeled == 0 or (given and not self.balance):
            return None
        if given:
            return likely_shares(labeled, unlabeled)
        try:
            shares = np.asarray(self.balance, dtype=np.float64)
        except (TypeError, ValueError):
            shares = np.array(np.nan)
        if shares.shape != labeled.shape or not (np.isfinite(shares) & (shares >= 0)).all() or shares.sum() == 0:
            raise ValueError(
                f"balance must be True, False or one non-negative share for each of the {len(labeled)} classes, "
                f"got {self.balance!r}."
            )
        return (shares / shares.sum(),) * 2


class KernelSteps:
    """Convex half steps of a machine with a kernel, from the duals of the last one (`ConvexSteps`)."""

    def __init__(self, machine: SemiSupervisedMarginSVC, problem: Problem, seed: int) -> None:
        self.machine, self.k, self.seed = machine, problem.n_classes, seed
        self.scale = problem.n_classes + 1
        self.offset = machine._constant_feature(problem.n_classes)
        self.X = machine._kernel_points(problem)
        self.rows, self.tiny = self._between(self.X)

    def first(self, rows: np.ndarray, labels: np.ndarray, caps: np.ndarray) -> Step:
        """For some of the rows."""
        if len(rows) == len(labels):
            return self._solve(self.rows, self.tiny, labels, caps, None)
        found = self._solve(*self._between(self._block(rows, rows)), labels[rows], caps[rows], None)
        W, alpha = np.zeros((2, len(labels), self.k))
        W[rows], alpha[rows] = found.W, found.state.alpha
        return replace(found, W=W, state=KernelState(alpha, found.state.b))

    def next(self, labels: np.ndarray, caps: np.ndarray, last: Step, changed: np.ndarray) -> Step:
        """For all rows."""
        alpha = np.where(changed[:, None], 0.0, last.state.alpha)  # weights only grow: the rest is feasible
        return self._solve(self.rows, self.tiny, labels, caps, KernelState(alpha, last.state.b))

    def kept(self, last: Step, worse: Step, objective: float) -> Step:
        """The worse one: it is so by less than the tolerance, and its objective is not the difference of others."""
        return worse

    def scores(self, step: Step, rows: np.ndarray) -> np.ndarray:
        """Scores of some of the rows."""
        if step.state.scores is not None:
            return step.state.stretch * step.state.scores.T[rows].astype(np.float64)
        support, model = np.flatnonzero(step.W.any(axis=1)), self.machine
        if not len(support):
            return np.tile(step.b, (len(rows), 1))
        return kernel_scores(
            self._block(rows, support) if model._is("precomputed") else self.X[rows], self.X[support],
            step.W[support], step.b, model.kernel, model._gamma, model.degree, model.coef0, model._tuning,
        )  # fmt: skip

    def _block(self, rows: np.ndarray, columns: np.ndarray) -> Any:
        return self.X[rows][:, columns] if self.machine._is("precomputed") else self.X[rows]

    def _between(self, X: Rows) -> tuple[KernelRows, bool]:
        return self.machine._rows_between(X, self.k, self.offset)

    def _solve(self, rows: KernelRows, tiny: bool, labels: np.ndarray, caps: np.ndarray, start: Any) -> Step:
        state = self.machine._solve_between(rows, tiny, labels, caps / self.scale, self.k, self.seed, start)
        coef, _ = state.published(labels)
        objective = self.scale * state.objective
        bound = lower_bound(objective, state.gap) - self._rounding(rows, coef, caps)
        return Step(coef, self.offset * coef.sum(axis=0), objective, bound, state.n_iter, state)

    def _rounding(self, rows: KernelRows, coef: np.ndarray, caps: np.ndarray) -> float:
        """What the losses may change by the rounding of the scores."""
        lengths, kernel = np.sqrt(np.maximum(rows.diagonal, 0)), self.machine.kernel
        steps = len(coef) + value_steps(kernel, self.X.shape[1], self.machine.degree)
        error = UNIT * steps * float(lengths.max() * (lengths @ np.abs(coef)).max())
        return 2 * (self.k - 1) * error * float(caps.sum())


def unlabeled_rows(y: np.ndarray) -> np.ndarray:
    """Which labels are the number -1, unless -1 and one other label are the signs of two classes."""
    if y.dtype.kind in "biuf":
        free = y == -1
    elif y.dtype.kind == "O":
        free = np.array([not isinstance(label, str) and label == -1 for label in y], dtype=bool)
    else:
        free = np.zeros(len(y), dtype=bool)
    if free.any() and len(np.unique(y[~free])) == 1:
        return np.zeros(len(y), dtype=bool)
    return free
