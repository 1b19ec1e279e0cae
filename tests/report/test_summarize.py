import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from skmargin import CrammerSingerSVC, ODMClassifier, SemiSupervisedMarginSVC
from skmargin.inspection import generalization_bound, margins, pairwise_margins
from skmargin.report import (
    ModelResult,
    Results,
    corrected_paired_ttest,
    rank_models,
    render_report,
    summarize_dataset,
    summarize_model,
)

X, y = load_iris(return_X_y=True)
DATA = summarize_dataset("iris", X, y, ["a", "b", "c", "d"])


def test_summary_agrees_with_the_inspection_functions():
    model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X[::2], y[::2])
    m = summarize_model(
        "m",
        model,
        X[1::2],
        y[1::2],
        DATA,
        X_train=X[::2],
        y_train=y[::2],
        rows=np.arange(1, 150, 2),
    )
    margin = margins(model, X[1::2], y[1::2])
    assert m.test_score == model.score(X[1::2], y[1::2])
    assert_allclose(m.statistics["test"]["mean"], margin.mean())
    assert m.statistics["train"]["n_samples"] == 75
    assert np.sum(m.margins.counts["test"]) == 75
    assert_array_equal(np.sum(m.margins.counts["test"], axis=1), np.bincount(y[1::2]))
    edges = np.linspace(m.margins.low, m.margins.high, 81)
    clipped = np.clip(margin, m.margins.low, m.margins.high)
    assert_array_equal(np.sum(m.margins.counts["test"], axis=0), np.histogram(clipped, edges)[0])
    assert np.trace(m.confusion) / np.sum(m.confusion) == m.test_score
    widths = pairwise_margins(model)
    assert m.pairwise[0][0] is None
    assert_allclose(m.pairwise[0][1], widths[0, 1])
    first = int(np.argmin(margin))
    assert (m.hardest[0].row, m.hardest[0].margin) == (1 + 2 * first, margin[first])
    assert m.hardest[0].values == [[n, v] for n, v in zip("abcd", X[1 + 2 * first].tolist(), strict=True)]
    assert m.ambiguous[0].margin == margin[np.argmin(np.abs(margin))]
    kinds = [(bound, version) for bound in ("mcodm", "lp") for version in ("sharp", "proof", "printed")]
    for found, (bound, version) in zip(m.bounds, kinds, strict=True):
        assert found["total"] == generalization_bound(model, X[::2], y[::2], bound=bound, version=version).total
    assert m.params["C"] == 1.0 and m.certificate["n_iter_"] == model[-1].n_iter_


def test_a_certificate_of_a_convex_part_says_so():
    """The objective of the other machines is optimal; that of these is a local minimum."""
    for model, of_a_part in ((CrammerSingerSVC(), None), (ODMClassifier(), True), (SemiSupervisedMarginSVC(), True)):
        m = summarize_model("m", model.fit(X, y), X, y, DATA)
        assert m.certificate.get("convex_part") is of_a_part


def test_binary_sparse_pictures_and_classifiers_without_scores():
    A, b = load_breast_cancer(return_X_y=True)
    A, b = sparse.csr_array(A), np.array(["<b>", 'q"'], dtype=object)[b]
    data = summarize_dataset("cancer", A, b)
    m = summarize_model("m", SVC().fit(A, b), A, b, data)
    assert len(m.margins.counts["test"]) == 2 and m.hardest[0].true in ("<b>", 'q"')
    m = summarize_model("forest", RandomForestClassifier(5, random_state=0).fit(A, b), A, b, data)
    assert m.margins is None and m.pairwise is None and m.confusion is not None
    digits = load_digits()
    data = summarize_dataset("digits", digits.data, digits.target, digits.feature_names)
    assert data.image_shape == [8, 8]
    m = summarize_model("m", SVC().fit(digits.data, digits.target), digits.data, digits.target, data)
    assert len(m.hardest[0].pixels) == 64 and max(m.hardest[0].pixels) == 99 and m.bounds == []


def test_one_vs_one_machines_have_pair_widths_and_others_score_gaps():
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, y)
    assert summarize_model("m", model, X, y, DATA).pairwise_quantity == "median score gap"
    assert summarize_model("m", SVC().fit(X, y), X, y, DATA).pairwise_quantity.startswith("2 /")


