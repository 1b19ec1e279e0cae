import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import LSSVC, LDMClassifier, ULDMClassifier
from skmargin.estimators._base import MarginClassifier
from skmargin.solvers.tuning import DEFAULT
from skmargin.solvers.two_class.ridge_search import best_candidate, quarter

IRIS, SPECIES = load_iris(return_X_y=True)
X, Y = make_classification(n_samples=120, n_features=6, n_informative=4, flip_y=0.1, random_state=0)
SIGN = np.where(Y == 1, 1.0, -1.0)


@parametrize_with_checks(
    [
        ULDMClassifier(),
        ULDMClassifier(alpha=1e-3, kernel="linear", multi_class="ovo"),
        ULDMClassifier(alpha=[1e-4, 1e-2], gamma=[0.1, 1.0], multi_class="ovr"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


def objective(beta, Z, y, alpha, p):
    d = y * (Z @ beta)
    return 0.5 * alpha * beta @ beta - p @ d + 0.5 * (p @ d**2 - (p @ d) ** 2)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_direct_minimisation(kernel):
    model = ULDMClassifier(alpha=0.05, kernel=kernel, gamma=0.2).fit(X, Y)
    Z = np.c_[X if kernel == "linear" else rbf_kernel(X, X[model.support_], gamma=0.2), np.ones(len(X))]
    p = np.full(len(X), 1 / len(X))
    found = minimize(
        objective, np.zeros(Z.shape[1]), (Z, SIGN, 0.05, p), method="BFGS", options={"gtol": 1e-11, "maxiter": 5000}
    )
    assert_allclose(model.objective_, found.fun, rtol=1e-8)
    assert_allclose(model.decision_function(X), Z @ found.x, atol=1e-4)
    beta = np.append(model.coef_ if kernel == "linear" else model.dual_coef_, model.intercept_)
    assert_allclose(objective(beta, Z, SIGN, 0.05, p), model.objective_, rtol=1e-10)
    assert model.dual_gap_ is None
    assert model.n_iter_ == 1


def test_boundary_is_that_of_ridge_regression():
    model = ULDMClassifier(alpha=1e-2, kernel="linear").fit(X, Y)
    # Ridge with the constant as a penalised feature; its alpha is per sum, not per mean
    ridge = Ridge(alpha=1e-2 * len(X), fit_intercept=False).fit(np.c_[X, np.ones(len(X))], SIGN)
    ratio = model.decision_function(X) / (np.c_[X, np.ones(len(X))] @ ridge.coef_)
    assert_allclose(ratio, ratio[0])
    assert ratio[0] > 1


def test_theorem_1_boundary_through_the_mean():
    balanced = np.r_[np.flatnonzero(Y == 0)[:50], np.flatnonzero(Y == 1)[:50]]
    for alpha in (1e-6, 0.1, 1.0):
        model = ULDMClassifier(alpha=alpha, kernel="linear").fit(X[balanced], Y[balanced])
        mean = X[balanced].mean(axis=0)
        assert_allclose(model.coef_ @ mean / (1 + alpha) + model.intercept_, 0, atol=1e-10 * np.abs(model.coef_).max())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0, 100.0])
def test_theorem_2_coefficients_point_to_the_second_class(kernel, alpha):
    """With as many rows of each class the mean margin is not negative: it is the variance plus the penalty (42)."""
    balanced = np.r_[np.flatnonzero(Y == 0)[:50], np.flatnonzero(Y == 1)[:50]]
    rows, sign = X[balanced], SIGN[balanced]
    model = ULDMClassifier(alpha=alpha, kernel=kernel, basis="all").fit(rows, Y[balanced])
    b = model.intercept_[0]
    margins = sign * model.decision_function(rows)
    angle = np.mean(margins - sign * b)  # the mean of y_i K_i, times the coefficients
    a = model.coef_ if kernel == "linear" else model.dual_coef_
    assert angle > 0
    assert_allclose(angle, margins.var() + alpha * (np.sum(a**2) + b**2), rtol=1e-6)


def test_theorem_2_equality_where_the_means_coincide():
    half = X[:40]
    same = np.r_[half, half]
    model = ULDMClassifier(alpha=0.1, kernel="linear").fit(same, np.repeat([0, 1], 40))
    assert_allclose(model.coef_, 0, atol=1e-10)


def test_one_dimension_without_penalty_is_least_squares():
    x, y = X[:, :1], SIGN
    model = ULDMClassifier(alpha=0.0, kernel="linear").fit(x, Y)
    slope = np.cov(x[:, 0], y, bias=True)[0, 1] / x.var()
    assert_allclose(-model.intercept_ / model.coef_[0], x.mean() - y.mean() / slope)


@pytest.mark.parametrize("multi_class", ["fuzzy_pairwise", "ovo", "ovr"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_machines_are_two_class_machines(multi_class, kernel):
    parameters = {"alpha": 1e-2, "kernel": kernel, "gamma": 0.1, "multi_class": multi_class}
    model = ULDMClassifier(**parameters).fit(IRIS, SPECIES)
    machines = model._machine_scores(IRIS)
    parts = [(SPECIES != 0, SPECIES == 2), (np.ones(150, dtype=bool), SPECIES == 2)]
    rows, positive = parts[multi_class == "ovr"]
    pair = ULDMClassifier(**parameters).fit(IRIS[rows], positive[rows])
    f = pair.decision_function(IRIS)
    assert_allclose(machines[:, 2], f, atol=1e-8 * np.abs(f).max())
    assert model.score(IRIS, SPECIES) > (0.7 if multi_class == "ovr" else 0.93)
    assert model.decision_function(IRIS).shape == (150, 3)


def test_memberships_decide():
    model = ULDMClassifier(alpha=1e-3).fit(IRIS, SPECIES)
    f01, f02, f12 = model._machine_scores(IRIS).T
    m = np.minimum(1, np.c_[np.minimum(-f01, -f02), np.minimum(f01, -f12), np.minimum(f02, f12)])
    assert_allclose(model.decision_function(IRIS), m)
    assert_array_equal(model.predict(IRIS), m.argmax(axis=1))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_weights_are_repeats(kernel):
    weight = np.random.default_rng(0).integers(0, 4, 150)
    model = ULDMClassifier(alpha=1e-3, kernel=kernel).fit(IRIS, SPECIES, sample_weight=weight)
    repeated = ULDMClassifier(alpha=1e-3, kernel=kernel).fit(
        np.repeat(IRIS, weight, axis=0), np.repeat(SPECIES, weight)
    )
    f = repeated.decision_function(IRIS)
    assert_allclose(model.decision_function(IRIS), f, atol=1e-8 * np.abs(f).max())
    assert_allclose(model.objective_, repeated.objective_, rtol=1e-8)
    balanced = ULDMClassifier(alpha=1e-3, kernel=kernel, class_weight="balanced").fit(IRIS[30:], SPECIES[30:])
    same = ULDMClassifier(alpha=1e-3, kernel=kernel).fit(
        IRIS[30:], SPECIES[30:], sample_weight=np.array([120 / 60, 120 / 150, 120 / 150])[SPECIES[30:]]
    )
    assert_allclose(balanced.decision_function(IRIS), same.decision_function(IRIS), atol=1e-8)


# -- selection --------------------------------------------------------------------------------------------------------


def test_linear_folds_equal_cross_validation():
    alphas = [1e-6, 1e-3, 1e-1, 10.0]
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    model = ULDMClassifier(alpha=alphas, kernel="linear", cv=folds).fit(IRIS, SPECIES)
    for alpha, score in zip(alphas, model.cv_scores_, strict=True):
        explicit = cross_val_predict(ULDMClassifier(alpha=alpha, kernel="linear"), IRIS, SPECIES, cv=folds)
        assert_allclose(score, (explicit == SPECIES).mean())
    assert model.alpha_ == alphas[int(np.argmax(model.cv_scores_))]
    best = ULDMClassifier(alpha=model.alpha_, kernel="linear").fit(IRIS, SPECIES)
    assert_allclose(model.coef_, best.coef_)


@pytest.mark.parametrize("estimator", [ULDMClassifier(), LSSVC()], ids=["uldm", "lssvc"])
@pytest.mark.parametrize("direct", [True, False])
def test_folds_without_rows_of_a_pair_of_classes(estimator, direct, monkeypatch):
    monkeypatch.setattr(
        MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 6000**2 if direct else 9})
    )
    fold_of = np.where(SPECIES < 2, 0, 2) + np.arange(150) % 2  # two of the classes 0 and 1, two of class 2
    folds = [(np.flatnonzero(fold_of != f), np.flatnonzero(fold_of == f)) for f in range(4)]
    name, values = estimator._strength_name, [1e-2, 1.0]
    model = clone(estimator).set_params(kernel="linear", cv=folds, tol=1e-10, **{name: values}).fit(IRIS, SPECIES)
    by_class = clone(model).set_params(cv=KFold(3)).fit(IRIS, SPECIES)
    assert_allclose(by_class.cv_scores_, 0)  # no class was there when its rows were left out
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 6000**2}))
    for value, score in zip(values, model.cv_scores_, strict=True):
        one = clone(estimator).set_params(kernel="linear", **{name: value})
        assert_allclose(score, (cross_val_predict(one, IRIS, SPECIES, cv=folds) == SPECIES).mean())


