"""A short look: our machines and scikit-learn's on the digits, same C, five folds.  ``make demo`` runs it."""

from __future__ import annotations

import time
import warnings

from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, LinearSVC

from skmargin import CrammerSingerSVC, TopKSVC, WestonWatkinsSVC

MODELS = {
    "skmargin CrammerSingerSVC": CrammerSingerSVC(),
    "skmargin WestonWatkinsSVC": WestonWatkinsSVC(),
    "skmargin TopKSVC(k=2)": TopKSVC(k=2),
    "skmargin CrammerSingerSVC, RBF kernel": CrammerSingerSVC(C=10, kernel="rbf"),
    "scikit-learn LinearSVC, one against the rest": LinearSVC(),
    "scikit-learn LinearSVC, Crammer-Singer": LinearSVC(multi_class="crammer_singer"),
    "scikit-learn LogisticRegression": LogisticRegression(max_iter=1000),
    "scikit-learn SVC, RBF kernel": SVC(C=10),
}


def main() -> None:
    """Fit every model on all digits, then print its time, accuracy in five folds and certificate."""
    X, y = load_digits(return_X_y=True)
    scaled = MinMaxScaler().fit_transform(X)
    print(f"{'1797 digits, 64 features, 10 classes':<46} {'fit':>8} {'accuracy':>9}   relative gap to the optimum")
    for name, model in MODELS.items():
        with warnings.catch_warnings():  # LinearSVC's Crammer-Singer warns even where it has converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = time.process_time()
            model.fit(scaled, y)
            seconds = time.process_time() - start
            accuracy = cross_val_score(make_pipeline(MinMaxScaler(), model), X, y).mean()
        gap = f"at most {model.dual_gap_:.1e}, certified" if hasattr(model, "dual_gap_") else "not known"
        print(f"{name:<46} {seconds:7.3f}s {accuracy:9.4f}   {gap}", flush=True)


if __name__ == "__main__":
    main()
