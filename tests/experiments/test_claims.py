"""Claims and views, from small made-up tables: every verdict and figure is worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from skmargin import CrammerSingerSVC
from skmargin.comparison import Model
from skmargin.experiments import EXPERIMENTS, Experiment, Protocol, Row, Source
from skmargin.experiments import _measures as measures
from skmargin.experiments._claims import HOLDS, JUDGES, NOT, OPEN, PART, agreement, judge, rests_on
from skmargin.experiments._pages import CLAIMS, READINGS
from skmargin.experiments._readings import table_reading
from skmargin.experiments._runner import COLUMNS
from skmargin.experiments._scores import Scores
from skmargin.experiments._tables import win_tie_loss
from skmargin.experiments._views import ceiling_table, parameters_table, seconds_table, speed_reading

MACHINE = CrammerSingerSVC()
NAMES = ("iris", "wine", "glass", "vehicle")


def line(value, split=0, quantity="accuracy", x="", status="ok", **more):
    return dict.fromkeys(COLUMNS, "") | {
        "value": str(value), "split": str(split), "quantity": quantity, "x": str(x), "status": status, **more
    }  # fmt: skip


def table(columns, *, names=NAMES, figures="", quantity="accuracy", beside=None, **more):
    """Scores whose method has the given mean on each data set, three divisions around it."""
    methods = tuple(Model(name, "", MACHINE, {"C": (1.0, 2.0, 4.0)}) for name in columns)
    rows = tuple(Row(Source(name), Protocol()) for name in names)
    experiment = Experiment(
        "made up", "", "", rows, rows, methods, measures.accuracy, next(iter(columns)), table=figures,
        columns=beside or {},
    )  # fmt: skip
    lines = {
        (data, method): [line(value + 0.001 * (split - 1), split, quantity, **more) for split in range(3)]
        for method, values in columns.items()
        for data, value in zip(names, values, strict=True)
        if value is not None
    }
    return Scores(experiment, "full", lines, list(rows))


def verdict(test, *tables, **arguments):
    return JUDGES[test](*tables, **arguments)


@pytest.mark.parametrize(
    ("own", "expected"), [((0.9,) * 4, HOLDS), ((0.9, 0.9, 0.7, 0.7), PART), ((0.9, 0.7, 0.7, 0.7), NOT)]
)
def test_first_on_how_many_sets(own, expected):
    finding = verdict("first", table({"ours": own, "theirs": (0.8,) * 4}))
    assert finding.verdict == expected
    assert f"ours has the best mean on {own.count(0.9)} of 4 sets here" in finding.evidence


def test_better_needs_wins_and_no_losses():
    high, low, mixed = (0.9,) * 4, (0.8,) * 4, (0.7, 0.7, 0.7, 0.95)
    assert verdict("better", table({"a": high, "b": low}), rivals=["b"]).verdict == HOLDS
    finding = verdict("better", table({"a": high, "b": mixed}), rivals=["b"])
    assert finding.verdict == PART and "b 3/0/1" in finding.evidence
    assert verdict("better", table({"a": high, "b": high}), rivals=["b"]).verdict == NOT
    assert verdict("comparable", table({"a": high, "b": high}), rivals=["b"]).verdict == HOLDS
    assert verdict("comparable", table({"a": low, "b": high}), rivals=["b"]).verdict == NOT
    noisy = table({"a": high, "b": high})  # ties, for want of divisions, with ten points between them
    noisy.lines["iris", "b"] = [line(value, split) for split, value in enumerate((0.6, 0.9, 0.9))]
    finding = verdict("comparable", noisy, rivals=["b"])
    assert finding.verdict == PART and "+10.0 points (b on iris" in finding.evidence


def test_figures_near_those_of_the_paper():
    names = ("sector", "news20")  # 94.20 and 86.19 in the paper
    found = table({"lp-norm MC-SVM": (0.942, 0.80)}, names=names, figures="lei-table2")
    finding = verdict("near", found, points=0.5)
    assert finding.verdict == PART
    assert finding.evidence.startswith("1 of 2 figures lie within 0.5 points") and "-6.2" in finding.evidence
    assert verdict("near", found, points=0.5, method="another") is None


def test_readings_of_a_table_are_compared_on_the_same_figures():
    names, figures = ("sector", "news20"), "lei-table2"
    plain = table({"lp-norm MC-SVM": (0.942, 0.80), "Crammer & Singer": (0.939, 0.851)}, names=names, figures=figures)
    best = table({"ours": (0.942, 0.86)}, names=names, figures=figures, beside={"ours": "lp-norm MC-SVM"})
    assert agreement(plain, best) == (1, 2, 2)
    named = table(
        {"other": (0.5, 0.5), "lp-norm MC-SVM": (0.942, 0.86)}, names=names, figures=figures,
        beside={"other": "lp-norm MC-SVM"},
    )  # fmt: skip
    assert agreement(plain, named) == (1, 2, 2)  # the method of the same name counts
    assert agreement(plain, plain, "Crammer & Singer") == (2, 2, 2)


def test_ceiling():
    columns = {"mcODM": (0.80, 0.99), "mcSVM": (0.84, 0.98)}
    found = table(columns, names=("vehicle", "wine"), figures="mcodm-table2", quantity="training accuracy", x=0)
    text = ceiling_table(found)
    assert "| vehicle | **85.6** | 80.0 | 84.0 |" in text and "| wine | 98.4 | 99.0 | 98.0 |" in text
    finding = verdict("below ceiling", found)
    assert finding.verdict == PART and "On 1 of 2 sets" in finding.evidence
    assert "vehicle 85.6 against 84.0" in finding.evidence


def test_luck_of_a_division():
    here, others = table({"a": (0.75, 0.9, 0.9, 0.9)}), table({"a": (0.66, 0.9, 0.9, 0.9)})
    finding = verdict("no luck", here, others, method="a")
    assert finding.verdict == PART
    assert "On 3 of 4 sets" in finding.evidence and "iris: 75.0 against 66.0" in finding.evidence


def test_ahead_and_never_behind():
    found = table({"a": (0.9, 0.9, 0.9, 0.9), "b": (0.95, 0.9, 0.9, 0.53), "c": (0.1,) * 4})
    finding = verdict("ahead", found, method="a", rival="b")
    assert finding.verdict == PART and "on 1 of 4 sets, as far behind on 1; +8.0 points" in finding.evidence
    assert "iris -5.0" in verdict("never behind", found, rivals=["b", "c"]).evidence
    assert verdict("never behind", found, rivals=["c"]).verdict == HOLDS


def test_methods_are_compared_on_the_divisions_that_both_have():
    found = table({"a": (0.9,) * 4, "b": (0.8,) * 4})
    found.lines["iris", "b"] = [line(0.899 - 0.05, 0)]  # the first division of three
    np.testing.assert_allclose(found.gaps("a", "b"), [5.0, 10.0, 10.0, 10.0])
    np.testing.assert_allclose(found.means(common=True)[0], [0.899, 0.849])
    np.testing.assert_allclose(found.means()[0], [0.9, 0.849])


def test_a_single_division_is_no_tie():
    found = table({"a": (0.9,) * 4, "b": (0.8,) * 4})
    found.lines["iris", "b"] = [line(0.899 - 0.05, 0)]
    assert win_tie_loss(found, "b") == (3, 0, 0)


def test_what_unlabelled_rows_add_to_two_machines():
    found = table({"a": (0.85,) * 4, "base": (0.8,) * 4, "b": (0.93, 0.93, 0.97, 0.93), "its base": (0.9,) * 4})
    arguments = {"method": "a", "base": "base", "rival": "b", "rival_base": "its base"}
    finding = verdict("gains", found, **arguments)  # 5 points against 3, and 7 on the third set
    assert finding.verdict == PART
    assert "glass +5.0 against +7.0" in finding.evidence and "on average +5.0 against +4.0" in finding.evidence


def test_the_luck_of_the_folds():
    """Of two figures one is two points off in one of three choices of the folds, the other in all but one."""
    names, columns = ("sector",), {"lp-norm MC-SVM": (0.942,), "Crammer & Singer": (0.939,)}  # as in the paper
    found = table(columns, names=names, figures="lei-table2")
    found.experiment = replace(found.experiment, statistic="none")
    for method, values in (("lp-norm MC-SVM", (0.942, 0.942, 0.90)), ("Crammer & Singer", (0.939, 0.90, 0.90))):
        found.lines["sector", method] = [line(value, split) for split, value in enumerate(values)]
    words = " ".join(table_reading(found))
    assert "between 0 and 2 of 2 figures lie within two points, in 3 choices" in words
    assert "there would be 2." in words and "win/tie/loss" not in words
    found.lines["sector", "Crammer & Singer"] = [line(value, split) for split, value in enumerate((0.9, 0.91, 0.9))]
    assert "no choice tried explains Crammer & Singer on sector (-2.9)" in " ".join(table_reading(found))


def test_drop_with_the_number_of_classes():
    names = tuple(f"segment, {k} classes" for k in (3, 4, 5, 6))
    rivals = (0.95, 0.95, 0.85, 0.85)
    assert verdict("drop", table({"a": (0.95, 0.95, 0.94, 0.94), "b": rivals}, names=names)).verdict == HOLDS
    assert verdict("drop", table({"a": rivals, "b": rivals}, names=names)).verdict == NOT


def curves(columns, quantity="accuracy", names=NAMES):
    """Scores whose method has the given curve on every data set."""
    found = table({method: (0.5,) * len(names) for method in columns}, names=names)
    found.lines = {
        (data, method): [line(value, 0, quantity, x) for x, value in points.items()]
        for method, points in columns.items()
        for data in names
    }
    return found


def test_curves():
    finding = verdict("exponent", curves({"a": {1: 0.8, 2: 0.8, 4: 0.82}}), usual=2.0, prior=4.0)
    assert finding.verdict == HOLDS and "On 4 of 4 sets" in finding.evidence and "+2.0 points" in finding.evidence
    assert verdict("broad", curves({"a": {1: 0.8, 2: 0.81}})).verdict == HOLDS
    assert verdict("broad", curves({"a": {1: 0.8, 2: 0.9}})).verdict == NOT
    slow = curves({"a": {1: 3.0, 2: 1.5}, "b": {1: 1.0}}, "objective")
    assert "on iris it is 50 % above" in verdict("converges", slow, method="a", exact="b").evidence
    steps = curves({"a": {1.5: 0.0, 2.0: 0.005, 8.0: 3.0}}, "above optimum")
    assert verdict("optimal", steps, up_to=2.0).verdict == HOLDS
    finding = verdict("optimal", steps, up_to=10.0)
    assert finding.verdict == PART and "4.00 times the optimum" in finding.evidence and "p = 8" in finding.evidence
    assert verdict("least error", curves({"a": {1: 0.1}, "b": {1: 0.2}}, "suboptimality")).verdict == HOLDS


def test_margins_and_times_of_iterations():
    found = table({"a": (1.0,) * 4, "b": (2.0,) * 4}, quantity="margin variance")
    for (_, method), lines in found.lines.items():
        lines.append(line(0.1 if method == "a" else 0.2, 0, "negative margins"))
    finding = verdict("sharper", found)
    assert finding.verdict == HOLDS and "a 10.0 %, b 20.0 %" in finding.evidence
    times = table({"a": (3.0,) * 4, "b": (1.0,) * 4}, quantity="iteration")
    assert verdict("cheap", times, rival="b").verdict == NOT


def test_seconds_and_parameters():
    found = table({"ULDM": (0.9, 0.9), "LS SVM": (0.9, 0.9)}, names=("heart", "image"), figures="abe-table2")
    for (data, method), lines in found.lines.items():
        for one in lines:
            seconds = (2.0 if method == "ULDM" else 1.0) * (3 if data == "image" else 1)
            one |= {"search_seconds": str(seconds), "fit_seconds": "0", "predict_seconds": "0", "params": "C=1 gamma=5"}
    assert "| heart | 2.00<br>1.94 | **1.00**<br>1.12 |" in seconds_table(found)
    assert "here ULDM 0, LS SVM 2; in the paper ULDM 0, LS SVM 2" in speed_reading(found)[0]
    finding = verdict("slower", found, method="ULDM", rival="LS SVM")
    assert finding.verdict == HOLDS and "2.00 times as long" in finding.evidence
    chosen = replace(
        found, experiment=replace(found.experiment, table="abe-table3"), rows=[Row(Source("usps"), Protocol())]
    )
    chosen.lines = {("usps", "ULDM"): [line(0.9, params="alpha=1e-06 gamma=50")]}
    assert "| usps | alpha=1e-06, gamma=50<br>1e-06, 50 | -<br>500, 5 |" in parameters_table(chosen)


def test_gain():
    found = table({"lp-norm MC-SVM": (0.95,), "Crammer & Singer": (0.94,)}, names=("sector",), figures="lei-table2")
    finding = verdict("gain", found)
    assert finding.verdict == HOLDS and "sector +1.00 ± 0.00 (paper +0.31)" in finding.evidence


def test_a_gain_that_few_divisions_leave_open():
    """95 % intervals of three gains are 4.303 deviations over the root of three."""
    names = ("sector",)
    found = table({"lp-norm MC-SVM": (0.94,), "Crammer & Singer": (0.94,)}, names=names, figures="lei-table2")
    assert verdict("gain", found).verdict == NOT  # 0 without any spread
    found.lines["sector", "lp-norm MC-SVM"] = [line(0.94 + 0.005 * split, split) for split in (-1, 0, 1)]
    found.lines["sector", "Crammer & Singer"] = [line(0.94, split) for split in (-1, 0, 1)]
    finding = verdict("gain", found)
    assert finding.verdict == OPEN and "sector +0.00 ± 1.24 (paper +0.31)" in finding.evidence
    found.lines["sector", "Crammer & Singer"] = [line(0.94, 0)]
    assert "sector +0.00 on one division (paper +0.31)" in verdict("gain", found).evidence


def test_a_finding_says_on_how_much_it_rests():
    found = table({"a": (0.9,) * 4, "b": (0.8,) * 4})
    assert rests_on(found) == "4 sets, 3 divisions each"
    found.lines["iris", "b"] = [line(0.8, 1)]
    assert rests_on(found) == "4 sets, 1 to 3 divisions each" and rests_on(found, ["a"]) == "4 sets, 3 divisions each"


def test_claims_name_tables_and_tests_that_exist():
    for paper, claims in CLAIMS.items():
        for claim in claims:
            assert claim["test"] in JUDGES and claim["because"] and claim["says"].endswith(".")
            assert all(EXPERIMENTS[name].paper == paper for name in claim["tables"])
    for paper, reading in READINGS.items():
        tables = [EXPERIMENTS[reading[kind]] for kind in ("first", "best")]
        assert tables[1].table in (tables[0].name, tables[0].table) and tables[0].paper == paper


def test_claims_wait_for_a_set_that_every_method_was_tried_on():
    claim = {"test": "first", "tables": ["x"]}
    unfinished = table({"a": (0.9,) * 4, "b": (None,) * 4})
    assert judge(claim, {"x": unfinished}) is None and judge(claim, {}) is None
    assert table_reading(unfinished) == ["No data set has been tried with every method yet."]
    partly = table({"a": (0.9,) * 4, "b": (0.8, None, None, None)})
    assert "1 of 1 sets" in judge(claim, {"x": partly}).evidence
    assert "3 sets on which a method was not tried yet" in table_reading(partly)[-1]


def test_fits_that_stopped_early_are_counted():
    found = table({"a": (0.9,) * 4, "b": (0.8,) * 4})
    found.lines["iris", "b"][0]["status"] = found.lines["wine", "b"][2]["status"] = "not converged"
    assert "**Final fits that stopped before their tolerance:** b 2 of 12." in table_reading(found)


def test_edges_of_the_grid_are_told():
    found = table({"a": (0.9,) * 4, "b": (0.8,) * 4}, n_train="50", n_classes="3")
    for (data, method), lines in found.lines.items():
        for one in lines:
            one["params"] = f"C={(1 if data == 'iris' else 2) / (50 if method == 'b' else 1):g}"
    found.experiment = replace(found.experiment, units={"b": "1 / m"})
    words = [text for text in table_reading(found) if "edge" in text]
    assert words == [
        "**At the edge of the grid in most divisions:** a at the smallest C on iris; b at the smallest C on iris."
    ]


def test_wide_deviations_of_the_paper_are_told():
    names = ("satimage", "wine")  # 8.0 beside at most 4.2; 1.9 beside 3.1
    found = table({"mcODM": (0.9, 0.9), "ovoSVM": (0.8, 0.8)}, names=names, figures="mcodm-table2")
    (words,) = [text for text in table_reading(found) if "deviations" in text]
    assert "satimage (8.0, rivals at most 4.2)" in words and "wine" not in words
    assert np.isfinite(found.means()).all()
