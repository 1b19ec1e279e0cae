"""All experiments by name."""

from __future__ import annotations

from ._spec import Experiment
from .papers import abe, lei, m3svm, mcodm, overall, xu

_MODULES = (mcodm, m3svm, xu, abe, lei, overall)
EXPERIMENTS: dict[str, Experiment] = {e.name: e for module in _MODULES for e in module.EXPERIMENTS}
PAPERS = tuple(dict.fromkeys(experiment.paper for experiment in EXPERIMENTS.values()))


def choose(name: str) -> list[Experiment]:
    """The experiments of a name: one, all of a paper, or "all"; raises `KeyError` for another name.

    Examples
    --------
    >>> from skmargin.experiments import choose
    >>> [experiment.name for experiment in choose("lei")]
    ['lei-table2', 'lei-whole', 'lei-algorithm1', 'lei-losses']
    """
    if name == "all":
        return list(EXPERIMENTS.values())
    if name in PAPERS:
        return [experiment for experiment in EXPERIMENTS.values() if experiment.paper == name]
    return [EXPERIMENTS[name]]
