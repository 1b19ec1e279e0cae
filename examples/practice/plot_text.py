"""
Text: which package does a docstring belong to?
===============================================

Real text that is already on your disk: the docstrings of scikit-learn's functions and classes, cut into paragraphs. The
task is to tell from a paragraph which subpackage it describes. Sparse rows of unit length and a linear machine are the
classic of text classification; the longest weights say which words matter.
"""

import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skmargin import WestonWatkinsSVC
from skmargin.model_selection import MarginSearchCV

PACKAGES = ["cluster", "decomposition", "ensemble", "linear_model", "metrics", "model_selection", "preprocessing"]
PACKAGES.append("svm")
texts, labels = [], []
for package in PACKAGES:
    module = importlib.import_module(f"sklearn.{package}")
    for name in sorted(name for name in module.__all__ if not name.startswith("Halving")):  # those are experimental
        paragraphs = re.split(r"\n\s*\n", inspect.getdoc(getattr(module, name)) or "")
        new = [text for text in paragraphs if len(text.split()) >= 12 and ">>>" not in text]
        texts += new
        labels += [package] * len(new)
print(f"{len(texts)} paragraphs")
train, test, y_train, y_test = train_test_split(texts, labels, test_size=0.3, random_state=0, stratify=labels)

# %%
# The search shares the words of each fold between the candidates.

model = make_pipeline(TfidfVectorizer(sublinear_tf=True, token_pattern=r"[a-z_]{3,}"), WestonWatkinsSVC())
search = MarginSearchCV(model, {"westonwatkinssvc__C": [0.03, 0.1, 0.3, 1]}, cv=3).fit(train, y_train)
print(f"accuracy {search.score(test, y_test):.3f} with {search.best_params_}")

words = search.best_estimator_[0].get_feature_names_out()
machine = search.best_estimator_[1]
figure, panels = plt.subplots(2, 4, figsize=(11, 5.2), layout="constrained")
for panel, label, weights in zip(panels.flat, machine.classes_, machine.coef_, strict=True):
    top = np.argsort(weights)[-8:]
    panel.barh(words[top], weights[top], color="#3b78c4")
    panel.set_title(label)
    panel.tick_params(labelsize=8)
plt.show()
