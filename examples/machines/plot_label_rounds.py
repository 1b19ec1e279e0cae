"""
How labels are found
====================

:class:`~skmargin.SemiSupervisedMarginSVC` gives unlabelled rows their labels and solves the convex machine for these
labels in turns. Neither half step can raise the objective; ``trajectory_`` keeps it after each of them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from skmargin import MultiMarginSVC, SemiSupervisedMarginSVC

X, y = load_digits(return_X_y=True)
X = X / 16
known = np.random.default_rng(0).random(len(y)) < 0.05
partly = np.where(known, y, -1)

# %%
# One label in twenty is known. The unlabelled rows enter in three stages, with a hundredth, a tenth and all of their
# weight; a stage ends when no label changes. The convex machine is solved exactly, by the paper's stochastic gradients
# (``solver="svrg"``), or with a kernel.

machines = {
    "exact": SemiSupervisedMarginSVC(C_unlabeled="even", random_state=0),
    "SVRG": SemiSupervisedMarginSVC(C_unlabeled="even", solver="svrg", random_state=0),
    "exact, rbf kernel": SemiSupervisedMarginSVC(C=10, C_unlabeled="even", kernel="rbf", random_state=0),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # SVRG stops above the tolerance, and says so
    for machine in machines.values():
        machine.fit(X, partly)

figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", sharey=True)
for column, (panel, stage) in enumerate(zip(panels, (0.01, 0.1, 1.0), strict=True)):
    for name, machine in machines.items():
        values = machine.trajectory_[machine.trajectory_[:, 0] == stage, 1]
        panel.plot(np.arange(len(values)) / 2, values / values[-1] - 1, ".-", label=name)
    panel.set(title=f"unlabelled rows weigh {stage:g}", xlabel="round")
    if column == 0:
        panel.set_ylabel("objective above the end of the stage")
panels[0].legend()
plt.show()

# %%
# Labels that were found in the first round may change later. ``labeled_iter_`` says which round gave a row its last
# label, ``transduction_`` which label that is. The supervised machine sees the labelled rows only.

for name, machine in machines.items():
    right = np.mean(machine.transduction_[~known] == y[~known])
    late = np.mean(machine.labeled_iter_[~known] > 1)
    print(
        f"{name}: {right:.1%} of the unlabelled rows right, {late:.1%} of them relabelled, gap {machine.dual_gap_:.1e}"
    )
alone = MultiMarginSVC(random_state=0).fit(X[known], y[known])
print(f"labelled rows only: {alone.score(X[~known], y[~known]):.1%}")