@pytest.mark.parametrize("gamma", [[-1.0, 1.0], [], ["scale", 1.0], [np.nan]])
def test_widths_that_are_no_positive_numbers_are_refused(gamma):
    with pytest.raises(ValueError, match="gamma must be a positive number or a list of positive numbers"):
        ULDMClassifier(gamma=gamma).fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match=r"cv=\[\] must hold out every row"):
        ULDMClassifier([1e-3, 1.0], cv=[]).fit(IRIS, SPECIES)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_explicit_refits_on_the_same_basis(weighted):
    rows = np.arange(0, 150, 4)
    X, y = IRIS[rows], SPECIES[rows]
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    model = ULDMClassifier(alpha=[1e-4, 1e-2], gamma=[0.1, 1.0]).fit(X, y, sample_weight=weight)
    assert model.cv_scores_.shape == (2, 2)
    for g, gamma in enumerate((0.1, 1.0)):
        K = rbf_kernel(X, gamma=gamma)
        for a, alpha in enumerate((1e-4, 1e-2)):
            hits = np.zeros(len(y))
            for i in range(len(y)):
                scores = np.zeros((3, 3))
                for first, second in ((0, 1), (0, 2), (1, 2)):
                    pair = (y == first) | (y == second)
                    fitted = pair & (np.arange(len(y)) != i)
                    Z = np.c_[K[:, pair] * np.sqrt(weight[pair]), np.ones(len(y))]
                    p = weight[fitted] / weight[fitted].sum()
                    sign = np.where(y[fitted] == second, 1.0, -1.0)
                    h, S = Z[fitted].T @ (p * sign), Z[fitted].T @ (p[:, None] * Z[fitted])
                    beta = np.linalg.solve(alpha * np.eye(len(h)) + S - np.outer(h, h), h)
                    scores[second, first] = Z[i] @ beta
                    scores[first, second] = -scores[second, first]
                np.fill_diagonal(scores, np.inf)
                hits[i] = scores.min(axis=1).argmax() == y[i]
            assert_allclose(model.cv_scores_[g, a], hits @ weight / weight.sum())


