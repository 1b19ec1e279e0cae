"""Multi-class SVM that maximises the minimum margin (Nie, Hao and Wang, AAAI 2024)."""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import _check_sample_weight, validate_data

from .._types import ClassWeight, Estimator, LabelsLike, RandomState, RowsLike, WeightsLike
from ..losses import LogLoss, SmoothedSumHinge, SmoothLoss
from ..regularizers import PairwiseMaximum, PairwisePower, SmoothPenalty
from ..rows.blocks import BlockRows
from ..rows.collections import Collections
from ..rows.files import OpenRows
from ..rows.gram import KERNELS
from ..solvers.blocks.from_rows import is_small, load
from ..solvers.blocks.log_loss import solve_log_loss, suits_log_loss
from ..solvers.primal.adam import AdamState, adam_epoch, random_start
from ._base import COUNT, JOBS, Problem, check_compressed, check_finite, fitting, seed_of, weights_of_classes
from ._primal import PrimalMachine


def _has_log_loss(model: Estimator) -> bool:
    if model.loss != "log_loss":
        raise AttributeError(f"Probabilities need loss='log_loss', got loss={model.loss!r}.")
    return True


def _is_linear(model: Estimator) -> bool:
    if not model._is("linear"):
        raise AttributeError(f"partial_fit needs kernel='linear', got kernel={model.kernel!r}.")
    return True


