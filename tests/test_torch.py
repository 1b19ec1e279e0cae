"""skmargin.torch against the NumPy code, in every precision."""

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an optional extra and is not installed here")

from skmargin import M3SVC  # noqa: E402
from skmargin.losses import LogLoss, SmoothedSumHinge  # noqa: E402
from skmargin.regularizers import PairwiseMaximum, PairwisePower  # noqa: E402
from skmargin.solvers.primal.adam import random_start  # noqa: E402
from skmargin.torch import M3Loss, PairwiseMarginPenalty  # noqa: E402


def weights(k=5, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(k, d))


@pytest.mark.parametrize("p", [1, 1.5, 2, 2.5, 4, 8])
def test_penalty_is_that_of_numpy(p):
    W = weights()
    tensor = torch.tensor(W, requires_grad=True)
    value = PairwiseMarginPenalty(p, 0.3)(tensor)
    value.backward()
    expected, gradient = PairwisePower(0.3, p).value_gradient(W.T)
    assert value.item() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(tensor.grad.numpy(), gradient.T, rtol=1e-10, atol=1e-12)
    layer = torch.nn.Linear(4, 5).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(W))
    assert PairwiseMarginPenalty(p, 0.3)(layer).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("kind", "p"), [("power", np.inf), ("log_sum_exp", 0.2), ("log_sum_exp", 3.0)])
def test_penalty_of_the_largest_distance_is_that_of_numpy(kind, p):
    W = weights()
    tensor = torch.tensor(W, requires_grad=True)
    value = PairwiseMarginPenalty(p, 0.3, kind)(tensor)
    value.backward()
    expected, gradient = PairwiseMaximum(0.3, 0.0 if kind == "power" else p).value_gradient(W.T)
    assert value.item() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(tensor.grad.numpy(), gradient.T, rtol=1e-10, atol=1e-12)
    x, y = torch.tensor(weights(20, 4, 1)), torch.arange(20) % 5
    scores = x @ tensor.T
    extra = M3Loss(p, 0.3, penalty=kind)(scores, y, tensor) - torch.nn.functional.cross_entropy(scores, y)
    assert 20 * extra.item() == pytest.approx(expected, rel=1e-9)
    for settings, text in (((0.5, 1.0, "power"), "at least 1"), ((np.inf, 1.0, "log_sum_exp"), "finite")):
        with pytest.raises(ValueError, match=text):
            PairwiseMarginPenalty(*settings)


@pytest.mark.parametrize("p", [1, 1.5, 2, 2.5, 4, 8, np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_gradient_is_finite_where_weights_coincide(p, dtype):
    for W in (np.zeros((3, 4)), np.ones((3, 4)), weights()[[0, 0, 1]]):
        tensor = torch.tensor(W, dtype=getattr(torch, dtype), requires_grad=True)
        PairwiseMarginPenalty(p)(tensor).backward()
        assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_loss_is_that_of_numpy(loss):
    W = weights()
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 4)), rng.integers(0, 5, 20)
    tensor = torch.tensor(W, requires_grad=True)
    value = M3Loss(4, 0.3, loss=loss, delta=0.1)(torch.tensor(X) @ tensor.T, torch.tensor(y), tensor)
    value.backward()
    reference = LogLoss() if loss == "log_loss" else SmoothedSumHinge(0.1)
    data, P = reference.value_slopes(X @ W.T, (np.arange(20), y), np.ones(20))
    extra, gradient = PairwisePower(0.3, 4).value_gradient(W.T)
    assert 20 * value.item() == pytest.approx(data + extra, rel=1e-12)
    np.testing.assert_allclose(20 * tensor.grad.numpy(), P.T @ X + gradient.T, rtol=1e-9, atol=1e-10)
    half = M3Loss(4, 0.3, loss=loss, n_samples=40)(torch.tensor(X) @ tensor.T, torch.tensor(y), tensor)
    full = M3Loss(4, 0.3, loss=loss, n_samples=20)(torch.tensor(X) @ tensor.T, torch.tensor(y), tensor)
    assert (full - half).item() == pytest.approx(extra / 40, rel=1e-9)


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_mixed_precision_training_step(loss):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    criterion = M3Loss(p=4, alpha=1e-2, loss=loss, n_samples=32)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    X = torch.randn(32, 6)
    y = X[:, :3].argmax(dim=1)
    values = []
    for _ in range(60):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = criterion(network(X), y, network[-1])
        assert value.dtype == torch.float32
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < 0.7 * values[0]


