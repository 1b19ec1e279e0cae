"""The bytes of a model file: a zip archive of a JSON document and of arrays, with checksums."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from .._files import atomic_write

FORMAT, VERSION = "skmargin-model", 2
READABLE = (1, 2)  # 1: skmargin 0.1.0
ARRAY_KINDS = "biufcSUMm"
MAX_JSON = 1 << 26
# All that zipfile, json, NumPy and scikit-learn raise on files that are damaged or made to confuse.
BROKEN: tuple[type[Exception], ...] = (zipfile.BadZipFile, EOFError, OSError, ValueError, TypeError, LookupError)
BROKEN += (AttributeError, RuntimeError, ArithmeticError, MemoryError, SyntaxError, AssertionError, ImportError)


class ModelFileError(ValueError):
    """A model cannot be written to, or read from, a file; the message says why.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skmargin.model_files import ModelFileError, load_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.skm"
    ...     _ = path.write_bytes(b"not a model")
    ...     try:
    ...         load_model(path)
    ...     except ModelFileError as error:
    ...         print(str(error).replace(folder, "")[1:])
    model.skm: it is not a skmargin model file, or it is damaged (File is not a zip file).
    """


def damaged(path: Any, error: Exception) -> ModelFileError:
    """The error of a file whose contents make no sense, as one sentence."""
    reason = " ".join(str(error).split())[:200]
    return ModelFileError(f"{path}: the model file is damaged ({type(error).__name__}: {reason}).")


def seal(text: bytes, version: int = VERSION) -> bytes:
    """Comment of the archive."""
    return f"{FORMAT} {version} sha256:{hashlib.sha256(text).hexdigest()}".encode()


class Arrays:
    """The arrays of a file that is about to be written."""

    def __init__(self) -> None:
        self.members: list[tuple[str, bytes]] = []
        self.entries: list[dict[str, Any]] = []

    def add(self, array: np.ndarray, where: str) -> int:
        """Put an array aside and return its number."""
        if type(array) is not np.ndarray or not is_plain(array.dtype):
            raise ModelFileError(f"{where} is an array of {array.dtype}, which a model file cannot hold.")
        buffer = io.BytesIO()
        npy.write_array(buffer, array, allow_pickle=False)
        content, name = buffer.getvalue(), f"arrays/{len(self.entries)}.npy"
        digest = hashlib.sha256(content).hexdigest()
        self.members.append((name, content))
        self.entries.append({"name": name, "sha256": digest, "dtype": array.dtype.str, "shape": list(array.shape)})
        return len(self.entries) - 1

    def read_back(self) -> list[np.ndarray]:
        """The arrays as a reader of the file will find them."""
        return [read_array(entry, content) for entry, (_, content) in zip(self.entries, self.members, strict=True)]


def is_plain(dtype: np.dtype) -> bool:
    """Whether arrays of this type are numbers, text or dates and nothing else."""
    return not dtype.hasobject and dtype.kind in ARRAY_KINDS


def write(path: str | os.PathLike[str], document: dict[str, Any], arrays: Arrays) -> None:
    """Write the archive, whole or not at all."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"metadata must be JSON: {error}.") from None
    if len(text) > MAX_JSON:
        raise ModelFileError(f"the model needs {len(text)} bytes besides its arrays; a model file holds {MAX_JSON}.")
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in [("model.json", text), *arrays.members]:
            archive.writestr(zipfile.ZipInfo(name), content)  # a fixed date: the same model gives the same bytes
        archive.comment = seal(text)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
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
            document = json.loads(text.decode("utf-8", "surrogatepass"))
            _check_header(document, names, archive.comment, text)
            return document, {name: archive.read(name) for name in names if name != "model.json"}
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise ModelFileError(f"{path}: {error.strerror}.") from None
    except zipfile.BadZipFile as error:
        raise ModelFileError(f"{path}: it is not a skmargin model file, or it is damaged ({error}).") from None
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except BROKEN as error:
        raise damaged(path, error) from None


def _check_header(document: Any, names: list[str], comment: bytes, text: bytes) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError("it is not a skmargin model file.")
    version = document.get("format_version")
    if version not in READABLE or type(version) is not int:
        raise ModelFileError(
            f"it has the format version {str(version)[:20]} "
            f"(written by skmargin {str(document.get('library_version'))[:20]}); this skmargin reads 1 to {VERSION}. "
            "Use the skmargin that wrote it, or save the model again."
        )
    if comment != seal(text, version):
        raise ModelFileError("the checksum of model.json is wrong: the file is damaged.")
    if [entry["name"] for entry in document["arrays"]] != [name for name in names if name != "model.json"]:
        raise ModelFileError("its arrays are not those that model.json lists.")


def read_array(entry: dict[str, Any], content: bytes) -> np.ndarray:
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
    if not is_plain(dtype) or dtype.str != entry["dtype"] or list(shape) != entry["shape"]:
        raise ModelFileError(f"{name} is not the array that model.json describes.")
    body = content[end:]
    if any(n < 0 for n in shape) or dtype.itemsize * math.prod(shape) != len(body):
        raise ModelFileError(f"{name} has {len(body)} bytes, which do not fit its shape {shape}.")
    if dtype.itemsize == 0:
        if math.prod(shape) > MAX_JSON:  # of empty strings, which take memory but no place in the file
            raise ModelFileError(f"{name} has a shape that is too large, {shape}.")
        return np.zeros(shape, dtype=dtype)
    return np.frombuffer(body, dtype=dtype).reshape(shape, order="F" if fortran else "C").copy(order="K")
