"""Machines of very many classes as a user meets them: a sparse ``coef_``, `predict_top`, the limit of dense arrays."""

import pickle

import numpy as np
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import skmargin
from skmargin import CrammerSingerSVC, LpNormSVC, TopKSVC, WestonWatkinsSVC, model_files
from skmargin.datasets import open_rows
from skmargin.onnx import to_onnx

DUAL = [CrammerSingerSVC(), WestonWatkinsSVC(C=0.1), TopKSVC(k=3), LpNormSVC(p=1.5), LpNormSVC(p=3)]
LINEAR = [
    CrammerSingerSVC(n_jobs=2), WestonWatkinsSVC(), TopKSVC(), LpNormSVC(), skmargin.ODMClassifier(C=10),
    skmargin.MultiMarginSVC(), skmargin.M3SVC(), skmargin.SemiSupervisedMarginSVC(),
]  # fmt: skip


def text(n=400, d=300, k=60, words=10, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.zipf(1.5, n) % k])[:n]
    own = rng.integers(d, size=(k, words))
    at = np.where(rng.random((n, words)) < 0.5, rng.integers(d, size=(n, words)), own[y])
    X = sparse.coo_array((np.ones(n * words), (np.repeat(np.arange(n), words), at.ravel())), (n, d)).tocsr()
    return sparse.csr_array(X, dtype=dtype), y


def sparse_fit(model, X, y, **fit):
    with skmargin.config_context(max_dense_bytes=0):
        return model.fit(X, y, **fit)


def best(model, X, k):
    scores = model.decision_function(X)
    places = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return model.classes_[places], np.take_along_axis(scores, places, axis=1)


def same_order(classes, expected, values, share=0.9):
    """Scores that are equal but for rounding may stand in another order."""
    apart = np.abs(np.diff(values, axis=1, prepend=np.inf, append=-np.inf)) > 1e-9
    clear = apart[:, :-1] & apart[:, 1:]
    assert clear.mean() > share
    assert_array_equal(classes[clear], expected[clear])


@pytest.mark.parametrize("model", LINEAR, ids=lambda m: type(m).__name__)
def test_predict_top_is_the_best_of_all_scores(model):
    X, y = text(200, 60, 9)
    names = np.array([f"class {label}" for label in range(9)])
    model = clone(model).fit(X, names[y] if not isinstance(model, skmargin.SemiSupervisedMarginSVC) else y)
    for rows in (X, X.toarray(), np.asfortranarray(X.toarray()), X.astype(np.float32), X.toarray().astype(np.float32)):
        for k in (1, 4, 9):
            classes, scores = model.predict_top(rows, k)
            expected, values = best(model, rows, k)
            assert classes.shape == scores.shape == (200, k)
            assert_allclose(scores, values, rtol=1e-4, atol=1e-5)
            if rows.dtype == np.float64:
                same_order(classes, expected, values)
        assert_array_equal(model.predict_top(rows, 1)[0][:, 0], model.predict(rows))


def test_predict_top_with_more_classes_than_a_tile_and_sparse_int64():
    X, y = text(300, 80, 150)
    model = CrammerSingerSVC(tol=1e-2).fit(X, y)
    wide = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    for rows in (X, wide, X.toarray()):
        classes, scores = model.predict_top(rows, 7)
        expected, values = best(model, rows, 7)
        assert_array_equal(classes, expected)
        assert_allclose(scores, values, rtol=1e-10, atol=1e-12)


def test_predict_top_of_equal_scores_is_the_first_class():
    model = CrammerSingerSVC(fit_intercept=False).fit([[0.0], [0.0], [0.0]], [3, 1, 2])
    classes, scores = model.predict_top([[1.0]], 3)
    assert_array_equal(classes, [[1, 2, 3]])
    assert_array_equal(scores, scores[:, :1].repeat(3, axis=1))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_predict_top_of_two_classes_and_of_kernels(kernel):
    X, y = text(100, 20, 2)
    model = CrammerSingerSVC(kernel=kernel).fit(X, y)
    classes, scores = model.predict_top(X, 2)
    assert_array_equal(classes[:, 0], model.predict(X))
    score = model.decision_function(X)
    assert_allclose(np.abs(score), scores[:, 0] - scores[:, 1])
    X, y = text(100, 20, 5)
    model.fit(X, y)
    same_order(model.predict_top(X, 3)[0], *best(model, X, 3), share=0.8)  # at the optimum rivals tie


