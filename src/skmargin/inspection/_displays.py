"""Pictures of margins, in the manner of scikit-learn's Display classes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import column_or_1d

from .._types import Estimator, LabelsLike, RowsLike
from ._margins import class_scores, final_estimator, margins_from_scores
from ._pairwise import pairwise_margins, pairwise_score_gaps

Kind = Literal["cumulative", "histogram"]
MOST_NAMES = 30  # of classes along a side of the map, and of curves in a legend
MOST_LETTERS = 45  # of names that stand side by side below the map, with their gaps; more are slanted


def _plain(label: Any) -> Any:
    """A name as matplotlib shows it unchanged: a dollar sign opens mathematics there, an underscore hides a legend."""
    if label is None:
        return None
    text = str(label).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _new_axes() -> Any:
    """Axes of a figure of their own, with room for long names."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _column_labels(y_true: LabelsLike, y_score: Any, labels: Any) -> np.ndarray:
    """The classes of the columns: those given, or the sorted labels where these are as many."""
    if labels is not None:
        return np.asarray(labels)
    found, shape = np.unique(column_or_1d(y_true)), np.shape(y_score)
    if len(shape) == 2 and shape[1] != len(found) and not (shape[1] == 1 and len(found) == 2):
        raise ValueError(
            f"y_score has {shape[1]} columns, but y_true holds {len(found)} classes: give labels, those of the columns."
        )
    return found


def _bin_edges(margin: np.ndarray, bins: int) -> np.ndarray:
    """Edges of equal bins over the margins; margins that differ by rounding only lie in the middle of one unit."""
    low, high = margin.min(), margin.max()
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        half = max(0.5, 1e-6 * abs(low))
        low, high = low - half, high + half
    return np.histogram_bin_edges(margin, bins=bins, range=(low, high))


