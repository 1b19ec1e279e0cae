"""What the attributes of a model must be, how their sizes must agree, and what is made again from them.

A file whose checksums are right may still hold anything.  Parameters are validated as ``fit`` validates them,
attributes by the tables here: the type and the shape that they have after every fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from .._types import Estimator
from ._archive import ModelFileError

NUMBERS = "fiu"
MOST_JOBS = 1024  # threads or processes that a file may ask for
# Attribute: shape of an array of numbers, in letters: d features, k classes, r rows of a linear machine (k, or 1 for
# two classes), m support vectors, p pairs of classes, * any number.  Alternatives are separated by "|"; "0" is a finite
# number, "?" any number, "-" None.
_SHAPES = {
    **dict.fromkeys(("mean_", "var_", "scale_", "center_"), "d|-"),
    **dict.fromkeys(("min_", "data_min_", "data_max_", "data_range_", "max_abs_", "idf_"), "d"),
    "n_samples_seen_": "0|d",
    "n_iter_": "0|*|-",
    "class_prior_": "k",
    "code_book_": "k*",
    "class_weight_": "k",
    **dict.fromkeys(("X_thresholds_", "y_thresholds_"), "*"),
    **dict.fromkeys(("a_", "b_", "beta_", "X_min_", "X_max_", "_gamma", "_weight_seen"), "0"),
    "gamma_": "0|*",
    "features_": "*",
    "_baseline_prediction": "**",
    **dict.fromkeys(("objective_", "dual_gap_"), "?|-"),
    **dict.fromkeys(("n_features_in_", "n_outputs_", "n_classes_", "n_trees_per_iteration_", "_n_features"), "0"),
}
_LINEAR = {"coef_": "rd", "intercept_": "r|0"}
_OVO = {"coef_": "*d", "intercept_": "*"}
_KERNEL = {"dual_coef_": "mr", "support_": "m"}
_LIBSVM = {
    "intercept_": "p", "_intercept_": "p", "support_": "m", "_n_support": "k", "_probA": "*", "_probB": "*",
}  # fmt: skip


def check_estimator(estimator: Estimator, known: bool) -> None:
    """Refuse an estimator that no fit leaves behind; of classes that a user allows only the common sizes are known."""
    _check_sizes(estimator)
    if not known:
        return
    if hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()
    name = type(estimator).__name__
    n_jobs = getattr(estimator, "n_jobs", None)
    if n_jobs is not None and not -MOST_JOBS <= n_jobs <= MOST_JOBS:
        raise ModelFileError(f"{name} has n_jobs={str(n_jobs)[:20]}, which is more than {MOST_JOBS}.")
    if any(attribute.endswith("_") for attribute in vars(estimator)) and name not in _WITHOUT_ROWS:  # it is fitted
        _refuse_unless(hasattr(estimator, "n_features_in_"), estimator, "no number of features")
    shapes = dict(_SHAPES)
    shapes |= _PAIRS.get(name, _LIBSVM if name == "SVC" else _LINEAR | _KERNEL)
    sizes = _sizes(estimator)
    for attribute, shape in shapes.items():
        if attribute in vars(estimator) and not _fits(vars(estimator)[attribute], shape, sizes):
            raise ModelFileError(f"{name} has a {attribute} that is not of the type or shape that it must have.")
    for attribute, good in _KINDS.items():
        if attribute in vars(estimator) and not good(vars(estimator)[attribute]):
            raise ModelFileError(f"{name} has a {attribute} that is not what it must be.")
    fitted, check = _FURTHER.get(name, ("", None))
    if check is not None and hasattr(estimator, fitted):
        check(estimator)


# What is fitted on labels, scores or text, or on nothing, has no number of features.
_WITHOUT_ROWS = frozenset(
    [
        "LabelEncoder",
        "LabelBinarizer",
        "CountVectorizer",
        "TfidfVectorizer",
        "HashingVectorizer",
        "Pipeline",
        "FeatureUnion",
        "_SigmoidCalibration",
        "_TemperatureScaling",
        "IsotonicRegression",
        "_ConstantPredictor",
        "FrozenEstimator",
        "KNeighborsClassifier",
        "RandomForestClassifier",
        "ExtraTreesClassifier",
        "SVC",
    ]
)
_PAIRS = dict.fromkeys(("ULDMClassifier", "LDMClassifier", "LSSVC"), _OVO | {"dual_coef_": "*m", "support_": "m"})


def _sizes(estimator: Estimator) -> dict[str, int]:
    """Length of each letter of `_SHAPES`, where it is known."""
    found: dict[str, int] = {}
    if hasattr(estimator, "n_features_in_"):
        found["d"] = int(estimator.n_features_in_)
    if (classes := getattr(estimator, "classes_", None)) is not None:
        found["k"] = k = len(classes)
        found["r"] = 1 if k == 2 else k
        found["p"] = k * (k - 1) // 2
    rows = getattr(estimator, "support_vectors_", getattr(estimator, "_fitted_rows", None))
    if rows is not None:
        found["m"] = rows.shape[0]
    return found


def _fits(value: Any, shape: str, sizes: dict[str, int]) -> bool:
    for one in shape.split("|"):
        if one == "-" and value is None:
            return True
        if one in "0?" and np.ndim(value) == 0 and isinstance(value, int | float | np.number | np.ndarray):
            return np.asarray(value).dtype.kind in NUMBERS and (one == "?" or bool(np.isfinite(value)))
        real = isinstance(value, np.ndarray) or (one == "rd" and sparse.issparse(value))  # class vectors may be sparse
        if one in "-0?" or not real or value.ndim != len(one):
            continue
        same = all(sizes.get(letter, n) == n for letter, n in zip(one, value.shape, strict=True))
        if same and value.dtype.kind in NUMBERS:
            return True
    return False


def _check_sizes(estimator: Estimator) -> None:
    """The sizes that all classifiers share must agree with one another."""
    d, classes = getattr(estimator, "n_features_in_", None), getattr(estimator, "classes_", None)
    name = type(estimator).__name__
    if d is not None and (not isinstance(d, int | np.integer) or isinstance(d, bool) or not 0 <= d < 1 << 62):
        raise ModelFileError(f"{name} has n_features_in_={' '.join(str(d).split())[:40]}.")
    least = 1 if name in ("DummyClassifier", "LabelEncoder", "LabelBinarizer", "DecisionTreeClassifier") else 2
    least = 1 if name in ("RandomForestClassifier", "ExtraTreesClassifier", "KNeighborsClassifier") else least
    if classes is not None and (not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < least):
        raise ModelFileError(f"{name} has no list of at least {['one class', 'two classes'][least - 1]}.")
    coef = getattr(estimator, "coef_", None)
    if isinstance(coef, np.ndarray) and d is not None and (coef.ndim != 2 or coef.shape[1] != d):
        raise ModelFileError(f"{name} has coefficients of shape {coef.shape} for {d} features.")


# -- attributes that are not arrays of numbers ------------------------------------------------------------------------


def _is_rows(value: Any) -> bool:
    real = sparse.issparse(value) or isinstance(value, np.ndarray)
    return value is None or (real and value.ndim == 2 and value.dtype.kind in "fiu")


def _is_labels(value: Any, also: type = str) -> bool:
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        return False
    return value.dtype.kind in "biufSU" or all(isinstance(label, str | int | float | bytes | also) for label in value)


def _is_estimators(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(part, BaseEstimator) for part in value)


def _is_names(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and all(isinstance(name, str) for name in value)


def _is_vocabulary(value: Any) -> bool:
    """Words numbered from 0, each number once."""
    if not isinstance(value, dict) or not all(type(word) is str for word in value):
        return False
    numbers = list(value.values())
    return all(isinstance(i, int | np.integer) for i in numbers) and sorted(numbers) == list(range(len(numbers)))


def _is_categories(value: Any) -> bool:
    return isinstance(value, list) and all(_is_labels(some, type(None)) for some in value)


def _is_transformers(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    good = (isinstance(part, tuple) and len(part) == 3 and isinstance(part[0], str) for part in value)
    return all(good) and all(isinstance(step, BaseEstimator | str) for _, step, _ in value)


def _is_pairs(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(p, tuple) and len(p) == 2 and all(isinstance(i, int) for i in p) for p in value)


def _is_outputs(value: Any) -> bool:
    good = {str(key) for key in value} if isinstance(value, dict) else {"?"}
    return good <= {"transform"} and all(v in ("default", "pandas", "polars") for v in value.values())


_KINDS: dict[str, Callable[[Any], bool]] = {
    "support_vectors_": _is_rows,
    "_fitted_rows": _is_rows,
    "_fit_X": _is_rows,
    "classes_": _is_labels,
    "estimators_": _is_estimators,
    "feature_names_in_": _is_names,
    "vocabulary_": _is_vocabulary,
    "categories_": _is_categories,
    "transformers_": _is_transformers,
    "pairs_": _is_pairs,
    "_sklearn_output_config": _is_outputs,
    "statistics_": lambda value: isinstance(value, np.ndarray) and value.ndim == 1,
    "_fit_dtype": lambda value: isinstance(value, np.dtype),
    "_fill_dtype": lambda value: isinstance(value, np.dtype),
    "label_binarizer_": lambda value: type(value).__name__ == "LabelBinarizer",
    "_strategy": lambda value: value in ("most_frequent", "prior", "stratified", "uniform", "constant"),
    "tree_": lambda value: type(value).__name__ == "Tree",
    "calibrated_classifiers_": lambda value: (
        isinstance(value, list) and all(type(part).__name__ == "_CalibratedClassifier" for part in value)
    ),
}


# -- classes that compiled code reads, or that hold others ------------------------------------------------------------


def _refuse_unless(good: Any, estimator: Estimator, what: str) -> None:
    if not good:
        raise ModelFileError(f"{type(estimator).__name__} has {what}.")


def _check_svc(svc: Any) -> None:
    m, k, coef = len(svc.support_), len(svc.classes_), svc._dual_coef_
    counts = svc._n_support
    _refuse_unless(counts.min() >= 0 and counts.sum() == m and counts.dtype == np.int32, svc, "wrong support counts")
    _refuse_unless(svc.support_.dtype == np.int32, svc, "support vectors that are not numbered")
    good = isinstance(svc._sparse, bool) and _is_rows(coef) and coef is not None and coef.shape == (k - 1, m)
    _refuse_unless(
        good and sparse.issparse(coef) == svc._sparse, svc, "coefficients that do not fit its support vectors"
    )
    numbers = coef.data if svc._sparse else coef
    _refuse_unless(numbers.size == (k - 1) * m, svc, "coefficients that do not fit its support vectors")
    for array in (numbers, svc._intercept_, svc._probA, svc._probB):
        _refuse_unless(array.dtype == np.float64 and array.flags.c_contiguous, svc, "numbers of a wrong type")
    _refuse_unless(len(svc._probA) in (0, k * (k - 1) // 2), svc, "probabilities that do not fit its classes")
    _refuse_unless(len(svc._probA) == len(svc._probB), svc, "probabilities that do not fit its classes")
    shape, rows = svc.shape_fit_, svc.support_vectors_
    _refuse_unless(isinstance(shape, tuple) and len(shape) == 2 and all(type(n) is int for n in shape), svc, "no shape")
    if svc.kernel == "precomputed":
        inside = m == 0 or (svc.support_.min() >= 0 and svc.support_.max() < shape[0])
        _refuse_unless(inside and shape[0] == svc.n_features_in_, svc, "support vectors that are not there")
        return
    good = rows is not None and rows.shape == (m, svc.n_features_in_) and rows.dtype == np.float64
    _refuse_unless(good and sparse.issparse(rows) == svc._sparse, svc, "wrong support vectors")


def _check_tree(model: Estimator) -> None:
    tree = model.tree_
    _refuse_unless(tree.n_features == model.n_features_in_, model, "a tree for other features")
    _refuse_unless(tree.n_classes[0] == len(model.classes_) == model.n_classes_, model, "a tree for other classes")
    _refuse_unless(model.n_outputs_ == 1, model, "several outputs, of which a model file holds one")


def _check_forest(model: Estimator) -> None:
    _refuse_unless(model.estimators_ and model.n_outputs_ == 1, model, "no trees, or several outputs")
    for part in model.estimators_:
        same = part.n_features_in_ == model.n_features_in_ and len(part.classes_) == len(model.classes_)
        _refuse_unless(hasattr(part, "tree_") and same, model, "trees that do not fit it")


def _check_boosting(model: Estimator) -> None:
    k, d = len(model.classes_), model.n_features_in_
    each = 1 if k == 2 else k
    rounds, bins = model._predictors, model._bin_mapper
    encoder = getattr(model, "_preprocessor", None)
    good = encoder is None or (type(encoder).__name__ == "ColumnTransformer" and hasattr(encoder, "transformers_"))
    _refuse_unless(good, model, "no encoder of its categories")
    _refuse_unless(model.n_trees_per_iteration_ == each and all(len(r) == each for r in rounds), model, "wrong rounds")
    _refuse_unless(model._baseline_prediction.shape == (1, each), model, "a wrong start")
    _refuse_unless(model._baseline_prediction.dtype == np.float64, model, "a wrong start")
    categorical = bins.is_categorical_
    good = isinstance(categorical, np.ndarray) and categorical.shape == (d,) and categorical.dtype.kind in "biu"
    _refuse_unless(
        good and isinstance(bins.bin_thresholds_, list) and len(bins.bin_thresholds_) == d, model, "wrong bins"
    )
    for f in np.flatnonzero(categorical):
        known = bins.bin_thresholds_[f]
        good = isinstance(known, np.ndarray) and known.dtype.kind in NUMBERS and known.ndim == 1
        _refuse_unless(good and (known >= 0).all() and (known < 256).all(), model, "categories beyond 255")
    for tree in (tree for one in rounds for tree in one):
        inner = tree.nodes["is_leaf"] == 0
        features = tree.nodes["feature_idx"][inner]
        _refuse_unless(((features >= 0) & (features < d)).all(), model, "a tree that asks for a feature it has not")
        asked = features[tree.nodes["is_categorical"][inner] != 0]
        _refuse_unless(categorical[asked].all(), model, "a tree that asks for categories it has not")


def _check_neighbors(model: Estimator) -> None:
    y = model._y
    good = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iu" and len(y) == model._fit_X.shape[0]
    _refuse_unless(good and (y >= 0).all() and (y < len(model.classes_)).all(), model, "labels that are not there")


def _check_fuzzy(model: Estimator) -> None:
    k = len(model.classes_)
    _refuse_unless(len(model.estimators_) == len(model.pairs_) == k * (k - 1) // 2, model, "not one machine a pair")


def _check_tfidf(model: Estimator) -> None:
    part: Any = getattr(model, "_tfidf", None)
    _refuse_unless(type(part).__name__ == "TfidfTransformer", model, "no weights of words")
    _refuse_unless(not part.use_idf or len(part.idf_) == len(model.vocabulary_), model, "not one weight a word")


def _check_pipeline(model: Estimator) -> None:
    parts = model.steps if hasattr(model, "steps") else model.transformer_list
    good = isinstance(parts, list) and all(isinstance(part, tuple) and len(part) == 2 for part in parts)
    _refuse_unless(good and parts, model, "no list of steps")
    for name, step in parts:
        real = step is None or isinstance(step, BaseEstimator) or step in ("passthrough", "drop")
        _refuse_unless(isinstance(name, str) and real, model, "a step that is no estimator")


# Class: the attribute that a fitted one has, and its check.
_FURTHER: dict[str, tuple[str, Callable[[Any], None]]] = {
    "Pipeline": ("steps", _check_pipeline),
    "FeatureUnion": ("transformer_list", _check_pipeline),
    "SVC": ("support_", _check_svc),
    "DecisionTreeClassifier": ("tree_", _check_tree),
    "ExtraTreeClassifier": ("tree_", _check_tree),
    "RandomForestClassifier": ("estimators_", _check_forest),
    "ExtraTreesClassifier": ("estimators_", _check_forest),
    "HistGradientBoostingClassifier": ("_predictors", _check_boosting),
    "KNeighborsClassifier": ("_fit_X", _check_neighbors),
    "FuzzyPairwiseClassifier": ("estimators_", _check_fuzzy),
    "TfidfVectorizer": ("vocabulary_", _check_tfidf),
}


# -- what is made again -----------------------------------------------------------------------------------------------


def rebuild(estimator: Estimator) -> None:
    """Make the parts that a file does not keep from those that it keeps."""
    name, state = type(estimator).__name__, estimator.__dict__
    if not type(estimator).__module__.startswith("sklearn."):
        return
    if name == "KNeighborsClassifier" and "_fit_X" in state:  # the tree of the rows is made by fit, always the same
        names = state.pop("feature_names_in_", None)
        estimator.fit(estimator._fit_X, estimator.classes_[estimator._y])
        if names is not None:
            estimator.feature_names_in_ = names
    elif name == "SimpleImputer" and "_fit_dtype" in state:
        state.setdefault("_fill_dtype", estimator._fit_dtype)  # scikit-learn before 1.8 had one type for both
    elif name == "IsotonicRegression" and "X_thresholds_" in state:
        estimator._build_f(estimator.X_thresholds_, estimator.y_thresholds_)
    elif name == "HistGradientBoostingClassifier" and "_predictors" in state:
        from sklearn.preprocessing import LabelEncoder

        estimator._loss = estimator._get_loss(sample_weight=None)
        estimator._label_encoder = LabelEncoder().fit(estimator.classes_)
    elif (name == "TfidfVectorizer" and "_tfidf" in state) or (name == "CountVectorizer" and "vocabulary_" in state):
        estimator._stop_words_id = id(estimator.stop_words)
