"""Measures of the experiments against fits and sums done by hand."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, LinearSVC

from skmargin import M3SVC, FuzzyPairwiseClassifier, LpNormSVC, MultiMarginSVC, SemiSupervisedMarginSVC, ULDMClassifier
from skmargin.comparison import Model
from skmargin.experiments import Protocol
from skmargin.experiments import _curves as curves
from skmargin.experiments import _measures as measures
from skmargin.experiments._spec import in_units
from skmargin.solvers.multi_margin.svrg import first_step

X, Y = load_iris(return_X_y=True)
TRAIN, TEST = np.arange(0, 150, 2), np.arange(1, 150, 2)
FRONT = MinMaxScaler().fit(X[TRAIN])
ROWS, HELD = FRONT.transform(X[TRAIN]), FRONT.transform(X[TEST])


def measure(function, estimator, grid=None, *, name="model", protocol=None, X=X, y=Y, train=TRAIN, test=TEST, seed=0):
    method = Model(name, "", estimator, grid or {})
    return function(method, protocol or Protocol(folds=3), "unit", X, y, train, test, seed)


def values(records, quantity):
    return [record["value"] for record in records if record["quantity"] == quantity]


def test_shares_of_margins_are_counted_in_units_of_their_mean_size():
    records = measure(measures.margin_histogram, LogisticRegression(C=100.0), {"C": (100.0,)})
    scores = LogisticRegression(C=100.0).fit(ROWS, Y[TRAIN]).decision_function(HELD)
    own = scores[np.arange(len(TEST)), Y[TEST]]
    others = np.where(np.arange(3) == Y[TEST][:, None], -np.inf, scores).max(axis=1)
    margin = (own - others) / np.abs(own - others).mean()
    assert (margin < 0).any()
    bins = [record["x"] for record in records if record["quantity"] == "margin"]
    np.testing.assert_allclose(bins, np.arange(-3.0, 2.9, 0.2), atol=1e-12)
    expected = [np.mean((margin >= low) & (margin < low + 0.2)) for low in bins]
    np.testing.assert_allclose(values(records, "margin"), expected)
    assert values(records, "margin variance") == pytest.approx([margin.var()])
    assert values(records, "negative margins") == [np.mean(margin <= 0)]


def test_margins_beyond_the_last_bins_are_counted_in_them():
    far = np.r_[np.zeros(50), np.full(25, 0.4), np.full(24, 0.6), 100.0][:, None]  # one row far from all others
    y = np.repeat([0, 1], 50)
    records = measure(measures.margin_histogram, LogisticRegression(), {"C": (1.0,)}, X=far, y=y, train=np.arange(99),
                      test=np.arange(100))  # fmt: skip
    assert values(records, "margin")[-1] == 0.01 and sum(values(records, "margin")) == pytest.approx(1)


def test_time_of_an_iteration_is_that_of_the_fit_over_their_mean_number():
    whole, one = measure(curves.seconds, M3SVC())
    n_iter = M3SVC().fit(ROWS, Y[TRAIN]).n_iter_
    assert n_iter > 1 and one["value"] * n_iter == pytest.approx(whole["value"])
    machine = FuzzyPairwiseClassifier(LinearSVC(random_state=0))
    whole, one = measure(curves.seconds, machine)
    n_iter = np.mean([np.max(part.n_iter_) for part in machine.fit(ROWS, Y[TRAIN]).estimators_])
    assert one["value"] * n_iter == pytest.approx(whole["value"])


def test_sweep_has_one_score_on_the_test_rows_for_each_value():
    records = measure(curves.sweep, KNeighborsClassifier(), {"n_neighbors": (1, 60, 74)})
    assert [record["x"] for record in records] == [1, 60, 74]
    alone = [KNeighborsClassifier(k).fit(ROWS, Y[TRAIN]).score(HELD, Y[TEST]) for k in (1, 60, 74)]
    assert values(records, "accuracy") == alone and len(set(alone)) == 3


def test_iterations_end_when_the_fit_does():
    machine = M3SVC(tol=1e-8)
    n_iter = M3SVC(tol=1e-8).fit(ROWS, Y[TRAIN]).n_iter_
    records = measure(curves.iterations, machine)
    counts = [record["x"] for record in records if record["quantity"] == "objective"]
    assert counts[:3] == [1, 2, 5] and counts[-2] <= n_iter < counts[-1]
    for n, objective, score in zip(counts, values(records, "objective"), values(records, "accuracy"), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            alone = M3SVC(tol=1e-8, max_iter=n).fit(ROWS, Y[TRAIN])
        assert objective == pytest.approx(alone.objective_) and score == alone.score(HELD, Y[TEST])


def rises(objective):
    """Whether an objective was once more than 5 % above its least before."""
    return (objective[1:] > 1.05 * np.minimum.accumulate(objective)[:-1]).any()


@pytest.mark.parametrize("name", ["SVRG", "SGD, constant", "SGD, decreasing"])
def test_suboptimality_is_relative_to_the_optimum(name):
    records = measure(curves.suboptimality, MultiMarginSVC(), name=name)
    best = MultiMarginSVC(C=1.0, tol=1e-9).fit(ROWS, Y[TRAIN]).objective_
    found = np.array([record["value"] for record in records])
    assert [record["x"] for record in records] == list(range(41))
    assert found[0] == pytest.approx(2 * len(TRAIN) / best - 1, rel=1e-5)  # of the machine that is zero
    assert found.min() > -1e-6
    assert not rises(1 + found)
    factor = float(records[0]["params"].removeprefix("step="))
    assert factor < 64  # the largest of the ladder
    decay = {"SVRG": None, "SGD, constant": 0.0, "SGD, decreasing": 1.0}[name]
    cap = np.ones(len(TRAIN))
    step = 4 * factor * first_step(ROWS, cap, 3)
    assert rises(curves._epochs(ROWS, Y[TRAIN].astype(np.int32), cap, 3, step, 0, decay=decay))


@pytest.mark.parametrize("decay", [0.0, 1.0])
def test_stochastic_gradients_are_those_of_the_papers_objective(decay):
    """Where all rows are the same it does not matter which of them is drawn."""
    x, n, k = np.array([0.3, 0.8]), 3, 3
    W, b, expected = np.zeros((k, 2)), np.zeros(k), []
    for t in range(40 * n + 1):
        hinges = np.maximum(0, 1 - W[2] @ x - b[2] + W @ x + b) * [1, 1, 0]
        if t % n == 0:
            apart = sum(np.sum((W[i] - W[j]) ** 2) for i, j in ((0, 1), (0, 2), (1, 2)))
            expected.append(0.5 * (apart + np.sum(W**2) + np.sum(b**2)) + n * hinges.sum())
        slope = np.r_[hinges[:2] > 0, -np.sum(hinges > 0)].astype(float)
        step = 0.02 / (1 + decay * t / n)
        W, b = W - step * ((k + 1) * W - W.sum(axis=0) + n * np.outer(slope, x)), b - step * (b + n * slope)
    rows, y = np.tile(x, (n, 1)), np.full(n, 2, dtype=np.int32)
    np.testing.assert_allclose(curves._epochs(rows, y, np.ones(n), k, 0.02, 0, decay=decay), expected)


seen = []


class Shown:
    """Remembers the labels that it is fitted with."""

    def fit(self, X, y):
        seen.append((len(X), y))
        return super().fit(X, y)


class Nearest(Shown, KNeighborsClassifier):
    pass


class Spreading(Shown, LabelSpreading):
    pass


@pytest.mark.parametrize("seed", [0, 1])
def test_one_label_in_twenty_is_shown_and_one_of_every_class(seed):
    digits, labels = load_digits(return_X_y=True)
    labels = np.where(np.arange(len(labels)) == 7, 10, labels)  # a class of one row
    train, test = np.arange(1500), np.arange(1500, len(labels))
    data = {"X": digits, "y": labels, "train": train, "test": test, "seed": seed}
    seen.clear()
    measure(curves.few_labels, Nearest(1), **data)
    (record,) = measure(curves.few_labels, Spreading(kernel="knn", n_neighbors=7), **data)
    (n_rows, few), (n_all, hidden) = seen
    shown = np.flatnonzero(hidden >= 0)
    assert n_rows == len(few) == len(shown) and n_all == 1500
    assert 50 < len(shown) < 105 and set(few) == set(range(11))
    np.testing.assert_array_equal(hidden[shown], labels[train][shown])
    np.testing.assert_array_equal(few, labels[train][shown])
    front = MinMaxScaler().fit(digits[train])
    model = LabelSpreading(kernel="knn", n_neighbors=7).fit(front.transform(digits[train]), hidden)
    assert record["value"] == np.mean(model.predict(front.transform(digits[test])) == labels[test])


def test_other_divisions_show_other_labels():
    seen.clear()
    for seed in (0, 0, 1):
        measure(curves.few_labels, Spreading(kernel="knn"), seed=seed)
    np.testing.assert_array_equal(seen[0][1], seen[1][1])
    assert (seen[0][1] != seen[2][1]).any()


@pytest.mark.parametrize(("name", "n"), [("25 + 25 rows", 25), ("25 + 10 rows", 10)])
def test_lines_of_abe(name, n):
    """The second and third class of iris by length and width of the petals; the last 25 rows of each for the test."""
    records = measure(curves.boundary, ULDMClassifier(kernel="linear"), {"alpha": (1e-6, 0.1)}, name=name)
    petals = MinMaxScaler().fit_transform(X[:, 2:])
    train, test = np.r_[50:75, 100 : 100 + n], np.r_[75:100, 125:150]
    for alpha in (1e-6, 0.1):
        model = ULDMClassifier(kernel="linear", alpha=alpha).fit(petals[train], Y[train])
        found = {record["quantity"]: record["value"] for record in records if record["x"] == alpha}
        assert found["accuracy"] == model.score(petals[test], Y[test])
        line = petals[test] @ [found["w1"], found["w2"]] + found["b"]
        np.testing.assert_allclose(line, model.decision_function(petals[test]), atol=1e-9)
    assert {(record["n_train"], record["n_test"]) for record in records} == {(25 + n, 50)}


def test_scaling():
    rows = np.array([[-2.0, 5.0], [0.0, 7.0], [2.0, 15.0]])
    np.testing.assert_array_equal(measures.scaler(rows, "none").fit_transform(rows), rows)
    unit = [[0, 0], [0.5, 0.2], [1, 1]]
    np.testing.assert_allclose(measures.scaler(rows, "unit").fit_transform(rows), unit)
    scaled = measures.scaler(rows, "unit / sqrt(m)").fit_transform(rows)
    np.testing.assert_allclose(scaled, np.array(unit) / np.sqrt(2))
    kept = measures.scaler(sparse.csr_array(rows), "unit").fit_transform(sparse.csr_array(rows))
    np.testing.assert_allclose(kept.toarray(), rows / [2, 15])


@pytest.mark.parametrize(("folds", "seed"), [(2, 0), (2, 1), (5, 0), (5, 3)])
def test_parameters_are_those_of_a_grid_search_on_the_training_rows(folds, seed):
    y = (X[:, 0] + np.random.default_rng(0).normal(size=150) > 6).astype(int)
    values = tuple(range(10, 34))
    protocol = Protocol(folds=folds)
    (record,) = measure(
        measures.accuracy, KNeighborsClassifier(), {"n_neighbors": values}, protocol=protocol, y=y, seed=seed
    )
    pipeline = Pipeline([("scale", MinMaxScaler()), ("knn", KNeighborsClassifier())])
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    search = GridSearchCV(pipeline, {"knn__n_neighbors": list(values)}, cv=cv).fit(X[TRAIN], y[TRAIN])
    assert record["params"] == f"n_neighbors={search.best_params_['knn__n_neighbors']}"
    assert record["value"] == search.score(X[TEST], y[TEST])


def test_fits_that_did_not_end_are_marked():
    records = measure(curves.sweep, LogisticRegression(), {"max_iter": (1, 1000)})
    assert [record["status"] for record in records] == ["not converged", "ok"]


def test_parameters_as_given_are_those_of_the_estimator_or_the_only_ones_of_the_grid():
    front = MinMaxScaler().fit(X[TRAIN])
    for grid, n in ((None, 5), ({"n_neighbors": (60,)}, 60)):
        (record,) = measure(measures.as_given, KNeighborsClassifier(), grid)
        model = KNeighborsClassifier(n).fit(front.transform(X[TRAIN]), Y[TRAIN])
        assert record["value"] == model.score(front.transform(X[TEST]), Y[TEST])


def test_machines_that_start_at_random_start_elsewhere_in_another_division():
    adam = M3SVC(solver="adam", init="random", batch_size=None, max_iter=1)
    ends = {measure(measures.as_given, adam, seed=seed)[0]["value"] for seed in range(6)}
    assert len(ends) > 1
    assert measure(measures.as_given, adam, seed=3)[0]["value"] in ends


def test_accuracy_on_the_training_rows_for_each_point_of_the_grid():
    records = measure(measures.ceiling, KNeighborsClassifier(), {"n_neighbors": (1, 74)})
    assert [record["x"] for record in records] == [0, 1]
    assert values(records, "training accuracy")[0] == 1.0 > values(records, "training accuracy")[1]


def test_best_of_folds_is_the_best_score_of_a_grid_search_on_all_rows():
    protocol = Protocol(folds=4)
    (record,) = measure(measures.best_of_folds, KNeighborsClassifier(), {"n_neighbors": (1, 9)}, protocol=protocol)
    pipeline = Pipeline([("scale", MinMaxScaler()), ("model", KNeighborsClassifier())])
    rows = np.sort(np.r_[TRAIN, TEST])
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, {"model__n_neighbors": (1, 9)}, cv=folds).fit(X[rows], Y[rows])
    assert record["value"] == pytest.approx(search.best_score_)


def test_parameters_in_turn_end_on_the_fine_grid():
    machine = LpNormSVC(fit_intercept=False, random_state=0)
    grid = {"C": (0.01, 1.0, 100.0), "p": (1.2, 1.7, 2.2)}
    (record,) = measure(measures.in_turn, machine, grid, protocol=Protocol(folds=3))
    chosen = dict(word.split("=") for word in record["params"].split())
    C, p = float(chosen["C"]), float(chosen["p"])
    assert C in grid["C"] and 1.2 <= p <= 2.6 and round(10 * (p - 1.2), 6) == round(10 * (p - 1.2))
    front = MinMaxScaler().fit(X[TRAIN])
    model = clone(machine).set_params(C=C, p=p).fit(front.transform(X[TRAIN]), Y[TRAIN])
    assert record["value"] == pytest.approx(model.score(front.transform(X[TEST]), Y[TEST]))


def test_width_of_kernels_is_tuned():
    method = Model("rbf", "", SVC(), {"C": (1.0,)}, widths=(0.001, 1.0))
    (record,) = measures.accuracy(method, Protocol(folds=3), "unit", X, Y, TRAIN, TEST, 0)
    assert record["params"] == "C=1 width=1"
    front = MinMaxScaler().fit(X[TRAIN])
    model = SVC(gamma="scale").fit(front.transform(X[TRAIN]), Y[TRAIN])
    assert record["value"] == model.score(front.transform(X[TEST]), Y[TEST])


def test_rows_of_length_one():
    rows = np.array([[3.0, 4.0], [0.0, 2.0]])
    np.testing.assert_allclose(measures.scaler(rows, "length").fit_transform(rows), [[0.6, 0.8], [0.0, 1.0]])


@pytest.mark.parametrize(("unit", "factor"), [("", 1), ("1 / m", 1 / 50), ("1 / (k + 1)", 1 / 4)])
def test_strength_in_units(unit, factor):
    method = Model("a", "", LinearSVC(), {"C": (1.0, 4.0), "estimator__C": (2.0,), "p": (1.2,)})
    grid = in_units(method, unit, 50, 3).grid
    assert grid == {"C": (factor, 4 * factor), "estimator__C": (2 * factor,), "p": (1.2,)}


def test_published_alternation_is_at_the_optimum_below_two_and_far_above_it_for_a_large_p():
    machine = LpNormSVC(solver="paper", fit_intercept=False, random_state=0)
    records = measure(curves.above_optimum, machine, {"p": (1.5, 8.0)})
    below, above = values(records, "above optimum")
    assert abs(below) < 2e-3 < 0.05 < above


def test_rounds_end_at_the_objective():
    machine = SemiSupervisedMarginSVC(C_unlabeled="even", random_state=0)
    found = values(measure(curves.rounds, machine), "above the end")
    assert found[-1] == 0 and found[0] == max(found)
    assert all(after <= before + 1e-3 for before, after in itertools.pairwise(found))
