"""Parts of scikit-learn's models that are not estimators: trees, bins, calibrators, folds, ways to choose columns.

Trees are read by compiled code that believes what they say, so everything that it follows is checked here: children
come after their parents (hence no cycles) and exist, features exist, bit sets exist.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils import check_array

from ._archive import ModelFileError

# Name in files: module, parameters of the constructor, further attributes.
_PLAIN: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "_CalibratedClassifier": ("sklearn.calibration", ("estimator", "calibrators", "classes", "method"), ()),
    "StratifiedKFold": ("sklearn.model_selection", ("n_splits", "shuffle", "random_state"), ()),
    "KFold": ("sklearn.model_selection", ("n_splits", "shuffle", "random_state"), ()),
    "make_column_selector": ("sklearn.compose", ("pattern", "dtype_include", "dtype_exclude"), ()),
    "_BinMapper": (
        "sklearn.ensemble._hist_gradient_boosting.binning",
        ("n_bins", "subsample", "is_categorical", "known_categories", "n_threads"),
        ("is_categorical_", "missing_values_bin_idx_", "bin_thresholds_", "n_bins_non_missing_"),
    ),
}
_TREE_INTS = ("left_child", "right_child", "feature", "n_node_samples", "missing_go_to_left")
_TREE_FLOATS = ("threshold", "impurity", "weighted_n_node_samples")
_BOOST_INTS = (
    "count",
    "feature_idx",
    "missing_go_to_left",
    "left",
    "right",
    "depth",
    "is_leaf",
    "bin_threshold",
    "is_categorical",
    "bitset_idx",
)
_BOOST_FLOATS = ("value", "num_threshold", "gain")


def number_check() -> Any:
    """The only function that a file can mean: gradient boosting passes its columns of numbers through it."""
    return partial(check_array, dtype=[np.float64], ensure_all_finite=False)


def is_number_check(value: Any) -> bool:
    """Whether a value is `number_check`."""
    same = isinstance(value, partial) and value.func is check_array and not value.args
    return same and value.keywords == number_check().keywords


def plain_name(cls: type) -> str | None:
    """The name of a class of `_PLAIN`, None for others."""
    known = _PLAIN.get(cls.__name__)
    return cls.__name__ if known is not None and _plain_class(cls.__name__) is cls else None


def plain_parts(value: Any) -> dict[str, Any]:
    """Parameters and attributes of an object of `_PLAIN`."""
    _, params, attributes = _PLAIN[type(value).__name__]
    return {name: getattr(value, name) for name in (*params, *attributes)}


def make_plain(name: Any, parts: dict[str, Any]) -> Any:
    """The object again."""
    if name == "check_array":
        return number_check()
    if not isinstance(name, str) or name not in _PLAIN:
        raise ModelFileError(f"it holds an unknown object, {str(name)[:40]!r}.")
    _, params, attributes = _PLAIN[name]
    if set(parts) != {*params, *attributes}:
        raise ModelFileError(f"its {name} has not the parts that one has.")
    made = _plain_class(name)(**{key: parts[key] for key in params})
    for key in attributes:
        setattr(made, key, parts[key])
    return made


def _plain_class(name: str) -> Any:
    return getattr(import_module(_PLAIN[name][0]), name)


def _table(nodes: np.ndarray, names: tuple[str, ...], dtype: Any) -> np.ndarray:
    """Some fields of the records as columns; those that this scikit-learn does not have are 0."""
    have = nodes.dtype.names or ()
    columns = [nodes[name] if name in have else np.zeros(len(nodes)) for name in names]
    return np.column_stack(columns).astype(dtype) if len(nodes) else np.zeros((0, len(names)), dtype)


def _records(ints: np.ndarray, floats: np.ndarray, names: tuple[tuple[str, ...], tuple[str, ...]], dtype: Any) -> Any:
    nodes = np.zeros(len(ints), dtype)
    for table, columns in zip((ints, floats), names, strict=True):
        for i, name in enumerate(columns):
            if name in nodes.dtype.names:
                info = np.iinfo(nodes.dtype[name]) if nodes.dtype[name].kind in "iu" else None
                if (
                    info is not None
                    and len(table)
                    and not info.min <= table[:, i].min() <= table[:, i].max() <= info.max
                ):
                    raise ModelFileError(f"a tree has a {name} that is out of bounds.")
                nodes[name] = table[:, i]
    return nodes


def _check_tables(ints: Any, floats: Any, n_ints: int, n_floats: int) -> None:
    for table, width, kind in ((ints, n_ints, np.int64), (floats, n_floats, np.float64)):
        if table.shape != (len(ints), width) or table.dtype != kind:
            raise ModelFileError("the nodes of a tree are not a table of the right shape.")


def _check_children(left: np.ndarray, right: np.ndarray, inner: np.ndarray) -> None:
    at = np.flatnonzero(inner)
    for child in (left[at], right[at]):
        if (child <= at).any() or (child >= len(left)).any():
            raise ModelFileError("a node of a tree has a child that is not there.")


def tree_parts(tree: Any) -> dict[str, Any]:
    """A decision tree as arrays."""
    state = tree.__getstate__()
    return {
        "ints": _table(state["nodes"], _TREE_INTS, np.int64),
        "floats": _table(state["nodes"], _TREE_FLOATS, np.float64),
        "values": state["values"],
        "n_features": int(tree.n_features),
        "n_classes": np.asarray(tree.n_classes),
        "max_depth": int(state["max_depth"]),
    }


def make_tree(parts: dict[str, Any]) -> Any:
    """The decision tree again."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    ints, floats, values, classes = parts["ints"], parts["floats"], parts["values"], parts["n_classes"]
    n_features, max_depth = parts["n_features"], parts["max_depth"]
    _check_tables(ints, floats, len(_TREE_INTS), len(_TREE_FLOATS))
    n = len(ints)
    if classes.shape != (1,) or classes.dtype.kind not in "iu" or type(n_features) is not int or n < 1:
        raise ModelFileError("a tree has no nodes or no classes.")
    if values.shape != (n, 1, int(classes[0])) or values.dtype != np.float64 or type(max_depth) is not int:
        raise ModelFileError("the values of a tree do not fit its nodes.")
    inner = ints[:, 0] != -1  # scikit-learn's own mark of a leaf
    _check_children(ints[:, 0], ints[:, 1], inner)
    if ((ints[inner, 2] < 0) | (ints[inner, 2] >= n_features)).any():
        raise ModelFileError("a tree asks for a feature that is not there.")
    if not 0 <= max_depth <= n or n_features > 1 << 40:
        raise ModelFileError("a tree has an impossible depth or number of features.")
    tree = Tree(n_features, classes.astype(np.intp), 1)
    nodes = _records(ints, floats, (_TREE_INTS, _TREE_FLOATS), NODE_DTYPE)
    state = {"max_depth": max_depth, "node_count": n, "nodes": nodes, "values": np.ascontiguousarray(values)}
    tree.__setstate__(state)
    return tree


