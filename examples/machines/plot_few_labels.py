"""
Few labels, many rows
=====================

:class:`~skmargin.SemiSupervisedMarginSVC` finds labels for unlabelled rows (label -1) while it learns. Here the digits
have 3, 5, 10 or 20 labels a class, and the rest of the training rows is unlabelled.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from skmargin import MultiMarginSVC, SemiSupervisedMarginSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0, stratify=y)


def hide(labels: np.ndarray, keep: int, seed: int) -> np.ndarray:
    """Keep so many labels of each class; all others become -1."""
    rng = np.random.default_rng(seed)
    shown = np.concatenate([rng.choice(np.flatnonzero(labels == c), keep, replace=False) for c in np.unique(labels)])
    partly = np.full(len(labels), -1)
    partly[shown] = labels[shown]
    return partly


# %%
# The supervised machine learns from the labelled rows only. Self-training of a logistic regression and label spreading
# are scikit-learn's ways to use the unlabelled rows. Four divisions each; the line is the mean.

counts = [3, 5, 10, 20]
machines = {
    "labelled rows only": MultiMarginSVC(),
    'with unlabelled rows, C_unlabeled="auto"': SemiSupervisedMarginSVC(),
    'with unlabelled rows, C_unlabeled="even"': SemiSupervisedMarginSVC(C_unlabeled="even"),
    "the same, rbf kernel": SemiSupervisedMarginSVC(C=10, C_unlabeled="even", kernel="rbf"),
    "self-training": SelfTrainingClassifier(LogisticRegression(C=10, max_iter=1000)),
    "label spreading": LabelSpreading(kernel="knn", n_neighbors=7),
}
scores = {name: np.empty((len(counts), 4)) for name in machines}
for place, count in enumerate(counts):
    for seed in range(4):
        partly = hide(y_train, count, seed)
        known = partly >= 0
        for name, machine in machines.items():
            rows = known if isinstance(machine, MultiMarginSVC) else np.ones_like(known)
            machine.fit(X_train[rows], partly[rows])
            with np.errstate(invalid="ignore"):  # label spreading divides by zero where no neighbour has a label
                scores[name][place, seed] = machine.score(X_test, y_test)

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, values in scores.items():
    (line,) = axes.plot(counts, values.mean(axis=1), label=name)
    axes.plot(counts, values, ".", color=line.get_color(), alpha=0.6)
    print(f"{name}: {np.round(values.mean(axis=1), 3)}")
axes.set(xlabel="labels a class", ylabel="test accuracy", xticks=counts)
axes.legend()
plt.show()

# %%
# Pictures of digits suit methods that look at neighbours: label spreading is ahead here with few labels. It keeps all
# training rows to predict; the linear machine keeps one vector for each class.
