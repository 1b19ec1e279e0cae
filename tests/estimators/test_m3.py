"""M3SVC against scikit-learn's machines, cvxpy-checked identities and scikit-learn's conventions."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import M3SVC, WestonWatkinsSVC
from skmargin.solvers.tuning import DEFAULT


@parametrize_with_checks(
    [
        M3SVC(),
        M3SVC(loss="log_loss"),
        M3SVC(kernel="rbf", alpha=0.1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def blobs(n=120, k=4, d=6, seed=0):
    return make_blobs(n, d, centers=k, cluster_std=3.0, random_state=seed)


def test_log_loss_with_p_2_is_logistic_regression(iris):
    """alpha sum_{j<l} ||w_j - w_l||^2 = alpha k ||W||^2 at the centred optimum, so C = 1 / (2 alpha k)."""
    X, y = iris
    model = M3SVC(alpha=0.1, p=2, loss="log_loss", tol=1e-9).fit(X, y)
    rival = LogisticRegression(C=1 / (2 * 0.1 * 3), tol=1e-10, max_iter=10000).fit(X, y)
    np.testing.assert_allclose(model.coef_, rival.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), rival.predict_proba(X), atol=1e-4)


def test_two_classes_are_the_support_vector_machine():
    """With k = 2 and p = 2: sum hinge + alpha ||v||^2 in v = w_1 - w_0, the SVM with C = 1 / (2 alpha)."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:200]
    y = y[:200]
    model = M3SVC(alpha=0.5, p=2, delta=0, tol=1e-7).fit(X, y)
    rival = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, rival.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, rival.intercept_, atol=1e-3)
    value = np.maximum(0, 1 - (2 * y - 1) * rival.decision_function(X)).sum() + 0.5 * (rival.coef_**2).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    kernel = M3SVC(alpha=0.5, p=2, delta=0, tol=1e-4, kernel="rbf", gamma=0.05).fit(X, y)
    rival = SVC(C=1.0, gamma=0.05, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(kernel.decision_function(X), rival.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_hinge_with_p_2_is_the_machine_of_weston_and_watkins(iris, kernel):
    X, y = iris
    alpha = 0.05
    model = M3SVC(alpha=alpha, p=2, delta=0, kernel=kernel, tol=1e-7).fit(X, y)
    other = WestonWatkinsSVC(C=1 / (2 * 3 * alpha), kernel=kernel, tol=1e-8).fit(X, y)
    assert model.dual_gap_ <= 1e-7
    assert model.objective_ * other.C == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("p", [1.5, 4])
def test_the_hinge_itself_through_a_kernel(p):
    """Narrow smoothing: Newton's method takes over from L-BFGS."""
    X, y = load_digits(return_X_y=True)
    model = M3SVC(alpha=0.1, p=p, delta=0, kernel="rbf", tol=1e-7).fit(X[:120] / 16, y[:120])
    assert model.dual_gap_ <= 1e-7


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("p", [1, 2, 4])
def test_weights_are_repeated_rows(loss, p):
    X, y = blobs()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"alpha": 0.1, "p": p, "loss": loss, "tol": 1e-9 if p > 1 else 1e-6}
    weighted = M3SVC(**settings).fit(X, y, sample_weight=weight)
    repeated = M3SVC(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-2 if p == 1 else 1e-3
    )


def test_class_weight_is_a_weight():
    X, y = blobs()
    cw = {0: 2.0, 1: 1.0, 2: 3.0, 3: 1.0}
    a = M3SVC(alpha=0.1, class_weight=cw, tol=1e-9).fit(X, y)
    b = M3SVC(alpha=0.1, tol=1e-9).fit(X, y, sample_weight=[cw[c] for c in y])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-8)
    M3SVC(alpha=0.1, class_weight="balanced").fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_all_forms_of_the_same_rows(loss):
    X, y = blobs()
    X[np.abs(X) < 2] = 0
    X[5] = 0
    settings = {"alpha": 0.1, "loss": loss, "tol": 1e-6}
    dense = M3SVC(**settings).fit(X, y)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    readonly = X.copy()
    readonly.setflags(write=False)
    for rows in (sparse.csr_array(X), sparse.csr_matrix(X), wide, readonly, np.asfortranarray(X), pd.DataFrame(X)):
        other = M3SVC(**settings).fit(rows, y)
        assert other.objective_ == pytest.approx(dense.objective_, rel=2e-6)
        np.testing.assert_allclose(np.asarray(other.decision_function(rows)), dense.decision_function(X), atol=1e-2)
    single = M3SVC(alpha=0.1, loss=loss).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float64  # objective_ is that of these numbers, not of their rounding
    assert single.objective_ == pytest.approx(dense.objective_, rel=2e-3)


