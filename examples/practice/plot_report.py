"""
Reading a report
================

:func:`~skmargin.report.write_report` makes one HTML page of fitted models: accuracy, margins, confusions, the hardest
rows. The command ``skmargin compare digits --report report.html`` does the same without a line of code. Here are its
parts, one by one.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin import CrammerSingerSVC, ODMClassifier
from skmargin.inspection import MarginDistributionDisplay, PairwiseMarginDisplay, margins
from skmargin.report import Results, rank_models, summarize_dataset, summarize_model, write_report

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
machines = {"Crammer-Singer": CrammerSingerSVC(C=0.1), "ODM": ODMClassifier()}
data = summarize_dataset("digits", X_train, y_train)
results = []
for name, machine in machines.items():
    machine.fit(X_train, y_train)
    results.append(summarize_model(name, machine, X_test, y_test, data, X_train=X_train, y_train=y_train))
page = Path(tempfile.mkdtemp()) / "report.html"
write_report(Results("Digits", data, rank_models(results)), page)
print(f"{page.name}: {page.stat().st_size / 1024:.0f} kB, needs no network")

# %%
# The curve of the margins: where it crosses zero is the error rate. A curve that rises late and steeply is good.
# The map: dark pairs of classes are the ones with a narrow margin.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for name, machine in machines.items():
    MarginDistributionDisplay.from_estimator(machine, X_test, y_test, name=name, normalize=True, ax=panels[0])
PairwiseMarginDisplay.from_estimator(machines["Crammer-Singer"], ax=panels[1])
panels[1].set_title("width of the margin between two classes")
plt.show()

# %%
# The hardest rows: those with the most negative margins. Many of them are hard for people, too.

values = margins(machines["Crammer-Singer"], X_test, y_test)
guesses = machines["Crammer-Singer"].predict(X_test)
figure, panels = plt.subplots(1, 6, figsize=(10, 2.2), layout="constrained")
for panel, row in zip(panels, values.argsort()[:6], strict=True):
    panel.imshow(X_test[row].reshape(8, 8), cmap="gray_r")
    panel.set(xticks=[], yticks=[])
    panel.set_title(f"{y_test[row]}, not {guesses[row]}\nmargin {values[row]:.2f}", fontsize="small")
plt.show()
