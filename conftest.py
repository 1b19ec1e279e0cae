"""Settings of the whole test run: the tests, the examples in the docstrings and those in README.md."""

import os
import signal
from importlib.util import find_spec

import numpy as np
import pytest

# torch is a large optional package: its tests run where it is installed (.ci/run installs it).
TORCH = ["src/skmargin/torch*", "tests/test_torch.py", "tests/torch/*", "docs/recipes/networks.md"]
collect_ignore_glob: list[str] = [] if find_spec("torch") else TORCH
collect_ignore_glob += ["docs/conf.py", "docs/_ext/*", "docs/auto_examples"]  # code of the site, which needs Sphinx
# The tests of the built site belong to `make docs`, which says where it is.
if "SKMARGIN_SITE" not in os.environ:
    collect_ignore_glob.append("tests/docs/test_site.py")

# A shell lets what it starts in the background ignore Ctrl-C; the tests of Ctrl-C would wait for it in vain.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _same_numbers_every_run():
    """`random_state=None` draws from NumPy's global generator: every test starts it at the same place."""
    np.random.seed(0)  # noqa: NPY002
