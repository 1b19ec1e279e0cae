"""Estimators on Dask collections: the same bits wherever the work is done, and the optimum of the rows in memory."""

import pickle

import dask
import dask.dataframe as dd
import dask_data
import numpy as np
import pandas as pd
import pytest
from dask.utils import key_split
from dask_data import numbers
from scipy import sparse
from sklearn.base import clone

from skmargin import (
    CrammerSingerSVC,
    MultiMarginSVC,
    ODMClassifier,
    TopKSVC,
    WestonWatkinsSVC,
)
from skmargin.rows import workers
from skmargin.rows.blocks import Block
from skmargin.solvers.blocks.gradient import GradientPass
from skmargin.solvers.blocks.passes import BlockProblem, Frame, SmoothPass

MACHINES = [
    CrammerSingerSVC(random_state=0),
    WestonWatkinsSVC(random_state=0, fit_intercept=False),
    TopKSVC(k=2, random_state=0),
    MultiMarginSVC(random_state=0),
    ODMClassifier(mu=0.0, random_state=0),
]
N, D, K, PART = 24_000, 8, 4, 3_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.choice(K, N, p=[0.4, 0.3, 0.2, 0.1])
    X = rng.normal(size=(K, D))[y] + 1.3 * rng.normal(size=(N, D))
    return X.astype(np.float32), np.array(["ant", "bee", "cat", "dog"])[y], rng.uniform(0.5, 2.0, N)


def arrays(*values, part=PART):
    return dask_data.arrays(*values, part=part)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_optimum_of_the_rows_in_memory(rows, machine):
    X, y, weight = rows
    model = machine.fit(*arrays(X, y), sample_weight=arrays(weight)[0])
    assert model.dual_gap_ <= model.tol and isinstance(model.coef_, np.ndarray)
    exact = type(machine)(**{**machine.get_params(), "tol": 1e-6}).fit(X, y, sample_weight=weight)
    assert exact.objective_ * (1 - 1e-6) <= model.objective_ <= exact.objective_ * (1 + model.tol)
    assert np.array_equal(model.classes_, exact.classes_)


def test_the_same_bits_on_threads_one_worker_and_two(rows, cluster, client, monkeypatch):
    collections = arrays(*rows[:2])
    with_two = numbers(CrammerSingerSVC(random_state=0).fit(*collections))
    cluster.scale(1)
    with_one = numbers(CrammerSingerSVC(random_state=0).fit(*collections))
    monkeypatch.setattr(workers, "current_client", lambda: None)
    on_threads = numbers(CrammerSingerSVC(random_state=0).fit(*collections))
    assert with_two == with_one == on_threads


def test_predictions_are_lazy(rows, client):
    X, y, _ = rows
    Xd, yd = arrays(X, y)
    model = pickle.loads(pickle.dumps(CrammerSingerSVC(random_state=0).fit(Xd, yd)))
    labels, scores = model.predict(Xd), model.decision_function(Xd)
    assert dask.is_dask_collection(labels) and dask.is_dask_collection(scores)
    assert np.array_equal(labels.compute(), model.predict(X))
    np.testing.assert_array_equal(scores.compute(), model.decision_function(X))
    assert dask.is_dask_collection(model.score(Xd, yd))
    assert float(model.score(Xd, yd).compute()) == pytest.approx(model.score(X, y), abs=1e-12)


def test_two_classes_have_one_column(rows):
    X, y, _ = rows
    few = y < "c"
    Xd, yd = arrays(X[few], y[few])
    model = CrammerSingerSVC(random_state=0).fit(Xd, yd)
    assert model.coef_.shape == (1, D) and model.decision_function(Xd).compute().shape == (few.sum(),)


def test_data_frames(rows):
    X, y, weight = rows
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(label=y, weight=weight)
    parts = dd.from_pandas(frame, npartitions=8)
    names = [f"x{j}" for j in range(D)]
    model = CrammerSingerSVC(random_state=0).fit(parts[names], parts["label"], sample_weight=parts["weight"])
    assert model.feature_names_in_.tolist() == names
    blocks = [(X[at : at + 3000], y[at : at + 3000], weight[at : at + 3000]) for at in range(0, N, 3000)]
    lists = [[dask.delayed(one) for one in column] for column in zip(*blocks, strict=True)]
    same = CrammerSingerSVC(random_state=0).fit(lists[0], lists[1], sample_weight=lists[2])
    assert numbers(model) == numbers(same)
    assert np.array_equal(model.predict(parts[names]).compute(), model.predict(frame[names]))
    assert np.array_equal(same.predict(lists[0]).compute(), same.predict(X))


