"""
Stochastic gradients against the exact solver
=============================================

Figure 2 of Xu et al. (2017): with variance reduction (SVRG) the distance to the optimum falls, while that of plain
stochastic gradients stalls. The optimum is known here, since the exact solver of :class:`~skmargin.MultiMarginSVC`
certifies it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler

from skmargin import MultiMarginSVC

EPOCHS = 60

# %%
# Plain stochastic gradients, one row at a time, with a step that falls like one over the number of epochs. A constant
# feature carries the intercept, which this machine penalises.


def objective(W: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Pairwise distances, squared norm, and the sum of all hinges (C = 1)."""
    scores = X @ W.T
    hinges = np.maximum(1 + scores - scores[np.arange(len(y)), y][:, None], 0)
    hinges[np.arange(len(y)), y] = 0
    distances = len(W) * np.vdot(W[:, :-1], W[:, :-1]) - np.sum(W[:, :-1].sum(axis=0) ** 2)
    return 0.5 * (distances + np.vdot(W, W)) + hinges.sum()


def plain(X: np.ndarray, y: np.ndarray, first_step: float) -> list[float]:
    """The objective after each epoch."""
    rng = np.random.default_rng(0)
    X = np.column_stack([X, np.ones(len(X))])
    n, k = len(X), int(y.max()) + 1
    W, values = np.zeros((k, X.shape[1])), []
    shrink = np.append(np.full(X.shape[1] - 1, k + 1.0), 1.0)  # gradient of the penalty, class vectors summing to zero
    for epoch in range(EPOCHS):
        step = first_step / (1 + epoch)
        values.append(objective(W, X, y))
        for i in rng.permutation(n):
            scores = W @ X[i]
            rivals = 1 + scores - scores[y[i]] > 0
            rivals[y[i]] = False
            slope = rivals.astype(float)
            slope[y[i]] = -rivals.sum()
            W *= 1 - step * shrink / n
            W -= np.outer(step * slope, X[i])
    return values


# %%
# The best first step of three for plain gradients, so that a bad step is not what is compared.

figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for panel, load in zip(panels, (load_iris, load_wine, load_digits), strict=True):
    X, y = load(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    best = MultiMarginSVC(tol=1e-7).fit(X, y).objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many epochs are drawn
        svrg = MultiMarginSVC(solver="svrg", max_iter=EPOCHS, tol=1e-6, random_state=0).fit(X, y)
    curves = {
        "plain, falling step": min((plain(X, y, step) for step in (0.003, 0.03, 0.3)), key=lambda values: values[-1]),
        "SVRG": svrg.trajectory_,
    }
    for label, values in curves.items():
        panel.semilogy(np.asarray(values) / best - 1, label=label)
    panel.axhline(1e-7, color="grey", linestyle=":", label="exact solver, certified")
    panel.set(title=load.__name__.removeprefix("load_"), xlabel="epoch")
    print(f"{panel.get_title()}: SVRG ends {svrg.objective_ / best - 1:.1e} above the optimum")
panels[0].set_ylabel("relative distance to the optimum")
panels[2].legend()
plt.show()
