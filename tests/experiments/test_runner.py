import csv
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from skmargin import CrammerSingerSVC
from skmargin.comparison import Model
from skmargin.datasets import DataError
from skmargin.experiments import Experiment, Protocol, Row, Source, pending, read_results, run
from skmargin.experiments import _measures as measures
from skmargin.experiments._runner import COLUMNS, compute, in_rounds
from skmargin.experiments._scores import scores

CS = Model("cs", "", CrammerSingerSVC(random_state=0), {"C": (0.1, 1.0)})
PROTOCOL = Protocol(repeats=2, folds=2, rows=60)


def experiment(*methods, protocol=PROTOCOL, source="iris", measure=measures.accuracy):
    rows = (Row(Source(source), protocol),)
    return Experiment("tiny", "Tiny", "none", rows, rows, methods, measure, reference="cs")


def do(what, path, n_jobs=1):
    tasks, missing = pending(what.tasks(), path)
    assert not missing
    return [outcome for _, outcome in run(tasks, path, n_jobs=n_jobs)]


def numbers(path):
    """The results without times, in a fixed order."""
    lines = [tuple(v for k, v in line.items() if not k.endswith("seconds")) for line in read_results(path)]
    return sorted(lines)


def test_results_are_tidy_resumed_and_the_same_again(tmp_path):
    tiny = experiment(CS, Model("rbf", "", SVC(), {"C": (1.0, 10.0)}))
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    assert do(tiny, first) == ["ok"] * 4
    with open(first, newline="", encoding="utf-8") as file:
        assert tuple(next(csv.reader(file))) == COLUMNS
    line = read_results(first)[0]
    assert line["params"].startswith("C=") and "skmargin" in line["versions"] and line["n_train"] == "60"
    before = first.read_bytes()
    assert do(tiny, first) == []  # all there
    assert first.read_bytes() == before

    more = replace(tiny, rows=(replace(tiny.rows[0], protocol=replace(PROTOCOL, repeats=3)),))
    assert do(more, first) == ["ok"] * 2  # only the new division
    assert do(more, second, n_jobs=2) == ["ok"] * 6
    assert numbers(first) == numbers(second)


def test_other_settings_do_not_count(tmp_path):
    path = tmp_path / "r.csv"
    do(experiment(CS), path)
    changed = experiment(replace(CS, grid={"C": (0.1,)}))
    assert len(pending(changed.tasks(), path)[0]) == 2
    assert not scores(changed, read_results(path)).rows
    assert scores(experiment(CS), read_results(path)).names == ["iris"]


def test_experiments_share_what_is_the_same(tmp_path):
    path = tmp_path / "r.csv"
    first = experiment(CS)
    second = replace(experiment(CS, Model("rbf", "", SVC(), {"C": (1.0,)})), name="other")
    tasks, _ = pending([*first.tasks(), *second.tasks()], path)
    assert [task.experiment.name for task in tasks] == ["tiny", "tiny", "other", "other"]
    do(first, path)
    assert {task.method.name for task in pending(second.tasks(), path)[0]} == {"rbf"}
    assert scores(second, read_results(path)).means()[0, 0] == scores(first, read_results(path)).means()[0, 0]


def test_first_divisions_of_all_come_first():
    many = replace(experiment(CS), rows=(Row(Source("iris"), replace(PROTOCOL, repeats=12)),) * 2)
    splits = [task.split for task in in_rounds(many.tasks())]
    assert splits == [*range(10), *range(10), 10, 11, 10, 11]


def test_what_is_known_to_be_cheap_comes_before_what_is_not_known(tmp_path):
    path = tmp_path / "r.csv"
    do(experiment(CS, source="wine"), path)
    more = replace(PROTOCOL, repeats=12)
    both = replace(experiment(CS), rows=(Row(Source("iris"), more), Row(Source("wine"), more)))
    order = [(task.row.data.name, task.split) for task in in_rounds(pending(both.tasks(), path)[0], path)]
    first = [("wine", split) for split in range(2, 10)] + [("iris", split) for split in range(10)]
    assert order == [*first, ("wine", 10), ("wine", 11), ("iris", 10), ("iris", 11)]


def test_interrupted_write_is_mended(tmp_path):
    path = tmp_path / "r.csv"
    tiny = experiment(CS)
    do(tiny, path)
    whole = numbers(path)
    path.write_bytes(path.read_bytes()[:-20])
    assert len(read_results(path)) < 2
    assert do(tiny, path)
    assert sorted(set(numbers(path))) == whole


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\xff\xfe\x00text", b"experiment,run\nxu,full\n"])
def test_a_file_of_somebody_else_is_not_continued(tmp_path, content):
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match="is no file of results"):
        pending(experiment(CS).tasks(), path)
    assert path.read_bytes() == content


def test_failure_and_time_limit_are_reported_and_cost_nobody_else(tmp_path):
    path = tmp_path / "r.csv"
    wrong = Model("wrong", "", SVC(C=-1.0), {"gamma": (1.0,)})
    short = replace(PROTOCOL, repeats=1, budget=6.0)
    tiny = experiment(wrong, Model("slow", "", SVC(), {"C": tuple(np.linspace(1, 2, 50_000))}), CS, protocol=short)
    outcomes = do(tiny, path)
    assert outcomes[0].startswith("failed: InvalidParameterError") and outcomes[1:] == ["out of budget (6 s)", "ok"]
    assert [task.method.name for task in pending(tiny.tasks(), path)[0]] == ["wrong"]  # tried again, the slow one not
    longer = replace(tiny, rows=(replace(tiny.rows[0], protocol=replace(short, budget=7.0)),))
    assert [task.method.name for task in pending(longer.tasks(), path)[0]] == ["wrong", "slow"]
    found = scores(tiny, read_results(path))
    assert found.status("iris", "slow") == "out of budget (6 s)"
    np.testing.assert_array_equal(np.isnan(found.means()), [[True, True, False]])


def test_missing_data_are_named(tmp_path):
    what = experiment(CS)
    what = replace(what, rows=(*what.rows, Row(Source("rcv1", (("rcv1_train.multiclass",),)), PROTOCOL)))
    tasks, missing = pending(what.tasks(), tmp_path / "r.csv", tmp_path)
    assert [source.name for source in missing] == ["rcv1"]
    assert {task.row.data.name for task in tasks} == {"iris"}


def test_left_out_above_a_number_of_classes():
    X, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 4
    what = replace(experiment(CS), max_classes={"cs": 3})
    assert compute(next(what.tasks()), X, y, 40)[0]["status"] == "left out"


@pytest.mark.parametrize("number", [0, 1])
def test_accuracy_is_that_of_the_chosen_parameters(number):
    from sklearn.datasets import load_iris
    from sklearn.preprocessing import MinMaxScaler

    X, y = load_iris(return_X_y=True)
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)
    (record,) = measures.accuracy(CS, PROTOCOL, "unit", X, y, train, test, number)
    front = MinMaxScaler().fit(X[train])
    C = float(record["params"].removeprefix("C="))
    model = CrammerSingerSVC(C=C, random_state=0).fit(front.transform(X[train]), y[train])
    assert record["value"] == pytest.approx(model.score(front.transform(X[test]), y[test]))
    assert record["status"] == "ok" and record["fit_seconds"] >= 0
