"""
Rare classes
============

Where one class is rare, a machine that counts rows may never predict it. ``class_weight="balanced"`` gives every class
the same total weight; weights are exact here (weight 2 is the same as repeating the row). What it costs is accuracy on
the common classes, so judge by balanced accuracy or by your own costs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split

from skmargin import CrammerSingerSVC

X, y = make_classification(
    6000, 12, n_informative=6, n_classes=3, weights=[0.88, 0.09, 0.03], class_sep=0.9, flip_y=0.01, random_state=1
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

figure, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
choices = {"no weights": None, "half way": {0: 1, 1: 3, 2: 6}, "balanced": "balanced"}
for shift, (name, class_weight) in zip((-0.27, 0, 0.27), choices.items(), strict=True):
    guess = CrammerSingerSVC(C=0.1, class_weight=class_weight).fit(X_train, y_train).predict(X_test)
    recall = recall_score(y_test, guess, average=None)
    label = (
        f"{name}: accuracy {accuracy_score(y_test, guess):.3f}, balanced {balanced_accuracy_score(y_test, guess):.3f}"
    )
    axes.bar(np.arange(3) + shift, recall, 0.27, label=label)
    print(label)
shares = np.bincount(y_train) / len(y_train)
axes.set(xticks=range(3), xticklabels=[f"class {c}\n{share:.0%} of the rows" for c, share in enumerate(shares)])
axes.set(ylabel="share of the class that is found", ylim=(0, 1.35))
axes.legend(fontsize="small", loc="upper right")
plt.show()
