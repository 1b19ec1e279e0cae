"""Parameters may be numbers of NumPy, as a search over an array gives them: the fit has the same bits."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    LDMClassifier,
    LpNormSVC,
    MultiMarginSVC,
    ODMClassifier,
    TopKSVC,
    ULDMClassifier,
    WestonWatkinsSVC,
)

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals

MACHINES = [
    CrammerSingerSVC(C=0.1, tol=1e-8),
    WestonWatkinsSVC(C=0.1, tol=1e-8),
    TopKSVC(C=0.1, tol=1e-8),
    LpNormSVC(C=0.1, p=1.2, tol=1e-10),
    LpNormSVC(C=0.1, p=3.0, tol=1e-10),
    MultiMarginSVC(C=0.1, tol=1e-8),
    ODMClassifier(C=10.0, tol=1e-8),
    LDMClassifier(C=0.1, tol=1e-8),
    M3SVC(tol=1e-6),
    ULDMClassifier(),
]


def numpy_numbers(machine):
    """A copy whose numbers are NumPy's."""
    kinds = {float: np.float64, int: np.int64, bool: np.bool_}
    numbers = {name: kinds[type(v)](v) for name, v in machine.get_params().items() if type(v) in kinds}
    return clone(machine).set_params(**numbers)


def rows(n=200, d=40, k=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, k)) + 3 * rng.normal(size=(n, k))).argmax(axis=1)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("make", [np.asarray, lambda X: sparse.csr_array(X * (np.abs(X) > 1.5))])
def test_same_machine(machine, make):
    X, y = rows()
    X = make(X)
    machine = clone(machine).set_params(**({"random_state": 0} if "random_state" in machine.get_params() else {}))
    one, other = machine.fit(X, y), numpy_numbers(machine).fit(X, y)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("machine", [*MACHINES, LSSVC(C=0.3), LDMClassifier(C=0.3, loss="least_squares")], ids=str)
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_short_numbers_are_the_numbers_they_are(machine, kind):
    X, y = rows(n=60, d=5)
    numbers = {name: kind(v) for name, v in machine.get_params().items() if type(v) is float and kind(v) > 0}
    numbers["tol"] = kind(1e-3)
    seed = {"random_state": 0} if "random_state" in machine.get_params() else {}
    short = clone(machine).set_params(**numbers, **seed).fit(X, y)
    long = clone(machine).set_params(**{name: float(v) for name, v in numbers.items()}, **seed).fit(X, y)
    np.testing.assert_array_equal(short.decision_function(X), long.decision_function(X))
    assert short.objective_ == long.objective_


@pytest.mark.filterwarnings("ignore:LpNormSVC stopped")
@pytest.mark.parametrize("name", ["tol", "p"])
def test_rows_of_a_kernel_that_does_not_fit_into_the_cache(name):
    X, y = rows(n=700, d=5)
    machine = LpNormSVC(kernel="rbf", tol=1e-5, cache_size=1, max_iter=100, random_state=0)
    other = clone(machine).set_params(**{name: np.float64(getattr(machine, name))})
    assert machine.fit(X, y).objective_ == other.fit(X, y).objective_
