"""Models as ONNX graphs, for servers and devices without Python (needs the extra ``onnx``).

Importing this module makes skl2onnx know the machines of skmargin, alone, in pipelines and calibrated.  `to_onnx` is
the short way; `skl2onnx.to_onnx` works as well.
"""

from __future__ import annotations

try:
    import onnx as _onnx  # noqa: F401
    import skl2onnx as _skl2onnx  # noqa: F401
except ImportError as _error:
    raise ImportError(
        f"skmargin.onnx needs {_error.name or 'onnx'}, which is not installed: pip install 'skmargin[onnx]'."
    ) from None

from ._convert import to_onnx
from ._readers import register_readers
from ._register import register

__all__ = ["to_onnx"]

register()
register_readers()
