"""A small way of writing ONNX graphs: operations take and give the names of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from onnx import TensorProto, helper

PROTO = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.bool_): TensorProto.BOOL,
}
VERSIONS = {"ai.onnx.ml": 2, "com.microsoft": 1}  # of their operators that are used here


class Graph:
    """Adds nodes to the graph that skl2onnx is building."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def op(
        self,
        kind: str,
        *inputs: str,
        output: str | None = None,
        before: tuple[str, ...] = (),
        domain: str = "",
        version: int | None = None,
        **also: Any,
    ) -> str:
        """Add an operation; returns the name of its last result, ``before`` which others may stand."""
        result = output or self.scope.get_unique_variable_name(f"skm_{kind.lower()}")
        name = self.scope.get_unique_operator_name(f"Skm{kind}")
        if domain:
            also["op_version"] = version or VERSIONS[domain]
        self.container.add_node(kind, list(inputs), [*before, result], name=name, op_domain=domain, **also)
        return str(result)

    def const(self, value: Any, dtype: DTypeLike | None = None) -> str:
        """Add a constant array: numbers, truth values or strings."""
        array = np.asarray(value, dtype=dtype)
        name = self.scope.get_unique_variable_name("skm_const")
        if array.dtype.kind in "UO":
            strings = [str(text).encode("utf-8") for text in array.ravel()]
            self.container.add_initializer(name, TensorProto.STRING, list(array.shape), strings)
        else:
            proto = PROTO[array.dtype]
            tensor = helper.make_tensor(name, proto, array.shape, array.tobytes(), raw=True)
            self.container.add_initializer(name, proto, list(array.shape), tensor)
        return str(name)

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """Numbers of another type."""
        return self.op("Cast", value, to=PROTO[np.dtype(dtype)])

    @staticmethod
    def proto(dtype: DTypeLike) -> int:
        """ONNX's number of a number type."""
        return int(PROTO[np.dtype(dtype)])

    def const_like_zero(self, value: str, dtype: DTypeLike) -> str:
        """Zeros of the shape of a tensor."""
        return self.op("Mul", value, self.const(0, dtype))

    def columns(self, value: str, numbers: Any) -> str:
        """Some columns of a matrix."""
        return self.op("Gather", value, self.const(numbers, np.int64), axis=1)

    def sums(self, value: str) -> str:
        """Sum of each row, as a column."""
        return self.op("ReduceSum", value, self.const([1], np.int64), keepdims=1)
