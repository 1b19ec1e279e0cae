"""
Kernels
=======

A kernel bends the boundaries. Every machine takes one, by name, as a
function, or as a matrix. ``gamma`` is one over the squared reach of a training row: small values give smooth
boundaries, large ones follow every row.
"""

import matplotlib.pyplot as plt
import numpy as np

from skmargin import CrammerSingerSVC

rng = np.random.default_rng(0)
n = 100
turn = np.concatenate([np.linspace(0.4, 4, n) + 2 * np.pi * c / 3 for c in range(3)])
reach = np.tile(np.linspace(0.3, 2, n), 3)
X = np.column_stack([reach * np.cos(turn), reach * np.sin(turn)]) + 0.12 * rng.normal(size=(3 * n, 2))
y = np.repeat(np.arange(3), n)  # three arms of a spiral

# %%
# Two machines are linear in what they see: the plain one, and one with a function of the user.


def rings(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A kernel of one's own: products of the rows and of their squared lengths."""
    a, b = (A**2).sum(axis=1), (B**2).sum(axis=1)
    return A @ B.T + np.outer(a, b)


machines = {
    "linear": CrammerSingerSVC(C=10),
    "poly, degree 3": CrammerSingerSVC(C=10, kernel="poly", coef0=1),
    "a function": CrammerSingerSVC(C=10, kernel=rings),
    "rbf, gamma = 0.5": CrammerSingerSVC(C=10, kernel="rbf", gamma=0.5),
    "rbf, gamma = 5": CrammerSingerSVC(C=10, kernel="rbf", gamma=5),
    "laplacian, gamma = 5": CrammerSingerSVC(C=10, kernel="laplacian", gamma=5),
}
x1, x2 = np.meshgrid(np.linspace(-2.6, 2.6, 150), np.linspace(-2.6, 2.6, 150))
plane = np.column_stack([x1.ravel(), x2.ravel()])
colors = np.array(["#e8743b", "#3b78c4", "#4aa564"])
figure, panels = plt.subplots(2, 3, figsize=(10, 6.8), sharex=True, sharey=True, layout="constrained")
for panel, (name, machine) in zip(panels.flat, machines.items(), strict=True):
    machine.fit(X, y)
    regions = machine.predict(plane).reshape(x1.shape)
    panel.contourf(x1, x2, regions, levels=[-0.5, 0.5, 1.5, 2.5], colors=colors, alpha=0.35)
    panel.scatter(X[:, 0], X[:, 1], c=colors[y], s=7)
    rows = f", {len(machine.support_)} support vectors" if machine.kernel != "linear" else ""
    panel.set_title(f"{name}\naccuracy {machine.score(X, y):.2f}{rows}", fontsize="small")
plt.show()
