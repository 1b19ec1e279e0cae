"""Mutated data files: the reader gives data or a DataError, nothing else.

SKMARGIN_FUZZ_EXAMPLES sets how many files each test mutates (the full run: 10000).
"""

import bz2
import gzip
import io
import lzma
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skmargin.datasets import DataError, read_csv, read_libsvm, read_parquet, table_preprocessor

N = int(os.environ.get("SKMARGIN_FUZZ_EXAMPLES", "150"))
SETTINGS = settings(
    max_examples=N, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)

LIBSVM = b"".join(b"%d 1:%.3f 3:%d 7:-1e-3 # c\n" % (i % 3, i / 7, i) for i in range(12))
CSV = b"a,b,kind\n" + b"".join(b'%d,%.2f,"k %d"\n' % (i, i / 3, i % 3) for i in range(12))
PIECES = [
    b"\n",
    b" ",
    b":",
    b",",
    b'"',
    b"nan",
    b"inf",
    b"-",
    b"1e999",
    b"0x1",
    b"\x00",
    b"\xff",
    b"#",
    b"99999999999999",
]

edits = st.lists(
    st.tuples(st.integers(0, 2**16), st.integers(0, 6), st.one_of(st.binary(max_size=4), st.sampled_from(PIECES))),
    min_size=1,
    max_size=6,
)


def mutate(data, changes):
    for position, length, piece in changes:
        position %= len(data) + 1
        data = data[:position] + piece + data[position + length :]
    return data


def check(table, n_labels_needed=True):
    X = table.X.data if hasattr(table.X, "indptr") else table.X
    assert np.isfinite(X).all()
    assert table.y is None or len(table.y) == table.X.shape[0] > 0


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress], ids=["plain", "gz", "bz2", "xz"])
@pytest.mark.parametrize(("reader", "content"), [(read_libsvm, LIBSVM), (lambda p: read_csv(p, "kind"), CSV)])
def test_text_files(pack, reader, content, tmp_path):
    path = tmp_path / "fuzz"

    @SETTINGS
    @given(edits)
    def run(changes):
        path.write_bytes(mutate(pack(content), changes))
        try:
            check(reader(path))
        except DataError as error:
            assert str(path) in str(error)

    run()


RAW = b"n,when,word,kind\n" + b"".join(
    b'"%d,%d",%02d.%02d.2020,w%d %s,k%d\n' % (i, i % 7, 1 + i, 1 + i % 12, i % 4, b"\xc3\xa9" * (i % 2), i % 3)
    for i in range(24)
)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_raw_tables(pack, tmp_path):
    """A table or a DataError; what a table becomes is finite."""
    path = tmp_path / "fuzz"

    @SETTINGS
    @given(edits)
    def run(changes):
        path.write_bytes(mutate(pack(RAW), changes))
        try:
            X, y, names = read_csv(path, -1, raw=True)
            assert X.shape == (len(y), len(names))
        except DataError as error:
            assert str(path) in str(error)
            return
        try:
            features = table_preprocessor(X).fit_transform(X)
        except DataError as error:
            assert "No column is left" in str(error)
            return
        assert np.isfinite(features.data if hasattr(features, "indptr") else features).all()

    run()


def test_parquet_files(tmp_path):
    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(9.0), "b": np.arange(9), "kind": list("abcabcabc")}), buffer)
    path = tmp_path / "fuzz.parquet"

    @SETTINGS
    @given(edits)
    def run(changes):
        path.write_bytes(mutate(buffer.getvalue(), changes))
        try:
            check(read_parquet(path, "kind"))
        except DataError as error:
            assert str(path) in str(error)

    run()
