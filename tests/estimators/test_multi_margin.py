"""MultiMarginSVC and SemiSupervisedMarginSVC against cvxpy, against each other and against what the paper says."""

import itertools
import time
import warnings

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import MultiMarginSVC, SemiSupervisedMarginSVC, WestonWatkinsSVC
from skmargin.solvers.multi_margin.exact import solve_multi_margin
from skmargin.solvers.multi_margin.half_steps import DualSteps
from skmargin.solvers.multi_margin.labels import (
    balanced_labels,
    cheapest_labels,
    label_losses,
    likely_shares,
    whole_counts,
)
from skmargin.solvers.multi_margin.semi_supervised import solve_semi_supervised
from skmargin.solvers.tuning import DEFAULT


@parametrize_with_checks(
    [
        MultiMarginSVC(),
        MultiMarginSVC(kernel="rbf"),
        SemiSupervisedMarginSVC(),
        SemiSupervisedMarginSVC(balance=False),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


def toy(n=40, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


def pairwise_machine(X, y, C, weight=None, pair=0.5, ridge=0.5, bias=0.5, margin=1.0, centred=False):
    """min pair sum ||w_j - w_l||^2 + ridge ||W||^2 + bias ||b||^2 + C sum of hinges: section 4 of Xu et al."""
    n, k = len(y), y.max() + 1
    weight = np.ones(n) if weight is None else weight
    W, b = cp.Variable((X.shape[1], k)), cp.Variable(k)
    E = np.eye(k)[y]
    F = X @ W + np.ones((n, 1)) @ cp.reshape(b, (1, k), order="C")
    own = cp.sum(cp.multiply(F, E), axis=1, keepdims=True)
    hinge = cp.sum(cp.multiply(cp.pos(margin - own @ np.ones((1, k)) + F), (1 - E) * weight[:, None]))
    pairs = sum(cp.sum_squares(W[:, j] - W[:, l]) for j in range(k) for l in range(j + 1, k))
    objective = pair * pairs + ridge * cp.sum_squares(W) + bias * cp.sum_squares(b) + C * hinge
    constraints = [cp.sum(W, axis=1) == 0, cp.sum(b) == 0] if centred else []
    problem = cp.Problem(cp.Minimize(objective), constraints)
    value = problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return value, W.value.T, b.value


@pytest.mark.parametrize(("k", "C"), [(2, 1.0), (3, 10.0), (5, 0.1)])
def test_optimum_is_that_of_cvxpy(k, C):
    X, y = toy(36, 4, k, seed=k)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y))
    best, W, b = pairwise_machine(X, y, C, weight)
    for rows in (X, sparse.csr_array(X)):
        clf = MultiMarginSVC(C=C, tol=1e-9).fit(rows, y, weight)
        assert clf.objective_ == pytest.approx(best, rel=1e-6)
        assert 0 <= clf.dual_gap_ <= 1e-9
        np.testing.assert_allclose(clf.coef_, W if k > 2 else W[1:] - W[:1], atol=1e-3)
        np.testing.assert_allclose(clf.intercept_, b if k > 2 else b[1:] - b[:1], atol=1e-3)


def test_it_is_weston_watkins_with_a_constant_feature():
    X, y = toy(60, 4, 4)
    C, k = 2.0, 4
    ours = MultiMarginSVC(C=C, tol=1e-9).fit(X, y)
    rows = np.c_[X, np.full(len(y), np.sqrt(k + 1))]
    ww = WestonWatkinsSVC(C=C / (k + 1), fit_intercept=False, tol=1e-9).fit(rows, y)
    assert ours.objective_ == pytest.approx((k + 1) * ww.objective_, rel=1e-8)
    np.testing.assert_allclose(ours.decision_function(X), ww.decision_function(rows), atol=1e-4)


def test_machines_of_section_4_after_rescaling():
    """Guermeur, Bredensteiner-Bennett and Weston-Watkins with margin 2 are the machine without the penalty of b."""
    X, y = toy(24, 3, 3, seed=5)
    C, k = 1.5, 3
    value, W, _ = pairwise_machine(X, y, C, bias=0.0)
    bredensteiner, *_ = pairwise_machine(X, y, C, bias=0.0, centred=True)
    assert bredensteiner == pytest.approx(value, rel=1e-7)
    guermeur, G, _ = pairwise_machine(X, y, C * k / (k + 1), ridge=0.0, bias=0.0, centred=True)
    np.testing.assert_allclose(G, W, atol=1e-4)
    assert guermeur == pytest.approx(value * k / (k + 1), rel=1e-6)
    ww = WestonWatkinsSVC(C=C / (k + 1), tol=1e-9).fit(X, y)
    assert (k + 1) * ww.objective_ == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(ww.coef_, W, atol=1e-4)
    doubled, V, _ = pairwise_machine(X, y, 2 * C / (k + 1), pair=0.0, bias=0.0, margin=2.0)
    np.testing.assert_allclose(V, 2 * W, atol=1e-3)
    assert doubled == pytest.approx(4 * value / (k + 1), rel=1e-6)


def test_kernels_penalise_the_intercept_too():
    X, y = toy(36, 4, 4, seed=3)
    factor = np.linalg.cholesky(rbf_kernel(X, gamma=0.3) + 1e-12 * np.eye(len(y)))
    best, W, b = pairwise_machine(factor, y, 2.0)
    clf = MultiMarginSVC(C=2.0, kernel="rbf", gamma=0.3, tol=1e-8).fit(X, y)
    assert clf.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(clf.decision_function(X), factor @ W.T + b, atol=2e-3)
    given = MultiMarginSVC(C=2.0, kernel="precomputed", tol=1e-8).fit(rbf_kernel(X, gamma=0.3), y)
    assert given.objective_ == pytest.approx(best, rel=1e-6)
    linear = MultiMarginSVC(C=2.0, tol=1e-8).fit(X, y)
    gram = MultiMarginSVC(C=2.0, tol=1e-8, kernel="precomputed").fit(X @ X.T, y)
    assert gram.objective_ == pytest.approx(linear.objective_, rel=1e-7)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_repetitions_and_warm_starts_help(kernel):
    X, y = toy(60, 4, 3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    base = MultiMarginSVC(tol=1e-8, kernel=kernel, class_weight="balanced", random_state=0)
    weighted = clone(base).fit(X, y, sample_weight=times)
    repeated = clone(base).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-7)
    X, y = load_digits(return_X_y=True)
    clf = MultiMarginSVC(C=0.3, warm_start=True, kernel=kernel, random_state=0).fit(X / 16, y)
    first = clf.n_iter_
    assert clf.set_params(C=0.2).fit(X / 16, y).n_iter_ < first
    assert clf.objective_ == pytest.approx(clone(clf).fit(X / 16, y).objective_, rel=2e-3)


def test_a_warm_start_of_svrg_forgets_the_intercept():
    X, y = load_iris(return_X_y=True)
    clf = MultiMarginSVC(C=0.01, solver="svrg", tol=0.1, warm_start=True, random_state=0).fit(X, y)
    clf.set_params(fit_intercept=False).fit(X, y)
    assert not clf.intercept_.any()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_svrg_comes_near_the_optimum_and_never_rises(container):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    exact = MultiMarginSVC(C=0.1, tol=1e-6).fit(X, y)
    svrg = MultiMarginSVC(C=0.1, solver="svrg", random_state=0).fit(container(X), y)
    assert svrg.dual_gap_ <= 1e-3
    assert exact.objective_ * (1 - 1e-6) <= svrg.objective_ <= 1.001 * exact.objective_
    assert len(svrg.trajectory_) == svrg.n_iter_ + 1
    assert (np.diff(svrg.trajectory_) <= 0).all()
    assert svrg.trajectory_[-1] == pytest.approx(svrg.objective_, rel=1e-12)
    W, b = svrg.coef_, svrg.intercept_
    F = X @ W.T + b
    hinge = np.maximum(0, 1 - F[np.arange(len(y)), y][:, None] + F).sum() - len(y)
    pairs = sum(((W[j] - W[l]) ** 2).sum() for j in range(3) for l in range(j + 1, 3))
    assert 0.5 * (pairs + (W**2).sum() + (b**2).sum()) + 0.1 * hinge == pytest.approx(svrg.objective_, rel=1e-9)
    again = MultiMarginSVC(C=0.1, solver="svrg", random_state=0).fit(container(X), y)
    assert np.array_equal(again.coef_, W)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        MultiMarginSVC(solver="svrg", max_iter=2).fit(X, y)
    with pytest.raises(ValueError, match="solver='svrg' needs kernel='linear'"):
        MultiMarginSVC(solver="svrg", kernel="rbf").fit(X, y)
    assert not hasattr(again.set_params(solver="dual").fit(X, y), "trajectory_")


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_the_gap_of_svrg_holds_and_tells_where_it_stalls(k, intercept, container):
    X, y = load_iris(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[y < k], y[y < k]
    X[: len(y) // 2] += 0.5
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    for C in (1e-3, 0.1, 10.0):
        exact = MultiMarginSVC(C, tol=1e-7, fit_intercept=intercept).fit(X, y, sample_weight=weight)
        svrg = MultiMarginSVC(C, solver="svrg", fit_intercept=intercept, random_state=0)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            svrg.fit(container(X), y, sample_weight=weight)
        excess = 1 - exact.objective_ / svrg.objective_
        assert excess <= svrg.dual_gap_ + 1e-6
        assert svrg.dual_gap_ <= 10 * excess + 5e-3  # and it is not far from the truth
        assert bool(told) == (svrg.dual_gap_ > 1e-3)
    assert any("relative duality gap" in str(one.message) for one in told) == (excess > 1e-3)


@pytest.mark.filterwarnings("ignore:MultiMarginSVC stopped")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_svrg_knows_C_and_the_weights(container, intercept):
    X, y = load_iris(return_X_y=True)
    X, weight = StandardScaler().fit_transform(X), np.random.default_rng(0).uniform(0.1, 3, len(y))
    settings = {"C": 0.2, "fit_intercept": intercept, "random_state": 0}
    svrg = MultiMarginSVC(solver="svrg", **settings).fit(container(X), y, sample_weight=weight)
    exact = MultiMarginSVC(tol=1e-6, **settings).fit(X, y, sample_weight=weight)
    F = X @ svrg.coef_.T + svrg.intercept_
    penalty = 0.5 * (4 * np.square(svrg.coef_).sum() - np.square(svrg.coef_.sum(axis=0)).sum())
    value = penalty + 0.5 * np.square(svrg.intercept_).sum() + 0.2 * weight @ label_losses(F)[np.arange(150), y]
    assert svrg.objective_ == pytest.approx(value, rel=1e-9)
    assert exact.objective_ * (1 - 1e-6) <= svrg.objective_ <= 1.01 * exact.objective_


def hide(y, share, seed):
    rng = np.random.default_rng(seed)
    shown = rng.random(len(y)) < share
    shown[np.unique(y, return_index=True)[1]] = True
    return np.where(shown, y, -1), shown


def test_without_unlabelled_rows_it_is_the_supervised_machine():
    X, y = load_iris(return_X_y=True)
    ours, theirs = SemiSupervisedMarginSVC(C=3, random_state=0).fit(X, y), MultiMarginSVC(C=3, random_state=0).fit(X, y)
    assert np.array_equal(ours.coef_, theirs.coef_) and ours.objective_ == pytest.approx(theirs.objective_, rel=1e-12)
    assert np.array_equal(ours.transduction_, y) and not ours.labeled_iter_.any()


@pytest.mark.parametrize("balance", [True, np.False_])
@pytest.mark.parametrize("C_unlabeled", ["auto", "even", 0.02])
def test_semi_supervised_objective_never_rises_in_a_stage(balance, C_unlabeled):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    partly, shown = hide(y, 0.1, 0)
    clf = SemiSupervisedMarginSVC(C_unlabeled=C_unlabeled, balance=balance, random_state=0).fit(
        sparse.csr_array(X), partly
    )
    for stage in (0.01, 0.1, 1.0):
        values = clf.trajectory_[clf.trajectory_[:, 0] == stage, 1]
        assert len(values) >= 1 and (np.diff(values) <= 0).all()
    assert np.array_equal(clf.transduction_[shown], y[shown])
    assert (clf.labeled_iter_[shown] == 0).all() and (clf.labeled_iter_[~shown] >= 1).all()
    # The objective is that of the published machine and the published labels.
    F, k = X @ clf.coef_.T + clf.intercept_, 10
    hinge = np.maximum(0, 1 - F[np.arange(len(y)), clf.transduction_][:, None] + F).sum(axis=1) - 1
    named = {"even": shown.sum() / (~shown).sum(), "auto": 1 / (~shown).sum()}
    cost = np.where(shown, 1.0, named.get(C_unlabeled, C_unlabeled))
    penalty = 0.5 * ((k + 1) * (clf.coef_**2).sum() + (clf.intercept_**2).sum())
    assert penalty + cost @ hinge == pytest.approx(clf.objective_, rel=1e-6)
    if balance:
        least, most = likely_shares(np.bincount(y[shown], minlength=k).astype(float), (~shown).sum())
        shares = np.bincount(clf.transduction_[~shown], minlength=k) / (~shown).sum()
        assert (shares >= least - 2 / len(y)).all() and (shares <= most + 2 / len(y)).all()
        given = clone(clf).set_params(balance=np.arange(1, 11)).fit(X, partly)
        wanted = whole_counts(np.arange(1.0, 11), (~shown).sum())
        assert np.array_equal(np.bincount(given.transduction_[~shown], minlength=k), wanted)
    else:
        assert (clf.transduction_[~shown] == clf.predict(X[~shown])).mean() > 0.99


@pytest.mark.parametrize("C_unlabeled", ["auto", "even", 0.02])
def test_semi_supervised_weights_are_repetitions(C_unlabeled):
    X, y = load_iris(return_X_y=True)
    partly, _ = hide(y, 0.2, 0)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    clf = SemiSupervisedMarginSVC(C_unlabeled=C_unlabeled, balance=False, tol=1e-8, random_state=0)
    weighted = clone(clf).fit(X, partly, sample_weight=times)
    repeated = clone(clf).fit(np.repeat(X, times, axis=0), np.repeat(partly, times))
    np.testing.assert_allclose(weighted.trajectory_, repeated.trajectory_, rtol=1e-6)
    np.testing.assert_array_equal(np.repeat(weighted.transduction_, times), repeated.transduction_)


def test_balance_is_of_weights():
    X, y = load_iris(return_X_y=True)
    partly, shown = hide(y, 0.2, 0)
    heavy = np.where(y == 0, 9.0, 1.0) * np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    mass = heavy[~shown]
    given = SemiSupervisedMarginSVC(balance=[1, 1, 1], random_state=0).fit(X, partly, sample_weight=heavy)
    share = np.bincount(given.transduction_[~shown], mass, 3) / mass.sum()
    assert np.abs(share - 1 / 3).max() <= max(0.01, mass.max() / mass.sum()) + 1e-9
    heavy[~shown] = 1.0  # the shares are those of the labelled rows, whose weights say that two classes are rare
    likely = SemiSupervisedMarginSVC(random_state=0).fit(X, partly, sample_weight=heavy)
    least, _ = likely_shares(np.bincount(y[shown], heavy[shown]), float((~shown).sum()))
    assert np.mean(likely.transduction_[~shown] == 0) >= least[0] - 1 / (~shown).sum() > 0.6


@pytest.mark.parametrize(("stages", "rounds"), [((0.1,), 20), ((1.0,), 1), ((0.01, 0.1, 1.0), 2)])
@pytest.mark.parametrize(("tol", "seed"), [(0.3, 0), (0.3, 1), (1e-3, 0)])
def test_objective_and_gap_belong_to_the_labels_found(stages, rounds, tol, seed):
    """Also where the rounds end early, and where a rough machine is worse than the one before it."""
    tuning = DEFAULT.changed(multi_margin={"rounds": rounds})
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 120).astype(np.int32)
    X = rng.normal(size=(3, 2))[y] + rng.normal(size=(120, 2))
    partly = np.where(np.arange(120) < 12, y, -1).astype(np.int32)
    steps = DualSteps(X, 3, tol=tol, tuning=tuning)
    found = solve_semi_supervised(steps, partly, np.ones(120), None, stages=stages, tuning=tuning)
    cap = np.where(partly < 0, stages[-1], 1.0)
    F = X @ found.machine.W.T + found.machine.b
    penalty = 0.5 * (4 * np.square(found.machine.W).sum() + np.square(found.machine.b).sum())
    value = penalty + cap @ label_losses(F)[np.arange(120), found.labels]
    best = solve_multi_margin(X, found.labels.astype(np.int32), cap, 3, tol=1e-9).objective
    assert found.machine.objective == pytest.approx(value, rel=1e-9)
    assert found.machine.objective <= found.trajectory[-1, 1] * (1 + 1e-12)
    assert (1 - tol) * found.machine.objective <= found.machine.bound <= best * (1 + 1e-9)


def test_rounds_that_gave_the_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = 2 * rng.normal(size=(3, 2))[y] + rng.normal(size=(150, 2))
    shown = np.arange(150) < 6
    clf = SemiSupervisedMarginSVC(C_unlabeled=1.0, balance=False, random_state=0).fit(X, np.where(shown, y, -1))
    first = MultiMarginSVC(random_state=0).fit(X[shown], y[shown]).predict(X)
    changed = (clf.transduction_ != first) & ~shown
    assert changed.any() and (clf.labeled_iter_[changed] > 1).all()
    assert (clf.labeled_iter_[~shown] == 1).any() and (clf.labeled_iter_[shown] == 0).all()


def test_unlabelled_rows_help_where_the_classes_are_clouds():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 200)
    X = np.array([[0, 0], [6, 0], [0, 6]])[y] + rng.normal(size=(600, 2))
    partly = np.full(600, -1)
    first = [0, 200, 400]
    partly[first] = y[first]
    X[first] += [[1.9, 1.9], [-1.5, 1.5], [1.5, -1.5]]  # one unlucky labelled row for each class
    supervised = MultiMarginSVC().fit(X[first], y[first]).score(X, y)
    clf = make_pipeline(StandardScaler(), SemiSupervisedMarginSVC(C_unlabeled=0.1)).fit(X, partly)
    assert clf.score(X, y) > max(supervised, 0.98)


def test_semi_supervised_labels():
    X, y = load_iris(return_X_y=True)
    partly, shown = hide(y, 0.2, 1)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    names[~shown] = -1
    clf = SemiSupervisedMarginSVC(random_state=0).fit(X, names)
    same = SemiSupervisedMarginSVC(random_state=0).fit(X, partly)
    assert np.array_equal(clf.coef_, same.coef_)
    assert set(clf.transduction_) == set(clf.classes_)
    weight = np.ones(len(y))
    weight[[3, 77]] = 0
    removed = SemiSupervisedMarginSVC(random_state=0).fit(X, partly, sample_weight=weight)
    frame = pd.DataFrame(X, columns=list("abcd"))  # its rows are predicted without a warning that they have no names
    named = SemiSupervisedMarginSVC(random_state=0).fit(frame, partly, sample_weight=weight)
    assert np.array_equal(named.transduction_, removed.transduction_)
    kept = weight > 0
    same = SemiSupervisedMarginSVC(random_state=0).fit(X[kept], partly[kept])
    assert np.array_equal(removed.coef_, same.coef_)
    assert (removed.labeled_iter_[~kept & (partly < 0)] == -1).all() and (removed.transduction_ >= 0).all()
    signs = np.where(y == 0, -1, 1)
    assert set(SemiSupervisedMarginSVC().fit(X, signs).classes_) == {-1, 1}
    with pytest.raises(ValueError, match="two classes"):
        SemiSupervisedMarginSVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="got -1 for every row"):
        SemiSupervisedMarginSVC().fit(X, np.full(len(y), -1))
    with pytest.raises(ValueError, match=r"balance must be True, False or one .* for each of the 3 classes"):
        SemiSupervisedMarginSVC(balance=[0.5, 0.5]).fit(X, partly)
    with pytest.raises(ValueError, match=r"balance must be True, False or one .* for each of the 3 classes"):
        SemiSupervisedMarginSVC(balance=["a", "b", "c"]).fit(X, partly)
    with pytest.raises(ValueError, match="'C_unlabeled' parameter"):
        SemiSupervisedMarginSVC(C_unlabeled=-1).fit(X, partly)
    for text in (names.tolist(), pd.Series(names).astype("string")):  # of which NumPy and pandas make strings
        with pytest.raises(ValueError, match="y holds the text '-1'"):
            SemiSupervisedMarginSVC().fit(X, text)
    with pytest.raises(ValueError, match=r"C=1e\+200 times the weights"):
        SemiSupervisedMarginSVC(C=1e200).fit(X, partly)


