"""Memory maps of files that become shorter: a sentence in place of the end of the process."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from skmargin import CrammerSingerSVC
from skmargin.datasets import open_rows
from skmargin.rows.blocks import ArrayRows
from skmargin.rows.maps import refuse_cut_map

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a file that is mapped cannot be cut there")
HEAD = 128  # bytes in front of the rows of an .npy file


def mapped(folder, n=3000, d=4):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, d)) + rng.normal(size=(3, d))[y]
    np.save(folder / "X.npy", X)
    return folder / "X.npy", np.load(folder / "X.npy", mmap_mode="r"), X, y


def cut(path, rows, d=4):
    os.truncate(path, HEAD + 8 * d * rows)


def test_a_map_that_was_cut_is_refused_by_fit_and_predict(tmp_path):
    path, M, X, y = mapped(tmp_path)
    clf = CrammerSingerSVC().fit(M, y)
    assert np.array_equal(clf.predict(M), clf.predict(X))
    cut(path, 1000)
    message = r"X.npy is shorter than its memory map, from row 1000 on; map it again"
    with pytest.raises(ValueError, match=message):
        CrammerSingerSVC().fit(M, y)
    with pytest.raises(ValueError, match=message):
        clf.predict(M)
    with pytest.raises(ValueError, match=message):
        CrammerSingerSVC().fit(open_rows((M, y)))
    with pytest.raises(ValueError, match=r"from row 100 on"):
        clf.predict(M[900:1200])
    assert clf.predict(M[:1000]).shape == (1000,)  # what is still there can be read


def test_a_map_that_is_cut_between_two_blocks(tmp_path):
    path, M, _, y = mapped(tmp_path)
    rows = ArrayRows(M, y.astype(np.int32), np.ones(len(y)), 3)
    rows.block_rows = 1000
    blocks = iter(rows)
    next(blocks)
    cut(path, 1500)
    with pytest.raises(ValueError, match=r"from row 1500 on"):
        next(blocks)


def test_maps_with_an_offset_and_arrays_that_are_none(tmp_path):
    path = tmp_path / "X.bin"
    np.zeros(100_000).tofile(path)
    M = np.memmap(path, dtype=np.float64, mode="r", offset=8 * 50_000, shape=(10_000, 5))
    refuse_cut_map(M)
    os.truncate(path, 8 * (50_000 + 25))
    with pytest.raises(ValueError, match=r"from row 5 on"):
        refuse_cut_map(np.asarray(M))
    refuse_cut_map(np.asarray(M)[:5])
    for other in (np.zeros((3, 2))[1:], [[1.0]], None):
        refuse_cut_map(other)
