"""A rival machine from another program: cvxpy solves the same convex problem on the same rows.

What it finds is a machine like any other, whose objective the oracle evaluates in extended precision: a bound above it
is false, however well or badly cvxpy has solved its problem.
"""

import warnings

import cvxpy as cp
import numpy as np

from .oracle import Machine, Worth, exact, kernel_values, semi_supervised_caps, to_long

LARGEST = 1e8  # scales beyond which cvxpy has no chance


def rival(case):
    """The worth of cvxpy's machine, or None where the problem is none for it."""
    model, X = case.model, np.asarray(case.rows, dtype=np.float64)
    weight = np.ones(len(X)) if case.weight is None else case.weight
    if type(model).__name__ == "SemiSupervisedMarginSVC":
        weight = semi_supervised_caps(model, case.labels, weight).astype(np.float64)
    labels = np.asarray(getattr(model, "transduction_", case.labels))
    kept = np.flatnonzero(weight > 0)
    codes = np.searchsorted(model.classes_, labels[kept])
    linear = hasattr(model, "coef_")
    if linear:
        centre = X[kept].mean(axis=0) if _free_intercept(model) else np.zeros(X.shape[1])
        Z = X[kept] - centre
        scale = np.abs(Z).max(axis=0)
        scale[scale == 0] = 1.0
        Z = Z / scale
    else:
        K = X[:, kept] if model.kernel == "precomputed" else kernel_values(model, exact(X), exact(X[kept]))
        values, vectors = np.linalg.eigh(K[kept].astype(np.float64))
        real = values > 1e-10 * max(values.max(), 1e-300)
        # A matrix with negative eigenvalues has no least objective: along their vectors longer coefficients cost less
        # than nothing, so that a machine of cvxpy, which leaves them out, and any bound say nothing of each other.
        if not real.any() or values.min() < -1e-13 * values.max():
            return None
        Z, scale = vectors[:, real] * np.sqrt(values[real]), np.ones(int(real.sum()))
    found = _solve(model, Z, codes, weight[kept], scale)
    if found is None:
        return None
    V, b = (exact(numbers) for numbers in found)
    if linear:
        V = V / exact(scale)
        machine = Machine.linear(exact(X), V, b - V @ exact(centre))
    else:
        c = exact(vectors[:, real] / np.sqrt(values[real])) @ V.T
        machine = Machine.kernel(K, kept, c, b)
    return Worth(model, machine, labels, to_long(weight))


def _free_intercept(model):
    penalised = type(model).__name__ in ("MultiMarginSVC", "SemiSupervisedMarginSVC")
    penalised |= getattr(model, "eps", 0.0) > 0 or getattr(model, "solver", None) == "paper"
    return model.fit_intercept and not penalised


def _solve(model, Z, codes, weight, scale):
    """Class vectors and intercepts, of rows in units of ``scale``; None where cvxpy gives up."""
    n, k = len(codes), len(model.classes_)
    V = cp.Variable((k, Z.shape[1]))
    b = cp.Variable(k) if model.fit_intercept else cp.Constant(np.zeros(k))
    F = Z @ V.T + np.ones((n, 1)) @ cp.reshape(b, (1, k), order="C")
    own = np.eye(k)[codes]
    t = 1 - cp.sum(cp.multiply(own, F), axis=1)[:, None] @ np.ones((1, k)) + F - own  # one less the margin; own: zero
    price = PROBLEMS[type(model).__name__](model, V @ np.diag(1 / scale), b, t, weight, own)
    size = float(np.sum(weight)) * getattr(model, "C", 1.0)
    if price is None or not 1 / LARGEST < size < LARGEST or not scale.max() < LARGEST * scale.min():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            cp.Problem(cp.Minimize(price)).solve(solver=cp.CLARABEL)
        except (cp.SolverError, ArithmeticError):
            return None
    if V.value is None or not (np.isfinite(V.value).all() and np.isfinite(b.value).all()):
        return None
    return V.value, b.value


