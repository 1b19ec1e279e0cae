"""Progress through the callbacks of scikit-learn 1.9."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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
from skmargin._runtime.progress import counting, listening, progress_range, report, report_gap
from skmargin.estimators import _base
from skmargin.estimators._base import STEPS
from skmargin.model_selection import MarginSearchCV, margin_path

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


class Watcher(Recorder):
    """Keeps the data that the fits on folds are made of."""

    def on_fit_task_end(self, estimator, context, *, X, y, metadata):
        if context.task_name == "candidate-split-evaluation":
            self.ended.append((X, y, metadata["sample_weight"]))


def test_search_hands_over_the_training_rows_of_each_fold():
    watcher, weight = Watcher(), np.arange(1.0, 151.0)
    MarginSearchCV(LSSVC(kernel="rbf"), {"C": [0.1, 1.0]}, cv=3).set_callbacks(watcher).fit(X, Y, sample_weight=weight)
    assert len(watcher.ended) == 6
    for rows, labels, weights in watcher.ended:
        places = weights.astype(int) - 1
        assert len(rows) == 100
        np.testing.assert_array_equal(rows, X[places])
        np.testing.assert_array_equal(labels, Y[places])


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("estimator", [ULDMClassifier(), LSSVC(), LDMClassifier()], ids=lambda e: type(e).__name__)
def test_fits_of_several_machines_tell_of_each(estimator, n_jobs):
    recorder = Recorder()
    estimator.set_params(n_jobs=n_jobs).set_callbacks(recorder).fit(X, Y)
    assert [name for _, name in recorder.ended] == ["step"] * STEPS + ["fit"]
    assert sorted(recorder.begun) == sorted(recorder.ended)
    within = Recorder()  # as a part of another task
    MarginSearchCV(type(estimator)(n_jobs=n_jobs), {"gamma": [0.1, 1.0]}, cv=2).set_callbacks(within).fit(X, Y)
    assert [name for _, name in within.ended].count("step") == (2 * 2 + 1) * STEPS


@pytest.fixture(scope="module")
def slow():
    """Rows on which a fit passes several checkpoints of the core."""
    return make_classification(2000, 100, n_informative=60, n_classes=6, flip_y=0.3, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        CrammerSingerSVC(C=10, tol=1e-6),
        WestonWatkinsSVC(C=10, tol=1e-6),
        CrammerSingerSVC(kernel="rbf", C=10, tol=1e-5),
        MultiMarginSVC(C=10, tol=1e-6),
        MultiMarginSVC(solver="svrg", C=0.01),
        LpNormSVC(C=10, tol=1e-5),
        ODMClassifier(C=1e4, tol=1e-5),
        M3SVC(tol=1e-6),
        SemiSupervisedMarginSVC(),
        ULDMClassifier(alpha=[1e-4, 1e-2], gamma=[0.01, 0.1], cv=2),
    ],
    ids=lambda e: f"{type(e).__name__}-{getattr(e, 'kernel', '')}-{getattr(e, 'solver', '')}",
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_long_fit_tells_how_far_it_is_from_inside(estimator, slow):
    rows, labels = slow
    labels = labels.copy()
    if isinstance(estimator, SemiSupervisedMarginSVC):
        labels[::2] = -1
    recorder = Recorder()
    estimator.set_callbacks(recorder).fit(rows, labels)
    steps = [name for _, name in recorder.ended].count("step")
    assert 2 <= steps <= STEPS
    assert recorder.begun[0][1] == "fit" and sorted(recorder.begun) == sorted(recorder.ended)


def test_shares_of_parts():
    heard = []
    with listening(heard.append):
        report_gap(1e-2, 1e-4)
        with progress_range(0.5, 1.0):
            report(0.5)
            with progress_range(0, 0):
                report(1.0)
        assert [counting(lambda item: 2 * item, 2)(item) for item in (1, 2)] == [2, 4]
        with listening(None):
            report(1.0)
    report(1.0)
    assert heard == [0.5, 0.75, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    "estimator", [CrammerSingerSVC(), LSSVC(), make_pipeline(StandardScaler(), CrammerSingerSVC())]
)
def test_paths_tell_of_every_value(estimator):
    recorder = Recorder()
    classifier = estimator[-1] if hasattr(estimator, "steps") else estimator
    classifier.set_callbacks(recorder)
    name = "crammersingersvc__C" if hasattr(estimator, "steps") else "C"
    models = margin_path(estimator, X, Y, name, [0.1, 1.0, 10.0])
    tasks = [task for task in recorder.ended if task[1] in ("value", "fit")]
    assert len(tasks) == 3 + 1 and tasks[-1] == ("_Values", "fit")
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert not any(hasattr(model, "_skl_callbacks") for model in models)


def test_verbose_says_how_far_a_fit_and_a_path_are(capsys, monkeypatch, slow):
    monkeypatch.setattr(_base, "SECONDS", 0.0)
    rows, labels = slow
    margin_path(CrammerSingerSVC(tol=1e-5, verbose=1), rows, labels, "C", [1.0, 10.0])
    said = capsys.readouterr().out
    assert "[skmargin] margin_path: 2 of 2 values, C=10.0" in said
    assert re.search(r"\[skmargin\] CrammerSingerSVC: \d+% of the way, \d+ s", said)


def test_progress_bar(capsys):
    MarginSearchCV(LSSVC(), {"C": [0.1, 1.0]}, cv=2).set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert "MarginSearchCV - fit" in capsys.readouterr().out
