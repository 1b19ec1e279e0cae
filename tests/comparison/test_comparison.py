"""The comparison: scores against scikit-learn's own nested search, continuing, and refusals."""

import json
from itertools import islice

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import LinearSVC

import skmargin
from skmargin.comparison import Comparison, ComparisonError, Model, advise, models
from skmargin.datasets import Dataset, load_dataset
from skmargin.report import ModelResult, rank_models

KNOWN = models()


def compare(data, names, **options):
    comparison = Comparison(data, [KNOWN[name] for name in names], **options)
    steps = list(comparison.run())
    return comparison, steps


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_scores_are_those_of_a_nested_search(kind):
    X, y = load_wine(return_X_y=True)
    X = X if kind == "dense" else sparse.csr_array(X * (np.median(X, axis=0) < X))
    comparison, _ = compare(Dataset("wine", X, y, None), ["one-vs-rest"], cv=3, seed=1)
    scores = []
    scaler = MinMaxScaler() if kind == "dense" else MaxAbsScaler()
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1).split(X, y):
        inner = StratifiedKFold(3, shuffle=True, random_state=1)
        pipeline = make_pipeline(clone(scaler), LinearSVC(random_state=0))
        search = GridSearchCV(pipeline, {"linearsvc__C": list(KNOWN["one-vs-rest"].grid["C"])}, cv=inner)
        scores.append(search.fit(X[train], y[train]).score(X[test], y[test]))
    assert comparison.ranked()[0].fold_scores == scores


@pytest.mark.parametrize("name", KNOWN)
def test_every_model_learns_dense_and_sparse(name):
    wine = load_dataset("wine")
    for X in (wine.X, sparse.csr_array(MinMaxScaler().fit_transform(wine.X))):
        comparison, steps = compare(Dataset("wine", X, wine.y, wine.feature_names), [name], cv=2)
        assert not comparison.errors
        assert steps == [name, name]
        (result,) = comparison.ranked()
        assert np.mean(result.fold_scores) > 0.9
        assert result.confusion is not None
        assert set(comparison.folds[name][0].params) == set(KNOWN[name].grid)


def test_every_classifier_of_the_package_takes_part():
    classes = {type(model.estimator).__name__ for model in KNOWN.values() if model.own}
    others = {"FuzzyPairwiseClassifier", "SemiSupervisedMarginSVC"}  # need an estimator, or rows without labels
    assert classes == set(skmargin.__all__) - others


def test_continuing_gives_the_same_as_one_run(tmp_path):
    iris, names, store = load_dataset("iris"), ["one-vs-rest", "crammer-singer"], tmp_path / "state.json"
    whole, _ = compare(iris, names, cv=3)
    first = Comparison(iris, [KNOWN[name] for name in names], cv=3, store=store)
    assert list(islice(first.run(), 4))[-1] == "crammer-singer"
    assert list(tmp_path.iterdir()) == [store]
    second, steps = compare(iris, names, cv=3, store=store)
    assert steps == ["crammer-singer"] * 2
    for a, b in zip(whole.ranked(), second.ranked(), strict=True):
        assert (a.name, a.fold_scores, a.p_value) == (b.name, b.fold_scores, b.p_value)
        assert (a.confusion, a.hardest, a.margins) == (b.confusion, b.hardest, b.margins)
    third, steps = compare(iris, ["logistic", *names], cv=3, store=store)
    assert steps == ["logistic"] * 3
    assert len(third.ranked()) == 3


def test_a_state_of_another_comparison_is_refused(tmp_path):
    store = tmp_path / "state.json"
    compare(load_dataset("iris"), ["one-vs-rest"], cv=3, store=store)
    with pytest.raises(ComparisonError, match=r"another comparison \(cv differ\)"):
        compare(load_dataset("iris"), ["one-vs-rest"], cv=4, store=store)
    with pytest.raises(ComparisonError, match=r"another comparison \(data differ\)"):
        compare(load_dataset("wine"), ["one-vs-rest"], cv=3, store=store)
    state = json.loads(store.read_bytes())
    for broken in (
        "",
        "[]",
        "{}",
        '"text"',
        json.dumps({**state, "format_version": 9}),
        json.dumps({**state, "models": 3}),
    ):
        store.write_text(broken)
        with pytest.raises(ComparisonError, match="not a file of an interrupted comparison"):
            compare(load_dataset("iris"), ["one-vs-rest"], cv=3, store=store)
        assert store.read_text() == broken


def test_a_changed_grid_is_run_again(tmp_path):
    store, iris = tmp_path / "state.json", load_dataset("iris")
    compare(iris, ["one-vs-rest"], cv=2, store=store)
    other = Model("one-vs-rest", "", LinearSVC(), {"C": (1.0,)})
    assert len(list(Comparison(iris, [other], cv=2, store=store).run())) == 2


def test_one_model_that_fails_leaves_the_others():
    bad = Model("bad", "", LinearSVC(), {"C": (-1.0,)})
    comparison = Comparison(load_dataset("iris"), [bad, KNOWN["one-vs-rest"]], cv=2)
    assert list(comparison.run()) == ["bad", "one-vs-rest", "one-vs-rest"]
    assert "InvalidParameterError" in comparison.errors["bad"]
    assert [model.name for model in comparison.ranked()] == ["one-vs-rest"]


@pytest.mark.parametrize(
    ("labels", "cv", "message"),
    [
        ([0] * 9, 3, "only one class, '0'"),
        (["a"] * 8 + ["rare"], 3, "class 'rare' has only 1 sample, 3 are needed for 3 folds"),
        (["a"] * 8 + ["rare"] * 3, 2, "class 'rare' has only 3 samples, 4 are needed for 2 folds"),
        (None, 3, "no labels"),
    ],
)
def test_labels_that_cannot_be_split_are_refused(labels, cv, message):
    X = np.ones((11, 2))
    y = None if labels is None else np.array(labels)
    with pytest.raises(ComparisonError, match=message):
        Comparison(Dataset("data", X, y, None), [KNOWN["logistic"]], cv=cv)


def test_the_words_follow_the_numbers():
    def model(name, scores, fit_time):
        return ModelResult(name, fold_scores=scores, fit_time=fit_time)

    best, equal = model("best", [0.9, 0.91, 0.93], 2.0), model("equal", [0.91, 0.90, 0.92], 1.0)
    worse = model("worse", [0.5, 0.51, 0.53], 0.1)
    words = advise(rank_models([worse, equal, best]))
    assert words[0].startswith("best is first: 91.3 % of new samples right")
    assert "no clear difference from equal (p >= 0.05)" in words[1]
    assert words[2] == "Choose best for accuracy, or equal, which of these is the fastest to fit."
    assert words[3] == "The other model is clearly worse (p < 0.05)."
    assert advise([best]) == ["Choose best: 91.3 % of new samples right (± 1.5 over 3 folds)."]
    level = model("level", [0.93, 0.91, 0.90], 1.0)
    assert (
        advise(rank_models([best, level]))[2] == "Choose level: it is level with best, and of these the fastest to fit."
    )
    unknown = [model(name, best.fold_scores, None) for name in "ab"]
    assert "fastest" not in " ".join(advise(rank_models(unknown)))
    once = [model("a", [0.9], 1.0), model("b", [0.8], 1.0)]  # one fold: nothing to test
    assert advise(rank_models(once)) == ["Choose a: 90.0 % of new samples right."]
