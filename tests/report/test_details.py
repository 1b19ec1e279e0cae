"""Baseline, rates, calibration and deciding features: the numbers against scikit-learn, the page in a browser."""

import numpy as np
import pytest
from raw_tables import TABLES
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC

from skmargin import CrammerSingerSVC
from skmargin.comparison import Comparison, models
from skmargin.datasets import table_preprocessor
from skmargin.datasets._load import load_training
from skmargin.inspection import margins
from skmargin.report import ModelResult, Results, summarize_dataset, summarize_model, write_report
from skmargin.report import _details as details


def table(name, tmp_path):
    content, target = TABLES[name]()
    path = tmp_path / f"{name}.csv"
    path.write_bytes(content)
    return load_training(path, target)


@pytest.fixture(scope="module")
def wine():
    bunch = load_wine()
    X, y = bunch.data, bunch.target_names[bunch.target]
    return X, y, summarize_dataset("wine", X, y, bunch.feature_names)


def test_rates_are_those_of_scikit_learn(wine):
    X, y, _ = wine
    model = LogisticRegression().fit(X[::2, :2], y[::2])
    data = summarize_dataset("wine", X[:, :2], y)
    result = summarize_model("m", model, X[1::2, :2], y[1::2], data)
    predicted = model.predict(X[1::2, :2])
    assert result.recall == pytest.approx(recall_score(y[1::2], predicted, average=None).tolist())
    assert result.precision == pytest.approx(precision_score(y[1::2], predicted, average=None).tolist())


def test_the_calibration_curve_is_that_of_scikit_learn(wine):
    X, y, _ = wine
    model = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X[:, :3], y)
    right, p = model.predict(X[:, :3]) == y, model.predict_proba(X[:, :3]).max(axis=1)
    found = details.calibration(model, X[:, :3], right)
    true, said = calibration_curve(right, p, n_bins=10, strategy="quantile")
    assert_close(np.array(found["points"])[:, 0], said, 0.02)  # groups of 17 and 18, divided a little differently
    assert_close(np.array(found["points"])[:, 1], true, 0.12)
    assert sum(n for *_, n in found["points"]) == len(y)
    weights = np.array(found["points"])[:, 2] / len(y)
    assert found["error"] == pytest.approx(np.sum(weights * np.abs(np.subtract(*np.array(found["points"]).T[:2]))))
    assert details.calibration(LinearSVC(), X, right) == {} and details.calibration(model, X[:5, :3], right[:5]) == {}


def assert_close(a, b, tol):
    np.testing.assert_allclose(a, b, atol=tol)


def test_contributions_add_up_to_the_margin(wine, monkeypatch):
    monkeypatch.setattr(details, "N_FEATURES", 100)
    X, y, data = wine
    for last in (CrammerSingerSVC(random_state=0), LinearSVC(random_state=0)):
        model = make_pipeline(MinMaxScaler(), last).fit(X, y)
        result = summarize_model("m", model, X, y, data)
        for sample in result.hardest[:3]:
            true = list(model.classes_).index(sample.true)
            rivals = np.where(np.arange(3) == true, -np.inf, model.decision_function(X[[sample.row]])[0])
            bias = last.intercept_[true] - last.intercept_[rivals.argmax()]
            assert sum(part for _, part in sample.deciding) + bias == pytest.approx(sample.margin)
            assert {name for name, _ in sample.deciding} <= set(data.feature_names)
    two = y != "class_2"
    model = make_pipeline(MinMaxScaler(), CrammerSingerSVC(random_state=0)).fit(X[two], y[two])
    view = details.LinearView.of(model, data.feature_names)
    parts = view.contributions(X[[0]], 0, 1)
    expected = margins(model, X[:1], y[:1])[0] + model[-1].intercept_[0]
    assert sum(part for _, part in parts) == pytest.approx(expected)


def test_weights_of_classes_are_weights_times_spread(wine):
    X, y, data = wine
    model = make_pipeline(MinMaxScaler(), CrammerSingerSVC(random_state=0)).fit(X, y)
    result = summarize_model("m", model, X, y, data)
    strength = (model[-1].coef_ - model[-1].coef_.mean(axis=0)) * MinMaxScaler().fit_transform(X).std(axis=0)
    for k in range(3):
        best = np.argsort(-np.abs(strength[k]))[: details.N_FEATURES]
        assert [name for name, _ in result.weights[k]] == [data.feature_names[j] for j in best]
        assert [value for _, value in result.weights[k]] == pytest.approx(strength[k][best].tolist())
    assert result.weight_classes == [0, 1, 2] and result.permutation == []


def test_what_has_no_weights_is_shuffled(tmp_path):
    data = table("weather", tmp_path)
    summary = summarize_dataset("weather", data.X, data.y)
    model = make_pipeline(table_preprocessor(data.X), RandomForestClassifier(30, random_state=0)).fit(data.X, data.y)
    result = summarize_model("forest", model, data.X, data.y, summary)
    assert result.permutation[0][0] == "precipitation" and result.permutation[0][1] > 0.2
    assert result.weights == [] and result.margins is None
    assert len(result.hardest) == 12 and result.hardest[0].margin == pytest.approx(
        min(p[list(model.classes_).index(k)] - max(np.delete(p, list(model.classes_).index(k)))
            for p, k in zip(model.predict_proba(data.X), data.y, strict=True))
    )  # fmt: skip
    assert any(
        name == "date" and value.startswith("201") and " " not in value for name, value in result.hardest[0].values
    )