def test_more_features_than_rows_and_kernels_are_the_linear_problem():
    X, y = make_blobs(40, 200, centers=5, cluster_std=8.0, random_state=0)
    settings = {"alpha": 0.1, "tol": 1e-9}
    wide = M3SVC(**settings).fit(X, y)
    rows = M3SVC(**settings).fit(sparse.csr_array(X), y)
    assert wide.coef_.shape == (5, 200)
    assert wide.objective_ == pytest.approx(rows.objective_, rel=1e-6)
    np.testing.assert_allclose(wide.decision_function(X), rows.decision_function(X), atol=1e-3)
    for settings_, rows_ in (
        ({"kernel": "precomputed"}, X @ X.T),
        ({"kernel": lambda A, B: A @ B.T}, X),
        ({"kernel": "poly", "degree": 1, "gamma": 1.0}, X),
    ):
        kernel = M3SVC(**settings, **settings_).fit(rows_, y)
        assert not hasattr(kernel, "coef_")
        assert kernel.dual_coef_.shape == (len(kernel.support_), 5)
        assert kernel.objective_ == pytest.approx(wide.objective_, rel=1e-6)
        np.testing.assert_allclose(kernel.decision_function(rows_), wide.decision_function(X), atol=1e-3)


def test_a_long_row_does_not_hide_the_others():
    X, y = np.random.default_rng(1).normal(size=(12, 40)), np.arange(12) % 3
    alone = M3SVC().fit(X[1:], y[1:])
    X[0] *= 1e8
    for settings in ({}, {"kernel": "poly", "degree": 1, "gamma": 1.0}):
        model = M3SVC(tol=1e-2, **settings).fit(X, y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-2)  # it is easy to have on its side


def test_precomputed_kernel_with_weight_zero():
    X, y = blobs()
    weight = np.ones(len(y))
    weight[::5] = 0
    kept = weight > 0
    K = X @ X.T
    a = M3SVC(alpha=0.1, kernel="precomputed", tol=1e-8).fit(K, y, sample_weight=weight)
    b = M3SVC(alpha=0.1, kernel="precomputed", tol=1e-8).fit(K[np.ix_(kept, kept)], y[kept])
    assert kept[a.support_].all()
    np.testing.assert_allclose(a.decision_function(K), b.decision_function(K[:, kept]), atol=1e-4)


def test_nystroem_pipeline():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(Nystroem(gamma=1e-3, n_components=200, random_state=0), M3SVC(loss="log_loss"))
    assert model.fit(X[:600], y[:600]).score(X[600:1200], y[600:1200]) > 0.9


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs", "adam"])
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_solvers_reach_the_same_objective(iris, solver, loss):
    X, y = iris
    best = M3SVC(alpha=0.1, loss=loss, tol=1e-6).fit(X, y)
    other = M3SVC(alpha=0.1, loss=loss, solver=solver, tol=2e-2, random_state=0, max_iter=3000).fit(X, y)
    assert best.objective_ <= other.objective_ <= best.objective_ * (1 + 2e-2)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("k", [2, 4])
