"""Random machines on random rows: every estimator, container, number type, scale, weight and parameter."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

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


@dataclass
class Case:
    """A machine and what it is fitted on; ``rows`` and ``labels`` are plain, ``X`` and ``y`` as the user has them."""

    model: Any
    X: Any
    y: Any
    weight: Any
    rows: np.ndarray
    labels: np.ndarray

    def fit(self):
        """The fitted machine and the sentences of its warnings; a warning of any other kind is an error."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("error")
            warnings.simplefilter("always", ConvergenceWarning)
            self.model.fit(self.X, self.y, *([] if self.weight is None else [self.weight]))
        return self.model, [str(warning.message) for warning in heard]


def _normal(rng, n):
    return rng.standard_normal(n)


# One column of the rows each: what users have in their tables.
COLUMNS = {
    "normal": _normal,
    "zero": lambda rng, n: np.zeros(n),
    "constant": lambda rng, n: np.full(n, 10.0 ** rng.integers(-8, 13) * rng.uniform(1, 10)),
    "id": lambda rng, n: 10.0 ** rng.integers(3, 13) + rng.permutation(n),
    "timestamp": lambda rng, n: 1.7e9 * 10.0 ** rng.choice([0, 3, 6, 9]) + rng.uniform(0, 86400 * 365, n),
    "offset": lambda rng, n: _normal(rng, n) + 10.0 ** rng.integers(0, 14),
    "tiny": lambda rng, n: _normal(rng, n) * 10.0 ** rng.integers(-30, 0),
    "huge": lambda rng, n: _normal(rng, n) * 10.0 ** rng.integers(0, 15),
    "rare": lambda rng, n: (rng.random(n) < 0.1) * _normal(rng, n),
    "binary": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "year": lambda rng, n: rng.integers(1950, 2030, n).astype(float),
    "nearly constant": lambda rng, n: np.where(np.arange(n) == 0, 1.0, 10.0 ** rng.integers(0, 12)),
}
TAME = ("normal", "zero", "rare", "binary")


def _unaligned(X):
    raw = np.zeros(X.nbytes + 1, np.uint8)
    out = np.ndarray(X.shape, X.dtype, raw.data, 1)
    out[...] = X
    return out


def _read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def _wide_csr(X):
    X = sparse.csr_array(X)
    return sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


CONTAINERS = {
    "array": lambda X: X,
    "columns": np.asfortranarray,
    "read-only": _read_only,
    "every second": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "unaligned": _unaligned,
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csr, 64-bit indices": _wide_csr,
    "csc": sparse.csc_array,
}
LABELS = {
    "numbers": lambda codes: codes,
    "negative": lambda codes: 3 - 2 * codes,
    "strings": lambda codes: np.array(["ant", "bee", "cat", "dog", "eel", "fox"])[codes],
    "objects": lambda codes: np.array(["ant", "bee", "cat", "dog", "eel", "fox"], dtype=object)[codes],
    "floats": lambda codes: codes / 1.0,
}
KERNELS = ("rbf", "poly", "sigmoid", "laplacian")


def powers(low, high):
    """Numbers of all sizes between two powers of ten."""
    return st.integers(low, high).map(lambda e: 10.0**e)


EXTREME = powers(-300, 300)


def _kernel(draw):
    if not draw(st.integers(0, 3)):
        kernel = draw(st.sampled_from(KERNELS))
        gamma = draw(st.one_of(st.sampled_from(["scale", "auto"]), powers(-3, 3), powers(-12, 12), EXTREME))
        return {
            "kernel": kernel,
            "gamma": gamma,
            "degree": draw(st.integers(1, 3)),
            "coef0": draw(st.sampled_from([0.0, 1.0])),
        }
    return {"kernel": "linear"}


def _shared(draw, wild):
    C = draw(powers(-4, 4) if not wild else st.one_of(powers(-4, 4), powers(-4, 4), powers(-15, 15), EXTREME))
    tol = draw(st.sampled_from([1e-2, 1e-3, 1e-3, 1e-5, *([10.0, 1e-12] if wild else [])]))
    return {"C": C, "tol": tol, "fit_intercept": draw(st.booleans()), "random_state": 0}


def _machine(draw, wild):
    kind = draw(st.sampled_from(sorted(MACHINES)))
    return MACHINES[kind](draw, wild)


def _dual(kind, **own):
    def make(draw, wild):
        parameters = {name: draw(values) for name, values in own.items()}
        return kind(**_shared(draw, wild), **_kernel(draw), **parameters, max_iter=draw(st.sampled_from([30, 1000])))

    return make


def _m3(draw, wild):
    shared = _shared(draw, wild)
    alpha = shared.pop("C")
    kernel = _kernel(draw)
    return M3SVC(
        alpha=alpha, **shared, **kernel,
        p=draw(st.sampled_from([1, 1.5, 2, 4, 8])), loss=draw(st.sampled_from(["hinge", "log_loss"])),
        delta=draw(st.sampled_from([0.0, 1e-2, 1.0])), eps=draw(st.sampled_from([0.0, 0.0, 1e-3, 1.0])),
        solver=draw(st.sampled_from(["auto", "auto", "newton-cg", "lbfgs", "adam"])),
        max_iter=draw(st.sampled_from([20, 200])),
    )  # fmt: skip


