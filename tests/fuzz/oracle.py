"""What a machine is worth: its objective from the published numbers alone, in more than double precision.

Nothing of the library is used but the published attributes: scores, losses and penalties are written here a second
time, on the rows as the user gave them.  Numbers are long doubles, where the platform has any; scores of linear
machines are those of the first row, in exact fractions, and what the others differ by: timestamps leave a long double
too few digits.
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
    if LONG or numbers.dtype == object:
        return numbers.astype(np.longdouble) if LONG else numbers
    return np.vectorize(Fraction, otypes=[object])(numbers.astype(np.float64))


def to_long(numbers):
    return np.asarray(numbers).astype(np.longdouble)


def as_fraction(number):
    return Fraction(*number.as_integer_ratio())


def fractions_sum(W, x, b):
    """``W x + b`` without rounding, but of the result."""
    W, x, b = ([[as_fraction(number) for number in row] for row in np.atleast_2d(a)] for a in (W, x, b))
    sums = [sum((w * t for w, t in zip(row, x[0], strict=True)), c) for row, c in zip(W, b[0], strict=True)]
    high = [float(value) for value in sums]
    return to_long(high) + to_long([float(value - Fraction(part)) for value, part in zip(sums, high, strict=True)])


def all_classes(v):
    """One row a class: two classes are published as their difference, of which the shortest pair is meant."""
    return np.concatenate([-v / 2, v / 2]) if len(v) == 1 else v


def kernel_values(model, X, Z):
    """The kernel of all rows of X with those of Z."""
    if model.kernel == "linear":
        return X @ Z.T
    gamma = np.longdouble(getattr(model, "_gamma", None) or model.gamma_)
    if model.kernel in ("rbf", "laplacian"):
        apart = X[:, None, :] - Z[None, :, :]
        apart = apart * apart if model.kernel == "rbf" else np.abs(apart)
        return np.exp(-gamma * to_long(apart.sum(axis=2)))
    product = gamma * to_long(X @ Z.T) + np.longdouble(model.coef0)
    return product ** np.longdouble(model.degree) if model.kernel == "poly" else np.tanh(product)


def support_kernel(model, X):
    """The kernel of all rows (n, m) with the support vectors."""
    if model.kernel == "precomputed":
        return X[:, model.support_]
    support = getattr(model, "support_vectors_", None)
    return kernel_values(model, X, X[model.support_] if support is None else exact(support))


class Machine:
    """Scores (n, k) of a multi-class machine on rows, the Gram matrix G of its class vectors, its intercepts."""

    def __init__(self, F, G, b):
        self.b = all_classes(b[:, None])[:, 0]
        self.F, self.G, self.b = to_long(F + self.b), to_long(G), to_long(self.b)

    @classmethod
    def linear(cls, X, W, b):
        """With these class vectors."""
        first = fractions_sum(W, X[0], b)
        W = all_classes(W)
        found = cls((X - X[0]) @ W.T, W @ W.T, first)
        found.b = to_long(all_classes(b[:, None])[:, 0])
        return found

    @classmethod
    def kernel(cls, K, support, c, b):
        """With coefficients c (m, k) of the support, whose kernel with all rows is K (n, m)."""
        c = all_classes(c.T).T
        return cls(K @ c, c.T @ K[support] @ c, b)

    @classmethod
    def published(cls, model, X):
        """As a fitted estimator publishes it."""
        X, b = exact(X), exact(model.intercept_)
        if hasattr(model, "coef_"):
            return cls.linear(X, exact(model.coef_), b)
        return cls.kernel(support_kernel(model, X), model.support_, exact(model.dual_coef_), b)

    def distances(self, factor):
        """Squared distances of all pairs of class vectors."""
        k, G = len(self.G), factor * factor * self.G
        pairs = [G[j, j] + G[l, l] - 2 * G[j, l] for j, l in combinations(range(k), 2)]
        return np.maximum(np.array(pairs), 0)

    def half_norm(self, factor):
        """Half the squared length of all class vectors."""
        return factor * factor * np.trace(self.G) / 2

    def margins(self, codes):
        """How far the score of the own class lies above those of the rivals, (n, k - 1)."""
        F, rows = self.F, np.arange(len(codes))
        rivals = np.arange(F.shape[1])[None, :] != codes[:, None]
        return (F[rows, codes][:, None] - F)[rivals].reshape(len(codes), -1)


class Worth:
    """The objective of a multi-class machine, and of those with longer or shorter class vectors."""

    def __init__(self, model, machine, y, weight):
        weight = to_long(weight)
        kept = np.flatnonzero(weight > 0)  # a class may have no row of positive weight
        y = np.asarray(getattr(model, "transduction_", y))
        self.model, self.machine, self.weight = model, machine, weight[kept]
        machine.F = machine.F[kept]
        self.margins = machine.margins(np.searchsorted(model.classes_, y[kept]))

    def objective(self, factor=1.0, shift=0.0):
        """With class vectors so many times as long; ``shift`` is of two-class machines, here nothing."""
        found = OBJECTIVES[type(self.model).__name__]
        return float(found(self.model, self.machine, factor, factor * self.margins, self.weight))

    def size(self):
        """What a relative gap refers to: the objective."""
        return self.objective()


def hinges(d):
    return np.maximum(1 - d, 0)


def _crammer_singer(model, machine, factor, d, weight):
    return machine.half_norm(factor) + np.longdouble(model.C) * (weight @ hinges(d).max(axis=1))


def _weston_watkins(model, machine, factor, d, weight):
    return machine.half_norm(factor) + np.longdouble(model.C) * (weight @ hinges(d).sum(axis=1))


def _top_k(model, machine, factor, d, weight):
    K = min(model.k, d.shape[1])
    losses = np.sort(hinges(d), axis=1)[:, -K:].mean(axis=1)
    return machine.half_norm(factor) + np.longdouble(model.C) * (weight @ losses)


def _lp_norm(model, machine, factor, d, weight):
    p, norms = np.longdouble(model.p), factor * np.sqrt(np.maximum(np.diagonal(machine.G), 0))
    largest = norms.max()
    penalty = largest**2 * ((norms / largest) ** p).sum() ** (2 / p) / 2 if largest > 0 else np.longdouble(0)
    losses = hinges(d).max(axis=1)
    if model.loss == "squared_hinge":
        losses = losses**2
    elif model.loss == "log_loss":
        margin = d.min(axis=1)
        losses = np.maximum(-margin, 0) + np.log1p(np.exp(-np.abs(margin)))
    return penalty + np.longdouble(model.C) * (weight @ losses)


def _multi_margin(model, machine, factor, d, weight):
    penalty = machine.distances(factor).sum() / 2 + machine.half_norm(factor)
    penalty += factor * factor * machine.b @ machine.b / 2
    return penalty + np.longdouble(getattr(model, "C", 1.0)) * (weight @ hinges(d).sum(axis=1))


def _m3(model, machine, factor, d, weight):
    t, delta = 1 - d, np.longdouble(model.delta)
    if model.loss == "log_loss":
        top = np.maximum(-d.min(axis=1), 0)
        rest = np.exp(-d - top[:, None]).sum(axis=1)
        losses = np.where(top > 0, top + np.log(np.exp(-top) + rest), np.log1p(rest))
    else:
        root = np.sqrt(t * t + delta * delta)  # of a large negative t the sum would lose all digits
        losses = np.where(t > 0, (t + root) / 2, delta * delta / np.maximum(2 * (root - t), TINY)).sum(axis=1)
    penalty = np.longdouble(model.alpha) * _of_distances(model, machine.distances(factor))
    ridge = np.longdouble(model.eps) * factor * factor * (np.trace(machine.G) + machine.b @ machine.b)
    return weight @ losses + penalty + ridge


def _of_distances(model, squares):
    p = np.longdouble(model.p)
    if model.penalty == "log_sum_exp":
        apart = np.sqrt(squares)
        return apart.max() + p * np.log(np.exp((apart - apart.max()) / p).mean())
    return np.sqrt(squares.max()) if np.isinf(p) else (squares ** (p / 2)).sum()


def _odm(model, machine, factor, d, weight):
    margin, theta, mu = d.min(axis=1), np.longdouble(model.theta), np.longdouble(model.mu)
    c = np.longdouble(model.C) / (weight.sum() * (1 - theta) ** 2)
    below, above = np.maximum(1 - theta - margin, 0), np.maximum(margin - 1 - theta, 0)
    ridge = factor * factor * machine.b @ machine.b / 2 if model.solver == "paper" else 0
    return machine.half_norm(factor) + ridge + c * (weight @ (below**2 + mu * above**2))


def _semi_supervised(model, machine, factor, d, caps):
    return _multi_margin(None, machine, factor, d, caps)


OBJECTIVES = {
    "CrammerSingerSVC": _crammer_singer,
    "WestonWatkinsSVC": _weston_watkins,
    "TopKSVC": _top_k,
    "LpNormSVC": _lp_norm,
    "MultiMarginSVC": _multi_margin,
    "M3SVC": _m3,
    "ODMClassifier": _odm,
    "SemiSupervisedMarginSVC": _semi_supervised,
}


def semi_supervised_caps(model, y, weight):
    """C and C_unlabeled times the weights, one for each row."""
    free = y == -1
    if len(np.unique(y[~free])) == 1:  # -1 and another label are the signs of two classes
        free = np.zeros(len(y), dtype=bool)
    C, s = np.longdouble(model.C), to_long(weight)
    unlabeled = model.C_unlabeled
    if isinstance(unlabeled, str):
        total = np.longdouble(1) if unlabeled == "auto" else C * s[~free].sum()
        unlabeled = total / s[free].sum() if s[free].sum() > 0 else total
    return np.where(free, unlabeled, C) * s