def test_best_labels():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(300, 4)) * 2
    losses = label_losses(F)
    by_hand = [sum(max(0, 1 - F[7, 2] + F[7, j]) for j in range(4) if j != 2), losses[7, 2]]
    assert by_hand[0] == pytest.approx(by_hand[1])
    assert np.array_equal(losses.argmin(axis=1), F.argmax(axis=1))
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    exact = balanced_labels(losses, np.ones(300), shares, shares)
    assert np.array_equal(np.bincount(exact), [30, 60, 90, 120])
    mass = np.full(300, 1.0)
    mass[0] += 1e-12  # unequal masses: prices
    near = balanced_labels(losses, mass, shares, shares)
    assert np.abs(np.bincount(near) - [30, 60, 90, 120]).max() <= 3
    cost = [losses[np.arange(300), labels].sum() for labels in (exact, near)]
    assert cost[0] <= cost[1] * 1.02 and cost[1] <= cost[0] * 1.02
    least, most = np.array([0.0, 0.2, 0.28, 0.0]), np.array([0.2, 0.4, 1.0, 1.0])
    exact, near = (balanced_labels(losses, m, least, most) for m in (np.ones(300), mass))
    for labels, slack in ((exact, 0), (near, 3)):
        counts = np.bincount(labels, minlength=4)
        assert (counts >= 300 * least - slack - 1e-9).all() and (counts <= 300 * most + slack + 1e-9).all()
    cost = [losses[np.arange(300), labels].sum() for labels in (losses.argmin(axis=1), exact, near)]
    assert cost[0] <= cost[1] and cost[1] <= cost[2] * 1.02
    wide = balanced_labels(losses, np.ones(300), np.zeros(4), np.ones(4))
    assert np.array_equal(wide, losses.argmin(axis=1))