class MarginDistributionDisplay:
    """Distribution of the margins of samples, as a cumulative curve or a histogram.

    Make it with `from_estimator` or `from_predictions`.  Give the ``ax_`` of one display to the next to lay several
    models, or training and test samples, over one another.

    Parameters
    ----------
    margins : ndarray of shape (n_samples,)
        The margins.
    y_true : ndarray of shape (n_samples,), default=None
        True labels, for curves of the single classes.
    name : str, default=None
        What the legend calls it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of ``ax_``.
    artists_ : list
        The lines, or the outlines of the histograms, of this display: one, or one a class.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.svm import LinearSVC
    >>> from skmargin.inspection import MarginDistributionDisplay
    >>> A, B, a, b = train_test_split(*load_iris(return_X_y=True), random_state=0)
    >>> model = LinearSVC(random_state=0).fit(A, a)
    >>> train = MarginDistributionDisplay.from_estimator(model, A, a, name="train")
    >>> test = MarginDistributionDisplay.from_estimator(model, B, b, name="test", ax=train.ax_)
    >>> [text.get_text() for text in test.ax_.get_legend().get_texts()]
    ['train', 'test']
    """

    def __init__(self, margins: Any, *, y_true: LabelsLike = None, name: str | None = None) -> None:
        self.margins = margins
        self.y_true = y_true
        self.name = name

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Kind = "cumulative",
        per_class: bool = False,
        bins: int = 40,
        name: str | None = None,
        **line_kw: Any,
    ) -> MarginDistributionDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        kind : {"cumulative", "histogram"}, default="cumulative"
            The fraction of samples with a margin up to each value, or the density of the margins.
        per_class : bool, default=False
            One curve for each true class instead of one for all samples; with a legend up to 30 of them.
        bins : int, default=40
            Number of bins of the histogram.
        name : str, default=None
            What the legend calls it; None takes ``self.name``.
        **line_kw : dict
            Passed to matplotlib's ``step`` or ``stairs``.

        Returns
        -------
        display : MarginDistributionDisplay
            The object itself.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        if kind not in ("cumulative", "histogram"):
            raise ValueError(f"kind must be 'cumulative' or 'histogram', got {kind!r}.")
        if per_class and self.y_true is None:
            raise ValueError("per_class=True needs y_true.")
        margin = column_or_1d(self.margins, dtype=np.float64)
        if self.y_true is not None and len(self.y_true) != len(margin):
            raise ValueError(f"y_true must hold a label for each of the {len(margin)} margins, got {len(self.y_true)}.")
        if margin.size == 0:
            raise ValueError("There are no margins to draw.")
        if not np.isfinite(margin).all():
            raise ValueError("The margins contain NaN or infinity: the scores must be finite numbers.")
        ax = _new_axes() if ax is None else ax
        name = self.name if name is None else name
        fresh = not ax.has_data()
        edges = _bin_edges(margin, bins)
        self.artists_: list[Any] = []
        for label, part in self._parts(margin, name, per_class):
            style = {"label": _plain(label), **line_kw}
            if kind == "cumulative":
                values = np.sort(part)
                heights = np.arange(1, len(values) + 1) / len(values)
                start, end = np.r_[values[:1], values], np.r_[0.0, heights]
                self.artists_ += ax.step(start, end, where="post", **style)
            else:
                self.artists_.append(ax.stairs(np.histogram(part, bins=edges, density=True)[0], edges, **style))
        if fresh:
            ax.axvline(0, color="0.6", linewidth=1, linestyle=":", zorder=0)
        ax.set(xlabel="Margin", ylabel="Fraction of samples" if kind == "cumulative" else "Density")
        n_named = len(ax.get_legend_handles_labels()[0])
        if 0 < n_named <= MOST_NAMES:  # more would hide the curves
            ax.legend(**({"ncols": 2, "fontsize": "small"} if n_named > 10 else {}))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _parts(self, margin: np.ndarray, name: str | None, per_class: bool) -> list[tuple[str | None, np.ndarray]]:
        if not per_class:
            return [(name, margin)]
        y = column_or_1d(self.y_true)
        prefix = f"{name}: " if name is not None else ""
        return [(f"{prefix}{label}", margin[y == label]) for label in np.unique(y)]

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: RowsLike,
        y: LabelsLike,
        *,
        kind: Kind = "cumulative",
        per_class: bool = False,
        bins: int = 40,
        normalize: bool = False,
        name: str | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> MarginDistributionDisplay:
        """Draw the margins of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier
            Any classifier with ``decision_function``.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their true labels.
        kind, per_class, bins, ax, **line_kw
            As in `plot`.
        normalize : bool, default=False
            Divide by the mean absolute margin, so that models whose scores differ in scale fit on one axis.
        name : str, default=None
            What the legend calls it; None takes the name of the classifier's class.

        Returns
        -------
        display : MarginDistributionDisplay
            With ``ax_``, ``figure_`` and ``artists_``.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        return cls.from_predictions(
            y,
            class_scores(estimator, X),
            labels=estimator.classes_,
            kind=kind,
            per_class=per_class,
            bins=bins,
            normalize=normalize,
            name=type(final_estimator(estimator)).__name__ if name is None else name,
            ax=ax,
            **line_kw,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_score: Any,
        *,
        labels: Any = None,
        kind: Kind = "cumulative",
        per_class: bool = False,
        bins: int = 40,
        normalize: bool = False,
        name: str | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> MarginDistributionDisplay:
        """Draw the margins of samples whose scores are known.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_score : array-like of shape (n_samples, n_classes) or (n_samples,)
            What ``decision_function`` gave.
        labels : array-like of shape (n_classes,), default=None
            The classes in the order of the columns; None takes the sorted labels of ``y_true``.
        kind, per_class, bins, name, ax, **line_kw
            As in `plot`.
        normalize : bool, default=False
            Divide by the mean absolute margin.

        Returns
        -------
        display : MarginDistributionDisplay
            With ``ax_``, ``figure_`` and ``artists_``.
        """
        check_matplotlib_support(f"{cls.__name__}.from_predictions")
        y_true = column_or_1d(y_true)
        labels = _column_labels(y_true, y_score, labels)
        margin = margins_from_scores(y_score, y_true, labels, normalize=normalize)
        display = cls(margin, y_true=y_true, name=name)
        return display.plot(ax, kind=kind, per_class=per_class, bins=bins, **line_kw)


class PairwiseMarginDisplay:
    """Heat map of the margins between pairs of classes.

    Make it with `from_estimator` (widths ``2 / ||w_k - w_l||``) or `from_predictions` (median score gaps).

    Parameters
    ----------
    pairwise : ndarray of shape (n_classes, n_classes)
        One number for each pair; NaN is left blank.
    display_labels : array-like of shape (n_classes,), default=None
        Names of the classes; None numbers them.
    quantity : str, default="2 / ||w_k - w_l||"
        Label of the colour bar.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    im_ : matplotlib AxesImage
        The map.
    text_ : ndarray of matplotlib Text, or None
        The numbers in the cells.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from skmargin.inspection import PairwiseMarginDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = PairwiseMarginDisplay.from_estimator(LinearSVC(random_state=0).fit(X, y))
    >>> display.pairwise.shape
    (3, 3)
    """

    def __init__(self, pairwise: Any, *, display_labels: Any = None, quantity: str = "2 / ||w_k - w_l||") -> None:
        self.pairwise = pairwise
        self.display_labels = display_labels
        self.quantity = quantity

    def plot(
        self,
        *,
        include_values: bool | None = None,
        values_format: str = ".2g",
        cmap: Any = "viridis",
        colorbar: bool = True,
        ax: Any = None,
        im_kw: dict[str, Any] | None = None,
    ) -> PairwiseMarginDisplay:
        """Draw it.

        Parameters
        ----------
        include_values : bool, default=None
            Write the numbers into the cells; None does so up to 12 classes.
        values_format : str, default=".2g"
            Their format.
        cmap : str or matplotlib Colormap, default="viridis"
            Colours.
        colorbar : bool, default=True
            Draw the colour bar.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        im_kw : dict, default=None
            Passed to ``imshow``.

        Returns
        -------
        display : PairwiseMarginDisplay
            The object itself.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        values = np.asarray(self.pairwise, dtype=np.float64)
        k = len(values)
        if values.shape != (k, k):
            raise ValueError(f"pairwise must have a row and a column for each class, got the shape {values.shape}.")
        labels = range(k) if self.display_labels is None else list(self.display_labels)
        if len(labels) != k:
            raise ValueError(f"display_labels must hold one name for each of the {k} classes, got {len(labels)}.")
        ax = _new_axes() if ax is None else ax
        self.im_ = ax.imshow(np.ma.masked_invalid(values), interpolation="nearest", cmap=cmap, **(im_kw or {}))
        self.text_ = None
        if include_values or (include_values is None and k <= 12):
            self.text_ = np.empty((k, k), dtype=object)
            middle = self.im_.norm
            for i, j in np.argwhere(~np.isnan(values)):
                dark = float(middle(values[i, j])) < 0.5
                colour = self.im_.cmap(0.999 if dark else 0.0)
                self.text_[i, j] = ax.text(
                    j, i, format(values[i, j], values_format), ha="center", va="center", color=colour
                )
        if colorbar:
            ax.figure.colorbar(self.im_, ax=ax, label=self.quantity)
        ticks = range(0, k, -(-k // MOST_NAMES))  # more names would lie over one another
        names = [_plain(labels[i]) for i in ticks]
        ax.set(xticks=ticks, yticks=ticks, xlabel="Class", ylabel="Class")
        slanted = len(names) * (1 + max(map(len, names))) > MOST_LETTERS
        how: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
        ax.set_xticklabels(names, **how)  # a slanted name ends at its tick
        ax.set_yticklabels(names)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, *, display_labels: Any = None, ax: Any = None, **plot_kw: Any
    ) -> PairwiseMarginDisplay:
        """Draw the widths ``2 / ||w_k - w_l||`` of a fitted classifier (see `pairwise_margins`).

        Parameters
        ----------
        estimator : fitted classifier
            A classifier with a linear or kernel vector for each class.
        display_labels : array-like of shape (n_classes,), default=None
            Names of the classes; None takes ``classes_``.
        ax, **plot_kw
            As in `plot`.

        Returns
        -------
        display : PairwiseMarginDisplay
            With ``ax_``, ``figure_``, ``im_`` and ``text_``.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        widths = pairwise_margins(estimator)
        labels = estimator.classes_ if display_labels is None else display_labels
        return cls(widths, display_labels=labels).plot(ax=ax, **plot_kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelsLike,
        y_score: Any,
        *,
        labels: Any = None,
        display_labels: Any = None,
        ax: Any = None,
        **plot_kw: Any,
    ) -> PairwiseMarginDisplay:
        """Draw the median score gap between the true class (rows) and each rival (columns); works for every classifier.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_score : array-like of shape (n_samples, n_classes) or (n_samples,)
            What ``decision_function`` gave.
        labels : array-like of shape (n_classes,), default=None
            The classes in the order of the columns; None takes the sorted labels of ``y_true``.
        display_labels : array-like of shape (n_classes,), default=None
            Names of the classes; None takes ``labels``.
        ax, **plot_kw
            As in `plot`.

        Returns
        -------
        display : PairwiseMarginDisplay
            With ``ax_``, ``figure_``, ``im_`` and ``text_``.
        """
        check_matplotlib_support(f"{cls.__name__}.from_predictions")
        labels = _column_labels(y_true, y_score, labels)
        gaps = pairwise_score_gaps(y_true, y_score, labels)
        names = labels if display_labels is None else display_labels
        display = cls(gaps, display_labels=names, quantity="median of f_k - f_l").plot(ax=ax, **plot_kw)
        display.ax_.set(xlabel="Rival", ylabel="True class")
        return display
