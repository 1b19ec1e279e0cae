"""What machines of pairs of classes are worth: the sum over the two-class machines; see oracle.py."""

from itertools import combinations

import numpy as np

from .oracle import exact, fractions_sum, hinges, support_kernel, to_long


class PairwiseWorth:
    """The objective of two-class machines, and of those with other lengths or intercepts."""

    def __init__(self, model):
        self.model, self.parts = model, []

    @classmethod
    def published(cls, model, X, y, weight):
        """As a fitted estimator publishes it; with a kernel only where there are two classes, else None."""
        codes, k, weight = np.searchsorted(model.classes_, y), len(model.classes_), to_long(weight)
        X, linear = exact(X), hasattr(model, "coef_")
        if not linear and (k > 2 or model.basis not in ("auto", "all")):
            return None
        found = cls(model)
        ovr = model.multi_class == "ovr" and k > 2
        for t, (i, j) in enumerate([(None, j) for j in range(k)] if ovr else combinations(range(k), 2)):
            rows = np.flatnonzero(((codes == i) | (codes == j) | (i is None)) & (weight > 0))
            b = to_long(exact(model.intercept_[t]))
            if linear:
                w = exact(model.coef_[t])
                f = to_long((X[rows] - X[0]) @ w) + fractions_sum(w, X[0], model.intercept_[t])
                square = ridge = to_long(w @ w)
            else:
                a, K = exact(model.dual_coef_[0]), support_kernel(model, X)
                # a row of weight two is two basis points, which share its coefficient
                f, square = (to_long(K @ a) + b)[rows], to_long(a @ K[model.support_] @ a)
                ridge = to_long(a * a) @ (1 / weight[model.support_])
            sign = np.where(codes[rows] == j, 1, -1)
            found.parts.append((sign, f, weight[rows], b, square, ridge))
        return found

    def objective(self, factor=1.0, shift=0.0, apart=0.0):
        """With class vectors so many times as long, all margins higher by ``shift``, every second one by ``apart``."""
        return float(sum(sum(terms) for terms in self._terms(factor, shift, apart)))

    def size(self):
        """What a relative gap refers to where the objective may be negative: the sizes of its terms."""
        return float(sum(abs(term) for terms in self._terms(1.0, 0.0, 0.0) for term in terms))

    def _terms(self, factor, shift, apart):
        terms, square = TERMS[type(self.model).__name__], np.longdouble(factor) ** 2
        for sign, f, s, b, norm, ridge in self.parts:
            d = sign * factor * f + shift
            d[::2] += apart
            yield terms(self.model, d, s, factor * b, square * norm, square * ridge)


def _mean_and_variance(d, s):
    p = s / s.sum()
    mean = p @ d
    return mean, p @ (d - mean) ** 2


def _ldm(model, d, s, b, square, ridge):
    mean, variance = _mean_and_variance(d, s)
    loss = hinges(d) if model.loss == "hinge" else (1 - d) ** 2 / 2
    spread, losses = model.lambda2 * variance / 2, np.longdouble(model.C) * (s @ loss)
    return (square + b * b) / 2, -model.lambda1 * mean, spread, losses


def _lssvc(model, d, s, b, square, ridge):
    return square / 2, np.longdouble(model.C_) / 2 * (s @ (1 - d) ** 2)


def _uldm(model, d, s, b, square, ridge):
    mean, variance = _mean_and_variance(d, s)
    return np.longdouble(model.alpha_) / 2 * (ridge + b * b), -mean, variance / 2


TERMS = {"LDMClassifier": _ldm, "LSSVC": _lssvc, "ULDMClassifier": _uldm}
