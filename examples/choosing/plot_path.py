"""
The path over C
===============

:func:`~skmargin.model_selection.margin_path` fits a machine for many values of one parameter. Each fit starts from the
one before, so that a path costs less than its fits alone.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin import CrammerSingerSVC
from skmargin.inspection import margins
from skmargin.model_selection import margin_path

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
values = np.logspace(-3, 2, 26)

start = time.process_time()
path = margin_path(CrammerSingerSVC(), X_train, y_train, "C", values)
warm = time.process_time() - start
start = time.process_time()
for C in values:
    CrammerSingerSVC(C=C).fit(X_train, y_train)
cold = time.process_time() - start
print(f"the path takes {warm:.2f} s, the same fits from nothing {cold:.2f} s")

# %%
# Small ``C``: short class vectors, many rows inside the margin. Large ``C``: the training rows are fitted closely.

figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
panels[0].semilogx(values, [fit.score(X_train, y_train) for fit in path], label="training half")
panels[0].semilogx(values, [fit.score(X_test, y_test) for fit in path], label="held-out half")
panels[0].set(xlabel="C", ylabel="accuracy")
panels[0].legend()
panels[1].loglog(values, [np.linalg.norm(fit.coef_) for fit in path])
panels[1].set(xlabel="C", ylabel="norm of the class vectors")
quantiles = np.array([np.quantile(margins(fit, X_test, y_test), [0.05, 0.25, 0.5, 0.75]) for fit in path])
for level, line in zip(("5 %", "25 %", "50 %", "75 %"), quantiles.T, strict=True):
    panels[2].semilogx(values, line, label=level)
panels[2].axhline(0, color="grey", linewidth=0.8)
panels[2].set(xlabel="C", ylabel="quantiles of the held-out margins")
panels[2].legend()
plt.show()
