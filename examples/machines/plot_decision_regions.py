"""
Decision regions of all machines
================================

The same three classes, seen by every machine of the library. Linear machines cut the plane by straight lines; kernel
machines bend them. The darker the colour, the larger the lead of the winning class over the second.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.svm import LinearSVC

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    FuzzyPairwiseClassifier,
    LDMClassifier,
    LpNormSVC,
    MultiMarginSVC,
    ODMClassifier,
    SemiSupervisedMarginSVC,
    TopKSVC,
    ULDMClassifier,
    WestonWatkinsSVC,
)
from skmargin.inspection import class_scores

X, y = make_blobs(180, centers=[(-1.5, -0.6), (1.4, -0.8), (0.2, 1.5)], cluster_std=0.85, random_state=3)
some_labels = np.where(np.random.default_rng(0).random(len(y)) < 0.15, y, -1)  # -1: not labelled

# %%
# Twelve machines at their defaults. ``SemiSupervisedMarginSVC`` sees 15 % of the labels only, and the others as -1.

machines = [
    CrammerSingerSVC(),
    WestonWatkinsSVC(),
    TopKSVC(k=2),
    ODMClassifier(),
    M3SVC(),
    MultiMarginSVC(),
    LpNormSVC(),
    SemiSupervisedMarginSVC(),
    ULDMClassifier(),
    LSSVC(),
    LDMClassifier(),
    FuzzyPairwiseClassifier(LinearSVC()),
]
colors = np.array([[0.91, 0.45, 0.23], [0.23, 0.47, 0.77], [0.29, 0.65, 0.39]])
x1, x2 = np.meshgrid(np.linspace(-4, 4, 160), np.linspace(-3.5, 4, 150))
plane = np.column_stack([x1.ravel(), x2.ravel()])

figure, panels = plt.subplots(3, 4, figsize=(11, 8.2), sharex=True, sharey=True, layout="constrained")
for panel, machine in zip(panels.flat, machines, strict=True):
    machine.fit(X, some_labels if isinstance(machine, SemiSupervisedMarginSVC) else y)
    scores = np.sort(class_scores(machine, plane), axis=1)
    lead = scores[:, -1] - scores[:, -2]
    depth = 0.25 + 0.5 * np.clip(lead / np.quantile(lead, 0.8), 0, 1)
    tint = 1 - depth[:, None] * (1 - colors[machine.predict(plane)])
    panel.imshow(tint.reshape(*x1.shape, 3), extent=(-4, 4, -3.5, 4), origin="lower", aspect="auto")
    panel.scatter(X[:, 0], X[:, 1], c=colors[y], s=9, edgecolors="white", linewidths=0.4)
    panel.set_title(f"{type(machine).__name__}\ntraining accuracy {machine.score(X, y):.3f}", fontsize="small")
plt.show()
