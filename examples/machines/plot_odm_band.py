"""
What theta and mu do
====================

:class:`~skmargin.ODMClassifier` leaves margins between ``1 - theta`` and ``1 + theta`` free. A wider band leaves fewer
support vectors. ``mu`` says what a margin above the band costs: with 0 large margins are free, with 1 they cost as much
as small ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin import ODMClassifier
from skmargin.inspection import margins

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)

# %%
# theta: a kernel machine with fewer and fewer support vectors.

thetas = [0.0, 0.2, 0.4, 0.6, 0.8]
fits = [ODMClassifier(theta=theta, kernel="rbf").fit(X_train, y_train) for theta in thetas]
counts = [len(machine.support_) for machine in fits]
scores = [machine.score(X_test, y_test) for machine in fits]
for theta, count, score in zip(thetas, counts, scores, strict=True):
    print(f"theta {theta}: {count} support vectors, accuracy {score:.3f}")

# %%
# mu: the part of the margins above the band shrinks.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
left.bar([str(theta) for theta in thetas], counts, color="#3b78c4")
left.set(xlabel="theta", ylabel="support vectors", title=f"of {len(y_train)} training rows")
for place, score in enumerate(scores):
    left.annotate(f"{score:.3f}", (place, counts[place]), ha="center", va="bottom", fontsize="small")
left.set_ylim(0, 1.12 * max(counts))
for mu in (0.0, 0.1, 0.5, 1.0):
    machine = ODMClassifier(mu=mu).fit(X_train, y_train)
    right.hist(margins(machine, X_train, y_train), np.linspace(-0.5, 3, 71), histtype="step", label=f"mu = {mu:g}")
right.axvspan(0.8, 1.2, color="grey", alpha=0.25, label="free band")
right.set(xlabel="margin of a training row", ylabel="rows", title="theta = 0.2")
right.legend()
plt.show()
