import json
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris

from skmargin import ODMClassifier
from skmargin.report import (
    DatasetSummary,
    HardSample,
    ModelResult,
    Results,
    render_report,
    summarize_dataset,
    write_report,
)
from skmargin.report import summarize_model as summarize

EVIL = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked=1'>",
    "\"'`&amp;",
    "</script><script>window.hacked=1</script>",
    "<!-- <script>",
    "\u202eright to left",
    "\u05e9\u05dc\u05d5\u05dd",
    "🎈🇪🇺👩\u200d🔬",
    "${1+1} {{x}} @@DATA@@",
    "line\u2028break\x00",
]


class Given(ClassifierMixin, BaseEstimator):
    """Scores that are given, to make reports of any size without fitting."""

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        self.objective_, self.dual_gap_, self.n_iter_, self.tol = 12.5, 1e-4, 17, 1e-3
        return self

    def decision_function(self, X):
        centres = np.random.default_rng(self.seed).normal(size=(len(self.classes_), X.shape[1]))
        return X @ centres.T

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]


def make(n=400, classes=None, models=3, names=None, title="A report"):
    classes = ["a", "b", "c"] if classes is None else classes
    rng = np.random.default_rng(3)
    y = np.array(classes, dtype=object)[np.arange(n) % len(classes)]
    X = rng.normal(size=(n, 4))
    data = summarize_dataset("data", X, y, names or ["f0", "f1", "f2", "f3"])
    half = n // 2
    found = []
    for i in range(models):
        test, train = (X[:half], y[:half]), {"X_train": X[half:], "y_train": y[half:]}
        model = summarize(f"model {i}", Given(i).fit(X, y), *test, data, **train)
        scores = (rng.uniform(0.4, 0.5, 5) - i / 20).tolist()
        found.append(replace(model, fold_scores=scores, fit_time=0.01, predict_time=1e-4, p_value=0.03 if i else None))
    return Results(title, data, found, "skmargin compare data", {"skmargin": "0"}, "now")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(make(), path)
    return path


@pytest.fixture(scope="module")
def evil_page(tmp_path_factory):
    results = make(classes=EVIL, names=EVIL[:4], title=EVIL[0] + EVIL[8])
    results.command = EVIL[3]
    results.models[0].name = EVIL[1]
    results.models[1].params = {EVIL[0]: EVIL[3]}
    results.versions = {EVIL[3]: EVIL[5]}
    path = tmp_path_factory.mktemp("evil") / "report.html"
    write_report(results, path)
    return path


# ---- without a browser ------------------------------------------------------------


def test_the_page_is_whole_and_asks_for_nothing(page):
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    outside = [a for a in re.findall(r"https?://[^\s\"')]+", text) if a != "http://www.w3.org/2000/svg"]
    assert outside == []
    assert "default-src 'none'" in text


def test_names_cannot_become_markup(evil_page):
    text = evil_page.read_text("utf-8")
    assert text.count("<script") == 2 and text.count("</script") == 2
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1)
    assert "<" not in block and ">" not in block and "&" not in block
    assert json.loads(block)["dataset"]["classes"] == sorted(EVIL)


def test_a_hundred_thousand_samples_stay_small(tmp_path):
    results = make(n=100_000, classes=[f"class {i}" for i in range(60)], models=4)
    path = tmp_path / "big.html"
    write_report(results, path)
    assert path.stat().st_size < 2_000_000
    assert len(results.models[0].confusion) == 40 and len(results.models[0].margins.counts["test"]) == 41


def test_numbers_that_json_cannot_hold():
    model = ModelResult("m", test_score=float("nan"), fit_time=float("inf"), hardest=[HardSample(0, "a", "b", 1.0)])
    page = render_report(Results("t", DatasetSummary("d", 1, 1, ["a", "b"], [1, 0]), [model]))
    block = re.search(r'id="data">(.*?)</script>', page, re.S).group(1)
    assert json.loads(block)["models"][0]["fit_time"] is None