def test_balanced_labels_are_the_cheapest_within_the_bounds():
    rng = np.random.default_rng(0)
    for _ in range(40):
        n, k = rng.integers(1, 7), rng.integers(2, 4)
        losses = label_losses(rng.normal(size=(n, k))[rng.integers(0, n, n)] * rng.choice([0.1, 1, 10]))  # some equal
        labels = np.array(list(itertools.product(range(k), repeat=n)))
        counts = (labels[:, :, None] == np.arange(k)).sum(axis=1)
        low = counts[rng.integers(len(counts))] - rng.integers(0, 2, k)
        high = np.maximum(low, 0) + rng.integers(1, 3, k)
        found = cheapest_labels(losses, np.maximum(low, 0), high)
        allowed = ((counts >= low) & (counts <= high)).all(axis=1)
        assert (low <= np.bincount(found, minlength=k)).all() and (np.bincount(found, minlength=k) <= high).all()
        best = losses[np.arange(n), labels[allowed]].sum(axis=1).min()
        assert losses[np.arange(n), found].sum() == pytest.approx(best)


@pytest.mark.parametrize("seed", [87, 126, 386, 437])
def test_losses_that_differ_by_rounding_have_cheapest_labels(seed):
    """A path turned in a circle for ever."""
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 3, (40, 5)) + 4e-12 * rng.random((40, 5))
    counts = rng.multinomial(40, rng.dirichlet(np.ones(5)))
    found = cheapest_labels(losses, counts, counts)
    assert np.array_equal(np.bincount(found, minlength=5), counts)
    seats = np.repeat(np.arange(5), counts)
    best = losses[:, seats][linear_sum_assignment(losses[:, seats])].sum()
    assert losses[np.arange(40), found].sum() == pytest.approx(best)


