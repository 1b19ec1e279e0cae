"""Samples that a check passes over (_core/linear/screening.hpp): the certificate must not depend on it."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from skmargin import CrammerSingerSVC, TopKSVC, WestonWatkinsSVC


def objective(model, X, y, C, kind):
    f = X @ model.coef_.T + model.intercept_
    hinge = np.maximum(0, 1 - f[np.arange(len(y)), y][:, None] + f)
    hinge[np.arange(len(y)), y] = 0
    hinge = -np.sort(-hinge, axis=1)[:, :-1]
    loss = {"max": hinge[:, 0], "sum": hinge.sum(axis=1), "top": hinge[:, :2].mean(axis=1)}[kind]
    return 0.5 * np.square(model.coef_).sum() + C * loss.sum()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["max", "sum", "top"])
@pytest.mark.parametrize("d", [3, 20])  # with 20 features the direction of the mean is set apart
def test_no_sample_with_a_loss_is_passed_over(kind, fit_intercept, d):
    """Most rows are far beyond their margins, some far on the wrong side; the offset makes the mean row long."""
    X, y = make_blobs(3000, d, centers=6, cluster_std=1.5, center_box=(-4, 12), random_state=0)
    y[::50] = (y[::50] + 1) % 6
    machine = {"max": CrammerSingerSVC, "sum": WestonWatkinsSVC, "top": TopKSVC}[kind]
    own = {"k": 2} if kind == "top" else {}
    for rows in (X, sparse.csr_array(X)):
        model = machine(fit_intercept=fit_intercept, warm_start=True, random_state=0, **own)
        for C, tol in ((1e-3, 1e-2), (1e-2, 1e-3), (1e-2, 1e-6), (1e-3, 1e-6)):
            model.set_params(C=C, tol=tol).fit(rows, y)
            assert model.dual_gap_ <= tol
            assert objective(model, X, y, C, kind) == pytest.approx(model.objective_, rel=1e-9)
