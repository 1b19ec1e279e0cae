"""The verdict on a fit: numbers finite, the objective that of the published machine, the bound below all others."""

import numpy as np
from scipy import sparse

from skmargin import FuzzyPairwiseClassifier

from .cases import Case
from .optimum import PROBLEMS, rival
from .oracle import Machine, Worth, exact, semi_supervised_caps, support_kernel
from .pairwise_oracle import TERMS as PAIRWISE
from .pairwise_oracle import PairwiseWorth

PUBLISHED = ("coef_", "intercept_", "dual_coef_", "objective_", "dual_gap_")
HIGH = 1e-6  # by which an objective may be too high
LOOSE = 1e-7  # the same of machines without a certificate
ROUNDING = 1e-9  # of the objective: what evaluations in double precision may differ by where nothing cancels
TINY = 1e-290
OTHERS = (0.0, 0.5, 0.9, 0.99, 1.01, 1.1, 2.0)  # times the machine


def plain(numbers):
    """A dense array."""
    return numbers.toarray() if sparse.issparse(numbers) else np.asarray(numbers)


def check_finite(model, X):
    """No published number and no score of a training row is NaN or infinite."""
    for name in PUBLISHED:
        value = getattr(model, name, None)
        assert value is None or np.isfinite(plain(value)).all(), f"{name} is not finite"
    assert np.isfinite(model.decision_function(X)).all(), "a score is not finite"


def worth(model, X, y, weight):
    """The objective of a fitted machine, as its docstring states it; None where nothing is stated."""
    name = type(model).__name__
    if name in PAIRWISE:
        return PairwiseWorth.published(model, X, y, weight)
    if name == "SemiSupervisedMarginSVC":
        weight = semi_supervised_caps(model, y, weight)
    return Worth(model, Machine.published(model, X), y, weight)


def check_certificate(case, warned, with_rival=False):
    """The published objective is that of the published machine, and its bound lies below those of other machines."""
    model = case.model
    name = type(model).__name__
    if any("positive semi-definite" in sentence for sentence in warned):
        assert model.dual_gap_ is None  # no convex problem, no certificate
        return
    weight = np.ones(len(case.labels)) if case.weight is None else case.weight
    published = worth(model, case.rows, case.labels, weight)
    if published is None:
        return
    truth, claimed, gap = published.objective(), float(model.objective_), model.dual_gap_
    size = max(abs(claimed), published.size())
    if name == "ULDMClassifier":  # what is computed is 1 - h'r, so that an objective far below one keeps no digits
        size = max(size, 1.0)
    elif gap is None and name in PAIRWISE:
        size = max(size, published.objective(0.0))
    room = ((LOOSE if gap is None else ROUNDING) + (gap or 0.0)) * size + TINY
    if name in PAIRWISE:
        room += rounding_of_scores(model, case.rows, published, truth)
    assert truth <= claimed + room, f"objective {claimed!r} with gap {gap!r} claimed, but the machine has {truth!r}"
    room += HIGH * size  # to claim a little too much is no false certificate
    assert claimed <= truth + room, (
        f"objective {claimed!r} with gap {gap!r} claimed, but the machine has only {truth!r}"
    )
    if gap is None or (name == "ODMClassifier" and not is_convex(model)):
        return
    assert warned or gap <= model.tol, f"gap {gap!r} above tol={model.tol!r} in silence"
    check_bound(claimed, gap, size, {f"{f} times the machine": published.objective(f) for f in OTHERS})
    if with_rival and name in PROBLEMS:
        other = rival(case)
        if other is not None:
            check_bound(claimed, gap, size, {"the machine of cvxpy": other.objective()})


def is_convex(odm):
    """Whether the gap of an ODM is that of its own problem, not of the last one of a sequence.

    With mu > 0 and more than two classes there is no convex problem.  With two there is one, but ``solver="paper"``
    freezes a score in it: its gap is that of the frozen problem, which is no bound for this one.
    """
    return odm.mu == 0 or (len(odm.classes_) == 2 and odm.solver != "paper")


def check_bound(claimed, gap, size, values):
    """No machine has an objective below the bound."""
    bound = claimed - gap * size - 4 * np.finfo(float).eps * size  # of this difference
    for who, value in values.items():
        assert bound <= value + ROUNDING * abs(value) + TINY, f"bound {bound!r}, but {who} has {value!r}"


def rounding_of_scores(model, X, published, before):
    """What the objective changes by where all margins change by the rounding of their sums.

    Values of a computed kernel are rounded one by one, and a machine is worth what they make of it: there every second
    margin changes, too, which changes their variance.
    """
    coef = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
    largest = np.abs(X).max()
    if not hasattr(model, "coef_") and model.kernel != "precomputed":
        largest = float(np.abs(support_kernel(model, exact(X))).max())
    shift = 64 * np.finfo(float).eps * (largest * np.abs(coef).sum(axis=1).max() + np.abs(model.intercept_).max())
    moved = [{"shift": -shift}, {"shift": shift}]
    if not hasattr(model, "coef_") and model.kernel != "precomputed":
        moved += [{"apart": -shift}, {"apart": shift}]
    return 16 * max(abs(published.objective(**change) - before) for change in moved)


def pairs_of(case):
    """The cases of the machines inside a `FuzzyPairwiseClassifier`, one for each pair of classes."""
    model = case.model
    weight = np.ones(len(case.labels)) if case.weight is None else case.weight
    for inner, (i, j) in zip(model.estimators_, model.pairs_, strict=True):
        first, second = model.classes_[[i, j]]
        rows = np.flatnonzero(((case.labels == first) | (case.labels == second)) & (weight > 0))
        X = case.rows[np.ix_(rows, rows)] if inner.kernel == "precomputed" else case.rows[rows]
        yield Case(inner, (), X, (case.labels[rows] == second).astype(int), weight[rows])


def judge(case, with_rival=False):
    """Fit and check; a `ValueError` with a sentence is an answer as well.  Returns whether there is a machine."""
    try:
        model, warned = case.fit()
    except ValueError as error:
        assert len(str(error)) > 20, f"no sentence: {error!r}"
        return False
    if isinstance(model, FuzzyPairwiseClassifier):
        assert np.isfinite(model.decision_function(case.user_rows())).all(), "a score is not finite"
        for inner in pairs_of(case):
            check_finite(inner.model, inner.rows)
            if inner.model.dual_gap_ is not None:
                check_certificate(inner, [w for w in warned if "semi-definite" not in w])
        return True
    check_finite(model, case.user_rows())
    check_certificate(case, warned, with_rival)
    return True
