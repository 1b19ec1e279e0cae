"""What every estimator shares: the look at rows and labels before a fit."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import skmargin
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
from skmargin.estimators._base import MarginClassifier, canonical_csr, distinct_labels, seed_of
from skmargin.solvers.tuning import DEFAULT

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64, "U3", float, object])
def test_labels_are_numbered_as_by_unique(dtype):
    y = np.random.default_rng(0).integers(0, 9, 60).astype(dtype)
    for labels in (y, y[:1], y[y != y[0]]):
        classes, codes = distinct_labels(labels)
        expected, inverse = np.unique(labels, return_inverse=True)
        assert classes.dtype == expected.dtype
        np.testing.assert_array_equal(classes, expected)
        np.testing.assert_array_equal(codes, inverse)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-128, 127, 0, 127] * 100, np.int8),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64),
        np.array([-(2**63), 2**63 - 1]),
        np.array([7, 5, 7, 4]),
    ],
)
def test_labels_at_the_ends_of_their_type(labels):
    classes, codes = distinct_labels(labels)
    np.testing.assert_array_equal(classes[codes], labels)
    assert classes.dtype == labels.dtype and len(classes) == len(set(labels.tolist()))


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, ">i8", np.float32, float, bool, "U3", object])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predicted_labels_are_of_the_type_of_the_classes(dtype, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    labels = (y % 2).astype(bool) if dtype is bool else y.astype(str).astype(dtype)
    model = CrammerSingerSVC(random_state=0).fit(X, labels)
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype
    expected = model.decision_function(X)
    winners = (expected > 0).astype(int) if expected.ndim == 1 else expected.argmax(axis=1)
    np.testing.assert_array_equal(predicted, model.classes_[winners])


@pytest.mark.parametrize("bad, words", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_plain_arrays_with_a_bad_number_are_refused(bad, words):
    X, y = load_iris(return_X_y=True)
    X[3, 2] = bad
    with pytest.raises(ValueError, match=words):
        CrammerSingerSVC().fit(X, y)


@pytest.mark.parametrize("labels", [np.arange(4) % 2, np.zeros((5, 2), int), np.array(1)])
def test_labels_that_do_not_fit_the_rows_are_refused(labels):
    with pytest.raises(ValueError, match=r"inconsistent numbers|1d array|should be a 1d"):
        CrammerSingerSVC().fit(np.eye(5), labels)


def test_the_same_fit_from_an_array_and_a_frame():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = CrammerSingerSVC(random_state=0)
    named = model.fit(frame, y).coef_
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(model.fit(X, y).coef_, named)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 4


def test_a_number_is_its_own_seed():
    assert seed_of(7) == seed_of(np.int64(7)) == 7
    assert seed_of(np.random.RandomState(3)) == seed_of(np.random.RandomState(3))


def broken(container, name, place, number):
    X = container(np.eye(6)[np.arange(60) % 6])
    getattr(X, name)[place] = number
    return X


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("indices", 3, 10**6), ("indices", 3, 60), ("indices", 3, -1), ("indptr", -1, 10**6), ("indptr", 3, 10**6),
        ("indptr", 3, -5), ("indptr", 0, 1), ("indptr", 4, 0),
    ],
)  # fmt: skip
def test_sparse_rows_with_broken_indices_are_refused(container, kernel, name, place, number):
    """They would be read beside their arrays."""
    X, y = broken(container, name, place, number), np.arange(60) % 3
    alone = CrammerSingerSVC(kernel=kernel)
    for clf in (alone, FuzzyPairwiseClassifier(alone)):
        with pytest.raises(ValueError, match=f"X is no valid CS. matrix: {name} must"):
            clf.fit(X, y)
        clf.fit(container(np.eye(6)[np.arange(60) % 6]), y)
        with pytest.raises(ValueError, match=f"X is no valid CS. matrix: {name} must"):
            clf.predict(X)


def test_rows_for_the_core_are_sorted_and_have_one_type_of_index():
    X = sparse.csr_array((np.arange(1.0, 6), np.array([1, 0, 1, 1, 0]), np.array([0, 2, 4, 5])), shape=(3, 2))
    rows = canonical_csr(X)
    assert [rows.data.tolist(), rows.indices.tolist(), rows.indptr.tolist()] == [
        [2, 1, 7, 5],
        [0, 1, 1, 0],
        [0, 2, 3, 4],
    ]
    assert X.data.tolist() == [1, 2, 3, 4, 5] and X.indices.tolist() == [1, 0, 1, 1, 0]  # the caller's
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int64)
    mixed = canonical_csr(rows)
    assert mixed.indices.dtype == mixed.indptr.dtype and (mixed != rows).nnz == 0


def test_balanced_weights_that_are_no_weights_are_refused():
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 0, 1e-119, 1e119)
    with pytest.raises(ValueError, match="class_weight contains a number of size"):
        CrammerSingerSVC(class_weight="balanced").fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("settings", "weight", "message"),
    [
        ({}, 1e300, "sample_weight contains a number of size 1.0e"),
        ({"class_weight": {0: np.inf}}, 1.0, "class_weight contains a number of size inf"),
        ({"class_weight": {0: "heavy"}}, 1.0, "class_weight must be positive for every class, got {0: 'heavy'}"),
        ({"class_weight": {"0": 2.0}}, 1.0, "class_weight={'0': 2.0} names none of the classes, which are .0, 1, 2."),
        ({"class_weight": {0: None}}, 1.0, "class_weight must be positive for every class, got {0: None}"),
    ],
)
def test_weights_that_are_no_weights_are_refused(settings, weight, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        CrammerSingerSVC(**settings).fit(X, y, sample_weight=np.full(150, weight))


def test_weights_of_classes_that_are_digits_as_text():
    """Some versions of scikit-learn read them as numbers, and miss them then."""
    X, y = load_iris(return_X_y=True)
    weights = {0: 3.0, 2: 0.5}
    of_numbers = CrammerSingerSVC(class_weight=weights, random_state=0).fit(X, y)
    text = {str(c): w for c, w in weights.items()}
    of_text = CrammerSingerSVC(class_weight=text, random_state=0).fit(X, y.astype(str))
    np.testing.assert_array_equal(of_numbers.coef_, of_text.coef_)


@pytest.mark.parametrize("classifier", [CrammerSingerSVC(), SemiSupervisedMarginSVC()])
def test_objects_that_are_no_labels_are_refused(classifier):
    X = np.eye(4)
    with pytest.raises(ValueError, match="y mixes labels of the types NoneType, int"):
        classifier.fit(X, np.array([1, None, 1, None], dtype=object))
    with pytest.raises(ValueError, match="y mixes labels of the types int, str"):
        classifier.fit(X, np.array([1, "b", 1, "b"], dtype=object))
    with pytest.raises(ValueError, match="y holds objects of type bool"):
        classifier.fit(X, np.array([True, False, True, False], dtype=object))


def test_numbers_too_large_for_float32_are_refused():
    X, y = load_iris(return_X_y=True)
    X[3, 2] = 1e25
    with pytest.raises(ValueError, match=r"number of size 1.0e\+25"):
        CrammerSingerSVC().fit(X.astype(np.float32), y)


def test_strings_of_numpy_are_strings():
    X, y = load_iris(return_X_y=True)
    names = np.array([np.str_("a"), "b", np.str_("c")], dtype=object)[y]
    assert set(CrammerSingerSVC().fit(X, names).predict(X)) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "model",
    [
        CrammerSingerSVC(C=1e3), LDMClassifier(kernel="linear", C=1e3), LSSVC(kernel="linear"), M3SVC(),
        MultiMarginSVC(solver="svrg"), SemiSupervisedMarginSVC(C=1e3),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_a_fit_that_stops_early_warns_where_it_was_asked_for(model, monkeypatch):
    monkeypatch.setattr(
        MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 3**2})
    )  # the direct solver has no iterations
    X, y = load_iris(return_X_y=True)
    model.set_params(max_iter=1, tol=1e-9)
    for fit in (model.fit, GridSearchCV(model, {"max_iter": [1]}).fit):
        with pytest.warns(ConvergenceWarning) as caught:
            fit(X, y)
        assert {warning.filename for warning in caught} == {__file__}


def test_a_fit_that_stops_early_warns_in_code_without_a_name():
    model, (X, y) = CrammerSingerSVC(C=1e3, max_iter=1, tol=1e-9), load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=1"):
        exec("model.fit(X, y)", {"model": model, "X": X, "y": y})


@pytest.mark.parametrize("name", skmargin.__all__)
def test_what_a_fit_publishes_is_documented(name):
    machine = getattr(skmargin, name)
    model = machine(LSSVC()) if machine is FuzzyPairwiseClassifier else machine()
    X, y = load_iris(return_X_y=True, as_frame=True)
    attributes = machine.__doc__.partition("Attributes\n")[2]
    for settings in ({"kernel": "linear"}, {"kernel": "rbf"}) if hasattr(model, "kernel") else ({},):
        published = vars(model.set_params(**settings).fit(X, y))
        assert not [a for a in published if a.endswith("_") and not a.startswith("_") and a not in attributes]


@pytest.mark.parametrize("name", skmargin.__all__)
def test_an_unknown_parameter_is_told_under_the_name_of_the_class(name):
    """Also where the constructor is that of a base, whose name a user does not know."""
    with pytest.raises(TypeError, match=rf"^{name}\.__init__\(\) got an unexpected keyword argument 'dual'"):
        getattr(skmargin, name)(dual=True)


@pytest.mark.parametrize(
    "model",
    [
        CrammerSingerSVC(), LpNormSVC(tol=1e-8), LpNormSVC(kernel="rbf"), M3SVC(), M3SVC(solver="adam", tol=0.5),
        MultiMarginSVC(0.01, solver="svrg", tol=0.1), SemiSupervisedMarginSVC(), ULDMClassifier(alpha=[1e-3, 1.0]),
        LDMClassifier(),
    ],
    ids=str,
)  # fmt: skip
def test_every_line_of_a_verbose_fit_begins_alike(model, capsys, monkeypatch):
    monkeypatch.setattr("skmargin.estimators._base.SECONDS", 0.0)
    model.set_params(verbose=1, random_state=0).fit(*load_iris(return_X_y=True))
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(re.match(r"\[skmargin\] [^:]+: \S", line) for line in lines), lines


def described(estimator):
    """What the docstring says of each parameter and attribute."""
    return dict(
        re.findall(r"^(\w+) : (.*(?:\n    .*)*)", inspect.getdoc(estimator).partition("See Also")[0], re.MULTILINE)
    )


def test_the_machines_with_a_dual_describe_what_they_share_alike():
    """Each class has its own docstring: what is said once of all of them must not drift apart."""
    shared = described(CrammerSingerSVC)
    assert {"kernel", "cache_size", "warm_start", "n_jobs", "coef_", "dual_gap_", "n_iter_"} <= set(shared)
    for other in (WestonWatkinsSVC, TopKSVC, LpNormSVC, MultiMarginSVC, ODMClassifier):
        own = described(other)
        assert set(shared) <= set(own)
        different = {name for name in shared if own[name] != shared[name]}
        # The intercept is penalised; C is on the scale of the paper; class vectors are never sparse.
        allowed = {MultiMarginSVC: {"fit_intercept", "coef_"}, ODMClassifier: {"C", "coef_"}}
        assert different <= allowed.get(other, set())
