"""Data and grids in every shape that users hand to `GridSearchCV`: the same results, and a search that can be kept."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skmargin import LSSVC, CrammerSingerSVC, ULDMClassifier, WestonWatkinsSVC
from skmargin.model_selection import MarginSearchCV

RNG = np.random.default_rng(1)
X, Y = load_iris(return_X_y=True)
X += RNG.normal(scale=0.01, size=X.shape)  # rounded to one digit, some test rows lie exactly between two classes
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
ORDER = RNG.permutation(150)
FRAME = pd.DataFrame(X, columns=list("abcd"), index=ORDER)
SHARES = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])
WORDS = [" ".join(RNG.choice(list("abcdefg"), 9, p=np.roll(SHARES, 2 * label))) for label in Y]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
KERNEL = rbf_kernel(X)

SVC = CrammerSingerSVC(tol=1e-6, random_state=0)
STRENGTHS = {"alpha": [1e-4, 1e-2], "gamma": [0.1, 1.0]}
BY_LETTERS = {"analyzer": "char", "token_pattern": None}
STEPS = Pipeline([("scale", StandardScaler()), ("svc", SVC)])


def positives(results):
    """A rule of choice of the user's own (the worst candidate: surely not the default)."""
    return int(np.argmin(results["mean_test_f1_macro"]))


CASES = {
    "strings": (SVC, {"C": [0.01, 1.0]}, X, NAMES, {}),
    "lists": (ULDMClassifier(), STRENGTHS, X.tolist(), NAMES.tolist(), {}),
    "truth-values": (SVC, {"C": [0.01, 1.0]}, X, Y > 0, {}),
    "objects": (ULDMClassifier(), STRENGTHS, X, NAMES.astype(object), {}),
    "frame": (SVC, {"C": [0.01, 1.0]}, FRAME, pd.Series(NAMES, index=ORDER), {}),
    "frame-widths": (ULDMClassifier(), STRENGTHS, FRAME, pd.Series(NAMES, index=ORDER, dtype="category"), {}),
    "integers": (SVC, {"C": [1e-8, 1e-6]}, (1000 * X).astype(int), Y, {}),
    "columns": (ULDMClassifier(), STRENGTHS, sparse.csc_matrix(X), Y, {}),
    "triplets": (SVC, {"C": [0.01, 1.0]}, sparse.coo_array(X), Y, {}),
    "kernel": (ULDMClassifier(kernel="precomputed"), {"alpha": [1e-4, 1e-2]}, KERNEL, Y, {}),
    "kernel-lssvc": (LSSVC(kernel="precomputed"), {"C": [0.1, 1.0]}, KERNEL, Y, {}),
    "kernel-function": (ULDMClassifier(kernel=rbf_kernel), {"alpha": [1e-4, 1e-2]}, X, Y, {}),
    "text": (
        Pipeline([("words", TfidfVectorizer(**BY_LETTERS)), ("svc", SVC)]),
        {"svc__C": [0.1, 10.0], "words__ngram_range": [(1, 1), (1, 2)]},
        pd.Series(WORDS, index=ORDER),
        NAMES,
        {},
    ),
    "counts": (
        Pipeline([("words", CountVectorizer(**BY_LETTERS)), ("uldm", ULDMClassifier())]),
        {f"uldm__{name}": values for name, values in STRENGTHS.items()},
        WORDS,
        NAMES,
        {},
    ),
    "columns-by-name": (
        make_pipeline(make_column_transformer((StandardScaler(), ["a", "c"])), SVC),
        {"crammersingersvc__C": [0.1, 1.0]},
        FRAME,
        Y,
        {},
    ),
    "several-grids": (
        SVC,
        [{"kernel": ["linear"], "C": [0.1, 1.0]}, {"kernel": ["rbf"], "C": [1.0], "gamma": ["scale", 0.1]}],
        X,
        Y,
        {},
    ),
    "steps-in-the-grid": (STEPS, {"scale": [StandardScaler(), "passthrough", PCA(2)], "svc__C": [0.1, 1.0]}, X, Y, {}),
    "classifiers-in-the-grid": (
        STEPS,
        [
            {"svc": [SVC, WestonWatkinsSVC(tol=1e-6, random_state=0)], "svc__C": [0.1, 1.0]},
            {"svc": [ULDMClassifier()], "svc__alpha": [0.1, 0.01]},
        ],
        X,
        Y,
        {},
    ),
    "class-weights-in-the-grid": (SVC, {"class_weight": [None, "balanced", {0: 2, 1: 1, 2: 1}]}, X, Y, {}),
    "masks": (ULDMClassifier(), STRENGTHS, X, Y, {"cv": [(ORDER < 100, ORDER >= 100)]}),
    "own-rule": (SVC, {"C": [0.01, 1.0]}, X, Y, {"scoring": ["accuracy", "f1_macro"], "refit": positives}),
    "no-refit": (SVC, {"C": [0.01, 1.0]}, X, Y, {"scoring": ["accuracy", "f1_macro"], "refit": False}),
}


