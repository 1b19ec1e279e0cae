"""Smooth losses against finite differences, closed forms and Fenchel's inequality."""

import re

import numpy as np
import pytest
from scipy.special import log_softmax

from skmargin.losses import LogLoss, SmoothedSumHinge

LOSSES = [SmoothedSumHinge(1.0), SmoothedSumHinge(0.05), LogLoss()]


def problem(n=7, k=4, order="C", seed=0):
    rng = np.random.default_rng(seed)
    F = np.asarray(rng.normal(size=(n, k)), order=order)
    return F, (np.arange(n), rng.integers(0, k, n)), rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_and_curvature_are_the_derivatives(loss, order):
    F, own, s = problem(order=order)
    value, P = loss.value_slopes(F, own, s)
    assert value == pytest.approx(loss.value(F, own, s), rel=1e-14)
    R = np.random.default_rng(1).normal(size=F.shape)
    h = 1e-6
    numeric = (loss.value(F + h * R, own, s) - loss.value(F - h * R, own, s)) / (2 * h)
    assert np.vdot(P, R) == pytest.approx(numeric, rel=1e-7)
    numeric = (loss.value_slopes(F + h * R, own, s)[1] - loss.value_slopes(F - h * R, own, s)[1]) / (2 * h)
    np.testing.assert_allclose(loss.curvature(F, own, s).product(R), numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_factors_give_the_same_matrices_as_the_product(loss):
    F, own, s = problem()
    curvature = loss.curvature(F, own, s)
    c, a, b = curvature.factors()
    R = np.random.default_rng(1).normal(size=F.shape)
    expected = c * R - 0.5 * (a * (b * R).sum(1, keepdims=True) + b * (a * R).sum(1, keepdims=True))
    np.testing.assert_allclose(curvature.product(R), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_sizes_and_pairs_are_those_of_the_matrices(loss):
    """Traces; and pairs with the own class that leave a semi-definite rest, in which the own class has no part."""
    F, own, s = problem()
    curvature = loss.curvature(F, own, s)
    unit = np.eye(F.shape[1])
    M = np.stack([curvature.product(np.tile(e, (len(F), 1))) for e in unit], axis=2)
    np.testing.assert_allclose(curvature.sizes(), np.trace(M, axis1=1, axis2=2), rtol=1e-12)
    apart = unit[None] - unit[own[1]][:, None]  # e_l - e_y
    rest = M - np.einsum("nl,nlp,nlq->npq", curvature.pairs(), apart, apart)
    assert not curvature.pairs()[own].any()
    assert np.linalg.eigvalsh(rest).min() > -1e-14
    np.testing.assert_allclose(rest[own], 0, atol=1e-14)


def test_values_are_the_textbook_formulas():
    F, own, s = problem()
    assert LogLoss().value(F, own, s) == pytest.approx(-float(s @ log_softmax(F, axis=1)[own]), rel=1e-13)
    t = 1 - F[own][:, None] + F
    hinge = np.maximum(t, 0)
    hinge[own] = 0
    assert SmoothedSumHinge(0.0).value(F, own, s) == pytest.approx(float(s @ hinge.sum(1)), rel=1e-13)
    smooth = SmoothedSumHinge(0.1).value(F, own, s)
    assert 0 <= smooth - s @ hinge.sum(1) <= 0.05 * 3 * s.sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_dual_value_is_the_conjugate(loss):
    """value >= <P, G> + dual for every G, with equality where P are the slopes at G."""
    F, own, s = problem()
    value, P = loss.value_slopes(F, own, s)
    A = P / s[:, None]
    A[own] = 0
    dual = loss.dual_value(A, s)
    assert value == pytest.approx(np.vdot(P, F) + dual, rel=1e-12)
    for seed in range(5):
        G = 3 * np.random.default_rng(seed).normal(size=F.shape)
        assert loss.value(G, own, s) >= np.vdot(P, G) + dual - 1e-10
    assert loss.feasible_factor(A) == 1
    B = 10 * A * loss.feasible_factor(10 * A)
    assert (B.sum(axis=1) if loss.duals_share_a_bound else B).max() == pytest.approx(1)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_dual_point_that_rounding_took_too_far_has_the_value_at_its_bound(loss):
    A, s = np.array([[0.0, np.nextafter(1, 2)]]), np.array([2.0])
    assert loss.dual_value(A, s) == pytest.approx(loss.dual_value(np.array([[0.0, 1.0]]), s), abs=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_huge_scores_and_single_precision(loss):
    F, own, s = problem()
    value, P = loss.value_slopes(1e4 * F, own, s)
    assert np.isfinite(value) and np.isfinite(P).all()
    small, P32 = loss.value_slopes(F.astype(np.float32), own, s)
    assert P32.dtype == np.float32
    assert small == pytest.approx(loss.value(F, own, s), rel=1e-5)


def test_smoothing_only_where_needed():
    loss = SmoothedSumHinge(0.1)
    assert loss.smoothed(0.05) is loss
    assert loss.smoothed(0.5).delta == 0.5
    log = LogLoss()
    assert log.smoothed(1.0) is log


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_values_keep_their_digits(dtype):
    """Margins far beyond 1: what is left of the loss is many orders smaller than the scores."""
    F, own = np.array([[300.0, 0.0, -50.0], [2.0, 280.0, 1.0]], dtype), (np.arange(2), np.array([0, 1]))
    s, digits = np.array([1.0, 2.0]), 10 * float(np.finfo(dtype).eps)
    for delta in (0.0, 1e-2):
        t = np.float64([[-299, -349], [-277, -278]])
        expected = float(s @ (0.5 * delta**2 / (np.hypot(t, delta) - t)).sum(axis=1))
        assert SmoothedSumHinge(delta).value(F, own, s) == pytest.approx(expected, rel=digits, abs=0)
    _, P = SmoothedSumHinge(1e-2).value_slopes(F, own, s)
    assert P[0, 1] == pytest.approx(0.25e-4 / 299**2, rel=1e-5)
    expected = float(s @ [np.exp(-30.0) + np.exp(-35.0), np.exp(-27.8) + np.exp(-27.9)])
    assert LogLoss().value(F / 10, own, s) == pytest.approx(
        expected, rel=1e4 * digits if dtype == np.float32 else 1e-12
    )
    dual = LogLoss().dual_value(np.float64([[0, 1e-15]]), s[:1])
    assert dual == pytest.approx(1e-15 * (1 - np.log(1e-15)), rel=1e-12)


def test_a_smoothing_that_squares_to_zero_is_none():
    F, own = np.zeros((2, 2)), (np.arange(2), np.array([0, 1]))
    F[0, 1] = -1  # a margin of exactly 1
    assert SmoothedSumHinge(1e-200).value(F, own, np.ones(2)) == 1


@pytest.mark.parametrize("delta", [-1, float("nan"), float("inf"), 1e160, "x", None])
def test_what_is_no_smoothing_is_refused(delta):
    with pytest.raises(
        ValueError, match=re.escape(f"delta must be a finite number, at least 0 and at most 1e+120, got {delta!r}.")
    ):
        SmoothedSumHinge(delta)
