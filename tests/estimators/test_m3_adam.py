"""M3SVC by Adam, against the run of its authors written once more with NumPy alone."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from skmargin import M3SVC


def rows(n=40, d=5, k=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 2, rng.permutation(np.arange(n) % k)


def authors_gradient(W, b, X, y, lam, p, loss):
    """Of the mean over rows **and** classes of the loss, plus lam / n times the sum over both orders of each pair."""
    n, k = len(y), len(W)
    F, own = X @ W.T + b, np.eye(k)[y]
    if loss == "log_loss":
        P = (softmax(F, axis=1) - own) / (n * k)
    else:  # torch.nn.functional.multi_margin_loss
        P = ((1 - (F * own).sum(axis=1, keepdims=True) + F > 0) & (own == 0)) / (n * k)
        P -= own * P.sum(axis=1, keepdims=True)
    slopes = np.zeros_like(W)
    for j in range(k):
        for l in range(k):
            apart = W[j] - W[l]
            if size := np.linalg.norm(apart):
                slopes[j] += p * size ** (p - 2) * apart
                slopes[l] -= p * size ** (p - 2) * apart
    return P.T @ X + lam / n * slopes, P.sum(axis=0)


def authors_run(W, b, X, y, lr, lam, p, loss, epochs):
    moments = [np.zeros_like(a) for a in (W, W, b, b)]
    for t in range(1, epochs + 1):
        G, g = authors_gradient(W, b, X, y, lam, p, loss)
        steps = []
        for i, slope in ((0, G), (2, g)):
            moments[i] = 0.9 * moments[i] + 0.1 * slope
            moments[i + 1] = 0.999 * moments[i + 1] + 0.001 * slope**2
            steps.append(lr * moments[i] / (1 - 0.9**t) / (np.sqrt(moments[i + 1] / (1 - 0.999**t)) + 1e-8))
        W, b = W - steps[0], b - steps[1]
    return W, b


@pytest.mark.parametrize(("loss", "p"), [("log_loss", 4), ("log_loss", 1), ("hinge", 2), ("hinge", 6)])
def test_the_run_of_the_authors(loss, p):
    X, y = rows()
    lr, lam, seed, d, k = 0.05, 0.01, 3, X.shape[1], 4
    model = M3SVC(
        2 * k * lam, p=p, loss=loss, delta=0, solver="adam", batch_size=None, init="random", learning_rate=lr,
        max_iter=60, tol=1e-12, random_state=seed,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="max_iter=60"):
        model.fit(X, y)
    start = np.random.RandomState(seed).uniform(-1 / np.sqrt(d), 1 / np.sqrt(d), size=(d + 1, k))
    W, b = authors_run(start[:-1].T, start[-1], X, y, lr, lam, p, loss, 60)
    np.testing.assert_allclose(model.coef_, W - W.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(model.intercept_, b - b.mean(), atol=1e-9)
    assert model.n_iter_ == 60


@pytest.mark.filterwarnings("ignore:M3SVC stopped")
def test_each_seed_has_its_own_start():
    X, y = rows()
    options = {"solver": "adam", "init": "random", "max_iter": 1, "batch_size": None}
    first, again, other = (M3SVC(random_state=seed, **options).fit(X, y).coef_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1
    stream = M3SVC(learning_rate=1e-12, init="random", random_state=0).partial_fit(X, y, classes=range(4))
    np.testing.assert_allclose(stream.coef_.std(), 1 / np.sqrt(3 * X.shape[1]), rtol=0.5)


@pytest.mark.filterwarnings("ignore:M3SVC stopped")
def test_the_hinge_itself_has_a_slope_at_its_kink():
    """From zero with no row at all in doubt, and with rows exactly on the margin."""
    X, y = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]), np.array([0, 0, 1, 1])
    model = M3SVC(1e-3, p=2, delta=0, solver="adam", batch_size=None, learning_rate=0.5, max_iter=4)
    assert np.isfinite(model.fit(X, y).coef_).all()


@pytest.mark.parametrize(("name", "value"), [("batch_size", 0), ("init", "ones")])
def test_parameters_of_adam_are_checked(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of M3SVC"):
        M3SVC(**{name: value}).fit(*rows())
