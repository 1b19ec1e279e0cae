"""Generalisation bounds as numbers.

With probability at least 1 - delta over the n training samples, for all W with ``||W||_{2,p} <= Lam``::

    P(margin <= 0)  <=  mean loss(margin_i)  +  a L sqrt(pi) / n * psi * Lam * sqrt(tr K)  +  3 sqrt(ln(2/delta) / (2n))
                        empirical               complexity                                    confidence

for a decreasing L-Lipschitz loss with values in [0, 1] that is 1 at margins <= 0.  ``psi`` bounds the Gaussian sum
``E ||(sum_i g_ij x_i)_j||_{2,p*} / sqrt(tr K)``.  Two Gaussian comparisons, as in the papers, give a = 2 sqrt(2); the
margin is sqrt(2)-Lipschitz in the scores, so that one comparison is enough, and a = 2.

- "mcodm" (Zhang & Zhou 2017, Theorem 1): loss ``clip(1 - z/(1-theta), 0, 1)^2``, L = 2/(1-theta), p = 2, psi = sqrt(k).
  The printed constant, 16, is four times what the proof gives.
- "lp" (Lei et al. 2015, Corollary 8): loss ``min(1, (1 - z/rho)_+)``, L = 1/rho.  The printed psi bounds the Gaussian
  moments generously, and its branch needs the exponent clipped at 2 for two classes.  Before it, with the same
  comparisons, come Theorem 5, the Gaussian sum itself, and Theorem 7, for norms whose square is strongly convex;
  Remark 6 is what was known before, 4 L k times the Rademacher complexity of one class, at most Lam sqrt(tr K) / n.
- "m3" (Nie et al. 2024, Theorem 6): the loss of "lp"; the norm is that of the theorem, the p-norm of the distances
  ``||w_j - w_l||`` of all m = k(k-1)/2 pairs.  The theorem bounds the score differences of a row by this norm, and the
  paper leaves the step to the risk to Guermeur (2002).  Here ``sum_j <w_j, g_j>``, for class vectors that sum to zero,
  is ``sum_{j<l} <w_j - w_l, g_j - g_l> / k``, so that psi is that of "lp" for m vectors times sqrt(2) / k.

An intercept is the weight of one more feature that is always 1.  A vector added to all w_l changes no margin, so the
smaller of the norms of W and of the centred W is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from .._types import Estimator, LabelsLike, RandomState, RowsLike
from ..rows.gram import gram
from ._class_vectors import class_vectors, kernel_diagonal, kernel_parameters
from ._gaussian_sums import Version, simulated_factor, size_factor
from ._margins import class_scores, margins_from_scores

Bound = Literal["mcodm", "lp", "m3"]
OF_LEI = ("theorem5", "theorem7", "remark6")  # versions of the bound "lp" only
MOST_EIGENVALUES = 8000
SIMULATION_SHARE = 0.01  # of delta, for the error of a simulation


@dataclass(frozen=True)
class GeneralizationBound:
    """The three terms of a bound on the error, and what they were computed from.

    Attributes
    ----------
    empirical, complexity, confidence : float
        The terms; `total` is their sum.  A total above 1 says nothing about the error, but still compares models.
    norm : float
        ``||W||_{2,p}`` of the fitted class vectors; for "m3" the p-norm of the distances of all pairs.
    radius : float
        The norm ball that the bound covers: the given one, or the smallest power of two that holds the norm.
    delta : float
        The probability that is left for this ball.
    spread : float or None
        For "m3": the right side of the paper's Theorem 6.  No row as long as the longest one given has score
        differences ``f_j - f_l`` of all pairs with a larger p-norm.

    Examples
    --------
    >>> from skmargin.inspection import GeneralizationBound
    >>> bound = GeneralizationBound(0.1, 0.2, 0.05, norm=3.0, radius=4.0, delta=0.05, bound="lp", version="7")
    >>> round(bound.total, 2)
    0.35
    """

    empirical: float
    complexity: float
    confidence: float
    norm: float
    radius: float
    delta: float
    bound: str
    version: str
    spread: float | None = None

    @property
    def total(self) -> float:
        """Sum of the three terms: the bound on the probability of an error."""
        return self.empirical + self.complexity + self.confidence


@validate_params(
    {
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "bound": [StrOptions({"mcodm", "lp", "m3"})],
        "version": [StrOptions({"sharp", "proof", "printed", *OF_LEI})],
        "theta": [Interval(Real, 0, 1, closed="left")],
        "p": [Interval(Real, 1, None, closed="both")],
        "rho": [Interval(Real, 0, None, closed="neither")],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def generalization_bound(
    estimator: Estimator,
    X: RowsLike,
    y: LabelsLike,
    delta: float = 0.05,
    bound: Bound = "mcodm",
    *,
    version: Version = "sharp",
    theta: float = 0.2,
    p: float = 2.0,
    rho: float = 1.0,
    radius: float | None = None,
    random_state: RandomState = 0,
) -> GeneralizationBound:
    """Bound on the error of new samples, from the training margins and the norm of the class vectors.

    Parameters
    ----------
    estimator : fitted classifier
        A classifier with one linear or kernel vector for each class, or a pipeline that ends in one.  The steps
        before it count as fixed: the bound does not pay for having learnt them.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training samples.
    y : array-like of shape (n_samples,)
        Their labels.
    delta : float, default=0.05
        The bound holds with probability at least ``1 - delta``.
    bound : {"mcodm", "lp", "m3"}, default="mcodm"
        Theorem 1 of Zhang & Zhou (2017), Corollary 8 of Lei et al. (2015), or a bound with the norm of Theorem 6 of
        Nie et al. (2024).
    version : {"sharp", "proof", "printed", "theorem5", "theorem7", "remark6"}, default="sharp"
        Constants: the smallest that are proved from the number of classes; those that the papers' proofs give; those
        printed in the papers (valid, but larger than needed).  "m3" is sharp only: the paper prints no constants.  The
        others are for "lp": ``"theorem5"`` simulates the Gaussian sum for the rows as they are, and adds the error of
        the simulation (far smaller where rows have many directions; takes the eigenvalues of the smaller of the two
        Gram matrices, up to 8000); ``"theorem7"`` bounds it by strong convexity, before the moments; ``"remark6"`` is
        the older bound of Mohri et al., which grows with the number of classes.
    theta : float in [0, 1), default=0.2
        For "mcodm": the half-width of the band around margin 1.
    p : float >= 1 or inf, default=2
        For "lp" and "m3": the exponent of the norm.
    rho : float, default=1
        For "lp" and "m3": the margin at which the loss reaches 0.
    radius : float, default=None
        A bound on the norm that was chosen before looking at the data.  None takes the smallest power of two
        (at least 1) that holds the norm found, and pays for the choice by a smaller delta.
    random_state : int, RandomState instance or None, default=0
        Seeds the simulation of ``version="theorem5"``.

    Returns
    -------
    bound : GeneralizationBound
        ``empirical``, ``complexity``, ``confidence`` and their sum ``total``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from skmargin.inspection import generalization_bound
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC(random_state=0).fit(X, y)
    >>> sharp, printed = (generalization_bound(model, X, y, version=v) for v in ("sharp", "printed"))
    >>> round(printed.complexity / sharp.complexity, 3)  # 16 against 2 sqrt(2)
    5.657
    """
    return bound_of(measure(estimator, X, y), delta, bound, version, theta, p, rho, radius, random_state)


class Measured(NamedTuple):
    """What all bounds of a classifier are computed from."""

    margin: np.ndarray
    products: np.ndarray  # Gram matrix of the class vectors, with their intercepts
    trace: float  # of the kernel matrix of the rows
    longest: float  # length of the longest row
    spectrum: Callable[[], np.ndarray]  # eigenvalues of that matrix, but for zeros


def measure(estimator: Estimator, X: RowsLike, y: LabelsLike) -> Measured:
    """Margins and sizes of a fitted classifier and its training samples."""
    margin = margins_from_scores(class_scores(estimator, X), y, estimator.classes_).astype(np.float64)
    final, rows = behind_transformers(estimator, X)
    vectors, squares = class_vectors(final), kernel_diagonal(final, rows)
    products, constant = vectors.gram, float(vectors.intercept.any())
    if constant:
        products, squares = products + np.outer(vectors.intercept, vectors.intercept), squares + 1
    return Measured(
        margin,
        products,
        float(squares.sum()),
        float(np.sqrt(squares.max())),
        lambda: _spectrum(rows, kernel_parameters(final), constant),
    )


def _spectrum(rows: RowsLike, kernel: dict[str, Any], constant: float) -> np.ndarray:
    """Eigenvalues of the kernel matrix plus a constant, from the smaller of its two forms."""
    n, d = rows.shape
    linear = kernel["kernel"] == "linear"
    size = min(n, d + 1) if linear else n
    if size > MOST_EIGENVALUES:
        raise ValueError(
            f"version='theorem5' takes eigenvalues of a matrix with {size} rows, and {MOST_EIGENVALUES} are the most; "
            "use version='sharp'."
        )
    if linear and d < n:
        ones = np.full((n, 1), constant)
        if sparse.issparse(rows):
            Z = sparse.hstack([sparse.csr_array(rows, dtype=np.float64), ones], format="csr")
            K = (Z.T @ Z).toarray()
        else:
            dense = np.hstack([np.asarray(rows, dtype=np.float64), ones])
            K = dense.T @ dense
    else:
        K = gram(rows, dtype=np.float64, **kernel) + constant
    values = np.linalg.eigvalsh(K)
    return values[values > len(values) * np.finfo(float).eps * values[-1]]


def bound_of(
    measured: Measured,
    delta: float = 0.05,
    bound: Bound = "mcodm",
    version: Version = "sharp",
    theta: float = 0.2,
    p: float = 2.0,
    rho: float = 1.0,
    radius: float | None = None,
    random_state: RandomState = 0,
) -> GeneralizationBound:
    """As `generalization_bound`."""
    margin, products, trace, longest, spectrum = measured
    k, n = len(products), len(margin)
    if bound == "mcodm":
        p, lipschitz, loss = 2.0, 2 / (1 - theta), np.clip(1 - margin / (1 - theta), 0, 1) ** 2
    else:
        lipschitz, loss = 1 / rho, np.clip(1 - margin / rho, 0, 1)
    if version in OF_LEI and bound != "lp":
        raise ValueError(f"version={version!r} is a statement of Lei et al. and needs bound='lp', got bound={bound!r}.")
    if bound == "m3":
        if version != "sharp":
            raise ValueError(f"bound='m3' needs version='sharp': the paper prints no constants; got {version!r}.")
        norm = pairwise_norm(products, p)
    else:
        norm = min(block_norm(products, p), block_norm(centred(products), p))
    ball, share = (radius, delta) if radius is not None else peeled(norm, delta)
    if norm > ball * (1 + 1e-12):
        raise ValueError(f"radius={radius} is smaller than the norm of the class vectors, {norm:.6g}.")
    comparisons, holds = 2.0 if version == "sharp" else 2 * np.sqrt(2), share
    if version == "theorem5":
        holds = (1 - SIMULATION_SHARE) * share
        psi = sum(simulated_factor(spectrum(), k, p, share - holds, check_random_state(random_state)))
    elif bound == "mcodm":
        psi = np.sqrt(k) * (4 if version == "printed" else 1)
    elif bound == "lp":
        psi = size_factor(k, p, version)
    else:
        psi = np.sqrt(2) / k * size_factor(k * (k - 1) // 2, p, version)
    return GeneralizationBound(
        empirical=float(loss.mean()),
        complexity=float(comparisons * lipschitz * np.sqrt(np.pi) / n * psi * ball * np.sqrt(trace)),
        confidence=float(3 * np.sqrt(np.log(2 / holds) / (2 * n))),
        norm=norm,
        radius=float(ball),
        delta=float(share),
        bound=bound,
        version=version,
        spread=longest * norm if bound == "m3" else None,
    )


def behind_transformers(estimator: Estimator, X: RowsLike) -> tuple[Any, Any]:
    """The classifier inside searches and pipelines, and the rows as that classifier sees them."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator.steps[-1][1]
        else:
            return estimator, X