def test_screening_agrees_with_the_exact_grid(monkeypatch):
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"call_work": 300**3}))
    X, y = load_digits(n_class=5, return_X_y=True)
    X, y = X[:450] / 16, y[:450]
    X = X + 0.3 * np.random.default_rng(0).standard_normal(X.shape)
    parameters = {"alpha": [1e-8, 1e-4, 1e-2], "gamma": [1e-3, 0.02, 0.1, 5.0], "cv": 3, "random_state": 0}
    fast = ULDMClassifier(**parameters).fit(X, y)
    exact = ULDMClassifier(**parameters, search="exact", n_jobs=2).fit(X, y)
    known = ~np.isnan(fast.cv_scores_)
    assert 3 <= known.sum() < exact.cv_scores_.size
    assert not np.isnan(exact.cv_scores_).any()
    assert_allclose(fast.cv_scores_[known], exact.cv_scores_[known], atol=2 / len(y))
    assert exact.cv_scores_.max() - np.nanmax(fast.cv_scores_) < 0.005


@pytest.mark.parametrize(
    "estimator", [ULDMClassifier([1e-6, 1e-4]), LSSVC([1.0, 100.0, 1000.0])], ids=["uldm", "lssvc"]
)
def test_screening_knows_how_large_a_kernel_is(estimator, monkeypatch):
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"call_work": 300**3}))
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 8)) + np.c_[y, 1.5 * (y == 1), np.zeros((400, 6))]
    estimator = clone(estimator).set_params(kernel="poly", coef0=1, gamma=[1.0, 3.0], random_state=0)
    fast, exact = (clone(estimator).set_params(search=search).fit(X, y) for search in ("auto", "exact"))
    assert_allclose(fast.cv_scores_, exact.cv_scores_, atol=1.5 / 400)


