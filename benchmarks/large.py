"""Many rows: time, passes, memory and certified gap of the linear machines against LogisticRegression, in one run.

    python -m benchmarks.large [--sets gauss,d20k5] [--rows 1e6] [--C 0.01,1,100] [--repeats 3] [--data DIR]
    python -m benchmarks.large --limit 0.6 --rows 1e7   # from a file, with so many GB of memory for the process
    python -m benchmarks.large --path --rows 1e6 --C 0.01,0.1,1,10,100  # how often a path over C reads the rows
    python -m benchmarks.large --limit 0.6 --rows 2e6 --text   # from a LIBSVM file of words

CPU seconds of the whole ``fit`` on one core.  ``beyond`` is the peak of the resident memory beyond that before the fit.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skmargin import CrammerSingerSVC, WestonWatkinsSVC
from skmargin.datasets import open_rows
from skmargin.model_selection import margin_path

from .data import load
from .measure import memory, pinned, reset_peak_memory, timed

MACHINES = {"cs": CrammerSingerSVC, "ww": WestonWatkinsSVC}
REAL = ["connect-4", "shuttle", "covtype-20k", "letter", "mnist"]


def gauss(
    n: int, d: int = 50, k: int = 10, far: float = 2.0, share: Any = None, scales: tuple[float, float] = (0, 0),
    tails: float = np.inf, seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Classes that overlap, in float32; ``share`` of each class, features of many scales, heavy tails."""
    rng = np.random.default_rng(seed)
    means = far * rng.normal(size=(k, d)) / np.sqrt(d)
    y = rng.choice(k, size=n, p=share) if share is not None else rng.integers(k, size=n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    for at in range(0, n, 1 << 18):
        part = X[at : at + (1 << 18)]
        if np.isfinite(tails):
            part /= np.sqrt(rng.chisquare(tails, size=(len(part), 1)) / tails).astype(np.float32)
        part += means[y[at : at + (1 << 18)]].astype(np.float32)
        if scales != (0, 0):
            part *= np.logspace(*scales, d).astype(np.float32)
    return X, y


def jittered(name: str, times: int, directory: Path) -> tuple[np.ndarray, np.ndarray]:
    """A real set several times over, with a little noise."""
    data = load(name, directory)
    X = np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, dtype=np.float32)
    rng = np.random.default_rng(0)
    spread = X.std(axis=0, dtype=np.float64).astype(np.float32)
    parts = [X + 0.05 * spread * rng.standard_normal(X.shape, dtype=np.float32) for _ in range(times)]
    return np.concatenate(parts), np.tile(data.y, times)


def unequal(k: int, ratio: float) -> np.ndarray:
    """Shares of classes of which the largest is so many times the smallest."""
    share = np.geomspace(ratio, 1, k)
    return share / share.sum()


GENERATED: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {
    "gauss": gauss,
    "three": lambda n: gauss(n, 20, 3),
    "letters": lambda n: gauss(n, 16, 26),
    "imbalanced": lambda n: gauss(n, 30, 5, share=unequal(5, 100)),
    "scales": lambda n: gauss(n, 30, 6, scales=(-2, 2)),
    "tails": lambda n: gauss(n, 30, 6, tails=1.5),
    "wide": lambda n: gauss(n, 200, 10),
    "apart": lambda n: gauss(n, 50, 10, far=15.0),
    "nearly": lambda n: gauss(n, 50, 10, far=5.0),
}


def problems(names: list[str], rows: list[int], directory: Path | None) -> Iterator[tuple[str, Any, np.ndarray]]:
    """The data sets, one after the other: they may not fit together."""
    for name in names:
        shape = re.fullmatch(r"d(\d+)k(\d+)", name)  # so many features and classes
        if name in GENERATED or shape:
            for n in rows:
                yield f"{name} {n:.0e}", *(gauss(n, int(shape[1]), int(shape[2])) if shape else GENERATED[name](n))
        elif directory is None:
            raise SystemExit(f"{name} needs --data")
        elif "*" in name:
            base, _, times = name.partition("*")
            yield name, *jittered(base, int(times), directory)
        else:
            data = load(name, directory)
            yield name, data.X, data.y


