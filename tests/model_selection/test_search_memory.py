"""What folds, candidates and threads of a search share."""

import sysconfig
import tracemalloc

import numpy as np
import pytest
from joblib import effective_n_jobs
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from searches import X, Y, both
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    MultiMarginSVC,
    ULDMClassifier,
    WestonWatkinsSVC,
)
from skmargin._runtime.shared_rows import SharedRows, converted, converted_whole, sharing_rows, window
from skmargin.model_selection import MarginSearchCV
from skmargin.model_selection._folds import windows
from skmargin.solvers.primal.rows import RowProducts
from skmargin.solvers.tuning import DEFAULT

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_kernel_matrices_of_both_precisions(kernel, monkeypatch):
    """A tolerance that allows it is met in single precision; the next candidate needs double."""
    monkeypatch.setattr(CrammerSingerSVC, "_tuning", DEFAULT.changed(common={"call_work": 131**3 / 6}))
    machine, grid = (
        CrammerSingerSVC(kernel=kernel, gamma=1.0),
        {"tol": [2e-4, 1e-9], "class_weight": [None, "balanced"]},
    )
    spread = make_scorer(lambda y, scores: np.abs(scores).mean(), response_method="decision_function")
    ours, theirs = (search.cv_results_ for search in both(machine, grid, scoring=spread, refit=False))
    for params, found, expected in zip(ours["params"], ours["mean_test_score"], theirs["mean_test_score"], strict=True):
        assert_allclose(found, expected, rtol=0.05 if params["tol"] > 1e-6 else 1e-5)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_folds_on_threads_are_views_of_one_array(container):
    rows = container(np.arange(40.0).reshape(20, 2) % 7)
    splits = list(KFold(3, shuffle=True, random_state=0).split(rows))
    new_splits, parts, _ = windows(rows, splits)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    for (train, test), (new_train, new_test), part in zip(splits, new_splits, parts, strict=True):
        assert set(train) == set(new_train) and set(test) == set(new_test) and len(train) == len(new_train)
        for found, wanted in zip(part, (new_train, new_test), strict=True):
            assert_array_equal(found.toarray() if sparse.issparse(found) else found, dense[wanted])
    base = lambda part: part.data if sparse.issparse(part) else part  # noqa: E731
    assert np.shares_memory(base(parts[0][0]), base(parts[1][0]))
    assert windows(rows, list(ShuffleSplit(2, random_state=0).split(rows))) is None
    assert windows(rows, [(np.arange(5), np.arange(5, 20)), (np.arange(5, 20), np.arange(5))]) is not None
    assert windows(rows, [(np.arange(4), np.arange(5, 20)), (np.arange(5, 20), np.arange(5))]) is None


def peak_memory(estimator, grid, rows, n_jobs):
    """Memory at the peak of a search, in units of the rows."""
    search = MarginSearchCV(estimator, grid, cv=5, n_jobs=n_jobs, refit=False)
    # Where Python has no lock it keeps a table for each thread, up to 1 MiB, which is not ours but counted.
    tables = (n_jobs + effective_n_jobs(-1)) * 2**20 if sysconfig.get_config_var("Py_GIL_DISABLED") else 0
    tracemalloc.start()
    try:
        search.fit(rows, np.arange(len(rows)) % 3)
        return (tracemalloc.get_traced_memory()[1] - tables) / rows.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("estimator", "density", "dtype"),
    [
        (CrammerSingerSVC(), 1.0, np.float32),
        (CrammerSingerSVC(), 1.0, np.float64),  # solved in single precision
        (WestonWatkinsSVC(), 0.1, np.float64),  # and as sparse rows
        (MultiMarginSVC(), 1.0, np.float64),  # and with one more column
        (MultiMarginSVC(), 0.1, np.float64),
    ],
)
def test_memory_does_not_grow_with_the_threads_by_the_rows(estimator, density, dtype):
    rng = np.random.default_rng(0)
    rows = rng.random((5000, 2000), dtype=np.float32).astype(dtype)
    rows[rng.random(rows.shape) >= density] = 0
    # The peak of small arrays that threads hold at the same moment varies; copies of the rows would be in every run.
    one, five = (min(peak_memory(estimator, {"C": [1e-4, 1e-3]}, rows, n) for _ in range(3)) for n in (1, 5))
    assert five - one < 0.5 * density


LINEAR_ULDM = ULDMClassifier(kernel="linear")


