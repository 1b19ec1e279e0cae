"""Very many classes: certified fits on generated text, against scikit-learn and trees.

    .venv/bin/python -m benchmarks.many_classes                         # k = 1,000: a minute
    .venv/bin/python -m benchmarks.many_classes --size small-2k         # k = 2,000 and 10,000 (small-10k), n = 20,000
    .venv/bin/python -m benchmarks.many_classes --size 10k              # k = 10,000, n = 50,000 (also 1k, 3k, 20k, 30k)
    .venv/bin/python -m benchmarks.many_classes --size large            # k = 10,000, n = 200,000, d = 200,000
    .venv/bin/python -m benchmarks.many_classes --size huge --rivals "" # k = 100,000, n = 400,000: an hour
    .venv/bin/python -m benchmarks.many_classes --top                   # predict_top against blocks of SciPy's product
    .venv/bin/python -m benchmarks.many_classes --data DIR              # sector and news20 as LIBSVM files in DIR

CPU seconds of one thread, peak memory of the process beyond the rows, test accuracy of the best and the five best
classes, and macro-F1.  One-vs-rest fits one machine a class: of more than --whole classes it is timed on a sample of
them, drawn with equal chances, and multiplied; its accuracy is then left out.  Each line is added to
benchmarks/results/many-classes.csv (--out), in place of an older one of the same data and machine;
``python -m benchmarks.many_classes_page`` writes the tables and the picture of docs/many_classes.md from it.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import skmargin

from .data import load
from .measure import memory, pinned, reset_peak_memory

SIZES = {
    "small": (20_000, 10_000, 1000),
    "small-2k": (20_000, 10_000, 2000),
    "small-10k": (20_000, 10_000, 10_000),
    "1k": (50_000, 50_000, 1000),
    "3k": (50_000, 50_000, 3000),
    "10k": (50_000, 50_000, 10_000),
    "20k": (80_000, 100_000, 20_000),
    "30k": (50_000, 50_000, 30_000),
    "large": (200_000, 200_000, 10_000),
    "huge": (400_000, 200_000, 100_000),
}
TEST = 20_000  # rows
OVR_CLASSES = 40  # on which one-vs-rest is timed
RESULTS = Path(__file__).parent / "results" / "many-classes.csv"


def text_like(n: int, d: int, k: int, more: int = 0, words: int = 60, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows of words by tf-idf, of unit length in float32, and classes of power-law sizes, each in one of the first n.

    There are ``more`` rows behind those.

    Of the words a good half are those of any text (a power law), the others of a group of about twenty classes or of
    the class itself; classes of a group are told apart by few words.
    """
    rng = np.random.default_rng(seed)
    size = 1 / np.arange(1, k + 1)
    y = np.concatenate([np.arange(k), rng.choice(k, size=n + more - k, p=size / size.sum())])
    rng.shuffle(y[:n])
    n += more
    common, flat = (np.cumsum(np.arange(1, d + 1) ** -power) for power in (1.05, 0.7))
    group = rng.integers(max(1, k // 20), size=k)
    of_group = np.searchsorted(flat / flat[-1], rng.random((group.max() + 1, 100)))
    of_class = np.searchsorted(flat / flat[-1], rng.random((k, 40)))
    row = np.repeat(np.arange(n, dtype=np.int32), words)
    kind, label = rng.random(len(row)), y[row]
    word = np.searchsorted(common / common[-1], rng.random(len(row))).astype(np.int32)
    shared, own = np.flatnonzero((kind > 0.55) & (kind <= 0.92)), np.flatnonzero(kind > 0.92)
    word[shared] = of_group[group[label[shared]], (100 * rng.random(len(shared)) ** 2).astype(int)]
    word[own] = of_class[label[own], (40 * rng.random(len(own)) ** 1.5).astype(int)]
    X = sparse.coo_array((np.ones(len(row), np.float32), (row, word)), shape=(n, d)).tocsr()
    idf = np.log((1 + n) / (1 + np.bincount(X.indices, minlength=d))) + 1
    X.data = ((1 + np.log(X.data)) * idf[X.indices]).astype(np.float32)
    length = np.sqrt(np.add.reduceat(X.data.astype(float) ** 2, X.indptr[:-1]))
    X.data /= np.repeat(length, np.diff(X.indptr)).astype(np.float32)
    return X, y


class Split(NamedTuple):
    """Rows to fit and to judge by."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


@dataclass
class Line:
    """What was measured of one machine; what is not known stays empty."""

    data: str
    rows: int
    features: int
    classes: int
    machine: str
    seconds: float
    timed_classes: int = 0  # 0: all of them
    gib: float | None = None
    gap: float | None = None
    passes: int | None = None
    top1: float | None = None
    top5: float | None = None
    f1: float | None = None

    def judge(self, y: np.ndarray, best: np.ndarray, five: np.ndarray | None) -> None:
        """Accuracy of the first and of five, and macro-F1."""
        self.top1, self.f1 = float(np.mean(best == y)), float(f1_score(y, best, average="macro"))
        if five is not None:
            self.top5 = float(np.mean((five == y[:, None]).any(axis=1)))

    def keep(self, path: Path) -> None:
        """Print it, and put it in the place of what the file holds of the same data and machine."""
        known = {key: "" if value is None else value for key, value in asdict(self).items()}
        print(", ".join(f"{key} {value}" for key, value in known.items() if value != ""), flush=True)
        lines = list(csv.DictReader(path.open(newline=""))) if path.exists() else []
        lines = [line for line in lines if (line["data"], line["machine"]) != (self.data, self.machine)]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(known), lineterminator="\n")
            writer.writeheader()
            writer.writerows([*lines, {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in known.items()}])


def line_of(data: Split, machine: str, seconds: float) -> Line:
    """A line that only knows the time."""
    return Line(data.name, *data.X.shape, len(np.unique(data.y)), machine, seconds)


def fit_ours(data: Split, machine: Any) -> Line:
    """One of our machines: time, memory, certificate, quality."""
    reset_peak_memory()
    before = memory("VmRSS")
    start = time.process_time()
    machine.fit(data.X, data.y)
    line = line_of(data, type(machine).__name__, time.process_time() - start)
    line.gib = (memory("VmHWM") - before) / 1024
    line.gap, line.passes = float(machine.dual_gap_), int(machine.n_iter_)
    five = machine.predict_top(data.X_test, 5)[0]
    line.judge(data.y_test, five[:, 0], five)
    return line


def one_vs_rest(data: Split, name: str, make: Callable[[], Any], whole: int) -> Line:
    """One machine a class, all of them or timed on some."""
    classes = np.unique(data.y)
    if len(classes) <= whole:
        start = time.process_time()
        model = OneVsRestClassifier(make()).fit(data.X, data.y)
        line = line_of(data, name, time.process_time() - start)
        line.judge(data.y_test, model.predict(data.X_test), None)
        return line
    some = np.random.default_rng(0).choice(classes, min(OVR_CLASSES, len(classes)), replace=False)
    start = time.process_time()
    for label in some:
        make().fit(data.X, data.y == label)
    line = line_of(data, name, (time.process_time() - start) * len(classes) / len(some))
    line.timed_classes = len(some)
    return line


def fit_ovr(data: Split, C: float, whole: int) -> Line:
    """LinearSVC, one machine a class."""
    return one_vs_rest(data, "LinearSVC", lambda: LinearSVC(C=C, tol=1e-2, loss="hinge"), whole)


def fit_sgd(data: Split, C: float, whole: int) -> Line:
    """SGDClassifier, one machine a class, five passes."""
    alpha = 1 / (C * len(data.y))
    return one_vs_rest(
        data, "SGDClassifier", lambda: SGDClassifier(alpha=alpha, max_iter=5, tol=None, random_state=0), whole
    )


def fit_omikuji(data: Split, C: float, whole: int) -> Line:
    """Trees of labels (Omikuji): approximate, no joint problem and no certificate."""
    import omikuji

    classes, codes = np.unique(data.y, return_inverse=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        with path.open("w") as file:
            file.write(f"{data.X.shape[0]} {data.X.shape[1]} {len(classes)}\n")
            for i, code in enumerate(codes):
                at = slice(data.X.indptr[i], data.X.indptr[i + 1])
                pairs = zip(data.X.indices[at].tolist(), data.X.data[at].tolist(), strict=True)
                file.write(f"{code} " + " ".join(f"{j}:{x:.6g}" for j, x in pairs) + "\n")
        settings = omikuji.Model.default_hyper_param()
        start = time.process_time()
        model = omikuji.Model.train_on_data(str(path), settings, n_threads=1)
        line = line_of(data, "Omikuji", time.process_time() - start)
    five = np.zeros((len(data.y_test), 5), dtype=np.int64)
    for i in range(len(five)):
        at = slice(data.X_test.indptr[i], data.X_test.indptr[i + 1])
        pairs = list(zip(data.X_test.indices[at].tolist(), data.X_test.data[at].tolist(), strict=True))
        found = [label for label, _ in model.predict(pairs, top_k=5)]
        five[i] = (found + [found[-1]] * 5)[:5]
    line.judge(data.y_test, classes[five[:, 0]], classes[five])
    return line


RIVALS: dict[str, Callable[[Split, float, int], Line]] = {"ovr": fit_ovr, "sgd": fit_sgd, "omikuji": fit_omikuji}


def compare_top(n: int, d: int, k: int) -> None:
    """`predict_top` of a machine with random sparse class vectors against products of SciPy in blocks."""
    X, _ = text_like(n, d, 1000)
    rng, stored = np.random.default_rng(0), 500  # numbers of each class vector
    features = np.cumsum(rng.integers(1, d // stored, size=(k, stored), dtype=np.int32), axis=1, dtype=np.int32)
    values = rng.standard_normal(k * stored, dtype=np.float32)
    W = sparse.csr_array((values, features.ravel(), np.arange(0, k * stored + 1, stored, dtype=np.int32)), (k, d))
    machine = skmargin.CrammerSingerSVC(n_jobs=1)
    machine.classes_, machine.n_features_in_, machine.n_iter_ = np.arange(k), d, 1
    machine.coef_, machine.intercept_ = W, np.zeros(k)
    reset_peak_memory()
    before = memory("VmRSS")
    start = time.process_time()
    _, scores = machine.predict_top(X, 5)
    ours = time.process_time() - start
    peak = (memory("VmHWM") - before) / 1024
    some, step = 500, 250  # rows of the product: it is multiplied
    start = time.process_time()
    for at in range(0, some, step):
        dense = (X[at : at + step] @ W.T).toarray()
        best = np.argpartition(-dense, 5, axis=1)[:, :5]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(dense, best, 1), axis=1), 1)
        np.testing.assert_allclose(np.take_along_axis(dense, best, 1), scores[at : at + step], rtol=1e-4)
    product = (time.process_time() - start) * n / some
    block = np.asfortranarray(W[:2000].toarray().T)  # (d, 2000): dense class vectors, some at a time
    start = time.process_time()
    X[:2000] @ block
    dense_product = (time.process_time() - start) * n / 2000 * k / 2000
    print(
        f"predict_top, {n} rows, {k} classes, {d} features: {ours:.1f} s, peak {peak:.2f} GiB; SciPy in blocks "
        f"(extrapolated): sparse product {product:.1f} s, dense product {dense_product:.1f} s "
        f"({product / ours:.1f} and {dense_product / ours:.1f} times)"
    )


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--machines", default="CrammerSingerSVC", help="comma-separated names of our machines")
    parser.add_argument("--rivals", default="ovr,sgd", help=f"some of {','.join(RIVALS)}")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--jobs", type=int, default=1, help="threads of our machines")
    parser.add_argument("--verbose", type=int, default=0)
    parser.add_argument("--whole", type=int, default=1000, help="classes up to which one-vs-rest is fitted to all")
    parser.add_argument("--out", type=Path, default=RESULTS, help="CSV file that lines are put into")
    parser.add_argument("--top", action="store_true", help="predict_top instead of fits")
    parser.add_argument(
        "--data", type=Path, help="folder with sector and news20 as LIBSVM files: fits on these instead"
    )
    args = parser.parse_args()
    with pinned(args.jobs):
        if args.top:
            compare_top(100_000, 200_000, 100_000)
            return
        for data in _tasks(args):
            for machine in filter(None, args.machines.split(",")):
                made = getattr(skmargin, machine)(C=args.C, tol=args.tol, n_jobs=args.jobs, verbose=args.verbose)
                fit_ours(data, made).keep(args.out)
            for rival in filter(None, args.rivals.split(",")):
                RIVALS[rival](data, args.C, args.whole).keep(args.out)


def _tasks(args: argparse.Namespace) -> list[Split]:
    if not args.data:
        n, d, k = SIZES[args.size]
        X, y = text_like(n, d, k, TEST)
        return [Split(args.size, X[:n], y[:n], X[n:], y[n:])]
    found = []
    for name in ("sector", "news20"):
        data = load(name, args.data)
        if len(data.y_test) == len(data.y):  # there is no test part
            order = np.random.default_rng(0).permutation(len(data.y))
            fit, test = order[len(order) // 5 :], order[: len(order) // 5]
            data = data._replace(X=data.X[fit], y=data.y[fit], X_test=data.X[test], y_test=data.y[test])
        found.append(Split(name, _short(data.X), data.y, _short(data.X_test), data.y_test))
    return found


def _short(X: Any) -> Any:
    """Rows in float32 with the indices that LinearSVC takes."""
    return sparse.csr_array((X.data.astype(np.float32), X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)


if __name__ == "__main__":
    main()
