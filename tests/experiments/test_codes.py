import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from skmargin.experiments import ExhaustiveCodeClassifier


@pytest.mark.parametrize("k", [2, 3, 5])
def test_code_divides_the_classes_in_every_way_once(k):
    X, y = load_digits(n_class=k, return_X_y=True)
    model = ExhaustiveCodeClassifier(LinearSVC(dual=False)).fit(X / 16, y)
    assert model.code_.shape == (k, 2 ** (k - 1) - 1)
    divisions = {min(tuple(column), tuple(1 - column)) for column in model.code_.T}
    assert len(divisions) == model.code_.shape[1]
    assert all(0 < column.sum() < k for column in model.code_.T)
    if k > 2:  # any two words differ in 2^(k-2) places
        distances = (model.code_[:, None] != model.code_[None]).sum(axis=2)
        assert set(distances[~np.eye(k, dtype=bool)]) == {2 ** (k - 2)}


def test_prediction_is_the_nearest_word():
    X, y = load_digits(n_class=4, return_X_y=True)
    X, names = X / 16, np.array(["zero", "one", "two", "three"])[y]
    model = ExhaustiveCodeClassifier(LinearSVC(dual=False)).fit(X, names)
    words = np.stack([machine.predict(X) for machine in model.estimators_], axis=1)
    distance = (words[:, None, :] != model.code_[None]).sum(axis=2)
    np.testing.assert_array_equal(model.predict(X), model.classes_[distance.argmin(axis=1)])
    assert model.score(X, names) > 0.9


def test_too_many_and_too_few_classes_are_refused():
    X = np.arange(24.0).reshape(12, 2)
    with pytest.raises(ValueError, match="2 to 11 classes; y has 12"):
        ExhaustiveCodeClassifier(LinearSVC()).fit(X, np.arange(12))
    with pytest.raises(ValueError, match="y has 1"):
        ExhaustiveCodeClassifier(LinearSVC()).fit(X, np.zeros(12))
