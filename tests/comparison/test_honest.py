"""Honest scores: metrics and baseline against scikit-learn, raw tables inside folds, words that do not flatter."""

import numpy as np
import pandas as pd
import pytest
from raw_tables import TABLES
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, precision_score, recall_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from skmargin.comparison import METRICS, Comparison, ComparisonError, advise, models, telling_columns, tuned
from skmargin.comparison._metrics import Counts, rates
from skmargin.datasets import Dataset, load_dataset, table_preprocessor
from skmargin.datasets._load import load_training
from skmargin.report import ModelResult, rank_models

KNOWN = models()


def compare(data, names, **options):
    comparison = Comparison(data, [KNOWN[name] for name in names], **options)
    steps = list(comparison.run())
    assert not comparison.errors
    return comparison, steps


def raw(name, tmp_path):
    content, target = TABLES[name]()
    path = tmp_path / f"{name}.csv"
    path.write_bytes(content)
    return load_training(path, target)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_metrics_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    classes = np.array(["a", "b", "c", "d"])
    y, guess = classes[rng.integers(0, 3, 50)], classes[rng.integers(0, 3 + seed % 2, 50)]
    counts = Counts.of(y, guess, classes)
    assert counts.metrics() == pytest.approx(
        {
            "accuracy": accuracy_score(y, guess),
            "balanced-accuracy": balanced_accuracy_score(y, guess),
            "macro-f1": f1_score(y, guess, average="macro", zero_division=0),
        }
    )
    recall, precision = rates([counts])
    assert recall[:3] == pytest.approx(recall_score(y, guess, average=None, labels=classes[:3]).tolist())
    assert recall[3] is None
    assert precision[:3] == pytest.approx(precision_score(y, guess, average=None, labels=classes[:3]).tolist())
    assert {name: scorer for name, (scorer, _) in METRICS.items()} == {
        "accuracy": "accuracy", "balanced-accuracy": "balanced_accuracy", "macro-f1": "f1_macro",
    }  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
def test_the_baseline_is_the_most_frequent_class(metric):
    X, y = load_wine(return_X_y=True)
    comparison = Comparison(Dataset("wine", X, y, None), [], cv=4, metric=metric)
    dummies = [DummyClassifier(strategy="most_frequent").fit(X[train], y[train]) for train, _ in comparison.splits]
    expected = [
        Counts.of(y[test], dummy.predict(X[test]), np.unique(y)).metrics()[metric]
        for dummy, (_, test) in zip(dummies, comparison.splits, strict=True)
    ]
    assert comparison.baseline.fold_scores == expected
    assert comparison.baseline.params == {"says": "1"}


def test_the_metric_chooses_parameters_and_ranks():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.1).astype(int)
    X = rng.normal(size=(400, 3)) + 0.8 * y[:, None]
    comparison, _ = compare(Dataset("rare", X, y, None), ["logistic", "random-forest"], cv=3, metric="macro-f1")
    best, other = comparison.ranked()
    assert np.mean(best.metrics["macro-f1"]) >= np.mean(other.metrics["macro-f1"])
    assert best.fold_scores == best.metrics["macro-f1"]
    train, test = comparison.splits[0]
    inner = StratifiedKFold(3, shuffle=True, random_state=0)
    pipeline = Pipeline([("scale", MinMaxScaler()), ("model", clone(KNOWN["logistic"].estimator))])
    search = GridSearchCV(pipeline, {"model__C": list(KNOWN["logistic"].grid["C"])}, cv=inner, scoring="f1_macro")
    search.fit(X[train], y[train])
    of_logistic = next(model for model in (best, other) if model.name == "logistic")
    expected = f1_score(y[test], search.predict(X[test]), average="macro")
    assert of_logistic.fold_scores[0] == pytest.approx(expected)
    with pytest.raises(ComparisonError, match="metric must be one of accuracy"):
        Comparison(Dataset("rare", X, y, None), [], metric="auc")
    with pytest.raises(ComparisonError, match="class_weight must be"):
        Comparison(Dataset("rare", X, y, None), [], class_weight="even")


def test_class_weights_reach_every_model_that_has_them():
    without = {name for name, model in KNOWN.items() if model.weighted("balanced") is model}
    assert without == {"nearest-neighbours"}
    for name, model in KNOWN.items():
        assert model.weighted(None) is model
        if name not in without:
            params = model.weighted("balanced").estimator.get_params()
            assert "balanced" in (params.get("class_weight"), params.get("estimator__class_weight"))


def test_widths_of_kernels_are_multiples_of_scale():
    X, y = load_wine(return_X_y=True)
    search = tuned(KNOWN["rbf-svm"], X, cv=3, seed=0, n_jobs=1)
    svc = SVC(gamma="scale").fit(MinMaxScaler().fit_transform(X), y)
    assert search.param_grid["model__gamma"] == pytest.approx([0.3 * svc._gamma, svc._gamma, 3 * svc._gamma])
    dense = MinMaxScaler().fit_transform(load_digits().data)
    grids = [tuned(KNOWN["uldm"], X, cv=3, seed=0, n_jobs=1).param_grid for X in (dense, sparse.csr_array(dense))]
    assert grids[0]["model__gamma"] == pytest.approx(grids[1]["model__gamma"])