@pytest.mark.parametrize("seed", range(10))
def test_cheapest_labels_are_the_optimum_of_a_linear_program(seed):
    """A transport problem has corners in whole numbers; paths that undo earlier moves have steps of negative cost."""
    rng = np.random.default_rng(seed)
    n, k = 30, 6
    losses = rng.exponential(size=(n, k)) + rng.exponential(size=k)
    counts = rng.multinomial(n, rng.dirichlet(np.ones(k)))
    low, high = np.maximum(counts - rng.integers(0, 3, k), 0), counts + rng.integers(0, 3, k)
    of_row, of_class = np.kron(np.eye(n), np.ones(k)), np.kron(np.ones(n), np.eye(k))
    bounds = {"A_ub": np.vstack([of_class, -of_class]), "b_ub": np.r_[high, -low]}
    best = linprog(losses.ravel(), A_eq=of_row, b_eq=np.ones(n), **bounds)
    found = cheapest_labels(losses, low, high)
    assert (np.bincount(found, minlength=k) >= low).all() and (np.bincount(found, minlength=k) <= high).all()
    assert losses[np.arange(n), found].sum() == pytest.approx(best.fun)


def test_whole_counts_are_the_nearest():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, shares = int(rng.integers(1, 9)), rng.dirichlet(np.ones(3))
        every = np.array([c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n])
        distance = np.abs(every - n * shares).sum(axis=1)
        found = whole_counts(2 * shares, n)
        assert found.sum() == n
        assert np.abs(found - n * shares).sum() == pytest.approx(distance.min())


