"""A small network on digits with and without the margin penalty on its last layer (as figure 6 of the paper).

    python examples/m3_last_layer.py [--out m3_last_layer.png] [--epochs 150]

Trains the same network twice on a few rows, some with a wrong label, which a plain network learns by heart, and draws
the accuracy on both parts.  Needs torch and matplotlib.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin.torch import M3Loss

WRONG = 0.2  # share of the training rows that get a random label
Part = tuple[torch.Tensor, torch.Tensor]


def train(alpha: float, train_part: Part, test_part: Part, epochs: int) -> list[tuple[float, float]]:
    """Accuracy on the training and the test part after each epoch."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    X, y = train_part
    criterion = M3Loss(p=4, alpha=alpha, n_samples=len(y))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    curve = []
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(50):
            optimizer.zero_grad()
            criterion(network(X[batch]), y[batch], network[-1]).backward()
            optimizer.step()
        with torch.no_grad():
            right = [float((network(A).argmax(dim=1) == b).float().mean()) for A, b in (train_part, test_part)]
        curve.append((right[0], right[1]))
    return curve


def main() -> None:
    """Train twice and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="m3_last_layer.png")
    parser.add_argument("--epochs", type=int, default=150)
    args = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    A, B, a, b = train_test_split(X / 16, y, train_size=500, random_state=0, stratify=y)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(a)) < WRONG
    a[wrong] = rng.integers(0, 10, wrong.sum())
    train_part = torch.tensor(A, dtype=torch.float32), torch.tensor(a)
    test_part = torch.tensor(B, dtype=torch.float32), torch.tensor(b)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharex=True, sharey=True)
    for name, alpha in (("softmax", 0.0), ("softmax + margin penalty", 1.0)):
        curve = train(alpha, train_part, test_part, args.epochs)
        tail = curve[-20:]
        print(
            f"{name}: train {sum(t for t, _ in tail) / len(tail):.4f}, test {sum(t for _, t in tail) / len(tail):.4f}"
        )
        for axis, values in zip(axes, zip(*curve, strict=True), strict=True):
            axis.plot(values, label=name)
    axes[0].set(title=f"training part ({WRONG:.0%} of the labels at random)", xlabel="epoch", ylabel="accuracy")
    axes[1].set(title="test part (right labels)", xlabel="epoch")
    axes[1].legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(args.out, dpi=120)
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