def race(
    name: str, X: Any, y: np.ndarray, machines: list[str], Cs: list[float], tol: float, rival: bool, jobs: list[int],
    repeats: int,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """All fits on one data set, one after the other and then again; of the seconds the medians."""
    works = [{"machine": "logistic"}] if rival else []
    works += [{"machine": m, "C": C, "tol": tol, "n_jobs": j} for m in machines for C in Cs for j in jobs]
    found = [[fit(X, y, **{"C": 1.0, "tol": tol, "n_jobs": 1, **work}) for work in works] for _ in range(repeats)]
    for work, lines in zip(works, zip(*found, strict=True), strict=True):
        yield {"set": name, **work, **lines[0], "seconds": float(np.median([line["seconds"] for line in lines]))}


def fit(X: Any, y: np.ndarray, machine: str, C: float, tol: float, n_jobs: int) -> dict[str, Any]:
    """One fit."""
    reset_peak_memory()
    before = memory("VmRSS")
    ours = machine in MACHINES
    estimator = MACHINES[machine](C=C, tol=tol, n_jobs=n_jobs, random_state=0) if ours else LogisticRegression(tol=tol)
    with pinned(min(n_jobs, os.cpu_count() or 1)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted, seconds = timed(lambda: estimator.fit(X, y), n_jobs)
    line = {"seconds": seconds, "beyond": memory("VmHWM") - before}
    return {**line, "passes": fitted.n_iter_, "gap": fitted.dual_gap_} if ours else line


def write_rows(folder: Path, n: int, step: int = 1 << 18) -> tuple[Path, Path]:
    """Gaussian classes as .npy files, written piece by piece."""
    paths = folder / "X.npy", folder / "y.npy"
    X = np.lib.format.open_memmap(paths[0], mode="w+", dtype=np.float32, shape=(n, 50))
    y = np.empty(n, dtype=np.int64)
    rng = np.random.default_rng(0)
    means = 2.0 * rng.normal(size=(10, 50)) / np.sqrt(50)
    for at in range(0, n, step):
        y[at : at + step] = rng.integers(10, size=len(y[at : at + step]))
        X[at : at + step] = rng.standard_normal((len(y[at : at + step]), 50)) + means[y[at : at + step]]
    X.flush()
    np.save(paths[1], y)
    return paths


def counting(rows: Any) -> list[int]:
    """How often the rows will have been read: whole, or in pieces."""
    reads = [0]

    def counted(read: Any) -> Any:
        def inner(*ranges: Any) -> Any:
            reads[0] += 1
            return read(*ranges)

        return inner

    rows._batches = counted(rows._batches)
    if rows._pieces is not None:
        rows._pieces = counted(rows._pieces)
    return reads


def write_words(folder: Path, n: int, step: int = 1 << 15) -> Path:
    """Rows of words (benchmarks.dask) as a LIBSVM file, written piece by piece."""
    from .dask import text_part

    path = folder / "words.svm"
    with path.open("wb") as file:
        for part, at in enumerate(range(0, n, step)):
            X, y = text_part(part, min(step, n - at))
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # the types that it can write
            dump_svmlight_file(X, y, file)
    return path


def limited(gigabytes: float, n: int, out: Path | None, text: bool = False) -> int:
    """Fit a file in a process with so much memory; how often it is read, and the peak of its memory."""
    import resource

    with tempfile.TemporaryDirectory() as folder:
        paths: Any = write_words(Path(folder), n) if text else write_rows(Path(folder), n)
        size = (paths if text else paths[0]).stat().st_size / 1e9
        if os.fork() == 0:
            most = int(gigabytes * 1e9)
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            rows = open_rows(paths)
            reads = counting(rows)
            clf, seconds = timed(lambda: CrammerSingerSVC(random_state=0).fit(rows), 1)
            line = {
                "rows": n, "gigabytes": size, "limit": gigabytes, "seconds": seconds,
                "reads": reads[0], "gap": clf.dual_gap_, "peak": memory("VmHWM"),
            }  # fmt: skip
            show([line], out)
            os._exit(int(clf.dual_gap_ > 1e-3))
        return os.waitstatus_to_exitcode(os.wait()[1])


def path(n: int, Cs: list[float], out: Path | None) -> int:
    """Reads of the rows that each value of a path over C costs; the first one counts and samples them."""
    X, y = gauss(n)
    rows = open_rows(X, y)
    reads, lines = counting(rows), []
    for C, model in zip(Cs, margin_path(CrammerSingerSVC(random_state=0), rows, None, "C", Cs), strict=True):
        lines.append({"rows": n, "C": C, "passes": model.n_iter_, "gap": model.dual_gap_})
    show([{**line, "reads": reads[0]} for line in lines], out)
    return 0


def show(lines: list[dict[str, Any]], out: Path | None) -> None:
    """Print what was found, and write it."""
    for line in lines:
        print("  ".join(_text(key, value) for key, value in line.items()), flush=True)
    write(lines, out)


def write(lines: list[dict[str, Any]], out: Path | None) -> None:
    """Write what was found so far."""
    if out is None:
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for line in lines for key in line)))
        writer.writeheader()
        writer.writerows(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="gauss")
    parser.add_argument("--rows", default="1e6")
    parser.add_argument("--C", default="1")
    parser.add_argument("--loss", default="cs,ww")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--no-rival", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--path", action="store_true")
    parser.add_argument("--text", action="store_true")
    args = parser.parse_args(argv)
    rows = [int(float(n)) for n in args.rows.split(",")]
    if args.limit:
        return limited(args.limit, rows[0], args.out, args.text)
    Cs = [float(C) for C in args.C.split(",")]
    if args.path:
        return path(rows[0], Cs, args.out)
    jobs = [int(j) for j in args.jobs.split(",")]
    names = REAL if args.sets == "real" else args.sets.split(",")
    found: list[dict[str, Any]] = []
    for name, X, y in problems(names, rows, args.data):
        lines = list(race(name, X, y, args.loss.split(","), Cs, args.tol, not args.no_rival, jobs, args.repeats))
        show(lines, None)
        found += lines
        write(found, args.out)
    return int(any(line.get("gap", 0) > args.tol for line in found))


def _text(key: str, value: Any) -> str:
    if key in ("set", "machine"):
        return f"{value:<14}"
    return f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"


if __name__ == "__main__":
    sys.exit(main())
