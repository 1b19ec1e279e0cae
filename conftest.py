"""Settings of the whole test run: the tests, the examples in the docstrings and those in README.md."""

from importlib.util import find_spec

# torch is a large optional package: its tests run where it is installed (.ci/run installs it).
collect_ignore_glob = [] if find_spec("torch") else ["src/skmargin/torch*", "tests/test_torch.py", "tests/torch/*"]
