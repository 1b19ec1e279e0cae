"""Crammer-Singer, Weston-Watkins and top-k machines against cvxpy, LIBLINEAR and each other."""

import threading
import time
import warnings
from _thread import interrupt_main

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets

from skmargin import CrammerSingerSVC, LpNormSVC, MultiMarginSVC, ODMClassifier, TopKSVC, WestonWatkinsSVC

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals

MACHINES = [CrammerSingerSVC(), WestonWatkinsSVC(), TopKSVC(k=2)]
NAMES = ["max", "sum", "top2"]
machines = pytest.mark.parametrize("machine", MACHINES, ids=NAMES)


@parametrize_with_checks(
    [*MACHINES, CrammerSingerSVC(kernel="rbf"), WestonWatkinsSVC(kernel="rbf"), TopKSVC(k=2, kernel="rbf")]
)
def test_scikit_learn(estimator, check):
    check(estimator)


def toy(n=40, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


def optimum(machine, X, y, C, weight=None, intercept=True):
    """The problem written a second time, for cvxpy; X may be a factor of a kernel matrix."""
    n, k = len(y), y.max() + 1
    weight = np.ones(n) if weight is None else weight
    W, b = cp.Variable((X.shape[1], k)), cp.Variable(k)
    F = X @ W + (np.ones((n, 1)) @ cp.reshape(b, (1, k), order="C") if intercept else 0)
    own = cp.sum(cp.multiply(F, np.eye(k)[y]), axis=1)
    rivals = np.array([[l for l in range(k) if l != c] for c in y])
    hinge = cp.vstack([cp.pos(1 - own + cp.sum(cp.multiply(F, np.eye(k)[rivals[:, j]]), axis=1)) for j in range(k - 1)])
    K = {CrammerSingerSVC: 1, WestonWatkinsSVC: k - 1}.get(type(machine), min(getattr(machine, "k", 1), k - 1))
    scale = 1 if isinstance(machine, WestonWatkinsSVC) else 1 / K
    if K == 1:
        loss = scale * weight @ cp.max(hinge, axis=0)
    elif k - 1 == K:
        loss = scale * weight @ cp.sum(hinge, axis=0)
    else:
        loss = sum(weight[i] * scale * cp.sum_largest(hinge[:, i], K) for i in range(n))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + C * loss))
    return problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)


@pytest.mark.parametrize("machine", MACHINES[:2], ids=NAMES[:2])  # cvxpy takes a minute for the third
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_intercepts_of_rare_classes_reach_the_optimum(machine, C):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [150, 30, 2, 1])
    X = 0.3 * rng.normal(size=(4, 12))[y] + rng.normal(size=(len(y), 12))
    X = np.repeat(X, 4, axis=0)
    weight = np.full(len(X), 0.25)
    clf = clone(machine).set_params(C=C, tol=1e-7).fit(X, np.repeat(y, 4), weight)
    assert clf.objective_ == pytest.approx(optimum(machine, X[::4], y, C), rel=1e-6)
    assert 0 <= clf.dual_gap_ <= 1e-7
    assert clf.intercept_.sum() == pytest.approx(0, abs=1e-9)