def test_small_strengths_are_tried_where_the_smallest_other_wins(monkeypatch):
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"call_work": 300**3}))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2))
    y = (np.sin(9 * X[:, 0]) > X[:, 1]).astype(int) + 2 * (X[:, 0] > 0.3)
    model = ULDMClassifier(alpha=[1e-10, 1e-6, 1e-1], gamma=2.0, random_state=0).fit(X, y)
    assert not np.isnan(model.cv_scores_).any()
    assert model.cv_scores_[1] > model.cv_scores_[2]


def test_search_by_scikit_learn_works_too():
    search = GridSearchCV(ULDMClassifier(), {"alpha": [1e-4, 1e-2], "gamma": [0.1, 1.0]}, cv=3).fit(IRIS, SPECIES)
    assert search.best_score_ > 0.95


def test_folds_must_hold_out_every_row_once():
    twice = [(np.arange(75, 150), np.arange(75)), (np.arange(75), np.arange(75))]
    with pytest.raises(ValueError, match="exactly once"):
        ULDMClassifier(alpha=[1e-4, 1e-2], cv=twice).fit(IRIS, SPECIES)
    more = [(np.arange(100, 150), np.arange(100)), (np.arange(50), np.arange(50, 150))]
    with pytest.raises(ValueError, match="exactly once"):
        ULDMClassifier(alpha=[1e-4, 1e-2], cv=more).fit(IRIS, SPECIES)
    halves = [(np.arange(0, 150, 2), np.arange(1, 150, 2)), (np.arange(1, 150, 2), np.arange(0, 150, 2))]
    ready = ULDMClassifier(alpha=[1e-4, 1e-2], cv=halves).fit(IRIS, SPECIES)
    assert ready.cv_scores_.shape == (2,)


@pytest.mark.parametrize("way", ["splits", "iterations", "leave one out"])
@pytest.mark.parametrize(
    "estimator",
    [ULDMClassifier(kernel="linear"), LSSVC(gamma=0.5), LSSVC(kernel="linear")],
    ids=["uldm", "rbf", "lssvc"],
)
def test_held_out_accuracy_is_that_of_explicit_refits_with_weights(estimator, way, monkeypatch):
    """Labels at random, so that no class wins all its duels: those between others decide, and their scale.

    Ready-made splits number the rows that were given; those of weight 0 are in no fold, and a fold of them is none.
    """
    if way == "iterations":
        monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 3**2}))
    rng = np.random.default_rng(0)
    order, rows, y = rng.permutation(75), rng.normal(size=(75, 15)), rng.integers(0, 5, 75)
    weight = rng.integers(0, 4, 75).astype(float)
    weight[order[:10]] = 0
    tests = np.flatnonzero(weight)[:, None] if way == "leave one out" else [*np.array_split(order[10:], 4), order[:10]]
    splits = [(np.setdiff1d(order, test), test) for test in tests]
    name, values = estimator._strength_name, [1e-3, 1.0, 50.0]
    model = clone(estimator).set_params(**{name: values}, basis="all", tol=1e-12)
    model.set_params(cv=None if way == "leave one out" else splits)
    scores = model.fit(rows, y, sample_weight=weight).cv_scores_
    for value, score in zip(values, scores, strict=True):
        hits = np.zeros(75)
        for train, test in splits:
            one = clone(estimator).set_params(**{name: value}, basis="all", tol=1e-12)
            hits[test] = one.fit(rows[train], y[train], weight[train]).predict(rows[test]) == y[test]
        assert_allclose(score, hits @ weight / weight.sum())


