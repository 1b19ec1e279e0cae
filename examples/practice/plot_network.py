"""
Large margins in a network
==========================

:class:`~skmargin.torch.M3Loss` adds the penalty of :class:`~skmargin.M3SVC` to the last layer of any network. Here is a
small one on the digits, a fifth of whose training labels are random, which a plain network learns by heart: the curves
of figure 6 of Nie, Hao and Wang (2024), whose pictures (SVHN) are not at hand. On clean labels the penalty did not help
in this example. Needs torch.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin.torch import M3Loss

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, train_size=500, random_state=0, stratify=y)
rng = np.random.default_rng(0)
wrong = rng.random(len(y)) < 0.2
y[wrong] = rng.integers(0, 10, wrong.sum())
X, X_test = (torch.tensor(part, dtype=torch.float32) for part in (X, X_test))
y, y_test = torch.tensor(y), torch.tensor(y_test)

# %%
# The loss is given the scores, the labels and the last layer; ``n_samples`` makes ``alpha`` mean the same for every
# size of a batch.


def train(alpha: float, weight_decay: float, epochs: int = 100) -> np.ndarray:
    """Accuracy on the training and the test part after each epoch."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    criterion = M3Loss(p=4, alpha=alpha, n_samples=len(y))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=weight_decay)
    curve = []
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(50):
            optimizer.zero_grad()
            criterion(network(X[batch]), y[batch], network[-1]).backward()
            optimizer.step()
        with torch.no_grad():
            parts = ((X, y), (X_test, y_test))
            curve.append([float((network(A).argmax(dim=1) == b).float().mean()) for A, b in parts])
    return np.array(curve)


# %%
# The paper compares with the plain loss only. Weight decay, the usual remedy, stands beside it.

machines = {"softmax": (0.0, 0.0), "softmax + margin penalty": (1.0, 0.0), "softmax + weight decay": (0.0, 0.01)}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharex=True, sharey=True, layout="constrained")
for name, settings in machines.items():
    curve = train(*settings)
    print(f"{name}: training {curve[-20:, 0].mean():.3f}, test {curve[-20:, 1].mean():.3f}")
    for panel, values in zip(axes, curve.T, strict=True):
        panel.plot(values, label=name)
axes[0].set(title="training part (20 % of the labels at random)", xlabel="epoch", ylabel="accuracy")
axes[1].set(title="test part (right labels)", xlabel="epoch")
axes[1].legend(loc="lower right")
plt.show()

# %%
# The penalty keeps the network from learning wrong labels by heart, as the paper says. So does weight decay of all
# layers. Its strength is the best of three on the test part: differences of this size decide nothing.
