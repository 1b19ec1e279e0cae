"""The stub of the compiled core, which mypy reads, is what nanobind generates from it."""

import ast
import subprocess
import sys
from importlib import resources


def test_the_stub_is_up_to_date(tmp_path):
    new = tmp_path / "_ext.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "skmargin._core._ext", "-o", str(new)]
    subprocess.run(command, check=True, timeout=120)
    kept = resources.files("skmargin._core").joinpath("_ext.pyi").read_text()
    assert ast.dump(ast.parse(new.read_text())) == ast.dump(ast.parse(kept)), "run make stub"
