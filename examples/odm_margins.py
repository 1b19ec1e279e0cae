"""Margin distributions of the optimal margin distribution machine and of Crammer and Singer's."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin import CrammerSingerSVC, ODMClassifier
from skmargin.inspection import margins

OUT = Path(__file__).resolve().parent.parent / "docs" / "figures" / "odm_margins.png"


def main() -> None:
    """Held-out margins on the digits, divided by their mean."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
    n = len(y_train)
    machines = {
        "Crammer-Singer, C=1": CrammerSingerSVC(C=1),
        "ODM, mu=0 (no upper part)": ODMClassifier(C=n, mu=0),
        "ODM, mu=0.5": ODMClassifier(C=n, mu=0.5),
    }
    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for name, machine in machines.items():
        values = margins(machine.fit(X_train, y_train), X_test, y_test)
        values = np.sort(values / values.mean())
        spread = values.std()
        wrong = float((values <= 0).mean())
        label = f"{name}: deviation/mean {spread:.2f}, errors {wrong:.3f}"
        axes.plot(values, np.arange(1, len(values) + 1) / len(values), label=label)
        print(label)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set(xlabel="margin / mean margin", ylabel="share of test samples below")
    axes.legend(fontsize="small")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT, dpi=120)


if __name__ == "__main__":
    main()
