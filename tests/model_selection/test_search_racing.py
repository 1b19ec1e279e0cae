"""Racing drops the hopeless candidates; the grids that are taken where none is given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from searches import X, Y
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import FitFailedWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    ULDMClassifier,
)
from skmargin.model_selection import MarginSearchCV, default_grid
from skmargin.model_selection._racing import rejected

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals


def test_racing_keeps_the_winner_and_drops_the_hopeless():
    digits, labels = load_digits(return_X_y=True)
    digits, labels = digits[:600] / 16, labels[:600]
    grid = {"alpha": [1e-6, 1e-2, 1e6], "gamma": [0.05, 100.0]}
    full = MarginSearchCV(ULDMClassifier(), grid).fit(digits, labels)
    raced = MarginSearchCV(ULDMClassifier(), grid, racing=True).fit(digits, labels)
    assert raced.best_params_ == full.best_params_ and raced.best_score_ == full.best_score_
    dropped = np.isnan(raced.cv_results_["mean_test_score"])
    assert dropped.any() and np.isnan(raced.cv_results_["split4_test_score"][dropped]).all()
    assert np.isfinite(raced.cv_results_["split2_test_score"]).all()
    with pytest.warns(FitFailedWarning, match="5 fits failed"):
        MarginSearchCV(LSSVC(), {"C": [-1.0, 1.0]}, racing=True).fit(X, Y)
    with pytest.raises(ValueError, match="All the 10 fits failed"):
        MarginSearchCV(LSSVC(), {"C": [-1.0, -2.0]}, racing=True).fit(X, Y)
    with pytest.raises(ValueError, match="racing=True needs one metric"):
        MarginSearchCV(LSSVC(), {"C": [1.0]}, racing=True, refit=lambda results: 0).fit(X, Y)


def test_racing_drops_whom_the_test_rejects():
    """Test folds are a quarter of the training rows of five folds."""
    noisy = np.where(np.random.default_rng(0).random(len(Y)) < 0.3, Y[::-1], Y)
    grid = {"C": 10.0 ** np.arange(-5, 4, 0.25)}
    full, raced = (MarginSearchCV(LSSVC(), grid, racing=racing).fit(X, noisy).cv_results_ for racing in (False, True))
    table = np.stack([full[f"split{i}_test_score"] for i in range(5)], axis=1)
    for seen in (3, 4):
        table[rejected(table[:, :seen], 0.25), seen:] = np.nan
    found = np.stack([raced[f"split{i}_test_score"] for i in range(5)], axis=1)
    assert_array_equal(found, table)
    assert 0 < np.isnan(found[:, 3]).sum() < np.isnan(found[:, 4]).sum() < len(found)


def test_racing_by_one_of_the_scores_of_a_function():
    def several(model, rows, labels):
        return {"right": model.score(rows, labels), "wrong": 1 - model.score(rows, labels)}

    grid = {"gamma": [1.0, 1e5]}
    by_name = MarginSearchCV(LSSVC(), grid, racing=True).fit(X, Y)
    search = MarginSearchCV(LSSVC(), grid, racing=True, scoring=several, refit="right").fit(X, Y)
    assert_array_equal(search.cv_results_["mean_test_right"], by_name.cv_results_["mean_test_score"])
    assert np.isnan(search.cv_results_["mean_test_wrong"]).any() and search.best_params_ == by_name.best_params_
    with pytest.raises(ValueError, match="racing=True needs one metric"):
        clone(search).set_params(refit=False).fit(X, Y)
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        clone(search).set_params(refit="neither").fit(X, Y)


def test_default_grids():
    grid = default_grid(ULDMClassifier(), X)
    assert set(grid) == {"alpha", "gamma"} and min(grid["gamma"]) > 0
    for container in (sparse.csc_array, sparse.coo_array, sparse.lil_matrix, np.ndarray.tolist):
        assert_allclose(default_grid(ULDMClassifier(), container(X))["gamma"], grid["gamma"])
    assert set(default_grid(make_pipeline(StandardScaler(), CrammerSingerSVC()))) == {"crammersingersvc__C"}
    assert MarginSearchCV(LSSVC(kernel="linear"), cv=3).fit(X, Y).best_score_ > 0.7
    with pytest.raises(ValueError, match="give a grid"):
        default_grid(StandardScaler())


def test_values_of_default_grids():
    widths = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
    for kernel in ("rbf", "laplacian"):
        machine = CrammerSingerSVC(kernel=kernel)
        assert_allclose(default_grid(machine, 2 * X)["gamma"], widths / (4 * (2 * X).var()))  # multiples of "scale"
        assert_allclose(default_grid(make_pipeline(machine), 2 * X)["crammersingersvc__gamma"], widths)
        assert_allclose(default_grid(machine)["gamma"], widths)
    assert default_grid(CrammerSingerSVC()) == {"C": [4.0**e for e in range(-3, 7)]}
    assert_allclose(default_grid(ULDMClassifier())["alpha"], np.logspace(-12, -1, 12))
    assert_allclose(default_grid(M3SVC())["alpha"], np.logspace(-5, 1, 7))
    assert default_grid(M3SVC())["p"] == [2, 4]
