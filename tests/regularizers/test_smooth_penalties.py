"""Penalties against loops over pairs, finite differences and Fenchel's inequality."""

from itertools import combinations

import numpy as np
import pytest

from skmargin.regularizers import PairwisePower

PENALTIES = [PairwisePower(0.3, p, tau=0.05 if p < 2 else 0.0) for p in (1, 1.5, 2, 2.5, 4, 8)]


def vectors(d=5, k=4, seed=0):
    return np.random.default_rng(seed).normal(size=(d, k))


@pytest.mark.parametrize("tau", [0.0, 0.5])
@pytest.mark.parametrize(("scale", "origin"), [(1.0, 100.0), (0.1, 1.0)])
@pytest.mark.parametrize("p", [1, 1.5, 2, 4, 8])
def test_value_is_the_sum_over_pairs(p, scale, origin, tau):
    W = scale * vectors() + origin
    distances = [np.linalg.norm(W[:, j] - W[:, l]) for j, l in combinations(range(4), 2)]
    expected = 0.3 * sum(np.hypot(distance, tau) ** p - tau**p for distance in distances)
    assert PairwisePower(0.3, p, tau).value(W) == pytest.approx(expected, rel=1e-12)


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


@pytest.mark.parametrize("p", [2, 2.5, 4])
def test_the_metric_of_the_classes_encloses_the_hessian(p):
    penalty, W = PairwisePower(0.3, p), 0.5 * vectors()
    H, metric = penalty.explicit_hessian(W), np.kron(np.eye(len(W)), penalty.class_metric(W))
    assert np.linalg.eigvalsh(H - metric).min() > -1e-12
    assert np.linalg.eigvalsh((p - 1) * metric - H).min() > -1e-12


@pytest.mark.parametrize("tau", [0.0, 0.5])
@pytest.mark.parametrize("p", [1, 1.5, 4])
def test_split_measures_a_flow_whose_divergence_is_given(p, tau):
    penalty, W = PairwisePower(0.3, p, tau), 0.5 * vectors()
    Z = vectors(seed=2)
    Z -= Z.mean(axis=1, keepdims=True)
    k, divergence, lengths = W.shape[1], np.zeros_like(Z), []
    rest = Z - penalty.value_gradient(W)[1]
    for j, l in combinations(range(k), 2):
        w = W[:, j] - W[:, l]
        u = 0.3 * p * np.hypot(np.linalg.norm(w), tau) ** (p - 2) * w + (rest[:, j] - rest[:, l]) / k
        divergence[:, j] += u
        divergence[:, l] -= u
        lengths.append(np.linalg.norm(u))
    np.testing.assert_allclose(divergence, Z, atol=1e-12)
    np.testing.assert_allclose(penalty.split(W, Z), lengths, rtol=1e-10)


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


def test_flows_of_the_distance_itself_may_be_as_long_as_alpha():
    """The conjugate of ``alpha ||.||`` is 0 up to alpha and infinite beyond."""
    penalty = PairwisePower(0.3, 1)
    assert penalty.conjugate(np.array([0.1, 0.2])) == (1, 0)
    assert penalty.conjugate(np.array([0.1, 0.6])) == (0.5, 0)


def test_smoothing_only_below_power_two():
    assert PairwisePower(1.0, 4).smoothed(0.1).tau == 0
    assert PairwisePower(1.0, 2).smoothed(0.1).tau == 0
    assert PairwisePower(1.0, 1).smoothed(0.1).tau == 0.1
    assert PairwisePower(1.0, 1, 0.5).smoothed(0.1).tau == 0.5


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