def test_of_equal_candidates_the_strongest_penalty_and_the_first_width_win():
    strengths, nothing = np.array([1e-2, 1.0, 1e-4]), np.nan
    assert best_candidate(np.array([[0.9, 0.9, 0.9], [0.9, 0.9, 0.9]]), strengths) == (0, 1)
    assert best_candidate(np.array([[0.8, 0.7, 0.9], [0.9, nothing, 0.9]]), strengths) == (1, 0)
    assert best_candidate(np.array([[nothing, 0.1, nothing], [0.0, 0.0, 0.2]]), strengths) == (1, 2)


def test_a_quarter_of_each_class():
    codes = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [400, 120, 30]))
    some, others = (quarter(codes, np.random.RandomState(seed)) for seed in (0, 1))
    assert (np.diff(some) > 0).all()
    assert_array_equal(np.bincount(codes[some]), [100, 50, 30])
    assert set(some) != set(others)


def test_small_strengths_of_linear_machines_keep_small_features():
    """The eigenvalues of products have lost what the singular values hold; one strength of several asks for these."""
    rng = np.random.default_rng(0)
    rows = np.c_[rng.normal(size=(150, 3)), 1e-8 * IRIS]
    model = ULDMClassifier(alpha=[1e-18, 1.0], kernel="linear", cv=3).fit(rows, SPECIES)
    explicit = cross_val_predict(ULDMClassifier(alpha=1e-18, kernel="linear"), rows, SPECIES, cv=3)
    assert_allclose(model.cv_scores_[0], (explicit == SPECIES).mean())
    assert model.cv_scores_[0] > 0.9


def test_refit_with_one_value_forgets_the_scores():
    model = ULDMClassifier(alpha=[1e-4, 1e-2]).fit(IRIS, SPECIES)
    model.set_params(alpha=1e-3).fit(IRIS, SPECIES)
    assert not hasattr(model, "cv_scores_")
    assert model.alpha_ == 1e-3


# -- large n ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("basis", ["random", "kmeans++", "cholesky"])
def test_basis(basis):
    model = ULDMClassifier(alpha=[1e-6, 1e-3], basis=basis, n_basis=20, random_state=0).fit(IRIS, SPECIES)
    assert model.dual_coef_.shape == (3, 20)
    assert len(model.support_) == 20
    assert model.score(IRIS, SPECIES) > 0.94
    assert model.cv_scores_.max() > 0.93
    full = ULDMClassifier(alpha=1e-3, basis=basis, n_basis=150, random_state=0, gamma=1.0)
    everything = ULDMClassifier(alpha=1e-3, basis="all", gamma=1.0)
    if basis == "random":  # all pairs share all rows: the two-class machine is the same
        two = SPECIES < 2
        assert_allclose(
            full.fit(IRIS[two], SPECIES[two]).decision_function(IRIS),
            everything.fit(IRIS[two], SPECIES[two]).decision_function(IRIS),
            rtol=1e-6,
        )


@pytest.mark.parametrize("basis", ["all", "random", "kmeans++", "cholesky"])
@pytest.mark.parametrize("estimator", [ULDMClassifier(alpha=1e-3), LSSVC()], ids=["uldm", "lssvc"])
def test_a_basis_of_kernel_rows_is_one_of_rows(estimator, basis):
    """Rows of weight 0 are no basis points, repeated rows are no new ones, and there are no more than rows."""
    order = np.random.default_rng(0).permutation(300) // 2
    twice, labels = IRIS[order], SPECIES[order]
    weight = np.where(np.arange(300) % 7 == 0, 0.0, 1.0)
    model = clone(estimator).set_params(gamma=0.5, basis=basis, random_state=0)
    rows = clone(model).fit(twice, labels, sample_weight=weight)
    assert weight[rows.support_].all()
    if basis == "kmeans++":  # which knows distances only
        return
    K = rbf_kernel(twice, gamma=0.5)
    ready = model.set_params(kernel="precomputed").fit(K, labels, sample_weight=weight)
    if basis == "random":  # rounding chooses among repeated rows
        assert_array_equal(ready.support_, rows.support_)
    assert_allclose(ready.decision_function(K), rows.decision_function(twice), atol=1e-5)


