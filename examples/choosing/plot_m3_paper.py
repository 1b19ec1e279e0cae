"""
M3SVC: convergence, p and lambda
================================

Figures 3 to 5 of Nie, Hao and Wang (2024) on scikit-learn's own data: the objective along the iterations of L-BFGS, and
the test accuracy for several powers ``p`` and strengths (the paper's lambda, here ``alpha``). The curves of convergence
end where the duality gap, which the paper does not have, is below ``tol``.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skmargin import M3SVC

POWERS = (1, 2, 3, 4, 6, 8)
STRENGTHS = np.logspace(-4, 0, 9)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for load in (load_iris, load_wine, load_digits):
    name = load.__name__.removeprefix("load_")
    X, X_test, y, y_test = train_test_split(*load(return_X_y=True), test_size=0.2, random_state=42)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    steps, values = [], []
    for max_iter in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fits that are stopped early
            machine = M3SVC(solver="lbfgs", max_iter=max_iter).fit(X, y)
        steps.append(machine.n_iter_)
        values.append(machine.objective_)
        if machine.dual_gap_ <= machine.tol:
            break
    left.loglog(steps, values, marker="o", label=name)
    by_power = [M3SVC(tol=1e-2, p=p).fit(X, y).score(X_test, y_test) for p in POWERS]
    middle.plot(POWERS, by_power, marker="o", label=name)
    by_strength = [M3SVC(tol=1e-2, alpha=alpha).fit(X, y).score(X_test, y_test) for alpha in STRENGTHS]
    right.semilogx(STRENGTHS, by_strength, marker="o", label=name)
    print(f"{name}: best p {POWERS[int(np.argmax(by_power))]}, best alpha {STRENGTHS[int(np.argmax(by_strength))]:.1e}")
left.set(title="convergence", xlabel="iteration", ylabel="objective")
middle.set(title="power p (alpha = 1e-3)", xlabel="p", ylabel="test accuracy")
right.set(title="strength alpha (p = 4)", xlabel="alpha")
left.legend()
plt.show()
