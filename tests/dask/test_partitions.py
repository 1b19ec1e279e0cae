"""What partitions may be: of unknown size, of several number types; and who hears how far a fit on them is."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask_data import blocks, numbers
from scipy import sparse

from skmargin import CrammerSingerSVC
from skmargin.estimators._base import STEPS

N, D, PART = 12_000, 6, 2000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.choice(3, N, p=[0.5, 0.3, 0.2])
    X = rng.integers(-9, 10, size=(N, D)) + rng.integers(-4, 5, size=(3, D))[y]  # exact in every number type
    return X, y


def cut(values, types=(None,)):
    return blocks(values, PART, types)


@pytest.mark.parametrize(
    ("types", "as_one"),
    [
        (("float32", "float64", "int64", "uint8"), "float64"),
        (("float32", "float16"), "float64"),
        (("float32",), "float32"),
    ],
)
def test_number_types_that_differ_become_the_widest(rows, types, as_one):
    X, y = np.abs(rows[0]), rows[1]
    model = CrammerSingerSVC(random_state=0).fit(cut(X, types), cut(y, ("int8", "int64", "float32")))
    same = CrammerSingerSVC(random_state=0).fit(cut(X, (as_one,)), cut(y))
    assert numbers(model) == numbers(same)
    assert np.array_equal(model.classes_, [0, 1, 2])


def test_texts_of_several_lengths_and_objects(rows):
    X, y = rows
    names = np.array(["a", "bee", "camel"])[y]
    model = CrammerSingerSVC(random_state=0).fit(cut(X), cut(names, ("U5", object)))
    assert model.classes_.tolist() == ["a", "bee", "camel"]
    assert numbers(model) == numbers(CrammerSingerSVC(random_state=0).fit(cut(X), cut(y)))


def test_sparse_and_dense_partitions_are_refused(rows):
    parts = cut(rows[0])
    parts[4] = dask.delayed(sparse.csr_array(rows[0][4 * PART : 5 * PART]))
    with pytest.raises(ValueError, match=r"Partition 4 of 6 holds sparse rows, the first one dense"):
        CrammerSingerSVC().fit(parts, cut(rows[1]))


def test_partitions_of_unknown_size(rows):
    X, y = rows
    Xd, yd = da.from_array(X, chunks=(PART, D)), da.from_array(y, chunks=PART)
    keep = yd < 2
    model = CrammerSingerSVC(random_state=0).fit(Xd[keep], yd[keep])
    parts = [dask.delayed(v[at : at + PART][y[at : at + PART] < 2]) for v in (X, y) for at in range(0, N, PART)]
    same = CrammerSingerSVC(random_state=0).fit(parts[: N // PART], parts[N // PART :])
    assert numbers(model) == numbers(same)
    assert model.predict(Xd[keep]).compute().shape == ((y < 2).sum(),)
    with pytest.raises(ValueError, match=r"Partition 0 of 6: X has \d+ rows, y \d+ and sample_weight \d+; divide them"):
        CrammerSingerSVC().fit(Xd[keep], yd[yd > 0])


class Recorder:
    """Counts the tasks that begin and end."""

    max_propagation_depth = None

    def __init__(self):
        self.begun, self.ended = [], []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((context.estimator_name, context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.ended.append((context.estimator_name, context.task_name))


def test_callbacks_hear_of_a_fit_on_collections(rows, client):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    heard = Recorder()
    model = CrammerSingerSVC(random_state=0).set_callbacks(heard)
    model.fit(cut(rows[0]), cut(rows[1]))
    assert len(heard.begun) == len(heard.ended) == STEPS + 1
    assert {name for name, _ in heard.begun} == {"CrammerSingerSVC"}
    assert numbers(model) == numbers(CrammerSingerSVC(random_state=0).fit(cut(rows[0]), cut(rows[1])))
