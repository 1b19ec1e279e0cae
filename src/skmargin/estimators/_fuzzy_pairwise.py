"""Fuzzy pairwise classification around any two-class classifier, Abe (2003, 2017)."""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.utils import Bunch, Tags, get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_method_params,
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    validate_data,
)

from .._types import Estimator, LabelsLike, Rows, RowsLike, WeightsLike
from ..solvers.two_class.pairwise import memberships, over_threads
from ._base import JOBS, check_compressed, encode_labels
from ._links import LinkedMachine


class FuzzyPairwiseClassifier(LinkedMachine, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """One two-class classifier for each pair of classes; the class whose worst pair is best wins.

    With the score ``f_ij(x)`` of the pair of classes i and j, positive for i, the membership of class i is
    ``m_i(x) = min over j of min(1, f_ij(x))``, and the class with the largest membership is predicted.  Where one class
    wins all its pairs that is the class voted for; where no class does, voting has ties and the memberships decide.

    Parameters
    ----------
    estimator : classifier with ``decision_function``
        The two-class classifier, cloned for each pair.
    n_jobs : int or None, default=None
        Number of pairs fitted at the same time, on threads.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    estimators_ : list of n_classes (n_classes - 1) / 2 classifiers
        Pairs in the order (0, 1), (0, 2), ..., (1, 2), ...; positive scores mean the second class.
    pairs_ : list of tuples
        The pairs of class indices.
    pair_rows_ : list of ndarrays or None
        Training rows of each pair, where the estimator takes a precomputed kernel.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has string column names.

    References
    ----------
    S. Abe, "Support Vector Machines for Pattern Classification", Springer, second edition, 2010, Section 3.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from skmargin import FuzzyPairwiseClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FuzzyPairwiseClassifier(LinearSVC(random_state=0)).fit(X, y)
    >>> model.memberships(X[:2]).shape
    (2, 3)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "decision_function"])],
        "n_jobs": JOBS,
    }

    __metadata_request__fit: ClassVar[dict[str, str]] = {"sample_weight": UNUSED}  # the estimator's; ours is of score

    def __init__(self, estimator: Estimator, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)  # the estimator checks itself
    def fit(
        self, X: RowsLike, y: LabelsLike, sample_weight: WeightsLike = None, **fit_params: Any
    ) -> FuzzyPairwiseClassifier:
        """Fit one classifier for each pair of classes on the rows of these two.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows (a square matrix where the estimator takes a precomputed kernel).
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Given to ``estimator.fit`` where it is not None.
        **fit_params : dict
            Further arguments of ``estimator.fit``, routed where metadata routing is enabled.

        Returns
        -------
        self : FuzzyPairwiseClassifier
        """
        if sample_weight is not None:
            fit_params["sample_weight"] = sample_weight
        if _routing_enabled():
            params = process_routing(self, "fit", **fit_params).estimator.fit
        else:
            params = Bunch(**{name: value for name, value in fit_params.items() if name == "sample_weight"})
            _raise_for_params({k: v for k, v in fit_params.items() if k != "sample_weight"}, self, "fit")
        for name in ("estimators_", "classes_", "pairs_", "pair_rows_"):  # a fit that does not end leaves it unfitted
            self.__dict__.pop(name, None)
        check_compressed(X)
        X, y = validate_data(self, X, y, accept_sparse=["csr", "csc"], ensure_all_finite=False)
        check_classification_targets(y)
        weight = _check_sample_weight(params.get("sample_weight"), X, ensure_non_negative=True)
        classes, counted, _, kept = encode_labels(y, weight, None)
        codes = np.full(len(y), -1)  # a row of weight 0 belongs to no pair
        codes[kept] = counted
        if len(classes) < 2:
            raise ValueError(
                "FuzzyPairwiseClassifier needs at least two classes in y (rows of weight 0 do not count), "
                f"got one class: {classes.tolist()[0]!r}."
            )
        pairs = list(combinations(range(len(classes)), 2))

        def fit_pair(pair: tuple[int, int]) -> tuple[Any, np.ndarray]:
            return _fit_pair(self.estimator, X, codes, *pair, params)

        fitted = over_threads(fit_pair, pairs, self.n_jobs, len(y))
        pairwise = get_tags(self.estimator).input_tags.pairwise
        self.pair_rows_ = [rows for _, rows in fitted] if pairwise else None
        self.classes_, self.pairs_ = classes, pairs
        self.estimators_ = [estimator for estimator, _ in fitted]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "estimators_" in self.__dict__  # what a fit writes last

    def _pair_scores(self, X: Rows) -> np.ndarray:
        check_is_fitted(self)
        check_compressed(X)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], ensure_all_finite=False, reset=False)
        columns = [X] * len(self.pairs_) if self.pair_rows_ is None else [X[:, rows] for rows in self.pair_rows_]
        return np.column_stack(
            [np.ravel(e.decision_function(part)) for e, part in zip(self.estimators_, columns, strict=True)]
        )

    def memberships(self, X: Rows) -> np.ndarray:
        """Memberships of the classes, at most 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        m : ndarray of shape (n_samples, n_classes)
            One column a class, in the order of ``classes_``.
        """
        return memberships(self._pair_scores(X), len(self.classes_))

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Memberships of the classes; for two classes the score of their pair.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
        """
        F = self._pair_scores(X)
        return F.ravel() if len(self.classes_) == 2 else memberships(F, len(self.classes_))

    def predict(self, X: RowsLike) -> np.ndarray:
        """Class with the largest membership.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        winner = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[winner]

    def get_metadata_routing(self) -> MetadataRouter:
        """Where the arguments of ``fit`` and ``score`` go.

        Returns
        -------
        routing : MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags


def _fit_pair(estimator: Estimator, X: Rows, codes: np.ndarray, i: int, j: int, params: Any) -> tuple[Any, np.ndarray]:
    rows = np.flatnonzero((codes == i) | (codes == j))
    own = clone(estimator)
    part, _ = _safe_split(own, X, None, indices=rows)
    own_params = _check_method_params(X, params, indices=rows) if _num_samples(X) else params
    return own.fit(part, (codes[rows] == j).astype(np.intp), **own_params), rows
