"""Model files (``.skm``): fitted estimators as arrays and JSON.  Loading one never runs code from the file.

The file is a zip archive of members that are stored, not compressed, so that it is never larger in memory than on disk:

- ``arrays/0.npy``, ``arrays/1.npy``, ...: NumPy arrays without pickle;
- ``model.json``: format and versions, SHA-256, type and shape of every array, and the estimator as a tree: its class
  (looked up in a fixed list, never imported by name), parameters, and fitted attributes.

The archive comment holds the SHA-256 of ``model.json``.  The hashes find damage, not malice; against malice stands that
nothing in the file can name code.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import os
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.lib import format as npy
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ._files import atomic_write

FORMAT, VERSION = "skmargin-model", 1
ARRAY_KINDS = "biufcSUMm"
MAX_JSON = 1 << 26
MAX_DEPTH = 40
_SKLEARN = (Pipeline, StandardScaler, MinMaxScaler, MaxAbsScaler)
# All that zipfile, json and the code below raise on files that are damaged or made to confuse.
_BROKEN: tuple[type[Exception], ...] = (zipfile.BadZipFile, EOFError, OSError, ValueError, TypeError, LookupError)
_BROKEN += (AttributeError, RuntimeError, ArithmeticError, MemoryError, SyntaxError)


class ModelFileError(ValueError):
    """A model cannot be written to, or read from, a file; the message says why."""


def model_classes(extra_classes: Iterable[type] = ()) -> dict[str, type]:
    """The classes that a model file may hold, by the names that it uses for them.

    Parameters
    ----------
    extra_classes : iterable of type
        Estimator classes to allow besides those of skmargin, `Pipeline` and the scalers of scikit-learn.

    Returns
    -------
    classes : dict of str to type
    """
    import skmargin

    public = (getattr(skmargin, name) for name in getattr(skmargin, "__all__", ()))
    own = [c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)]
    return {f"{c.__module__.partition('.')[0]}.{c.__name__}": c for c in (*_SKLEARN, *own, *extra_classes)}


def save_model(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    metadata: dict[str, Any] | None = None,
    extra_classes: Iterable[type] = (),
) -> None:
    """Write a fitted estimator to a model file, whole or not at all.

    Parameters
    ----------
    estimator : fitted estimator
        An estimator of skmargin, or a pipeline of scikit-learn scalers and one.
    path : path
        The file, by custom ``*.skm``; an old one is replaced.
    metadata : dict, default=None
        Anything JSON can hold, to keep with the model.
    extra_classes : iterable of type
        Estimator classes of your own; give them to `load_model` as well.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skmargin.model_files import load_model, save_model
    >>> X, _ = load_iris(return_X_y=True)
    >>> scaler = StandardScaler().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scaler.skm")
    ...     save_model(scaler, path)
    ...     again = load_model(path)
    >>> bool((again.transform(X) == scaler.transform(X)).all())
    True
    """
    import skmargin

    check_is_fitted(estimator)
    classes = model_classes(extra_classes)
    writer = _Writer({c: name for name, c in classes.items()})
    tree = writer.encode(estimator, type(estimator).__name__, 0)
    _check_usable(estimator, tree, writer, classes)
    inner = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    names = getattr(estimator, "feature_names_in_", None)
    document = {
        "format": FORMAT,
        "format_version": VERSION,
        "library_version": skmargin.__version__,
        "sklearn_version": sklearn.__version__,
        "numpy_version": np.__version__,
        "estimator": tree,
        "feature_names": None if names is None else [str(name) for name in names],
        "classes": [str(label) for label in getattr(inner, "classes_", ())],
        "metadata": metadata or {},
        "arrays": writer.entries,
    }
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"metadata must be JSON: {error}.") from None
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in [("model.json", text), *writer.members]:
            archive.writestr(zipfile.ZipInfo(name), content)  # a fixed date: the same model gives the same bytes
        archive.comment = _seal(text)


def load_model(path: str | os.PathLike[str], *, extra_classes: Iterable[type] = ()) -> Any:
    """Read an estimator from a model file; it predicts the same bits as the one that was saved.

    Parameters
    ----------
    path : path
        The file.
    extra_classes : iterable of type
        Estimator classes of your own that the file may hold.

    Returns
    -------
    estimator : fitted estimator

    Raises
    ------
    ModelFileError
        If the file is damaged, of a later format, or holds something that is not allowed.
    """
    document, contents = _read(path)
    try:
        arrays = [_read_array(entry, contents[entry["name"]]) for entry in document["arrays"]]
        estimator = _Reader(model_classes(extra_classes), arrays).estimator(document["estimator"], 0)
        _check_scores(estimator, sum(array.size for array in arrays))
        return estimator
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except _BROKEN as error:
        raise ModelFileError(f"{path}: the model file is damaged ({type(error).__name__}: {error}).") from None


def describe_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about itself, without building the model.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    description : dict
        ``format_version``, ``library_version``, ``sklearn_version``, ``numpy_version``, ``estimator`` (its class),
        ``feature_names``, ``classes`` (as text) and ``metadata``.
    """
    document = _read(path)[0]
    try:
        kept = ("format_version", "library_version", "sklearn_version", "numpy_version", "feature_names", "classes")
        found = {name: document[name] for name in (*kept, "metadata")}
        return {**found, "estimator": document["estimator"]["$estimator"]}
    except _BROKEN as error:
        raise ModelFileError(f"{path}: the model file is damaged ({type(error).__name__}: {error}).") from None


