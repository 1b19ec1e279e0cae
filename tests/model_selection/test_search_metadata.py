"""Weights and other metadata reach the fits and scores of a search as they do in GridSearchCV."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from searches import MARGINS, SEARCHES, X, Y, assert_same, both
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmargin import (
    LSSVC,
    CrammerSingerSVC,
)
from skmargin.model_selection import MarginSearchCV

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals


@pytest.mark.parametrize("routing", [False, True])
def test_weights_of_the_first_steps(routing):
    weight = np.random.default_rng(0).integers(0, 9, len(Y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=routing):
        scaler, machine, fit = StandardScaler(), LSSVC(), {"standardscaler__sample_weight": weight}
        if routing:
            scaler.set_fit_request(sample_weight=True)
            machine.set_fit_request(sample_weight=False)
            fit = {"sample_weight": weight}
        pipeline = make_pipeline(scaler, machine)
        assert_same(*both(pipeline, {"lssvc__C": [0.1, 1.0]}, fit=fit, scoring=MARGINS))


@pytest.mark.parametrize("name", ["crammer-singer-rbf", "uldm", "m3"])
def test_weights_sparse_rows_and_other_splits(name):
    weight = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    groups = np.arange(len(Y)) % 5
    estimator, grid = SEARCHES[name]
    ours, theirs = both(
        estimator, grid, sparse.csr_array(X), cv=GroupKFold(3), fit={"sample_weight": weight, "groups": groups}
    )
    assert_same(ours, theirs)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)  # of the last fit, weighted too
    assert_same(*both(estimator, grid, cv=ShuffleSplit(2, random_state=0)))


def test_widths_named_scale_see_the_weights_of_the_classes():
    spread = make_scorer(lambda y, scores: np.abs(scores).mean(), response_method="decision_function")
    machine = CrammerSingerSVC(kernel="rbf", class_weight="balanced", tol=1e-8)
    ours, theirs = both(machine, {"C": [0.1, 1.0]}, X[20:110], Y[20:110], scoring=spread, refit=False)
    assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-5)


def test_metadata_routing():
    weight = np.random.default_rng(0).integers(1, 3, len(Y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, CrammerSingerSVC(tol=1e-6).set_fit_request(sample_weight=True))
        ours, theirs = both(
            pipeline,
            {"crammersingersvc__C": [0.1, 1.0]},
            n_jobs=2,
            fit={"sample_weight": weight},
            scoring=make_scorer(accuracy_score).set_score_request(sample_weight=True),
        )
        assert_same(ours, theirs)
    name = {"crammersingersvc__sample_weight": weight}
    assert_same(*both(*SEARCHES["pipeline"], fit=name))


@pytest.mark.parametrize("asked", [True, False])
def test_metadata_of_a_single_machine(asked):
    weight = np.random.default_rng(0).integers(1, 9, len(Y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        machine = LSSVC(kernel="linear").set_fit_request(sample_weight=not asked)
        machine.set_score_request(sample_weight=asked)
        assert_same(*both(machine, {"C": [1e-3, 1.0]}, fit={"sample_weight": weight}, return_train_score=True))


def test_metadata_under_other_names():
    weight = np.random.default_rng(0).integers(1, 3, len(Y)).astype(float)
    found = []
    for name, asked in (("sample_weight", True), ("mass", "mass")):
        with sklearn.config_context(enable_metadata_routing=True):
            machine = LSSVC().set_fit_request(sample_weight=asked).set_score_request(sample_weight=asked)
            pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=asked), machine)
            search = MarginSearchCV(pipeline, {"lssvc__C": [0.01, 1.0]}, return_train_score=True)
            found.append(search.fit(X, Y, **{name: weight}).cv_results_)
    for scores in ("mean_test_score", "mean_train_score"):
        assert_array_equal(found[0][scores], found[1][scores])
    plain = MarginSearchCV(make_pipeline(StandardScaler(), LSSVC()), {"lssvc__C": [0.01, 1.0]}).fit(X, Y).cv_results_
    assert (plain["mean_test_score"] != found[0]["mean_test_score"]).any()
