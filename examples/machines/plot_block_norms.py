"""
Block norms on many classes
===========================

:class:`~skmargin.LpNormSVC` couples the lengths of the class vectors by a p-norm. With ``p`` near 1 a few classes get
long vectors, with a large ``p`` all of them are about equally long; ``p = 2`` is the machine of Crammer and Singer.
Here are 60 classes; twenty of them are close to each other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skmargin import LpNormSVC

rng = np.random.default_rng(0)
k, d, n = 60, 40, 2400
centres = rng.normal(size=(k, d))
centres[:20] = centres[0] + 0.6 * rng.normal(size=(20, d))
y = rng.integers(k, size=n)
X = centres[y] + 1.2 * rng.normal(size=(n, d))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# The same ``C`` is a weaker penalty for a larger ``p``: both are tuned together.

strengths = [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for p in (1.1, 1.5, 2, 4, 10):
    lengths = np.linalg.norm(LpNormSVC(C=0.01, p=p).fit(X_train, y_train).coef_, axis=1)
    left.plot(np.sort(lengths / lengths.mean())[::-1], label=f"p = {p:g}")
    scores = [LpNormSVC(C=C, p=p).fit(X_train, y_train).score(X_test, y_test) for C in strengths]
    right.semilogx(strengths, scores, marker="o", label=f"p = {p:g}")
    print(f"p = {p:g}: best test accuracy {max(scores):.3f} at C = {strengths[int(np.argmax(scores))]}")
left.set(xlabel="classes, sorted", ylabel="length of the class vector / mean", title="C = 0.01", ylim=(0, 3))
left.legend()
right.set(xlabel="C", ylabel="test accuracy")
plt.show()