def test_predict_top_says_what_is_wrong():
    X, y = text(100, 20, 5)
    model = CrammerSingerSVC().fit(X, y)
    for k in (0, 6, 1.0, True, None):
        with pytest.raises(ValueError, match="k must be a whole number from 1 to the number of classes, 5"):
            model.predict_top(X, k)
    broken = X.toarray()
    broken[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict_top(broken, 2)
    with pytest.raises(ValueError, match="features"):
        model.predict_top(X[:, :3], 2)
    with pytest.raises(Exception, match="not fitted"):
        CrammerSingerSVC().predict_top(X, 1)


@pytest.mark.parametrize("model", DUAL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_coef_is_the_machine_of_the_dense_one(model, dtype):
    X, y = text(dtype=dtype)
    dense = clone(model).set_params(tol=1e-4).fit(X, y)
    found = sparse_fit(clone(model).set_params(tol=1e-4), X, y)
    assert isinstance(dense.coef_, np.ndarray)
    assert sparse.issparse(found.coef_) and found.coef_.format == "csr" and found.coef_.shape == dense.coef_.shape
    assert found.coef_.dtype == dtype and found.dual_gap_ <= 1e-4
    assert found.objective_ == pytest.approx(dense.objective_, rel=1.5e-4)
    assert np.mean(found.predict(X) == dense.predict(X)) > 0.97
    scores = X.astype(float) @ found.coef_.T.toarray() + found.intercept_
    assert_allclose(found.decision_function(X), scores, atol=1e-5)
    assert_array_equal(found.predict(X), found.classes_[found.decision_function(X).argmax(axis=1)])
    assert_array_equal(found.predict(X.toarray()), found.predict(X))
    again = pickle.loads(pickle.dumps(found))
    assert_array_equal(again.predict(X), found.predict(X))


def test_scores_that_do_not_fit_are_refused():
    X, y = text()
    model = sparse_fit(CrammerSingerSVC(tol=1e-2), X, y)
    with skmargin.config_context(max_dense_bytes=8 * 60 * 399):
        with pytest.raises(MemoryError, match=r"400 rows for 60 classes take 192000 bytes.*predict_top"):
            model.decision_function(X)
        assert model.decision_function(X[:399]).shape == (399, 60)
        assert model.predict(X).shape == (400,)
        assert model.predict_top(X, 5)[0].shape == (400, 5)
    broken = X.toarray()
    broken[3, 4] = np.inf
    for method in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match="infinity"):
            method(broken)


def test_two_classes_stay_dense():
    X, y = text(100, 20, 2)
    assert isinstance(sparse_fit(CrammerSingerSVC(), X, y).coef_, np.ndarray)


@pytest.mark.parametrize("model", DUAL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certificate_is_that_of_the_published_numbers(model, dtype):
    """Objective of ``coef_`` and ``intercept_`` on the rows as given, one number after the other in float64."""
    X, y = text(dtype=dtype)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    found = sparse_fit(clone(model).set_params(tol=1e-3), X, y, sample_weight=weight)
    W = found.coef_.toarray().astype(float)
    F = X.toarray().astype(float) @ W.T + found.intercept_
    own = np.arange(len(y)), y
    hinges = np.maximum(0, 1 - F[own][:, None] + F)
    hinges[own] = 0
    hinges = -np.sort(-hinges, axis=1)
    kind = type(model).__name__
    counted = 3 if kind == "TopKSVC" else 1
    losses = hinges.sum(axis=1) if kind == "WestonWatkinsSVC" else hinges[:, :counted].mean(axis=1)
    p = getattr(model, "p", 2)
    penalty = 0.5 * np.sum(np.linalg.norm(W, axis=1) ** p) ** (2 / p)
    assert found.objective_ == pytest.approx(penalty + model.C * weight @ losses, rel=1e-12)
    dense = clone(model).set_params(tol=1e-6).fit(X, y, sample_weight=weight)
    assert found.objective_ * (1 - found.dual_gap_) <= dense.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_weights_are_exact(intercept):
    X, y = text(300, 200, 40)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, 300)
    repeated = np.repeat(np.arange(300), weight)
    settings = {"tol": 1e-5, "fit_intercept": intercept}
    weighted = sparse_fit(CrammerSingerSVC(**settings), X, y, sample_weight=weight)
    plain = sparse_fit(CrammerSingerSVC(**settings), X[repeated], y[repeated])
    assert_array_equal(weighted.classes_, plain.classes_)
    assert weighted.objective_ == pytest.approx(plain.objective_, rel=1.5e-5)
    balanced = sparse_fit(CrammerSingerSVC(class_weight="balanced", **settings), X, y)
    by_hand = len(y) / (len(balanced.classes_) * np.bincount(y))[y]
    same = sparse_fit(CrammerSingerSVC(**settings), X, y, sample_weight=by_hand)
    assert balanced.objective_ == pytest.approx(same.objective_, rel=1.5e-5)


@pytest.mark.parametrize("machine", DUAL, ids=lambda m: type(m).__name__)
def test_warm_start_goes_on_where_the_last_fit_ended(machine):
    X, y = text()
    model = clone(machine).set_params(tol=1e-4, warm_start=True)
    first = sparse_fit(model, X, y).n_iter_
    assert sparse_fit(model, X, y).n_iter_ < first
    model.set_params(C=2 * machine.C)
    assert sparse_fit(model, X, y).dual_gap_ <= 1e-4
    cold = sparse_fit(clone(machine).set_params(C=2 * machine.C, tol=1e-4), X, y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1.5e-4)


def test_string_labels_and_unseen_classes():
    X, y = text()
    names = np.array([f"{label:03}" for label in y])
    model = sparse_fit(CrammerSingerSVC(tol=1e-2), X[y < 50], names[y < 50])
    assert set(model.predict(X)) <= set(names[y < 50])
    assert 0 < model.score(X, names) <= np.mean(y < 50)  # rows of classes that no fit has seen count as mistakes


def test_setting():
    before = skmargin.get_config()
    with skmargin.config_context(max_dense_bytes=5):
        assert skmargin.get_config() == {"max_dense_bytes": 5}
    assert skmargin.get_config() == before
    for wrong in (-1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="max_dense_bytes must be a whole number"):
            skmargin.set_config(max_dense_bytes=wrong)
    skmargin.set_config(max_dense_bytes=7)
    assert skmargin.get_config() == {"max_dense_bytes": 7}
    skmargin.set_config(**before)


def test_a_warm_start_from_blocks_after_sparse_class_vectors_begins_anew():
    X, y = text(3000, 100, 20)
    model = sparse_fit(CrammerSingerSVC(tol=1e-2, warm_start=True), X, y)
    assert sparse.issparse(model.coef_)
    rows = X.toarray()
    blocks = open_rows(lambda: ((rows[at : at + 500], y[at : at + 500]) for at in range(0, 3000, 500)))
    assert isinstance(model.fit(blocks).coef_, np.ndarray) and model.dual_gap_ <= 1e-2


def test_onnx_makes_a_sparse_coef_dense_where_the_limit_allows_it():
    X, y = text(dtype=np.float32)
    model = sparse_fit(CrammerSingerSVC(tol=1e-2), X, y)
    rows = X.toarray()
    session = onnxruntime.InferenceSession(to_onnx(model, rows).SerializeToString())
    labels = session.run(["label"], {session.get_inputs()[0].name: rows})[0]
    assert np.mean(labels == model.predict(X)) > 0.99  # scores that are equal but for rounding
    with skmargin.config_context(max_dense_bytes=1000), pytest.raises(Exception, match="max_dense_bytes=1000"):
        to_onnx(model, rows)


def test_power_law_sizes_with_classes_of_one_row_and_unseen_ones():
    """Most classes have one row; every one has a label, also those without any vector but zero."""
    rng = np.random.default_rng(3)
    X, _ = text(1200, 400, 60, dtype=np.float32)
    y = np.concatenate([np.arange(500), np.minimum(rng.zipf(1.3, 700) - 1, 499)])
    names = np.array([f"label {label}" for label in y])
    model = sparse_fit(CrammerSingerSVC(tol=1e-2), X[:1000], names[:1000])
    assert len(model.classes_) == len(set(names[:1000])) == model.coef_.shape[0] and model.dual_gap_ <= 1e-2
    classes, scores = model.predict_top(X[1000:], 5)
    assert set(classes.ravel()) <= set(names[:1000]) and (np.diff(scores, axis=1) <= 0).all()
    assert model.score(X[1000:], np.full(200, "never seen")) == 0


def test_model_files_hold_a_sparse_coef(tmp_path):
    X, y = text()
    model = sparse_fit(CrammerSingerSVC(tol=1e-2), X, y)
    model_files.save_model(model, tmp_path / "model.skm")
    again = model_files.load_model(tmp_path / "model.skm")
    assert sparse.issparse(again.coef_)
    assert_array_equal(again.coef_.toarray(), model.coef_.toarray())
    assert_array_equal(again.predict(X), model.predict(X))
