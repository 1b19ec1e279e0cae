"""
Certificates along a fit
========================

A fit ends when its relative duality gap is below ``tol``. The gap is an upper bound of the distance to the optimum that
needs no knowledge of the optimum. Here both are drawn: the bound always lies above the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin import CrammerSingerSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
best = CrammerSingerSVC(tol=1e-9).fit(X_train, y_train)

# %%
# Looser and tighter fits of the same problem. ``dual_gap_`` is what each of them reached.

tols = np.logspace(0, -6, 13)
fits = [CrammerSingerSVC(tol=tol).fit(X_train, y_train) for tol in tols]
truth = np.array([1 - best.objective_ / fit.objective_ for fit in fits])
gaps = np.array([fit.dual_gap_ for fit in fits])
assert (gaps <= tols).all()
assert (truth <= gaps + 1e-9).all()

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.loglog(tols, tols, color="grey", linestyle=":", label="tol: what was asked for")
left.loglog(tols, gaps, marker="o", label="dual_gap_: what the fit proves")
left.loglog(tols, np.maximum(truth, 1e-10), marker="s", label="true distance to the optimum")
left.set(xlabel="tol", ylabel="relative to the objective")
left.invert_xaxis()
left.legend(fontsize="small")
right.semilogx(tols, [fit.score(X_test, y_test) for fit in fits], marker="o")
right.set(xlabel="tol", ylabel="test accuracy", title="the default is 1e-3", ylim=(0.9, 1))
right.invert_xaxis()
plt.show()