def test_sparse_blocks_of_few_and_of_very_many_columns():
    rng = np.random.default_rng(1)
    n, k = 6000, 5
    for d in (30, 3000):
        S = sparse.random(n, d, 12 / d, "csr", random_state=1, dtype=np.float64)
        y = (S @ rng.normal(size=(d, k)) + 0.1 * rng.normal(size=(n, k))).argmax(axis=1)
        parts = [dask.delayed(S[at : at + 1000]) for at in range(0, n, 1000)]
        labels = [dask.delayed(y[at : at + 1000]) for at in range(0, n, 1000)]
        for fit_intercept in (False, True):
            model = CrammerSingerSVC(tol=1e-2, fit_intercept=fit_intercept, random_state=0).fit(parts, labels)
            exact = CrammerSingerSVC(tol=1e-6, fit_intercept=fit_intercept).fit(S, y)
            assert model.dual_gap_ <= 1e-2
            assert exact.objective_ * (1 - 1e-6) <= model.objective_
            assert model.objective_ * (1 - model.dual_gap_) <= exact.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("machine", [CrammerSingerSVC(C=0.01), ODMClassifier(mu=0.0)], ids=lambda m: type(m).__name__)
def test_dense_blocks_of_very_many_columns(machine):
    rng = np.random.default_rng(0)
    n, d, k = 4000, 600, 5
    y = rng.integers(k, size=n)
    X = (rng.normal(size=(n, d)) + 0.25 * rng.normal(size=(k, d))[y]).astype(np.float32)
    model = clone(machine).set_params(tol=1e-2, random_state=0).fit(*arrays(X, y, part=1000))
    exact = clone(machine).set_params(tol=1e-6).fit(X, y)
    assert model.dual_gap_ <= 1e-2 and model.n_iter_ < 100
    assert exact.objective_ * (1 - 1e-6) <= model.objective_
    assert model.objective_ * (1 - model.dual_gap_) <= exact.objective_ * (1 + 1e-6)


def test_weights_and_class_weights(rows):
    X, y, weight = rows
    weight = np.where(np.arange(N) % 3 == 0, 0.0, weight)
    model = CrammerSingerSVC(class_weight="balanced", random_state=0)
    model.fit(*arrays(X, y), sample_weight=arrays(weight)[0])
    exact = CrammerSingerSVC(class_weight="balanced", tol=1e-6).fit(X, y, sample_weight=weight)
    assert exact.objective_ * (1 - 1e-6) <= model.objective_ <= exact.objective_ * (1 + model.tol)


def test_labels_and_weights_are_divided_as_the_rows(rows):
    X, y, _ = rows
    Xd, yd = arrays(X, y)
    same = CrammerSingerSVC(random_state=0).fit(Xd.rechunk((PART, 3)), yd.rechunk(1234))
    assert numbers(same) == numbers(CrammerSingerSVC(random_state=0).fit(Xd, yd))


def test_empty_partitions_and_labels_missing_in_one(rows):
    X, y, _ = rows
    order = np.argsort(y, kind="stable")  # each partition has one or two of the classes
    parts = [dask.delayed(X[order[at : at + 3000]]) for at in range(0, N, 3000)]
    labels = [dask.delayed(y[order[at : at + 3000]]) for at in range(0, N, 3000)]
    full = CrammerSingerSVC(random_state=0).fit(parts, labels)
    parts.insert(3, dask.delayed(X[:0]))
    labels.insert(3, dask.delayed(y[:0]))
    assert full.objective_ == pytest.approx(CrammerSingerSVC(random_state=0).fit(parts, labels).objective_, rel=1e-3)


