"""Values as JSON, with arrays put aside, and back.  Everything that a file can make is listed in `Reader`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator

from .._types import Estimator
from . import _native as native
from ._archive import Arrays, ModelFileError
from ._checks import check_estimator, rebuild
from ._columns import class_of
from ._known import HOMES, Classes, is_listed, is_state

MAX_DEPTH = 40
MANY = 64  # strings from which on they are kept in arrays
TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool, "str": str, "object": object}
TYPES |= {"number": np.number, "integer": np.integer, "floating": np.floating}
UNUSED = ("deprecated", "warn")  # scikit-learn's values for parameters that nobody set
NATIVE = {"$tree": native.make_tree, "$boosting": native.make_boosting}


class Writer:
    """Turns values into JSON, putting arrays aside; refuses what a file must not hold."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self.arrays = Arrays()

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """The value as JSON; ``where`` names it in errors."""
        if depth > MAX_DEPTH:
            raise ModelFileError(f"{where} is nested too deeply for a model file.")
        if value is None or isinstance(value, bool | int | float | str | np.generic):
            return self._single(value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where, depth)
        if isinstance(value, sparse.csr_array | sparse.csr_matrix):
            parts = [self.arrays.add(part, where) for part in (value.data, value.indices, value.indptr)]
            return {"$csr": parts, "shape": list(value.shape), "matrix": isinstance(value, sparse.csr_matrix)}
        if isinstance(value, list | tuple):
            items = [self.encode(item, where, depth + 1) for item in value]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, dict):
            return self._dict(value, where, depth)
        if isinstance(value, slice):
            return {"$slice": [self.encode(part, where, depth + 1) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, np.dtype) and (value.hasobject or value.kind in "biufSUMm") and value.fields is None:
            return {"$dtype": "object" if value.hasobject else value.str}
        if isinstance(value, type) and (value.__name__ in TYPES or issubclass(value, np.number | np.bool_)):
            return {"$type": value.__name__}
        return self._object(value, where, depth)

    def _single(self, value: Any, where: str) -> Any:
        if isinstance(value, str):
            return str(value)
        if isinstance(value, np.generic):
            return {"$scalar": self.arrays.add(np.asarray(value), where)}
        if isinstance(value, float) and not math.isfinite(value):
            return {"$float": repr(value)}
        return value

    def _array(self, value: np.ndarray, where: str, depth: int) -> Any:
        if value.dtype.kind != "O":
            return {"$array": self.arrays.add(value, where)}
        items = value.ravel().tolist()
        if len(items) >= MANY and all(type(item) is str for item in items):
            return {"$words": self._words(items, where), "shape": list(value.shape)}
        return {"$objects": [self.encode(item, where, depth + 1) for item in items], "shape": list(value.shape)}

    def _words(self, items: list[str], where: str) -> list[int]:
        """Strings as one array of bytes and one of lengths."""
        pieces = [item.encode("utf-8", "surrogatepass") for item in items]
        together, lengths = np.frombuffer(b"".join(pieces), np.uint8), np.array([len(p) for p in pieces], np.int64)
        return [self.arrays.add(np.array(together), where), self.arrays.add(lengths, where)]

    def _dict(self, value: dict[Any, Any], where: str, depth: int) -> Any:
        if len(value) >= MANY and all(type(k) is str and type(v) is int for k, v in value.items()):
            numbers = np.array(list(value.values()), np.int64)
            return {"$index": self._words(list(value), where), "values": self.arrays.add(numbers, where)}
        return {"$dict": [[self.encode(part, where, depth + 1) for part in item] for item in value.items()]}

    def _object(self, value: Any, where: str, depth: int) -> Any:
        if self.classes.name(class_of(value)) is not None:
            return self.estimator(value, where, depth)
        if native.is_number_check(value):
            return {"$object": "check_array", "parts": {}}
        if (name := native.plain_name(type(value))) is not None:
            parts = native.plain_parts(value)
            return {"$object": name, "parts": {n: self.encode(v, f"{where}.{n}", depth + 1) for n, v in parts.items()}}
        if type(value).__name__ == "Tree" and type(value).__module__.startswith("sklearn.tree"):
            return {"$tree": self._parts(native.tree_parts(value), where)}
        hint = " skops.io.dump keeps such models."
        if hasattr(value, "best_estimator_"):
            hint = " Save its best_estimator_."
        elif isinstance(value, BaseEstimator):
            hint = " Name its class in extra_classes, here and in load_model, to allow it, or use skops.io.dump."
        raise ModelFileError(
            f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which a model file cannot hold: "
            f"it keeps numbers, text, arrays and known classes, never code.{hint}"
        )

    def _parts(self, parts: dict[str, Any], where: str) -> dict[str, Any]:
        return {name: self.encode(value, f"{where}.{name}") for name, value in parts.items()}

    def estimator(self, estimator: Estimator, where: str, depth: int = 0) -> dict[str, Any]:
        """An estimator of a known class."""
        cls = class_of(estimator)
        params = estimator.get_params(deep=False)
        state = {n: v for n, v in vars(estimator).items() if n not in params and is_state(cls, n)}
        both: list[dict[str, Any]] = [{}, {}]
        for part, found in zip((params, dict(sorted(state.items()))), both, strict=True):
            for name, value in part.items():
                if name == "_predictors":
                    found[name] = {"$boosting": self._parts(native.boosting_parts(value), f"{where}.{name}")}
                else:
                    found[name] = self.encode(value, f"{where}.{name}", depth + 1)
        return {"$estimator": self.classes.name(cls), "params": both[0], "attributes": both[1]}


class Reader:
    """Builds values from JSON."""

    def __init__(self, classes: Classes, arrays: list[np.ndarray]) -> None:
        self.classes = classes
        self.arrays = arrays
        self._leaves: dict[str | None, Callable[[dict[str, Any]], Any]] = {  # nodes that hold no others
            "$array": lambda node: self.array(node["$array"]),
            "$scalar": lambda node: self.array(node["$scalar"])[()],
            "$float": lambda node: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[node["$float"]],
            "$csr": self._csr,
            "$dtype": lambda node: np.dtype(object) if node["$dtype"] == "object" else _plain_dtype(node["$dtype"]),
            "$index": self._index,
            "$type": _plain_type,
        }

    def array(self, index: Any) -> np.ndarray:
        """One of the arrays of the file."""
        if type(index) is not int or not 0 <= index < len(self.arrays):
            raise ModelFileError("it refers to an array that is not there.")
        return self.arrays[index]

    def decode(self, node: Any, depth: int = 0) -> Any:
        """The value that the JSON stands for."""
        if depth > MAX_DEPTH:
            raise ModelFileError("it is nested too deeply.")
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return [self.decode(item, depth + 1) for item in node]
        tag = next(iter(node), None)
        if tag == "$estimator":
            return self.estimator(node, depth + 1)
        if tag in self._leaves:
            return self._leaves[tag](node)
        if tag == "$tuple":
            return tuple(self.decode(item, depth + 1) for item in node[tag])
        if tag == "$dict":
            return {self.decode(key, depth + 1): self.decode(value, depth + 1) for key, value in node[tag]}
        if tag == "$slice":
            return slice(*(self.decode(part, depth + 1) for part in node[tag]))
        if tag in ("$objects", "$words"):
            return self._objects(node, tag, depth)
        if tag == "$object":
            parts = {name: self.decode(part, depth + 1) for name, part in node["parts"].items()}
            return native.make_plain(node[tag], parts)
        if tag in NATIVE:
            return NATIVE[tag]({name: self.decode(part, depth + 1) for name, part in node[tag].items()})
        raise ModelFileError(f"it holds an unknown kind of value, {str(tag)[:40]!r}.")

    def _words(self, node: Any) -> list[str]:
        together, lengths = (self.array(part) for part in node)
        if together.dtype != np.uint8 or lengths.dtype != np.int64 or together.ndim != 1 or lengths.ndim != 1:
            raise ModelFileError("its strings are not bytes and lengths.")
        if (lengths < 0).any() or lengths.sum() != len(together):
            raise ModelFileError("the lengths of its strings do not fit their bytes.")
        text, ends = together.tobytes(), np.cumsum(lengths)
        bounds = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        return [text[start:end].decode("utf-8", "surrogatepass") for start, end in bounds]

    def _index(self, node: dict[str, Any]) -> dict[str, int]:
        return dict(zip(self._words(node["$index"]), self.array(node["values"]).tolist(), strict=True))

    def _objects(self, node: dict[str, Any], tag: str, depth: int) -> np.ndarray:
        found = node[tag]
        items = self._words(found) if tag == "$words" else [self.decode(item, depth + 1) for item in found]
        shape = tuple(node["shape"])
        if any(type(n) is not int or n < 0 for n in shape) or math.prod(shape) != len(items):
            raise ModelFileError("a list of objects does not fit its shape.")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = item
        return array.reshape(shape)

    def _csr(self, node: dict[str, Any]) -> Any:
        data, indices, indptr = (self.array(part) for part in node["$csr"])
        kind = sparse.csr_matrix if node["matrix"] is True else sparse.csr_array
        matrix = kind((data, indices, indptr), shape=tuple(node["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def estimator(self, node: Any, depth: int = 0) -> Any:
        """An estimator of a known class."""
        if not isinstance(node, dict) or set(node) != {"$estimator", "params", "attributes"}:
            raise ModelFileError("it holds no estimator where one must be.")
        name = node["$estimator"]
        cls: Any = self.classes.get(name) if isinstance(name, str) else None
        if cls is None and isinstance(name, str) and name in HOMES:
            raise ModelFileError(f"it holds a {name}, which scikit-learn {sklearn.__version__} does not have.")
        if cls is None:
            raise ModelFileError(
                f"it holds a {str(name)[:80]!r}, which is not one of the classes that may be loaded; "
                "allow those of your own by extra_classes."
            )
        known = set(cls._get_param_names())
        params = {key: self.decode(value, depth + 1) for key, value in node["params"].items()}
        if cls.__module__.startswith("sklearn."):  # its parameters come and go: unused ones need not be there
            params = {k: v for k, v in params.items() if not (isinstance(v, str) and v in UNUSED)}
            params = {k: v for k, v in params.items() if k in known or not (v is None or v is False)}
        if not set(params) <= known:
            raise ModelFileError(f"{name} has no parameter {sorted(set(params) - known)[0][:80]!r}.")
        estimator = cls(**params)
        for key, value in node["attributes"].items():
            if isinstance(getattr(cls, key, None), property) and is_listed(cls, key):
                continue  # this version of scikit-learn computes it
            if not key.isidentifier() or key in known or not is_state(cls, key) or hasattr(cls, key):
                raise ModelFileError(f"{name} cannot have an attribute {key[:80]!r} in a model file.")
            setattr(estimator, key, self.decode(value, depth + 1))
        check_estimator(estimator, name not in self.classes.extra)
        rebuild(estimator)
        return estimator


def _plain_type(node: dict[str, Any]) -> Any:
    name = node["$type"]
    return TYPES[name] if name in TYPES else _plain_dtype(name).type


def _plain_dtype(name: Any) -> np.dtype:
    dtype = np.dtype(name) if isinstance(name, str) and len(name) < 30 else None
    if dtype is None or dtype.kind not in "biufSUMm" or dtype.fields is not None or dtype.itemsize > 1 << 20:
        raise ModelFileError(f"it holds an unknown type, {str(name)[:40]!r}.")
    return dtype