def _half(V):
    return cp.sum_squares(V) / 2


def _distances(V):
    k = V.shape[0]
    return [V[j] - V[l] for j in range(k) for l in range(j)]


def _crammer_singer(model, V, b, t, weight, own):
    return _half(V) + model.C * weight @ cp.max(cp.pos(t), axis=1)


def _weston_watkins(model, V, b, t, weight, own):
    return _half(V) + model.C * weight @ cp.sum(cp.multiply(1 - own, cp.pos(t)), axis=1)


def _top_k(model, V, b, t, weight, own):
    top = min(model.k, own.shape[1] - 1)
    losses = [cp.sum_largest(cp.pos(t[i]), top) / top for i in range(len(weight))]
    return _half(V) + model.C * sum(s * loss for s, loss in zip(weight, losses, strict=True))


def _lp_norm(model, V, b, t, weight, own):
    norms, losses = cp.norm(V, 2, axis=1), cp.max(cp.pos(t), axis=1)
    if model.loss == "squared_hinge":
        losses = cp.square(losses)
    elif model.loss == "log_loss":
        losses = cp.logistic(cp.max(t - LARGEST * own, axis=1) - 1)  # minus the margin to the closest rival
    return cp.square(cp.pnorm(norms, model.p)) / 2 + model.C * weight @ losses


def _multi_margin(model, V, b, t, weight, own, C=None):
    penalty = sum(cp.sum_squares(apart) for apart in _distances(V)) / 2 + _half(V) + cp.sum_squares(b) / 2
    return penalty + (model.C if C is None else C) * weight @ cp.sum(cp.multiply(1 - own, cp.pos(t)), axis=1)


def _semi_supervised(model, V, b, t, weight, own):
    return _multi_margin(model, V, b, t, weight, own, C=1.0)


def _m3(model, V, b, t, weight, own):
    if model.loss == "log_loss" or model.delta > 0 or not 1e-8 < model.alpha < 1e8:
        return None
    lengths = cp.hstack([cp.norm(apart) for apart in _distances(V)])
    if model.penalty == "log_sum_exp":
        penalty = model.alpha * model.p * (cp.log_sum_exp(lengths / model.p) - np.log(lengths.shape[0]))
    else:
        penalty = model.alpha * (cp.max(lengths) if np.isinf(model.p) else cp.sum(cp.power(lengths, model.p)))
    ridge = model.eps * (cp.sum_squares(V) + cp.sum_squares(b))
    return penalty + ridge + weight @ cp.sum(cp.multiply(1 - own, cp.pos(t)), axis=1)


def _odm(model, V, b, t, weight, own):
    if model.mu > 0 and own.shape[1] > 2:
        return None
    c = model.C / (weight.sum() * (1 - model.theta) ** 2)
    lost = cp.max(t - 2 * model.theta * own - LARGEST * own, axis=1)  # one less the margin to the closest rival
    below, above = cp.pos(lost - model.theta), cp.pos(-lost - model.theta)
    if own.shape[1] == 2:
        only = cp.sum(t, axis=1)
        below, above = cp.pos(only - model.theta), cp.pos(-only - model.theta)
    ridge = cp.sum_squares(b) / 2 if model.solver == "paper" else 0
    excess = c * weight @ cp.square(above) * model.mu if own.shape[1] == 2 else 0
    return _half(V) + ridge + c * weight @ cp.square(below) + excess


PROBLEMS = {
    "CrammerSingerSVC": _crammer_singer,
    "WestonWatkinsSVC": _weston_watkins,
    "TopKSVC": _top_k,
    "LpNormSVC": _lp_norm,
    "MultiMarginSVC": _multi_margin,
    "SemiSupervisedMarginSVC": _semi_supervised,
    "M3SVC": _m3,
    "ODMClassifier": _odm,
}
