"""Progress through the callbacks of scikit-learn 1.9."""

import pytest
from sklearn.datasets import load_iris

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    LDMClassifier,
    LpNormSVC,
    MultiMarginSVC,
    ODMClassifier,
    SemiSupervisedMarginSVC,
    TopKSVC,
    ULDMClassifier,
    WestonWatkinsSVC,
)
from skmargin.model_selection import MarginSearchCV

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")

X, Y = load_iris(return_X_y=True)


class Recorder:
    """Counts the tasks that begin and end."""

    max_propagation_depth = None

    def __init__(self):
        self.begun, self.ended = [], []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((context.estimator_name, context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.ended.append((context.estimator_name, context.task_name))


@pytest.mark.parametrize(
    "estimator",
    [
        CrammerSingerSVC(),
        WestonWatkinsSVC(),
        TopKSVC(k=2),
        LpNormSVC(),
        MultiMarginSVC(),
        SemiSupervisedMarginSVC(),
        ODMClassifier(),
        M3SVC(),
        ULDMClassifier(),
        LSSVC(),
        LDMClassifier(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_scoring_monitor_of_a_fit(estimator):
    monitor = callback.ScoringMonitor(scoring="accuracy")
    recorder = Recorder()
    estimator.set_callbacks(monitor, recorder).fit(X, Y)
    rows = monitor.get_logs().data
    assert rows[0]["task_name"] == "fit" and rows[0]["accuracy"] == estimator.score(X, Y)
    assert sorted(recorder.begun) == sorted(recorder.ended)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("estimator", [CrammerSingerSVC(), LSSVC()], ids=lambda e: type(e).__name__)
def test_search_tells_of_every_fit(estimator, n_jobs):
    recorder = Recorder()
    MarginSearchCV(estimator, {"C": [0.1, 1.0]}, cv=3, n_jobs=n_jobs).set_callbacks(recorder).fit(X, Y)
    name = type(estimator).__name__
    evaluated = [
        task for task in recorder.ended if task in {("MarginSearchCV", "candidate-split-evaluation"), (name, "fit")}
    ]
    assert len(evaluated) == 6 + 1  # and the last fit
    assert ("MarginSearchCV", "fit") in recorder.ended


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("estimator", [ULDMClassifier(), LSSVC(), LDMClassifier()], ids=lambda e: type(e).__name__)
def test_fits_of_several_machines_tell_of_each(estimator, n_jobs):
    recorder = Recorder()
    estimator.set_params(n_jobs=n_jobs).set_callbacks(recorder).fit(X, Y)
    assert [name for _, name in recorder.begun].count("machine") == 3
    assert [name for _, name in recorder.ended][-2:] == ["machines", "fit"]
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert not hasattr(estimator, "_progress")
    within = Recorder()  # as a part of another task
    MarginSearchCV(type(estimator)(n_jobs=n_jobs), {"gamma": [0.1, 1.0]}, cv=2).set_callbacks(within).fit(X, Y)
    assert [name for _, name in within.ended].count("machine") == (2 * 2 + 1) * 3


def test_progress_bar(capsys):
    pytest.importorskip("rich")
    MarginSearchCV(LSSVC(), {"C": [0.1, 1.0]}, cv=2).set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert "MarginSearchCV - fit" in capsys.readouterr().out
