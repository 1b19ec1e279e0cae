"""Searches of all kinds, by `MarginSearchCV` and by `GridSearchCV`."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    FuzzyPairwiseClassifier,
    LDMClassifier,
    LpNormSVC,
    MultiMarginSVC,
    ODMClassifier,
    SemiSupervisedMarginSVC,
    TopKSVC,
    ULDMClassifier,
    WestonWatkinsSVC,
)
from skmargin.model_selection import MarginSearchCV

X, Y = load_iris(return_X_y=True)
X = MinMaxScaler().fit_transform(X)
Y = np.array(["setosa", "versicolor", "virginica"])[Y]

SEARCHES = {
    "crammer-singer": (CrammerSingerSVC(tol=1e-6), {"C": [10.0, 0.1, 1.0]}),
    "crammer-singer-rbf": (CrammerSingerSVC(kernel="rbf", tol=1e-5), {"C": [0.1, 1.0], "gamma": ["scale", 0.5]}),
    "weston-watkins": (WestonWatkinsSVC(tol=1e-6), {"C": [1.0, 10.0]}),
    "widths-only": (WestonWatkinsSVC(kernel="rbf", tol=1e-5), {"gamma": [0.1, 1.0, 5.0]}),
    "top-k": (TopKSVC(fit_intercept=False, tol=1e-6), {"C": [0.1, 1.0], "k": [1, 2]}),
    "lp-norm": (LpNormSVC(tol=1e-5), {"C": [1.0, 10.0], "p": [1.5, 2.0]}),
    "lp-norm-losses": (
        LpNormSVC(tol=1e-5, random_state=0),
        {"C": [0.1, 1.0], "p": [1.5, 4.0], "loss": ["squared_hinge", "log_loss"]},
    ),
    "lp-norm-paper": (LpNormSVC(tol=1e-5, solver="paper", random_state=0), {"C": [0.1, 1.0], "p": [1.5, 1.8]}),
    "multi-margin": (MultiMarginSVC(tol=1e-7), {"C": [0.1, 1.0]}),
    "multi-margin-svrg": (MultiMarginSVC(solver="svrg", tol=1e-2, random_state=0), {"C": [0.001, 0.01, 0.1]}),
    "m3-adam": (M3SVC(solver="adam", tol=0.5, random_state=0), {"alpha": [1e-2, 1e-1]}),
    "m3": (M3SVC(tol=1e-5), {"alpha": [1e-2, 1e-1], "p": [2, 4]}),
    "m3-poly": (M3SVC(kernel="poly", tol=1e-5), {"alpha": [1e-2, 1e-1]}),
    "uldm": (ULDMClassifier(), {"alpha": [1e-10, 1e-4, 1e-1], "gamma": [0.5, 2.0]}),
    "uldm-linear": (ULDMClassifier(kernel="linear"), {"alpha": [0.0, 1e-4, 1e-1]}),
    "uldm-basis": (ULDMClassifier(basis="random", n_basis=20, random_state=0), {"alpha": [1e-6, 1e-2]}),
    "lssvc": (LSSVC(multi_class="ovr"), {"C": [0.1, 1.0, 10.0]}),
    "ldm": (LDMClassifier(tol=1e-6, random_state=0), {"C": [0.1, 10.0]}),
    "ldm-linear": (LDMClassifier(kernel="linear", tol=1e-6, random_state=0), {"C": [0.1, 10.0], "lambda1": [0.5, 1.0]}),
    "ldm-least-squares": (LDMClassifier(loss="least_squares"), {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}),
    "odm": (ODMClassifier(tol=1e-6, random_state=0), {"C": [10.0, 100.0], "mu": [0.0, 0.5]}),
    "odm-rbf": (ODMClassifier(kernel="rbf", mu=0.0, tol=1e-5, random_state=0), {"C": [10.0, 100.0]}),
    "semi-supervised": (SemiSupervisedMarginSVC(tol=1e-8, random_state=0), {"C": [0.1, 1.0]}),
    "fuzzy-pairwise": (FuzzyPairwiseClassifier(CrammerSingerSVC(tol=1e-6)), {"estimator__C": [0.1, 1.0]}),
    "uldm-inner-widths": (ULDMClassifier(gamma=[0.1, 1.0], cv=3), {"alpha": [1e-6, 1e-1]}),
    "uldm-inner-strengths": (ULDMClassifier(alpha=[1e-6, 1e-2], cv=3), {"gamma": [0.1, 1.0]}),
    "uldm-kmeans": (ULDMClassifier(basis="kmeans++", n_basis=20, random_state=0), {"alpha": [1e-6, 1e-2]}),
    "uldm-pipeline": (
        make_pipeline(StandardScaler(), ULDMClassifier()),
        {"standardscaler__with_std": [True, False], "uldmclassifier__alpha": [1e-8, 1e-2]},
    ),
    "pipeline": (
        make_pipeline(StandardScaler(), CrammerSingerSVC(tol=1e-6)),
        {"standardscaler__with_std": [True, False], "crammersingersvc__C": [0.1, 1.0]},
    ),
    "several-grids": (LSSVC(), [{"C": [1.0, 2.0]}, {"kernel": ["linear"], "C": [1.0]}]),
    "not-ours": (LogisticRegression(), {"C": [0.1, 1.0]}),
}


def both(estimator, grid, X=X, y=Y, n_jobs=None, fit=None, **options):
    fit = fit or {}
    theirs = GridSearchCV(estimator, grid, **{"cv": 5, **options}).fit(X, y, **fit)
    ours = MarginSearchCV(estimator, grid, n_jobs=n_jobs, **options).fit(X, y, **fit)
    return ours, theirs


def assert_same(ours, theirs):
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    for name, values in theirs.cv_results_.items():
        if "time" in name:
            continue
        if name == "params" or name.startswith("param_"):
            assert list(ours.cv_results_[name]) == list(values)
        else:
            assert_allclose(ours.cv_results_[name], values, atol=1e-12, err_msg=name)
    assert ours.best_params_ == theirs.best_params_
    assert ours.n_splits_ == theirs.n_splits_


MARGINS = make_scorer(lambda y, scores: np.tanh(scores).sum(), response_method="decision_function")
