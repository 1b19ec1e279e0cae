"""Exact, certified and fast multi-class large-margin classifiers for scikit-learn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# `__all__` names the machines; these are public too.
from ._config import config_context as config_context
from ._config import get_config as get_config
from ._config import set_config as set_config

if TYPE_CHECKING:
    from .estimators._crammer_singer import CrammerSingerSVC
    from .estimators._fuzzy_pairwise import FuzzyPairwiseClassifier
    from .estimators._ldm import LDMClassifier
    from .estimators._lp_norm import LpNormSVC
    from .estimators._lssvc import LSSVC
    from .estimators._m3 import M3SVC
    from .estimators._multi_margin import MultiMarginSVC
    from .estimators._odm import ODMClassifier
    from .estimators._semi_supervised import SemiSupervisedMarginSVC
    from .estimators._top_k import TopKSVC
    from .estimators._uldm import ULDMClassifier
    from .estimators._weston_watkins import WestonWatkinsSVC

__version__ = "0.1.0"

# Where each public name lives.  Loaded on first use: `import skmargin` costs nothing.
_SUBMODULES = ("datasets", "inspection", "model_files", "model_selection", "onnx", "report", "torch")
_HOMES = {
    "CrammerSingerSVC": "_crammer_singer",
    "FuzzyPairwiseClassifier": "_fuzzy_pairwise",
    "LDMClassifier": "_ldm",
    "LSSVC": "_lssvc",
    "LpNormSVC": "_lp_norm",
    "M3SVC": "_m3",
    "MultiMarginSVC": "_multi_margin",
    "SemiSupervisedMarginSVC": "_semi_supervised",
    "ODMClassifier": "_odm",
    "TopKSVC": "_top_k",
    "ULDMClassifier": "_uldm",
    "WestonWatkinsSVC": "_weston_watkins",
}

__all__ = [
    "LSSVC",
    "M3SVC",
    "CrammerSingerSVC",
    "FuzzyPairwiseClassifier",
    "LDMClassifier",
    "LpNormSVC",
    "MultiMarginSVC",
    "ODMClassifier",
    "SemiSupervisedMarginSVC",
    "TopKSVC",
    "ULDMClassifier",
    "WestonWatkinsSVC",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".estimators.{_HOMES[name]}", __name__), name)
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'skmargin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__", "config_context", "get_config", "set_config"])
