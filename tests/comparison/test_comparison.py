"""The comparison: scores against scikit-learn's own nested search, continuing, and refusals."""

import json
import time
from dataclasses import replace
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
from skmargin.comparison import Comparison, ComparisonError, Model, advise, choose, models
from skmargin.datasets import Dataset, load_dataset
from skmargin.report import ModelResult, corrected_paired_ttest, rank_models

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
        assert set(comparison.folds[name][0].params) == set(KNOWN[name].grid) | (
            {"gamma"} if KNOWN[name].widths else set()
        )


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
        json.dumps({**state, "format": "another"}),
        json.dumps({**state, "format_version": 9}),
        json.dumps({**state, "models": 3}),
    ):
        store.write_text(broken)
        with pytest.raises(ComparisonError, match="not a file of an interrupted comparison"):
            compare(load_dataset("iris"), ["one-vs-rest"], cv=3, store=store)
        assert store.read_text() == broken


def test_a_changed_model_is_run_again(tmp_path):
    store, iris, known = tmp_path / "state.json", load_dataset("iris"), KNOWN["one-vs-rest"]
    for other in (replace(known, grid={"C": (1.0,)}), replace(known, estimator=LinearSVC(tol=1e-3))):
        compare(iris, ["one-vs-rest"], cv=2, store=store)
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
    assert words[2] == "Choose best for its score, or equal, which of these is the fastest to fit."
    assert words[3] == "The other model is clearly worse (p < 0.05)."
    assert advise([best]) == ["Choose best: 91.3 % of new samples right (± 1.5 over 3 folds)."]
    level = model("level", [0.93, 0.91, 0.90], 1.0)
    assert (
        advise(rank_models([best, level]))[2] == "Choose level: it is level with best, and of these the fastest to fit."
    )
    unknown = [model(name, best.fold_scores, None) for name in "ab"]
    assert choose(rank_models([best, level])) is level and choose(rank_models([worse, equal, best])) is best
    assert "fastest" not in " ".join(advise(rank_models(unknown)))
    once = [model("a", [0.9], 1.0), model("b", [0.8], 1.0)]  # one fold: nothing to test
    assert advise(rank_models(once)) == ["Choose a: 90.0 % of new samples right."]


def test_folds_of_a_comparison_that_is_told_nothing():
    iris = load_dataset("iris")
    expected = StratifiedKFold(5, shuffle=True, random_state=0).split(iris.X, iris.y)
    for found, wanted in zip(Comparison(iris, []).splits, expected, strict=True):
        np.testing.assert_array_equal(found[1], wanted[1])


def test_ranking_holds_means_over_all_folds_and_tests_of_their_size():
    names = ["one-vs-rest", "logistic", "rbf-svm"]
    comparison, _ = compare(load_dataset("wine"), names, cv=4)
    best, *others = comparison.ranked()
    for result in (best, *others):
        folds = comparison.folds[result.name]
        assert result.fit_time == np.mean([fold.fit_time for fold in folds])
        assert result.predict_time == np.mean([fold.predict_time for fold in folds])
    for result in others:
        assert result.p_value == corrected_paired_ttest(best.fold_scores, result.fold_scores, n_test=44)


def test_models_without_all_folds_have_no_rank():
    comparison = Comparison(load_dataset("iris"), [KNOWN["one-vs-rest"]], cv=3)
    list(islice(comparison.run(), 2))
    assert comparison.ranked() == []


def test_hardest_samples_are_rows_of_the_data():
    comparison, _ = compare(load_dataset("wine"), ["one-vs-rest"], cv=3)
    samples = comparison.ranked()[0].hardest
    assert {sample.row for sample in samples} <= set(comparison.splits[0][1])
    assert [sample.true for sample in samples] == [str(comparison.data.y[sample.row]) for sample in samples]


