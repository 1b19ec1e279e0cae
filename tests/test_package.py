"""The package as it is installed: what is in it, and what importing it costs."""

import os
import subprocess
import sys
from importlib.metadata import files, metadata, requires, version
from importlib.resources import files as resources
from pathlib import Path

import skmargin

# The names are loaded on first use.
LOAD_ALL = "import skmargin; [getattr(skmargin, name) for name in skmargin.__all__]"


def fresh(code: str) -> str:
    """Standard output of ``code`` in a new interpreter where every warning is an error."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}  # it would hold the lock off
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


def test_version_is_stated_once():
    assert skmargin.__version__ == version("skmargin") == metadata("skmargin")["Version"]


def test_every_public_name_exists():
    assert len(skmargin.__all__) == len(set(skmargin.__all__)) > 0
    for name in skmargin.__all__:
        assert hasattr(skmargin, name), name


def test_submodules_are_loaded_on_first_use():
    loaded = "import sys, skmargin; before = 'skmargin.inspection' in sys.modules; "
    assert fresh(loaded + "print(before, skmargin.inspection.margins.__name__)").split() == ["False", "margins"]


def test_dir_shows_the_public_names_only():
    shown = {name for name in dir(skmargin) if not name.startswith("__")}
    assert set(skmargin.__all__) < shown
    assert shown - set(skmargin.__all__) == {
        "config_context", "get_config", "set_config",
        "datasets", "inspection", "model_files", "model_selection", "onnx", "report", "torch",
    }  # fmt: skip


def test_type_hints_are_shipped():
    assert resources("skmargin").joinpath("py.typed").is_file()


def test_no_sources_of_the_core_are_installed():
    assert not [path for path in files("skmargin") or [] if Path(str(path)).suffix in {".cpp", ".hpp"}]


def test_needs_only_numpy_scipy_and_scikit_learn():
    plain = [line for line in requires("skmargin") or [] if "extra ==" not in line]
    assert sorted(line.split(">=")[0] for line in plain) == ["numpy", "scikit-learn", "scipy"]


def test_import_is_light():
    """What skmargin loads beyond scikit-learn's own machines is its own code: no optional package is needed."""
    code = (
        "import sys, sklearn.svm, sklearn.linear_model; before = set(sys.modules); "
        + LOAD_ALL
        + "; print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    extra = set(fresh(code).split()) - set(sys.stdlib_module_names)
    assert extra <= {"skmargin", "sklearn", "scipy", "numpy"}, extra


def test_import_leaves_the_interpreter_lock_as_it_was():
    """On a free-threaded Python an extension that does not declare itself safe switches the lock back on."""
    code = (
        "import sys; locked = getattr(sys, '_is_gil_enabled', lambda: True); before = locked(); "
        "import skmargin._core._ext; print(before == locked())"
    )
    assert fresh(code).strip() == "True"
