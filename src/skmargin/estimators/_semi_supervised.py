"""The machine of Xu et al. (2017) with unlabelled rows."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from ..solvers.certificate import evaluate_margins
from ..solvers.multi_margin.exact import pairwise_penalty
from ..solvers.multi_margin.semi_supervised import likely_shares, solve_semi_supervised
from ._base import (
    COUNT,
    GOAL,
    JOBS,
    MOST_CAP,
    canonical_csr,
    check_caps,
    check_finite,
    check_labels,
    encode_labels,
    fitting,
    seed_of,
)
from ._scores import LinearScores


class SemiSupervisedMarginSVC(LinearScores):
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
        Class vectors; with two classes their difference.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts.
    transduction_ : ndarray of shape (n_samples,)
        Label of every training row: as given, or as found.
    labeled_iter_ : ndarray of shape (n_samples,)
        Round that gave a row its label: 0 for labelled rows, -1 for unlabelled rows of weight zero.
    trajectory_ : ndarray of shape (n_steps, 2)
        Share of ``C_unlabeled`` in force and the objective with it, after each half step.
    objective_ : float
        Value of the objective.
    dual_gap_ : float
        Relative duality gap of the last convex machine.
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
        "C": [Interval(Real, 0, None, closed="neither")],
        "C_unlabeled": [StrOptions({"auto", "even"}), Interval(Real, 0, None, closed="neither")],
        "balance": ["boolean", "array-like"],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": COUNT,
        "n_jobs": JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        C_unlabeled: float | str = "auto",
        balance: Any = True,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.C_unlabeled = C_unlabeled
        self.balance = balance
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SemiSupervisedMarginSVC:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
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
        if y.dtype.kind in "UO" and (y == "-1").any():  # as NumPy and pandas make it of strings and -1
            raise ValueError(
                "y holds the text '-1'; for unlabelled rows give an array of type object with the number -1."
            )
        free = unlabeled_rows(y)
        given = np.flatnonzero(~free)
        if len(given) == 0:
            raise ValueError(f"{type(self).__name__} needs labels of at least two classes, got -1 for every row.")
        check_labels(y[given])
        self.classes_, codes, given_weight, kept = encode_labels(y[given], weight[given], self.class_weight)
        k = len(self.classes_)
        if k < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes among the labelled rows (rows of weight 0 do not "
                f"count), got one class: {self.classes_.tolist()[0]!r}."
            )
        free &= weight > 0
        cap = weight * self._unlabeled_weight(given_weight.sum(), weight[free].sum())
        all_codes = np.full(len(y), -1, dtype=np.int32)
        cap[given[kept]], all_codes[given[kept]] = self.C * given_weight, codes
        rows = np.sort(np.r_[given[kept], np.flatnonzero(free)])
        check_caps(float(self.C), cap[rows] / self.C, MOST_CAP)
        shares = self._shares(np.bincount(codes, weight[given[kept]], k), weight[free].sum())
        state = solve_semi_supervised(
            X if len(rows) == len(y) else X[rows], all_codes[rows], cap[rows], k, shares,
            fit_intercept=bool(self.fit_intercept), tol=GOAL * float(self.tol), max_iter=self.max_iter,
            seed=seed_of(self.random_state), n_jobs=self.n_jobs, verbose=self.verbose, tuning=self._tuning,
        )  # fmt: skip
        machine = state.machine
        self._set_linear(machine.W, machine.b)
        found = evaluate_margins(
            X if len(rows) == len(y) else X[rows], state.labels, cap[rows], self.coef_, self.intercept_,
            ("sum", k - 1), pairwise_penalty, self.tol,
        )  # fmt: skip
        check_finite(self, found.objective)
        self.objective_, self.n_iter_ = found.objective, state.n_iter
        self.dual_gap_ = found.gap(machine.objective * (1 - machine.gap))
        self.trajectory_ = state.trajectory
        self.transduction_, self.labeled_iter_ = y.copy(), np.where(unlabeled_rows(y), -1, 0)
        self.labeled_iter_[rows] = state.labeled_iter
        given_now = np.flatnonzero(free)
        self.transduction_[given_now] = self.classes_[state.labels[np.searchsorted(rows, given_now)]]
        lost = np.flatnonzero(self.labeled_iter_ < 0)
        if len(lost):
            self.transduction_[lost] = self._labels(X[lost])  # rows that are checked, and have lost their names
        if self.dual_gap_ > self.tol:
            self._warn_not_converged(self.dual_gap_)
        return self

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
