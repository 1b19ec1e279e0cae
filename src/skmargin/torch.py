"""Large margins between classes for the last layer of a network (needs the extra ``torch``).

The same functions as `M3SVC` minimises, for automatic differentiation: a penalty on the rows of a weight matrix, and
the loss that goes with it (Nie, Hao and Wang, AAAI 2024).
"""

from __future__ import annotations

import math

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    raise ImportError("skmargin.torch needs PyTorch: python -m pip install 'skmargin[torch]'.") from error

__all__ = ["M3Loss", "PairwiseMarginPenalty"]


class PairwiseMarginPenalty(nn.Module):
    """``alpha sum_{j<l} ||w_j - w_l||^p`` over the rows ``w_l`` of a weight matrix.

    The margin between two classes is ``2 / ||w_j - w_l||``; with ``p = inf`` the penalty is ``alpha`` times the largest
    distance, the minimum margin alone.  The distances come from one Gram matrix, in single
    precision at least whatever the network computes in; where two rows coincide the gradient of their term is zero.

    Parameters
    ----------
    p : float, default=4.0
        Power, at least 1, or ``inf``.
    alpha : float, default=1e-3
        Strength.
    penalty : {"power", "log_sum_exp"}, default="power"
        ``"log_sum_exp"`` is ``alpha p log(mean_{j<l} exp(||w_j - w_l|| / p))``, as in `M3SVC`, with any positive ``p``.

    Examples
    --------
    >>> import torch
    >>> from skmargin.torch import PairwiseMarginPenalty
    >>> PairwiseMarginPenalty(p=2, alpha=1.0)(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(25.)
    """

    def __init__(self, p: float = 4.0, alpha: float = 1e-3, penalty: str = "power") -> None:
        super().__init__()
        if penalty not in ("power", "log_sum_exp"):
            raise ValueError(f"penalty must be 'power' or 'log_sum_exp', got {penalty!r}.")
        if penalty == "power" and not p >= 1:
            raise ValueError(f"p must be at least 1, got {p!r}.")
        if penalty == "log_sum_exp" and not 0 < p < float("inf"):
            raise ValueError(f"p must be positive and finite for penalty='log_sum_exp', got {p!r}.")
        if not alpha >= 0:
            raise ValueError(f"alpha must not be negative, got {alpha!r}.")
        self.p, self.alpha, self.penalty = p, alpha, penalty

    def forward(self, layer: nn.Linear | Tensor) -> Tensor:
        """Value for a linear layer or a weight matrix with one row a class."""
        W = layer.weight if isinstance(layer, nn.Linear) else layer
        if W.ndim != 2:
            raise ValueError(f"The weights must be a matrix with one row a class, got shape {tuple(W.shape)}.")
        with torch.autocast(W.device.type, enabled=False):
            W = _at_least_single(W)
            W = W - W.mean(dim=0)  # close rows far from the origin keep their digits
            G = W @ W.T
            n = G.diagonal()
            j, l = torch.triu_indices(len(W), len(W), 1, device=W.device)
            D2 = n[j] + n[l] - 2 * G[j, l]
            apart = D2 > 0
            whole = self.penalty == "log_sum_exp" or self.p == float("inf")
            powers = torch.where(apart, D2, 1).pow(0.5 if whole else self.p / 2)  # no 0 ** negative: it would be nan
            return self.alpha * self._together(torch.where(apart, powers, 0))

    def _together(self, terms: Tensor) -> Tensor:
        """The value of all pairs from their powers, or from their distances where those are not summed."""
        if self.penalty == "log_sum_exp":
            return self.p * (torch.logsumexp(terms / self.p, dim=0) - math.log(len(terms)))
        return terms.amax() if self.p == float("inf") else terms.sum()

    def extra_repr(self) -> str:
        """Parameters, for printing."""
        return f"p={self.p}, alpha={self.alpha}, penalty={self.penalty!r}"


class M3Loss(nn.Module):
    """Mean loss of a batch plus the penalty's share: `M3SVC`'s objective divided by the number of samples.

    Parameters
    ----------
    p : float, default=4.0
        Power of the distances, or ``inf``.
    alpha : float, default=1e-3
        Strength of the penalty, as in `M3SVC`: against the *sum* of the losses.
    penalty : {"power", "log_sum_exp"}, default="power"
        As in `PairwiseMarginPenalty`.
    loss : {"log_loss", "hinge"}, default="log_loss"
        Cross-entropy, or the smoothed sum hinge.
    delta : float, default=1e-2
        Smoothing of the hinge.
    n_samples : int or None, default=None
        Size of the training set; None takes the size of the batch.

    Examples
    --------
    >>> import torch
    >>> from skmargin.torch import M3Loss
    >>> layer = torch.nn.Linear(5, 3)
    >>> criterion = M3Loss(p=4, alpha=0.1, n_samples=1000)
    >>> x, y = torch.randn(8, 5), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    >>> criterion(layer(x), y, layer).backward()
    """

    def __init__(
        self,
        p: float = 4.0,
        alpha: float = 1e-3,
        *,
        penalty: str = "power",
        loss: str = "log_loss",
        delta: float = 1e-2,
        n_samples: int | None = None,
    ) -> None:
        super().__init__()
        if loss not in ("log_loss", "hinge"):
            raise ValueError(f"loss must be 'log_loss' or 'hinge', got {loss!r}.")
        if not delta > 0:
            raise ValueError(f"delta must be positive, got {delta!r}.")
        if n_samples is not None and n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples!r}.")
        self.penalty = PairwiseMarginPenalty(p, alpha, penalty)
        self.loss, self.delta, self.n_samples = loss, delta, n_samples

    def forward(self, scores: Tensor, target: Tensor, layer: nn.Linear | Tensor) -> Tensor:
        """Value for the scores (n, k) of a batch, its class indices (n,), and the layer that made the scores."""
        classes = len(layer.weight if isinstance(layer, nn.Linear) else layer)
        if scores.ndim != 2 or target.shape != scores.shape[:1] or scores.shape[1] != classes:  # would be broadcast
            raise ValueError(
                f"Expected scores (n, {classes}) of a layer for {classes} classes and one class index a row, "
                f"got scores of shape {tuple(scores.shape)} and a target of shape {tuple(target.shape)}."
            )
        scores = _at_least_single(scores)
        if self.loss == "log_loss":
            value = nn.functional.cross_entropy(scores, target)
        else:
            t = 1 - scores.gather(1, target[:, None]) + scores
            g = (t + torch.hypot(t, t.new_tensor(self.delta))) / 2
            others = torch.ones_like(g).scatter(1, target[:, None], 0.0)
            value = (others * g).sum() / len(scores)
        return value + self.penalty(layer) / (self.n_samples or len(scores))

    def extra_repr(self) -> str:
        """Parameters, for printing."""
        return f"loss={self.loss!r}, delta={self.delta}, n_samples={self.n_samples}"


def _at_least_single(t: Tensor) -> Tensor:
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t
