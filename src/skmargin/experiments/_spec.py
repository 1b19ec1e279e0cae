"""The words in which an experiment is described: data, protocol, rows, methods, measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import clone

from ..comparison import Model
from ._keys import digest

SUFFIXES = ("", ".svm", ".txt", ".scale")
COMPRESSED = ("", ".bz2", ".xz", ".gz")


@dataclass(frozen=True)
class Source:
    """Where the rows of a data set are, and what is done to them before anything is fitted.

    Parameters
    ----------
    name : str
        As in the paper; also the built-in name, or the key in ``raetsch.npz`` with ``raetsch=True``.
    files : tuple of tuples of str
        One tuple for each file (training part, test part), each with the names it may have without ending: those of
        the LIBSVM page among them.  Empty for a built-in set.
    n_features : int or None
        Width, where the files do not say it.
    scale : {"unit", "unit / sqrt(m)", "length", "standard, all rows", "none"}
        "unit" maps every feature to [0, 1], learnt on the training rows (sparse rows: divided by the largest absolute
        value); "unit / sqrt(m)" divides by the root of the number of features besides, which makes the RBF kernel that
        of Abe; "length" makes every row one long; "standard, all rows" gives every feature mean 0 and variance 1 over
        training and test rows together, as the authors of M3SVM do.
    classes : tuple of int or None
        Labels that stay; None keeps all.
    n_classes : int or None
        Number of classes that stay, in their order; None keeps all.
    rows : int or None
        Number of rows that stay, drawn at random with a fixed seed; None keeps all.
    raetsch : bool
        Whether the set is one of Rätsch's collection.
    note : str
        What differs from the paper's data.

    Examples
    --------
    >>> from skmargin.experiments import Source
    >>> Source("dna", files=(("dna.train", "dna.scale"), ("dna.test", "dna.scale.t")), n_features=180).scale
    'unit'
    """

    name: str
    files: tuple[tuple[str, ...], ...] = ()
    n_features: int | None = None
    scale: str = "unit"
    classes: tuple[int, ...] | None = None
    n_classes: int | None = None
    rows: int | None = None
    raetsch: bool = False
    note: str = ""

    @property
    def wanted(self) -> str:
        """The files that a user must have, in words."""
        if self.raetsch:
            return f"raetsch.npz with the arrays {self.name.replace(' ', '_')}_X and _y"
        return ", ".join(" or ".join(f"`{name}`" for name in names) for names in self.files)


@dataclass(frozen=True)
class Split:
    """How rows are divided.

    "holdout" draws test rows of each class in proportion (a share, or a number beside ``train``), "random" draws them
    from all rows, "kfold" is 5-fold cross-validation, "given" takes the parts of the files, or the first ``train`` rows
    of all.  ``seed`` fixes a random division: the number of the division then seeds the method only.

    Examples
    --------
    >>> from skmargin.experiments import Split
    >>> Split("random", test=0.3, seed=42)
    Split(kind='random', test=0.3, train=None, seed=42)
    """

    kind: str = "holdout"
    test: float = 0.2
    train: int | None = None
    seed: int | None = None

    def __str__(self) -> str:
        if self.kind == "kfold":
            return "5-fold cross-validation"
        if self.kind == "given":
            return "the given training and test part"
        if self.seed is not None:
            return (
                f"the division with seed {self.seed} ({100 * (1 - self.test):.0f} % training), each from another start"
            )
        if self.train is not None:
            return "the paper's numbers of training and test rows"
        return f"{100 * (1 - self.test):.0f} % training, {100 * self.test:.0f} % test"


@dataclass(frozen=True)
class Protocol:
    """What is done with one data set.

    Parameters
    ----------
    split : Split
        Division into training and test rows.
    repeats : int
        Number of divisions; with "kfold" five of them make one round.
    folds : int
        Folds of the cross-validation that chooses parameters.
    values : tuple of two ints or None
        At most so many values of a grid's first parameter, and of each other one; None takes the whole grid.
    rows, test_rows : int or None
        At most so many training and test rows.
    budget : float
        Seconds of the processor for one task; one that needs more is given up and reported so.

    Examples
    --------
    >>> from skmargin.experiments import Protocol, Split
    >>> Protocol(Split("kfold"), repeats=5, folds=3).repeats
    5
    """

    split: Split = field(default_factory=Split)
    repeats: int = 10
    folds: int = 3
    values: tuple[int, int] | None = None
    rows: int | None = None
    test_rows: int | None = None
    budget: float = 120.0

    def describe(self, tuned: bool, whole: bool = False) -> str:
        """The protocol in words, with those about the choice of parameters if there is one.

        With ``whole`` a division is a whole round of folds, which choose the parameters themselves.
        """
        if whole:
            return f"{self.repeats} x {self.split}, each with other folds"
        if self.split.kind == "kfold":
            words = [f"{max(1, self.repeats // 5)} x {self.split}"]
        else:
            words = [f"{self.repeats} x {self.split}"]
        if tuned:
            words.append(f"{self.folds}-fold selection")
        if tuned and self.values is not None:
            words.append(f"at most {self.values[0]} values of the first parameter, {self.values[1]} of the others")
        if self.rows is not None:
            words.append(f"at most {self.rows} training rows")
        return ", ".join(words)


@dataclass(frozen=True)
class Row:
    """One line of a table; ``params`` are parameters that a method, by name, has on this data set.

    Examples
    --------
    >>> from skmargin.experiments import Protocol, Row, Source
    >>> Row(Source("iris"), Protocol(repeats=2)).data.name
    'iris'
    """

    data: Source
    protocol: Protocol
    params: dict[str, dict[str, Any]] = field(default_factory=dict)

    def method(self, method: Model) -> Model:
        """The method with its parameters for this data set."""
        if method.name not in self.params:
            return method
        return replace(method, estimator=clone(method.estimator).set_params(**self.params[method.name]))


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Parameters
    ----------
    name : str
        By which it is asked for.
    title : str
        What the paper calls it.
    paper : str
        Short name of the paper: a page holds all of its experiments.
    rows : tuple of Row
        Data sets and protocols.
    quick : tuple of Row
        The same on built-in data, small enough for every change to be tested.
    methods : tuple of Model
        Who takes part.
    measure : callable
        What a task does; see `skmargin.experiments._measures`.
    reference : str
        The method that the others are compared with.
    statistic : {"paired", "welch", "none"}
        The t-test that decides between win, tie and loss; "none" where repetitions share all of their rows.
    protocol : str
        The paper's own protocol, in words.
    max_classes : dict
        Methods that are left out above a number of classes.
    units : dict
        Methods whose grid of ``C`` is multiplied: "1 / m" by one over the number of training rows, "1 / (k + 1)" by
        one over the number of classes plus one.
    table : str
        The published table that stands beside the figures; its own name where this is empty.
    columns : dict
        The published column beside a method, where it has another name.
    view : {"accuracy", "seconds", "parameters", "ceiling", "curve"}
        What of the results a table shows.
    whole : tuple of str
        Methods whose grid is taken whole, whatever a protocol says.

    Examples
    --------
    >>> from skmargin.experiments import EXPERIMENTS
    >>> sorted({experiment.paper for experiment in EXPERIMENTS.values()})
    ['abe', 'lei', 'm3svm', 'mcodm', 'overall', 'xu']
    """

    name: str
    title: str
    paper: str
    rows: tuple[Row, ...]
    quick: tuple[Row, ...]
    methods: tuple[Model, ...]
    measure: Callable[..., list[dict[str, Any]]]
    reference: str = ""
    statistic: str = "paired"
    protocol: str = ""
    max_classes: dict[str, int] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    table: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    view: str = "accuracy"
    whole: tuple[str, ...] = ()

    def tasks(self, quick: bool = False) -> Iterator[Task]:
        """All tasks, one data set after the other."""
        for row in self.quick if quick else self.rows:
            methods = [row.method(method) for method in self.methods]
            settings = [self._settings(row, method) for method in methods]
            for split in range(row.protocol.repeats):
                for method, words in zip(methods, settings, strict=True):
                    yield Task(self, row, method, split, quick, words)

    def values(self, row: Row, method: Model) -> tuple[int, int] | None:
        """How many values of the method's grid are tried on a data set."""
        return None if method.name in self.whole else row.protocol.values

    def _settings(self, row: Row, method: Model) -> str:
        """Changes with everything that changes the numbers of a task, and with nothing else."""
        data, protocol = replace(row.data, note=""), replace(row.protocol, repeats=0, budget=0.0, values=None)
        grid = thin(method.grid, self.values(row, method))
        limits = self.units.get(method.name), self.max_classes.get(method.name)
        return digest(data, protocol, method.name, method.estimator, grid, method.widths, self.measure.__name__, limits)


