"""Scores of fitted machines as ONNX operations, in the number type that `decision_function` computes in.

Every function takes the name of the tensor of rows and gives that of the scores: one column a class, a single one for
two classes.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from onnx import TensorProto, helper
from scipy import sparse

from .._config import get_config
from .._types import Estimator
from ._graph import PROTO, Graph

KERNELS = ("rbf", "poly", "sigmoid", "laplacian")


class CannotConvert(ValueError):
    """A model has no ONNX graph; the message says why."""


def machine_scores(graph: Graph, model: Estimator, rows: str, dtype: np.dtype) -> tuple[str, np.dtype]:
    """Scores of an estimator of skmargin other than `FuzzyPairwiseClassifier`, and their number type."""
    kernel = getattr(model, "kernel", "linear")
    if not isinstance(kernel, str) or kernel == "precomputed":
        shown = "precomputed" if isinstance(kernel, str) else "a function"
        raise CannotConvert(f"{type(model).__name__} has kernel={shown}, of which ONNX knows nothing.")
    if hasattr(model, "multi_class"):  # its coefficients may cancel: double precision, as in predict
        double = np.dtype(np.float64)
        rows = rows if dtype == double else graph.cast(rows, double)
        return combined(graph, _pair_scores(graph, model, rows), len(model.classes_), model.multi_class), double
    if kernel == "linear":
        return linear(graph, model.coef_, model.intercept_, rows, dtype), dtype
    K = kernel_matrix(graph, rows, model.support_vectors_, kernel, model._gamma, model.degree, model.coef0, dtype)
    scores = graph.op("MatMul", K, graph.const(model.dual_coef_, dtype))
    return graph.op("Add", scores, graph.const(model.intercept_, dtype)), dtype


def linear(graph: Graph, coef: Any, intercept: Any, rows: str, dtype: DTypeLike) -> str:
    """``X W' + b``; ONNX has no product with sparse class vectors."""
    if sparse.issparse(coef):
        size, most = coef.shape[0] * coef.shape[1] * np.dtype(dtype).itemsize, get_config()["max_dense_bytes"]
        if size > most:
            raise CannotConvert(
                f"ONNX needs dense class vectors, which take {size} bytes, and max_dense_bytes={most}. Set a larger "
                "limit with skmargin.set_config, or keep the machine in a .skm file."
            )
        coef = coef.toarray()
    scores = graph.op("MatMul", rows, graph.const(np.ascontiguousarray(np.atleast_2d(coef).T), dtype))
    return graph.op("Add", scores, graph.const(np.atleast_1d(intercept), dtype))


def kernel_matrix(
    graph: Graph, rows: str, support: Any, kernel: str, gamma: float, degree: float, coef0: float, dtype: DTypeLike
) -> str:
    """Kernel of the rows with the support vectors."""
    Z = np.asarray(support.toarray() if sparse.issparse(support) else support, dtype=np.float64)
    if kernel == "laplacian":
        return graph.op("Exp", graph.op("Mul", _distances(graph, rows, Z, dtype), graph.const(-gamma, dtype)))
    if kernel == "rbf":
        return graph.op("Exp", graph.op("Mul", _squared_distances(graph, rows, Z, dtype), graph.const(-gamma, dtype)))
    products = graph.op("MatMul", rows, graph.const(np.ascontiguousarray(Z.T), dtype))
    if kernel == "linear":
        return products
    inner = graph.op("Add", graph.op("Mul", products, graph.const(gamma, dtype)), graph.const(coef0, dtype))
    if kernel == "sigmoid":
        return graph.op("Tanh", inner)
    return graph.op("Pow", inner, graph.const(degree, dtype))


def _squared_distances(graph: Graph, rows: str, Z: np.ndarray, dtype: DTypeLike) -> str:
    """From a centre, which changes no distance and saves the digits that a common offset would cost."""
    centre = Z.mean(axis=0).astype(dtype)
    Z = (Z - centre).astype(dtype)
    rows = graph.op("Sub", rows, graph.const(centre))
    norms = graph.op("Add", graph.sums(graph.op("Mul", rows, rows)), graph.const(np.einsum("ij,ij->i", Z, Z)))
    products = graph.op("MatMul", rows, graph.const(np.ascontiguousarray(-2 * Z.T)))
    return graph.op("Max", graph.op("Add", norms, products), graph.const(0, dtype))