def test_likely_shares_are_one_standard_error_wide():
    shares = np.array([11, 5]) / 16
    error = np.sqrt(shares * (1 - shares) * (1 / 14 + 1 / 30))
    np.testing.assert_allclose(likely_shares(np.array([10.0, 4.0]), 30.0), [shares - error, shares + error])
    least, most = likely_shares(np.array([3.0, 0.0]), 2.0)  # a class without rows may have some, and not all
    assert least[1] == 0 < most[1] < 1 == most[0]


@pytest.mark.parametrize("seed", range(8))
def test_prices_keep_both_bounds(seed):
    """Unequal masses, one class that nobody wants and one that everybody does."""
    rng = np.random.default_rng(seed)
    n, k = 400, 5
    losses = label_losses(rng.normal(size=(n, k)) + np.array([3.0, 0.0, 0.0, 0.0, -3.0]))
    mass = rng.uniform(0.5, 1.5, n)
    least, most = np.array([0.0, 0.1, 0.0, 0.0, 0.15]), np.array([0.3, 1.0, 0.2, 1.0, 1.0])
    labels = balanced_labels(losses, mass, least, most)
    share = np.bincount(labels, mass, k) / mass.sum()
    assert (share >= least - 0.01).all() and (share <= most + 0.01).all()


@pytest.mark.parametrize("seed", range(8))
def test_prices_are_given_back_where_they_are_not_needed(seed):
    """A class that was too large, and is not any more since others have prices as well, kept its price."""
    rng = np.random.default_rng(seed)
    n, k = 500, 5
    losses = label_losses(rng.normal(size=(n, k)) + rng.normal(size=k))
    middle = rng.dirichlet(np.full(k, 3.0))
    least, most = np.maximum(middle - 0.03, 0), middle + 0.03
    exact, near = (balanced_labels(losses, mass, least, most) for mass in (np.ones(n), np.r_[1 + 1e-9, np.ones(n - 1)]))
    share = np.bincount(near, minlength=k) / n
    assert (share >= least - 0.011).all() and (share <= most + 0.011).all()
    cost = [losses[np.arange(n), labels].sum() for labels in (exact, near)]
    assert cost[1] <= 1.015 * cost[0]


