"""Collections that cannot be used: one sentence that names the partition or what differs."""

import dask
import dask.array as da
import dask.dataframe as dd
import dask_data
import numpy as np
import pandas as pd
import pytest

from skmargin import CrammerSingerSVC, LpNormSVC

N, D, PART = 24_000, 8, 3_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=N)
    X = rng.normal(size=(4, D))[y] + 1.3 * rng.normal(size=(N, D))
    return X.astype(np.float32), np.array(["ant", "bee", "cat", "dog"])[y], rng.uniform(0.5, 2.0, N)


def arrays(*values):
    return dask_data.arrays(*values, part=PART)


def spoilt(rows, at, **changes):
    X, y, weight = (value.copy() for value in rows)
    parts = {"X": X, "y": y, "weight": weight}
    lists = {name: [value[i : i + PART] for i in range(0, N, PART)] for name, value in parts.items()}
    for name, change in changes.items():
        lists[name][at] = change(lists[name][at])
    return [[dask.delayed(one) for one in lists[name]] for name in parts]


def with_nan(X):
    X = X.copy()
    X[17, 2] = np.nan
    return X


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": with_nan}, r"Partition 5 of 8: X holds NaN or infinity in row 17"),
        ({"X": lambda X: X[:, :-1]}, r"Partition 5 of 8 has 7 features, the first one 8"),
        ({"X": lambda X: X[:-1]}, r"Partition 5 of 8: X has 2999 rows, y 3000 and sample_weight 3000; divide"),
        ({"y": lambda y: np.where(y == "ant", None, y)}, r"Partition 5 of 8: y holds missing values"),
        ({"y": lambda y: np.arange(len(y))}, r"text in some partitions and numbers in others"),
        ({"y": lambda y: np.arange(len(y)) / 7}, r"Partition 5 of 8: y holds numbers that are no labels"),
        ({"y": lambda y: y[:, None]}, r"Partition 5 of 8: y must have one dimension"),
        ({"weight": lambda w: -w}, r"Partition 5 of 8: sample_weight must be finite and not negative"),
        ({"X": lambda X: X.astype(str).astype(object) + "?"}, r"Partition 5 of 8: its rows are no numbers"),
        ({"X": lambda X: X + 1j}, r"Partition 5 of 8: its rows are no numbers \(they are complex\)"),
        ({"X": lambda X: X[:, :0]}, r"Partition 5 of 8: X has no features"),
        ({"X": lambda X: X[0]}, r"Partition 5 of 8: X must have two dimensions, got 1"),
        ({"y": lambda y: "ant"}, r"Partition 5 of 8: y must have one dimension, got 0"),
        ({"y": lambda y: np.array([3, *y[1:]], dtype=object)}, r"Partition 5 of 8: y or sample_weight cannot be used"),
        ({"y": lambda y: pd.Series(y, dtype="string").where(y != "ant")}, r"Partition 5 of 8: y holds missing values"),
        ({"weight": lambda w: ["heavy"] * len(w)}, r"Partition 5 of 8: y or sample_weight cannot be used"),
    ],
)
def test_bad_partitions_are_named(rows, changes, message):
    X, y, weight = spoilt(rows, 5, **changes)
    with pytest.raises(ValueError, match=message):
        CrammerSingerSVC().fit(X, y, sample_weight=weight)


def frames(rows, **columns):
    """Data frame and labels in eight partitions; some columns are others."""
    frame = pd.DataFrame(rows[0], columns=[f"x{j}" for j in range(D)]).assign(**columns)
    return dd.from_pandas(frame, npartitions=8), dd.from_pandas(pd.Series(rows[1]), npartitions=8)


def test_columns_that_are_no_numbers_are_named_by_their_partition(rows):
    names = pd.Series(rows[1]).where(np.arange(N) > 2 * PART)  # of the third partition on
    for column, message in (
        (rows[1], "Partition 0 of 8: its rows are no numbers"),
        (pd.Categorical(rows[1]), "Partition 0 of 8: its rows are no numbers"),
        (names, r"Partition \d of 8: (X holds NaN|its rows are no numbers)"),
        (pd.Timestamp("2020") + pd.to_timedelta(np.arange(N), "D"), "Partition 0 of 8: its rows are no numbers"),
        (
            pd.Series(np.arange(N), dtype="Int64").where(np.arange(N) != PART + 7),
            "Partition 1 of 8: X holds NaN .* row 7 ",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            CrammerSingerSVC().fit(*frames(rows, x3=column))


def test_columns_that_are_categories_of_numbers_truth_values_or_nullable(rows):
    whole = np.arange(N) % 5
    model = CrammerSingerSVC(random_state=0).fit(*frames(rows, x3=whole.astype(np.float64), x4=whole > 2.0))
    of_others = {"x3": pd.Categorical(whole), "x4": pd.Series(whole > 2, dtype="boolean")}
    same = CrammerSingerSVC(random_state=0).fit(*frames(rows, **of_others))
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-6)


def test_frames_with_columns_in_another_order_are_refused(rows):
    frame = pd.DataFrame(rows[0], columns=[f"x{j}" for j in range(D)])
    parts = [dask.delayed(frame[at : at + PART]) for at in range(0, N, PART)]
    parts[3] = dask.delayed(frame[3 * PART : 4 * PART][frame.columns[::-1]])
    labels = [dask.delayed(rows[1][at : at + PART]) for at in range(0, N, PART)]
    with pytest.raises(ValueError, match=r"Partition 3 of 8 has other columns than the first one, or in another order"):
        CrammerSingerSVC().fit(parts, labels)


def test_what_cannot_be_fitted_is_refused_in_one_sentence(rows):
    X, y, _ = rows
    Xd, yd = arrays(X, y)
    with pytest.raises(TypeError, match="LpNormSVC cannot be fitted to Dask collections: it needs all rows in memory"):
        LpNormSVC().fit(Xd, yd)
    with pytest.raises(ValueError, match="need kernel='linear', got kernel='rbf'"):
        CrammerSingerSVC(kernel="rbf").fit(Xd, yd)
    with pytest.raises(TypeError, match="y must be a Dask collection where X is one, got ndarray"):
        CrammerSingerSVC().fit(Xd, y)
    with pytest.raises(ValueError, match="y has 23999 rows and X has 24000"):
        CrammerSingerSVC().fit(Xd, yd[1:])
    with pytest.raises(ValueError, match="y has 7 partitions and X has 8"):
        CrammerSingerSVC().fit(*spoilt(rows, 0)[:1], spoilt(rows, 0)[1][1:])
    weights = da.ones(N, chunks=PART)
    with pytest.raises(ValueError, match="sample_weight has 23999 rows and X has 24000"):
        CrammerSingerSVC().fit(Xd, yd, sample_weight=weights[1:])
    with pytest.raises(ValueError, match="sample_weight has 12 partitions and X has 8"):
        CrammerSingerSVC().fit(Xd[yd > "a"], yd[yd > "a"], sample_weight=da.ones(N, chunks=2000))
    with pytest.raises(TypeError, match=r"X\[1\] must be a delayed block, as the first one is, got ndarray"):
        CrammerSingerSVC().fit([dask.delayed(X), X], [dask.delayed(y), dask.delayed(y)])
    with pytest.raises(ValueError, match="at least two classes"):
        CrammerSingerSVC().fit(Xd, da.zeros(N, chunks=PART, dtype=int))