@machines
@pytest.mark.parametrize("C", [0.001, 0.1])
def test_many_rows_with_few_features_reach_the_optimum(machine, C):
    """Intercepts come from some of the rows first, also where a class has only one."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [60, 20, 5])
    X = 0.5 * rng.normal(size=(3, 3))[y] + rng.normal(size=(len(y), 3))
    for copies in (np.full(len(y), 30), np.where(np.arange(len(y)) < 84, 30, 1)):
        weight = np.repeat(1 / copies, copies)
        clf = clone(machine).set_params(C=30 * C, tol=1e-7)
        clf.fit(np.repeat(X, copies, axis=0), np.repeat(y, copies), weight)
        assert clf.objective_ == pytest.approx(optimum(machine, X, y, 30 * C), rel=1e-6)
        assert 0 <= clf.dual_gap_ <= 1e-7


def test_labels_that_may_be_no_classes():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="Unknown label type"):
        CrammerSingerSVC().fit(X, np.arange(30) / 2)
    for y in (np.arange(30), np.arange(30.0), np.arange(30).astype(str)):  # scikit-learn warns, its oldest versions not
        with warnings.catch_warnings(record=True, action="always") as expected:
            check_classification_targets(y)
        with warnings.catch_warnings(record=True, action="always") as told:
            CrammerSingerSVC().fit(X, y)
        assert [str(w.message) for w in told] == [str(w.message) for w in expected]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_are_scored_as_they_are_have_been_looked_at(dtype):
    X, y = load_iris(return_X_y=True)
    clf = CrammerSingerSVC().fit(X, y)
    X = X.astype(dtype)
    np.testing.assert_allclose(clf.decision_function(X), clf.decision_function(X.tolist()), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="X has 3 features"):
        clf.predict(X[:, :3].copy())
    with pytest.raises(ValueError, match="0 sample"):
        clf.predict(X[:0])
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        clf.predict(X)
    with pytest.raises(NotFittedError):
        CrammerSingerSVC().predict(X)
    named = CrammerSingerSVC().fit(pd.DataFrame(load_iris().data, columns=list("abcd")), y)
    with pytest.warns(UserWarning, match="valid feature names"):
        named.predict(load_iris().data)


@pytest.mark.filterwarnings("ignore:Objective contains too many subexpressions")
@machines
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("k", "C"), [(2, 1.0), (3, 10.0), (3, 1000.0), (5, 0.1), (5, 100.0), (12, 1.0)])
def test_optimum_is_that_of_cvxpy(machine, intercept, k, C):
    X, y = toy(36, 4, k, seed=k)
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y))
    best = optimum(machine, X, y, C, weight, intercept)
    for rows in (X, sparse.csr_array(X * (np.abs(X) > 1))):
        clf = clone(machine).set_params(C=C, fit_intercept=intercept, tol=1e-7).fit(rows, y, weight)
        target = best if rows is X else optimum(machine, rows.toarray(), y, C, weight, intercept)
        assert clf.objective_ == pytest.approx(target, rel=1e-6)
        assert 0 <= clf.dual_gap_ <= 1e-7


@machines
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [2.0, 1000.0])
def test_kernel_optimum_is_that_of_cvxpy(machine, intercept, C):
    X, y = toy(36, 4, 4, seed=3)
    factor = np.linalg.cholesky(rbf_kernel(X, gamma=0.3) + 1e-12 * np.eye(len(y)))
    best = optimum(machine, factor, y, C, None, intercept)
    clf = clone(machine).set_params(C=C, kernel="rbf", gamma=0.3, fit_intercept=intercept, tol=1e-7).fit(X, y)
    assert clf.objective_ == pytest.approx(best, rel=1e-6)
    assert clf.dual_gap_ <= 1e-7


@machines
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_rows_far_out_do_not_matter(machine, intercept, C):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 20))
    X[::50] *= 1000
    y = (X @ rng.normal(size=(20, 4))).argmax(axis=1)
    wrong = rng.random(2000) < 0.05
    y[wrong] = rng.integers(0, 4, wrong.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = clone(machine).set_params(C=C, fit_intercept=intercept).fit(X, y)
    assert clf.dual_gap_ <= clf.tol


@machines
def test_objective_belongs_to_the_published_coefficients(machine):
    X, y = load_digits(return_X_y=True)
    clf = clone(machine).set_params(C=0.1, tol=1e-4).fit(X / 16, y)
    F = clf.decision_function(X / 16)
    hinge = np.maximum(0, 1 - F[np.arange(len(y)), y][:, None] + F)
    hinge[np.arange(len(y)), y] = 0
    hinge = -np.sort(-hinge, axis=1)
    loss = {CrammerSingerSVC: hinge[:, 0], WestonWatkinsSVC: hinge.sum(1)}.get(type(machine), hinge[:, :2].mean(1))
    assert 0.5 * (clf.coef_**2).sum() + 0.1 * loss.sum() == pytest.approx(clf.objective_, rel=1e-9)


@machines
def test_float32_and_wide_indices(machine):
    X, y = toy(200, 6, 4)
    reference = clone(machine).set_params(tol=1e-6).fit(X, y)
    single = clone(machine).set_params(tol=1e-5).fit(X.astype(np.float32), y)
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    assert single.objective_ == pytest.approx(reference.objective_, rel=1e-4)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert clone(machine).set_params(tol=1e-6).fit(wide, y).objective_ == pytest.approx(reference.objective_, rel=1e-5)


def test_unsorted_and_duplicate_indices_are_handled():
    data, indices, indptr = np.array([1.0, 2.0, 3.0, 1.0, 5.0]), np.array([1, 0, 1, 1, 0]), np.array([0, 2, 4, 5])
    X = sparse.csr_array((data, indices, indptr), shape=(3, 2))
    clf = CrammerSingerSVC(tol=1e-8).fit(X, [0, 1, 2])
    assert np.array_equal(X.data, data) and np.array_equal(X.indices, indices)  # the caller's matrix is as it was
    dense = CrammerSingerSVC(tol=1e-8).fit(np.array([[2.0, 1.0], [0.0, 4.0], [5.0, 0.0]]), [0, 1, 2])
    assert clf.objective_ == pytest.approx(dense.objective_, rel=1e-7)


@machines
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_repetitions(machine, kernel):
    X, y = toy(60, 4, 3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    base = clone(machine).set_params(tol=1e-8, kernel=kernel, class_weight="balanced", random_state=0)
    weighted = clone(base).fit(X, y, sample_weight=times)
    repeated = clone(base).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-7)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=2e-3)


def test_two_classes_are_the_ordinary_svm():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    ours = CrammerSingerSVC(C=0.5, tol=1e-9).fit(X, y)
    svm = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, svm.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, svm.intercept_, atol=1e-4)
    assert ours.decision_function(X).shape == (len(y),)


def test_liblinear_is_not_better():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    ours = CrammerSingerSVC(C=0.1, fit_intercept=False, tol=1e-6).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LIBLINEAR warns here whatever it reached
        theirs = LinearSVC(multi_class="crammer_singer", C=0.1, fit_intercept=False, tol=1e-6, max_iter=100_000).fit(
            X, y
        )
    F = theirs.decision_function(X)
    rival = F.copy()
    rival[np.arange(len(y)), y] = -np.inf
    hinge = np.maximum(0, 1 - F[np.arange(len(y)), y] + rival.max(axis=1))
    assert ours.objective_ == pytest.approx(0.5 * (theirs.coef_**2).sum() + 0.1 * hinge.sum(), rel=1e-4)
    assert ours.objective_ * (1 - ours.dual_gap_) <= 0.5 * (theirs.coef_**2).sum() + 0.1 * hinge.sum()


def test_top_k_interpolates():
    X, y = toy(80, 5, 6)
    settings = {"C": 2.0, "tol": 1e-8}
    one, cs = TopKSVC(k=1, **settings).fit(X, y), CrammerSingerSVC(**settings).fit(X, y)
    every, ww = TopKSVC(k=5, **settings).fit(X, y), WestonWatkinsSVC(C=0.4, tol=1e-8).fit(X, y)
    assert one.objective_ == pytest.approx(cs.objective_, rel=1e-7)
    assert every.objective_ == pytest.approx(ww.objective_, rel=1e-7)
    assert TopKSVC(k=50, **settings).fit(X, y).objective_ == pytest.approx(every.objective_, rel=1e-7)


@machines
def test_linear_kernel_is_the_linear_machine(machine):
    X, y = toy(60, 4, 4)
    linear = clone(machine).set_params(tol=1e-8).fit(X, y)
    kernel = clone(machine).set_params(tol=1e-8, kernel="precomputed").fit(X @ X.T, y)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-7)
    np.testing.assert_allclose(kernel.decision_function(X @ X.T), linear.decision_function(X), atol=2e-3)


@machines
def test_intercept_absorbs_a_shift(machine):
    X, y = toy(80, 4, 3)
    here = clone(machine).set_params(tol=1e-8).fit(X, y)
    there = clone(machine).set_params(tol=1e-8).fit(X + 20, y)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-6)
    np.testing.assert_allclose(here.coef_, there.coef_, atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_warm_start(kernel):
    X, y = load_digits(return_X_y=True)
    X = X[:600] / 16
    clf = CrammerSingerSVC(C=0.1, warm_start=True, random_state=0, kernel=kernel, tol=1e-4).fit(X, y[:600])
    first = clf.n_iter_
    assert clf.fit(X, y[:600]).n_iter_ < max(2, first / 2)
    path = clf.set_params(C=0.3).fit(X, y[:600])
    assert path.objective_ == pytest.approx(clone(clf).fit(X, y[:600]).objective_, rel=2e-4)
    clf.fit(X[:300], y[:300])  # other data: a fresh start, no error
    assert clf.dual_gap_ <= 1e-4


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_warm_start_for_another_k_is_certified(kernel, intercept):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, np.random.default_rng(0).permutation(y[:300])
    settings = {"kernel": kernel, "gamma": 0.05, "fit_intercept": intercept, "random_state": 0}
    clf = TopKSVC(k=1, warm_start=True, **settings).fit(X, y).set_params(k=5).fit(X, y)
    best = TopKSVC(k=5, tol=1e-6, **settings).fit(X, y).objective_
    assert clf.dual_gap_ <= clf.tol
    assert best * (1 - 1e-6) <= clf.objective_ <= best * (1 + 1.01 * clf.tol)


@pytest.mark.filterwarnings("ignore:MultiMarginSVC stopped")
@pytest.mark.parametrize(
    ("machine", "first", "second"),
    [
        (CrammerSingerSVC(), {"columns": 4}, {"columns": 2}),
        (CrammerSingerSVC(), {"kernel": "linear"}, {"kernel": "rbf"}),
        (WestonWatkinsSVC(), {"kernel": "rbf"}, {"kernel": "linear"}),
        (LpNormSVC(), {"kernel": "linear"}, {"kernel": "rbf"}),
        (LpNormSVC(), {"kernel": "rbf"}, {"kernel": "linear"}),
        (LpNormSVC(), {"kernel": "rbf", "p": 2}, {"p": 1.5}),
        (LpNormSVC(), {"kernel": "rbf", "p": 3}, {"p": 2}),
        (MultiMarginSVC(), {"solver": "svrg", "tol": 0.1}, {"solver": "dual"}),
        (MultiMarginSVC(), {"solver": "dual"}, {"solver": "svrg"}),
        (MultiMarginSVC(), {"kernel": "rbf"}, {"kernel": "linear"}),
        (ODMClassifier(mu=0.0), {"columns": 4}, {"columns": 2}),
        (ODMClassifier(mu=0.0), {"kernel": "rbf"}, {"kernel": "linear"}),
        (ODMClassifier(mu=0.0), {"kernel": "rbf", "solver": "paper"}, {"solver": "mm"}),
        (ODMClassifier(mu=0.0), {"kernel": "rbf", "solver": "mm"}, {"solver": "paper"}),
        (ODMClassifier(mu=0.0), {"kernel": "linear", "solver": "paper"}, {"solver": "newton"}),
    ],
)
def test_a_warm_start_elsewhere_ends_where_a_cold_one_does(machine, first, second):
    X, y = load_iris(return_X_y=True)

    def fitted(clf, columns=4, **settings):
        return clf.set_params(**settings).fit(X[:, :columns], y)

    base = clone(machine).set_params(tol=1e-4, random_state=0)
    warm = fitted(fitted(clone(base).set_params(warm_start=True), **first), **second | {"tol": 1e-4})
    cold = fitted(clone(base), **first | second | {"tol": 1e-4})
    stochastic = second.get("solver") == "svrg"
    assert warm.objective_ == pytest.approx(cold.objective_, rel=0.02 if stochastic else 2e-4)
    assert stochastic or warm.dual_gap_ <= 1e-4


def test_same_seed_same_bits():
    X, y = load_digits(return_X_y=True)
    fits = [WestonWatkinsSVC(random_state=7, C=0.1).fit(X / 16, y).coef_ for _ in range(2)]
    assert np.array_equal(*fits)


@machines
def test_edges(machine):
    X, y = toy(30, 3, 3)
    X = np.vstack([X, np.zeros(3), X[:2]])  # a zero row, duplicate rows
    names = np.array(["a", "b", "ü<c>"])[np.r_[y, 0, y[:2]]]
    for intercept in (False, True):
        clf = clone(machine).set_params(fit_intercept=intercept, tol=1e-7)
        X.setflags(write=False)
        clf.fit(X, names)
        assert set(clf.predict(X)) <= set(names)
        assert clf.dual_gap_ <= 1e-7
    nothing = clone(machine).fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
    assert np.all(nothing.coef_ == 0)


def test_many_classes_and_tiny_rows():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(1000, 20)), 2, axis=0)
    X[0] *= 1e-160
    clf = CrammerSingerSVC(C=1.0, tol=1e-2).fit(X, np.repeat(np.arange(1000), 2))
    assert clf.dual_gap_ <= 1e-2
    assert clf.score(X, np.repeat(np.arange(1000), 2)) > 0.9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_pandas_names(kernel, dtype):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.astype(dtype)
    clf = CrammerSingerSVC(kernel=kernel).fit(X, y)
    assert list(clf.feature_names_in_) == list(X.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(clf.predict(pd.DataFrame(X)), np.ndarray)


@machines
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": -1.0}, "'C' parameter .* Got -1.0"),
        ({"tol": 0.0}, "'tol' parameter .* Got 0.0"),
        ({"kernel": "gauss"}, "'kernel' parameter .* 'gauss'"),
        ({"max_iter": 10**30}, "'max_iter' parameter .* Got 10{30} instead"),
        ({"n_jobs": 0}, "'n_jobs' parameter .* Got 0 instead"),
        ({"class_weight": {0: -1.0}}, "class_weight must be positive"),
    ],
)
def test_bad_parameters(machine, change, message):
    X, y = toy()
    with pytest.raises(ValueError, match=message):
        clone(machine).set_params(**change).fit(X, y)


@machines
def test_bad_data(machine):
    X, y = toy()
    spoilt = X.copy()
    spoilt[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(machine).fit(spoilt, y)
    fitted = clone(machine).fit(X, y)
    for bad in (np.nan, np.inf):
        spoilt[3, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            fitted.predict(spoilt)
    with pytest.raises(ValueError, match=r"two classes .* got one class: 0\.$"):
        clone(machine).fit(X, np.zeros(len(y), dtype=int))
    with pytest.raises(ValueError, match="two classes"):
        clone(machine).fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        clone(machine).fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        clone(machine).fit(X, y, sample_weight=np.full(len(y), -1.0))
    with pytest.raises(ValueError, match="features"):
        fitted.predict(X[:, :2])
    with pytest.raises(ValueError, match="y mixes labels of the types int, str"):
        clone(machine).fit(X, np.array([0, "a"] * (len(y) // 2), dtype=object))
    with pytest.raises(ValueError, match=r"X contains a number of size .*e\+20.*; scale the features"):
        clone(machine).fit(X * 1e200, y)


@pytest.mark.filterwarnings("ignore:CrammerSingerSVC stopped")
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_features_of_enormous_size(fit_intercept):
    # Rows that can be separated, so far out that rounding may keep the gap open: the objective is right all the same.
    X, y = load_wine(return_X_y=True)
    clf = CrammerSingerSVC(fit_intercept=fit_intercept, random_state=0)
    small, large = (clone(clf).fit(scale * X, y) for scale in (1e3, 1e6))
    assert large.objective_ == pytest.approx(1e-6 * small.objective_, rel=0.01)
    assert large.dual_gap_ <= 1


@machines
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("size", [1e4, 1e6, 1e8])
def test_one_feature_of_enormous_size(machine, fit_intercept, size):
    # Once NaN was published as an objective of zero: a block lost the differences of its numbers.
    X, y = load_iris(return_X_y=True)
    X[:, 0] *= size
    clf = clone(machine).set_params(fit_intercept=fit_intercept).fit(X, y)
    assert clf.dual_gap_ <= clf.tol
    # Of a feature so large a tiny weight is enough: its size is no matter any more.
    X[:, 0] *= 1e-3
    assert clf.objective_ == pytest.approx(clone(clf).fit(X, y).objective_, rel=2e-3 if size > 1e4 else 0.1)


@pytest.mark.parametrize("seed", [89, 517, 793, 1955, 1965, 4881])
def test_newton_steps_do_not_climb(seed):
    """Weights over six decades: where phi had risen the steps went from kink to kink and ended far away."""
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(20, 80), rng.integers(1, 13), rng.integers(2, 7)
    X, y = rng.standard_normal((n, d)), np.r_[np.arange(k), rng.integers(0, k, n - k)]
    weight, C = 10 ** rng.uniform(-3, 3, n), 10 ** rng.uniform(-3, 4.5)
    for machine in (CrammerSingerSVC, WestonWatkinsSVC, TopKSVC):
        clf = machine(C=C, random_state=0).fit(X, y, sample_weight=weight)
        assert clf.dual_gap_ <= clf.tol


def test_class_vectors_are_not_rounded_after_they_were_certified():
    X, y = load_wine(return_X_y=True)
    X = X.astype(np.float32)
    clf = CrammerSingerSVC(C=1e6).fit(X, y)
    F, own = X.astype(float) @ clf.coef_.T + clf.intercept_, (np.arange(len(y)), y)
    hinges = np.maximum(0, 1 - F[own][:, None] + F)
    hinges[own] = 0
    objective = 0.5 * np.square(clf.coef_).sum() + clf.C * hinges.max(axis=1).sum()
    assert objective == pytest.approx(clf.objective_, rel=1e-6)
    assert clf.decision_function(X).dtype == np.float32


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_parameters_may_be_numpy_scalars(kernel):
    X, y = toy()
    clf = CrammerSingerSVC(C=np.float32(1), fit_intercept=np.True_, tol=np.float64(1e-3), kernel=kernel)
    assert clf.fit(X, y).dual_gap_ <= 1e-3


def test_numbers_beyond_what_a_fit_can_hold_are_refused():
    X, y = toy()
    with pytest.raises(ValueError, match=r"C=1e\+20 times the weights"):
        CrammerSingerSVC(C=1e20, kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match=r"C=1 times the weights, which lie between 1.0e\+00 and 1.0e\+16"):
        CrammerSingerSVC(kernel="rbf").fit(X, y, sample_weight=np.where(np.arange(len(y)) == 3, 1e16, 1.0))
    with pytest.raises(ValueError, match=r"sample_weight contains a number of size 1.0e-320; at least 1e-120, or 0"):
        CrammerSingerSVC().fit(X, y, sample_weight=np.full(len(y), 1e-320))


def test_warning_says_what_was_reached():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 with a relative duality gap"):
        CrammerSingerSVC(C=100, max_iter=2).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"after \d+ iterations, when nothing moved any more, with a relative"):
        CrammerSingerSVC(tol=1e-300).fit(X[:200], y[:200])


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("machine", [*MACHINES, MultiMarginSVC(), LpNormSVC(p=2)], ids=[*NAMES, "xu", "lp"])
def test_threads_of_a_linear_fit_leave_its_bits(machine, form, fit_intercept):
    X, y = make_classification(10_000, 60, n_informative=20, n_classes=10, class_sep=0.3, random_state=0)
    X = form(np.where(np.random.default_rng(0).random(X.shape) < 0.2, X, 0) if form is sparse.csr_array else X)
    fits = []
    for n_jobs in (1, 3):
        clf = clone(machine).set_params(C=0.1, fit_intercept=fit_intercept, n_jobs=n_jobs, random_state=0)
        others = time.thread_time() - time.process_time()
        fits.append(clf.fit(X, y))
        others += time.process_time() - time.thread_time()
        assert n_jobs == 1 or others > 2e-5  # seconds of other threads: not even to begin and to end takes less
    one, three = fits
    np.testing.assert_array_equal(one.coef_, three.coef_)
    np.testing.assert_array_equal(one.intercept_, three.intercept_)
    assert one.dual_gap_ == three.dual_gap_


@pytest.mark.parametrize("settings", [{"n_jobs": 1}, {"n_jobs": 3}, {"kernel": "rbf", "gamma": 5.0}])
def test_interrupt_leaves_it_unfitted(settings):
    X, y = make_classification(20_000, 100, n_informative=50, n_classes=10, random_state=0)
    clf = CrammerSingerSVC(C=1000.0, tol=1e-12, **settings)
    threading.Timer(0.5, interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    with pytest.raises(NotFittedError):
        clf.predict(X)
    clf.set_params(C=0.001, tol=1e-2, kernel="linear").fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_numbers_of_numpy_as_parameters(kernel):
    X, y = load_iris(return_X_y=True)
    plain = CrammerSingerSVC(C=0.5, tol=1e-4, kernel=kernel, random_state=0).fit(X, y)
    numbers = {"C": np.float32(0.5), "tol": np.float64(1e-4), "max_iter": np.int64(10_000)}
    other = CrammerSingerSVC(**numbers, kernel=kernel, random_state=0).fit(X, y)
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_predictions_of_the_zero_vector(kernel):
    X, y = load_digits(return_X_y=True)
    nothing = WestonWatkinsSVC(kernel=kernel, tol=1.0).fit(X[:300] / 16, y[:300])  # any point will do
    assert not nothing.dual_coef_.any()
    assert set(nothing.predict(X)) <= set(range(10))
    assert nothing.decision_function(X).shape == (len(X), 10)


def test_objective_where_zero_is_the_best_vector():
    """W is nothing but rounding there, which must not be made longer; the draws are those of a fit that did so."""
    rng = np.random.default_rng(1964)
    for m in (3, 8, 8, 7):
        rng.integers(m)
    y, X = rng.permutation(np.r_[np.arange(4), rng.integers(0, 4, 146)]), rng.normal(size=(150, 1))
    rng.integers(3), rng.normal(size=(4, 1)), rng.integers(10), rng.integers(6)
    weight = rng.random(150) + 0.01
    C = 0.07843092986076798
    clf = CrammerSingerSVC(C=C, tol=1e-6, random_state=92).fit(X, y, sample_weight=weight)
    scores = clf.decision_function(X)
    own, rivals = scores[np.arange(150), y], np.where(np.eye(4)[y], -np.inf, scores).max(axis=1)
    value = 0.5 * np.square(clf.coef_).sum() + C * weight @ np.maximum(0, 1 - own + rivals)
    assert clf.objective_ == pytest.approx(value, rel=1e-9)


@machines
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_that_say_nothing(machine, kernel, intercept):
    """Equal rows: the intercepts alone, in closed form.  With two classes the larger one wins, by one margin."""
    X, y = np.full((150, 2), 3.7), np.repeat([0, 1], [76, 74])
    if kernel == "precomputed":
        X = np.zeros((150, 150))
    clf = clone(machine).set_params(C=4e-4, tol=1e-4, kernel=kernel, fit_intercept=intercept).fit(X, y)
    assert clf.dual_gap_ <= 1e-4
    if intercept:
        assert clf.objective_ == pytest.approx(4e-4 * 2 * 74, rel=2e-4)
        assert (clf.predict(X) == 0).all()
    elif kernel == "precomputed":
        assert clf.objective_ == pytest.approx(4e-4 * 150, rel=1e-9)


@pytest.mark.parametrize(("n", "k"), [(4, 4), (40, 12)])
def test_few_equal_rows_of_several_classes_converge(n, k):
    """Passes over so few rows cost nothing: all of them would be used up before it is time for Newton steps."""
    rng = np.random.default_rng(0)
    X, y = np.tile(3 * rng.normal(size=100), (n, 1)), np.arange(n) % k
    clf = CrammerSingerSVC(C=1e4, tol=1e-4, fit_intercept=False, random_state=0)
    assert clf.fit(X, y, sample_weight=rng.random(n) + 0.1).dual_gap_ <= 1e-4
