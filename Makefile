# Everything runs in .venv, which is made on first use.  Needs only make, Python 3.11+ and a C++20 compiler:
# cmake, ninja and nanobind are installed into .venv.  See CONTRIBUTING.md.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
STAMPS := $(VENV)/stamps
BUILD_LOG := $(STAMPS)/build.log
CPP := $(wildcard $(addprefix src/skmargin/_core/,*.hpp */*.hpp */*.cpp))
CORE := CMakeLists.txt $(CPP)
PY_SOURCES := src tests benchmarks examples docs/conf.py docs/_ext conftest.py
# One BLAS thread in every process: the test workers already share the cores, and times stay comparable.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1
# The tests that enter the compiled core (make sanitize); make them all with SANITIZE_TESTS=tests.
SANITIZE_TESTS ?= $(wildcard tests/core tests/solvers tests/fuzz)
ARGS ?=

# The newest Python that can make a virtual environment and compile an extension; empty where there is none.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import ensurepip, os, sys, sysconfig; \
	sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
	2>/dev/null && { echo $$python; break; }; done)
# make knows a CXX even where there is no compiler: only one from the user counts.
ifeq ($(origin CXX),default)
CXX := $(shell for cxx in c++ g++ clang++; do command -v $$cxx && break; done)
endif
export CXX

EXTRAS_test := test
EXTRAS_demo := cli
EXTRAS_bench := bench,test
EXTRAS_lint := dev
EXTRAS_docs := docs

.PHONY: help test perf coverage demo bench docs lint format stub fuzz fuzz-files sanitize sanitize-threads clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

# scikit-learn checks arrays of other libraries only where SciPy is told of them.
test: $(STAMPS)/test ## run all tests
	SCIPY_ARRAY_API=1 $(ONE_THREAD) $(PY) -m pytest -n auto $(ARGS)

perf: $(STAMPS)/test ## run the tests that assert on a clock or on a number of passes
	$(ONE_THREAD) $(PY) -m pytest -m perf tests $(ARGS)

demo: $(STAMPS)/demo ## compare the machines with scikit-learn's on digits, and write report.html
	$(ONE_THREAD) $(VENV)/bin/skmargin compare digits --report report.html

bench: $(STAMPS)/bench ## time to accuracy against LIBLINEAR and scikit-learn (ARGS="--sets digits --C 1")
	$(ONE_THREAD) $(PY) -m benchmarks.run $(ARGS)

# The examples of the gallery run here; pages that did not change are kept.  Then the site is tried in a browser.
docs: $(STAMPS)/docs ## build the site in build/docs (open build/docs/index.html); needs no network
	$(ONE_THREAD) $(PY) -m sphinx --fail-on-warning --keep-going --quiet --fresh-env -j auto -d build/doctrees docs build/docs
	SKMARGIN_SITE=build/docs $(PY) -m pytest -q tests/docs $(ARGS)

lint: $(STAMPS)/lint ## check style and types
	$(PY) -m ruff check $(PY_SOURCES)
	$(PY) -m ruff format --check $(PY_SOURCES)
	$(PY) -m mypy
	$(VENV)/bin/clang-format --dry-run -Werror $(CPP)

format: $(STAMPS)/lint ## put the sources into the house style
	$(PY) -m ruff check --fix $(PY_SOURCES)
	$(PY) -m ruff format $(PY_SOURCES)
	$(VENV)/bin/clang-format -i $(CPP)

stub: $(STAMPS)/lint ## write the stub of the compiled core, which mypy reads
	$(PY) -m nanobind.stubgen -q -m skmargin._core._ext -o src/skmargin/_core/_ext.pyi

# Random fits judged by an oracle of their own; a short run of the same is part of the tests.
fuzz: $(STAMPS)/test ## fit random machines to random rows and check every certificate (ARGS="--fits 100000 --seed 1")
	$(ONE_THREAD) $(PY) -m tests.fuzz $(ARGS)

fuzz-files: $(STAMPS)/test ## mutate data and model files, guided by coverage (ARGS="csv -runs=100000"); installs atheris
	$(PIP) install atheris
	$(ONE_THREAD) $(PY) -m tests.fuzz.files $(ARGS)

