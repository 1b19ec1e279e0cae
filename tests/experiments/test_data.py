import bz2
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.model_selection import train_test_split

from skmargin.datasets import DataError
from skmargin.experiments import EXPERIMENTS, MissingData, Protocol, Source, Split
from skmargin.experiments._data import divide, find, is_here, load
from skmargin.experiments._published import published
from skmargin.experiments._sources import RAETSCH
from skmargin.experiments._spec import thin


def write(path, X, y):
    with bz2.open(path, "wb") as file:
        dump_svmlight_file(X, y, file, zero_based=False)


def test_parts_of_a_set_under_both_names(tmp_path):
    X, y = load_iris(return_X_y=True)
    source = Source("flowers", (("flowers.train", "flowers"), ("flowers.test", "flowers.t")), n_features=4)
    assert not is_here(source, tmp_path)
    with pytest.raises(MissingData, match=r"flowers.*`flowers\.t`.*--data"):
        find(source, tmp_path)
    write(tmp_path / "flowers.train.svm.bz2", X[:100], y[:100])
    write(tmp_path / "flowers.t.bz2", X[100:], y[100:])
    assert [path.name for path in find(source, tmp_path)] == ["flowers.train.svm.bz2", "flowers.t.bz2"]
    rows, labels, n_train = load(source, tmp_path)
    np.testing.assert_allclose(rows, X)
    np.testing.assert_array_equal(labels, y)
    assert n_train == 100
    train, test = divide(Protocol(Split("given")), labels, n_train, 0)
    assert len(train) == 100 and len(test) == 50


def test_part_of_the_classes_and_rows():
    _, y, _ = load(Source("digits, 3 classes", n_classes=3), None)
    assert set(y) == {0, 1, 2}
    X, y, _ = load(Source("iris", rows=40), None)
    again, _, _ = load(Source("iris", rows=40), None)
    assert len(y) == 40
    np.testing.assert_array_equal(X, again)


def test_raetsch_sets_by_key(tmp_path):
    np.savez(tmp_path / "raetsch.npz", breast_cancer_X=np.zeros((4, 2)), breast_cancer_y=np.array([-1, 1, -1, 1]))
    assert is_here(Source("breast cancer", raetsch=True), tmp_path)
    assert not is_here(Source("banana", raetsch=True), tmp_path)
    X, y, _ = load(Source("breast cancer", raetsch=True), tmp_path)
    assert X.shape == (4, 2) and list(y) == [0, 1, 0, 1]


def test_unknown_built_in_set_is_missing():
    assert not is_here(Source("nothing"), None)


@pytest.mark.parametrize(
    ("split", "sizes"),
    [
        (Split(), (96, 24)),
        (Split(test=0.5), (60, 60)),
        (Split(train=30, test=50), (30, 50)),
        (Split(train=30, test=50.0), (30, 50)),
        (Split("kfold"), (96, 24)),
        (Split("random"), (96, 24)),
    ],
)
def test_divisions_are_disjoint_seeded_and_differ(split, sizes):
    y = np.repeat([0, 1, 2], 40)
    protocol = Protocol(split)
    seen = set()
    for number in range(7):
        train, test = divide(protocol, y, len(y), number)
        assert (len(train), len(test)) == sizes
        assert not set(train) & set(test)
        np.testing.assert_array_equal(test, divide(protocol, y, len(y), number)[1])
        seen.add(tuple(sorted(test)))
    assert len(seen) == 7


def test_division_of_the_authors_of_m3svm_is_that_of_scikit_learn():
    y = np.repeat([0, 1, 2], [50, 7, 60])
    expected = train_test_split(np.arange(len(y)), test_size=0.2, random_state=42)
    for number in (0, 3):  # the number seeds the method only
        for rows, same in zip(divide(Protocol(Split("random", seed=42)), y, len(y), number), expected, strict=True):
            np.testing.assert_array_equal(rows, same)


def test_given_division_at_another_row():
    train, test = divide(Protocol(Split("given", train=16)), np.repeat([0, 1], 10), 15, 0)
    np.testing.assert_array_equal(np.r_[train, test], np.arange(20))
    assert len(train) == 16


def test_features_are_standardised_over_all_rows_where_a_source_says_so():
    X, _, _ = load(Source("wine", scale="standard, all rows"), None)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)


def test_folds_of_one_round_cover_everything():
    y = np.repeat([0, 1], 25)
    parts = [divide(Protocol(Split("kfold")), y, 50, number)[1] for number in range(5)]
    assert sorted(np.concatenate(parts)) == list(range(50))


def test_rows_are_capped():
    y = np.repeat([0, 1], 100)
    train, test = divide(Protocol(rows=30, test_rows=10), y, 200, 3)
    assert len(train) == 30 and len(test) == 10 and not set(train) & set(test)


