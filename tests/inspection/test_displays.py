import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skmargin.inspection import MarginDistributionDisplay, PairwiseMarginDisplay, margins, pairwise_margins

matplotlib.use("Agg")

X, y = load_iris(return_X_y=True)
NAMES = np.array(["<script>", "$x$", "עברית"], dtype=object)[y]
MODEL = LinearSVC(random_state=0).fit(X, NAMES)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_cumulative_curve_is_the_empirical_distribution():
    display = MarginDistributionDisplay.from_estimator(MODEL, X, NAMES)
    (line,) = display.artists_
    margin = np.sort(margins(MODEL, X, NAMES))
    assert_array_equal(line.get_xdata()[1:], margin)
    assert_allclose(line.get_ydata(), np.arange(151) / 150)
    assert display.ax_.get_xlabel() == "Margin"
    assert display.figure_ is display.ax_.figure
    assert line.get_label() == "LinearSVC"


def test_histogram_has_the_area_one():
    display = MarginDistributionDisplay.from_estimator(MODEL, X, NAMES, kind="histogram", bins=11)
    values, edges, _ = display.artists_[0].get_data()
    assert len(values) == 11
    assert_allclose((values * np.diff(edges)).sum(), 1)


def test_classes_models_and_parts_on_one_axis():
    first = MarginDistributionDisplay.from_estimator(MODEL, X[::2], NAMES[::2], name="train", normalize=True, color="k")
    second = MarginDistributionDisplay.from_estimator(
        MODEL, X[1::2], NAMES[1::2], name="test", per_class=True, ax=first.ax_
    )
    assert second.ax_ is first.ax_ and len(second.artists_) == 3
    labels = [text.get_text() for text in second.ax_.get_legend().get_texts()]
    assert labels[0] == "train" and labels[1] == r"test: \$x\$"
    assert first.artists_[0].get_color() == "k"
    second.figure_.canvas.draw()


def test_from_predictions_equals_from_estimator():
    a = MarginDistributionDisplay.from_estimator(MODEL, X, NAMES)
    b = MarginDistributionDisplay.from_predictions(NAMES, MODEL.decision_function(X))
    assert_array_equal(a.margins, b.margins)
    assert b.ax_.get_legend() is None


def test_pairwise_map():
    display = PairwiseMarginDisplay.from_estimator(MODEL)
    widths = pairwise_margins(MODEL)
    assert_allclose(display.im_.get_array().filled(np.nan), widths)
    assert display.text_[0, 1].get_text() == format(widths[0, 1], ".2g") and display.text_[0, 0] is None
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == [str(c).replace("$", r"\$") for c in MODEL.classes_]
    display.figure_.canvas.draw()
    fig, ax = plt.subplots()
    named = PairwiseMarginDisplay.from_estimator(
        MODEL, display_labels=["a", "b", "c"], ax=ax, include_values=False, colorbar=False, cmap="magma"
    )
    assert named.text_ is None and named.figure_ is fig and len(fig.axes) == 1


def test_names_of_many_classes_do_not_lie_over_one_another():
    display = PairwiseMarginDisplay(np.ones((60, 60)), display_labels=[f"c{i}" for i in range(60)]).plot()
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == [f"c{i}" for i in range(0, 60, 2)]
    assert list(display.ax_.get_yticks()) == list(range(0, 60, 2))


def test_pairwise_gaps_for_a_classifier_without_vectors():
    model = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, y)
    display = PairwiseMarginDisplay.from_predictions(y, model.decision_function(X))
    assert display.ax_.get_ylabel() == "True class"
    assert (display.pairwise[~np.eye(3, dtype=bool)] > 0).all()


def test_names_are_shown_as_they_are():
    labels, scores = np.array(["_a", "$b^$", "_a"]), [-1.0, 2.0, -3.0]
    for kind in ("cumulative", "histogram"):
        display = MarginDistributionDisplay.from_predictions(labels, scores, per_class=True, kind=kind)
        assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == [r"\$b^\$", " _a"]
        display.figure_.canvas.draw()
        unnamed = MarginDistributionDisplay.from_predictions(labels, scores, kind=kind)
        assert unnamed.ax_.get_legend() is None


@pytest.mark.parametrize("margin", [[2.0, 2.0], [1.0, 1.0 + 1e-15], [1e20, 1e20], [-1e300, 1e300], [0.0]])
def test_histograms_of_margins_that_hardly_differ(margin):
    values, edges, _ = MarginDistributionDisplay(np.array(margin)).plot(kind="histogram").artists_[0].get_data()
    assert (np.diff(edges) > 0).all()
    assert_allclose((values * np.diff(edges)).sum(), 1)


def test_a_pipeline_is_called_by_its_classifier():
    model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, y)
    assert MarginDistributionDisplay.from_estimator(model, X, y).artists_[0].get_label() == "LinearSVC"


@pytest.mark.parametrize(
    ("names", "slanted"), [(range(10), False), (["benign", "malignant"], False), (["a" * 20] * 4, True)]
)
def test_names_are_slanted_only_where_they_need_it_and_are_never_cut_off(names, slanted):
    display = PairwiseMarginDisplay(np.ones((len(names), len(names))), display_labels=list(names)).plot()
    display.figure_.canvas.draw()
    for text in display.ax_.get_xticklabels():
        assert (text.get_rotation() != 0) == slanted
        assert display.figure_.bbox.y0 <= text.get_window_extent().y0


def test_a_legend_of_many_classes_does_not_hide_their_curves():
    for n_classes, columns in ((10, 1), (20, 2), (40, None)):
        margin, labels = np.arange(120.0), np.arange(120) % n_classes
        legend = MarginDistributionDisplay(margin, y_true=labels).plot(per_class=True).ax_.get_legend()
        assert columns == (None if legend is None else legend._ncols)


def test_refusals():
    scores = MODEL.decision_function(X)
    for display in (MarginDistributionDisplay, PairwiseMarginDisplay):
        with pytest.raises(ValueError, match="y_score has 3 columns, but y_true holds 2 classes: give labels"):
            display.from_predictions(NAMES[:100], scores[:100])
        display.from_predictions(NAMES[:100], scores[:100], labels=MODEL.classes_)
    with pytest.raises(ValueError, match="display_labels must hold one name for each of the 3 classes, got 1"):
        PairwiseMarginDisplay.from_estimator(MODEL, display_labels=["a"])
    with pytest.raises(ValueError, match="no margins to draw"):
        MarginDistributionDisplay([]).plot()
    with pytest.raises(ValueError, match="kind must be"):
        MarginDistributionDisplay.from_estimator(MODEL, X, NAMES, kind="pie")
    with pytest.raises(ValueError, match="per_class=True needs y_true"):
        MarginDistributionDisplay(np.arange(3.0)).plot(per_class=True)
    with pytest.raises(ValueError, match="a label for each of the 3 margins, got 2"):
        MarginDistributionDisplay(np.arange(3.0), y_true=[0, 1]).plot(per_class=True)
    with pytest.raises(ValueError, match="1d array"):
        MarginDistributionDisplay(np.ones((2, 2))).plot()
    with pytest.raises(ValueError, match=r"a row and a column for each class, got the shape \(2, 3\)"):
        PairwiseMarginDisplay(np.ones((2, 3))).plot()


def test_matplotlib_is_imported_only_to_draw():
    code = "import skmargin.inspection, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
