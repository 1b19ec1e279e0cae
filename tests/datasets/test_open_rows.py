"""Rows in blocks from every kind of source: the same rows, the same machine, and one sentence where they are broken."""

from __future__ import annotations

import errno
import functools
import gc
import gzip
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from skmargin import M3SVC, CrammerSingerSVC, LpNormSVC, MultiMarginSVC, ODMClassifier, TopKSVC, WestonWatkinsSVC
from skmargin.datasets import DataError, _batch_copy, _open_parquet, _open_rows, _row_cache, open_rows
from skmargin.estimators._base import MarginClassifier
from skmargin.solvers.blocks import from_rows
from skmargin.solvers.tuning import DEFAULT


def data(n=900, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return rng.normal(size=(n, d)) + 2 * rng.normal(size=(k, d))[y], y


NAMES = np.array(["cat", "dog", "emu"])


def frame(X, labels):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(kind=labels)


def read(rows):
    parts = list(rows)
    X = [p[0].toarray() if sparse.issparse(p[0]) else p[0] for p in parts]
    return np.concatenate(X), None if parts[0][1] is None else np.concatenate([p[1] for p in parts])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks, however small the data."""
    for module in (_row_cache, _open_rows, _open_parquet):
        monkeypatch.setattr(module, "BATCH_ROWS", 200)
    monkeypatch.setattr("skmargin.datasets._files.CHUNK", 5000)


def sources(tmp_path, X, y):
    """The same rows from every kind of source."""
    table = frame(X, NAMES[y])
    table.to_parquet(tmp_path / "one.parquet")
    yield open_rows(tmp_path / "one.parquet", target="kind"), NAMES[y]
    (tmp_path / "many").mkdir()
    for part, at in enumerate(range(0, len(X), 350)):
        table[at : at + 350].to_parquet(tmp_path / "many" / f"part{part}.parquet")
    yield open_rows(tmp_path / "many", target="kind"), NAMES[y]
    yield open_rows(str(tmp_path / "many" / "*.parquet"), target=-1), NAMES[y]
    table.to_csv(tmp_path / "table.csv", index=False)
    yield open_rows(tmp_path / "table.csv", target="kind"), NAMES[y]
    with gzip.open(tmp_path / "packed.csv.gz", "wb") as file:
        file.write(frame(X, y).to_csv(index=False, sep=";").encode())
    yield open_rows(tmp_path / "packed.csv.gz", target="kind"), y
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    yield open_rows(tmp_path / "rows.svm", cache=tmp_path / "elsewhere"), y
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", NAMES[y])
    yield open_rows(tmp_path / "X.npy", target=tmp_path / "y.npy"), NAMES[y]
    yield open_rows((np.load(tmp_path / "X.npy", mmap_mode="r"), y)), y
    yield open_rows(X, y), y
    yield open_rows(sparse.csr_array(X), y), y
    yield open_rows(lambda: ((X[a : a + 100], y[a : a + 100]) for a in range(0, len(X), 100))), y
    for folder in ("copies", "copies"):  # made, and used again
        yield open_rows(tmp_path / "many", target="kind", cache=tmp_path / folder), NAMES[y]
    yield open_rows(lambda: ((X[a : a + 100], NAMES[y[a : a + 100]]) for a in range(0, len(X), 100)),
                    cache=tmp_path / "copies"), NAMES[y]  # fmt: skip
    yield open_rows(lambda: ((sparse.csr_array(X[a : a + 300]), y[a : a + 300]) for a in range(0, len(X), 300)),
                    cache=tmp_path / "copies"), y  # fmt: skip


def test_every_source_gives_the_rows_back_and_the_same_machine(tmp_path):
    X, y = data()
    expected = CrammerSingerSVC(tol=1e-6).fit(X, y)
    for rows, labels in sources(tmp_path, X, y):
        found, found_labels = read(rows)
        assert np.allclose(found, X, rtol=1e-12), rows.name
        assert np.array_equal(found_labels, labels), rows.name
        assert rows.n_features == X.shape[1]
        assert rows.n_rows in (len(X), None)
        clf = CrammerSingerSVC(tol=1e-6).fit(rows)
        assert np.array_equal(clf.classes_, np.unique(labels))
        assert np.allclose(clf.coef_, expected.coef_, atol=1e-4), rows.name
        blocks = list(clf.predict(rows))
        found = found if rows.feature_names is None else pd.DataFrame(found, columns=rows.feature_names)
        assert len(blocks) > 1
        assert np.array_equal(np.concatenate(blocks), clf.predict(found))
        assert np.allclose(np.concatenate(list(clf.decision_function(rows))), clf.decision_function(found), atol=1e-12)
    assert not list(tmp_path.glob("*.part"))


def test_the_method_for_many_rows_reads_files(tmp_path, monkeypatch):
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
    X, y = data(n=6000, d=5, k=4, seed=1)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    weight = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    rows = open_rows((tmp_path / "X.npy", y, weight))
    for machine in (CrammerSingerSVC(class_weight="balanced"), WestonWatkinsSVC(class_weight={0: 3.0})):
        clf = machine.fit(rows)
        expected = type(machine)(class_weight=machine.class_weight, tol=1e-7).fit(X.astype(np.float32), y, weight)
        assert clf.dual_gap_ <= 1e-3
        assert expected.objective_ * (1 - 1e-6) <= clf.objective_ <= expected.objective_ * (1 + 1e-3)
        assert clf.objective_ * (1 - clf.dual_gap_) <= expected.objective_ * (1 + 1e-6)


@pytest.mark.parametrize(
    "machine",
    [
        TopKSVC(k=2), ODMClassifier(mu=0), ODMClassifier(C=50, mu=0.7, theta=0.1), ODMClassifier(fit_intercept=False),
        MultiMarginSVC(), MultiMarginSVC(fit_intercept=False), M3SVC(loss="log_loss"), M3SVC(loss="log_loss", eps=0.1),
        M3SVC(loss="log_loss", p=2, alpha=5, fit_intercept=False), M3SVC(loss="log_loss", p=1, alpha=5),
    ],
    ids=str,
)  # fmt: skip
def test_other_machines_read_files(machine, monkeypatch):
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
    X, y = data(n=5000, d=5, k=4, seed=2)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    rows = open_rows(lambda: ((X[a : a + 900], y[a : a + 900], weight[a : a + 900]) for a in range(0, len(X), 900)))
    machine = clone(machine).set_params(random_state=0)
    expected = clone(machine).set_params(tol=1e-6).fit(X, y, weight)
    clf = machine.fit(rows)
    assert clf.dual_gap_ <= 1e-3
    slack = 2e-3 if isinstance(machine, ODMClassifier) and machine.mu else 1e-6  # not convex
    assert expected.objective_ * (1 - slack) <= clf.objective_ <= expected.objective_ * (1 + 1e-3 + slack)
    assert (np.concatenate(list(clf.predict(rows))) == expected.predict(X)).mean() > 0.98


def test_settings_that_need_rows_in_memory():
    rows = open_rows(data())
    for machine, message in (
        (M3SVC(), "need loss='log_loss', got loss='hinge'"),
        (M3SVC(loss="log_loss", solver="adam"), "need solver='auto', got solver='adam'"),
        (ODMClassifier(solver="paper"), "need solver='auto' or 'newton', got solver='paper'"),
        (MultiMarginSVC(solver="svrg"), "solver='svrg' needs all rows in memory"),
    ):
        with pytest.raises(ValueError, match=message):
            machine.fit(rows)


def test_wide_rows_go_to_memory_where_they_fit_and_by_gradients_elsewhere(monkeypatch):
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(blocks={"most_parameters": 5}))
    X, y = data()
    rows = open_rows(sparse.csr_array(X), y)
    assert CrammerSingerSVC().fit(rows).dual_gap_ <= 1e-3
    monkeypatch.setattr("skmargin.estimators._dual.free_memory", lambda: 1000)
    by_gradients = CrammerSingerSVC(tol=1e-2).fit(open_rows(sparse.csr_array(X), y))
    exact = CrammerSingerSVC(tol=1e-6).fit(X, y)
    assert by_gradients.dual_gap_ <= 1e-2
    assert exact.objective_ * (1 - 1e-6) <= by_gradients.objective_ <= exact.objective_ * 1.01


def test_adam_takes_a_stream():
    X, y = data()
    clf = M3SVC(loss="log_loss", solver="adam", random_state=0)
    for _ in range(20):
        clf.partial_fit(open_rows(X, y), classes=[0, 1, 2])
    assert clf.score(X, y) > 0.8
    with pytest.raises(ValueError, match="takes labels and weights from the rows"):
        clf.partial_fit(open_rows(X, y), y)


def test_warm_start_and_names_of_features(tmp_path, monkeypatch):
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
    X, y = data(n=5000)
    table = frame(X, y)
    table.to_parquet(tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", target="kind", features=["x2", "x0"])
    assert rows.feature_names == ["x2", "x0"]
    clf = CrammerSingerSVC(warm_start=True).fit(rows)
    assert clf.feature_names_in_.tolist() == ["x2", "x0"]
    first = clf.n_iter_
    assert clf.fit(rows).n_iter_ <= first
    expected = CrammerSingerSVC(tol=1e-7).fit(table[["x2", "x0"]], y)
    assert clf.objective_ == pytest.approx(expected.objective_, rel=1e-3)


# ---- the binary copy of text files ----


def csv_file(tmp_path, X, y):
    path = tmp_path / "table.csv"
    frame(X, y).to_csv(path, index=False)
    return path


def test_the_copy_is_used_again_until_the_file_changes(tmp_path, monkeypatch):
    X, y = data()
    path = csv_file(tmp_path, X, y)
    open_rows(path, target="kind")

    def never(*args, **kwargs):
        raise AssertionError("the file was converted again")

    with monkeypatch.context() as patched:
        patched.setattr(_row_cache, "_convert", never)
        assert np.allclose(read(open_rows(path, target="kind"))[0], X)
    frame(X[:50], y[:50]).to_csv(path, index=False)
    assert read(open_rows(path, target="kind"))[0].shape == (50, 4)
    assert read(open_rows(path, target="kind", features=["x1"]))[0].shape == (50, 1)


def test_what_a_killed_process_left_is_continued(tmp_path):
    X, y = data(n=4000)
    path = csv_file(tmp_path, X, y)
    code = (
        "import os, sys\n"
        "from skmargin.datasets import _files, _row_cache, open_rows\n"
        "_files.CHUNK = 5000\n"
        "write, calls = _row_cache._write, []\n"
        "def some(files, chunk, done, code):\n"
        "    write(files, chunk, done, code)\n"
        "    calls.append(1)\n"
        "    if len(calls) == 6:\n"
        "        [file.flush() for file in files.values()]\n"
        "        os._exit(9)\n"  # in the middle of a chunk: after its numbers, before the journal
        "_row_cache._write = some\n"
        f"open_rows({str(path)!r}, target='kind')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    part = tmp_path / "table.csv.rows.part"
    assert part.is_dir()
    assert not (tmp_path / "table.csv.rows").exists()
    parsed = []
    original = _row_cache._write

    def counted(files, chunk, done, code):
        parsed.append(len(chunk.labels))
        original(files, chunk, done, code)

    _row_cache._write = counted
    try:
        found, labels = read(open_rows(path, target="kind"))
    finally:
        _row_cache._write = original
    assert 0 < sum(parsed) < len(X)
    assert np.allclose(found, X)
    assert np.array_equal(labels, y)
    assert not part.exists()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_and_ctrl_c_leave_nothing(tmp_path, monkeypatch, error):
    X, y = data()
    path = csv_file(tmp_path, X, y)
    write, calls = _row_cache._write, []

    def some(*args):
        calls.append(1)
        if len(calls) == 3:
            raise error
        write(*args)

    monkeypatch.setattr(_row_cache, "_write", some)
    with pytest.raises(DataError if isinstance(error, OSError) else KeyboardInterrupt, match=r"disk is full|\A\Z"):
        open_rows(path, target="kind")
    assert os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,y\n1,2,u\n3,,v\n", "line 3, column 'b': the value is missing"),
        ("a,b,y\n1,2,u\n3,x,v\n", "lines from 2 on.*'x'"),
        ("a,b,y\n1,2,u\n3,4\n", "lines from 2 on"),
        ("a,b,y\n1,inf,u\n", "line 2, column 'b': the value is not a finite number"),
        ("a,b,y\n1,2,u\n3,4,\n", "line 3, column 'y': the label is missing"),
        ("a,a,y\n1,2,u\n", "two columns are called 'a'"),
        ("a,b,z\n1,2,u\n", "no column 'y'"),
        ("", "empty"),
        ("a,b,y\n", "no samples"),
    ],
)
def test_broken_tables(tmp_path, text, message):
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        open_rows(path, target="y")
    assert os.listdir(tmp_path) == ["broken.csv"]


def test_broken_parquet_and_libsvm(tmp_path):
    X, y = data()
    table = frame(X, y)
    table.loc[450, "x1"] = None
    table.to_parquet(tmp_path / "hole.parquet")
    with pytest.raises(ValueError, match=r"block 2, row 50: feature 1 is missing|block 2, row 50, column 'x1'"):
        CrammerSingerSVC().fit(open_rows(tmp_path / "hole.parquet", target="kind"))
    frame(X, y).assign(words="text").to_parquet(tmp_path / "words.parquet")
    with pytest.raises(DataError, match="column 'words': holds"):
        open_rows(tmp_path / "words.parquet", target="kind")
    (tmp_path / "no.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match="not sound Parquet"):
        open_rows(tmp_path / "no.parquet", target="kind")
    (tmp_path / "bad.svm").write_text("1 1:2\n2 3:x\n")
    with pytest.raises(DataError, match="line 2"):
        open_rows(tmp_path / "bad.svm")
    with pytest.raises(DataError, match="no such file"):
        open_rows(tmp_path / "none.csv", target="y")
    with pytest.raises(DataError, match="no file has such a name"):
        open_rows(str(tmp_path / "*.pq"), target="y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no Parquet file"):
        open_rows(tmp_path / "empty", target="y")


# ---- blocks that are broken ----


def blocks(change=None, at=7):
    """Ten blocks, of which one is changed."""
    X, y = data(n=1000)

    def function():
        for place in range(10):
            some = slice(100 * place, 100 * place + 100)
            block = X[some].copy(), y[some].copy()
            yield change(*block) if change is not None and place == at else block

    return open_rows(function)


def nan(X, y):
    X[12, 2] = np.nan
    return X, y


def large(X, y):
    X[3, 1] = 1e200
    return X, y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (nan, "block 7, row 12: feature 2 is missing"),
        (large, "block 7, row 3: feature 1 is 1e.200, too large"),
        (lambda X, y: (X[:, :3], y), "block 7: has 3 features, the blocks before have 4"),
        (lambda X, y: (X, y[:50]), "block 7: 100 rows, but labels of shape"),
        (lambda X, y: (X, NAMES[y]), "block 7: its labels are text, those of the blocks before are numbers"),
        (lambda X, y: (X, y + 0.5), r"block 7: the label 0.5 is no whole number"),
        (lambda X, y: (X, y, -np.ones(100)), "block 7, row 0: the weight -1.0"),
        (lambda X, y: (X, y, y, y), "block 7: must be"),
        (lambda X, y: (X.ravel(), y), "block 7: rows must be a table"),
        (lambda X, y: (sparse.csr_array(X), y), "block 7: its rows are sparse, those of the blocks before are dense"),
        (lambda X, y: (X.astype(str), y), "block 7: rows must hold numbers"),
        (lambda X, y: X, "has no labels"),
    ],
)
def test_a_broken_block_is_named(change, message):
    clf = CrammerSingerSVC()
    with pytest.raises(ValueError, match=message):
        clf.fit(blocks(change))
    assert not hasattr(clf, "n_iter_")


def test_an_empty_block_and_a_label_that_occurs_once():
    rows = blocks(lambda X, y: (X[:0], y[:0]))
    assert CrammerSingerSVC().fit(rows).dual_gap_ <= 1e-3
    rows = blocks(lambda X, y: (X, np.where(np.arange(100) == 5, 9, y)))
    assert CrammerSingerSVC().fit(rows).classes_.tolist() == [0, 1, 2, 9]
    with pytest.raises(ValueError, match="got one class"):
        CrammerSingerSVC().fit(open_rows((np.ones((5, 2)), np.zeros(5))))
    with pytest.raises(ValueError, match="holds no rows"):
        CrammerSingerSVC().fit(open_rows((np.ones((0, 2)), np.zeros(0))))
    X, y = data()
    weight = (y != 1).astype(float)  # a class of weight 0 is none
    assert CrammerSingerSVC().fit(open_rows((X, y, weight))).classes_.tolist() == [0, 2]


def test_blocks_that_are_others_the_second_time():
    X, y = data(n=1000)
    lengths = iter([1000, 1000, 900])
    rows = open_rows(lambda: iter([(X[:n], y[:n]) for n in [next(lengths)]]))
    with pytest.raises(ValueError, match="block 0: has other rows than when it was first read"):
        CrammerSingerSVC().fit(rows)


def test_files_that_change_while_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
    X, y = data(n=5000)
    np.save(tmp_path / "X.npy", X)
    rows = open_rows((tmp_path / "X.npy", y))
    original = from_rows.solve_blocks

    def later(*args, **kwargs):
        np.save(tmp_path / "X.npy", X[:4000])
        return original(*args, **kwargs)

    monkeypatch.setattr(from_rows, "solve_blocks", later)
    with pytest.raises(ValueError, match=r"changed while it was read|is shorter than when it was opened"):
        CrammerSingerSVC().fit(rows)


def test_a_label_that_a_stream_must_not_hold_and_what_came_before_it():
    X, y = data(n=1000)
    clf = M3SVC(solver="adam", random_state=0).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    before = clf.coef_.copy(), clf.n_iter_
    with pytest.raises(ValueError, match=r"block 7: y holds labels that are not in classes.*\[9\], first in row 5"):
        clf.partial_fit(blocks(lambda X, y: (X, np.where(np.arange(100) == 5, 9, y))))
    assert np.array_equal(clf.coef_, before[0])
    assert clf.n_iter_ == before[1]
    fresh = M3SVC(solver="adam")
    with pytest.raises(ValueError, match="block 7, row 12: feature 2 is missing"):
        fresh.partial_fit(blocks(nan), classes=[0, 1, 2])
    assert not hasattr(fresh, "classes_")


def test_a_disk_that_is_really_full_leaves_nothing(tmp_path):
    path = csv_file(tmp_path, *data(n=20_000))
    code = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # to write more fails, as on a full disk
        from skmargin.datasets import open_rows
        open_rows({str(path)!r}, target="kind")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "DataError" in done.stderr
    assert "its binary copy cannot be written" in done.stderr
    assert os.listdir(tmp_path) == ["table.csv"]


def test_machines_that_cannot_say_so():
    X, y = data()
    rows = open_rows((X, y))
    with pytest.raises(TypeError, match="LpNormSVC cannot be fitted to rows in blocks"):
        LpNormSVC().fit(rows)
    with pytest.raises(ValueError, match="need kernel='linear', got kernel='rbf'"):
        CrammerSingerSVC(kernel="rbf").fit(rows)
    with pytest.raises(ValueError, match="takes labels and weights from the rows"):
        CrammerSingerSVC().fit(rows, y)
    clf = CrammerSingerSVC().fit(rows)
    with pytest.raises(ValueError, match="features"):
        list(clf.predict(open_rows((X[:, :3], y))))


def test_arguments_that_would_do_nothing_are_refused(tmp_path):
    X, y = data()
    with pytest.raises(ValueError, match="target does not apply to a function"):
        open_rows(lambda: iter([(X, y)]), target="kind")
    with pytest.raises(ValueError, match="cache does not apply to an array"):
        open_rows(X, y, cache=tmp_path)
    with pytest.raises(ValueError, match="900 rows, but labels of shape"):
        open_rows(X, y[:5])
    np.save(tmp_path / "F.npy", np.asfortranarray(X))
    with pytest.raises(DataError, match="row after row"):
        open_rows(tmp_path / "F.npy", target=y)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are sent to the main thread")
def test_ctrl_c_stops_a_fit():
    X, y = data(n=2000)

    def slow():
        for at in range(0, 2000, 50):
            time.sleep(0.02)
            yield X[at : at + 50], y[at : at + 50]

    clf = CrammerSingerSVC()
    rows = open_rows(slow)
    threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(rows)
    assert time.perf_counter() - begin < 0.8
    assert not hasattr(clf, "n_iter_")
    assert not [t for t in threading.enumerate() if t.name == "skmargin-read" and t.is_alive()]


def test_row_groups_of_parquet_are_read_in_any_order(tmp_path):
    X, y = data(n=2000)
    for part, at in enumerate((0, 700, 1500)):
        end = (700, 1500, 2000)[part]
        frame(X[at:end], NAMES[y[at:end]]).to_parquet(tmp_path / f"part{part}.parquet", row_group_size=100)
    rows = open_rows(tmp_path, target="kind")
    assert rows.in_any_order
    assert rows.edges.tolist() == list(range(0, 2001, 100))
    ranges = [(1400, 1600), (0, 100), (650, 720), (5, 6), (1900, 2000)]
    for (begin, end), batch in zip(ranges, rows.pieces(ranges), strict=True):
        assert np.array_equal(batch.X, X[begin:end])
        assert np.array_equal(batch.y, NAMES[y[begin:end]])
    assert not open_rows(tmp_path / "part0.parquet", target="kind").in_any_order  # few row groups
    assert open_rows(tmp_path / "part0.parquet", target="kind", cache=tmp_path / "copies").in_any_order


def test_weights_and_single_precision_survive_the_copy(tmp_path):
    X, y = data()
    X, weight = X.astype(np.float32), np.linspace(0, 2, len(y))

    def blocks():
        for at in range(0, len(y), 100):
            yield X[at : at + 100], y[at : at + 100], weight[at : at + 100]

    rows = open_rows(blocks, cache=tmp_path)
    (batch,) = rows.pieces([(150, 450)])
    assert batch.X.dtype == np.float32
    assert np.array_equal(batch.X, X[150:450])
    assert np.array_equal(batch.weight, weight[150:450])
    given, copied = CrammerSingerSVC(tol=1e-6).fit(open_rows(blocks)), CrammerSingerSVC(tol=1e-6).fit(rows)
    assert np.allclose(given.coef_, copied.coef_, atol=1e-4)
    del rows, copied
    gc.collect()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("kind", ["function", "parquet"])
def test_a_full_disk_and_ctrl_c_leave_no_copy(tmp_path, monkeypatch, error, kind):
    X, y = data()
    frame(X, y).to_parquet(tmp_path / "one.parquet")

    def blocks():
        yield X[:100], y[:100]
        yield X[100:], y[100:]

    calls = []

    def some(*args):
        calls.append(1)
        if len(calls) == 2:
            raise error
        return numbers(*args)

    numbers = _batch_copy._numbers
    monkeypatch.setattr(_batch_copy, "_numbers", some)
    source, target = (blocks, None) if kind == "function" else (tmp_path / "one.parquet", "kind")
    with pytest.raises(DataError if isinstance(error, OSError) else KeyboardInterrupt, match=r"disk is full|\A\Z"):
        open_rows(source, target, cache=tmp_path / "copies")
    assert os.listdir(tmp_path / "copies") == []


def blocks_of(*blocks):
    yield from blocks


def test_blocks_of_other_kinds_cannot_be_copied(tmp_path):
    X, y = data()
    single = X.astype(np.float32)
    for other, message in [
        ((single, y), None),
        ((sparse.csr_array(X), y), "block 1: holds sparse float64 with labels, the blocks before hold dense float64"),
        ((X, y, np.ones(len(y))), "block 1: holds dense float64 with labels and weights"),
        ((X, NAMES[y]), "block 1: its labels are text"),
        ((X, None), "block 1: holds dense float64 with nothing else"),
    ]:
        source = functools.partial(blocks_of, (X, y), other)
        if message is None:
            assert read(open_rows(source, cache=tmp_path))[0].shape == (2 * len(X), 4)
            continue
        with pytest.raises(DataError, match=message):
            open_rows(source, cache=tmp_path)
    with pytest.raises(
        DataError, match="block 1: holds dense float64 with labels, the blocks before hold dense float32"
    ):
        open_rows(lambda: iter([(single, y), (X, y)]), cache=tmp_path)
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_a_folder_of_the_user_is_no_copy(tmp_path):
    X, y = data()
    path = csv_file(tmp_path, X, y)
    (tmp_path / "table.csv.rows").mkdir()
    (tmp_path / "table.csv.rows" / "thesis.txt").write_text("dear")
    with pytest.raises(DataError, match=r"a file of another kind, 'thesis.txt'; name another folder"):
        open_rows(path, target="kind")
    assert (tmp_path / "table.csv.rows" / "thesis.txt").read_text() == "dear"
