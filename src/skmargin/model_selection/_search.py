"""`MarginSearchCV`: the grid search of scikit-learn, with the work that candidates have in common done once."""

from __future__ import annotations

import logging
import time
import warnings
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs, parallel_config
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import _insert_error_scores, _warn_or_raise_about_fit_failures
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _check_method_params

from .._runtime.progress import print_line
from .._runtime.tasks import run
from .._types import Estimator, LabelsLike, RowsLike
from ..estimators._base import MarginClassifier, check_compressed
from ..estimators._dual import DualMachine
from ..estimators._links import Linked
from ..rows.arrays import suitable_storage
from ..rows.collections import Collections, is_collection
from ..rows.files import OpenRows
from ._chains import Chain, chains, prefix_of
from ._evaluation import Evaluation, sees_predictions_only
from ._folds import Fold, MadeOnce, Windows, is_float, positions, windows
from ._grids import default_grid
from ._path import is_known
from ._racing import rejected
from ._rows import check as check_rows_search
from ._rows import check_scorers
from ._rows import evaluate as evaluate_rows

log = logging.getLogger("skmargin.search")


class MarginSearchCV(Linked, BaseSearchCV):
    """Choose parameters by cross-validation, with the work that candidates have in common done once.

    The interface and the results of `sklearn.model_selection.GridSearchCV`.  Candidates that differ only in ``C``,
    ``alpha``, ``p``, ``theta``, ``mu`` or ``gamma`` start from each other's solution; least-squares machines give all
    strengths from one factorisation; kernel matrices and the first steps of a pipeline are made once a fold; folds and
    chains of candidates run on threads, which share the data.

    Parameters
    ----------
    estimator : estimator
        A classifier, or a `Pipeline` that ends in one.  Classifiers of other packages work, without a warm start.
    param_grid : dict or list of dicts, default=None
        Names of parameters and the values to try, as for `GridSearchCV`.  None takes `default_grid`.
    cv : int, splitter or iterable, default=5
        How to split the data.
    scoring : str, callable, list, tuple or dict, default=None
        How to judge predictions.  A function of your own gets the whole fitted estimator, which costs some sharing.
    n_jobs : int, default=None
        Number of threads, each with one BLAS thread; -1 for all processors.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate on all data; with several metrics, the name of the one that decides.
    racing : bool, default=False
        Whether to give up candidates that are worse than the best on the folds seen so far (paired t-test at 0.05, from
        the third fold on).  Their scores on the other folds, and their mean, are nan.
    error_score : "raise" or number, default=nan
        Score of a fit that fails.
    return_train_score : bool, default=False
        Whether to score the training rows too.
    verbose : int, default=0
        Whether to print a line for each chain of candidates that is done.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As for `GridSearchCV`.  After Ctrl-C it holds what was finished (nan elsewhere).
    best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_, multimetric_
        As for `GridSearchCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skmargin import CrammerSingerSVC
    >>> from skmargin.model_selection import MarginSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = MarginSearchCV(CrammerSingerSVC(), {"C": [0.01, 1, 100]}).fit(X, y)
    >>> search.best_params_
    {'C': 1}
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in BaseSearchCV._parameter_constraints.items() if name != "pre_dispatch"},
        "param_grid": [dict, list, None],
        "racing": ["boolean"],
    }

    def __init__(
        self,
        estimator: Estimator,
        param_grid: Any = None,
        *,
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        racing: bool = False,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.racing = racing
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: RowsLike, y: LabelsLike = None, **params: Any) -> MarginSearchCV:
        """Try all candidates, and fit the best one on all data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or rows in blocks
            Training rows (for a precomputed kernel the square kernel matrix); those of `skmargin.datasets.open_rows`
            come with their labels.  On them, and on Dask collections, all candidates and folds share the passes.
        y : array-like of shape (n_samples,)
            Labels.
        **params : dict
            ``sample_weight``, ``groups`` and other arguments for the estimator, the scorer and the splitter, as for
            `GridSearchCV`.

        Returns
        -------
        self : MarginSearchCV
        """
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)  # an interrupted search does not mix with the one before
        if isinstance(X, OpenRows) or is_collection(X):
            return self._fit_rows(X, y, params)
        scorers, refit_metric = self._get_scorers()
        if y is None and is_classifier(self.estimator):
            raise ValueError(f"{type(self).__name__} requires y: {type(self.estimator).__name__} learns from labels.")
        check_compressed(X)  # before the rows are divided
        X, y = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        weight = params.get("sample_weight")
        about = {"estimator": self, "X": X, "y": y, "metadata": None if weight is None else {"sample_weight": weight}}
        root = self._begin(about)

        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        parts = cv.split(X, y, **routed.splitter.split)
        splits = [(positions(train, X), positions(test, X)) for train, test in parts]
        self.n_splits_ = len(splits)
        candidates = list(ParameterGrid(self._grid(X)))
        if not splits or not candidates:
            raise ValueError("There is nothing to fit: the grid or the list of splits is empty.")
        folds = self._folds(X, y, splits, self._shared_rows(X, splits, candidates, scorers), routed)
        evaluation = Evaluation(self, candidates, folds, scorers, self._contexts(root, len(candidates)))
        if self.verbose:
            print_line(f"{type(self).__name__}: {len(folds)} folds for each of {len(candidates)} candidates")
        log.info("%s: %d folds for each of %d candidates", type(self).__name__, len(folds), len(candidates))
        try:
            self._run(evaluation, refit_metric)
        except KeyboardInterrupt:
            self.cv_results_ = self._results(evaluation, interrupted=True)
            raise
        self._publish(evaluation, refit_metric)
        if self.refit:
            self._refit(X, y, routed.estimator.fit, root, about)
        self.scorer_ = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        if root is not None:
            root.call_on_fit_task_end(**about)
        return self

    def _fit_rows(self, X: RowsLike, y: LabelsLike, params: dict[str, Any]) -> MarginSearchCV:
        """The search on rows in blocks or on Dask collections."""
        in_blocks = isinstance(X, OpenRows)
        kind = "rows in blocks (open_rows)" if in_blocks else "Dask collections"
        if in_blocks and (y is not None or params):
            raise ValueError(f"{type(self).__name__}.fit(rows) takes labels and weights from the rows.")
        if set(params) - {"sample_weight"}:
            raise ValueError(f"{type(self).__name__} on {kind} takes sample_weight only, got {sorted(params)}.")
        candidates = list(ParameterGrid(self._grid(None)))
        check_rows_search(self, kind, candidates)
        scorers, refit_metric = self._get_scorers()
        check_scorers(scorers, kind)
        rows = X if in_blocks else Collections(X, y, params.get("sample_weight"))
        self.n_splits_, self.multimetric_ = self.cv, isinstance(scorers, _MultimetricScorer)
        results = self._format_results(candidates, self.cv, evaluate_rows(self, rows, candidates, scorers))
        self._choose(results, refit_metric)
        if self.refit:
            begin = time.perf_counter()
            best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
            self.best_estimator_ = best.fit(X) if in_blocks else best.fit(X, y, **params)
            self.refit_time_ = time.perf_counter() - begin
        self.scorer_ = scorers._scorers if self.multimetric_ else scorers
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scorer_")

    def _run_search(self, evaluate_candidates: Any) -> None:
        raise NotImplementedError("MarginSearchCV evaluates its candidates in fit.")

    # -- the search ---------------------------------------------------------------------------------------------------

    def _folds(self, X: RowsLike, y: LabelsLike, splits: list[Any], shared: Windows | None, routed: Any) -> list[Fold]:
        """The data of all folds; windows of one array where the rows are shared."""
        arguments = routed.estimator.fit, routed.scorer.score, MadeOnce()
        if shared is None:
            return [Fold(self.estimator, X, y, split, *arguments) for split in splits]
        return [
            Fold(self.estimator, X, y, split, *arguments, part, shared.shared)
            for split, part in zip(shared.splits, shared.parts, strict=True)
        ]

    def _publish(self, evaluation: Evaluation, refit_metric: Any) -> None:
        """Set what the search has found."""
        results = self._results(evaluation, interrupted=False)
        self.multimetric_ = isinstance(evaluation.example(), dict)
        self._choose(results, self._judge(evaluation, refit_metric))

    def _choose(self, results: dict[str, Any], refit_metric: Any) -> None:
        """Set the results, and the best candidate by one metric."""
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, refit_metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
            log.info("%s: chose %s", type(self).__name__, self.best_params_)
        self.cv_results_ = results  # before the last fit: Ctrl-C there loses nothing

    def _grid(self, X: RowsLike) -> Any:
        return default_grid(self.estimator, X) if self.param_grid is None else self.param_grid

    def _shared_rows(
        self, X: RowsLike, splits: list[Any], candidates: list[dict[str, Any]], scorers: Any
    ) -> Windows | None:
        """The rows of all folds as views of one array, where their order is free: threads then add no rows."""
        estimator = self.estimator
        named = {name for candidate in candidates for name in candidate}
        if not isinstance(estimator, MarginClassifier):
            return None
        nonlinear = "kernel" in named or getattr(estimator, "kernel", "linear") != "linear"
        draws = getattr(estimator, "basis", "all") != "all" and nonlinear  # some of the rows
        folds = getattr(estimator, "cv", None) is not None  # of its own, from the rows as they stand
        if get_tags(estimator).input_tags.pairwise or draws or folds or not estimator._is_exact():
            return None
        if named & {"solver", "basis", "cv"}:
            return None
        linear = isinstance(estimator, DualMachine) and estimator._is_linear() and "kernel" not in named
        ours = is_known(estimator) and sees_predictions_only(scorers)  # code of the user's sees its own kind of rows
        if linear and ours and is_float(X):
            X = suitable_storage(X, estimator._tuning)
        return windows(X, splits)

    def _run(self, evaluation: Evaluation, refit_metric: Any) -> None:
        candidates, folds = evaluation.candidates, evaluation.folds
        plan = chains(candidates, prefix_of(self.estimator))
        n_threads = effective_n_jobs(self.n_jobs)
        if not self.racing:
            self._run_folds(evaluation, plan, range(len(folds)), n_threads)
            return
        _check_one_metric(None if callable(self.refit) else refit_metric)
        train, test = folds[0].indices
        for number in range(len(folds)):
            self._run_folds(evaluation, plan, [number], n_threads)
            metric = self._judge(evaluation, refit_metric)
            _check_one_metric(metric)
            out = rejected(evaluation.score_table(metric)[:, : number + 1], len(test) / len(train))
            left = [[c for c in chain.candidates if not out[c]] for chain in plan]
            plan = [chain._replace(candidates=some) for chain, some in zip(plan, left, strict=True) if some]

    def _judge(self, evaluation: Evaluation, refit_metric: Any) -> Any:
        """The metric that chooses; whether a function of the user's has several its first scores tell."""
        example = evaluation.example()
        if not (callable(self.scoring) and isinstance(example, dict)):
            return refit_metric
        self._check_refit_for_multimetric(example)
        return self.refit

    def _run_folds(self, evaluation: Evaluation, plan: list[Chain], numbers: Any, n_threads: int) -> None:
        for number in numbers:
            evaluation.folds[number].n_tasks = len(plan)
        run([partial(evaluation.run, chain, number) for number in numbers for chain in plan], n_threads)

    def _results(self, evaluation: Evaluation, interrupted: bool) -> dict[str, Any]:
        out = evaluation.complete()
        if not interrupted:
            _warn_or_raise_about_fit_failures(out, self.error_score)
        unfinished = interrupted or self.racing  # scores are missing because there was no fit
        with warnings.catch_warnings() if unfinished else nullcontext():
            if unfinished:
                warnings.filterwarnings("ignore", "One or more of the (test|train) scores are non-finite")
            if callable(self.scoring):
                _insert_error_scores(out, self.error_score)
            return self._format_results(evaluation.candidates, len(evaluation.folds), out)

    def _refit(self, X: RowsLike, y: LabelsLike, fit_params: dict[str, Any], root: Any, about: dict[str, Any]) -> None:
        best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        context = None if root is None else root.subcontext(task_name="refit-with-best-params")
        with nullcontext() if context is None else context.propagate_callback_context(best):
            if context is not None:
                context.call_on_fit_task_begin(**about)
            start = time.perf_counter()
            with parallel_config("threading", n_jobs=effective_n_jobs(self.n_jobs)):  # for what the estimator can share
                best.fit(X, y, **fit_params)
            self.refit_time_ = time.perf_counter() - start
        self.best_estimator_ = best
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_
        if context is not None:
            context.call_on_fit_task_end(**about)

    # -- progress (scikit-learn 1.9 and later) ------------------------------------------------------------------------

    def _begin(self, about: dict[str, Any]) -> Any:
        if not hasattr(self, "_init_callback_context"):
            return None
        return self._init_callback_context(max_subtasks=1 + (self.refit is not False)).call_on_fit_task_begin(**about)

    def _contexts(self, root: Any, n_candidates: int) -> list[Any] | None:
        if root is None:
            return None
        n = n_candidates * self.n_splits_
        search = root.subcontext(task_name="search", max_subtasks=n, sequential_subtasks=False)
        search.call_on_fit_task_begin(estimator=self)
        return [search.subcontext(task_name="candidate-split-evaluation", task_id=t) for t in range(n)]


def _check_one_metric(metric: Any) -> None:
    if not isinstance(metric, str):
        raise ValueError("racing=True needs one metric to judge by: with several, set refit to its name.")
