import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from skmargin import LSSVC, LDMClassifier, ULDMClassifier
from skmargin.estimators._base import MarginClassifier
from skmargin.solvers.tuning import DEFAULT

IRIS, SPECIES = load_iris(return_X_y=True)
TWO = SPECIES > 0
X, Y = IRIS[TWO], SPECIES[TWO]
SIGN = np.where(Y == 2, 1.0, -1.0)
WEIGHT = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)


@parametrize_with_checks(
    [
        LDMClassifier(random_state=0),
        LDMClassifier(kernel="linear", multi_class="ovr", random_state=0),
        LDMClassifier(loss="least_squares", multi_class="ovo"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


def optimum(R, C, l1, l2, square):
    p = WEIGHT / WEIGHT.sum()
    n = len(p)
    w = cp.Variable(R.shape[1])
    d = cp.multiply(SIGN, R @ w)
    spread = np.diag(np.sqrt(p)) @ (np.eye(n) - np.outer(np.ones(n), p))
    loss = 0.5 * WEIGHT @ cp.square(1 - d) if square else WEIGHT @ cp.pos(1 - d)
    objective = 0.5 * cp.sum_squares(w) - l1 * p @ d + 0.5 * l2 * cp.sum_squares(spread @ d) + C * loss
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value, R @ w.value


@pytest.mark.parametrize("loss", ["hinge", "least_squares"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_optimum(loss, kernel, fit_intercept):
    parameters = {"C": 0.5, "lambda1": 2.0, "lambda2": 3.0, "kernel": kernel, "gamma": 0.3, "loss": loss}
    model = LDMClassifier(**parameters, fit_intercept=fit_intercept, tol=1e-9, random_state=0).fit(X, Y, WEIGHT)
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=0.3))
    R = X if kernel == "linear" else vectors * np.sqrt(np.maximum(values, 0))
    R = np.c_[R, np.ones(len(X))] if fit_intercept else R
    objective, f = optimum(R, 0.5, 2.0, 3.0, loss == "least_squares")
    assert_allclose(model.objective_, objective, rtol=1e-8)
    assert_allclose(model.decision_function(X), f, atol=1e-4)
    assert (model.dual_gap_ is None) == (loss == "least_squares")
    if loss == "hinge":
        assert model.dual_gap_ <= 1e-9
        assert model.n_iter_ >= 1


def test_without_mean_and_variance_it_is_the_l1_svm_without_bias():
    svm = LinearSVC(loss="hinge", fit_intercept=False, C=0.5, tol=1e-10, max_iter=1000000, random_state=0).fit(X, Y)
    parameters = {"lambda1": 0.0, "lambda2": 0.0, "kernel": "linear", "fit_intercept": False}
    model = LDMClassifier(C=0.5, tol=1e-10, random_state=0, **parameters).fit(X, Y)
    assert_allclose(model.coef_, svm.coef_, atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "least_squares"])
def test_without_loss_it_is_the_unconstrained_machine(loss):
    # LDM / lambda1 with C -> 0 is the ULDM with alpha = 1 / lambda1 (lambda1 = lambda2, no intercept)
    model = LDMClassifier(C=1e-12, lambda1=20.0, lambda2=20.0, loss=loss, kernel="linear", fit_intercept=False)
    uldm = ULDMClassifier(alpha=1 / 20, kernel="linear", fit_intercept=False).fit(X, Y)
    assert_allclose(model.fit(X, Y).coef_, uldm.coef_, rtol=1e-6)


@pytest.mark.parametrize("multi_class", ["fuzzy_pairwise", "ovo", "ovr"])
@pytest.mark.parametrize("loss", ["hinge", "least_squares"])
def test_several_classes_kernels_and_sparse_rows(multi_class, loss):
    for kernel in ("rbf", "linear"):
        model = LDMClassifier(C=10.0, kernel=kernel, multi_class=multi_class, loss=loss, random_state=0, n_jobs=2)
        f = model.fit(IRIS, SPECIES).decision_function(IRIS)
        assert model.score(IRIS, SPECIES) > (0.7 if multi_class == "ovr" else 0.93)
        rows = sparse.csr_array(IRIS)
        assert_allclose(model.fit(rows, SPECIES).decision_function(rows), f, atol=1e-5)


def test_weights_are_repeats():
    weight = np.random.default_rng(1).integers(0, 4, 150)
    model = LDMClassifier(random_state=0).fit(IRIS, SPECIES, sample_weight=weight)
    repeated = LDMClassifier(random_state=0).fit(np.repeat(IRIS, weight, axis=0), np.repeat(SPECIES, weight))
    assert_allclose(model.decision_function(IRIS), repeated.decision_function(IRIS), atol=1e-7)


def test_basis_and_warning():
    model = LDMClassifier(C=10.0, basis="kmeans++", n_basis=30, random_state=0).fit(IRIS, SPECIES)
    assert model.dual_coef_.shape[1] <= 30
    assert model.score(IRIS, SPECIES) > 0.93
    far = 100 * IRIS
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        LDMClassifier(C=1e6, kernel="linear", lambda2=0.0, tol=1e-15, max_iter=1, random_state=0).fit(far, SPECIES)


@pytest.mark.filterwarnings("ignore:LDMClassifier stopped")
@pytest.mark.parametrize("multi_class", ["fuzzy_pairwise", "ovr"])
def test_objective_and_gap_are_the_sum_and_the_worst_of_all_machines(multi_class):
    settings = {"C": 100.0, "kernel": "linear", "tol": 1e-12, "max_iter": 3, "random_state": 0}
    model = LDMClassifier(multi_class=multi_class, **settings).fit(IRIS, SPECIES)
    parts = [c == SPECIES for c in range(3)]
    if multi_class == "ovr":
        alone = [LDMClassifier(**settings).fit(IRIS, part) for part in parts]
    else:
        pairs = [parts[i] | parts[j] for i, j in ((0, 1), (0, 2), (1, 2))]
        alone = [LDMClassifier(**settings).fit(IRIS[pair], SPECIES[pair]) for pair in pairs]
    gaps = [one.dual_gap_ for one in alone]
    assert_allclose(model.objective_, sum(one.objective_ for one in alone), rtol=1e-6)
    assert_allclose(model.dual_gap_, max(gaps), rtol=1e-3)
    assert min(gaps) < 0.5 * max(gaps)


def test_a_warm_start_for_other_labels_is_a_cold_one():
    warm = LDMClassifier(C=10.0, warm_start=True, random_state=0).fit(IRIS, SPECIES)
    other = np.repeat([0, 1, 2], [70, 50, 30])
    cold = LDMClassifier(C=10.0, random_state=0).fit(IRIS, other)
    assert_allclose(warm.fit(IRIS, other).decision_function(IRIS), cold.decision_function(IRIS))


@pytest.mark.parametrize("gamma", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("C", [1e3, 1e6])
def test_strong_losses_and_badly_conditioned_kernels(C, gamma):
    w, Q = np.linalg.eigh(rbf_kernel(X, gamma=gamma) + 1)
    wanted, _ = optimum(Q * np.sqrt(np.maximum(w, 0)), C, 1.0, 1.0, False)
    model = LDMClassifier(C=C, gamma=gamma, tol=1e-8, random_state=0).fit(X, Y, sample_weight=WEIGHT)
    assert model.dual_gap_ <= 1e-8
    assert_allclose(model.objective_, wanted, rtol=1e-6)


@pytest.mark.parametrize("route", ["kernel", "few features", "rows"])
def test_warm_start(route, monkeypatch):
    no_passes_beyond_tol = {"call_work": 100}  # a few features may have a factor
    if route == "rows":
        no_passes_beyond_tol = {"call_work": 0, "dense_numbers": 0}
    monkeypatch.setattr(LDMClassifier, "_tuning", DEFAULT.changed(common=no_passes_beyond_tol))
    options = {"kernel": "rbf" if route == "kernel" else "linear", "tol": 1e-5, "random_state": 0, "max_iter": 10**6}
    warm = LDMClassifier(C=1.0, warm_start=True, **options).fit(IRIS, SPECIES, sample_weight=np.ones(150))
    first = warm.n_iter_
    again = warm.fit(IRIS, SPECIES).n_iter_
    assert again < first
    for changed in ({"C": 2.0}, {"lambda1": 3.0}, {"lambda2": 0.0}, {"lambda2": 5.0}, {"multi_class": "ovr"}):
        warm.set_params(**changed).fit(IRIS, SPECIES)
        cold = LDMClassifier(**{**warm.get_params(), "warm_start": False}).fit(IRIS, SPECIES)
        assert warm.dual_gap_ <= 1e-5
        assert_allclose(warm.objective_, cold.objective_, rtol=1e-4, atol=1e-4)
    weight = np.random.default_rng(0).uniform(0.5, 2, 150)
    warm.fit(IRIS, SPECIES, sample_weight=weight)
    cold = LDMClassifier(**{**warm.get_params(), "warm_start": False}).fit(IRIS, SPECIES, sample_weight=weight)
    assert_allclose(warm.objective_, cold.objective_, rtol=5e-5)
    warm.fit(IRIS[:100], SPECIES[:100])  # other rows: from nothing
    assert not hasattr(LDMClassifier(random_state=0).fit(IRIS, SPECIES), "_warm_state")


@pytest.mark.parametrize("estimator", [LDMClassifier(random_state=0), LDMClassifier(loss="least_squares"), LSSVC()],
                         ids=["hinge", "least-squares", "lssvc"])  # fmt: skip
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_edges(estimator, kernel):
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[SPECIES]
    rows = IRIS.copy()
    rows[0] = 0
    rows[1] = rows[2]
    rows.flags.writeable = False
    model = clone(estimator).set_params(kernel=kernel, C=10.0).fit(rows, names)
    scores = model.decision_function(rows)
    for container in (sparse.csr_array, sparse.csc_matrix, lambda X: X.astype(np.float32), np.asfortranarray):
        other = clone(model).fit(container(rows), names)
        assert_allclose(other.decision_function(container(rows)), scores, atol=2e-3)
        assert set(other.predict(container(rows))) <= set(names)
    corners, labels = np.repeat(np.eye(30), 2, axis=0), np.repeat(np.arange(30), 2)
    assert clone(model).set_params(C=100.0).fit(corners, labels).score(corners, labels) == 1
    for weight in (None, (SPECIES == 1).astype(float)):
        with pytest.raises(ValueError, match="one class"):
            clone(model).fit(rows, SPECIES if weight is not None else np.zeros(150), sample_weight=weight)
    with pytest.raises(ValueError, match="infinity"):
        clone(model).fit(np.where(rows == 0, np.inf, rows), names)


@pytest.mark.parametrize("lambda2", [0.0, 1.0])
def test_indefinite_kernels(lambda2):
    def machine(kernel="precomputed", **parameters):
        return LDMClassifier(lambda2=lambda2, kernel=kernel, fit_intercept=False, random_state=0, **parameters)

    K = X @ X.T
    indefinite = {"precomputed": -K, "sigmoid": X - X.mean(axis=0), "poly": X - X.mean(axis=0)}
    for kernel, rows in indefinite.items():
        with pytest.raises(ValueError, match="not positive semi-definite"):
            machine(kernel, gamma=1.0, coef0=-1.0 if kernel == "poly" else 1.0).fit(rows, Y)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        machine(lambda A, B: A @ np.diag([1, 1, 1, -1]) @ B.T).fit(X - X.mean(axis=0), Y)
    # rank 4: the other eigenvalues are rounding, of either sign
    rounded = [K - 1e-12 * np.linalg.norm(K) * np.eye(len(K)), K.astype(np.float32), (X.astype(np.float32) @ X.T)]
    exact = machine().fit(K, Y)
    for matrix in rounded:
        model = machine().fit(matrix, Y)
        assert_allclose(model.objective_, exact.objective_, rtol=1e-3)


@pytest.mark.parametrize("lambda2", [1e6, 1e12])
def test_objective_and_gap_are_those_of_the_coefficients(lambda2):
    K = rbf_kernel(X, gamma=0.3) + 1
    model = LDMClassifier(lambda2=lambda2, gamma=0.3, tol=1e-6, random_state=0).fit(X, Y)
    a = np.empty(len(X))
    a[model.support_] = model.dual_coef_[0]
    d = SIGN * (K @ a)
    assert_allclose(model.decision_function(X), K @ a, atol=1e-9)
    wanted = 0.5 * a @ K @ a - d.mean() + 0.5 * lambda2 * d.var() + np.maximum(0, 1 - d).sum()
    assert_allclose(model.objective_, wanted, rtol=1e-6)
    assert model.dual_gap_ <= 1e-6


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_numbers_beyond_double_precision(kernel):
    for name in ("C", "lambda1", "lambda2"):
        with pytest.raises(ValueError, match=f"{name} must .* at most 1e\\+120, got 1e\\+160"):
            LDMClassifier(**{name: 1e160}, kernel=kernel).fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match="lambda1=1e\\+100"):
        LDMClassifier(lambda1=1e100, kernel="linear").fit(1e100 * IRIS, SPECIES)


@pytest.mark.parametrize(
    ("parameters", "name"), [({"C": 0.0}, "C"), ({"lambda1": -1.0}, "lambda1"), ({"loss": "log"}, "loss")]
)
def test_errors(parameters, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        LDMClassifier(**parameters).fit(IRIS, SPECIES)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_least_squares_by_iterations_is_as_good_as_by_a_factorisation(kernel, monkeypatch):
    machine = LDMClassifier(C=100.0, loss="least_squares", kernel=kernel, basis="all")
    rows = X * 10.0 ** np.linspace(-2, 2, X.shape[1])
    direct = clone(machine).fit(rows, Y)
    monkeypatch.setattr(MarginClassifier, "_tuning", DEFAULT.changed(common={"dense_numbers": 3**2}))
    iterative = clone(machine).fit(rows, Y)
    assert iterative.n_iter_ > 1
    assert iterative.objective_ == pytest.approx(direct.objective_, rel=1e-6)
    with pytest.warns(ConvergenceWarning, match="relative gradient"):
        clone(machine).set_params(max_iter=2).fit(rows, Y)