def test_gradcheck():
    tensor = torch.tensor(weights(), requires_grad=True)
    for p in (1, 1.5, 4):
        assert torch.autograd.gradcheck(PairwiseMarginPenalty(p, 0.3), (tensor,))


def test_errors_name_the_parameter():
    for build in (
        lambda: PairwiseMarginPenalty(p=0.5),
        lambda: PairwiseMarginPenalty(alpha=-1),
        lambda: M3Loss(loss="squared"),
        lambda: M3Loss(delta=0),
        lambda: M3Loss(n_samples=0),
    ):
        with pytest.raises(ValueError, match="must"):
            build()
    with pytest.raises(ValueError, match="matrix"):
        PairwiseMarginPenalty()(torch.zeros(3))
    assert "p=4" in repr(M3Loss(4))


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_scores_of_other_shapes_are_refused_instead_of_broadcast(loss):
    W = torch.zeros(3, 2)
    for scores, target in (((4, 5), (4,)), ((4, 3, 2), (4, 2)), ((4, 3), (4, 1)), ((4, 3), (2,)), ((3,), ())):
        with pytest.raises(ValueError, match=r"Expected scores \(n, 3\)"):
            M3Loss(loss=loss)(torch.zeros(scores), torch.zeros(target, dtype=torch.long), W)


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_large_scores_have_finite_losses(loss):
    scores = torch.tensor([[1e25, -1e25, 0.0]], requires_grad=True)  # whose squares are not
    value = M3Loss(loss=loss)(scores, torch.tensor([1]), torch.zeros(3, 2))
    value.backward()
    assert value.item() >= 1.99e25 and torch.isfinite(value) and torch.isfinite(scores.grad).all()


def test_the_library_does_not_import_torch():
    code = "import sys, skmargin, skmargin.estimators._m3; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.filterwarnings("ignore:M3SVC stopped")
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_the_authors_run_is_that_of_torch(loss):
    """Full batches, torch's own Adam and losses, from the weights that our seed draws."""
    rng = np.random.default_rng(0)
    X, y, lam, p, lr = rng.normal(size=(40, 5)) + 1, rng.permutation(np.arange(40) % 4), 0.01, 4, 0.05
    model = M3SVC(
        2 * 4 * lam, p=p, loss=loss, delta=0, solver="adam", batch_size=None, init="random", learning_rate=lr,
        max_iter=100, tol=1e-12, random_state=7,
    ).fit(X, y)  # fmt: skip
    start = random_start((6, 4), 5, np.random.RandomState(7))
    layer, rows, target = torch.nn.Linear(5, 4).double(), torch.tensor(X), torch.tensor(y)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(start[:-1].T))
        layer.bias.copy_(torch.tensor(start[-1]))
    optimizer = torch.optim.Adam(layer.parameters(), lr=lr)
    for _ in range(100):
        scores, W = layer(rows), layer.weight
        if loss == "log_loss":
            data = torch.nn.functional.cross_entropy(scores, target) / 4
        else:
            data = torch.nn.functional.multi_margin_loss(scores, target)
        value = data + lam / 40 * torch.norm(W.unsqueeze(1) - W.unsqueeze(0), p=2, dim=2).pow(p).sum()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    W, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    np.testing.assert_allclose(model.coef_, W - W.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(model.intercept_, b - b.mean(), atol=1e-9)
