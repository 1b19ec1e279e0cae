"""Pages from results that are made up, so that every figure on them is known."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from skmargin.cli._app import app
from skmargin.experiments import EXPERIMENTS, read_results, write_pages
from skmargin.experiments import _overall as overall
from skmargin.experiments._readings import table_reading
from skmargin.experiments._runner import COLUMNS, KEY
from skmargin.experiments._scores import scores
from skmargin.experiments._tables import accuracy_table, judge, win_tie_loss


def made_up(name, value, run="full", data=None):
    """Lines of a results file; ``value(data, method, split)`` is the accuracy, None for a task out of budget."""
    lines = []
    for task in EXPERIMENTS[name].tasks(run == "quick"):
        if data is not None and task.row.data.name not in data:
            continue
        found = value(task.row.data.name, task.method.name, task.split)
        line = dict.fromkeys(COLUMNS, "") | dict(zip(KEY, task.key, strict=True))
        line |= {
            "n_train": "100",
            "n_test": "50",
            "n_features": "9",
            "n_classes": "3",
            "versions": "none",
            "params": "",
        }
        line |= {"fit_seconds": "0.1", "predict_seconds": "0.01", "search_seconds": "1"}
        kind = ("nothing", "", "out of budget (9 s)") if found is None else ("accuracy", f"{found}", "ok")
        lines.append(line | dict(zip(("quantity", "value", "status"), kind, strict=True)))
    return lines


def sector(_, method, split):
    return (0.95 if method.startswith("lp") else 0.93) + 0.001 * (split % 2) * (method.startswith("lp") + 1)


def test_table_holds_ours_the_papers_and_the_difference():
    found = scores(EXPERIMENTS["lei-table2"], made_up("lei-table2", sector, data={"sector"}))
    assert found.names == ["sector"] and [row.data.name for row in found.missing] == ["news20", "rcv1"]
    assert judge(found, "sector", "Crammer & Singer") == 1
    assert win_tie_loss(found, "Crammer & Singer") == (1, 0, 0)
    table = accuracy_table(found)
    row = next(line for line in table.splitlines() if line.startswith("| sector"))
    assert "**95.1 ± 0.1**<br>94.2 (+0.9)" in row
    assert "93.0 ± 0.1 ●<br>93.9 (-0.9)" in row
    assert "| mean rank | 1.00 | 2.00 |" in table
    assert "| lp-norm MC-SVM: win/tie/loss |  | 1/0/0 |" in table
    words = " ".join(table_reading(found))
    assert "2 of 2 figures lie within two points" in words and "best mean on 1 of 1 data sets" in words


def test_figure_that_nothing_reaches_is_named():
    low = scores(EXPERIMENTS["lei-table2"], made_up("lei-table2", lambda *_: 0.5, data={"sector"}))
    assert "Not reached by any method here:** sector (94.2 there" in " ".join(table_reading(low))


def test_task_out_of_budget_is_no_figure():
    lines = made_up("lei-table2", lambda d, m, s: None if m.startswith("lp") and s == 1 else 0.9, data={"sector"})
    found = scores(EXPERIMENTS["lei-table2"], lines)
    assert np.isnan(found.means()[0, 0]) and "*out of budget (9 s)*" in accuracy_table(found)
    assert "lp-norm MC-SVM on sector (out of budget (9 s))" in " ".join(table_reading(found))


def test_task_that_was_tried_again_counts_once():
    lines = made_up("lei-table2", sector, data={"sector"})
    failed = lines[0] | {"quantity": "nothing", "value": "", "status": "failed: MemoryError"}
    again, once = (scores(EXPERIMENTS["lei-table2"], found) for found in ([failed, *lines], lines))
    np.testing.assert_array_equal(again.means(), once.means())
    assert again.lines == once.lines


def test_pages_are_the_same_from_the_same_results(tmp_path):
    lines = made_up("lei-table2", sector, data={"sector"})
    pages = [write_pages(lines, tmp_path / name) for name in ("a", "b")]
    assert [page.name for page in pages[0]] == ["lei.md", "README.md"]
    for one, other in zip(*pages, strict=True):
        assert one.read_bytes() == other.read_bytes()
    text = pages[0][0].read_text(encoding="utf-8")
    assert "news20 (`news20` or `news20.train` or `news20.scale`)" in text
    assert write_pages([], tmp_path / "c") == []


def test_overall_ranks_and_advice():
    order = {method.name: j for j, method in enumerate(EXPERIMENTS["overall"].methods)}
    small = {"iris", "wine", "glass", "vehicle"}
    lines = made_up("overall", lambda d, m, s: None if (d, m) == ("iris", "ldm") else 0.9 - 0.01 * order[m], data=small)
    found = scores(EXPERIMENTS["overall"], lines)
    test = overall.test_ranks(found)
    best = next(iter(order))
    assert found.methods[test.mean_ranks.argmin()] == best and test.mean_ranks.min() == 1
    assert test.mean_ranks[found.methods.index("ldm")] > order["ldm"] + 1  # last where it has no figure
    assert f"{best} has the best mean rank (1.00" in overall.advice(found)[0]
    assert overall.matrix(found).count("**90.0**") == 4


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """All experiments on built-in data, through the command."""
    out = tmp_path_factory.mktemp("quick")
    result = CliRunner().invoke(app, ["reproduce", "all", "--quick", "--out", str(out), "--jobs", "2"])
    assert result.exit_code == 0, result.output
    return out


def test_quick_run_makes_every_page_and_picture(quick):
    results = read_results(quick / "results.csv")
    tasks = {task.key for experiment in EXPERIMENTS.values() for task in experiment.tasks(quick=True)}
    assert {tuple(line[name] for name in KEY) for line in results} == tasks
    assert all(scores(experiment, results, "quick").rows for experiment in EXPERIMENTS.values())
    assert {line["status"] for line in results} <= {"ok", "not converged"}
    for name in ("mcodm", "m3svm", "xu", "abe", "lei", "overall", "README"):
        text = (quick / f"{name}.md").read_text(encoding="utf-8")
        assert "nan" not in text.replace("variance", "")
        for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", text):
            assert (quick / picture).read_text(encoding="utf-8").lstrip().startswith("<?xml")


def test_rerun_gives_the_same_numbers_and_pages(quick, tmp_path):
    """A paper and a figure, run again from nothing."""
    names = ("lei", "xu-figure2")
    for name in names:
        assert (
            CliRunner().invoke(app, ["reproduce", name, "--quick", "--out", str(tmp_path), "--jobs", "1"]).exit_code
            == 0
        )

    def numbers(folder):
        keep = [name for name in COLUMNS if not name.endswith("seconds")]
        lines = read_results(folder / "results.csv")
        return sorted(tuple(line[name] for name in keep) for line in lines if line["experiment"].startswith(names))

    assert numbers(tmp_path) == numbers(quick)
    assert (tmp_path / "lei.md").read_bytes() == (quick / "lei.md").read_bytes()
    assert (tmp_path / "xu-figure2.svg").read_bytes() == (quick / "xu-figure2.svg").read_bytes()


def test_command_refuses_what_it_cannot_use(tmp_path):
    wrong = CliRunner().invoke(app, ["reproduce", "lei-table3", "--out", str(tmp_path)])
    assert wrong.exit_code == 2 and "lei-table2" in wrong.output
    nowhere = CliRunner().invoke(app, ["reproduce", "lei", "--data", str(tmp_path / "none"), "--out", str(tmp_path)])
    assert nowhere.exit_code == 1
    empty = CliRunner().invoke(app, ["reproduce", "lei", "--out", str(tmp_path)])
    assert empty.exit_code == 0 and "sector: left out" in empty.output
