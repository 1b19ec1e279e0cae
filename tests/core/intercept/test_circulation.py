"""The dual point of the certificate with a free intercept (_core/intercept/circulation.hpp)."""

from time import perf_counter

import cvxpy as cp
import numpy as np
import pytest

from skmargin._core import _ext
from skmargin._runtime.progress import listening


def balance(alpha, y, cap, loss="max", K=1, F=None):
    F = np.zeros(alpha.T.shape) if F is None else F
    k = alpha.shape[1]
    _ext.kernel_circulation(F, alpha, _ext.Problem(y, cap, k, loss, top_k=K), np.zeros(k))


def coefficients(alpha, y):
    c = -alpha
    c[np.arange(len(y)), y] = alpha.sum(axis=1)
    return c


def random_duals(rng, n, k, loss):
    """Duals of every kind: zero, inside, at a bound of their own, with a sum that is used up."""
    y = rng.integers(k, size=n)
    cap = rng.uniform(0.5, 2, size=n)
    alpha = rng.exponential(size=(n, k)) * (rng.random((n, k)) < 0.4)
    alpha[np.arange(n), y] = 0
    u, U = {"max": (np.inf, cap), "sum": (cap, np.inf * cap), "top": (cap / 2, cap)}[loss]
    alpha = np.minimum(alpha, np.broadcast_to(u, n)[:, None])
    alpha /= np.maximum(1, alpha.sum(axis=1) / U)[:, None]
    return alpha, y.astype(np.int32), cap


@pytest.mark.parametrize("loss", ["max", "sum", "top"])
@pytest.mark.parametrize("k", [2, 3, 8, 40])
def test_duals_become_a_feasible_circulation(loss, k, seed=0):
    rng = np.random.default_rng(seed)
    for n in (1, 5, 30, 200):
        alpha, y, cap = random_duals(rng, n, k, loss)
        before = alpha.sum()
        balance(alpha, y, cap, loss, 2)
        np.testing.assert_allclose(coefficients(alpha, y).sum(axis=0), 0, atol=1e-11 * max(before, 1e-300))
        assert (alpha >= 0).all() and not alpha[np.arange(n), y].any()
        if loss != "max":
            assert (alpha <= (1 + 1e-12) * (cap if loss == "sum" else cap / 2)[:, None]).all()
        if loss != "sum":
            assert (alpha.sum(axis=1) <= (1 + 1e-12) * cap).all()


@pytest.mark.parametrize("loss", ["max", "sum", "top"])
def test_pairs_that_occur_give_the_circulation_of_the_table(loss, seed=0):
    """Beyond 1,000 classes only pairs that occur have a place (class_pairs.hpp): the same bits as with all of them."""
    rng = np.random.default_rng(seed)
    alpha, y, cap = random_duals(rng, 150, 40, loss)
    table, listed = (np.zeros((150, k)) for k in (900, 1100))
    for wide in (table, listed):
        wide[:, :800:20] = alpha
        balance(wide, 20 * y, cap, loss, 2)
    assert (table[:, :800:20] != alpha).any()
    np.testing.assert_array_equal(table, listed[:, :900])
    assert not listed[:, 900:].any()
    np.testing.assert_allclose(coefficients(listed, 20 * y).sum(axis=0), 0, atol=1e-11 * alpha.sum())


def test_a_circulation_stays(k=5):
    y = np.arange(k, dtype=np.int32)
    alpha = np.roll(np.eye(k), 1, axis=1)
    kept = alpha.copy()
    balance(alpha, y, np.ones(k))
    np.testing.assert_array_equal(alpha, kept)
    alpha[0, 1] -= 1e-6  # what is nearly one becomes one
    balance(alpha, y, np.ones(k))
    np.testing.assert_allclose(coefficients(alpha, y).sum(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(alpha, kept, atol=2e-6)


def test_free_duals_pay_for_those_at_their_bounds():
    """Class 0 sends ten duals at their bound to class 1, which sends back less from duals that can grow: they do."""
    y = np.repeat([0, 1], [10, 40]).astype(np.int32)
    alpha = np.zeros((50, 2))
    alpha[:10, 1] = 1
    alpha[10:, 0] = 0.2
    balance(alpha, y, np.ones(50))
    np.testing.assert_array_equal(alpha[:10, 1], 1)
    np.testing.assert_allclose(alpha[10:, 0], 0.25)


@pytest.mark.parametrize("loss", ["max", "sum", "top"])
def test_samples_near_their_margins_pay_first(loss):
    """Class 0 sends one unit too many: the sample whose margin is nearly kept gives it back, not the other."""
    y = np.array([0, 0, 1], dtype=np.int32)
    alpha = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    F = np.array([[0.0, 0.96, 0.0], [0.0, 0.0, 0.0]])
    balance(alpha, y, np.ones(3), loss, F=F)
    np.testing.assert_array_equal(alpha, [[0, 1], [0, 0], [1, 0]])


def test_samples_just_outside_their_margins_take_what_is_missing():
    """Class 1 sends back too little although one of its samples nearly violates its margin: this one does."""
    y = np.array([0, 1, 1], dtype=np.int32)
    alpha = np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    F = np.array([[0.0, 0.0, 0.0], [0.0, 1.05, 3.0]])
    balance(alpha, y, np.ones(3), F=F)
    np.testing.assert_array_equal(alpha, [[0, 1], [1, 0], [0, 0]])


@pytest.mark.parametrize("loss", ["max", "top"])
def test_rivals_as_good_as_the_best_take_over(loss):
    """Class 2 sends a unit that nobody returns: the second sample, far inside its margin, has two rivals alike."""
    y = np.array([0, 0, 1, 2], dtype=np.int32)
    alpha = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    F = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -3.0], [-3.0, -0.005, -3.0, 0.0]])
    balance(alpha, y, np.ones(4), loss, F=F)
    np.testing.assert_allclose(alpha, [[0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0]], atol=1e-15)


