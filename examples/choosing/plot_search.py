"""
MarginSearchCV against GridSearchCV
===================================

:class:`~skmargin.model_selection.MarginSearchCV` has the interface of scikit-learn's ``GridSearchCV`` and finds the
same scores. It does the work that candidates share once: kernels, factorisations, and the way from one ``C`` to the
next.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from skmargin import CrammerSingerSVC, ULDMClassifier
from skmargin.model_selection import MarginSearchCV

X, y = load_digits(return_X_y=True)
X, y = X[:700] / 16, y[:700]
jobs = {
    "CrammerSingerSVC\n11 values of C": (CrammerSingerSVC(tol=1e-4), {"C": np.logspace(-3, 2, 11)}),
    "CrammerSingerSVC, RBF\n3 widths, 5 values of C": (
        CrammerSingerSVC(kernel="rbf"),
        {"gamma": [0.01, 0.03, 0.1], "C": [0.1, 1, 10, 100, 1000]},
    ),
    "ULDMClassifier\n3 widths, 8 strengths": (
        ULDMClassifier(),
        {"gamma": [0.01, 0.03, 0.1], "alpha": np.logspace(-8, 0, 8)},
    ),
}

# %%
# Three folds, one thread, processor seconds.

seconds, differences = {}, {}
for name, (machine, grid) in jobs.items():
    scores = []
    for search in (GridSearchCV, MarginSearchCV):
        start = time.process_time()
        found = search(machine, grid, cv=3).fit(X, y)
        seconds[name, search.__name__] = time.process_time() - start
        scores.append(found.cv_results_["mean_test_score"])
    differences[name] = np.abs(scores[0] - scores[1]).max()
    ratio = seconds[name, "GridSearchCV"] / seconds[name, "MarginSearchCV"]
    print(f"{name.splitlines()[0]}: {ratio:.1f} times faster, largest difference of a score {differences[name]:.4f}")

figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
places = np.arange(len(jobs))
for shift, search in ((-0.2, "GridSearchCV"), (0.2, "MarginSearchCV")):
    bars = axes.bar(places + shift, [seconds[name, search] for name in jobs], 0.4, label=search)
    axes.bar_label(bars, fmt="%.2f s", fontsize="small")
axes.set(xticks=places, xticklabels=list(jobs), ylabel="processor seconds", yscale="log")
axes.legend()
plt.show()