def _seal(text: bytes) -> bytes:
    return f"{FORMAT} {VERSION} sha256:{hashlib.sha256(text).hexdigest()}".encode()


class _Writer:
    """Turns values into JSON, putting arrays aside; refuses what a file must not hold."""

    def __init__(self, names: dict[type, str]) -> None:
        self.names = names
        self.members: list[tuple[str, bytes]] = []
        self.entries: list[dict[str, Any]] = []

    def encode(self, value: Any, where: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ModelFileError(f"{where} is nested too deeply for a model file.")
        if value is None or isinstance(value, bool | str):
            return str(value) if isinstance(value, str) else value
        if isinstance(value, np.generic):
            return {"$scalar": self.array(np.asarray(value), where)}
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O":
                items = [self.encode(item, where, depth + 1) for item in value.ravel().tolist()]
                return {"$objects": items, "shape": list(value.shape)}
            return {"$array": self.array(value, where)}
        if isinstance(value, sparse.csr_array | sparse.csr_matrix):
            parts = [self.array(part, where) for part in (value.data, value.indices, value.indptr)]
            return {"$csr": parts, "shape": list(value.shape), "matrix": isinstance(value, sparse.csr_matrix)}
        if isinstance(value, list | tuple):
            items = [self.encode(item, where, depth + 1) for item in value]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, dict):
            return {"$dict": [[self.encode(part, where, depth + 1) for part in item] for item in value.items()]}
        if type(value) in self.names:
            return self.estimator(value, where, depth)
        hint = ""
        if hasattr(value, "best_estimator_"):
            hint = " Save its best_estimator_."
        elif isinstance(value, BaseEstimator):
            hint = " Name its class in extra_classes, here and in load_model, to allow it."
        raise ModelFileError(
            f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which a model file cannot hold: "
            f"it keeps numbers, text, arrays and classifiers of skmargin, never code.{hint}"
        )

    def estimator(self, estimator: Any, where: str, depth: int) -> dict[str, Any]:
        params = estimator.get_params(deep=False)
        state = {n: v for n, v in vars(estimator).items() if n not in params and _is_state(type(estimator), n)}
        both = [
            {n: self.encode(v, f"{where}.{n}", depth + 1) for n, v in part.items()}
            for part in (params, dict(sorted(state.items())))
        ]
        return {"$estimator": self.names[type(estimator)], "params": both[0], "attributes": both[1]}

    def array(self, array: np.ndarray, where: str) -> int:
        if array.dtype.kind not in ARRAY_KINDS or array.dtype.hasobject or type(array) is not np.ndarray:
            raise ModelFileError(f"{where} is an array of {array.dtype}, which a model file cannot hold.")
        buffer = io.BytesIO()
        npy.write_array(buffer, array, allow_pickle=False)
        content, name = buffer.getvalue(), f"arrays/{len(self.entries)}.npy"
        digest = hashlib.sha256(content).hexdigest()
        self.members.append((name, content))
        self.entries.append({"name": name, "sha256": digest, "dtype": array.dtype.str, "shape": list(array.shape)})
        return len(self.entries) - 1


