"""Forests and boosted trees of scikit-learn, with the thresholds that they compare with, in double precision.

skl2onnx rounds thresholds to single precision, and rows then fall on the other side of some.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from .._types import Estimator
from ._graph import PROTO, Graph
from ._scores import CannotConvert

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
TREES = (DecisionTreeClassifier, ExtraTreeClassifier)
PROBABLE = (*FORESTS, *TREES, HistGradientBoostingClassifier, DummyClassifier)


class Ensemble:
    """Nodes of all trees, in the lists that ONNX wants."""

    def __init__(self, n_targets: int) -> None:
        self.n_targets = n_targets
        self.nodes: dict[str, list[Any]] = {
            name: []
            for name in ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "tracks"]
        }
        self.targets: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def add(self, left: Any, right: Any, feature: Any, threshold: Any, missing: Any, leaf: Any, weights: Any) -> None:
        """A tree: arrays over its nodes, and of each leaf the weights (target, weight)."""
        number = self.nodes["treeids"][-1] + 1 if self.nodes["treeids"] else 0
        for i, ends in enumerate(leaf.tolist()):
            children = (0, 0) if ends else (int(left[i]), int(right[i]))
            row: list[Any] = [number, i, 0 if ends else int(feature[i]), "LEAF" if ends else "BRANCH_LEQ"]
            row += [0.0 if ends else float(threshold[i]), *children, 0 if ends else int(missing[i])]
            for name, value in zip(self.nodes, row, strict=True):
                self.nodes[name].append(value)
            for target, weight in weights(i) if ends else ():
                for name, value in zip(self.targets, (number, i, target, float(weight)), strict=True):
                    self.targets[name].append(value)

    def sums(self, graph: Graph, rows: str) -> str:
        """Sum of the weights of the leaves that a row reaches, one column a target."""
        nodes: dict[str, Any] = {
            f"nodes_{name}": value for name, value in self.nodes.items() if name not in ("values", "tracks")
        }
        nodes["nodes_missing_value_tracks_true"] = self.nodes["tracks"]
        nodes |= {f"target_{name}": value for name, value in self.targets.items() if name != "weights"}
        nodes["nodes_values_as_tensor"] = _tensor(self.nodes["values"])
        nodes["target_weights_as_tensor"] = _tensor(self.targets["weights"])
        found = graph.op(
            "TreeEnsembleRegressor", rows, domain="ai.onnx.ml", n_targets=self.n_targets, post_transform="NONE",
            aggregate_function="SUM", version=3, **nodes,
        )  # fmt: skip
        return graph.cast(found, np.float64)


def _tensor(values: list[float]) -> Any:
    array = np.asarray(values, dtype=np.float64)
    return helper.make_tensor("values", PROTO[array.dtype], array.shape, array.tobytes(), raw=True)


def class_probabilities(graph: Graph, model: Estimator, rows: str) -> str:
    """Probabilities of the classes, in double precision, from rows in double precision."""
    k = len(model.classes_)
    if isinstance(model, DummyClassifier):
        if model.strategy not in ("prior", "most_frequent"):
            raise CannotConvert(f"DummyClassifier(strategy={model.strategy!r}) has no ONNX graph.")
        prior = model.class_prior_ if model.strategy == "prior" else np.eye(k)[np.argmax(model.class_prior_)]
        nothing = graph.op("Mul", graph.columns(rows, [0]), graph.const(0.0))
        return graph.op(
            "Add", graph.op("Where", graph.op("IsNaN", nothing), graph.const(0.0), nothing), graph.const(prior)
        )
    if isinstance(model, HistGradientBoostingClassifier):
        return _boosted(graph, model, rows, k)
    trees = model.estimators_ if isinstance(model, FORESTS) else [model]
    ensemble = Ensemble(k)
    for one in trees:
        tree = one.tree_
        shares = tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True) / len(trees)
        missing = tree.missing_go_to_left if hasattr(tree, "missing_go_to_left") else np.zeros(tree.node_count)
        leaf = tree.children_left == -1
        ensemble.add(
            tree.children_left, tree.children_right, tree.feature, tree.threshold, missing, leaf,
            lambda i, shares=shares: [(c, share) for c, share in enumerate(shares[i]) if share],
        )  # fmt: skip
    single = graph.cast(graph.cast(rows, np.float32), np.float64)  # trees see rows in single precision
    return ensemble.sums(graph, single)


def _boosted(graph: Graph, model: Estimator, rows: str, k: int) -> str:
    if getattr(model, "_preprocessor", None) is not None:
        raise CannotConvert(
            "HistGradientBoostingClassifier with categories of its own has no ONNX graph; encode them before it."
        )
    ensemble = Ensemble(int(model.n_trees_per_iteration_))
    for one in model._predictors:
        for target, tree in enumerate(one):
            n = tree.nodes
            ensemble.add(
                n["left"], n["right"], n["feature_idx"], n["num_threshold"], n["missing_go_to_left"], n["is_leaf"] != 0,
                lambda i, n=n, target=target: [(target, n["value"][i])],
            )  # fmt: skip
    raw = graph.op("Add", ensemble.sums(graph, rows), graph.const(model._baseline_prediction))
    if k == 2:
        raw = graph.op("Concat", graph.op("Mul", raw, graph.const(0.0)), raw, axis=1)
    return graph.op("Softmax", raw, axis=1)