def test_thin_spreads_values():
    grid = {"C": tuple(range(11)), "mu": (0.2, 0.4, 0.6, 0.8)}
    assert thin(grid, None) == {"C": list(range(11)), "mu": [0.2, 0.4, 0.6, 0.8]}
    assert thin(grid, (3, 2)) == {"C": [0, 3, 7], "mu": [0.2, 0.6]}
    assert thin(grid, (1, 1)) == {"C": [0], "mu": [0.2]}


def test_every_published_figure_belongs_to_a_description():
    for name, experiment in EXPERIMENTS.items():
        known = {method.name for method in experiment.methods}
        for (_, method), (mean, deviation) in published(name).items():
            assert method in known or method.removesuffix(", C").removesuffix(", gamma") in known
            assert 0 < mean <= (100 if experiment.view == "accuracy" else 2e5)
            assert deviation is None or 0 <= deviation < 20
        assert not experiment.table or experiment.table == "none" or published(experiment.table)
        assert set(experiment.columns.values()) <= {method for _, method in published(experiment.table)}
    assert published("mcodm-table2")["usps", "ovaSVM"] == (94.2, 0.3)
    assert published("m3svm-table1")["glass", "M3SVM"] == (74.4, 0.7)
    assert published("abe-table1").keys() == {(name, m) for name in RAETSCH for m in ("ULDM", "LS SVM", "L1 SVM")}


@pytest.fixture
def parts(tmp_path):
    """A training part of 100 rows and a test part of 50, with the labels 1, 2, 5 and a last feature all zero in one."""
    rng = np.random.default_rng(0)
    X = rng.random((150, 40)) * (rng.random((150, 40)) < 0.05)
    X[:, 0], X[100:, 39] = np.arange(150) + 1, 0
    X[0, 39] = 1
    y = np.array([1, 2, 5])[np.arange(150) % 3]
    write(tmp_path / "set.bz2", X[:100], y[:100])
    write(tmp_path / "set.t.bz2", X[100:], y[100:])
    return X, y, Source("set", (("set",), ("set.t",))), tmp_path


def test_parts_of_different_width_stay_sparse(parts):
    X, y, source, folder = parts
    for n_features in (None, 45):
        rows, labels, n_train = load(replace(source, n_features=n_features), folder)
        assert sparse.issparse(rows) and rows.shape == (150, n_features or 40) and n_train == 100
        np.testing.assert_allclose(rows.toarray()[:, :40], X)
        np.testing.assert_array_equal(labels, np.searchsorted([1, 2, 5], y))


@pytest.mark.parametrize(("choice", "kept"), [({"classes": (5, 1)}, (1, 5)), ({"n_classes": 2}, (1, 2))])
def test_classes_are_kept_by_label_or_by_number(parts, choice, kept):
    X, y, source, folder = parts
    rows, labels, n_train = load(replace(source, **choice), folder)
    there = np.isin(y, kept)
    np.testing.assert_array_equal(rows[:, [0]].toarray()[:, 0], X[there, 0])
    np.testing.assert_array_equal(labels, y[there] == kept[1])
    assert n_train == there[:100].sum()


def test_rows_are_drawn_from_both_parts_and_keep_their_order(parts):
    _, y, source, folder = parts
    rows, labels, n_train = load(replace(source, rows=60), folder)
    numbers = rows[:, [0]].toarray()[:, 0].astype(int) - 1
    assert len(set(numbers)) == 60 and (np.diff(numbers) > 0).all()
    assert n_train == (numbers < 100).sum() and 20 < n_train < 60
    np.testing.assert_array_equal(labels, np.searchsorted([1, 2, 5], y[numbers]))
    assert len(load(replace(source, rows=150), folder)[1]) == 150


@pytest.mark.parametrize("n_train", [0, 30])
def test_files_without_a_test_part_are_refused(n_train):
    with pytest.raises(DataError, match="no test part"):
        divide(Protocol(Split("given")), np.repeat([0, 1], 15), n_train, 0)


def test_the_given_training_part_is_capped_at_random():
    y = np.repeat([0, 1], 100)
    drawn = [divide(Protocol(Split("given"), rows=30), y, 150, number)[0] for number in (0, 0, 1)]
    assert all(len(set(train)) == 30 and train.max() < 150 for train in drawn)
    assert np.ptp(drawn[0]) > 40 and set(drawn[0]) == set(drawn[1]) != set(drawn[2])


def test_classes_are_divided_evenly_where_they_can_be():
    y = np.repeat([0, 1, 2], [2, 18, 40])
    for number in range(5):
        train, test = divide(Protocol(Split(test=0.5)), y, 60, number)
        assert np.bincount(y[train]).tolist() == np.bincount(y[test]).tolist() == [1, 9, 20]
    y[0] = 3  # two classes of one row each
    train, test = divide(Protocol(Split(test=0.5)), y, 60, 0)
    assert sorted([*train, *test]) == list(range(60)) and len(test) == 30
