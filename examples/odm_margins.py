"""Margin distributions of the optimal margin distribution machine and of Crammer and Singer's.

    python examples/odm_margins.py [--out odm_margins.png]

Half of the digits is for training; at the end the support vectors of the RBF machine as theta grows.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skmargin import CrammerSingerSVC, ODMClassifier
from skmargin.inspection import margins


def main() -> None:
    """Margins on the digits divided by their mean, on the training half and on the other; then the support vectors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="odm_margins.png")
    out = parser.parse_args().out
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.5, random_state=0)
    X_train, X_test, y_train, y_test = parts
    machines = {
        "Crammer-Singer": CrammerSingerSVC(random_state=0),
        "ODM": ODMClassifier(random_state=0),
    }
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), sharex=True, layout="constrained")
    bins = np.linspace(-1, 3, 61)
    for name, machine in machines.items():
        machine.fit(X_train, y_train)
        for axes, rows, labels, part in (
            (panels[0], X_train, y_train, "training half"),
            (panels[1], X_test, y_test, "held-out half"),
        ):
            values = margins(machine, rows, labels)
            values = values / values.mean()
            label = f"{name}: deviation {values.std():.2f}, errors {np.mean(values <= 0):.3f}"
            axes.hist(values, bins, histtype="stepfilled", alpha=0.5, label=label)
            axes.set(title=part, xlabel="margin / mean margin", ylabel="samples")
            print(f"{part}: {label}")
    for axes in panels:
        axes.axvline(0, color="grey", linewidth=0.8)
        axes.legend(fontsize="small", loc="upper right")
        axes.margins(y=0.25)
    figure.savefig(out, dpi=120)

    for theta in (0.0, 0.2, 0.4, 0.6, 0.8):
        machine = ODMClassifier(theta=theta, kernel="rbf", random_state=0).fit(X_train, y_train)
        print(f"theta {theta}: {len(machine.support_)} support vectors, accuracy {machine.score(X_test, y_test):.3f}")


if __name__ == "__main__":
    main()
