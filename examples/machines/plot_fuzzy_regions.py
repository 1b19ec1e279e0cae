"""
Fuzzy pairwise regions against votes
====================================

With one two-class machine for each pair of classes no class may win all of its duels. scikit-learn's
``OneVsOneClassifier`` counts votes, and sums of scores where they tie. :class:`~skmargin.FuzzyPairwiseClassifier` takes
the class whose *worst* duel is best, so that the region without a winner is divided by the machines themselves.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC

from skmargin import FuzzyPairwiseClassifier

X, y = make_blobs(100, centers=4, center_box=(-2.5, 2.5), cluster_std=0.8, random_state=1)
x1, x2 = np.meshgrid(np.linspace(-4, 4, 250), np.linspace(-4, 4, 250))
plane = np.column_stack([x1.ravel(), x2.ravel()])
votes = OneVsOneClassifier(SVC(gamma=0.5)).fit(X, y)
fuzzy = FuzzyPairwiseClassifier(SVC(gamma=0.5)).fit(X, y)

# %%
# The region where no class wins all of its three duels is left black in the first picture.

wins = np.zeros((len(plane), 4))
for (j, l), machine in zip(combinations(range(4), 2), votes.estimators_, strict=True):
    duel = machine.decision_function(plane)
    wins[:, l] += duel > 0
    wins[:, j] += duel <= 0
no_winner = wins.max(axis=1) < 3
by_votes, by_memberships = votes.predict(plane), fuzzy.predict(plane)
print(
    f"no winner on {no_winner.mean():.1%} of the plane; the rules differ on {np.mean(by_votes != by_memberships):.1%}"
)

colors = np.array(["#e8743b", "#3b78c4", "#4aa564", "#b07cc6", "black"])
figure, panels = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
titles = {
    "winner of all duels": np.where(no_winner, 4, by_votes),
    "votes, then sums of scores": by_votes,
    "fuzzy: best worst duel": by_memberships,
}
for panel, (title, regions) in zip(panels, titles.items(), strict=True):
    panel.contourf(x1, x2, regions.reshape(x1.shape), levels=np.arange(6) - 0.5, colors=colors, alpha=0.4)
    panel.scatter(X[:, 0], X[:, 1], c=colors[y], s=9)
    panel.set_title(title)
plt.show()

# %%
# ``memberships`` says how far a row belongs to each class: 1 inside, less (also negative) where a duel is lost.

print(np.round(fuzzy.memberships(X[:3]), 2))