def test_rows_and_labels_of_every_kind():
    names = np.array(["a", "b", "c"])[y]
    frame = pd.DataFrame(X, columns=list("uvwx"))
    for rows, labels in (
        (frame, pd.Series(names, index=range(7, 157), dtype="category")),
        (X.tolist(), names.tolist()),
        (sparse.coo_array(X), names),
        (X, pd.Series(y, dtype="Int64")),
    ):
        model = CrammerSingerSVC(random_state=0).fit(rows, labels)
        data = summarize_dataset("iris", rows, labels)
        m = summarize_model("m", model, rows, labels, data, X_train=rows, y_train=labels)
        assert data.feature_names == (list("uvwx") if rows is frame else None) and len(m.bounds) == 6
        assert [v for _, v in m.hardest[0].values] == X[m.hardest[0].row].tolist()
        render_report(Results("t", data, rank_models([m])))
    assert rank_models([]) == []


def test_a_matrix_of_some_classes_counts_all_samples():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(600, 3)), np.arange(600) % 60
    model = RandomForestClassifier(3, random_state=0).fit(rows[:300], labels[:300])
    m = summarize_model("m", model, rows[300:], labels[300:], summarize_dataset("d", rows, labels))
    assert m.confusion_totals == [5] * 40
    assert (np.sum(m.confusion, axis=1) < 5).any()  # some are taken for a class that is not shown


def test_samples_of_a_frame_with_text_show_it():
    frame = pd.DataFrame({"length": X[:, 0], "kind": np.array(["u", "v"])[np.arange(150) % 2], "new": X[:, 1] > 3})
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encoder, LinearSVC(random_state=0)).fit(frame, y)
    m = summarize_model("m", model, frame, y, summarize_dataset("iris", frame, y))
    assert m.hardest[0].values == [[name, frame[name].iloc[m.hardest[0].row]] for name in frame]
    render_report(Results("t", DATA, [m]))


def test_corrected_test_by_hand():
    a, b = np.array([0.9, 0.8, 0.85, 0.9, 0.95]), np.array([0.8, 0.8, 0.8, 0.85, 0.85])
    plain = stats.ttest_rel(a, b)
    t = plain.statistic * np.sqrt((1 / 5) / (1 / 5 + 1 / 4))
    assert_allclose(corrected_paired_ttest(a, b), 2 * stats.t.sf(t, 4))
    assert_allclose(corrected_paired_ttest(a, b, test_fraction=0.0), plain.pvalue)
    assert corrected_paired_ttest(a, a) == corrected_paired_ttest(a, a, n_test=30) == 1.0
    assert_allclose(corrected_paired_ttest(a, b, n_test=10**6), corrected_paired_ttest(a, b))
    one_more, few = [16 / 30, 18 / 30], [15 / 30, 17 / 30]  # one sample in each fold: no scatter, and no proof
    assert corrected_paired_ttest(one_more, few, n_test=30) > 0.5
    assert corrected_paired_ttest([0.9] * 5, [0.5] * 5, n_test=100) < 1e-3
    p = corrected_paired_ttest([1.0] * 5, [0.0] * 5, n_test=10)
    assert p == 0
    with pytest.raises(ValueError, match="at least two folds"):
        corrected_paired_ttest([1], [1])


def test_ranking():
    models = [ModelResult("b", fold_scores=[0.5, 0.6]), ModelResult("a", fold_scores=[0.9, 0.95])]
    ranked = rank_models(models)
    assert [m.name for m in ranked] == ["a", "b"]
    assert ranked[0].p_value is None and 0 < ranked[1].p_value < 1
    assert [m.name for m in rank_models([ModelResult("x", test_score=0.1), ModelResult("y", test_score=0.2)])] == [
        "y",
        "x",
    ]