def test_warm_start(kernel, k):
    X, y = blobs(k=k)
    if kernel == "precomputed":
        X = X @ X.T
    model = M3SVC(alpha=0.1, kernel=kernel, warm_start=True, solver="lbfgs", tol=1e-5).fit(X, y)
    first, value = model.n_iter_, model.objective_
    model.fit(X, y)
    assert model.n_iter_ <= max(1, first // 5)
    assert model.objective_ == pytest.approx(value, rel=1e-4)
    model.set_params(alpha=0.05).fit(X, y)
    assert model.objective_ == pytest.approx(clone(model).fit(X, y).objective_, rel=1e-4)


def test_wide_warm_start_and_new_classes():
    X, y = make_blobs(30, 100, centers=4, cluster_std=8.0, random_state=0)
    model = M3SVC(alpha=0.1, warm_start=True, solver="lbfgs").fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ <= max(1, first // 5)
    assert model.fit(X, y % 2).classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"columns": 4}, {"columns": 2}),
        ({"kernel": "linear"}, {"kernel": "rbf"}),
        ({"kernel": "rbf"}, {"kernel": "linear"}),
        ({"kernel": "rbf"}, {"kernel": "rbf", "gamma": 2.0}),
        ({"kernel": "precomputed"}, {"kernel": "precomputed", "weighted": True}),
        ({"fit_intercept": True}, {"fit_intercept": False}),
    ],
)
def test_a_warm_start_elsewhere_ends_where_a_cold_one_does(iris, first, second):
    def fitted(model, columns=4, weighted=False, **settings):
        model.set_params(**settings)
        X, weight = iris[0][:, :columns], np.where(np.arange(150) % 3 == 0, 0.0, 1.0) if weighted else None
        return model.fit(X @ X.T if model.kernel == "precomputed" else X, iris[1], sample_weight=weight)

    warm = fitted(fitted(M3SVC(alpha=0.1, tol=1e-5, warm_start=True), **first), **second)
    cold = fitted(M3SVC(alpha=0.1, tol=1e-5), **second)
    assert warm.dual_gap_ <= 1e-5
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-5)


def test_kernels_of_short_numbers_keep_every_direction():
    """They are computed in double precision: only its rounding may be cut, or a weak penalty misses what it needs."""
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    y = (np.sin(3 * X[:, 0]) + X[:, 1] > 0).astype(int)
    settings = {"alpha": 1e-9, "p": 2, "kernel": "rbf", "gamma": 0.02, "loss": "log_loss"}
    single, double = (M3SVC(**settings).fit(X.astype(t), y) for t in (np.float32, np.float64))
    assert len(single.support_) == len(double.support_) > 40
    assert single.objective_ == pytest.approx(double.objective_, rel=2e-3)


@pytest.mark.parametrize("d", [1, 40])  # and more features than rows
def test_rows_that_are_all_zero(d):
    model = M3SVC(loss="log_loss").fit(np.zeros((6, d)), [0, 1, 2] * 2)
    assert model.objective_ == pytest.approx(6 * np.log(3))
    assert not model.coef_.any() and model.n_iter_ >= 1


def test_probabilities_agree_with_predictions(iris):
    X, y = iris
    names = np.array(["c", "a", "b"])[y]
    model = M3SVC(loss="log_loss", alpha=0.01).fit(X, names)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (model.classes_[proba.argmax(axis=1)] == model.predict(X)).all()
    two = M3SVC(loss="log_loss", alpha=0.01).fit(X, y == 1)
    assert (two.classes_[two.predict_proba(X).argmax(axis=1)] == two.predict(X)).all()
    assert not hasattr(M3SVC(), "predict_proba") and not hasattr(M3SVC(), "predict_log_proba")
    for one in (model, two):
        np.testing.assert_allclose(np.exp(one.predict_log_proba(X)), one.predict_proba(X), rtol=1e-12)
        assert np.isfinite(one.predict_log_proba(1e6 * X)).all()


def test_a_subclass_with_parameters_of_its_own_starts_warm(iris):
    class Stronger(M3SVC):
        def __init__(self, strength=1e-2, warm_start=True):
            super().__init__(strength, warm_start=warm_start)
            self.strength = strength

    model = Stronger().fit(*iris)
    assert model.fit(*iris).n_iter_ <= 1


def test_partial_fit_counts_the_rows_of_a_fit(iris):
    X, y = iris
    model = M3SVC(alpha=1.0, random_state=0).fit(X, y, sample_weight=np.full(150, 2.0))
    assert model.partial_fit(X[:1], y[:1])._weight_seen == 301
    stream = M3SVC(random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    assert stream._weight_seen == 150
    assert stream.partial_fit(X[:10], y[:10], sample_weight=np.r_[np.zeros(5), np.ones(5)])._weight_seen == 155


def test_partial_fit_after_one_that_failed(iris):
    X, y = iris
    model = M3SVC(random_state=0)
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X[:3], [0, 1, 7], classes=[0, 1, 2])
    expected = M3SVC(random_state=0).partial_fit(X, y, classes=[0, 1, 2]).coef_
    np.testing.assert_array_equal(model.partial_fit(X, y).coef_, expected)


