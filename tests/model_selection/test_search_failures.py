"""Fits and scores that fail, rows without labels, Ctrl-C."""

import _thread
import threading
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from searches import X, Y, assert_same, both
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmargin import (
    LSSVC,
    CrammerSingerSVC,
    ULDMClassifier,
)
from skmargin.model_selection import MarginSearchCV

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals


def test_fits_that_fail():
    estimator, grid = ULDMClassifier(), {"alpha": [-1.0, 1e-4], "kernel": ["rbf", "linear"]}
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        ours, theirs = both(estimator, grid)
    assert_same(ours, theirs)
    with pytest.warns(FitFailedWarning):
        ours, theirs = both(CrammerSingerSVC(tol=1e-6), {"C": [-1.0, 1.0]}, error_score=0.0)
    assert_same(ours, theirs)
    several = {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro", "return_train_score": True}
    with pytest.warns(FitFailedWarning):
        ours, theirs = both(CrammerSingerSVC(tol=1e-6), {"C": [-1.0, 1.0]}, error_score=0.0, **several)
    assert_same(ours, theirs)
    with pytest.raises(ValueError, match="'C' parameter"):
        MarginSearchCV(CrammerSingerSVC(), {"C": [-1.0, 1.0]}, error_score="raise", n_jobs=2).fit(X, Y)
    with pytest.raises(ValueError, match="nothing to fit"):
        MarginSearchCV(CrammerSingerSVC(), []).fit(X, Y)
    with pytest.raises(ValueError, match="nothing to fit"):
        MarginSearchCV(CrammerSingerSVC(), {"C": [1.0]}, cv=[]).fit(X, Y)


def test_scores_that_fail():
    """The fit on the fold whose test rows hold what is not a number succeeds, all others do not."""
    rows = X.copy()
    rows[0, 0] = np.nan
    with pytest.warns(FitFailedWarning, match="8 fits failed"), pytest.warns(UserWarning, match="Scoring failed"):
        ours, theirs = both(CrammerSingerSVC(tol=1e-6), {"C": [0.1, 1.0]}, rows, error_score=0.5, refit=False)
    assert_same(ours, theirs)


@pytest.mark.parametrize("refit", ["accuracy", False])
def test_names_of_a_functions_scores_are_known_though_the_first_fit_failed(refit):
    def scoring(model, rows, labels):
        right = model.predict(rows) == labels
        return {"accuracy": right.mean(), "mistakes": -right.size * (1 - right.mean())}

    grid = {"C": [-1.0, 1.0, 10.0]}
    found = []
    for kind in (GridSearchCV, MarginSearchCV):
        with pytest.warns(FitFailedWarning), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="One or more of the test scores")
            found.append(kind(CrammerSingerSVC(), grid, scoring=scoring, refit=refit, cv=3).fit(X, Y))
    theirs, ours = found
    assert ours.multimetric_
    assert hasattr(ours, "best_score_") == hasattr(theirs, "best_score_") == bool(refit)
    for name in ("mean_test_accuracy", "mean_test_mistakes", "rank_test_accuracy"):
        assert_allclose(ours.cv_results_[name], theirs.cv_results_[name])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_keeps_what_was_finished(n_jobs):
    rows, labels = make_classification(3000, 200, n_informative=100, n_classes=8, flip_y=0.5, random_state=0)
    scored = threading.Semaphore(0)

    def score(fitted, rows, labels):
        scored.release()
        return accuracy_score(labels, fitted.predict(rows))

    search = MarginSearchCV(
        CrammerSingerSVC(C=1e3, tol=1e-13), {"max_iter": [1, 10**9]}, n_jobs=n_jobs, scoring=score, cv=3
    )

    def interrupt():
        for _ in range(n_jobs):
            scored.acquire()
        time.sleep(1.0)  # the scores are noted, the endless fits begun
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        search.fit(rows, labels)
    thread.join()
    assert np.isfinite(search.cv_results_["split0_test_score"][0])
    assert np.isnan(search.cv_results_["split0_test_score"][1])
    with pytest.raises(NotFittedError):
        search.predict(rows)


@pytest.mark.parametrize("estimator", [CrammerSingerSVC(), LSSVC(), make_pipeline(StandardScaler(), LSSVC())], ids=str)
def test_labels_are_asked_for(estimator):
    with pytest.raises(ValueError, match=r"MarginSearchCV requires y: (CrammerSingerSVC|LSSVC|Pipeline) learns from"):
        MarginSearchCV(estimator).fit(X)