@pytest.mark.perf
def test_balanced_labels_take_no_time():
    rng = np.random.default_rng(0)
    losses, shares = (
        label_losses(0.01 * rng.normal(size=(2000, 10)) + 0.1 * rng.normal(size=10)),
        rng.dirichlet(np.ones(10)),
    )
    start = time.perf_counter()
    labels = balanced_labels(losses, np.ones(2000), shares, shares)
    assert time.perf_counter() - start < 2  # an assignment problem took four, which no interrupt could end
    assert np.array_equal(np.bincount(labels, minlength=10), whole_counts(shares, 2000))


@pytest.mark.parametrize("n", [200, 3000, 100_000])
def test_rows_that_are_equal_are_parted(n):
    losses = np.tile(label_losses(np.array([[2.0, 0.5, 0.0]])), (n, 1))
    mass = np.where(np.arange(n) % 2, 1.0, 2.0)
    shares = np.array([0.5, 0.3, 0.2])
    labels = balanced_labels(losses, mass, shares, shares)
    np.testing.assert_allclose(np.bincount(labels, mass) / mass.sum(), shares, atol=0.015)


def test_unlabelled_rows_help_with_few_labels():
    X, y = load_digits(return_X_y=True)
    X, y = X[:900] / 16, y[:900]
    scores = []
    for seed in range(3):
        partly, shown = hide(y, 0.05, seed)
        supervised = MultiMarginSVC(random_state=0).fit(X[shown], y[shown])
        semi = SemiSupervisedMarginSVC(random_state=0).fit(X, partly)
        scores.append([m.score(X[~shown], y[~shown]) for m in (supervised, semi)])
    assert np.diff(np.mean(scores, axis=0)) > 0