def test_rows_of_weight_zero_are_not_in_a_stream(iris):
    X, y = iris
    weight = np.random.default_rng(0).integers(0, 3, 150).astype(float)
    kept = weight > 0
    stream = M3SVC(batch_size=20, random_state=0)
    weighted = clone(stream).partial_fit(X, y, classes=[0, 1, 2], sample_weight=weight)
    without = clone(stream).partial_fit(X[kept], y[kept], classes=[0, 1, 2], sample_weight=weight[kept])
    np.testing.assert_array_equal(weighted.coef_, without.coef_)


def test_a_stream_after_a_fit_goes_on_from_the_fit(iris):
    X, y = iris
    model = M3SVC(alpha=0.1, learning_rate=1e-5, random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    fitted = model.fit(X, y).coef_.copy()
    np.testing.assert_allclose(model.partial_fit(X, y).coef_, fitted, atol=1e-4)


@pytest.mark.parametrize("k", [2, 3])
def test_adam_publishes_what_its_last_epoch_reached(iris, k):
    X, y = iris[0][iris[1] < k] + 50, iris[1][iris[1] < k]  # far from the origin, where centres matter
    model = M3SVC(alpha=0.1, delta=0, eps=1.0, solver="adam", learning_rate=0.1, max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model.fit(X, y)
    assert model.n_iter_ == 3
    assert model.objective_ == pytest.approx(value(model, X, y), rel=1e-9)
    exact = M3SVC(alpha=0.1, warm_start=True, tol=1e-6).fit(X, y)
    first = exact.objective_
    exact.set_params(solver="adam", learning_rate=1e-7, max_iter=1, tol=1e-2).fit(X, y)
    assert exact.objective_ == pytest.approx(first, rel=1e-3)


def value(model, X, y):
    """The objective of a linear machine with the hinge, once more."""
    F = model.decision_function(X)
    W, b = model.coef_, model.intercept_
    if F.ndim == 1:
        F, W, b = np.c_[-F, F] / 2, np.vstack([-W, W]) / 2, np.r_[-b, b] / 2
    hinges = np.maximum(0, 1 - F[np.arange(len(y)), y][:, None] + F).sum(axis=1) - 1
    apart = sum(np.linalg.norm(W[j] - W[l]) ** model.p for j in range(len(W)) for l in range(j))
    return hinges.sum() + model.alpha * apart + model.eps * (np.square(W).sum() + np.square(b).sum())


def test_partial_fit_learns_a_stream(iris):
    X, y = iris
    order = np.random.default_rng(0).permutation(len(y))
    model = M3SVC(loss="log_loss", alpha=0.1, learning_rate=0.05, batch_size=10, random_state=0)
    for epoch in range(20):
        for start in range(0, 150, 50):
            rows = order[start : start + 50]
            model.partial_fit(X[rows], y[rows], classes=[0, 1, 2] if epoch == 0 else None)
    assert model.score(X, y) > 0.93
    assert model.dual_gap_ is None
    assert model.n_iter_ == 20 * 15
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X[:3], [0, 1, 7])
    assert not hasattr(M3SVC(kernel="rbf"), "partial_fit")
    whole = M3SVC(loss="log_loss", alpha=0.1, learning_rate=1e-4).fit(X, y)
    before = whole.coef_.copy()
    np.testing.assert_allclose(whole.partial_fit(X, y).coef_, before, atol=1e-3)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("balanced", "class_weight='balanced' needs all rows"),
        ({0: -1.0}, "class_weight must be positive for every class, got {0: -1.0}"),
        ({7: 2.0}, r"class_weight={7: 2.0} names none of the classes, which are \[0, 1, 2\]"),
    ],
)
def test_a_stream_refuses_the_class_weights_that_a_fit_does(iris, class_weight, message):
    X, y = iris
    with pytest.raises(ValueError, match=message):
        M3SVC(class_weight=class_weight).partial_fit(X, y, classes=[0, 1, 2])


def test_a_stream_refuses_sparse_rows_with_broken_indices(iris):
    rows = sparse.csr_array(iris[0])
    rows.indices[3] = 10**6
    with pytest.raises(ValueError, match="X is no valid CSR matrix"):
        M3SVC().partial_fit(rows, iris[1], classes=[0, 1, 2])


@pytest.mark.parametrize(
    ("settings", "method", "reason"),
    [
        ({}, "predict_proba", "Probabilities need loss='log_loss', got loss='hinge'"),
        ({}, "predict_log_proba", "Probabilities need loss='log_loss', got loss='hinge'"),
        ({"kernel": "rbf"}, "partial_fit", "partial_fit needs kernel='linear', got kernel='rbf'"),
    ],
)
def test_methods_that_are_not_there_say_why(settings, method, reason):
    with pytest.raises(AttributeError) as caught:
        getattr(M3SVC(**settings), method)
    assert reason in str(caught.value.__cause__)


