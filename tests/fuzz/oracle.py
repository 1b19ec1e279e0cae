"""What a machine is worth: its objective from the published numbers alone, in more than double precision.

Nothing of the library is used but the published attributes: scores, losses and penalties are written here a second
time, on the rows as the user gave them.  Where the platform's long double is no longer than a double, numbers are exact
fractions.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy import sparse

TINY = np.finfo(np.longdouble).tiny
LONG = np.finfo(np.longdouble).nmant > 60


def exact(numbers):
    """An array of numbers whose products and sums hardly round."""
    numbers = np.asarray(numbers.toarray() if sparse.issparse(numbers) else numbers)
    if LONG:
        return numbers.astype(np.longdouble)
    return np.vectorize(Fraction, otypes=[object])(numbers.astype(np.float64))


def to_long(numbers):
    return np.asarray(numbers).astype(np.longdouble)


def all_classes(v):
    """One row a class: two classes are published as their difference, of which the shortest pair is meant."""
    return np.concatenate([-v / 2, v / 2]) if len(v) == 1 else v


def kernel_values(model, X, Z):
    """The kernel of all rows of X with those of Z."""
    if model.kernel == "precomputed":
        return X
    if model.kernel == "linear":
        return X @ Z.T
    gamma = np.longdouble(getattr(model, "_gamma", None) or model.gamma_)
    if model.kernel == "rbf":
        return np.exp(-gamma * to_long(np.array([((Z - x) ** 2).sum(axis=1) for x in X])))
    if model.kernel == "laplacian":
        return np.exp(-gamma * to_long(np.array([np.abs(Z - x).sum(axis=1) for x in X])))
    product = gamma * to_long(X @ Z.T) + np.longdouble(model.coef0)
    return product ** np.longdouble(model.degree) if model.kernel == "poly" else np.tanh(product)


class Machine:
    """Scores (n, k) of a published multi-class machine on rows, and the Gram matrix G of its class vectors."""

    def __init__(self, model, X):
        X = exact(X)
        b = all_classes(exact(model.intercept_)[:, None])[:, 0]
        if hasattr(model, "coef_"):
            W = all_classes(exact(model.coef_))
            F, G = X @ W.T, W @ W.T
        else:
            c = all_classes(exact(model.dual_coef_).T).T
            if model.kernel == "precomputed":
                K = X[:, model.support_]
                inner = K[model.support_]
            else:
                K = kernel_values(model, X, exact(model.support_vectors_))
                inner = kernel_values(model, exact(model.support_vectors_), exact(model.support_vectors_))
            F, G = K @ c, c.T @ inner @ c
        self.F, self.G, self.b = to_long(F + b), to_long(G), to_long(b)

    def distances(self):
        """Squared distances of all pairs of class vectors."""
        k = len(self.G)
        pairs = [self.G[j, j] + self.G[l, l] - 2 * self.G[j, l] for j, l in combinations(range(k), 2)]
        return np.maximum(np.array(pairs), 0)

    def margins(self, codes):
        """How far the score of the own class lies above those of the rivals, (n, k - 1)."""
        F, rows = self.F, np.arange(len(codes))
        rivals = np.arange(F.shape[1])[None, :] != codes[:, None]
        return (F[rows, codes][:, None] - F)[rivals].reshape(len(codes), -1)


def objective(model, X, y, weight):
    """The objective of a published machine, as its docstring states it; None where it is of pairs of classes."""
    name, weight = type(model).__name__, to_long(weight)
    if name in PAIRWISE:
        return pairwise_objective(model, X, y, weight)
    machine, kept = Machine(model, X), np.flatnonzero(weight > 0)  # a class may have no row of positive weight
    machine.F, weight = machine.F[kept], weight[kept]
    codes = np.searchsorted(model.classes_, getattr(model, "transduction_", y)[kept])
    return float(OBJECTIVES[name](model, machine, machine.margins(codes), weight))


def hinges(d):
    return np.maximum(1 - d, 0)


def half_norm(machine):
    return np.trace(machine.G) / 2


def _crammer_singer(model, machine, d, weight):
    return half_norm(machine) + np.longdouble(model.C) * (weight @ hinges(d).max(axis=1))


def _weston_watkins(model, machine, d, weight):
    return half_norm(machine) + np.longdouble(model.C) * (weight @ hinges(d).sum(axis=1))


def _top_k(model, machine, d, weight):
    K = min(model.k, d.shape[1])
    return half_norm(machine) + np.longdouble(model.C) * (weight @ np.sort(hinges(d), axis=1)[:, -K:].mean(axis=1))


def _lp_norm(model, machine, d, weight):
    p, norms = np.longdouble(model.p), np.sqrt(np.maximum(np.diagonal(machine.G), 0))
    largest = norms.max()
    penalty = largest**2 * ((norms / largest) ** p).sum() ** (2 / p) / 2 if largest > 0 else np.longdouble(0)
    return penalty + np.longdouble(model.C) * (weight @ hinges(d).max(axis=1))


def _multi_margin(model, machine, d, weight):
    penalty = machine.distances().sum() / 2 + half_norm(machine) + machine.b @ machine.b / 2
    return penalty + np.longdouble(model.C) * (weight @ hinges(d).sum(axis=1))


def _m3(model, machine, d, weight):
    t, delta = 1 - d, np.longdouble(model.delta)
    if model.loss == "log_loss":
        top = np.maximum(-d.min(axis=1), 0)
        rest = np.exp(-d - top[:, None]).sum(axis=1)
        losses = np.where(top > 0, top + np.log(np.exp(-top) + rest), np.log1p(rest))
    else:
        root = np.sqrt(t * t + delta * delta)  # of a large negative t the sum would lose all digits
        losses = np.where(t > 0, (t + root) / 2, delta * delta / np.maximum(2 * (root - t), TINY)).sum(axis=1)
    penalty = np.longdouble(model.alpha) * (machine.distances() ** (np.longdouble(model.p) / 2)).sum()
    ridge = np.longdouble(model.eps) * (np.trace(machine.G) + machine.b @ machine.b)
    return weight @ losses + penalty + ridge


def _odm(model, machine, d, weight):
    margin, theta, mu = d.min(axis=1), np.longdouble(model.theta), np.longdouble(model.mu)
    c = np.longdouble(model.C) / (weight.sum() * (1 - theta) ** 2)
    below, above = np.maximum(1 - theta - margin, 0), np.maximum(margin - 1 - theta, 0)
    ridge = machine.b @ machine.b / 2 if model.solver == "paper" else 0
    return half_norm(machine) + ridge + c * (weight @ (below**2 + mu * above**2))


OBJECTIVES = {
    "CrammerSingerSVC": _crammer_singer,
    "WestonWatkinsSVC": _weston_watkins,
    "TopKSVC": _top_k,
    "LpNormSVC": _lp_norm,
    "MultiMarginSVC": _multi_margin,
    "M3SVC": _m3,
    "ODMClassifier": _odm,
}
PAIRWISE = ("LDMClassifier", "LSSVC", "ULDMClassifier")


def pairwise_objective(model, X, y, weight):
    """Sum over the two-class machines; those with a kernel only where there are two classes."""
    codes, k = np.searchsorted(model.classes_, y), len(model.classes_)
    X, linear = exact(X), hasattr(model, "coef_")
    if not linear and (k > 2 or model.basis not in ("auto", "all")):
        return None
    pairs = list(combinations(range(k), 2)) if model.multi_class != "ovr" or k == 2 else [(None, j) for j in range(k)]
    total = np.longdouble(0)
    for t, (i, j) in enumerate(pairs):
        rows = np.flatnonzero(((codes == i) | (codes == j) | (i is None)) & (weight > 0))
        sign, s, b = np.where(codes[rows] == j, 1, -1), weight[rows], to_long(exact(model.intercept_[t]))
        if linear:
            w = exact(model.coef_[t])
            f, square, ridge = to_long(X[rows] @ w) + b, to_long(w @ w), to_long(w @ w)
        else:
            a = exact(model.dual_coef_[0])
            points = X[model.support_] if model.kernel != "precomputed" else None
            K = X[:, model.support_] if points is None else kernel_values(model, X, points)
            inner = K[model.support_] if points is None else kernel_values(model, points, points)
            # a row of weight two is two basis points, which share its coefficient
            f, square = (to_long(K @ a) + b)[rows], to_long(a @ inner @ a)
            ridge = to_long(a * a) @ (1 / weight[model.support_])
        total += _PAIR[type(model).__name__](model, sign * f, s, b, square, ridge)
    return float(total)


def _mean_and_variance(d, s):
    p = s / s.sum()
    mean = p @ d
    return mean, p @ (d - mean) ** 2


def _ldm(model, d, s, b, square, ridge):
    mean, variance = _mean_and_variance(d, s)
    loss = hinges(d) if model.loss == "hinge" else hinges_squared(d)
    penalty = (square + b * b) / 2
    return penalty - model.lambda1 * mean + model.lambda2 * variance / 2 + np.longdouble(model.C) * (s @ loss)


def hinges_squared(d):
    return (1 - d) ** 2 / 2


def _lssvc(model, d, s, b, square, ridge):
    return square / 2 + np.longdouble(model.C_) / 2 * (s @ (1 - d) ** 2)


def _uldm(model, d, s, b, square, ridge):
    mean, variance = _mean_and_variance(d, s)
    return np.longdouble(model.alpha_) / 2 * (ridge + b * b) - mean + variance / 2


_PAIR = {"LDMClassifier": _ldm, "LSSVC": _lssvc, "ULDMClassifier": _uldm}
