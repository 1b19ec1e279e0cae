"""The verdict on a fit: numbers finite, the objective that of the published machine, the bound below all others."""

import copy

import numpy as np

from .oracle import PAIRWISE, exact, kernel_values, objective

PUBLISHED = ("coef_", "intercept_", "dual_coef_", "objective_", "dual_gap_")
HIGH = 1e-6  # by which an objective may be too high
LOOSE = 1e-7  # the same of machines without a certificate
ROUNDING = 1e-9  # of the objective: what evaluations in double precision may differ by where nothing cancels


def check_finite(model, X):
    """No published number and no score of a training row is NaN or infinite."""
    for name in PUBLISHED:
        value = getattr(model, name, None)
        assert value is None or np.isfinite(value).all(), f"{name} is not finite"
    assert np.isfinite(model.decision_function(X)).all(), "a score is not finite"


def check_certificate(case, warned):
    """The published objective is that of the published machine, and its bound lies below those of other machines."""
    model = case.model
    name = type(model).__name__
    if name not in (*PAIRWISE, *CERTIFIED):
        return
    if any("positive semi-definite" in sentence for sentence in warned):
        assert model.dual_gap_ is None  # no convex problem, no certificate
        return
    X, y, weight = case_rows(case)
    truth = objective(model, X, y, weight)
    if truth is None:
        return
    claimed, gap = model.objective_, model.dual_gap_
    room = ((LOOSE if gap is None else ROUNDING) + (gap or 0.0)) * scale_of(model, claimed, truth) + TINY
    if name in PAIRWISE:
        room += rounding_of_scores(case)
    assert truth <= claimed + room, f"objective {claimed!r} with gap {gap!r} claimed, but the machine has {truth!r}"
    room += HIGH * scale_of(model, claimed, truth)  # to claim a little too much is no false certificate
    assert claimed <= truth + room, (
        f"objective {claimed!r} with gap {gap!r} claimed, but the machine has only {truth!r}"
    )
    if gap is None or (name == "ODMClassifier" and model.mu > 0 and len(model.classes_) > 2):
        return
    assert warned or gap <= model.tol, f"gap {gap!r} above tol={model.tol!r} in silence"
    size = scale_of(model, claimed, claimed)
    bound = claimed - gap * size - 4 * np.finfo(float).eps * size  # of this difference
    for factor in OTHERS:
        other = scaled(model, factor)
        value = objective(other, X, y, weight)
        assert bound <= value + ROUNDING * abs(value) + TINY, f"{factor} times the machine has {value!r} < {bound!r}"


def rounding_of_scores(case):
    """What the objective changes by where all scores change by the rounding of their sums."""
    model, (X, y, weight) = case.model, case_rows(case)
    coef = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
    largest = np.abs(X).max()
    if not hasattr(model, "coef_") and model.kernel != "precomputed":
        largest = float(np.abs(kernel_values(model, exact(X), exact(X))).max())
    shift = 64 * np.finfo(float).eps * (largest * np.abs(coef).sum(axis=1).max() + np.abs(model.intercept_).max())
    before, moved = objective(model, X, y, weight), []
    for sign in (-1, 1):
        other = copy.copy(model)
        other.intercept_ = model.intercept_ + sign * shift
        moved.append(abs(objective(other, X, y, weight) - before))
    return 16 * max(moved)


OTHERS = (0.0, 0.5, 0.9, 0.99, 1.01, 1.1, 2.0)  # times the machine


def scaled(model, factor):
    """A copy of the machine with longer or shorter class vectors."""
    other = copy.copy(model)
    for name in ("coef_", "intercept_", "dual_coef_"):
        if hasattr(other, name):
            setattr(other, name, factor * getattr(other, name))
    return other


def scale_of(model, *values):
    """What a relative gap refers to: the objective, or for machines whose objective may be negative its parts."""
    size = max(abs(value) for value in values)
    return size if type(model).__name__ not in PAIRWISE else max(size, 1.0, getattr(model, "lambda1", 0.0))


CERTIFIED = (
    "CrammerSingerSVC", "WestonWatkinsSVC", "TopKSVC", "LpNormSVC", "MultiMarginSVC", "M3SVC", "ODMClassifier",
)  # fmt: skip
TINY = 1e-290


def case_rows(case):
    """Rows of positive weight as the published numbers refer to them."""
    weight = np.ones(len(case.labels)) if case.weight is None else np.asarray(case.weight, dtype=np.float64)
    return case.rows, case.labels, weight


def judge(case):
    """Fit and check; a `ValueError` with a sentence is an answer as well.  Returns whether there is a machine."""
    try:
        model, warned = case.fit()
    except ValueError as error:
        assert len(str(error)) > 20, f"no sentence: {error!r}"
        return False
    check_finite(model, case.X)
    check_certificate(case, warned)
    return True