def test_many_classes_need_no_large_temporaries():
    """k = 300: one (k, k, d) array alone would be 92 MB."""
    import tracemalloc

    rng = np.random.default_rng(0)
    k, d = 300, 128
    y = np.repeat(np.arange(k), 3)
    X = rng.normal(size=(k, d))[y] + 0.3 * rng.normal(size=(len(y), d))
    tracemalloc.start()
    model = M3SVC(alpha=1e-2, loss="log_loss").fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.score(X, y) > 0.99
    assert peak < 3 * X.nbytes + 8 * (5 * len(y) * k + 8 * k * k + 30 * d * k)


def test_warning_and_errors(iris):
    X, y = iris
    with pytest.warns(ConvergenceWarning, match="gap"):
        M3SVC(max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="two classes"):
        M3SVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="NaN"):
        M3SVC().fit(np.full((3, 2), np.nan), [0, 1, 1])
    for name, value in {"alpha": 0, "p": 0.5, "delta": -1, "loss": "squared", "solver": "sgd"}.items():
        with pytest.raises(ValueError, match=name):
            M3SVC(**{name: value}).fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_a_rare_class_is_certified_as_without_an_intercept(loss, n=2000, k=5):
    rng = np.random.default_rng(0)
    y = np.r_[np.full(2, k - 1), rng.integers(0, k - 1, n - 2)]
    X = rng.normal(size=(k, 20))[y] + rng.normal(size=(n, 20))
    models = [M3SVC(alpha=0.1, loss=loss, fit_intercept=b, tol=1e-6).fit(X, y) for b in (True, False)]
    assert max(m.dual_gap_ for m in models) <= 1e-6
    assert models[0].n_iter_ <= models[1].n_iter_ + 15


def test_certificate_is_a_bound(iris):
    X, y = iris
    for p in (1, 1.5, 4):
        rough = M3SVC(alpha=0.1, p=p, tol=0.05).fit(X, y)
        fine = M3SVC(alpha=0.1, p=p, tol=1e-7).fit(X, y)
        assert 0 <= rough.dual_gap_ <= 0.05
        assert rough.objective_ * (1 - rough.dual_gap_) <= fine.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_features_as_they_come(loss):
    """Far from the origin (too far for single precision), and of very different sizes."""
    X, y = make_classification(600, 20, n_informative=12, n_classes=4, flip_y=0.1, random_state=0)
    sizes = np.exp(np.random.default_rng(0).normal(0, 4, 20))
    plain = M3SVC(loss=loss).fit(X, y)
    far = M3SVC(loss=loss).fit(X + 1e4, y)
    assert far.objective_ == pytest.approx(plain.objective_, rel=2e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert M3SVC(loss=loss).fit(X * sizes, y).dual_gap_ <= 1e-3


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize(("d", "k"), [(12, 4), (60, 12)])  # whole Hessians, L-BFGS
def test_features_of_different_sizes(loss, d, k):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, d))
    y = (X @ rng.normal(size=(d, k)) + 0.5 * rng.normal(size=(600, k))).argmax(axis=1)
    X *= 10.0 ** np.linspace(-3, 4, d)
    assert M3SVC(loss=loss).fit(X, y).dual_gap_ <= 1e-3


def published_objective(model, X, y):
    """The minimised function at ``coef_`` and ``intercept_`` in double precision."""
    coef, b = model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
    W, b = (np.vstack([-coef, coef]) / 2, np.r_[-b, b] / 2) if len(coef) == 1 else (coef, b)
    F = X.astype(np.float64) @ W.T + b
    t = F - F[np.arange(len(y)), y][:, None]
    t[np.arange(len(y)), y] = -np.inf
    losses = np.log1p(np.exp(t).sum(axis=1))
    if model.loss == "hinge":
        losses = (np.maximum(t + 1, 0) + 0.5 * model.delta**2 / (np.abs(t + 1) + np.hypot(t + 1, model.delta))).sum(1)
    distances = np.linalg.norm(W[:, None] - W, axis=2)
    return losses.sum() + 0.5 * model.alpha * (distances**model.p).sum() + model.eps * ((W**2).sum() + (b**2).sum())