# An instrumented core goes to an environment of its own, which borrows the packages of .venv (a .pth file, so that the
# import hook of the editable install there, which would find the plain core, is not run).  CMakeLists.txt knows what
# SKMARGIN_INSTRUMENT stands for.
INSTRUMENTED = $(ONE_THREAD) build/$(1)/venv/bin/python -m pytest -n auto -p no:cacheprovider
sanitize: build/sanitize/stamp ## run the tests of the core under the address and undefined-behaviour sanitizers
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so.6)" \
	$(call INSTRUMENTED,sanitize) --capture=no $(SANITIZE_TESTS)

# Threads of the core itself; Python's own locks are not seen, so that only races between frames of the core count.
sanitize-threads: build/threads/stamp ## run parallel fits under the thread sanitizer
	TSAN_OPTIONS="suppressions=tests/fuzz/threads.supp ignore_noninstrumented_modules=1 exitcode=66" \
	LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so)" $(ONE_THREAD) build/threads/venv/bin/python -m tests.fuzz.threads

# Lines of Python by pytest-cov, lines of the core by gcov.
coverage: build/coverage/stamp ## measure which lines the tests reach, in Python and in the core
	$(PIP) install gcovr
	find build/coverage -name '*.gcda' -delete
	$(call INSTRUMENTED,coverage) -q --cov=skmargin --cov-report=term:skip-covered tests
	$(PY) -m gcovr --root . --filter src/skmargin/_core --object-directory build/coverage/cmake --print-summary | tail -4

build/%/stamp: $(STAMPS)/test $(CORE) $(shell find src -name '*.py')
	"$$($(PY) -c 'import sys; print(sys._base_executable)')" -m venv --clear --without-pip build/$*/venv
	$(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
	  "$$(build/$*/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/borrowed.pth"
	$(PIP) --python build/$*/venv install --no-build-isolation --no-deps --force-reinstall \
	  -C build-dir=build/$*/cmake -C cmake.define.SKMARGIN_INSTRUMENT=$* -C cmake.build-type=RelWithDebInfo .
	@touch $@

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist docs/_build docs/auto_examples docs/api/generated docs/api/backreferences \
	  docs/api/[!i]*.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

# The core is compiled again only when its sources change: without build isolation cmake keeps its cache.
$(STAMPS)/%: pyproject.toml $(CORE) | $(STAMPS)/tools
	@echo 'installing skmargin with [$(EXTRAS_$*)]; compiling what has changed:'
	@{ $(PY) -m pip --disable-pip-version-check install --verbose --no-build-isolation --editable ".[$(EXTRAS_$*)]" 2>&1; \
	  echo $$? > $(BUILD_LOG).status; } | tee $(BUILD_LOG) | sed -n 's/^ *\(\[[0-9]*\/[0-9]*\] \)Building.*_core\//\1/p'; \
	  test "$$(cat $(BUILD_LOG).status)" = 0 || { cat $(BUILD_LOG); exit 1; }
	@touch $@

$(STAMPS)/tools:
	@test -n "$(PYTHON)" || { echo "skmargin needs Python 3.11 or newer with its venv module and headers (on Debian and" \
	  "Ubuntu: apt-get install python3-dev python3-venv); none was found, set PYTHON to name one." >&2; exit 1; }
	@echo 'int main() { auto f = []<class T>(T x) { return x; }; return f(0); }' > .cxx20.cpp; \
	  test -n "$(CXX)" && $(CXX) -std=c++20 -fsyntax-only .cxx20.cpp 2>/dev/null; ok=$$?; rm -f .cxx20.cpp; \
	  test $$ok = 0 || { echo "skmargin needs a C++20 compiler (GCC 11, Clang 14 or newer; on Debian and Ubuntu:" \
	  "apt-get install g++), none was found; set CXX to name one." >&2; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip
	$(PIP) install "scikit-build-core>=0.11" "nanobind>=2.4" cmake ninja "setuptools>=70.1"  # liblinear-official's own tool
	@mkdir -p $(STAMPS) && touch $@
