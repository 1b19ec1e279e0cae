from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import FuzzyPairwiseClassifier, ULDMClassifier

IRIS, SPECIES = load_iris(return_X_y=True)


@parametrize_with_checks([FuzzyPairwiseClassifier(LogisticRegression())])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_unclassifiable_regions_are_resolved():
    # overlapping classes around a centre, where every class wins one duel and votes are equal
    rng = np.random.default_rng(2)
    angles = np.array([0, 2, 4]) * np.pi / 3
    y = np.arange(60) % 3
    X = np.c_[np.cos(angles[y]), np.sin(angles[y])] + 0.9 * rng.standard_normal((60, 2))
    fuzzy = FuzzyPairwiseClassifier(LinearSVC(random_state=0)).fit(X, y)
    grid = rng.uniform(-1, 1, (4000, 2))
    subproblems = np.column_stack([e.decision_function(grid) for e in fuzzy.estimators_])
    f01, f02, f12 = subproblems.T
    won = np.array([[f01 < 0, f02 < 0], [f01 > 0, f12 < 0], [f02 > 0, f12 > 0]])
    votes = won.sum(axis=1).T
    m = fuzzy.memberships(grid)
    assert_allclose(m, np.minimum(1, np.c_[np.minimum(-f01, -f02), np.minimum(f01, -f12), np.minimum(f02, f12)]))
    tied = (votes == 1).all(axis=1)
    assert tied.any()
    assert_array_equal(fuzzy.predict(grid)[~tied], votes[~tied].argmax(axis=1))
    assert_array_equal(fuzzy.predict(grid)[tied], m[tied].argmax(axis=1))
    assert (m[tied] < 0).all()


def test_same_duels_as_one_versus_one():
    with parallel_config(backend="threading"):
        fuzzy = FuzzyPairwiseClassifier(SVC(kernel="linear"), n_jobs=2).fit(IRIS, SPECIES)
    plain = OneVsOneClassifier(SVC(kernel="linear")).fit(IRIS, SPECIES)
    for a, b in zip(fuzzy.estimators_, plain.estimators_, strict=True):
        assert_allclose(a.decision_function(IRIS), b.decision_function(IRIS))
    assert fuzzy.score(IRIS, SPECIES) >= plain.score(IRIS, SPECIES) - 0.01
    assert fuzzy.pairs_ == [(0, 1), (0, 2), (1, 2)]


def test_equals_the_built_in_scheme_of_the_machines():
    alone = ULDMClassifier(alpha=1e-3, gamma=0.3).fit(IRIS, SPECIES)
    around = FuzzyPairwiseClassifier(ULDMClassifier(alpha=1e-3, gamma=0.3)).fit(IRIS, SPECIES)
    assert_allclose(around.memberships(IRIS), alone.decision_function(IRIS), atol=1e-8)


def test_two_classes_sparse_rows_pipelines_and_precomputed_kernels():
    two = SPECIES < 2
    names = np.array(["a", "b", "c"])[SPECIES]
    model = FuzzyPairwiseClassifier(LinearSVC(random_state=0)).fit(sparse.csr_array(IRIS[two]), names[two])
    f = model.decision_function(sparse.csr_array(IRIS[two]))
    assert f.shape == (100,)
    assert_allclose(model.memberships(IRIS[two]), np.minimum(1, np.c_[-f, f]))
    assert model.score(IRIS[two], names[two]) == 1
    assert FuzzyPairwiseClassifier(make_pipeline(StandardScaler(), SVC())).fit(IRIS, names).score(IRIS, names) > 0.95
    K = IRIS @ IRIS.T
    ready = FuzzyPairwiseClassifier(SVC(kernel="precomputed")).fit(K, SPECIES)
    wanted = FuzzyPairwiseClassifier(SVC(kernel="linear")).fit(IRIS, SPECIES)
    assert_allclose(ready.memberships(K), wanted.memberships(IRIS), atol=1e-3)


def test_weights_and_metadata_routing():
    weight = np.random.default_rng(0).integers(1, 3, 150)
    svc = SVC(gamma=0.1)
    model = FuzzyPairwiseClassifier(svc).fit(IRIS, SPECIES, sample_weight=weight)
    repeated = FuzzyPairwiseClassifier(svc).fit(np.repeat(IRIS, weight, axis=0), np.repeat(SPECIES, weight))
    assert_allclose(model.decision_function(IRIS), repeated.decision_function(IRIS), atol=2e-2)
    weight[SPECIES[0] == SPECIES] = 0
    fewer = FuzzyPairwiseClassifier(svc).fit(IRIS, SPECIES, sample_weight=weight)
    without = FuzzyPairwiseClassifier(svc).fit(IRIS[weight > 0], SPECIES[weight > 0], sample_weight=weight[weight > 0])
    assert SPECIES[0] not in fewer.classes_
    assert_allclose(fewer.decision_function(IRIS), without.decision_function(IRIS))
    with pytest.raises(ValueError, match="eight"):
        FuzzyPairwiseClassifier(svc).fit(IRIS, SPECIES, sample_weight=np.zeros(150))
    weight = np.random.default_rng(0).integers(1, 3, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = FuzzyPairwiseClassifier(SVC(gamma=0.1).set_fit_request(sample_weight=True))
        routed.fit(IRIS, SPECIES, sample_weight=weight)
        searched = GridSearchCV(routed.set_score_request(sample_weight=True), {"estimator__C": [1.0]}, cv=2)
        searched.fit(IRIS, SPECIES, sample_weight=weight)
        folds = list(StratifiedKFold(2).split(IRIS, SPECIES))
        parts = [clone(routed).fit(IRIS[a], SPECIES[a], sample_weight=weight[a]) for a, _ in folds]
    assert_allclose(routed.decision_function(IRIS), model.decision_function(IRIS))
    scores = [part.score(IRIS[b], SPECIES[b], weight[b]) for part, (_, b) in zip(parts, folds, strict=True)]
    assert_allclose(searched.best_score_, np.mean(scores))
    with pytest.raises(ValueError, match="metadata"):
        FuzzyPairwiseClassifier(SVC()).fit(IRIS, SPECIES, other=1)


def test_errors():
    with pytest.raises(ValueError, match="one class"):
        FuzzyPairwiseClassifier(SVC()).fit(IRIS, np.zeros(150))
    with pytest.raises(ValueError, match="estimator"):
        FuzzyPairwiseClassifier(GaussianNB()).fit(IRIS, SPECIES)  # no decision_function


def test_a_refit_that_fails_leaves_it_unfitted():
    X, y = load_iris(return_X_y=True)
    model = FuzzyPairwiseClassifier(LinearSVC(random_state=0)).fit(X, y)
    model.estimator = LinearSVC(C=-1.0)
    with pytest.raises(ValueError, match="'C' parameter"):
        model.fit(X, y + 10)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "classes_")


def test_threads_that_fit_with_different_numbers_of_jobs():
    X, y = load_iris(return_X_y=True)

    def fit(n_jobs):
        return FuzzyPairwiseClassifier(LinearSVC(random_state=0), n_jobs=n_jobs).fit(X, y).memberships(X)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fit, [1, 2, 3, 4, None, 2], timeout=120))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