@pytest.mark.parametrize(
    ("estimator", "grid", "shape", "dtype", "shared"),
    [
        (M3SVC(), {"alpha": [10.0, 1.0]}, (5000, 400), np.float32, 1.6),  # the rows close to their margins
        (M3SVC(loss="log_loss"), {"alpha": [1.0, 0.1]}, (5000, 400), np.float64, 2.4),  # and in single precision
        (M3SVC(), {"alpha": [1.0, 0.1]}, (200, 4000), np.float64, 1.65),  # one factor for all folds, and a few rows
        (LINEAR_ULDM, {"alpha": [1e-3, 1e-2]}, (8000, 200), np.float64, 1.6),
        (LINEAR_ULDM, {"alpha": [1e-12, 1e-2]}, (8000, 200), np.float64, 1.6),  # triangles of QR factors
        (LINEAR_ULDM, {"alpha": [1e-3, 1e-2]}, (200, 4000), np.float64, 1.6),
        (LINEAR_ULDM, {"fit_intercept": [True, False]}, (8000, 200), np.float64, 1.6),  # fits one by one
        (LSSVC(kernel="linear"), {"C": [1e-3, 1e-2]}, (8000, 200), np.float32, 1.6),
    ],
)
def test_a_thread_needs_pieces_of_the_rows_only(estimator, grid, shape, dtype, shared, monkeypatch):
    # the sizes of pieces are constants: here small beside the rows, as they are beside large ones
    pieces = {"cache_numbers": 1 << 14, "call_work": 51**3 / 6}
    monkeypatch.setattr(type(estimator), "_tuning", DEFAULT.changed(common=pieces, primal={"pairs": 50}))
    rows = np.random.default_rng(0).random(shape, dtype=np.float32).astype(dtype)
    of_a_thread = 0.3 if dtype == np.float64 else 0.5
    for n_jobs in (1, 5):  # however the threads meet
        assert peak_memory(estimator, grid, rows, n_jobs) < shared + n_jobs * of_a_thread


def test_shared_rows():
    rows = np.arange(40.0).reshape(20, 2)
    single = lambda whole: whole.astype(np.float32)  # noqa: E731
    shared = SharedRows(rows)
    with sharing_rows(shared):
        first, second = converted(rows[3:9], "f", single), converted(rows[5:20], "f", single)
        assert np.shares_memory(first, second) and first.dtype == np.float32
        assert_array_equal(first, rows[3:9])
        assert_array_equal(converted(first[1:3], "wide", lambda r: np.hstack([r, r])), np.hstack([rows[4:6]] * 2))
        wide = converted(rows[4:6], "wide", lambda r: np.hstack([r, r]))  # of other rows than the one before
        assert wide.dtype == np.float64
        between, of_another_type = rows.ravel()[1:13].reshape(6, 2), rows.view(np.int64)[3:9]
        for other in (rows[::2], rows[:, :1], rows[3:9].copy(), between, of_another_type):  # no windows
            assert not np.shares_memory(converted(other, "f", single), first)
            assert_array_equal(converted(other, "f", single), other)
    assert not np.shares_memory(converted(rows[3:9], "f", single), first)


def test_lent_sparse_rows_with_empty_ones():
    dense = np.arange(24.0).reshape(12, 2) * (np.arange(12) % 3 > 0)[:, None]
    rows = sparse.csr_array(dense)
    wide = lambda some: sparse.csr_array(sparse.hstack([some, np.ones((some.shape[0], 1))], format="csr"))  # noqa: E731
    with sharing_rows(SharedRows(rows, 9)):
        forms = [converted(window(rows, slice(a, a + 5)), "wide", wide) for a in range(8)]
        for a, form in enumerate(forms):
            assert np.shares_memory(form.data, forms[max(a - 1, 0)].data)
            assert_array_equal(form.toarray(), np.hstack([dense[a : a + 5], np.ones((5, 1))]))
        single = converted(forms[3].data, "f", lambda numbers: numbers.astype(np.float32))
        assert np.shares_memory(single, converted(forms[4].data, "f", lambda numbers: numbers.astype(np.float32)))
        made, start = converted_whole(
            window(rows, slice(4, 6)), "count", lambda whole, n: (whole, n), lambda made: made[0]
        )
        assert (made[0] is rows, made[1], start) == (True, 9, 4)
        part = window(rows, slice(1, 6))
        for columns, n_columns in ((1 - part.indices, 2), (part.indices, 3)):  # other columns, and more of them
            other = sparse.csr_array((part.data, columns, part.indptr), shape=(5, n_columns), copy=False)
            other.data = part.data
            assert_array_equal(converted(other, "wide", wide).toarray(), wide(other).toarray())
    assert not np.shares_memory(converted(window(rows, slice(0, 5)), "wide", wide).data, forms[0].data)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_in_another_precision_are_shared(container):
    splits = list(KFold(3).split(np.zeros((20, 2))))
    shared = windows(container(np.arange(40.0).reshape(20, 2)), splits)
    with sharing_rows(shared.shared):
        first, second = (RowProducts(train).astype(np.float32) for train, _ in shared.parts[:2])
    numbers = lambda rows: rows.X.data if rows.sparse else rows.X  # noqa: E731
    assert first.dtype == np.float32 and np.shares_memory(numbers(first), numbers(second))
    for found, (train, _) in zip((first, second), shared.parts, strict=False):
        assert_array_equal(found.times(np.eye(2)), RowProducts(train).times(np.eye(2)))


def test_first_steps_are_fitted_once_a_fold():
    calls = []
    count = FunctionTransformer(lambda X: (calls.append(len(X)), X)[1])
    grid = {"crammersingersvc__C": [0.1, 1.0, 10.0], "crammersingersvc__class_weight": [None, "balanced"]}
    MarginSearchCV(make_pipeline(count, CrammerSingerSVC()), grid, cv=3, refit=False, n_jobs=2).fit(X, Y)
    assert sorted(calls) == [50, 50, 50, 100, 100, 100]