# ---- in a browser ------------------------------------------------------------


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False), (390, True)])
def test_it_draws_without_errors_or_requests(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    assert browser.run("document.documentElement.dataset.ready") == "true"
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    assert browser.run("document.querySelectorAll('section.card').length") == 10
    dark_background = (
        sum(map(int, re.findall(r"\d+", browser.run("getComputedStyle(document.body).backgroundColor")))) < 150
    )
    assert dark_background == dark
    assert browser.screenshot()[:4] == b"\x89PNG"


def test_the_chart_reads_the_right_number_under_the_pointer(browser, page):
    browser.open(page)
    browser.point(".chart", 0.6)
    tip = browser.run("document.querySelector('.tip').textContent")
    at, shown = re.search(r"margin ≤ (\S+?)model 0 · test([\d.]+) %", tip).groups()
    results = make()
    histogram = results.models[0].margins
    bins = np.sum(histogram.counts["test"], axis=0)
    edges = np.linspace(histogram.low, histogram.high, len(bins) + 1)
    expected = np.interp(float(at), edges, np.r_[0, np.cumsum(bins)] / bins.sum())
    assert abs(float(shown) / 100 - expected) < 0.002
    assert shown in browser.run("document.getElementById('reading').textContent")


def paths(browser):
    return browser.run(
        "[...document.querySelectorAll('[data-series]')].map(p => p.dataset.series + p.getAttribute('d'))"
    )


def test_choosing_classes_models_parts_and_kind_changes_the_curves(browser, page):
    browser.open(page)
    before = paths(browser)
    assert [p[:6] for p in before] == ["0-test", "0-trai"]
    browser.click('[data-key="class1"]')
    chosen = paths(browser)
    assert chosen != before and browser.run("document.querySelector('[data-key=class1]').ariaPressed") == "true"
    browser.click('[data-key="all"]')
    assert paths(browser) == before
    browser.click('[data-key="model2"]')
    assert len(paths(browser)) == 4
    browser.click('[data-key="parttrain"]')
    assert [p[:6] for p in paths(browser)] == ["0-test", "2-test"]
    browser.click('[data-key="kindhistogram"]')
    assert browser.run("document.querySelector('.chart svg').ariaLabel").startswith("histogram")
    assert browser.complaints() == []


def test_choosing_a_model_shows_its_details(browser, page):
    browser.open(page)
    browser.click("tbody tr:nth-child(2) .pick")
    assert "model 1" in browser.run("document.querySelector('#confusion .lead').textContent")
    assert browser.run("document.querySelector('tbody tr:nth-child(2)').className") == "on"
    expected = make().models[1].confusion
    cells = browser.run("[...document.querySelectorAll('#confusion tbody td')].map(c => +c.textContent)")
    assert cells == list(np.ravel(expected))
    first = browser.run("document.querySelector('.samples li').textContent")
    assert f"row {make().models[1].hardest[0].row} " in first
    assert "certificate was reached" in browser.run("document.querySelector('#theory').textContent")


def test_everything_works_with_the_keyboard(browser, page):
    browser.open(page)
    seen = []
    for _ in range(60):
        browser.key("Tab")
        seen.append(browser.run("document.activeElement.className + ' ' + (document.activeElement.dataset.key || '')"))
        if "chart" in seen[-1].split():
            break
    assert seen[0].startswith("skip") and sum("pick" in s for s in seen) == 3
    assert any("class0" in s for s in seen) and "chart" in seen[-1].split()
    browser.key("ArrowRight")
    first = browser.run("document.getElementById('reading').textContent")
    browser.key("ArrowRight")
    second = browser.run("document.getElementById('reading').textContent")
    assert first.startswith("Margin up to") and first != second
    browser.key("End")
    assert "100.0 % of the test samples" in browser.run("document.getElementById('reading').textContent")
    browser.key("Escape")
    assert browser.run("document.querySelector('.tip')") is None
    browser.run("document.querySelector('[data-key=class2]').focus()")
    browser.key("Enter")
    state = "document.activeElement.dataset.key + document.activeElement.ariaPressed"
    assert browser.run(state) == "class2true"


def test_evil_names_are_shown_as_text(browser, evil_page):
    browser.open(evil_page, 390)
    assert browser.run("window.hacked") is None
    assert browser.complaints() == [] and browser.requests() == [evil_page.as_uri()]
    chips = browser.run("[...document.querySelectorAll('[data-key^=class]')].map(c => c.textContent)")
    assert chips == sorted(EVIL)
    assert browser.run("document.querySelector('h1').textContent") == EVIL[0] + EVIL[8]
    assert browser.run("document.title") == EVIL[0] + EVIL[8]
    assert browser.run("document.querySelectorAll('main img, main script').length") == 0
    assert browser.run("document.querySelector('#reproduce pre').textContent") == EVIL[3]
    assert browser.run("document.documentElement.scrollWidth") <= 390
    directions = browser.run("[...document.querySelectorAll('[data-key^=class]')].every(c => c.querySelector('bdi'))")
    assert directions


def test_reports_of_one_model_and_of_models_without_margins(browser, tmp_path):
    data = DatasetSummary("d", 4, 1, ["a", "b"], [2, 2])
    bare = ModelResult("bare", test_score=0.5)
    for models in ([bare], make(models=1).models, [bare, *make(models=1).models], []):
        path = tmp_path / f"{len(models)}.html"
        write_report(Results("t", make().dataset if models != [bare] else data, models), path)
        browser.open(path)
        assert browser.complaints() == []
        assert browser.run("document.querySelector('main').textContent.length") > 20


def test_a_model_with_a_fold_that_failed_has_no_mean(browser, tmp_path):
    results = make(models=2)
    results.models[1].fold_scores[2] = float("nan")
    results.models[1].p_value = None
    write_report(results, tmp_path / "failed.html")
    browser.open(tmp_path / "failed.html")
    rows = browser.run(
        "[...document.querySelectorAll('#models tbody tr')]"
        ".map(r => [...r.querySelectorAll('td')].map(c => c.textContent))"
    )
    assert rows[0][1] == f"{100 * np.mean(results.models[0].fold_scores):.2f} %"
    assert rows[1][1:3] == ["\u2013"] * 2
    verdict = browser.run("document.querySelector('#verdict').textContent")
    assert "model 0 classifies" in verdict and "points" not in verdict
    assert browser.complaints() == []


def test_a_report_of_one_saved_model_claims_nothing_that_it_does_not_know(browser, tmp_path):
    """Neither that the samples are new, nor a test against others, nor why there is no bound."""
    X, y = load_iris(return_X_y=True)
    data = summarize_dataset("iris", X, y)
    path = tmp_path / "one.html"
    write_report(Results("t", data, [summarize("odm", ODMClassifier().fit(X, y), X, y, data)]), path)
    browser.open(path)
    text = browser.run("document.querySelector('main').textContent")
    for words in ("accuracy on 150 samples", "of its margins on these samples are not positive", "odm · 150 samples"):
        assert words in text
    assert "the last convex problem is solved within the tolerance" in text
    assert "it needs the training samples" in text
    assert "t-test" not in text and "new samples" not in text
    columns = browser.run("[...document.querySelectorAll('#models thead th')].map(c => c.textContent)")
    assert columns == ["Model", "Accuracy", "Margin/sd", "5 %/median"]
    assert browser.complaints() == []
