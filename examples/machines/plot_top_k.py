"""
Top-k: the right class among the first few
==========================================

:class:`~skmargin.TopKSVC` asks that the right class beats the ``k`` strongest rivals *on average*: it gives up a little
accuracy to have the right class among the first ``k`` more often. ``k = 1`` is the machine of Crammer and Singer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import train_test_split

from skmargin import TopKSVC

rng = np.random.default_rng(0)
n_classes, n_features, n = 50, 20, 5000
y = rng.integers(n_classes, size=n)
X = rng.normal(size=(n_classes, n_features))[y] + 1.6 * rng.normal(size=(n, n_features))  # classes overlap
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
ks = [1, 3, 5, 10]
curves = []
for k in ks:
    scores = TopKSVC(C=0.03, k=k).fit(X_train, y_train).decision_function(X_test)
    curves.append([top_k_accuracy_score(y_test, scores, k=m) for m in range(1, 11)])
    print(f"k = {k}: top-1 {curves[-1][0]:.3f}, top-5 {curves[-1][4]:.3f}, top-10 {curves[-1][9]:.3f}")
for k, curve in zip(ks, curves, strict=True):
    axes.plot(range(1, 11), 100 * (np.array(curve) - curves[0]), marker="o", label=f"TopKSVC(k={k})")
axes.set(xlabel="m", ylabel="top-m accuracy minus that of k = 1, points", xticks=range(1, 11))
axes.legend()
plt.show()
