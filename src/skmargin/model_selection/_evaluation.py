"""Fits and scores of a search: one task is one chain of candidates on one fold."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from traceback import format_exc
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer
from sklearn.model_selection._validation import _score
from sklearn.utils.validation import _num_samples

from .._runtime.progress import print_line
from .._runtime.shared_rows import sharing_rows
from .._types import Estimator, LabelsLike, RowsLike
from ..estimators._base import MarginClassifier
from ._chains import Chain, key_of, prefix_of
from ._folds import Fold, FoldRows, checked, shares_gram
from ._path import WarmPath, fit_task, is_known
from ._pipelines import is_split, last_score_params


def sees_predictions_only(scorer: Any) -> bool:
    """Whether these are scorers of scikit-learn; a function of the user's may look at its estimator and its rows."""
    parts = list(scorer._scorers.values()) if isinstance(scorer, _MultimetricScorer) else [scorer]
    return all(isinstance(part, (_BaseScorer, _PassthroughScorer)) for part in parts)


class Evaluation:
    """Candidates, folds and how to score them; ``results[candidate][fold]`` is filled as the fits finish."""

    def __init__(
        self,
        search: Any,
        candidates: Sequence[dict[str, Any]],
        folds: Sequence[Fold],
        scorer: Any,
        contexts: Sequence[Any] | None,
    ) -> None:
        self.search, self.candidates, self.folds, self.scorer, self.contexts = (
            search,
            candidates,
            folds,
            scorer,
            contexts,
        )
        self.results: list[list[dict[str, Any] | None]] = [[None] * len(folds) for _ in candidates]
        self.error_score = search.error_score
        self.is_accuracy = isinstance(scorer, _PassthroughScorer)
        self.shares = sees_predictions_only(scorer)

    # -- one task -----------------------------------------------------------------------------------------------------

    def run(self, chain: Chain, fold_number: int) -> None:
        """Fit and score the candidates of a chain on one fold."""
        fold = self.folds[fold_number]
        try:
            fold.enter()
            template = clone(self.search.estimator).set_params(
                **clone(self.candidates[chain.candidates[0]], safe=False)
            )
            apart = self.shares and is_split(template)
            front = self._front_key(template, chain) if apart else None
            classifier = template.steps[-1][1] if apart else template
            parameter = chain.parameter
            if parameter is not None and apart:
                parameter = parameter[len(prefix_of(template)) :]
            values = [self.candidates[c][chain.parameter] if chain.parameter else None for c in chain.candidates]
            path = WarmPath(classifier, parameter, values)
            made: dict[str, Any] = {}
            with sharing_rows(fold.shared):
                for candidate, value in zip(chain.candidates, values, strict=True):
                    result = self._fit_and_score(
                        template, front, path, value, fold, made, self._context(candidate, fold_number)
                    )
                    self.results[candidate][fold_number] = result
        finally:
            fold.leave()
        if self.search.verbose:
            self._print_line(chain, fold_number)

    def _fit_and_score(
        self, template: Any, front: Any, path: WarmPath, value: Any, fold: Fold, made: dict[str, Any], context: Any
    ) -> dict[str, Any]:
        result: dict[str, Any] = {"fit_error": None}
        start = time.perf_counter()
        with fit_task(context, path, self._about(fold)):
            try:
                rows = fold.rows() if front is None else fold.rows_behind(template, front)
                model, rows = self._fit(path, value, rows, fold, made)
            except Exception:
                if self.error_score == "raise":
                    raise
                result["fit_error"] = format_exc()
                result["fit_time"], result["score_time"] = time.perf_counter() - start, 0.0
                result["test_scores"] = result["train_scores"] = self._failed()
                return result
            result["fit_time"] = time.perf_counter() - start
            start = time.perf_counter()
            of_test, of_train = fold.score_params_test, fold.score_params_train
            if front is not None and self.is_accuracy:  # they are named for the whole pipeline
                of_test, of_train = last_score_params(template, of_test), last_score_params(template, of_train)
            result["test_scores"] = self._score(model, rows.test, fold.y_test, of_test)
            result["score_time"] = time.perf_counter() - start
            if self.search.return_train_score:
                result["train_scores"] = self._score(model, rows.train, fold.y_train, of_train)
        return result

    def _fit(
        self, path: WarmPath, value: Any, rows: FoldRows, fold: Fold, made: dict[str, Any]
    ) -> tuple[Any, FoldRows]:
        """Fit for one value, and the rows as the fitted model takes them; ``made`` is what the chain has in common."""
        if "shares" not in made:
            n_rows = _num_samples(rows.train) + _num_samples(rows.test)
            shares = self.shares and len(self.candidates) > 1 and is_known(path.classifier)
            made["shares"] = shares and shares_gram(path.classifier, n_rows)
        if path.closed_form and self.shares:
            return self._fit_closed_form(path, value, rows, fold, made)
        if not made["shares"]:
            return path.fit(value, rows.train, fold.y_train, rows.fit_params), rows
        if path.parameter == "gamma":
            path.classifier.set_params(gamma=value, kernel=made.setdefault("kernel", path.classifier.kernel))
            made.pop("gram", None)
        if "gram" not in made:
            train, test = fold.gram(path.classifier, rows)
            made["gram"] = rows._replace(train=train, test=test)
            path.classifier.set_params(kernel="precomputed")
        return path.fit(value, made["gram"].train, fold.y_train, rows.fit_params), made["gram"]

    def _fit_closed_form(
        self, path: WarmPath, value: Any, rows: FoldRows, fold: Fold, made: dict[str, Any]
    ) -> tuple[Any, FoldRows]:
        """The machines of least squares: all strengths are solved, and score the rows, at once.

        Their kernel blocks are taken from the matrix that all widths share.
        """
        base = fold.base(path.classifier, rows) if made["shares"] else None
        solved = path.solve(
            rows.train, fold.y_train, rows.fit_params, None if base is None else partial(base.square, path.classifier)
        )
        if not solved.can_score(value) or (base is None and solved.support is not None):
            return solved.model(value), rows
        if "scores" not in made:
            parts = [rows.train, rows.test] if self.search.return_train_score else [rows.test]
            if base is not None:
                gamma, places = solved.gamma, [base.train, base.test][-len(parts) :]
                parts = [base.kernel(path.classifier, gamma, place, solved.support) for place in places]
            made["scores"] = [solved.scores(part if base is not None else checked(part)) for part in parts]
        scores = made["scores"]
        return solved.scored(), rows._replace(train=scores[0][value], test=scores[-1][value])

    def _front_key(self, template: Any, chain: Chain) -> Any:
        prefix = prefix_of(template)
        params = self.candidates[chain.candidates[0]]
        return key_of({name: v for name, v in params.items() if not name.startswith(prefix) and name != prefix[:-2]})

    def _score(self, model: Estimator, X: RowsLike, y: LabelsLike, params: dict[str, Any]) -> Any:
        if self.is_accuracy and isinstance(model, MarginClassifier) and is_known(model):
            # What `score` does, without its checks of y.
            with suppress(Exception):  # `error_score` says what to do
                return float(np.average(model.predict(X) == np.ravel(y), weights=params.get("sample_weight")))
        return _score(model, X, y, self.scorer, params, self.error_score)

    def _failed(self) -> Any:
        if isinstance(self.scorer, _MultimetricScorer):
            return dict.fromkeys(self.scorer._scorers, self.error_score)
        return self.error_score

    # -- progress -----------------------------------------------------------------------------------------------------

    def _context(self, candidate: int, fold_number: int) -> Any:
        return None if self.contexts is None else self.contexts[candidate * len(self.folds) + fold_number]

    def _about(self, fold: Fold) -> dict[str, Any]:
        """What the callbacks are given of one fit."""
        weight = fold.fit_params.get("sample_weight")
        metadata = None if weight is None else {"sample_weight": weight}
        return {"estimator": self.search, "X": fold.X_train, "y": fold.y_train, "metadata": metadata}

    def _print_line(self, chain: Chain, fold_number: int) -> None:
        done = sum(result is not None for of_candidate in self.results for result in of_candidate)
        total = len(self.candidates) * len(self.folds)
        print_line(
            f"{type(self.search).__name__}: {done} of {total} fits, fold {fold_number + 1} of {len(self.folds)}, "
            f"{len(chain.candidates)} candidates along {chain.parameter}"
        )

    # -- what came out ------------------------------------------------------------------------------------------------

    def example(self) -> Any:
        """The test scores of a fit that did not fail: of one that did the names of several need not be known."""
        done = (r for of_candidate in self.results for r in of_candidate if r is not None and r["fit_error"] is None)
        return next((r["test_scores"] for r in done), self._failed())

    def complete(self) -> list[dict[str, Any]]:
        """All results, candidate by candidate; nan where a fit was not done."""
        scores = self.example()
        nothing = dict.fromkeys(scores, np.nan) if isinstance(scores, dict) else np.nan
        empty = {
            "fit_error": None,
            "fit_time": np.nan,
            "score_time": np.nan,
            "test_scores": nothing,
            "train_scores": nothing,
        }
        if not self.search.return_train_score:
            del empty["train_scores"]
        out = [
            empty if r is None else {key: r[key] for key in empty}
            for of_candidate in self.results
            for r in of_candidate
        ]
        return out

    def score_table(self, metric: str) -> np.ndarray:
        """Scores ``(candidates, folds)`` of one metric, nan where a fit was not done."""
        table = np.full((len(self.candidates), len(self.folds)), np.nan)
        for c, of_candidate in enumerate(self.results):
            for f, result in enumerate(of_candidate):
                if result is not None:
                    scores = result["test_scores"]
                    table[c, f] = scores[metric] if isinstance(scores, dict) else scores
        return table
