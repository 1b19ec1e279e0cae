"""
All strengths of a penalty from one factorisation
=================================================

The two-class problems of :class:`~skmargin.ULDMClassifier` are linear systems that differ only in a multiple of the
identity. One factorisation solves them for every strength ``alpha``, and gives the scores of rows that were left out,
too: no machine is fitted twice.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skmargin import ULDMClassifier

X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16, y[:600]


def seconds(alpha: float | np.ndarray) -> tuple[float, ULDMClassifier]:
    """Processor time of one fit, and the machine."""
    start = time.process_time()
    machine = ULDMClassifier(alpha=alpha, gamma=0.05).fit(X, y)
    return time.process_time() - start, machine


# %%
# A list of strengths makes the fit a search: ``cv=None`` leaves one row out at a time. By refitting, that would be as
# many fits as rows times strengths.

seconds(1e-6)  # the first fit of a session also loads libraries
one, _ = seconds(1e-6)
counts = [5, 10, 20, 40, 80]
runs = [seconds(np.logspace(-10, 1, count)) for count in counts]
times, machine = [run[0] for run in runs], runs[-1][1]
by_refits = [one * len(y) * count for count in counts]
print(f"80 strengths, leave-one-out: {times[-1]:.2f} s; by refits, from the time of one fit: {by_refits[-1]:.0f} s")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
left.semilogx(np.logspace(-10, 1, 80), np.ravel(machine.cv_scores_))
left.axvline(machine.alpha_, color="grey", linewidth=0.8)
left.set(xlabel="alpha", ylabel="leave-one-out accuracy", title=f"chosen: alpha = {machine.alpha_:.1e}")
right.loglog(counts, by_refits, marker="s", label="by refits (from one fit)")
right.loglog(counts, times, marker="o", label="ULDMClassifier")
right.set(xlabel="number of strengths", ylabel="seconds")
right.legend()
plt.show()
