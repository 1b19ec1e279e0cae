"""``skmargin export``: a model file as an ONNX graph."""

from __future__ import annotations

from pathlib import Path

import typer

from .._files import atomic_write
from ..model_files import load_model
from ._terminal import say


def export(path: Path, out: Path, *, single: bool = False, raw_scores: bool = False) -> None:
    """Convert the model and write the graph; what cannot be converted is one sentence and exit code 1."""
    try:
        from ..onnx import to_onnx

        graph = to_onnx(load_model(path), dtype="float32" if single else "float64", raw_scores=raw_scores)
        with atomic_write(out) as file:
            file.write(graph.SerializeToString())
    except (ImportError, ValueError) as error:  # an extra is missing; the model file or the model cannot be used
        message = str(error) if str(path) in str(error) else f"{path}: {error}"
    except OSError as error:
        message = f"{error.filename or out}: {error.strerror}."
    else:
        inputs = [value.name for value in graph.graph.input]
        shown = ", ".join(inputs[:10]) + (", ..." if len(inputs) > 10 else "")
        results = ", ".join(value.name for value in graph.graph.output)
        say(f"ONNX graph: {out} ({shown} -> {results})")
        return
    say(f"skmargin: {message}", stderr=True, style="red")
    raise typer.Exit(1)