def test_grids_hold_what_the_machines_are_about():
    wanted = {"m3": {"alpha", "p"}, "lp-norm": {"C", "p"}, "odm": {"C", "mu", "theta"}}
    assert {name: set(KNOWN[name].grid) for name in wanted} == wanted
    assert {name for name, model in KNOWN.items() if model.widths} == {name for name, m in KNOWN.items() if m.kernel}


def test_raw_tables_are_prepared_inside_the_folds(tmp_path):
    data = raw("census", tmp_path)
    comparison, _ = compare(data, ["logistic"], cv=3)
    scores = []
    for train, test in comparison.splits:
        inner = StratifiedKFold(3, shuffle=True, random_state=0)
        pipeline = Pipeline([("table", table_preprocessor(data.X)), ("model", clone(KNOWN["logistic"].estimator))])
        search = GridSearchCV(pipeline, {"model__C": list(KNOWN["logistic"].grid["C"])}, cv=inner)
        search.fit(data.X.iloc[train], data.y[train])
        scores.append(search.score(data.X.iloc[test], data.y[test]))
    assert comparison.ranked()[0].fold_scores == pytest.approx(scores)


def test_a_comparison_of_a_raw_table_can_be_continued(tmp_path):
    data, store = raw("penguins", tmp_path), tmp_path / "state.json"
    first, _ = compare(data, ["logistic"], cv=2, store=store)
    second, steps = compare(data, ["logistic"], cv=2, store=store)
    assert steps == [] and second.ranked()[0].metrics == first.ranked()[0].metrics
    data.X.loc[0, "island"] = "Elsewhere"
    with pytest.raises(ComparisonError, match="data differ"):
        Comparison(data, [KNOWN["logistic"]], cv=2, store=store)


def test_only_regular_files_of_some_size_are_continued(tmp_path, monkeypatch):
    with pytest.raises(ComparisonError, match="is not a regular file"):
        Comparison(load_dataset("iris"), [], store="/dev/full")
    monkeypatch.setattr("skmargin.comparison._compare.MAX_STATE", 1000)
    store = tmp_path / "state.json"
    store.write_bytes(b" " * 1001)
    with pytest.raises(ComparisonError, match="is larger than"):
        Comparison(load_dataset("iris"), [], store=store)


def test_neighbours_are_no_more_than_there_are():
    few = Dataset("few", np.arange(12.0)[:, None], np.arange(12) % 2, None)
    comparison, _ = compare(few, ["nearest-neighbours"], cv=3)
    assert all(fold.params["n_neighbors"] <= 5 for fold in comparison.folds["nearest-neighbours"])


def model(name, scores, **more):
    return ModelResult(name, fold_scores=list(scores), fit_time=1.0, **more)


def test_the_words_know_the_baseline():
    baseline = model("majority class", [0.966] * 5, params={"says": "fine"}, p_value=0.3)
    best = model("logistic", [0.97, 0.965, 0.972, 0.968, 0.975])
    words = advise([best], baseline)
    assert words[0] == (
        "No model is clearly better than always saying 'fine' (p >= 0.05): logistic is first with "
        "97.0 % of new samples right (± 0.4 over 5 folds), 96.6 % by always saying 'fine'."
    )
    baseline.p_value = 0.01
    assert advise([model("logistic", [0.99] * 5)], baseline)[0].endswith("96.6 % by always saying 'fine'.")
    two = model("majority class", [0.3, 0.35], params={"says": "a"}, p_value=0.06)
    assert advise([model("m3", [0.9, 0.92])], two)[0].startswith("Choose m3")  # two folds, and far ahead
    assert advise([model("m3", [0.36, 0.34])], two)[0].startswith("No model")


def test_the_words_say_so_when_a_classic_wins():
    ranked = rank_models([model("forest", [0.9, 0.91, 0.92, 0.9]), model("m3", [0.8, 0.82, 0.81, 0.8])])
    assert advise(ranked, own={"m3"})[-1] == "The best machine of skmargin, m3 (80.8 %), is clearly worse than forest."
    near = rank_models([model("forest", [0.9, 0.91, 0.92, 0.9]), model("m3", [0.91, 0.89, 0.9, 0.91])])
    assert (
        advise(near, own={"m3"})[-1] == "The best machine of skmargin, m3 (90.3 %), is not clearly worse than forest."
    )
    assert not [word for word in advise(ranked, own={"forest", "m3"}) if "best machine" in word]
    assert "balanced accuracy on new samples" in advise(ranked, metric="balanced-accuracy")[0]


def test_a_column_that_tells_all_is_found():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.c_[rng.normal(size=300), 1e308 * (y - 1.0), rng.normal(size=300)]
    data = Dataset("leak", X, y, ["a", "b", "c"])
    assert telling_columns(data, 1.0, 0.35) == {"b": 1.0}
    assert telling_columns(data, 1.0, 1.0) == {}
    assert telling_columns(Dataset("leak", sparse.csr_array(X), y, ["a", "b", "c"]), 1.0, 0.35) == {}
    assert telling_columns(load_dataset("iris"), 0.98, 0.33) == {}
    frame = pd.DataFrame({"same": 1, "a": X[:, 0], "word": np.array(["x", "y", "z"])[y]})
    assert telling_columns(Dataset("leak", frame, y, list(frame)), 1.0, 0.35) == {"word": 1.0}
