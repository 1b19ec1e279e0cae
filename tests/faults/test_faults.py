"""What users and machines do to a running program: Ctrl-C, no memory, a full disk, a closed pipe, kill -9."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from _thread import interrupt_main

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    FuzzyPairwiseClassifier,
    LDMClassifier,
    LpNormSVC,
    MultiMarginSVC,
    ODMClassifier,
    SemiSupervisedMarginSVC,
    TopKSVC,
    ULDMClassifier,
    WestonWatkinsSVC,
)
from skmargin.experiments import read_results
from skmargin.model_files import load_model, save_model
from skmargin.model_selection import MarginSearchCV

POSIX = sys.platform != "win32"
LATE = 5.0  # seconds after which an interrupt counts as ignored, on a machine that does other things as well

MACHINES = [
    CrammerSingerSVC(tol=1e-6, random_state=0),
    CrammerSingerSVC(kernel="rbf", tol=1e-6, random_state=0),
    WestonWatkinsSVC(tol=1e-6, random_state=0),
    TopKSVC(k=2, tol=1e-6, random_state=0),
    LpNormSVC(p=1.2, tol=1e-6, random_state=0),
    MultiMarginSVC(tol=1e-6, random_state=0),
    ODMClassifier(tol=1e-6, random_state=0),
    M3SVC(tol=1e-6, random_state=0),
    SemiSupervisedMarginSVC(tol=1e-6, random_state=0),
    LDMClassifier(tol=1e-6, random_state=0),
    LSSVC(random_state=0),
    ULDMClassifier(random_state=0),
    FuzzyPairwiseClassifier(CrammerSingerSVC(tol=1e-6, random_state=0)),
    MarginSearchCV(CrammerSingerSVC(random_state=0), {"C": [0.01, 0.1, 1.0]}, cv=3),
]


def rows(n=700, d=12, k=4):
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    return rng.standard_normal((k, d))[y] + 2 * rng.standard_normal((n, d)), y


def bits(model):
    """All published numbers of a machine."""
    model = getattr(model, "best_estimator_", model)
    models = getattr(model, "estimators_", [model])
    names = ("coef_", "dual_coef_", "intercept_")
    return b"".join(getattr(one, name).tobytes() for one in models for name in names if hasattr(one, name))


def unfitted(model, X):
    """Whether the model says so."""
    try:
        model.predict(X)
    except NotFittedError:
        return True
    return False


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_an_interrupt_at_any_moment_leaves_the_machine_unfitted(machine):
    X, y = rows()
    warnings.simplefilter("ignore", ConvergenceWarning)
    start = time.perf_counter()
    whole = bits(clone(machine).fit(X, y))
    length = time.perf_counter() - start
    model = clone(machine).fit(X[:200], y[:200])  # a fit that goes before: nothing of it may survive
    for share in np.random.default_rng(1).uniform(0.02, 0.9, 3):
        timer = threading.Timer(share * length, interrupt_main)
        start = time.perf_counter()
        try:  # on a busy machine the timer may ring before the fit begins
            timer.start()
            model.fit(X, y)
            timer.join()
            time.sleep(0.02)  # it came after the end
        except KeyboardInterrupt:
            assert time.perf_counter() - start < share * length + LATE
            assert unfitted(model, X) or bits(model) == whole  # it may come just after the end
        finally:
            timer.cancel()
    assert bits(model.fit(X, y)) == whole


def python(code, *arguments, **options):
    """A process that runs this code with one thread of BLAS."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **options.pop("env", {})}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, **options)