@dataclass(frozen=True)
class Task:
    """One method on one division of one data set.

    Two experiments that ask for the same numbers share the task: its key does not name the experiment.

    Examples
    --------
    >>> from skmargin.experiments import choose
    >>> task = next(choose("xu-table2")[0].tasks(quick=True))
    >>> task.row.data.name, task.split
    ('iris', 0)
    """

    experiment: Experiment
    row: Row
    method: Model
    split: int
    quick: bool
    settings: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells tasks apart in the results."""
        return self.row.data.name, str(self.split), self.settings


def thin(grid: dict[str, tuple[Any, ...]], values: tuple[int, int] | None) -> dict[str, list[Any]]:
    """At most ``values[0]`` values of the first parameter and ``values[1]`` of the others, evenly spread."""
    out = {}
    for i, (name, full) in enumerate(grid.items()):
        n = len(full) if values is None else min(len(full), values[min(i, 1)])
        out[name] = [full[j * len(full) // n] for j in range(n)]
    return out


def in_units(method: Model, unit: str, n_train: int, n_classes: int) -> Model:
    """The method with every ``C`` of its grid in a unit (see `Experiment`); without one as it is."""
    if not unit:
        return method
    factor = {"1 / m": 1 / n_train, "1 / (k + 1)": 1 / (n_classes + 1)}[unit]
    grid = {k: tuple(factor * v for v in values) if k.endswith("C") else values for k, values in method.grid.items()}
    return replace(method, grid=grid)
