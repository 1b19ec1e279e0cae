"""Tasks are told apart by all that changes their numbers, defaults too."""

from dataclasses import replace
from pathlib import Path

from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from skmargin import M3SVC, CrammerSingerSVC
from skmargin.comparison import Model
from skmargin.experiments import EXPERIMENTS, Experiment, Protocol, Row, Source, _keys, read_results
from skmargin.experiments import _measures as measures
from skmargin.experiments._keys import digest, words

METHOD = Model("cs", "", CrammerSingerSVC(), {"C": (1.0, 10.0)})
ROWS = (Row(Source("iris"), Protocol()),)
EXPERIMENT = Experiment("a", "", "", ROWS, ROWS, (METHOD,), measures.accuracy)


def settings(experiment):
    return next(experiment.tasks()).settings


def test_a_changed_default_makes_another_task():
    class Machine(SVC):
        pass

    class Changed(SVC):
        def __init__(self, C=2.0):
            super().__init__(C=C)

    Changed.__name__ = Machine.__name__
    assert repr(Machine()) == repr(Changed())  # which is why repr does not do
    assert digest(Machine()) != digest(Changed())
    assert digest(Machine()) == digest(Machine(C=1.0))


def test_defaults_of_estimators_inside_others_count():
    assert "max_iter=1000" in words(OneVsOneClassifier(LinearSVC()))
    assert digest(OneVsOneClassifier(LinearSVC())) != digest(OneVsOneClassifier(LinearSVC(max_iter=1)))


def test_a_parameter_that_came_later_changes_nothing_at_its_old_value(monkeypatch):
    told = words(M3SVC())
    assert "init=" not in told and "init='random'" in words(M3SVC(init="random"))
    monkeypatch.setitem(_keys.LATER, "M3SVC", {"init": "random"})
    assert words(M3SVC()) != told


def test_everything_that_changes_numbers_changes_the_key():
    base = settings(EXPERIMENT)
    row = ROWS[0]
    others = [
        replace(EXPERIMENT, measure=measures.ceiling),
        replace(EXPERIMENT, units={"cs": "1 / m"}),
        replace(EXPERIMENT, max_classes={"cs": 3}),
        replace(EXPERIMENT, methods=(replace(METHOD, name="b"),)),
        replace(EXPERIMENT, methods=(replace(METHOD, grid={"C": (1.0,)}),)),
        replace(EXPERIMENT, methods=(replace(METHOD, widths=(1.0,)),)),
        replace(EXPERIMENT, rows=(replace(row, params={"cs": {"tol": 0.1}}),)),
        replace(EXPERIMENT, rows=(replace(row, data=Source("iris", scale="none")),)),
        replace(EXPERIMENT, rows=(replace(row, protocol=Protocol(folds=4)),)),
    ]
    assert len({base, *map(settings, others)}) == len(others) + 1
    same = [
        replace(EXPERIMENT, name="b", title="B", reference="cs", columns={"cs": "c"}),
        replace(
            EXPERIMENT, rows=(replace(row, data=Source("iris", note="n"), protocol=Protocol(repeats=3, budget=1)),)
        ),
    ]
    assert {base} == set(map(settings, same))


def test_a_new_version_of_a_measure_makes_other_tasks(monkeypatch):
    base = settings(EXPERIMENT)
    monkeypatch.setitem(_keys.VERSIONS, "accuracy", 2)
    assert settings(EXPERIMENT) != base


def test_committed_results_belong_to_tasks_of_today():
    """A new parameter of a machine belongs into LATER; a changed default, or another description, wants a new run."""
    tasks = [task for experiment in EXPERIMENTS.values() for task in experiment.tasks()]
    known = {task.settings for task in tasks}
    own = {(task.experiment.name, task.method.name) for task in tasks if task.method.own}
    lines = read_results(Path(__file__).parents[2] / "docs" / "reproductions" / "results.csv")
    lost = {(line["experiment"], line["method"]) for line in lines if line["settings"] not in known}
    assert lines and not lost & own
