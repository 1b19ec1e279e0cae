"""
Margin distributions: ODM against Crammer-Singer
================================================

The machine of Crammer and Singer cares for the smallest margins only. :class:`~skmargin.ODMClassifier` wants all of
them near one: its distribution of margins is narrower.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin import CrammerSingerSVC, ODMClassifier
from skmargin.inspection import margins

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
machines = {
    "Crammer-Singer": CrammerSingerSVC(random_state=0).fit(X_train, y_train),
    "ODM": ODMClassifier(random_state=0).fit(X_train, y_train),
}

# %%
# Scores of different machines have different scales, so each margin is divided by the mean margin of its machine.
# Negative margins are errors.

figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), sharex=True, layout="constrained")
parts = {"training half": (X_train, y_train), "held-out half": (X_test, y_test)}
for panel, (part, (rows, labels)) in zip(panels, parts.items(), strict=True):
    for name, machine in machines.items():
        values = margins(machine, rows, labels)
        values = values / values.mean()
        label = f"{name}: deviation {values.std():.2f}, errors {np.mean(values <= 0):.3f}"
        panel.hist(values, np.linspace(-1, 3, 61), histtype="stepfilled", alpha=0.5, label=label)
    panel.set(title=part, xlabel="margin / mean margin", ylabel="samples")
    panel.axvline(0, color="grey", linewidth=0.8)
    panel.legend(fontsize="small", loc="upper right")
    panel.margins(y=0.25)
plt.show()

# %%
# A narrower distribution does not always mean fewer errors: compare by cross-validation.
