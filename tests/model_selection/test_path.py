"""Paths along one parameter equal fits from nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skmargin import LSSVC, M3SVC, CrammerSingerSVC, ULDMClassifier, WestonWatkinsSVC
from skmargin.model_selection import margin_path
from skmargin.model_selection._chains import chains
from skmargin.model_selection._racing import rejected
from skmargin.solvers.dual.linear import solve_linear

X, Y = load_iris(return_X_y=True)
X = MinMaxScaler().fit_transform(X)
WEIGHT = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(
    ("estimator", "name", "values"),
    [
        (CrammerSingerSVC(tol=1e-7), "C", [1.0, 0.01, 10.0]),
        (CrammerSingerSVC(kernel="rbf", tol=1e-6), "C", [1.0, 0.01]),
        (WestonWatkinsSVC(kernel="rbf", tol=1e-6), "gamma", [0.1, 1.0]),
        (M3SVC(tol=1e-8), "alpha", [1e-3, 1e-1]),
        (M3SVC(tol=1e-8), "p", [2.0, 4.0]),
        (ULDMClassifier(), "alpha", [1e-8, 0.1, 1e-3]),
        (ULDMClassifier(kernel="linear"), "alpha", [0.0, 0.1]),
        (LSSVC(), "C", [0.1, 10.0]),
    ],
)
def test_path_equals_single_fits(estimator, name, values, weight):
    models = margin_path(estimator, X, Y, name, values, sample_weight=weight)
    for model, value in zip(models, values, strict=True):
        alone = clone(estimator).set_params(**{name: value}).fit(X, Y, sample_weight=weight)
        assert model.get_params() == alone.get_params()
        assert_allclose(model.objective_, alone.objective_, rtol=1e-5)
        assert_allclose(model.decision_function(X), alone.decision_function(X), atol=2e-2)
        assert set(vars(model)) == set(vars(alone))


@pytest.mark.parametrize("name, values", [("gamma", ["scale", 0.5, [0.1, 1.0]]), ("C", [[0.1, 1.0], 10.0])])
def test_path_of_values_that_have_no_order(name, values):
    for model, value in zip(margin_path(LSSVC(), X, Y, name, values), values, strict=True):
        assert getattr(model, name) == value
        alone = LSSVC(**{name: value}).fit(X, Y)
        assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-8)


def test_path_of_a_pipeline():
    pipeline = make_pipeline(MinMaxScaler(), CrammerSingerSVC(tol=1e-7))
    for model, C in zip(margin_path(pipeline, X, Y, "crammersingersvc__C", [0.1, 1.0]), [0.1, 1.0], strict=True):
        alone = clone(pipeline).set_params(crammersingersvc__C=C).fit(X, Y)
        assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-3)
    for values in (1.0, "1"):
        with pytest.raises(ValueError, match=f"values must be a sequence of values of 'C', got {values!r}"):
            margin_path(CrammerSingerSVC(), X, Y, "C", values)
    for name in ("C", 3, "minmaxscaler__clip"):
        with pytest.raises(ValueError, match=f"param_name={name!r} is not a parameter"):
            margin_path(pipeline, X, Y, name, [1.0])


def test_path_of_a_pipeline_of_one_step():
    (model,) = margin_path(make_pipeline(LSSVC()), X, Y, "lssvc__C", [0.1])
    assert_allclose(model.decision_function(X), LSSVC(C=0.1).fit(X, Y).decision_function(X), atol=1e-8)


def test_a_solution_starts_the_next_from_the_strongest_penalty_on():
    weak, strong = margin_path(M3SVC(tol=1e-8), X, Y, "alpha", [1e-3, 1.01e-3])
    alone = [M3SVC(alpha=alpha, tol=1e-8).fit(X, Y).n_iter_ for alpha in (1e-3, 1.01e-3)]
    assert weak.n_iter_ < alone[0] and strong.n_iter_ == alone[1]


@pytest.mark.parametrize(("C", "growth"), [(0.01, 4.0), (10.0, 4.0), (10.0, 0.5)])
def test_duals_start_at_the_best_point_of_their_ray(C, growth):
    digits, labels = load_digits(return_X_y=True)
    cap = np.full(len(labels), C)
    state = solve_linear(digits / 16, labels.astype(np.int32), cap, 10, "max", fit_intercept=False)
    value = lambda t: t * state.duals.alpha.sum() - 0.5 * t**2 * (state.W**2).sum()  # the dual objective along the ray  # noqa: E731
    grown = state.rescaled(growth * cap)
    t = grown.duals.alpha.sum() / state.duals.alpha.sum()
    assert_allclose(grown.duals.alpha, t * state.duals.alpha)
    assert t <= growth * (1 + 1e-12)
    assert value(t) >= value(np.linspace(0, growth, 1001)).max() * (1 - 1e-5) - 1e-12


def test_chains():
    grid = [{"C": c, "k": k} for c in (4, 1, 2) for k in (1, 2)] + [{"kernel": "rbf"}]
    found = chains(grid, "")
    assert [(chain.candidates, chain.parameter) for chain in found] == [([2, 4, 0], "C"), ([3, 5, 1], "C"), ([6], None)]
    assert chains([{"m__alpha": 1.0}, {"m__alpha": 2.0}], "m__")[0].candidates == [1, 0]


def test_paired_test_rejects_only_what_is_clearly_worse():
    rng = np.random.default_rng(0)
    scores = 0.9 + 0.001 * rng.normal(size=(4, 3))
    scores[1] -= 0.3
    scores[3] = np.nan
    assert rejected(scores, 0.25).tolist() == [False, True, False, False]
    assert not rejected(scores[:, :2], 0.25).any()


def test_paired_test_is_that_of_nadeau_and_bengio():
    """One-sided, with the variance of the mean difference corrected for training sets that overlap."""
    rng = np.random.default_rng(1)
    scores = 0.9 + 0.02 * rng.normal(size=(200, 5)) - np.linspace(0, 0.06, 200)[:, None]
    difference = scores[scores.mean(axis=1).argmax()] - scores
    error = difference.std(axis=1, ddof=1) * np.sqrt(1 / 5 + 0.25)
    with np.errstate(invalid="ignore"):
        expected = stats.t.sf(difference.mean(axis=1) / error, 4) < 0.05
    np.testing.assert_array_equal(rejected(scores, 0.25), expected)
    assert 20 < expected.sum() < 180
    two = [scores.mean(axis=1).argmax(), 199]
    assert rejected(scores[two], 0.25).tolist() == [False, True]
    scores[198, 0] = np.nan  # one fold without a score is enough not to be judged
    assert rejected(scores[[*two, 198]], 0.25).tolist() == [False, True, False]
    alone = np.where(np.arange(3)[:, None] == 1, scores[:3], np.nan)
    assert not rejected(alone, 0.25).any()
