import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from skmargin.inspection import class_scores, margin_statistics, margins, margins_from_scores

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "<b>", "naïve"], dtype=object)

CLASSIFIERS = [
    LinearSVC(random_state=0),
    SVC(),
    LogisticRegression(solver="newton-cholesky"),
    OneVsRestClassifier(LinearSVC(random_state=0)),
    OneVsOneClassifier(LinearSVC(random_state=0)),
    GradientBoostingClassifier(n_estimators=3, random_state=0),
    make_pipeline(StandardScaler(), SVC()),
    GridSearchCV(make_pipeline(StandardScaler(), LinearSVC(random_state=0)), {"linearsvc__C": [0.1, 1]}, cv=2),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("labels", [y, NAMES[y]], ids=["numbers", "names"])
def test_margins_are_positive_exactly_where_the_prediction_is_right(model, labels):
    model.fit(X, labels)
    margin = margins(model, X, labels)
    assert margin.shape == (150,)
    assert_array_equal(margin > 0, model.predict(X) == labels)


def test_margins_by_hand():
    scores = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 5.0], [1.0, 1.0, 0.0]])
    assert_allclose(margins_from_scores(scores, ["a", "b", "a"], ["a", "b", "c"]), [2, -3, 0])
    assert_allclose(margins_from_scores(scores, ["a", "b", "a"], ["a", "b", "c"], normalize=True), [6 / 5, -9 / 5, 0])


def test_binary_one_column_form_gives_the_signed_score():
    A, b = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(solver="newton-cholesky").fit(A, b)
    f = model.decision_function(A)
    assert f.ndim == 1
    assert_allclose(margins(model, A, b), np.where(b == 1, f, -f))
    scores = class_scores(model, A)
    assert_allclose(scores[:, 1] - scores[:, 0], f)


def test_sparse_float32_and_read_only_rows():
    model = LinearSVC(random_state=0).fit(X, y)
    expected = margins(model, X, y)
    frozen = X.copy()
    frozen.setflags(write=False)
    assert_array_equal(margins(model, frozen, y), expected)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_allclose(margins(model, wide, y), expected)
    assert_allclose(margins(model, X.astype(np.float32), y), expected, rtol=1e-4, atol=1e-4)


def test_a_tie_is_an_error():
    model = LinearSVC(random_state=0, fit_intercept=False).fit(X, y)
    model.coef_ = np.zeros((3, 4))
    assert margin_statistics(model, X, y).error == 1


def test_statistics_match_numpy_and_the_classes():
    model = LinearSVC(random_state=0).fit(X, NAMES[y])
    margin = margins(model, X, NAMES[y])
    s = margin_statistics(model, X, NAMES[y], quantiles=[0.1, 0.9])
    assert (s.n_samples, s.minimum, s.error) == (150, margin.min(), np.mean(margin <= 0))
    assert_allclose([s.mean, s.variance], [margin.mean(), margin.var()])
    assert s.quantiles == {0.1: np.quantile(margin, 0.1), 0.9: np.quantile(margin, 0.9)}
    assert set(s.per_class) == set(NAMES)
    assert s.per_class["<b>"].mean == margin[y == 1].mean()
    assert_allclose(sum(c.n_samples * c.mean for c in s.per_class.values()) / 150, s.mean)


def test_normalized_variance_does_not_depend_on_the_scale():
    class Doubled(LinearSVC):
        def decision_function(self, X):
            return 2 * super().decision_function(X)

    a = margin_statistics(LinearSVC(random_state=0).fit(X, y), X, y, normalize=True)
    b = margin_statistics(Doubled(random_state=0).fit(X, y), X, y, normalize=True)
    assert_allclose(a.variance, b.variance)


def test_a_class_that_is_absent_from_y_is_fine_but_an_unknown_label_is_not():
    model = LinearSVC(random_state=0).fit(X, y)
    assert set(margin_statistics(model, X[:50], y[:50]).per_class) == {0}
    with pytest.raises(ValueError, match=r"not seen: \[7\]"):
        margins(model, X[:2], [0, 7])


def test_two_classes_have_one_pair_and_so_margins():
    some = y < 2
    by_pairs, by_classes = (SVC(decision_function_shape=shape).fit(X[some], y[some]) for shape in ("ovo", "ovr"))
    assert_array_equal(margins(by_pairs, X[some], y[some]), margins(by_classes, X[some], y[some]))


def test_refusals_say_why():
    with pytest.raises(TypeError, match="no decision_function"):
        margins(DummyClassifier().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        margins(LinearSVC(), X, y)
    with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
        margins(make_pipeline(SVC(decision_function_shape="ovo")).fit(X, y), X, y)
    with pytest.raises(ValueError, match="one column for each of 3"):
        margins_from_scores(np.zeros((2, 2)), [0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="1 labels for 2 rows"):
        margins_from_scores(np.zeros((2, 3)), [0], [0, 1, 2])
    for quantiles in ([2], 0.5):
        with pytest.raises(ValueError, match="quantiles must be a sequence of numbers between 0 and 1, got"):
            margin_statistics(LinearSVC(random_state=0).fit(X, y), X, y, quantiles=quantiles)
    with pytest.raises(ValueError, match="two classes at least, got 1"):
        margins_from_scores([[0.0], [1.0]], [0, 0], [0])
    with pytest.raises(ValueError, match=r"must be different, got \[0, 0, 2\]"):
        margins_from_scores([[0.0, 1.0, 2.0]], [0], [0, 0, 2])
    with pytest.raises(ValueError, match="NaN"):
        margins(LinearSVC(random_state=0).fit(X, y), np.full((1, 4), np.nan), [0])


def test_statistics_as_a_table(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(random_state=0).fit(X, y)
    statistics = margin_statistics(model, X, y, quantiles=(0.05, 0.5))
    table = statistics.table()
    assert table.index.tolist() == ["all", 0, 1, 2]
    assert table.columns.tolist() == ["n_samples", "mean", "variance", "minimum", "error", "5%", "50%"]
    assert table.loc[1, "mean"] == margins(model, X, y)[y == 1].mean() and table.loc["all", "n_samples"] == 150
    assert table.loc[2, "50%"] == np.median(margins(model, X, y)[y == 2])
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert statistics.table()["all"]["5%"] == statistics.quantiles[0.05]