class Hesitant(LinearSVC):
    def predict(self, X):
        time.sleep(0.01)
        return super().predict(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fold_knows_the_time_of_predicting_and_whether_the_fits_ended():
    hesitant = Model("hesitant", "", Hesitant(max_iter=1), {"C": (1.0,)})
    comparison = Comparison(load_dataset("iris"), [hesitant, KNOWN["one-vs-rest"]], cv=2)
    list(comparison.run())
    for fold in comparison.folds["hesitant"]:
        assert not fold.converged and fold.predict_time >= 0.01 and fold.params == {"C": 1.0}
    assert all(fold.converged for fold in comparison.folds["one-vs-rest"])


@pytest.mark.parametrize("cv", [2, 3, 4])
def test_as_few_samples_as_are_allowed_are_enough(cv):
    """The parameters are then chosen on two folds, or three."""
    n = max(cv, 4 if cv == 2 else 3)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], n)
    data = Dataset("few", rng.normal(size=(len(y), 2)) + y[:, None], y, None)
    comparison, steps = compare(data, ["logistic"], cv=cv)
    assert not comparison.errors and len(steps) == cv
    with pytest.raises(ComparisonError, match=f"class '1' has only {n - 1} samples"):
        Comparison(Dataset("few", data.X[:-1], y[:-1], None), [], cv=cv)


@pytest.mark.parametrize("part", ["data", "indices", "labels", "seed"])
def test_every_change_of_the_data_is_seen(tmp_path, part):
    store = tmp_path / "state.json"
    wine = load_dataset("wine")
    X = sparse.csr_array(wine.X * (np.median(wine.X, axis=0) < wine.X))
    compare(Dataset("wine", X, wine.y, None), ["logistic"], cv=2, store=store)
    other, y, seed = X.copy(), wine.y.copy(), 0
    if part == "data":
        other.data[0] += 1
    elif part == "indices":
        other.indices[[0, 1]] = other.indices[[1, 0]]
    elif part == "labels":
        y[[0, -1]] = y[[-1, 0]]
    else:
        seed = 1
    with pytest.raises(ComparisonError, match=r"\(seed differ\)" if part == "seed" else r"\(data differ\)"):
        compare(Dataset("wine", other, y, None), ["logistic"], cv=2, seed=seed, store=store)


@pytest.mark.parametrize("name", ["skmargin", "scikit-learn"])
def test_a_state_of_another_version_is_refused(tmp_path, name):
    store = tmp_path / "state.json"
    compare(load_dataset("iris"), ["logistic"], cv=2, store=store)
    state = json.loads(store.read_bytes())
    state["settings"][name] = "0.0"
    store.write_text(json.dumps(state))
    with pytest.raises(ComparisonError, match=rf"another comparison \({name} differ\)"):
        compare(load_dataset("iris"), ["logistic"], cv=2, store=store)


def test_the_words_count_the_models():
    def ranked(n_equal, n_worse, scores=(0.9, 0.91, 0.93)):
        others = [ModelResult(f"e{i}", fold_scores=list(scores), fit_time=2.0, p_value=0.05) for i in range(n_equal)]
        others += [ModelResult(f"w{i}", fold_scores=[0.5] * 3, fit_time=0.1, p_value=0.049) for i in range(n_worse)]
        return [ModelResult("best", fold_scores=list(scores), fit_time=1.0), *others]

    words = advise(ranked(4, 2))
    assert words[1] == "The folds show no clear difference from e0, e1, e2, e3 (p >= 0.05)."
    assert words[2] == "Choose best: of these it is also the fastest to fit."
    assert words[3] == "The other 2 models are clearly worse (p < 0.05)."
    words = advise(ranked(6, 0, (0.9, 0.92)))
    assert words[0] == "best is first: 91.0 % of new samples right (± 1.4 over 2 folds)."
    assert words[1] == "The folds show no clear difference from e0, e1, e2, e3 and 2 more (p >= 0.05)."
    assert len(words) == 3


def test_the_words_claim_nothing_of_models_that_were_not_tested():
    """A fold without a score leaves a model without a p-value; a fit without a time is not the fastest."""
    a, b = (
        ModelResult(name, fold_scores=[0.9, 0.91, s], fit_time=t) for name, s, t in (("a", 0.93, 2), ("b", 0.92, 1))
    )
    failed = ModelResult("failed", fold_scores=[0.9, np.nan, 0.9], fit_time=0.1)
    untimed = ModelResult("untimed", fold_scores=[0.9, 0.9, 0.91])
    words = advise(rank_models([a, b, failed, untimed]))
    assert words[2] == "Choose a for its score, or b, which of these is the fastest to fit." and len(words) == 3
