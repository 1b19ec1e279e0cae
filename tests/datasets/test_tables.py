import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from skmargin.datasets import BUILT_IN, DataError, _csv, _files, load_dataset, read_csv, read_parquet


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_sets(name):
    data = load_dataset(name)
    assert data.X.shape == (len(data.y), len(data.feature_names))
    assert data.name == name


def test_csv_with_quotes_byte_order_mark_and_text_labels(tmp_path):
    text = '\ufefflength,"a ""b"", <c>",kind\r\n1,2.5,"cat\nfish"\r\n\r\n-3e2, 4 ,שלום\r\n'
    X, y, names = read_csv(write(tmp_path, text), "kind")
    assert_array_equal(X, [[1, 2.5], [-300, 4]])
    assert y.tolist() == ["cat\nfish", "שלום"]
    assert names == ["length", 'a "b", <c>']


@pytest.mark.parametrize("rows", [8192, 3])
def test_csv_without_names_other_delimiters_compression(tmp_path, rows, monkeypatch):
    monkeypatch.setattr(_csv, "_ROWS", rows)
    table = np.random.default_rng(0).normal(size=(20, 3))
    labels = np.arange(20) % 4
    text = "\n".join(";".join(map(repr, [*map(float, row), int(k)])) for row, k in zip(table, labels, strict=True))
    data = load_dataset(write(tmp_path, gzip.compress(text.encode()), "data.csv.gz"), target=-1)
    assert_array_equal(data.X, table)
    assert_array_equal(data.y, labels)
    assert data.feature_names == ["0", "1", "2"] and data.y.dtype == np.int64
    unlabelled = load_dataset(write(tmp_path, text), labelled=False)
    assert unlabelled.y is None and unlabelled.X.shape == (20, 4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b,y\n1,2,x\n1,,x\n", r"line 3, column 'b': the value is missing"),
        ("a,b,y\n1,2,x\n1,NaN,x\n", r"line 3, column 'b': the value is missing"),
        ("a,b,y\n1,2,x\n?,1,x\n", r"line 3, column 'a': the value is missing"),
        ("a,b,y\n1,2,x\n1,2,\n", r"line 3, column 'y': the label is missing"),
        ("a,b,y\n1,red,x\n", r"line 2, column 'b': 'red' is not a number"),
        ("a,b,y\n1,1_000,x\n", r"line 2, column 'b': '1_000' is not a number"),
        ("a;b;y\n1;2,5;x\n", r"line 2, column 'b': '2,5' is not a number. Write decimal points"),
        (",a,y\n0,1,x\n1,1,x\n", r"line 1: column 0 has no name. If it numbers the rows"),
        ("a,b,y\n1,inf,x\n", r"line 2, column 'b': 'inf' is not a finite number"),
        ("a,b,y\n1,2,x\n1,2\n", r"line 3: 2 columns instead of 3"),
        ("a,b,y\n1,2,x\n1,2,x,4\n", r"line 3: 4 columns instead of 3"),
        ('a,b,y\n1,2,x\n1,"2,x\n', r"line 3: .*unexpected end"),
        ("a,a,y\n1,2,x\n", r"line 1: two columns are called 'a'"),
        ("a,b,z\n1,2,x\n", r"there is no column 'y'; the columns are 'a', 'b', 'z'"),
        ("y\n1\n", r"no column besides the target"),
        ("a,y\n", r"no samples"),
        ("", r"the file is empty"),
        (b"a,y\n1,\xff\n", r"not UTF-8"),
        ("a,y\n1,0.5\n2,1.5\n", r"the target column 'y' holds the number 0.5"),
    ],
)
def test_broken_csv(tmp_path, text, reason):
    with pytest.raises(DataError, match=reason):
        read_csv(write(tmp_path, text), "y")


def test_csv_larger_than_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "available_memory", lambda: 10)
    with pytest.raises(DataError, match="do not fit into memory"):
        read_csv(write(tmp_path, "a,y\n1,2\n"), "y")


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    path = write(tmp_path, "a,y\n1,2\n" + "1" * 5000)
    monkeypatch.setattr(_csv, "MAX_LINE", 1000)
    with pytest.raises(DataError, match="line 3: longer than"):
        read_csv(path, "y")
    monkeypatch.setattr(_files, "MAX_LINE", 1000)
    monkeypatch.setattr(_files, "CHUNK", 500)
    path = write(tmp_path, "1 1:2\n1 " + "1" * 5000, "data.svm")
    with pytest.raises(DataError, match="line 2: longer than"):
        load_dataset(path)


def test_sources_that_are_no_data(tmp_path):
    with pytest.raises(DataError, match="neither a file nor one of the built-in data sets iris, wine"):
        load_dataset("irises")
    with pytest.raises(DataError, match="is a folder"):
        load_dataset(tmp_path)
    with pytest.raises(DataError, match="say which column"):
        load_dataset(write(tmp_path, "a,y\n1,2\n"))
    with pytest.raises(DataError, match="no such file"):
        read_csv(tmp_path / "none.csv", "y")


class TestParquet:
    def write(self, tmp_path, **columns):
        path = tmp_path / "data.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    def test_numbers_booleans_and_text_labels(self, tmp_path):
        path = self.write(tmp_path, a=[1, 2], b=[True, False], c=np.float32([0.5, 1]), y=["<b>", "é"])
        data = load_dataset(path, target="y")
        assert_array_equal(data.X, [[1, 1, 0.5], [2, 0, 1]])
        assert data.y.tolist() == ["<b>", "é"] and data.feature_names == ["a", "b", "c"]
        assert read_parquet(self.write(tmp_path, a=[1.5], y=[3]), "y").y.dtype == np.int64
        assert read_parquet(self.write(tmp_path, a=[1.5], y=[True]), "y").y.dtype == bool

    def test_refusals(self, tmp_path):
        for columns, reason in [
            ({"a": [1, None], "y": [0, 1]}, "row 2, column 'a': the value is missing"),
            ({"a": [1, np.nan], "y": [0, 1]}, "row 2, column 'a': the value is missing"),
            ({"a": [np.inf, 1], "y": [0, 1]}, "row 1, column 'a': the value is not finite"),
            ({"a": ["red", "x"], "y": [0, 1]}, "column 'a': holds string, not numbers"),
            ({"a": [1, 2], "y": [0, None]}, "row 2, column 'y': the label is missing"),
            ({"a": [1, 2], "y": [[0], [1]]}, "not labels"),
            ({"a": [1, 2], "y": [0.5, 1]}, "holds the number 0.5"),
            ({"a": pa.array([], "int8"), "y": pa.array([], "int8")}, "no samples"),
        ]:
            with pytest.raises(DataError, match=reason):
                read_parquet(self.write(tmp_path, **columns), "y")
        bad = tmp_path / "bad.parquet"
        bad.write_bytes(b"PAR1 nothing PAR1")
        with pytest.raises(DataError, match="not a sound Parquet file"):
            read_parquet(bad, "y")

    def test_the_index_of_a_data_frame_is_no_feature(self, tmp_path):
        """Of rows that were sorted by class it would tell the class."""
        frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": ["u", "v", "v"]}).iloc[[2, 0, 1]]
        path = tmp_path / "data.parquet"
        frame.to_parquet(path)
        assert load_dataset(path, target="y").feature_names == ["a"]

    def test_larger_than_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr(_files, "available_memory", lambda: 10)
        with pytest.raises(DataError, match="do not fit into memory"):
            read_parquet(self.write(tmp_path, a=[1, 2], y=[0, 1]), "y")
