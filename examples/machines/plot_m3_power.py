"""
How p changes the margins of M3SVC
==================================

:class:`~skmargin.M3SVC` adds up the distances of all pairs of class vectors, each to the power ``p``. The margin
between two classes is two over that distance. The larger ``p``, the more the pair with the smallest margin counts, and
the more equal all margins become.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin import M3SVC
from skmargin.inspection import PairwiseMarginDisplay, pairwise_margins

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
pairs = np.triu_indices(10, 1)
powers = [2, 3, 4, 6, 8]
machines = {p: M3SVC(alpha=0.1, p=p).fit(X_train, y_train) for p in powers}

# %%
# Each curve is divided by its mean, since a larger power is also a stronger penalty.

figure, panels = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
for p, machine in machines.items():
    values = np.sort(pairwise_margins(machine)[pairs])
    smallest = values[0] / values.mean()
    print(f"p = {p}: smallest margin {smallest:.2f} of the mean, test accuracy {machine.score(X_test, y_test):.3f}")
    panels[0].plot(values / values.mean(), label=f"p = {p}")
panels[0].set(xlabel="pairs of classes, sorted", ylabel="margin / mean margin")
panels[0].legend()
for panel, p in zip(panels[1:], (2, 8), strict=True):
    PairwiseMarginDisplay.from_estimator(machines[p], ax=panel)
    panel.set_title(f"p = {p}")
plt.show()
