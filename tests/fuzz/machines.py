"""Random machines: every estimator with every parameter, of everyday (tame) or of any size (wild)."""

from dataclasses import replace

import numpy as np

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
from skmargin.solvers.tuning import DEFAULT

KERNELS = ("rbf", "poly", "sigmoid", "laplacian")
FEW = replace(DEFAULT, many_classes=replace(DEFAULT.many_classes, many=3))  # three classes are very many


def _size(choices, wild):
    """A positive number: once in a while of any size."""
    low, high = choices.pick([(-4, 4), (-4, 4), (-15, 15), (-300, 300)]) if wild else (-4, 4)
    return choices.power(low, high)


def _shared(choices, wild):
    tol = choices.pick([1e-2, 1e-3, 1e-3, 1e-5, 1e-7, *([10.0, 1e-12] if wild else [])])
    fit_intercept = choices.pick([True, False])
    n_jobs = 2 if choices.one_in(12) else None
    return {"tol": tol, "fit_intercept": fit_intercept, "n_jobs": n_jobs, "random_state": 0}


def _kernel(choices):
    if not choices.one_in(4):
        return {"kernel": "linear"}
    low, high = choices.pick([(0, 0), (-3, 3), (-12, 12), (-300, 300)])
    gamma = choices.pick(["scale", "auto"]) if low == high else choices.power(low, high)
    return {
        "kernel": choices.pick(KERNELS), "gamma": gamma, "degree": choices.integer(1, 3),
        "coef0": choices.pick([0.0, 1.0]),
    }  # fmt: skip


def _dual(kind, **own):
    def make(choices, wild):
        own_values = {name: choices.pick(values) for name, values in own.items()}
        most = choices.pick([30, 300])
        return kind(_size(choices, wild), **_shared(choices, wild), **_kernel(choices), **own_values, max_iter=most)

    return make


def _m3(choices, wild):
    return M3SVC(
        _size(choices, wild), **_shared(choices, wild), **_kernel(choices),
        **choices.pick([*({"p": p} for p in (1, 1.5, 2, 4, 8, np.inf)), {"p": 0.5, "penalty": "log_sum_exp"}]),
        loss=choices.pick(["hinge", "log_loss"]),
        delta=choices.pick([0.0, 1e-2, 1.0]), eps=choices.pick([0.0, 0.0, 1e-3, 1.0]),
        solver=choices.pick(["auto", "auto", "newton-cg", "lbfgs", "adam"]), max_iter=choices.pick([20, 100]),
        batch_size=choices.pick([256, None]), init=choices.pick(["zero", "random"]),
    )  # fmt: skip


def _pairwise(kind, **own):
    def make(choices, wild):
        own_values = {name: values(choices) for name, values in own.items()}
        own_values["alpha" if kind is ULDMClassifier else "C"] = _size(choices, wild)
        multi = choices.pick(["fuzzy_pairwise", "ovo", "ovr"])
        basis = choices.pick(["auto", "auto", "random", "kmeans++", "cholesky"])
        return kind(
            **own_values, **_shared(choices, wild), **_kernel(choices), multi_class=multi, basis=basis, n_basis=5
        )

    return make


def _semi_supervised(choices, wild):
    unlabelled = choices.pick(["auto", "even", 0.1])
    own = {"C_unlabeled": unlabelled, "max_iter": choices.pick([30, 100]), **_kernel(choices)}
    if own["kernel"] == "linear" and choices.one_in(4):
        own |= {"solver": "svrg", "learning_rate": choices.pick(["adaptive", 1e-3])}
    return SemiSupervisedMarginSVC(_size(choices, wild), **_shared(choices, wild), **own)


def _fuzzy(choices, wild):
    return FuzzyPairwiseClassifier(_dual(CrammerSingerSVC)(choices, wild), n_jobs=choices.pick([None, None, 2]))


def _weight(choices):
    return choices.power(-2, 2)


# How each is made, and its share of a long run: those that take milliseconds have fewer turns.
MACHINES = {
    "CrammerSingerSVC": (_dual(CrammerSingerSVC), 6),
    "WestonWatkinsSVC": (_dual(WestonWatkinsSVC), 6),
    "TopKSVC": (_dual(TopKSVC, k=[1, 2]), 6),
    "LpNormSVC": (
        _dual(
            LpNormSVC, p=[1.05, 1.1, 1.5, 2, 3, 50], loss=["hinge", "hinge", "squared_hinge", "log_loss"],
            solver=["auto", "auto", "auto", "paper"],
        ),
        2,
    ),
    "MultiMarginSVC": (_dual(MultiMarginSVC), 6),
    "ODMClassifier": (
        _dual(
            ODMClassifier, mu=[0.0, 0.5, 1.0], theta=[0.0, 0.2, 0.9],
            solver=["auto", "auto", "mm", "newton", "lbfgs", "paper"],
        ),
        3,
    ),
    "M3SVC": (_m3, 1),
    "SemiSupervisedMarginSVC": (_semi_supervised, 1),
    "LDMClassifier": (
        _pairwise(
            LDMClassifier, lambda1=_weight, lambda2=_weight,
            loss=lambda choices: choices.pick(["hinge", "least_squares"]),
        ),
        1,
    ),
    "LSSVC": (_pairwise(LSSVC), 4),
    "ULDMClassifier": (_pairwise(ULDMClassifier), 4),
    "FuzzyPairwiseClassifier": (_fuzzy, 1),
}  # fmt: skip
TURNS = [name for name, (_, share) in MACHINES.items() for _ in range(share)]


def machine(choices, name=None, wild=True):
    """A machine of this name, or any one."""
    make, _ = MACHINES[name or choices.pick(TURNS)]
    return make(choices, wild)