def _distances(graph: Graph, rows: str, Z: np.ndarray, dtype: DTypeLike) -> str:
    """Sums of absolute differences, one row after the other: all at once would need their product in memory."""
    proto = PROTO[np.dtype(dtype)]
    nodes = [
        helper.make_node("Sub", ["support", "row"], ["difference"], name="SkmScanSub"),
        helper.make_node("Abs", ["difference"], ["size"], name="SkmScanAbs"),
        helper.make_node("ReduceSum", ["size", "axis"], ["distance"], name="SkmScanSum", keepdims=0),
        helper.make_node("Identity", ["support"], ["same"], name="SkmScanKeep"),
    ]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    m, d = Z.shape
    state = helper.make_tensor_value_info("support", proto, [m, d])
    inputs = [state, helper.make_tensor_value_info("row", proto, [d])]
    same = helper.make_tensor_value_info("same", proto, [m, d])
    body = helper.make_graph(
        nodes, "row", inputs, [same, helper.make_tensor_value_info("distance", proto, [m])], [axis]
    )
    kept = graph.scope.get_unique_variable_name("skm_support")
    return graph.op(
        "Scan", graph.const(Z, dtype), rows, before=(kept,), body=body, num_scan_inputs=1,
        scan_input_axes=[0], scan_output_axes=[0],
    )  # fmt: skip


# -- machines of two classes for many ---------------------------------------------------------------------------------


def _pair_scores(graph: Graph, model: Estimator, rows: str) -> str:
    """Scores of the two-class machines of ULDM, LDM and LSSVC."""
    double = np.float64
    if model.kernel == "linear":
        return linear(graph, model.coef_, model.intercept_, rows, double)
    k = len(model.classes_)
    K = kernel_matrix(graph, rows, model._fitted_rows, model.kernel, model.gamma_, model.degree, model.coef0, double)
    if hasattr(model, "n_support_") and k > 2 and model.multi_class != "ovr":
        scores = sums_by_class(graph, K, model.dual_coef_, model.n_support_, k, double)
    else:
        scores = graph.op("MatMul", K, graph.const(np.ascontiguousarray(model.dual_coef_.T), double))
    return graph.op("Add", scores, graph.const(model.intercept_, double))


def sums_by_class(graph: Graph, K: str, dual_coef: np.ndarray, n_support: np.ndarray, k: int, dtype: DTypeLike) -> str:
    """Sums over the two classes of each pair; class c has one row of coefficients for each other class."""
    ends = np.cumsum(n_support)
    parts = []
    for c in range(k):
        mine = np.arange(ends[c] - n_support[c], ends[c])
        coef = graph.const(np.ascontiguousarray(dual_coef[:, mine].T), dtype)
        parts.append(graph.op("MatMul", graph.columns(K, mine), coef))
    everything = graph.op("Concat", *parts, axis=1)  # k - 1 columns a class: the others in order
    pairs = list(combinations(range(k), 2))
    of_first = graph.columns(everything, [i * (k - 1) + j - 1 for i, j in pairs])
    of_second = graph.columns(everything, [j * (k - 1) + i for i, j in pairs])
    return graph.op("Add", of_first, of_second)


def combined(graph: Graph, F: str, k: int, method: str, dtype: DTypeLike = np.float64) -> str:
    """Scores of the classes from those of the two-class machines."""
    if k == 2 or method == "ovr":
        return F
    pairs = list(combinations(range(k), 2))
    if method == "ovo":
        return votes_and_scores(graph, F, k, dtype)[1]
    # Of each class the worst duel, at most 1; the machine of i < j is positive for j.
    mine = [[p + len(pairs) * (c == i) for p, (i, j) in enumerate(pairs) if c in (i, j)] for c in range(k)]
    both = graph.op("Concat", F, graph.op("Neg", F), axis=1)
    worst = graph.op("ReduceMin", graph.columns(both, mine), graph.const([2], np.int64), keepdims=0)
    return graph.op("Min", worst, graph.const(1, dtype))


def votes_and_scores(graph: Graph, F: str, k: int, dtype: DTypeLike) -> tuple[str, str]:
    """Votes, and scikit-learn's ``_ovr_decision_function``: votes and less than half a one for the sum of scores."""
    pairs = list(combinations(range(k), 2))
    signs, wins, base = np.zeros((len(pairs), k)), np.zeros((len(pairs), k)), np.zeros(k)
    for p, (i, j) in enumerate(pairs):
        signs[p, i], signs[p, j] = -1, 1
        wins[p, i], wins[p, j] = -1, 1  # relative to a world where every pair goes to its first class
        base[i] += 1
    won = graph.cast(graph.op("Greater", F, graph.const(0, dtype)), dtype)
    votes = graph.op("Add", graph.op("MatMul", won, graph.const(wins, dtype)), graph.const(base, dtype))
    sums = graph.op("MatMul", F, graph.const(signs, dtype))
    size = graph.op("Mul", graph.op("Add", graph.op("Abs", sums), graph.const(1, dtype)), graph.const(3, dtype))
    return votes, graph.op("Add", votes, graph.op("Div", sums, size))
