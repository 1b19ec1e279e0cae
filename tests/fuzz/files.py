"""Coverage-guided mutation of files: ``python -m tests.fuzz.files csv -runs=100000`` (Atheris; or ``make fuzz-files``).

A reader gives data or refuses them in a sentence; anything else ends the run with a traceback and the input in
``crash-*``.  Without the name of a reader each has its turn.  Further arguments are libFuzzer's.
"""

import contextlib
import inspect
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LIBSVM = b"".join(b"%d 1:%.3f 3:%d 7:-1e-3 # c\n" % (i % 3, i / 7, i) for i in range(8))
CSV = b"a,b,kind\n" + b"".join(b'%d,%.2f,"k %d"\n' % (i, i / 3, i % 3) for i in range(8))


def _parquet():
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(9.0), "b": np.arange(9), "kind": list("abcabcabc")}), buffer)
    return buffer.getvalue()


def _model():
    from skmargin import CrammerSingerSVC
    from skmargin.model_files import save_model

    X, y = np.random.default_rng(0).standard_normal((12, 2)), np.arange(12) % 3
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skm"
        save_model(CrammerSingerSVC().fit(X, y), path)
        return path.read_bytes()


READERS = {"csv": lambda: CSV, "libsvm": lambda: LIBSVM, "parquet": _parquet, "skm": _model}


def reader(name):
    """What reads a file of this kind, and the error by which it refuses one."""
    from skmargin import datasets
    from skmargin.model_files import load_model

    if name == "skm":
        return load_model, ValueError
    read = {"csv": lambda path: datasets.read_csv(path, "kind"), "libsvm": datasets.read_libsvm}
    return read.get(name, lambda path: datasets.read_parquet(path, "kind")), datasets.DataError


def _written(data):
    path = Path(tempfile.mkdtemp(prefix="skmargin-fuzz-")) / "good"
    path.write_bytes(data)
    return path


def fuzz(name, arguments):
    """Let Atheris mutate a good file of this kind until it is told to stop."""
    import atheris

    read, refused = reader(name)
    read(_written(READERS[name]()))  # imports all that it needs
    for module in [
        m for key, m in sys.modules.items() if key.startswith(("skmargin.datasets", "skmargin.model_files"))
    ]:
        for thing in vars(module).values():
            for function in vars(thing).values() if inspect.isclass(thing) else [thing]:
                if inspect.isfunction(function) and function.__module__ == module.__name__:
                    atheris.instrument_func(function)
    folder = Path(tempfile.mkdtemp(prefix=f"skmargin-fuzz-{name}-"))
    path = folder / "mutated"
    corpus = folder / "corpus"
    corpus.mkdir()
    (corpus / "good").write_bytes(READERS[name]())

    def one(data):
        path.write_bytes(data)
        with contextlib.suppress(refused):
            read(path)

    atheris.Setup([f"fuzz-{name}", str(corpus), "-len_control=0", "-max_len=4096", *arguments], one)
    atheris.Fuzz()


def main():
    """One reader, or each in a process of its own: libFuzzer ends the process."""
    names, rest = [a for a in sys.argv[1:] if a in READERS], [a for a in sys.argv[1:] if a not in READERS]
    if len(names) == 1:
        fuzz(names[0], rest)
        return
    for name in names or READERS:
        arguments = rest or ["-max_total_time=60"]
        done = subprocess.run([sys.executable, "-m", "tests.fuzz.files", name, *arguments], check=False)
        if done.returncode:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