def test_automatic_choices_for_large_n(monkeypatch, capsys):
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 60**2}))
    auto = ULDMClassifier(alpha=1e-3, n_basis=30, random_state=0, verbose=1).fit(IRIS, SPECIES)
    assert "basis of 30 random rows" in capsys.readouterr().out
    assert len(auto.support_) == 30
    iterative = ULDMClassifier(alpha=1e-2, basis="all", gamma=0.5, tol=1e-12, verbose=1).fit(IRIS, SPECIES)
    assert "iterative solver" in capsys.readouterr().out
    assert iterative.n_iter_ > 1
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        ULDMClassifier(alpha=1e-8, basis="all", tol=1e-12, max_iter=2).fit(IRIS, SPECIES)
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 6000**2}))
    direct = ULDMClassifier(alpha=1e-2, gamma=0.5).fit(IRIS, SPECIES)
    assert_allclose(iterative.decision_function(IRIS), direct.decision_function(IRIS), atol=1e-6)


@pytest.mark.parametrize("estimator", [ULDMClassifier(), LSSVC()], ids=["uldm", "lssvc"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_iterative_solver_chooses_too(estimator, kernel, monkeypatch, capsys):
    name, values = estimator._strength_name, [1e-2, 1.0, 100.0]
    limits = {"kernel": kernel, "basis": "all", "tol": 1e-12, "verbose": 1}
    gammas = {"gamma": [0.1, 1.0]} if kernel == "rbf" else {}
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 3**2}))
    model = clone(estimator).set_params(**{name: values}, **limits, **gammas).fit(IRIS, SPECIES)
    assert "5 folds instead of leave-one-out" in capsys.readouterr().out
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 6000**2}))
    for (*width, strength), score in np.ndenumerate(model.cv_scores_):
        one = clone(estimator).set_params(kernel=kernel, **{name: values[strength]})
        one.set_params(**{"gamma": gammas["gamma"][width[0]]} if width else {})
        assert_allclose(score, cross_val_score(one, IRIS, SPECIES, cv=5).mean(), atol=1e-12)
    best = {name: getattr(model, f"{name}_"), "gamma": model.gamma_}
    direct = clone(estimator).set_params(kernel=kernel, **best).fit(IRIS, SPECIES)
    assert_allclose(model.decision_function(IRIS), direct.decision_function(IRIS), atol=1e-6)


def test_sparse_linear_machine_forms_nothing_large(monkeypatch):
    rng = np.random.default_rng(0)
    S = sparse.csr_array(rng.random((80, 400)) * (rng.random((80, 400)) < 0.05))
    y = np.arange(80) % 3
    direct = ULDMClassifier(alpha=1e-3, kernel="linear").fit(S, y)
    assert_allclose(
        direct.decision_function(S), clone(direct).fit(S.toarray(), y).decision_function(S.toarray()), rtol=1e-8
    )
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 10**2}))
    iterative = ULDMClassifier(alpha=1e-3, kernel="linear", tol=1e-12).fit(S, y)
    assert iterative.n_iter_ > 1
    assert_allclose(iterative.decision_function(S), direct.decision_function(S), atol=1e-6)


# -- edges ------------------------------------------------------------------------------------------------------------


def test_edges():
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[SPECIES]
    X = IRIS.copy()
    X[0] = 0
    X[1] = X[2]
    X.flags.writeable = False
    for container in (np.asarray, sparse.csr_array, sparse.csr_matrix):
        rows = container(X)
        model = ULDMClassifier(alpha=1e-3).fit(rows, names)
        assert model.score(rows, names) > 0.95
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_allclose(
        ULDMClassifier().fit(wide, names).decision_function(X),
        ULDMClassifier().fit(X, names).decision_function(X),
        rtol=1e-4,
    )
    single = ULDMClassifier(alpha=1e-3).fit(X.astype(np.float32), names)
    f = ULDMClassifier(alpha=1e-3).fit(X, names).decision_function(X)
    assert_allclose(single.decision_function(X.astype(np.float32)), f, atol=1e-3)
    with pytest.raises(ValueError, match="one class"):
        ULDMClassifier().fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="one class"):
        ULDMClassifier().fit(X[:100], SPECIES[:100], sample_weight=(SPECIES[:100] == 0).astype(float))
    with pytest.raises(ValueError, match="NaN"):
        ULDMClassifier().fit(np.where(X == 0, np.nan, X), names)
    corners, labels = np.repeat(np.eye(30), 2, axis=0), np.repeat(np.arange(30), 2)
    assert ULDMClassifier(alpha=1e-2).fit(corners, labels).score(corners, labels) == 1
    many = ULDMClassifier(alpha=1e-2).fit(np.eye(20), np.arange(20))  # one row a class
    assert_array_equal(many.predict(np.eye(20)), np.arange(20))