MEMORY = """
import resource, sys
import numpy as np
import skmargin
rng = np.random.default_rng(0)
X, y = rng.standard_normal((6000, 40)), rng.integers(0, 30, 6000)
model = eval("skmargin." + sys.argv[1])
model.fit(X[:900], y[:900])  # OpenBLAS allots its buffers at first use, and ends the process where it cannot,
X[:900] @ X[:900].T  # but small products do without them
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + int(sys.argv[2]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    model.fit(X, y)
except MemoryError:
    print("MemoryError")
else:
    print("fitted")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space are Linux's")
@pytest.mark.parametrize(
    "machine",
    [
        "CrammerSingerSVC(kernel='rbf', max_iter=3, tol=1.0, n_jobs=1)",
        "M3SVC(kernel='rbf', max_iter=3, tol=1.0)",
        "LSSVC(random_state=0)",
    ],
)
def test_without_memory_there_is_a_memory_error_and_no_abort(machine):
    done = python(MEMORY, machine, 8)
    assert (done.returncode, done.stdout.strip()) == (0, "MemoryError"), done.stderr[-2000:]


FULL = """
import resource, signal, sys
import numpy as np
from skmargin import CrammerSingerSVC
from skmargin.model_files import load_model, save_model
X, y = np.random.default_rng(0).standard_normal((60, 400)), np.arange(60) % 3
model = CrammerSingerSVC(random_state=0).fit(X, y)
save_model(model, sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    save_model(model, sys.argv[1])
except OSError:
    print("OSError")
assert (load_model(sys.argv[1]).coef_ == model.coef_).all()
"""


@pytest.mark.skipif(not POSIX, reason="limits of the size of files are POSIX's")
def test_a_full_disk_leaves_the_old_file_whole(tmp_path):
    done = python(FULL, tmp_path / "model.skm")
    assert (done.returncode, done.stdout.strip()) == (0, "OSError"), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model.skm"]


@pytest.mark.skipif(not POSIX, reason="signals are POSIX's")
def test_a_closed_pipe_is_no_traceback(tmp_path):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", "from skmargin.cli import main; main()", "compare", "--help"],
        stdout=write, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    os.close(write)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not POSIX, reason="signals are POSIX's")
def test_a_comparison_that_is_killed_goes_on_where_it_was(tmp_path):
    state = tmp_path / "state.json"
    arguments = ["compare", "iris", "--models", "crammer-singer,weston-watkins", "--cv", "3", "--jobs", "1", "--json"]
    command = [sys.executable, "-c", "from skmargin.cli import main; main()", *arguments, "--resume", str(state)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = subprocess.run([*command[:-1], str(tmp_path / "other.json")], capture_output=True, text=True, timeout=300)
    for wait in (0.0, 0.1):
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        deadline = time.monotonic() + 120
        while not state.exists() and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(wait)
        running.send_signal(signal.SIGKILL)
        running.wait()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    ranked = [[(m["model"], m["mean"], m["deviation"]) for m in json.loads(p.stdout)["models"]] for p in (whole, done)]
    assert ranked[0] == ranked[1]


def measured(results):
    """What tasks have found, without times."""
    names = ("experiment", "data", "method", "split", "settings", "quantity", "x", "value", "status")
    return sorted(tuple(line[name] for name in names) for line in read_results(results))


@pytest.mark.skipif(not POSIX, reason="signals are POSIX's")
def test_a_reproduction_that_is_killed_goes_on_where_it_was(tmp_path):
    arguments = ["reproduce", "abe-table4", "--quick", "--jobs", "1", "--out"]
    command = [sys.executable, "-c", "from skmargin.cli import main; main()", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*command, str(whole)], capture_output=True, timeout=300, env=environment, check=True)
    every = measured(whole / "results.csv")
    for n_done in (1, 2):  # of its three tasks
        with subprocess.Popen(
            [*command, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        ) as running:
            deadline = time.monotonic() + 120
            while len(read_results(killed / "results.csv")) < n_done and time.monotonic() < deadline:
                time.sleep(0.01)
            running.send_signal(signal.SIGKILL)
        assert set(measured(killed / "results.csv")) <= set(every)
    done = subprocess.run([*command, str(killed)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert measured(killed / "results.csv") == every


@pytest.mark.skipif(not POSIX, reason="signals are POSIX's")
@pytest.mark.parametrize("wait", [0.0, 0.5, 1.5])
def test_a_fit_that_is_killed_leaves_the_model_file_whole(tmp_path, wait):
    out = tmp_path / "model.skm"
    run = "from skmargin.cli import main; print('up', flush=True); main()"
    command = [
        sys.executable,
        "-c",
        run,
        "fit",
        "digits",
        "--model",
        "crammer-singer",
        "--jobs",
        "1",
        "--out",
        str(out),
    ]
    save_model(LSSVC().fit(*load_iris(return_X_y=True)), out)
    old = out.read_bytes()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        running.stdout.readline()
        time.sleep(wait)
        running.send_signal(signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    assert out.read_bytes() == old or load_model(out).n_features_in_ == 64  # on a fast machine the fit was over
    assert [path.name for path in tmp_path.iterdir()] == ["model.skm"]