def test_rows_that_change_are_noticed(rows):
    X, y, _ = rows
    calls = []

    def moody(at):
        calls.append(at)
        return X[at : at + PART - (calls.count(at) > 1 and at == 0)]

    parts = [dask.delayed(moody, pure=False)(at) for at in range(0, N, PART)]
    labels = [dask.delayed(y[at : at + PART]) for at in range(0, N, PART)]
    with pytest.raises(ValueError, match="Partition 0 had 3000 rows at first and now has 2999"):
        CrammerSingerSVC().fit(parts, labels)


def test_features_that_no_row_has_are_not_sent():
    rng = np.random.default_rng(0)
    k, d, few = 3, 50_000, 40
    X = sparse.random(30, few, 0.3, "csr", random_state=0, dtype=np.float32)
    X.resize(30, d)
    W = np.zeros((k, d), dtype=np.float32)
    W[:, :few] = rng.normal(size=(k, few))
    task = GradientPass(BlockProblem(k, "max", intercept="none"), W, np.zeros(k), 0.1)
    sums = task.zero()
    task.add(sums, Block(sparse.csr_array(X), rng.integers(0, k, 30).astype(np.int32), np.ones(30), 0))
    for sent in (task, sums):
        assert len(pickle.dumps(sent)) < 20 * k * few + 2000
    there = pickle.loads(pickle.dumps(task)), pickle.loads(pickle.dumps(sums))
    assert np.array_equal(there[0].W, W) and there[0].W.dtype == W.dtype
    assert np.array_equal(there[1].gradient, sums.gradient) and there[1].gradient.any()


def test_dask_does_not_warn_of_large_points(rows, client):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1kB"}):  # a warning is an error here
        CrammerSingerSVC(tol=1e-2, random_state=0).fit(*arrays(*rows[:2]))


def test_tasks_have_names_that_say_what_they_do(rows, client):
    seen = set()
    compute = client.compute

    def watched(values):
        seen.update(key_split(key) for value in values for key in dict(value.dask))
        return compute(values)

    client.compute = watched
    CrammerSingerSVC(random_state=0).fit(*arrays(*rows[:2]))
    ours = {name for name in seen if name.startswith("skmargin")}
    assert {"skmargin-check", "skmargin-moments-draw", "skmargin-pass", "skmargin-pass-add"} <= ours


def test_sums_arrive_as_they_were_sent(rows):
    X, y, weight = rows
    block = Block(X[:500], np.unique(y[:500], return_inverse=True)[1].astype(np.int32), weight[:500], 0)
    task = SmoothPass(BlockProblem(K, "max"), Frame(np.zeros(D), np.ones(D)), np.zeros((K, D + 1)), 0.5, 0.5)
    sums = task.zero()
    task.add(sums, block)
    there = pickle.loads(pickle.dumps(sums))
    for name in ("values", "gradient", "laplacian"):
        assert np.array_equal(getattr(there, name), getattr(sums, name))
    assert sums.laplacian.any()


def test_rows_and_labels_of_the_same_files(rows, tmp_path):
    X, y, weight = rows
    names = [f"x{j}" for j in range(D)]
    frame = pd.DataFrame(X, columns=names).assign(label=y, weight=weight, other="?")
    for part in range(8):
        frame[3000 * part : 3000 * (part + 1)].to_parquet(tmp_path / f"{part}.parquet")
    read = dd.read_parquet(tmp_path / "*.parquet")  # of the labels alone, several files would be one partition
    model = CrammerSingerSVC(random_state=0).fit(read[names], read["label"], sample_weight=read["weight"])
    same = CrammerSingerSVC(random_state=0).fit(*arrays(X, y), sample_weight=arrays(weight)[0])
    assert numbers(model) == numbers(same)
    assert float(model.score(read[names], read["label"]).compute()) == pytest.approx(same.score(X, y), abs=1e-12)
    with pytest.raises(ValueError, match="y must have one dimension, got two; choose one column"):
        CrammerSingerSVC().fit(read[names], read[["label"]])
    with pytest.raises(ValueError, match="y has 4 partitions and X has 8"):
        CrammerSingerSVC().fit(read[names], read["label"].repartition(npartitions=4))
    with pytest.raises(ValueError, match=r"Partition 0 of \d: X has \d+ rows, y "):
        CrammerSingerSVC().fit(read[names], read.loc[read["x0"] > 0, "label"])