def test_features_of_raw_tables_have_names_that_can_be_read(tmp_path):
    data = table("penguins", tmp_path)
    model = make_pipeline(table_preprocessor(data.X), CrammerSingerSVC(random_state=0)).fit(data.X, data.y)
    names = details.LinearView.of(model, list(data.X.columns)).names
    assert {"bill_length_mm", "bill_length_mm is missing", "island_Dream", "sex_male"} <= set(names)


def test_a_calibrated_model_shows_its_margins_and_probabilities(wine):
    X, y, data = wine
    plain = CrammerSingerSVC(random_state=0)
    model = make_pipeline(MinMaxScaler(), CalibratedClassifierCV(plain, ensemble=False, cv=3)).fit(X, y)
    result = summarize_model("m", model, X, y, data)
    assert result.margins is not None and result.calibration["points"] and result.weights
    alone = make_pipeline(MinMaxScaler(), plain).fit(X, y)
    assert result.statistics["test"]["mean"] == pytest.approx(margins(alone, X, y).mean(), rel=1e-3)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A comparison of a raw table, as the command writes it."""
    folder = tmp_path_factory.mktemp("details")
    comparison = Comparison(table("weather", folder), [models()[n] for n in ("crammer-singer", "random-forest")], cv=3)
    list(comparison.run())
    assert not comparison.errors
    results = comparison.results("skmargin compare weather.csv", {"skmargin": "0"}, "now")
    write_report(results, folder / "report.html")
    return folder / "report.html", results


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_and_says_what_it_should(browser, page, width, dark):
    path, results = page
    browser.open(path, width, dark=dark)
    assert browser.complaints() == [] and browser.requests() == [path.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width
    share = 100 * np.mean(results.baseline.fold_scores)
    assert f"Always saying sun gives {share:.1f} %" in browser.run("document.querySelector('#verdict').textContent")
    assert f"{share:.2f} %" in browser.run("document.querySelector('tr.baseline').textContent")
    hints = browser.run("[...document.querySelectorAll('.scroll.more')].length")
    assert (hints > 0) == (width == 400)


def test_parts_of_the_page_follow_the_model(browser, page):
    path, results = page
    browser.open(path, 1400)
    at = next(i for i, model in enumerate(results.models) if model.name == "crammer-singer")
    browser.click(f"tbody tr:nth-child({at + 1}) .pick")
    model = results.models[at]
    rows = browser.run(
        "[...document.querySelectorAll('#classes tbody tr')].map(r => [...r.children].map(c => c.textContent))"
    )
    order = sorted(range(4), key=lambda c: model.recall[c])
    assert [row[0] for row in rows] == [results.dataset.classes[c] for c in order]
    assert [row[2] for row in rows] == [f"{100 * model.recall[c]:.1f} %" for c in order]
    weights = browser.run("document.querySelector('#features').textContent")
    assert model.weights[0][0][0] in weights and "green speaks for the class" in weights
    assert browser.run("document.querySelector('#calibration').hidden") is True
    assert browser.run("document.querySelector('#theory details').open") is False
    assert "vacuous here" in browser.run("document.querySelector('#theory summary').textContent")
    confusion = np.array(model.confusion)
    errors = confusion + confusion.T - 2 * np.diag(np.diag(confusion))
    i, j = np.unravel_index(np.triu(errors).argmax(), errors.shape)
    names = [results.dataset.classes[c] for c in model.matrix_classes]
    expected = f"Pairs with most errors: “{names[i]}” and “{names[j]}” ({errors[i, j]})"
    assert browser.run("document.querySelector('#pairwise .note').textContent").startswith(expected)
    assert browser.run("document.querySelectorAll('.samples dl.deciding').length") == 12
    browser.click('[data-key="kindclasses"]')
    strips = browser.run("[...document.querySelectorAll('[data-class]')].map(p => +p.dataset.class)")
    assert strips == model.margins.classes
    browser.click(f"tbody tr:nth-child({2 - at}) .pick")
    assert browser.run("document.querySelector('#calibration').hidden") is False
    assert "loses when the values of a column are shuffled" in browser.run(
        "document.querySelector('#features').textContent"
    )
    assert browser.complaints() == []


def test_a_model_that_does_not_beat_the_baseline_is_not_praised(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(["often"] * 50 + ["rare"] * 10)
    data = summarize_dataset("noise", X, y)
    baseline = ModelResult("majority class", {"says": "often"}, fold_scores=[0.83, 0.83, 0.84], p_value=0.4)
    result = summarize_model("svm", LinearSVC().fit(X, y), X, y, data)
    result.fold_scores = [0.83, 0.82, 0.85]
    write_report(Results("t", data, [result], baseline=baseline, metric="balanced-accuracy"), tmp_path / "p.html")
    browser.open(tmp_path / "p.html")
    verdict = browser.run("document.querySelector('#verdict').textContent")
    assert "no clear difference" in verdict and "balanced accuracy" in verdict