def centred(products: np.ndarray) -> np.ndarray:
    """Gram matrix of the class vectors after their mean is taken from each."""
    mean = products.mean(axis=0)
    return products - mean - mean[:, None] + mean.mean()


def block_norm(products: np.ndarray, p: float) -> float:
    """``||W||_{2,p}``, the p-norm of the lengths of the class vectors."""
    return p_norm(np.sqrt(np.maximum(products.diagonal(), 0)), p)


def pairwise_norm(products: np.ndarray, p: float) -> float:
    """The p-norm of the distances ``||w_j - w_l||`` of all pairs."""
    squares = products.diagonal()
    apart = np.maximum(squares[:, None] + squares - products - products.T, 0)
    return p_norm(np.sqrt(apart[np.triu_indices(len(products), 1)]), p)


def p_norm(lengths: np.ndarray, p: float) -> float:
    """Of numbers that are not negative; no power overflows."""
    largest = float(lengths.max())
    if largest == 0 or np.isinf(p):
        return largest
    return largest * float(((lengths / largest) ** p).sum() ** (1 / p))


def peeled(norm: float, delta: float) -> tuple[float, float]:
    """Ball and probability for a norm known only afterwards: the ball 2^j gets delta / ((j+1)(j+2)), in sum delta."""
    j = max(0, int(np.ceil(np.log2(norm)))) if norm > 0 else 0
    return 2.0**j, delta / ((j + 1) * (j + 2))