@pytest.mark.parametrize("n_classes", [2, 6])
@pytest.mark.parametrize(
    "estimator",
    [
        ULDMClassifier(alpha=[1e-6, 1e-2], gamma=[0.01, 0.1], cv=5, search="exact"),
        ULDMClassifier(alpha=[1e-12, 1e-6, 1e-2], gamma=[0.01, 0.1, 0.2, 0.3]),
        ULDMClassifier(alpha=1e-9),
        LSSVC(C=[1.0, 10.0], gamma=[0.01, 0.1], search="exact"),
        LDMClassifier(tol=1e-2, random_state=0),
    ],
    ids=["exact", "screened", "one", "lssvc", "ldm"],
)
def test_memory_is_that_of_three_kernel_matrices(estimator, n_classes):
    n = 1200
    X, y = np.random.default_rng(0).normal(size=(n, 8)), np.arange(n) % n_classes
    tracemalloc.start()
    try:
        estimator.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Where Python has no lock it keeps a table for each thread, up to 1 MiB, which is counted too.
    assert peak <= 3.1 * 8 * n**2 + 2**20


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": [1e-3, 0.0]}, "alpha must be"),
        ({"alpha": [[1e-3]]}, "alpha must be"),
        ({"multi_class": "all"}, "multi_class"),
        ({"kernel": "cosine"}, "kernel"),
        ({"gamma": [0.1, 1.0], "kernel": "linear"}, "several widths"),
        ({"alpha": 0.0}, "singular"),
        ({"kernel": "precomputed"}, "square"),
        ({"kernel": lambda A, B: A[:, :1] + 2 * B[:, :1].T}, "symmetric"),
    ],
)
def test_errors_name_the_parameter(parameters, message):
    with pytest.raises(ValueError, match=message):
        ULDMClassifier(**parameters).fit(IRIS, SPECIES)


def test_precomputed_and_callable_kernels():
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)
    wanted = ULDMClassifier(alpha=1e-3, gamma=0.3).fit(IRIS[train], SPECIES[train]).decision_function(IRIS[test])
    K = rbf_kernel(IRIS, gamma=0.3)
    weight = np.ones(len(train))
    ready = ULDMClassifier(alpha=1e-3, kernel="precomputed").fit(K[np.ix_(train, train)], SPECIES[train], weight)
    assert_allclose(ready.decision_function(K[np.ix_(test, train)]), wanted, rtol=1e-6)
    function = ULDMClassifier(alpha=1e-3, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3))
    assert_allclose(function.fit(IRIS[train], SPECIES[train]).decision_function(IRIS[test]), wanted, rtol=1e-6)
    weight[::5] = 0
    some = ULDMClassifier(alpha=1e-3, kernel="precomputed").fit(K[np.ix_(train, train)], SPECIES[train], weight)
    kept = train[weight > 0]
    wanted = ULDMClassifier(alpha=1e-3, gamma=0.3).fit(IRIS[kept], SPECIES[kept]).decision_function(IRIS[test])
    assert_allclose(some.decision_function(K[np.ix_(test, train)]), wanted, rtol=1e-6)
    chosen = ULDMClassifier(alpha=[1e-4, 1e-2], kernel="precomputed").fit(K, SPECIES)
    assert chosen.cv_scores_.shape == (2,)


def test_threads_give_the_same_bits():
    one = ULDMClassifier(alpha=[1e-5, 1e-3], gamma=[0.1, 1.0], cv=3).fit(IRIS, SPECIES)
    two = ULDMClassifier(alpha=[1e-5, 1e-3], gamma=[0.1, 1.0], cv=3, n_jobs=2).fit(IRIS, SPECIES)
    assert_array_equal(one.cv_scores_, two.cv_scores_)
    assert_array_equal(one.dual_coef_, two.dual_coef_)