def boosting_parts(rounds: list[list[Any]]) -> dict[str, Any]:
    """The trees of gradient boosting, all in one table."""
    trees = [tree for one in rounds for tree in one]
    sets = [(t.binned_left_cat_bitsets, t.raw_left_cat_bitsets) for t in trees]
    empty = np.zeros((0, 8), np.uint32)
    return {
        "ints": np.vstack([_table(t.nodes, _BOOST_INTS, np.int64) for t in trees]),
        "floats": np.vstack([_table(t.nodes, _BOOST_FLOATS, np.float64) for t in trees]),
        "n_nodes": np.array([len(t.nodes) for t in trees], np.int64),
        "n_sets": np.array([len(binned) for binned, _ in sets], np.int64),
        "binned": np.vstack([empty, *(binned for binned, _ in sets)]),
        "raw": np.vstack([empty, *(raw for _, raw in sets)]),
        "n_rounds": len(rounds),
    }


def make_boosting(parts: dict[str, Any]) -> list[list[Any]]:
    """The trees of gradient boosting again."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    ints, floats, n_nodes, n_sets = (parts[name] for name in ("ints", "floats", "n_nodes", "n_sets"))
    binned, raw, n_rounds = parts["binned"], parts["raw"], parts["n_rounds"]
    _check_tables(ints, floats, len(_BOOST_INTS), len(_BOOST_FLOATS))
    for bits in (binned, raw):
        if bits.shape != (len(raw), 8) or bits.dtype != np.uint32:
            raise ModelFileError("the bit sets of gradient boosting have not the right shape.")
    for counts, total in ((n_nodes, len(ints)), (n_sets, len(raw))):
        if counts.ndim != 1 or counts.dtype != np.int64 or len(counts) != len(n_nodes) or counts.sum() != total:
            raise ModelFileError("the trees of gradient boosting do not fit their nodes.")
    if (
        (n_nodes < 1).any()
        or (n_sets < 0).any()
        or type(n_rounds) is not int
        or n_rounds < 1
        or len(n_nodes) % n_rounds
    ):
        raise ModelFileError("the trees of gradient boosting are not those of whole rounds.")
    trees = []
    ends, set_ends = np.cumsum(n_nodes), np.cumsum(n_sets)
    for t in range(len(n_nodes)):
        rows, sets = slice(ends[t] - n_nodes[t], ends[t]), slice(set_ends[t] - n_sets[t], set_ends[t])
        nodes = _records(ints[rows], floats[rows], (_BOOST_INTS, _BOOST_FLOATS), PREDICTOR_RECORD_DTYPE)
        _check_children(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), nodes["is_leaf"] == 0)
        if (nodes["bitset_idx"][(nodes["is_categorical"] != 0) & (nodes["is_leaf"] == 0)] >= n_sets[t]).any():
            raise ModelFileError("a tree asks for a set of categories that is not there.")
        trees.append(TreePredictor(nodes, np.ascontiguousarray(binned[sets]), np.ascontiguousarray(raw[sets])))
    each = len(trees) // n_rounds
    return [trees[i * each : (i + 1) * each] for i in range(n_rounds)]