def _is_state(cls: type, name: str) -> bool:
    """Whether an attribute belongs to the model: public ones do, private ones only if the class lists them."""
    return not name.startswith("_") or name in getattr(cls, "_model_state", ())


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Check the archive and return the document and the contents of the arrays."""
    try:
        size = Path(path).stat().st_size
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            names = [member.filename for member in members]
            if len(set(names)) < len(names) or "model.json" not in names:
                raise ModelFileError("it is not a skmargin model file.")
            if any(m.compress_type != zipfile.ZIP_STORED or m.compress_size != m.file_size for m in members):
                raise ModelFileError("it holds compressed members, which model files never do.")
            if sum(member.file_size for member in members) > size or archive.getinfo("model.json").file_size > MAX_JSON:
                raise ModelFileError("its members are larger than a model file can be.")
            text = archive.read("model.json")
            comment = archive.comment
            document = json.loads(text)
            _check_header(document, names, comment, text)
            return document, {name: archive.read(name) for name in names if name != "model.json"}
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise ModelFileError(f"{path}: {error.strerror}.") from None
    except zipfile.BadZipFile as error:
        raise ModelFileError(f"{path}: it is not a skmargin model file, or it is damaged ({error}).") from None
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except _BROKEN as error:
        raise ModelFileError(f"{path}: the model file is damaged ({type(error).__name__}: {error}).") from None


def _check_header(document: Any, names: list[str], comment: bytes, text: bytes) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError("it is not a skmargin model file.")
    version = document.get("format_version")
    if version != VERSION or isinstance(version, bool):
        raise ModelFileError(
            f"it has the format version {str(version)[:20]} "
            f"(written by skmargin {str(document.get('library_version'))[:20]}); this skmargin reads {VERSION}. "
            "Use the skmargin that wrote it, or save the model again."
        )
    if comment != _seal(text):
        raise ModelFileError("the checksum of model.json is wrong: the file is damaged.")
    if [entry["name"] for entry in document["arrays"]] != [name for name in names if name != "model.json"]:
        raise ModelFileError("its arrays are not those that model.json lists.")


def _read_array(entry: dict[str, Any], content: bytes) -> np.ndarray:
    """Array from the bytes of an ``.npy`` file, after all its sizes were checked."""
    name = entry["name"]
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise ModelFileError(f"the checksum of {name} is wrong: the file is damaged.")
    # The header is read here, not by NumPy, which forgives and repairs headers that Python 2 wrote.
    wide = content[6:8] == b"\x02\x00"
    start = 12 if wide else 10
    end = start + int.from_bytes(content[8:start], "little")
    if content[:6] != npy.MAGIC_PREFIX or content[6:8] not in (b"\x01\x00", b"\x02\x00") or end - start > 10_000:
        raise ModelFileError(f"{name} is not an array.")
    header = ast.literal_eval(content[start:end].decode("latin1").strip())
    shape, fortran, dtype = header["shape"], header["fortran_order"], np.dtype(header["descr"])
    if dtype.hasobject or dtype.kind not in ARRAY_KINDS or dtype.str != entry["dtype"] or list(shape) != entry["shape"]:
        raise ModelFileError(f"{name} is not the array that model.json describes.")
    body = content[end:]
    if any(n < 0 for n in shape) or dtype.itemsize * math.prod(shape) != len(body):
        raise ModelFileError(f"{name} has {len(body)} bytes, which do not fit its shape {shape}.")
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype=dtype)
    return np.frombuffer(body, dtype=dtype).reshape(shape, order="F" if fortran else "C").copy(order="K")


class _Reader:
    """Builds values from JSON; everything it can make is listed here."""

    def __init__(self, classes: dict[str, type], arrays: list[np.ndarray]) -> None:
        self.classes = classes
        self.arrays = arrays

    def array(self, index: Any) -> np.ndarray:
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(self.arrays):
            raise ModelFileError("it refers to an array that is not there.")
        return self.arrays[index]

    def decode(self, node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ModelFileError("it is nested too deeply.")
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return [self.decode(item, depth + 1) for item in node]
        tag = next(iter(node), None)
        if tag == "$estimator":
            return self.estimator(node, depth + 1)
        if tag == "$array":
            return self.array(node[tag])
        if tag == "$scalar":
            return self.array(node[tag])[()]
        if tag == "$float":
            return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[node[tag]]
        if tag == "$tuple":
            return tuple(self.decode(node[tag], depth + 1))
        if tag == "$dict":
            return {self.decode(key, depth + 1): self.decode(value, depth + 1) for key, value in node[tag]}
        if tag == "$objects":
            return self.objects(node, depth)
        if tag == "$csr":
            return self.csr(node)
        raise ModelFileError(f"it holds an unknown kind of value, {str(tag)[:40]!r}.")

    def objects(self, node: dict[str, Any], depth: int) -> np.ndarray:
        items, shape = node["$objects"], tuple(node["shape"])
        if any(n < 0 for n in shape) or math.prod(shape) != len(items):
            raise ModelFileError("a list of objects does not fit its shape.")
        array = np.empty(len(items), dtype=object)
        array[:] = [None] * len(items)
        for i, item in enumerate(items):
            array[i] = self.decode(item, depth + 1)
        return array.reshape(shape)

    def csr(self, node: dict[str, Any]) -> Any:
        data, indices, indptr = (self.array(part) for part in node["$csr"])
        kind = sparse.csr_matrix if node["matrix"] is True else sparse.csr_array
        matrix = kind((data, indices, indptr), shape=tuple(node["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def estimator(self, node: Any, depth: int) -> Any:
        if not isinstance(node, dict) or set(node) != {"$estimator", "params", "attributes"}:
            raise ModelFileError("it holds no estimator where one must be.")
        name = node["$estimator"]
        cls: Any = self.classes.get(name) if isinstance(name, str) else None
        if cls is None:
            raise ModelFileError(
                f"it holds a {str(name)[:80]!r}, which is not one of the classes that may be loaded; "
                "allow those of your own by extra_classes."
            )
        known = set(cls._get_param_names())
        params = {key: self.decode(value, depth + 1) for key, value in node["params"].items()}
        if not set(params) <= known:
            raise ModelFileError(f"{name} has no parameter {sorted(set(params) - known)[0][:80]!r}.")
        estimator = cls(**params)
        for key, value in node["attributes"].items():
            if not key.isidentifier() or key in known or not _is_state(cls, key) or hasattr(cls, key):
                raise ModelFileError(f"{name} cannot have an attribute {key[:80]!r} in a model file.")
            setattr(estimator, key, self.decode(value, depth + 1))
        _check_sizes(estimator)
        return estimator


def _check_usable(estimator: Any, tree: Any, writer: _Writer, classes: dict[str, type]) -> None:
    """Build the estimator again from what will be written, and let both score a row of zeros.

    This finds a class that needs private attributes which it does not name, before the model is lost.
    """
    arrays = [_read_array(entry, content) for entry, (_, content) in zip(writer.entries, writer.members, strict=True)]
    again = _Reader(classes, arrays).estimator(tree, 0)
    expected = _score_of_zeros(estimator)
    try:
        same = expected is None or np.array_equal(_score_of_zeros(again), expected, equal_nan=True)
    except AttributeError as error:
        raise ModelFileError(
            f"{type(estimator).__name__} would not work again from a file: {error}. A class must name the private "
            "attributes that it predicts with in _model_state."
        ) from None
    if not same:
        raise ModelFileError(f"{type(estimator).__name__} would not predict the same from a file.")


def _score_of_zeros(estimator: Any) -> Any:
    """What the estimator makes of a row of zeros, or None where it has no rows."""
    method = next((name for name in ("decision_function", "transform") if hasattr(estimator, name)), None)
    if method is None or not hasattr(estimator, "n_features_in_"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a row of zeros has no feature names
        return getattr(estimator, method)(np.zeros((1, estimator.n_features_in_)))


def _check_scores(estimator: Any, n_numbers: int) -> None:
    """An estimator that the file made: it must be complete, with one score for each of its classes.

    A row is not made where the file, of so many numbers, has no room for one like it.
    """
    check_is_fitted(estimator)
    classes, d = getattr(estimator, "classes_", None), getattr(estimator, "n_features_in_", 0)
    if d > max(n_numbers, 1 << 20):
        return
    scores = _score_of_zeros(estimator)
    if scores is None or classes is None:
        return
    if np.size(scores) not in ({1, 2} if len(classes) == 2 else {len(classes)}):
        raise ModelFileError(f"{type(estimator).__name__} has {np.size(scores)} scores for {len(classes)} classes.")


def _check_sizes(estimator: Any) -> None:
    """The sizes that all classifiers share must agree with one another."""
    d, classes = getattr(estimator, "n_features_in_", None), getattr(estimator, "classes_", None)
    name = type(estimator).__name__
    if d is not None and (not isinstance(d, int | np.integer) or isinstance(d, bool) or d < 0):
        raise ModelFileError(f"{name} has n_features_in_={str(d)[:40]}.")
    if classes is not None and (not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2):
        raise ModelFileError(f"{name} has no list of at least two classes.")
    coef = getattr(estimator, "coef_", None)
    if isinstance(coef, np.ndarray) and d is not None and (coef.ndim != 2 or coef.shape[1] != d):
        raise ModelFileError(f"{name} has coefficients of shape {coef.shape} for {d} features.")
