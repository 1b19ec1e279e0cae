"""What the machines of Abe share (estimators/_pairwise.py)."""

import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris

from skmargin import LSSVC, LDMClassifier, ULDMClassifier
from skmargin.inspection import pairwise_margins

LINEAR, RBF, FEW, ALL = {"kernel": "linear"}, {"kernel": "rbf"}, {"basis": "random", "n_basis": 20}, {"basis": "all"}


@pytest.mark.parametrize("machine", [LSSVC, LDMClassifier, ULDMClassifier])
@pytest.mark.parametrize(("before", "after"), [(LINEAR, RBF), (RBF, LINEAR), (ALL, FEW), (FEW, ALL)])
def test_a_refit_with_another_kernel_or_basis_leaves_nothing_behind(machine, before, after):
    """Who looks at the machine, `pairwise_margins` for one, would take what is left for its own."""
    X, y = load_iris(return_X_y=True)
    again = machine(random_state=0, **before).fit(X, y).set_params(**after).fit(X, y)
    fresh = machine(random_state=0, **{**before, **after}).fit(X, y)
    assert vars(again).keys() == vars(fresh).keys()
    assert_array_equal(pairwise_margins(again), pairwise_margins(fresh))


@pytest.mark.parametrize("machine", [LSSVC, LDMClassifier, ULDMClassifier])
def test_a_width_of_zero_is_refused_as_by_the_other_machines(machine):
    with pytest.raises(ValueError, match=r"'gamma' parameter of .* in the range \(0.0, inf\)"):
        machine(gamma=0).fit(*load_iris(return_X_y=True))
