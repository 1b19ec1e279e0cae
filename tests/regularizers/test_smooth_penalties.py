"""Penalties against loops over pairs, finite differences and Fenchel's inequality."""

from itertools import combinations

import numpy as np
import pytest

from skmargin.regularizers import PairwisePower

PENALTIES = [PairwisePower(0.3, p, tau=0.05 if p < 2 else 0.0) for p in (1, 1.5, 2, 2.5, 4, 8)]


def vectors(d=5, k=4, seed=0):
    return np.random.default_rng(seed).normal(size=(d, k))


@pytest.mark.parametrize("p", [1, 1.5, 2, 4, 8])
def test_value_is_the_sum_over_pairs(p):
    W = vectors() + 100.0
    expected = sum(np.linalg.norm(W[:, j] - W[:, l]) ** p for j, l in combinations(range(4), 2))
    assert PairwisePower(0.3, p).value(W) == pytest.approx(0.3 * expected, rel=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_derivatives(penalty):
    W, V = vectors(), vectors(seed=1)
    value, G = penalty.value_gradient(W)
    assert value == pytest.approx(penalty.value(W))
    h = 1e-6
    assert np.vdot(G, V) == pytest.approx((penalty.value(W + h * V) - penalty.value(W - h * V)) / (2 * h), rel=1e-7)
    numeric = (penalty.value_gradient(W + h * V)[1] - penalty.value_gradient(W - h * V)[1]) / (2 * h)
    product = penalty.hessian(W)(V)
    np.testing.assert_allclose(product, numeric, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose((penalty.explicit_hessian(W) @ V.ravel()).reshape(W.shape), product, rtol=1e-10)


@pytest.mark.parametrize("p", [1, 1.5, 2, 4])
def test_coinciding_vectors_give_finite_derivatives(p):
    W = vectors()
    W[:, 1] = W[:, 0]
    for V in (W, np.zeros_like(W)):
        penalty = PairwisePower(1.0, p)
        assert np.isfinite(penalty.value_gradient(V)[1]).all()
        assert np.isfinite(penalty.hessian(V)(W)).all()


@pytest.mark.parametrize("p", [1, 1.5, 2, 4, 8])
def test_conjugate_bounds_and_is_tight_at_the_gradient(p):
    """R(V) >= <Z, V> - bound for every V, with equality at V = W where Z is the gradient there."""
    penalty = PairwisePower(0.3, p)
    W = vectors()
    value, G = penalty.value_gradient(W)
    factor, bound = penalty.conjugate(penalty.split(W, G))
    assert factor == pytest.approx(1)
    assert np.vdot(G, W) - bound == pytest.approx(value, rel=1e-10)
    rng = np.random.default_rng(3)
    Z = G + 0.1 * rng.normal(size=G.shape)
    Z -= Z.mean(axis=1, keepdims=True)
    factor, bound = penalty.conjugate(penalty.split(W, Z))
    for scale in (0.1, 1, 3):
        V = scale * rng.normal(size=W.shape)
        assert penalty.value(V) >= np.vdot(factor * Z, V) - bound - 1e-9


def test_smoothing_only_below_power_two():
    assert PairwisePower(1.0, 4).smoothed(0.1).tau == 0
    assert PairwisePower(1.0, 1).smoothed(0.1).tau == 0.1


@pytest.mark.parametrize(
    ("penalty", "sentence"),
    [
        (lambda: PairwisePower(0, 2), "alpha must be a finite number, positive, got 0"),
        (lambda: PairwisePower("x", 2), "alpha must be a finite number, positive, got 'x'"),
        (lambda: PairwisePower(-1, 2), "alpha must be a finite number, positive, got -1"),
        (lambda: PairwisePower(float("inf"), 2), "alpha must be a finite number, positive, got inf"),
        (lambda: PairwisePower(1, -2), "p must be a finite number, at least 1, got -2"),
        (lambda: PairwisePower(1, float("nan")), "p must be a finite number, at least 1, got nan"),
        (lambda: PairwisePower(1, 2, -0.5), "tau must be a finite number, at least 0 and .*, got -0.5"),
    ],
)
def test_what_is_no_penalty_is_refused(penalty, sentence):
    with pytest.raises(ValueError, match=sentence):
        penalty()
