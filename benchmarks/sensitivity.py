"""What each constant that steers speed costs when it is halved or doubled (solvers/tuning.py, _core/tuning.hpp).

    python -m benchmarks.sensitivity --data DIRECTORY [--groups linear kernel] [--repeats 5] [--output table.json]

The problems are generated ones of several sizes, separabilities, scales, imbalances and sparsities, and files of LIBSVM
(letter, pendigits, segment, vowel, connect-4, news20, dermatology) where a directory is given: no constant was set on
any of them.  Each fit is timed with the default and with the changed constant, one after the other, in CPU time of this
process.  Where one run of a changed constant has the same result and about the same time as the default, that is its
cost; else the ratio of the medians of interleaved repeats is.  Printed are, for each constant, the geometric mean and
the largest ratio over its problems, halved and doubled.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import skmargin as sm
from benchmarks.data import load
from skmargin.solvers.tuning import DEFAULT, Tuning

core = import_module("skmargin._core._ext")
Constants = Callable[[], AbstractContextManager[Tuning]]  # those of the core are in force inside
SAME = 0.12  # relative difference of two CPU times that one run cannot tell from none
LEAST = 0.01  # seconds of CPU time a measurement: short fits are repeated within it


class Case(NamedTuple):
    """A problem and the machine that is fitted to it."""

    name: str
    make: Callable[[], Any]
    X: Any
    y: np.ndarray

    def run(self, constants: Constants, times: int = 1) -> tuple[float, str]:
        """CPU seconds of a fit (and a prediction), and a digest of the result."""
        with constants() as tuning:
            start = time.process_time()
            for _ in range(times):
                model = self.make()
                model._tuning = tuning
                model.fit(self.X, self.y)
                labels = model.predict(self.X)
            seconds = (time.process_time() - start) / times
        digest = hashlib.sha256(np.ascontiguousarray(labels).tobytes())
        for name in ("coef_", "dual_coef_", "intercept_", "n_iter_"):
            digest.update(np.ascontiguousarray(getattr(model, name, 0)).tobytes())
        return seconds, digest.hexdigest()


# -- problems ---------------------------------------------------------------------------------------------------------


def generated(
    n: int, d: int, k: int, *, noise: float = 1.0, scale: float = 1.0, skew: float = 0.0, filled: float = 1.0,
    offset: float = 0.0, seed: int = 0,
) -> tuple[Any, np.ndarray]:  # fmt: skip
    """Gaussian classes: ``noise`` beside their distance, ``skew`` to the first class, share of numbers ``filled``."""
    rng = np.random.default_rng(seed)
    share = np.exp(-skew * np.arange(k))
    y = np.r_[np.arange(k), rng.choice(k, n - k, p=share / share.sum())]
    X = rng.standard_normal((k, d))[y] + noise * rng.standard_normal((n, d))
    X *= scale * np.exp(0.5 * rng.standard_normal(d))
    if filled < 1:
        return sparse.csr_array(X * (rng.random((n, d)) < filled)), y
    return X + offset, y


def problems(directory: Path | None) -> dict[str, tuple[Any, np.ndarray]]:
    """All problems by name."""
    found = {
        "separable": generated(3000, 30, 5, noise=0.5),
        "noisy": generated(5000, 20, 6, noise=3.0, seed=1),
        "skewed": generated(4000, 8, 4, noise=2.0, skew=1.2, seed=2),
        "wide": generated(150, 600, 6, noise=4.0, seed=3),
        "far": generated(1500, 12, 5, noise=1.5, offset=30.0, seed=4),
        "small scale": generated(2000, 12, 4, noise=2.0, scale=0.05, seed=5),
        "many classes": generated(1200, 30, 25, noise=1.5, seed=6),
        "sparse": generated(1200, 400, 5, noise=2.0, filled=0.03, seed=7),
        "tall": generated(20000, 6, 3, noise=2.5, seed=8),
        "little": generated(90, 5, 3, noise=1.5, seed=9),
    }
    if directory is None:
        return found
    for name, most in (
        ("letter", 2500), ("pendigits", 2500), ("segment", 2310), ("vowel", 990), ("connect-4", 3000),
        ("news20", 1200), ("dermatology", 366),
    ):  # fmt: skip
        data = load(name, directory)
        rows = np.random.default_rng(0).permutation(data.X.shape[0])[:most]
        found[name] = data.X[rows], data.y[rows]
    return found


def cases(group: str, data: dict[str, tuple[Any, np.ndarray]]) -> Iterator[Case]:
    """The problems on which a group of constants acts."""

    def of(names: str, make: Callable[[], Any], label: str, most: int = 10**9) -> Iterator[Case]:
        for name in names.split(","):
            if name in data:
                X, y = data[name]
                yield Case(f"{label} {name}", make, X[:most], y[:most])

    if group == "common":
        few = "noisy,wide,sparse,vowel,segment"
        yield from of(few, lambda: sm.CrammerSingerSVC(random_state=0), "CS")
        yield from of("little,vowel,segment", lambda: sm.CrammerSingerSVC(kernel="rbf", random_state=0), "CS rbf")
        yield from of("vowel,segment,wide", lambda: sm.M3SVC(random_state=0), "M3")
        yield from of("vowel,little", lambda: sm.LpNormSVC(p=1.2, random_state=0), "lp")
        yield from of("segment,sparse", lambda: sm.ODMClassifier(random_state=0), "ODM")
        yield from of("segment,vowel", lambda: sm.LDMClassifier(random_state=0), "LDM", 700)
    if group == "linear":
        few = ",".join(data)
        for C in (0.05, 5.0):
            yield from of(few, lambda C=C: sm.CrammerSingerSVC(C, random_state=0), f"CS C={C:g}")
        yield from of(few, lambda: sm.WestonWatkinsSVC(0.5, random_state=0), "WW")
    if group == "kernel":
        few = "noisy,vowel,segment,pendigits,dermatology,separable"
        for C in (1.0, 100.0):
            yield from of(
                few, lambda C=C: sm.CrammerSingerSVC(C, kernel="rbf", random_state=0), f"CS rbf C={C:g}", 1500
            )
        yield from of("noisy,letter", lambda: sm.WestonWatkinsSVC(kernel="rbf", random_state=0), "WW rbf", 2500)
    if group == "odm":
        yield from of("noisy,skewed,vowel,segment,sparse,wide", lambda: sm.ODMClassifier(random_state=0), "ODM", 1500)
        yield from of("vowel,separable", lambda: sm.ODMClassifier(kernel="rbf", random_state=0), "ODM rbf", 600)
    if group == "block_norm":
        for p in (1.2, 4.0):
            few = "separable,noisy,vowel,dermatology,sparse,little,wide"
            yield from of(few, lambda p=p: sm.LpNormSVC(p=p, random_state=0), f"lp p={p:g}", 1500)
        yield from of("vowel,dermatology", lambda: sm.LpNormSVC(kernel="rbf", random_state=0), "lp rbf", 600)
    if group == "multi_margin":
        yield from of("separable,vowel", lambda: sm.MultiMarginSVC(0.01, solver="svrg", random_state=0), "SVRG", 800)
        hidden = {name: (X, np.where(np.arange(len(y)) % 5, -1, y)) for name, (X, y) in data.items()}
        for name in ("vowel", "separable", "segment"):
            if name in hidden:
                X, y = hidden[name]
                yield Case(f"semi {name}", lambda: sm.SemiSupervisedMarginSVC(random_state=0), X, y)
    if group == "primal":
        few = "noisy,skewed,wide,sparse,segment,vowel,letter,connect-4,many classes"
        for loss in ("hinge", "log_loss"):
            yield from of(few, lambda loss=loss: sm.M3SVC(loss=loss, random_state=0), f"M3 {loss}", 2000)
        yield from of("vowel", lambda: sm.M3SVC(kernel="rbf"), "M3 rbf", 600)
    if group == "two_class":
        few = "vowel,segment,dermatology,noisy"
        yield from of(few, lambda: sm.LDMClassifier(random_state=0), "LDM", 700)
        yield from of(
            "noisy,sparse,wide", lambda: sm.LDMClassifier(kernel="linear", random_state=0), "LDM linear", 1500
        )
        yield from of(few, lambda: sm.ULDMClassifier(alpha=[1e-4, 1e-2], cv=3), "ULDM", 900)
        yield from of("noisy,wide,sparse", lambda: sm.LSSVC(kernel="linear"), "LS linear", 2500)


# -- measurement ------------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """Ratio of CPU times over the problems of a constant."""

    mean: float
    worst: float
    where: str


class CoreGroup(NamedTuple):
    """A structure of the core: its class, the functions that take it, their argument, and the part of it."""

    structure: str
    functions: tuple[str, ...]
    argument: str = "tuning"
    part: str | None = None
    problems: str = "linear"


ASCENT = "block_ascent", "block_norm_ascent"
CORE = {
    "core.block_ascent": CoreGroup("BlockAscentTuning", ASCENT),
    "core.face": CoreGroup("BlockAscentTuning", ASCENT, part="face"),
    "core.proximal": CoreGroup("BlockAscentTuning", ASCENT, part="proximal"),
    "core.circulation": CoreGroup("BlockAscentTuning", ASCENT, part="circulation"),
    "core.proximal_weight": CoreGroup("ProximalWeightTuning", ASCENT, "weight"),
    "core.kernel_ascent": CoreGroup("KernelAscentTuning", ("kernel_ascent",), problems="kernel"),
    "core.newton": CoreGroup("NewtonTuning", ("newton",), problems="odm"),
    "core.box": CoreGroup("BoxTuning", ("box_ascent",), problems="two_class"),
    "core.ridge": CoreGroup("RidgeTuning", ("ridge_symmetric",), problems="two_class"),
}


def names(group: str) -> list[str]:
    """The constants of a group."""
    if group not in CORE:
        return [one.name for one in fields(getattr(DEFAULT, group))]
    whole = getattr(core, CORE[group].structure)()
    part = whole if CORE[group].part is None else getattr(whole, CORE[group].part)
    return [name for name in dir(part) if isinstance(getattr(part, name), (bool, int, float)) and name[0] != "_"]


def multiplied(value: Any, factor: float) -> Any:
    """Whole numbers stay whole, and at least one."""
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


@contextmanager
def usual_constants() -> Iterator[Tuning]:
    """The constants as they are."""
    yield DEFAULT


def changed(group: str, name: str, factor: float) -> Constants:
    """The constants with one of them multiplied."""

    @contextmanager
    def of_python() -> Iterator[Tuning]:
        yield DEFAULT.changed(**{group: {name: multiplied(getattr(getattr(DEFAULT, group), name), factor)}})

    @contextmanager
    def of_core() -> Iterator[Tuning]:
        found = CORE[group]
        whole = getattr(core, found.structure)()
        part = whole if found.part is None else getattr(whole, found.part)
        setattr(part, name, multiplied(getattr(part, name), factor))
        if found.part is not None:
            setattr(whole, found.part, part)
        before = {function: getattr(core, function) for function in found.functions}
        try:
            for function, call in before.items():
                setattr(core, function, partial(call, **{found.argument: whole}))
            yield DEFAULT
        finally:
            for function, call in before.items():
                setattr(core, function, call)

    return of_core if group in CORE else of_python


def ratio(case: Case, usual: tuple[float, str], constants: Constants, times: int, repeats: int) -> float:
    """CPU time with these constants beside the usual time."""
    seconds, digest = case.run(constants, times)
    if digest == usual[1] and (repeats == 0 or abs(seconds / usual[0] - 1) < SAME):
        return 1.0
    if repeats == 0:
        return seconds / usual[0]
    pairs = [(case.run(usual_constants, times)[0], case.run(constants, times)[0]) for _ in range(repeats)]
    before, after = np.median(pairs, axis=0)
    return float(after / before)


def costs(group: str, data: dict[str, Any], repeats: int) -> Iterator[tuple[str, dict[str, Cost]]]:
    """For each constant of a group what halving and doubling it costs."""
    some = []
    for case in cases(CORE[group].problems if group in CORE else group, data):
        seconds, _ = case.run(usual_constants)
        times = max(1, round(LEAST / max(seconds, 1e-4))) if repeats else 1
        runs = [case.run(usual_constants, times) for _ in range(3 if repeats else 1)]
        some.append((case, times, (float(np.median([run[0] for run in runs])), runs[0][1])))
    for constant in names(group):
        found = {}
        for label, factor in (("halved", 0.5), ("doubled", 2.0)):
            constants = changed(group, constant, factor)
            ratios = {case.name: ratio(case, usual, constants, times, repeats) for case, times, usual in some}
            worst = max(ratios, key=lambda name: ratios[name])
            mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
            found[label] = Cost(mean, ratios[worst], worst)
        yield constant, found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of LIBSVM files")
    parser.add_argument("--groups", nargs="+", default=[*(one.name for one in fields(Tuning)), *CORE])
    parser.add_argument("--repeats", type=int, default=5, help="0: one run each, and none that gave the same result")
    parser.add_argument("--output", type=Path, help="JSON file for the table")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data, table = problems(options.data), {}
    for group in options.groups:
        for name, found in costs(group, data, options.repeats):
            table[f"{group}.{name}"] = found
            half, double = found["halved"], found["doubled"]
            print(
                f"{group + '.' + name:36} halved {half.mean:5.2f} (up to {half.worst:5.2f}, {half.where}), "
                f"doubled {double.mean:5.2f} (up to {double.worst:5.2f}, {double.where})",
                flush=True,
            )
    if options.output is not None:
        options.output.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