def test_float32_rows_have_the_same_intercepts():
    X, y = load_iris(return_X_y=True)
    y = y + (np.arange(150) % 2) * 3  # six classes: the constant feature, the root of seven, is no float32 number
    single, double = (
        MultiMarginSVC(C=100, tol=1e-9, random_state=0).fit(X.astype(t), y) for t in (np.float32, np.float64)
    )
    np.testing.assert_allclose(single.intercept_, double.intercept_, rtol=2e-6, atol=1e-6)


def test_a_warm_start_on_other_features_is_a_cold_one():
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    settings = {"solver": "svrg", "random_state": 0, "tol": 0.1}
    warm = MultiMarginSVC(warm_start=True, **settings).fit(X, y)
    assert warm.fit(X, y).trajectory_[0] < 0.9 * MultiMarginSVC(**settings).fit(X, y).trajectory_[0]
    cold = MultiMarginSVC(**settings).fit(X[:, :2], y)
    np.testing.assert_array_equal(warm.fit(X[:, :2], y).coef_, cold.coef_)


def test_scores_of_float32_hide_no_loss():
    """Long rows: a loss of 3e-7 was four times the objective, and below the rounding of the scores."""
    X, y = load_wine(return_X_y=True)
    X = 1e4 * (X - X.mean(axis=0)) / X.std(axis=0)
    clf = MultiMarginSVC(kernel="poly", degree=1, gamma=1.0, random_state=0).fit(X, y)
    coef, K, own = np.zeros((len(y), 3), np.longdouble), X.astype(np.longdouble) @ X.T, (np.arange(len(y)), y)
    coef[clf.support_] = clf.dual_coef_
    F = K @ coef + clf.intercept_
    hinges = np.maximum(0, 1 - F[own][:, None] + F)
    hinges[own] = 0
    true = 2 * (coef * (K @ coef)).sum() + 0.5 * (clf.intercept_**2).sum() + hinges.sum()
    assert true <= clf.objective_ * (1 + 1e-4)
    assert clf.dual_gap_ <= clf.tol
