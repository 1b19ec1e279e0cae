"""The classes that a model file may hold, and the attributes that make each of them up.

Of skmargin's estimators, and of classes that a user allows, all public attributes belong to the model, and of the
private ones those that the class names in ``_model_state``.  Of scikit-learn's only those listed here, of all versions
since 1.7: the rest is made again by `REBUILD`, or serves further fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

_ENCODER = "categories_ drop_idx_ _drop_idx_after_grouping _infrequent_enabled _infrequent_indices "
_ENCODER += "_default_to_infrequent_mappings _n_features_outs _missing_indices"
_SVC = "classes_ class_weight_ support_ support_vectors_ _n_support dual_coef_ _dual_coef_ intercept_ _intercept_ "
_SVC += "_probA _probB _gamma _sparse _effective_probability fit_status_ shape_fit_ n_iter_ _num_iter"
_TREE = "classes_ n_classes_ n_outputs_ max_features_ tree_"
_FOREST = "classes_ n_classes_ n_outputs_ estimator_ estimators_ _n_samples _n_samples_bootstrap oob_score_ "
_FOREST += "oob_decision_function_"
_SCALER = "n_samples_seen_ mean_ var_ scale_ min_ data_min_ data_max_ data_range_ max_abs_ center_"

# Module of scikit-learn, class, attributes besides those that all of them have.
_SKLEARN: dict[str, dict[str, str]] = {
    "pipeline": {"Pipeline": "", "FeatureUnion": ""},
    "preprocessing": {
        **dict.fromkeys(("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer"), _SCALER),
        "OneHotEncoder": _ENCODER,
        "OrdinalEncoder": _ENCODER,
        "LabelEncoder": "classes_",
        "LabelBinarizer": "classes_ y_type_ sparse_input_",
        "FunctionTransformer": "",
    },
    "impute": {
        "SimpleImputer": "statistics_ indicator_ _fit_dtype _fill_dtype",
        "MissingIndicator": "features_ _n_features _precomputed",
    },
    "compose": {
        "ColumnTransformer": "transformers_ output_indices_ sparse_output_ _columns _transformer_to_input_indices "
        "_remainder _n_features",
    },
    "feature_extraction.text": {
        "CountVectorizer": "vocabulary_ fixed_vocabulary_",
        "TfidfVectorizer": "vocabulary_ fixed_vocabulary_ _tfidf",
        "TfidfTransformer": "idf_",
        "HashingVectorizer": "",
    },
    "linear_model": {"LogisticRegression": "classes_ coef_ intercept_ n_iter_"},
    "svm": {"LinearSVC": "classes_ coef_ intercept_ n_iter_", "SVC": _SVC},
    "multiclass": {
        "OneVsRestClassifier": "classes_ estimators_ label_binarizer_",
        "OneVsOneClassifier": "classes_ estimators_ pairwise_indices_",
        "OutputCodeClassifier": "classes_ estimators_ code_book_",
        "_ConstantPredictor": "y_",
    },
    "tree": {"DecisionTreeClassifier": _TREE, "ExtraTreeClassifier": _TREE},
    "ensemble": {
        "RandomForestClassifier": _FOREST,
        "ExtraTreesClassifier": _FOREST,
        "HistGradientBoostingClassifier": "classes_ n_trees_per_iteration_ is_categorical_ do_early_stopping_ "
        "train_score_ validation_score_ _predictors _bin_mapper _baseline_prediction _is_categorical_remapped "
        "_preprocessor _n_features",
    },
    "neighbors": {"KNeighborsClassifier": "classes_ _fit_X _y"},
    "dummy": {"DummyClassifier": "classes_ n_classes_ n_outputs_ class_prior_ constant_ sparse_output_ _strategy"},
    "calibration": {
        "CalibratedClassifierCV": "classes_ calibrated_classifiers_",
        "_SigmoidCalibration": "a_ b_",
        "_TemperatureScaling": "beta_",
    },
    "isotonic": {"IsotonicRegression": "increasing_ X_min_ X_max_ X_thresholds_ y_thresholds_"},
    "frozen": {"FrozenEstimator": ""},
}
_EVERY = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")
HOMES = {f"sklearn.{name}": f"sklearn.{home}" for home, classes in _SKLEARN.items() for name in classes}
_ATTRIBUTES = {
    f"sklearn.{name}": frozenset((*names.split(), *_EVERY))
    for classes in _SKLEARN.values()
    for name, names in classes.items()
}


class Classes(Mapping[str, type]):
    """The classes that a file may hold by name; their modules are imported when one of them is asked for."""

    def __init__(self, extra_classes: Iterable[type] = ()) -> None:
        self.extra = {name_of(c): c for c in extra_classes}

    def __getitem__(self, name: str) -> type:
        if name in self.extra:
            return self.extra[name]
        found = getattr(import_module(HOMES[name]), name.partition(".")[2], None) if name in HOMES else _own().get(name)
        if not isinstance(found, type):  # scikit-learn before 1.8 has no temperature scaling
            raise KeyError(name)
        return found

    def __iter__(self) -> Any:
        return iter(dict.fromkeys((*(name for name in HOMES if name in self), *_own(), *self.extra)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: Any) -> bool:
        try:
            self[name]
        except (KeyError, TypeError):
            return False
        return True

    def name(self, cls: type) -> str | None:
        """The name of a class in model files, or None if they cannot hold it."""
        name = name_of(cls)
        return name if self.get(name) is cls else None


def model_classes(extra_classes: Iterable[type] = ()) -> dict[str, type]:
    """The classes that a model file may hold, by the names that it uses for them.

    Parameters
    ----------
    extra_classes : iterable of type
        Estimator classes to allow besides those of skmargin and scikit-learn.

    Returns
    -------
    classes : dict of str to type

    Examples
    --------
    >>> from skmargin.model_files import model_classes
    >>> model_classes()["sklearn.StandardScaler"]
    <class 'sklearn.preprocessing._data.StandardScaler'>
    """
    return dict(Classes(extra_classes))


def name_of(cls: type) -> str:
    """The package and the name of a class."""
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


def is_listed(cls: type, attribute: str) -> bool:
    """Whether an attribute is one of those that make up a class of scikit-learn."""
    return cls.__module__.startswith("sklearn.") and attribute in _ATTRIBUTES.get(name_of(cls), ())


def is_state(cls: type, attribute: str) -> bool:
    """Whether an attribute belongs to the model."""
    if cls.__module__.startswith("sklearn.") and name_of(cls) in _ATTRIBUTES:
        return is_listed(cls, attribute)
    return not attribute.startswith("_") or attribute in getattr(cls, "_model_state", ())


def _own() -> dict[str, type]:
    """The estimators and transformers of skmargin."""
    import skmargin
    from skmargin import datasets

    public = [getattr(home, name) for home in (skmargin, datasets) for name in home.__all__]
    return {name_of(c): c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)}
