"""How large a Gaussian sum over all class vectors of a norm ball is: what the bounds of Lei et al. (2015) rest on.

With independent standard normal g_ij and ``||W||_{2,p} <= 1`` their Theorem 5 needs

    E sup_W sum_ij g_ij w_j'x_i = E ||(sum_i g_ij x_i)_j||_{2,p*},      1/p + 1/p* = 1

Each function here gives ``psi``, an upper bound of it in units of ``sqrt(tr K)``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.integrate import trapezoid
from scipy.optimize import minimize_scalar
from scipy.special import gamma, gammaln

from ..solvers.tuning import DEFAULT

Version = Literal["sharp", "proof", "printed", "theorem5", "theorem7", "remark6"]
MOST_MOMENT = 200.0  # exponent beyond which no p-norm of so many classes gets smaller
DRAWS = 1000  # of the Gaussian sum: its error, which is added, falls with the root of them


def gaussian_moment(s: float) -> float:
    """``(E|g|^s)^(1/s)`` of a standard normal g."""
    return float(np.sqrt(2) * np.exp((gammaln((s + 1) / 2) - 0.5 * np.log(np.pi)) / s))


def conjugate_of(p: float) -> float:
    """``p*`` with ``1/p + 1/p* = 1``."""
    return 1 / (1 - 1 / p) if p > 1 else np.inf


def size_factor(k: int, p: float, version: Version) -> float:
    """Psi from the number k of classes alone.

    sharp: ``min k^(1/s) tau_s`` over 2 <= s <= p*, tau_s the moments of a normal number; proof: with ``sqrt(s)`` in
    front; printed: ``(2s)^(1+1/s) k^(1/s) / sqrt(2)`` at ``s = clip(2 ln k, 2, p*)``; theorem7:
    ``min sqrt((s - 1) E ||g||_s^2)``, g of k normal numbers.  For p > 2: ``k^(1/p*)``, or, in the paper's way,
    ``k^(1/2-1/p)`` times the factor of p = 2.  remark6: ``k sqrt(2 / pi)``, whatever p is.
    """
    if version == "remark6":
        return float(k * np.sqrt(2 / np.pi))
    conjugate = conjugate_of(p)
    if p > 2:
        return k ** (1 / conjugate) if version == "sharp" else k ** (0.5 - 1 / p) * size_factor(k, 2.0, version)
    top = min(conjugate, MOST_MOMENT)
    if version == "printed":
        s = float(np.clip(2 * np.log(k), 2, top))
        return float((2 * s) ** (1 + 1 / s) * k ** (1 / s) / np.sqrt(2))

    def factor(s: float) -> float:
        if version == "theorem7":
            return float(np.sqrt((s - 1) * mean_square_norm(k, s)))
        return k ** (1 / s) * gaussian_moment(s) * (1.0 if version == "sharp" else np.sqrt(s))

    if version == "theorem7":  # sqrt(s) k^(1/s) is least at 2 ln k
        top = min(top, max(4.0, 4 * np.log(k)))
    if top <= 2:
        return factor(2.0)
    inner = minimize_scalar(factor, bounds=(2.0, top), method="bounded")
    return float(min(inner.fun, factor(2.0), factor(top)))


def mean_square_norm(k: int, s: float) -> float:
    """``E ||g||_s^2`` of k independent standard normal numbers, s >= 2.

    For X = sum |g_j|^s and a = 2/s < 1, E X^a = a / Gamma(1 - a) int_0^oo (1 - E exp(-t X)) t^(-1-a) dt.  With
    t = u^-s the integrand is 2 u (1 - L(u)^k), L(u) = E exp(-(|g|/u)^s): that of the largest square for s = oo.  Beyond
    the largest u it is 2 k E|g|^s u^(1-s), but for smaller terms.  s near 2, where both factors diverge, is taken at 2
    by Jensen's inequality, ``||g||_s <= ||g||_2``.
    """
    if s <= 2.05:
        return float(k)
    x, weights = np.polynomial.legendre.leggauss(200)  # from 0 to 12, beyond which there is no normal number
    x, weights = 6 * (x + 1), 6 * weights * np.sqrt(2 / np.pi) * np.exp(-18 * (x + 1) ** 2)
    v = np.linspace(np.log(1e-3), np.log(1e6), 600)
    u = np.exp(v)
    with np.errstate(over="ignore", divide="ignore"):
        missing = -np.expm1(-((x / u[:, None]) ** s)) @ weights  # 1 - L, where that is small to its last digits
        lost = -np.expm1(k * np.log1p(-np.minimum(missing, 1.0)))
    inside = trapezoid(2 * u**2 * lost, v) + u[0] ** 2  # du = u dv; below the least u all is lost
    beyond = 2 * k * gaussian_moment(s) ** s * u[-1] ** (2 - s) / (s - 2)
    return float((inside + beyond) / gamma(1 - 2 / s))


class Simulated(NamedTuple):
    """The Gaussian sum in units of ``sqrt(tr K)``, and by how much its mean exceeds that with what probability."""

    mean: float
    error: float


def simulated_factor(spectrum: np.ndarray, k: int, p: float, delta: float, rng: np.random.RandomState) -> Simulated:
    """The Gaussian sum itself for rows whose kernel matrix has these eigenvalues, by simulation.

    ``||sum_i g_ij x_i||^2`` is distributed as ``sum_r lambda_r z_rj^2``.  The norm of all k of them is Lipschitz in the
    z with the constant ``sqrt(lambda_max)`` (times k^(1/p* - 1/2) for p > 2): the mean of N draws lies below the
    expectation by more than ``error`` with a probability of at most ``delta`` (Gaussian concentration).
    """
    trace = float(spectrum.sum())
    if not trace > 0:
        return Simulated(0.0, 0.0)
    shares = spectrum[spectrum > 0] / trace
    conjugate = conjugate_of(p)
    at_once = max(1, DEFAULT.common.cache_numbers // (len(shares) * k))
    sums = []
    for start in range(0, DRAWS, at_once):
        z = rng.standard_normal((min(at_once, DRAWS - start), k, len(shares)))
        sums.append(np.linalg.norm(np.sqrt(np.square(z, out=z) @ shares), ord=conjugate, axis=1))
    lipschitz = np.sqrt(shares.max()) * k ** max(0.0, 1 / conjugate - 0.5)
    return Simulated(float(np.concatenate(sums).mean()), float(lipschitz * np.sqrt(2 * np.log(1 / delta) / DRAWS)))