@pytest.mark.parametrize("solver", ["auto", "newton-cg", "lbfgs"])
@pytest.mark.parametrize("settings", [{"delta": 1e-9, "p": 2}, {"delta": 1e-2}, {"loss": "log_loss"}])
def test_single_precision_rows_have_a_certificate_in_double(solver, settings):
    """Separable rows far from the margin: the objective is many orders smaller than the scores."""
    for seed, shape in enumerate([(6, 18), (8, 3), (30, 40)]):
        rng = np.random.default_rng(seed)
        y = np.arange(shape[0]) % 3
        X = (300 * (rng.normal(size=shape) + 3 * np.eye(3, shape[1])[y])).astype(np.float32)
        model = M3SVC(solver=solver, tol=1e-4, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
            double = clone(model).fit(X.astype(np.float64), y)
        assert 0 <= model.dual_gap_ <= 1
        assert model.objective_ == pytest.approx(published_objective(model, X, y), rel=1e-9)
        assert model.objective_ * (1 - model.dual_gap_) <= double.objective_ * (1 + 1e-9)
        assert double.objective_ * (1 - double.dual_gap_) <= model.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_large_single_precision_rows_end_in_double_without_a_copy(container, monkeypatch):
    pieces = {"pass_work": 1000, "cache_numbers": 1 << 10}
    monkeypatch.setattr(M3SVC, "_tuning", DEFAULT.changed(common=pieces))
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 300)
    X = (rng.normal(size=(5, 90))[y] + 2 * rng.normal(size=(300, 90))).astype(np.float32)
    for settings in ({"delta": 1e-3}, {"loss": "log_loss"}):
        model = M3SVC(alpha=0.1, tol=1e-8, **settings).fit(container(X), y)
        double = M3SVC(alpha=0.1, tol=1e-8, **settings).fit(X.astype(np.float64), y)
        assert 0 <= model.dual_gap_ <= 1e-8
        assert model.objective_ == pytest.approx(double.objective_, rel=1e-8)
        assert model.objective_ == pytest.approx(published_objective(model, X, y), rel=1e-11)


def test_the_objective_is_that_of_the_published_vectors_also_on_the_way():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 3
    start = M3SVC(alpha=0.1, eps=0.5, warm_start=True, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start.fit(X, y)
        start.coef_ = start.coef_ + 1.0  # what all classes share costs eps only, and is not published
        start.fit(X, y)
    assert start.objective_ == pytest.approx(published_objective(start, X, y), rel=1e-12)


def test_weak_penalties_use_every_direction_of_a_kernel():
    """Directions with 1e-12 of the kernel's size count where alpha is small; a bound without them would be wrong."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(40, 1)), np.arange(40) % 3
    settings = {"alpha": 1e-7, "p": 2, "delta": 0.1, "fit_intercept": False, "kernel": "precomputed", "tol": 1e-6}
    K = np.exp(-((X - X.T) ** 2))
    whole = M3SVC(**settings).fit(K, y)
    size, U = np.linalg.eigh(K)
    for least in (1e-12, 1e-9):  # a problem with fewer directions has the larger minimum
        R = U[:, size > least * size[-1]] * np.sqrt(size[size > least * size[-1]])
        part = M3SVC(**{**settings, "kernel": "linear"}).fit(R, y)
        assert whole.objective_ * (1 - whole.dual_gap_) <= part.objective_ * (1 + 1e-9)
    assert whole.objective_ < part.objective_ * (1 - 1e-5)


def test_a_kernel_rounded_to_single_precision_has_no_directions_of_rounding():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(40, 1)), np.arange(40) % 3
    K = np.exp(-((X - X.T) ** 2))
    exact, rounded = (M3SVC(kernel="precomputed").fit(K.astype(dtype), y) for dtype in (np.float64, np.float32))
    assert rounded.objective_ == pytest.approx(exact.objective_, rel=1e-2)
    assert len(rounded.support_) < len(exact.support_)


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
@pytest.mark.parametrize("p", [1, 1.3, 2, 4])
def test_features_whose_squares_vanish_are_no_features(p, solver):
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1e-50, 1e-110, 1e-150, 1e-160, 1e-300):
            for loss, each in (("hinge", 2.0), ("log_loss", np.log(3))):
                model = M3SVC(p=p, loss=loss, solver=solver).fit(size * X, y)
                assert model.objective_ == pytest.approx(30 * each, rel=1e-3)
