"""
Probabilities from margins
==========================

A margin is not a probability. ``CalibratedClassifierCV`` of scikit-learn learns how often rows with a given score are
right; ``M3SVC(loss="log_loss")`` has probabilities of its own. The reliability curve shows what they are worth: a point
on the diagonal means that of the rows with 70 % confidence 70 % are right.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skmargin import M3SVC, CrammerSingerSVC

X, y = make_classification(4000, 20, n_informative=8, n_classes=4, class_sep=0.9, flip_y=0.05, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
machine = CrammerSingerSVC(C=0.1).fit(X_train, y_train)
calibrated = CalibratedClassifierCV(CrammerSingerSVC(C=0.1), method="sigmoid", cv=5).fit(X_train, y_train)
own = M3SVC(loss="log_loss", alpha=0.1).fit(X_train, y_train)
probabilities = {
    "softmax of the scores (do not do this)": softmax(machine.decision_function(X_test), axis=1),
    "CalibratedClassifierCV": calibrated.predict_proba(X_test),
    'M3SVC(loss="log_loss")': own.predict_proba(X_test),
}

# %%
# The log loss is small where probabilities are honest.

figure, axes = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
axes.plot([0.25, 1], [0.25, 1], color="grey", linestyle=":")
edges = np.linspace(0.25, 1, 11)
for name, p in probabilities.items():
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y_test
    bins = np.digitize(confidence, edges[1:-1])
    full = [b for b in range(10) if np.sum(bins == b) >= 20]
    axes.plot([confidence[bins == b].mean() for b in full], [right[bins == b].mean() for b in full], "o-", label=name)
    print(f"{name}: log loss {log_loss(y_test, p):.3f}, accuracy {right.mean():.3f}")
axes.set(xlabel="confidence", ylabel="share of right predictions")
axes.legend(fontsize="small")
plt.show()