@pytest.mark.parametrize("n_jobs", [None, -1])
@pytest.mark.parametrize("name", CASES)
def test_as_grid_search(name, n_jobs):
    estimator, grid, rows, y, options = CASES[name]
    options = {"cv": FOLDS, **options}
    theirs = GridSearchCV(clone(estimator), grid, **options).fit(rows, y)
    ours = MarginSearchCV(clone(estimator), grid, n_jobs=n_jobs, **options).fit(rows, y)
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    for key, values in theirs.cv_results_.items():
        found = ours.cv_results_[key]
        if key == "params" or key.startswith("param_"):
            assert repr(found) == repr(values)
        elif "time" not in key:
            assert_allclose(found, values, atol=1e-12, err_msg=key)
    public = {key for key in vars(theirs) if key.endswith("_")}
    assert {key for key in vars(ours) if key.endswith("_") and not key.startswith("_")} == public
    if not options.get("refit", True):
        return
    kept = pickle.loads(pickle.dumps(ours))
    assert_array_equal(kept.predict(rows), theirs.predict(rows))
    assert repr(kept.best_params_) == repr(theirs.best_params_)
    again = clone(kept)
    assert not hasattr(again, "cv_results_") and repr(again.param_grid) == repr(grid)


@pytest.mark.parametrize("estimator", [SVC, ULDMClassifier()])
def test_labels_in_one_column(estimator):
    grid = {"C": [0.01, 1.0]} if estimator is SVC else STRENGTHS
    with pytest.warns(UserWarning, match="column-vector"):
        column = MarginSearchCV(estimator, grid, cv=FOLDS.split(X, Y)).fit(X, Y[:, None])
    flat = MarginSearchCV(estimator, grid, cv=FOLDS).fit(X, Y)
    assert_allclose(column.cv_results_["mean_test_score"], flat.cv_results_["mean_test_score"])


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series])
def test_groups_and_weights_of_every_kind(kind):
    weight, groups = RNG.uniform(0.5, 2, 150), np.arange(150) % 10
    options = {"cv": GroupKFold(5), "scoring": "balanced_accuracy"}
    theirs = GridSearchCV(ULDMClassifier(), STRENGTHS, **options).fit(X, Y, sample_weight=weight, groups=groups)
    ours = MarginSearchCV(ULDMClassifier(), STRENGTHS, **options)
    ours.fit(X, Y, sample_weight=kind(weight), groups=kind(groups))
    assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    with pytest.raises(ValueError, match="groups"):
        MarginSearchCV(ULDMClassifier(), STRENGTHS, **options).fit(X, Y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_sparse_rows_with_broken_indices_are_refused(kernel):
    """Dividing them would read beside their arrays."""
    rows = sparse.csr_array(X)
    rows.indices[3] = 10**6
    with pytest.raises(ValueError, match=r"^X is no valid CSR matrix: indices must"):
        MarginSearchCV(CrammerSingerSVC(kernel=kernel), {"C": [0.1, 1.0]}).fit(rows, Y)
