"""The page over all data, from a small made-up table: every figure is worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from skmargin.comparison import models
from skmargin.experiments import Experiment, Protocol, Row, Source
from skmargin.experiments import _measures as measures
from skmargin.experiments import _overall as overall
from skmargin.experiments._scores import Scores, finished

METHODS = tuple(models()[name] for name in ("crammer-singer", "one-vs-rest", "rbf-svm"))
ROWS = tuple(Row(Source(name), Protocol()) for name in "abcd")
EXPERIMENT = Experiment("small", "", "", ROWS, ROWS, METHODS, measures.accuracy)
ACCURACY = {"a": (0.90, 0.895, 0.92), "b": (0.80, 0.79, 0.83), "c": (0.70, 0.695, None), "d": (0.60, 0.61, 0.68)}
SECONDS = {"a": (2, 1, 8), "b": (2, 1, 32), "c": (4, 1, None), "d": (4, 1, 8)}
SIZES = {"a": (100, 20, 3), "b": (100, 20, 3), "c": (50, 50, 20), "d": (30, 30, 20)}  # rows, features, classes


def line(value, seconds=1, size=(100, 9, 3), split=0, x="", params="", status=None):
    found = {"quantity": "accuracy" if value is not None else "nothing", "value": str(value), "x": str(x)}
    times = dict.fromkeys(("fit_seconds", "search_seconds", "predict_seconds"), "" if seconds is None else str(seconds))
    sizes = dict(zip(("n_train", "n_features", "n_classes"), map(str, size), strict=True))
    status = status or ("out of budget" if value is None else "ok")
    return {**found, **times, **sizes, "split": str(split), "params": params, "status": status}


@pytest.fixture
def scores():
    lines = {
        (data, method.name): [
            line(ACCURACY[data][j], SECONDS[data][j], SIZES[data], params=f"C={1 + 9 * (data == 'd')}")
        ]
        for data in ACCURACY
        for j, method in enumerate(METHODS)
    }
    return Scores(EXPERIMENT, "full", lines, list(ROWS))


def cells(table):
    """Rows of a table by their first cell."""
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def test_summary(scores):
    """Mean rank, mean accuracy where all have one, times first; tuning, fit and predict over the fastest; no figure."""
    table = cells(overall.summary_table(scores))
    assert list(table) == ["rbf-svm", "crammer-singer", "one-vs-rest"]
    assert table["rbf-svm"][1:] == ["1.50", "81.00", "3", *["12.7"] * 3, "1"]  # (8 * 32 * 8) ** (1 / 3)
    assert table["crammer-singer"][1:] == ["2.00", "76.67", "1", *["2.8"] * 3, "0"]  # (2 * 2 * 4 * 4) ** (1 / 4)
    assert table["one-vs-rest"][1:] == ["2.50", "76.50", "0", *["1.0"] * 3, "0"]
    assert cells(overall.matrix(scores))["c"] == ["-", "**70.0**", "69.5"]


def test_advice(scores):
    first, linear, few, wide, many = overall.advice(scores)
    assert "**Over all 4 data sets** rbf-svm has the best mean rank (1.50 of 3 methods" in first
    assert first.endswith("Not told apart from it: crammer-singer, one-vs-rest.")
    assert "crammer-singer ranks best; one-vs-rest is the fastest" in linear
    assert few == (
        "**Three or more classes, at most 20 features** (2 sets): rbf-svm, crammer-singer, one-vs-rest rank best; "
        "best linear crammer-singer (85.0 % against 87.5 %); fastest within 1 point of the best mean: rbf-svm."
    )
    assert wide.startswith("**At least as many features as training rows** (2 sets)")
    assert many.startswith("**Twenty classes or more** (2 sets)")
    for words in (wide, many):  # a method without a figure counts as zero there
        assert words.endswith("fastest within 1 point of the best mean: one-vs-rest.")


def test_pairs(scores):
    assert overall.pairs(scores) == [
        "crammer-singer is ahead of one-vs-rest on 3 sets and behind on 1, +0.25 points on average"
    ]
    named = replace(scores, experiment=replace(EXPERIMENT, methods=(replace(METHODS[0], name="uldm"), METHODS[2])))
    named.lines |= {(data, "uldm"): named.lines[data, "crammer-singer"] for data in "abcd"}
    (words,) = overall.pairs(named)  # on three sets: on one the second has no figure
    assert words == "uldm is ahead of rbf-svm on 0 sets and behind on 3, -4.33 points on average"


def test_sets_on_which_a_method_was_not_tried_wait(scores):
    del scores.lines["b", "rbf-svm"]
    found = finished(scores)
    assert found.names == ["a", "c", "d"] and [row.data.name for row in found.missing] == ["b"]


def test_parameters_that_were_chosen(scores):
    assert cells(overall.parameters(scores))["crammer-singer"] == ["C", "1", "1", "1: 75 %, 10: 25 %"]


def test_one_value_for_all_data():
    method = replace(METHODS[0], grid={"C": (10.0, 0.1, 1.0)})
    steps = [(10, 0.75), (0.1, 0.5), (1, 0.7), (10, 0.85)]  # two divisions of the largest
    lines = {
        ("a", method.name): [
            *(line(value, x=x, split=i) for i, (x, value) in enumerate(steps)),
            line(9.0, x=1) | {"quantity": "objective"},
        ],
        ("b", method.name): [line(0.1, x=1)],  # not finished
    }
    found = Scores(replace(EXPERIMENT, methods=(method,)), "full", lines, list(ROWS[:2]))
    x, value = found.curve("a", method.name)
    np.testing.assert_allclose(x, [0.1, 1, 10])
    np.testing.assert_allclose(value, [0.5, 0.7, 0.8])
    table = cells(overall.defaults(found))
    assert table == {"crammer-singer": ["C", "1", "10.0", "0.1: 50.0, **1: 70.0**, 10: 80.0"]}


def test_status_is_the_worst_of_the_divisions():
    worst = ["ok", "not converged", "out of budget", "ok"]
    for n, expected in enumerate(["", "ok", "not converged", "out of budget", "out of budget"]):
        lines = {("a", "crammer-singer"): [line(0.9, status=status) for status in worst[:n]]}
        assert Scores(EXPERIMENT, "full", lines).status("a", "crammer-singer") == expected


def test_times_are_means_over_the_divisions():
    lines = {("a", "rbf-svm"): [line(0.9, seconds) for seconds in (1, None, 4)]}
    assert Scores(EXPERIMENT, "full", lines).seconds("a", "rbf-svm", "fit_seconds") == 2.5


def test_trees_and_neighbours_are_not_linear():
    known = models()
    names = ("crammer-singer", "one-vs-one", "logistic", "rbf-svm", "gradient-boosting", "nearest-neighbours")
    assert [overall._linear(known[name]) for name in names] == [True, True, True, False, False, False]


def test_few_rows_stand_in_for_a_set_that_is_not_finished(scores):
    few = replace(scores, lines=dict(scores.lines))
    del scores.lines["b", "rbf-svm"]
    found = overall.joined(scores, few)
    assert found.names == ["a", "c", "d", "b"] and found.status("b", "rbf-svm") == "ok" and not found.missing
    assert overall.joined(scores, None).names == ["a", "c", "d"]