def test_loses_little_where_nothing_is_free(k=6, n=60):
    """With all duals at their bounds the best circulation below them is a linear program; ours is not far off."""
    rng = np.random.default_rng(1)
    y = rng.integers(k, size=n).astype(np.int32)
    alpha = np.zeros((n, k))
    alpha[np.arange(n), (y + rng.integers(1, k, size=n)) % k] = 1
    x = cp.Variable(n)
    rival = alpha.argmax(axis=1)
    member = np.eye(k)[y] - np.eye(k)[rival]
    best = cp.Problem(cp.Maximize(cp.sum(x)), [x >= 0, x <= 1, member.T @ x == 0]).solve()
    balance(alpha, y, np.ones(n))
    assert alpha.sum() >= 0.9 * best


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("k", [2, 3, 8, 40])
def test_a_table_becomes_a_feasible_circulation(order, together, k):
    rng = np.random.default_rng(0)
    for n in (1, 5, 30, 200):
        alpha, y, cap = random_duals(rng, n, k, "max" if together else "sum")
        table = np.array(alpha, order=order)
        _ext.table_circulation(table, y, cap, together)
        np.testing.assert_allclose(coefficients(table, y).sum(axis=0), 0, atol=1e-11 * max(alpha.sum(), 1e-300))
        assert (table >= 0).all() and not table[np.arange(n), y].any()
        assert ((table.sum(axis=1) if together else table.max(axis=1)) <= (1 + 1e-12) * cap).all()


@pytest.mark.parametrize("together", [True, False])
def test_a_table_moves_by_the_least_squares_of_the_shares(together, n=200, k=4):
    rng = np.random.default_rng(2)
    y = rng.integers(k, size=n).astype(np.int32)
    alpha = rng.uniform(0.5, 0.6, size=(n, k)) / (k if together else 1)
    alpha[np.arange(n), y] = 0
    left = 1 - alpha.sum(axis=1, keepdims=True)
    room = alpha * np.minimum(1, left / (1 - left)) if together else np.minimum(alpha, 1 - alpha)
    table = alpha.copy()
    _ext.table_circulation(table, y, np.ones(n), together)
    share = cp.Variable((n, k))
    move = cp.multiply(np.sqrt(room), share)  # so that the cost is the plain sum of squares
    out = cp.sum(cp.multiply(np.sqrt(room), move), axis=1)
    flow = [
        cp.sum((alpha.sum(axis=1) + out)[y == l]) - cp.sum((alpha + cp.multiply(room, share))[:, l]) for l in range(k)
    ]
    cp.Problem(cp.Minimize(cp.sum_squares(move)), [f == 0 for f in flow]).solve("CLARABEL")
    np.testing.assert_allclose(table, alpha + room * share.value, atol=1e-6)


def test_a_table_that_does_not_fit_is_refused():
    wrong = (
        (np.zeros(2), np.ones(3), "label"),
        (np.zeros(3), np.ones(2), "cap"),
        (np.full(3, 2), np.ones(3), "class code"),
    )
    for y, cap, message in wrong:
        with pytest.raises(ValueError, match=message):
            _ext.table_circulation(np.zeros((3, 2)), y.astype(np.int32), cap, True)


@pytest.mark.perf
def test_a_long_chain_of_classes_is_not_silent(k=1500):
    """Where classes meet their neighbours only, potentials take as many steps as there are classes."""
    y = np.tile(np.arange(k, dtype=np.int32), 2)
    alpha = np.zeros((2 * k, k))
    alpha[np.arange(k - 1), np.arange(1, k)] = 0.5
    alpha[np.arange(k + 1, 2 * k), np.arange(k - 1)] = np.linspace(0.2, 0.8, k - 1)
    asked = [perf_counter()]
    with listening(lambda _: asked.append(perf_counter())):
        _ext.table_circulation(alpha, y, np.ones(2 * k), False)
    assert np.diff([*asked, perf_counter()]).max() < 1
    np.testing.assert_allclose(coefficients(alpha, y).sum(axis=0), 0, atol=1e-9)