class M3SVC(PrimalMachine):
    """Multi-class SVM that maximises the minimum margin between classes.

    Minimises, over class vectors ``w_l`` and intercepts ``b_l`` with scores ``f_il = w_l'x_i + b_l``::

        sum_i s_i loss(f_i, y_i) + alpha sum_{j<l} ||w_j - w_l||^p + eps (||W||^2 + ||b||^2)

    The margin between two classes is ``2 / ||w_j - w_l||``: ``p = 2`` weighs all margins alike (the machine of Weston
    and Watkins), a larger ``p`` looks more and more at the smallest one.  The loss is a sum, so ``alpha`` need not grow
    with the data.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty (the paper's lambda).
    p : float or "inf", default=4
        Power of the distances, at least 1.  With ``inf`` the penalty is ``alpha max_{j<l} ||w_j - w_l||``: the minimum
        margin alone.
    penalty : {"power", "log_sum_exp"}, default="power"
        ``"power"``: the sum above.  ``"log_sum_exp"``: ``alpha p log(mean_{j<l} exp(||w_j - w_l|| / p))``, the
        paper's other form (its equation 15a, less a constant): between the mean of the distances, for a large ``p``,
        and their maximum, for a small one.  Here ``p`` may be any positive number.
    loss : {"hinge", "log_loss"}, default="hinge"
        ``"hinge"``: the sum of ``g(1 - f_y + f_l)`` over the other classes; ``"log_loss"``: the softmax variant, with
        :meth:`predict_proba`.
    delta : float, default=1e-2
        Smoothing of the hinge, ``g(t) = (t + sqrt(t^2 + delta^2)) / 2``; 0 is the hinge itself.  Small values cost
        little time: the solver reaches them through larger ones.  Not used by the log loss.
    eps : float, default=0.0
        The paper's ridge on class vectors and intercepts.  At 0 the intercept is not penalised.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed"} or callable, default="linear"
        Kernel, through a factor of the Gram matrix (n x n numbers).  For many rows put scikit-learn's ``Nystroem`` in
        front.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels "rbf", "poly", "sigmoid" and "laplacian".
    degree : float, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    solver : {"auto", "newton-cg", "lbfgs", "adam"}, default="auto"
        ``"auto"``: L-BFGS, and Newton's method for few parameters or narrow smoothing.  ``"adam"``: the method of the
        paper, for comparison, ``max_iter`` epochs.  The authors' own run is ``solver="adam", batch_size=None,
        init="random", max_iter=500`` with the log loss.
    learning_rate : float, default=0.01
        Step of Adam, also in :meth:`partial_fit`.
    batch_size : int or None, default=256
        Rows in a step of Adam; None takes all.
    init : {"zero", "random"}, default="zero"
        Where Adam starts: ``"random"`` draws every weight and intercept evenly between ``-1/sqrt(n_features)`` and
        ``1/sqrt(n_features)``, as a linear layer of PyTorch does.  The other solvers end at the minimum from any start.
    fit_intercept : bool, default=True
        Whether the scores have intercepts.
    class_weight : dict or "balanced", default=None
        Weights of the classes; they multiply the sample weights.
    tol : float, default=1e-3
        Relative duality gap at which the fit ends.
    max_iter : int, default=2000
        Most iterations (epochs of Adam).
    warm_start : bool, default=False
        Start the next fit from the last solution.
    n_jobs : int or None, default=None
        Threads of the long loops; None means one, -1 all.  The result is the same for every number.
    random_state : int, RandomState instance or None, default=None
        Order of the rows in Adam, and its random start.
    verbose : int, default=0
        Print how far a long fit is, once a second, and each certificate on the way.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Class vectors; with two classes their difference.  Linear kernel only.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts.
    dual_coef_ : ndarray of shape (n_support, n_classes) or (n_support, 1)
        Coefficients of the support vectors.  Other kernels only.
    support_ : ndarray of shape (n_support,)
        Rows of the training data that span the solution.  Other kernels only.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_support, n_features)
        Those rows.  Other kernels only, and not for ``"precomputed"``.
    objective_ : float
        Value of the minimised function.
    dual_gap_ : float or None
        Certified relative gap: the minimum is at least ``objective_ * (1 - dual_gap_)``; None where the kernel is not
        positive semi-definite.
    n_iter_ : int
        Iterations made.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names.

    References
    ----------
    F. Nie, Z. Hao, R. Wang. Multi-class support vector machine with maximizing minimum margin. AAAI 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import M3SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = M3SVC().fit(X, y)
    >>> model.score(X, y) > 0.97
    True
    >>> model.dual_gap_ <= 1e-3
    True
    """

    _in_blocks = True
    _parameter_constraints: ClassVar[dict] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "p": [Interval(Real, 0, None, closed="right"), StrOptions({"inf"})],
        "penalty": [StrOptions({"power", "log_sum_exp"})],
        "loss": [StrOptions({"hinge", "log_loss"})],
        "delta": [Interval(Real, 0, None, closed="left")],
        "eps": [Interval(Real, 0, None, closed="left")],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "solver": [StrOptions({"auto", "newton-cg", "lbfgs", "adam"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"zero", "random"})],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": COUNT,
        "warm_start": ["boolean"],
        "n_jobs": JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        p: float | str = 4,
        penalty: str = "power",
        loss: str = "hinge",
        delta: float = 1e-2,
        eps: float = 0.0,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        solver: str = "auto",
        learning_rate: float = 0.01,
        batch_size: int | None = 256,
        init: str = "zero",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.p = p
        self.penalty = penalty
        self.loss = loss
        self.delta = delta
        self.eps = eps
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.init = init
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike = None) -> M3SVC:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; for ``kernel="precomputed"`` the Gram matrix.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights: 0 removes a row, 2 counts it twice.

        Returns
        -------
        self : M3SVC
            The fitted classifier.
        """
        old = copy(self) if self.warm_start and hasattr(self, "classes_") else None  # what the new fit writes over
        self._fit_problem(self._check_problem(X, y, sample_weight), old)
        return self

    def _fit_rows(self, rows: OpenRows | Collections, checkpoint: Any) -> None:
        """Fit to rows in blocks."""
        if checkpoint is not None:
            raise ValueError("M3SVC keeps no checkpoint; leave checkpoint out.")
        needed = {"kernel": ("linear",), "loss": ("log_loss",), "solver": ("auto", "newton-cg"), "penalty": ("power",)}
        for name, allowed in needed.items():
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(
                    f"Rows in blocks and Dask collections need {name}={allowed[0]!r}, got {name}={value!r}."
                )
        if np.isinf(float(self.p)):
            raise ValueError(f"Rows in blocks and Dask collections need a finite p, got p={self.p!r}.")
        self._fit_blocks(self._count_rows(rows))

    def _fit_blocks(self, rows: BlockRows) -> None:
        """Fit to counted rows, wherever they are; ``classes_`` and ``n_features_in_`` are set."""
        k, d = len(self.classes_), rows.n_features
        if is_small(rows):
            X, y, weight = load(rows)
            return self._fit_problem(Problem(X, y, weight, k, np.arange(len(y))))
        if not suits_log_loss(d, k, self._tuning.blocks):
            raise ValueError(f"Rows in blocks with {d} features and {k} classes are too wide for M3SVC.")
        state = solve_log_loss(
            rows, self._penalty(), bool(self.fit_intercept), self.eps, tol=self.tol,
            max_iter=self.max_iter, seed=seed_of(self.random_state), verbose=self.verbose, tuning=self._tuning.blocks,
        )  # fmt: skip
        theta, certificate = state.theta, state.certificate
        shared = theta.mean(axis=1, keepdims=True)
        certificate.primal -= self.eps * k * float(np.vdot(shared, shared))
        W, b = self._split(theta - shared)
        self.__dict__.pop("_adam", None)
        self._weight_seen = float(rows.class_weights.sum())
        self._set_linear(W.T, b)
        check_finite(self, certificate.primal)
        self.objective_, self.dual_gap_, self.n_iter_ = certificate.primal, certificate.relative, state.n_iter
        if certificate.relative > self.tol:
            self._warn_not_converged(certificate.relative)

    def _take_blocks(self, rows: OpenRows, classes: Any) -> M3SVC:
        """`partial_fit` of each block; after an error the machine is what it was."""
        before = dict(self.__dict__)
        try:
            for place, (X, y, weight) in enumerate(rows):
                try:
                    self.partial_fit(X, y, classes, weight)
                except ValueError as error:
                    raise ValueError(f"{rows.name}, block {place}: {error}") from None
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    @available_if(_is_linear)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: RowsLike, y: LabelsLike = None, classes: Any = None, sample_weight: WeightsLike = None
    ) -> M3SVC:
        """One pass of Adam over a part of a stream (linear kernel only; put ``Nystroem`` in front for others).

        The penalty stands against the sum of the losses of all rows seen so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or rows in blocks
            Rows; those of `skmargin.datasets.open_rows` come with labels and weights, and are taken block by block.
        y : array-like of shape (n_samples,), default=None
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels of the stream; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : M3SVC
            The classifier.
        """
        if isinstance(X, OpenRows):
            if y is not None or sample_weight is not None:
                raise ValueError("partial_fit(rows) takes labels and weights from the rows.")
            return self._take_blocks(X, classes)
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all rows, and partial_fit sees a part; give a dict instead."
            )
        first = _check_partial_fit_first_call(self, classes)
        check_compressed(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=first)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            row = np.flatnonzero(np.isin(y, unknown))[0]
            raise ValueError(
                f"y holds labels that are not in classes={self.classes_.tolist()}: {unknown.tolist()}, "
                f"first in row {row}."
            )
        codes = np.searchsorted(self.classes_, np.asarray(y)).astype(np.int32)
        if self.class_weight:
            weight = weight * weights_of_classes(self.class_weight, self.classes_)[codes]
        fitted = self.__sklearn_is_fitted__() and hasattr(self, "coef_")  # a call that failed may have set classes_
        if not (fitted and hasattr(self, "_adam")):
            start = np.zeros((X.shape[1] + self.fit_intercept, len(self.classes_)))
            if fitted:  # go on from a whole fit, or from a file, which keeps the solution but no moments
                self._fill(start)
            elif self.init == "random":
                start = random_start(start.shape, X.shape[1], check_random_state(self.random_state))
            self._adam = AdamState.start(start.astype(X.dtype))
        before = self._weight_seen if fitted else 0.0
        kept = np.flatnonzero(weight > 0)
        if len(kept):
            X, codes, weight = X[kept], codes[kept], weight[kept]
            self._adam = adam_epoch(
                self._adam,
                X,
                codes,
                weight,
                self._loss(),
                self._penalty(),
                fit_intercept=bool(self.fit_intercept),
                eps=self.eps,
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                total=before + float(weight.sum()),
                rng=check_random_state(self.random_state),
            )
        self._weight_seen = before + float(weight.sum())
        W, b = self._split(self._adam.theta)
        self._set_linear(W.T, b)
        self.objective_ = np.nan  # of a stream: not known
        self.dual_gap_ = None
        self.n_iter_ = self._adam.n_steps
        return self

    def _loss(self) -> SmoothLoss:
        return LogLoss() if self.loss == "log_loss" else SmoothedSumHinge(self.delta)

    def _penalty(self) -> SmoothPenalty:
        p = float(self.p)
        if self.penalty == "log_sum_exp":
            if np.isinf(p):
                raise ValueError("penalty='log_sum_exp' needs a finite p; its limit p = 0 is penalty='power', p=inf.")
            return PairwiseMaximum(self.alpha, p)
        if p < 1:
            raise ValueError(f"penalty='power' needs p of at least 1, got p={self.p!r}.")
        return PairwiseMaximum(self.alpha) if np.isinf(p) else PairwisePower(self.alpha, p)

    @available_if(_has_log_loss)
    def predict_proba(self, X: RowsLike) -> np.ndarray:
        """Probabilities of the classes (``loss="log_loss"`` only).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self.decision_function(X)
        return softmax(scores, axis=1) if scores.ndim == 2 else np.column_stack([expit(-scores), expit(scores)])

    @available_if(_has_log_loss)
    def predict_log_proba(self, X: RowsLike) -> np.ndarray:
        """Logarithms of the probabilities of the classes (``loss="log_loss"`` only), also of those that round to zero.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self.decision_function(X)
        return log_softmax(scores, axis=1) if scores.ndim == 2 else log_expit(np.column_stack([-scores, scores]))