@pytest.mark.parametrize("first", range(3))
def test_models_without_a_score_come_last(first):
    models = [ModelResult(*m) for m in (("a", {}, [0.9, 0.9]), ("failed", {}, [np.nan, 0.99]), ("b", {}, [0.9, 0.97]))]
    ranked = rank_models(models[first:] + models[:first])
    assert [m.name for m in ranked] == ["b", "a", "failed"]
    assert ranked[1].p_value > 0 and ranked[2].p_value is None
    bare = [ModelResult("none"), ModelResult("x", test_score=0.0), ModelResult("nan", test_score=np.nan)]
    assert rank_models(bare)[0].name == "x"
    with pytest.raises(ValueError, match=r"finite numbers, .* got \[ nan 0.99\]"):
        corrected_paired_ttest([np.nan, 0.99], [0.9, 0.9])
    with pytest.raises(ValueError, match="as many of one model as of the other"):
        corrected_paired_ttest([0.5, 0.99], [0.9, 0.9, 0.9])


def test_what_does_not_fit_together_is_told():
    model = CrammerSingerSVC().fit(X, y)
    with pytest.raises(ValueError, match=r"classes of dataset, \['0.0', .*, do not hold \['0', '1', '2'\]"):
        summarize_model("m", model, X, y, summarize_dataset("iris", X, y.astype(float)))
    with pytest.raises(ValueError, match="one number for each of the 150 test samples, got 2"):
        summarize_model("m", model, X, y, DATA, rows=[1, 2])
    with pytest.raises(ValueError, match="X_train and y_train must be given together"):
        summarize_model("m", model, X, y, DATA, X_train=X)
    with pytest.raises(ValueError, match="one name for each of the 4 features, got 1"):
        summarize_dataset("iris", X, y, ["a"])
    for call in (
        lambda: summarize_dataset("iris", X, y[:-1]),
        lambda: summarize_model("m", model, X, y[:-1], DATA),
    ):
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[150, 149\]"):
            call()


def test_scores_and_names_as_other_libraries_give_them():
    """Arrays of scores, NumPy's numbers, names that are numbers, pictures with missing pixels."""
    scores = [np.array([0.5, 0.75], np.float32), np.array([0.75, 1.0])]
    ranked = rank_models(
        [ModelResult("a", fold_scores=scores[0], fit_time=np.float32(0.5)), ModelResult("b", {}, scores[1])]
    )
    results = Results("t", DATA, ranked)
    assert [m.name for m in ranked] == ["b", "a"]
    assert json.loads(json.dumps(results.to_dict()))["models"][1]["fold_scores"] == [0.5, 0.75]
    assert '"fold_scores":[0.5,0.75]' in render_report(results)
    assert summarize_dataset("iris", X, y, range(4)).feature_names == ["0", "1", "2", "3"]
    rows = np.where(X > 7, np.nan, X)
    model = make_pipeline(SimpleImputer(), LinearSVC(random_state=0)).fit(rows, y)
    pictures = summarize_dataset("iris", rows, y, [f"pixel_0_{i}" for i in range(4)])
    m = summarize_model("m", model, rows[rows[:, 0] != rows[:, 0]], y[rows[:, 0] != rows[:, 0]], pictures)
    assert {sample.pixels[0] for sample in m.hardest} == {0}


def test_samples_of_a_wide_frame_with_missing_values():
    frame = pd.DataFrame(np.repeat(X[:, :1], 7, axis=1), columns=list("abcdefg"))
    frame["zero"], frame["kind"] = 0, pd.array(["u", pd.NA] * 75, dtype="string")
    chosen = make_column_transformer(("passthrough", list("abcdefg")))
    model = make_pipeline(chosen, LinearSVC(random_state=0)).fit(frame, y)
    m = summarize_model("m", model, frame, y, summarize_dataset("iris", frame, y))
    assert all([name for name, _ in sample.values] == [*"abcdefg", "kind"] for sample in m.hardest)
    assert {sample.values[-1][1] for sample in m.hardest + m.ambiguous} == {"u", "<NA>"}


def test_results_survive_json():
    m = summarize_model("m", LinearSVC(random_state=0).fit(X, y), X, y, DATA)
    results = Results("t", DATA, [m], versions={"a": "1"})
    again = Results.from_dict(json.loads(json.dumps(results.to_dict())))
    assert again == results
    assert render_report(again) == render_report(results)