def _pairwise(kind, **own):
    def make(draw, wild):
        shared = _shared(draw, wild)
        if kind is ULDMClassifier:
            shared["alpha"] = shared.pop("C")
        parameters = {name: draw(values) for name, values in own.items()}
        multi = draw(st.sampled_from(["fuzzy_pairwise", "ovo", "ovr"]))
        basis = draw(st.sampled_from(["auto", "auto", "random", "kmeans++", "cholesky"]))
        return kind(**shared, **_kernel(draw), **parameters, multi_class=multi, basis=basis, n_basis=5)

    return make


def _semi_supervised(draw, wild):
    return SemiSupervisedMarginSVC(**_shared(draw, wild), C_unlabeled=draw(st.sampled_from(["auto", "even", 0.1])))


def _fuzzy(draw, wild):
    return FuzzyPairwiseClassifier(_dual(CrammerSingerSVC)(draw, wild))


MACHINES = {
    "CrammerSingerSVC": _dual(CrammerSingerSVC),
    "WestonWatkinsSVC": _dual(WestonWatkinsSVC),
    "TopKSVC": _dual(TopKSVC, k=st.integers(1, 2)),
    "LpNormSVC": _dual(LpNormSVC, p=st.sampled_from([1.05, 1.1, 1.5, 2, 3, 50])),
    "MultiMarginSVC": _dual(MultiMarginSVC),
    "ODMClassifier": _dual(
        ODMClassifier, mu=st.sampled_from([0.0, 0.5, 1.0]), theta=st.sampled_from([0.0, 0.2, 0.9]),
        solver=st.sampled_from(["auto", "auto", "mm", "newton", "lbfgs", "paper"]),
    ),
    "M3SVC": _m3,
    "SemiSupervisedMarginSVC": _semi_supervised,
    "LDMClassifier": _pairwise(
        LDMClassifier, lambda1=powers(-2, 2), lambda2=powers(-2, 2), loss=st.sampled_from(["hinge", "least_squares"])
    ),
    "LSSVC": _pairwise(LSSVC),
    "ULDMClassifier": _pairwise(ULDMClassifier),
    "FuzzyPairwiseClassifier": _fuzzy,
}  # fmt: skip


@st.composite
def weights(draw, n, rng):
    """None, ordinary weights, some of them zero, or of extreme sizes."""
    kind = draw(st.sampled_from(["none", "none", "ordinary", "zeros", "extreme", "all extreme"]))
    if kind == "none":
        return None
    weight = rng.uniform(0.5, 2.0, n)
    if kind == "zeros":
        weight[rng.random(n) < 0.3] = 0.0
        weight[: min(n, 6)] = 1.0
    if kind == "extreme":
        weight *= 10.0 ** rng.integers(-12, 13, n)
    if kind == "all extreme":
        weight *= 10.0 ** draw(st.integers(-110, 110))
    return weight


@st.composite
def cases(draw, wild=True, largest=40, machine=None):
    """A case; ``wild`` ones have parameters, columns and weights of any size, others those of everyday."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, d = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    n = k + draw(st.integers(0, largest))
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS) if wild else TAME), min_size=d, max_size=d))
    rows = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds])
    codes = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    if draw(st.booleans()):  # classes that can be told apart, at least in part
        rows[:, 0] += codes * (np.ptp(rows[:, 0]) or 1.0)
    if draw(st.integers(0, 5)) == 0:
        rows[1::2] = rows[0]
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32]))
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(rows.astype(dtype))
    order = rng.permutation(n)
    rows, codes = np.ascontiguousarray(rows[order]), codes[order]
    model = (MACHINES[machine] if machine else lambda *a: _machine(*a))(draw, wild)
    weight = draw(weights(n, rng)) if wild else None
    if weight is not None and draw(st.booleans()):
        weight = weight[order]
    if isinstance(model, SemiSupervisedMarginSVC):
        labels = codes.copy()
        labels[rng.random(n) < 0.3] = -1
        y = labels
    else:
        labels = y = LABELS[draw(st.sampled_from(sorted(LABELS)))](codes)
    if draw(st.integers(0, 9)) == 0 and getattr(model, "kernel", "linear") != "linear":
        unit = rows / np.float64(np.abs(rows).max() or 1.0)
        rows = unit @ unit.T
        rows = (rows + rows.T) / 2
        model.set_params(kernel="precomputed")
    container = draw(st.sampled_from(sorted(CONTAINERS)))
    X = CONTAINERS[container](rows)
    if container == "list":
        rows = rows.astype(np.float64)
    return Case(model, X, y, weight, rows, np.asarray(labels))
