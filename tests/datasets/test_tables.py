import bz2
import gzip
import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from skmargin.datasets import BUILT_IN, DataError, _csv, _files, load_dataset, read_csv, read_parquet
from skmargin.datasets._files import TextColumn


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_sets(name):
    data = load_dataset(name)
    assert data.X.shape == (len(data.y), len(data.feature_names))
    assert data.name == name and [type(feature) for feature in data.feature_names] == [str] * data.X.shape[1]
    assert isinstance(data.feature_names, list)
    with pytest.raises(DataError, match="is built in and has its labels"):
        load_dataset(name, target="y")


def test_csv_with_quotes_byte_order_mark_and_text_labels(tmp_path):
    text = '\ufefflength,"a ""b"", <c>",kind\r\n1,2.5,"cat\nfish"\r\n\r\n-3e2, 4 ,שלום\r\n'
    X, y, names = read_csv(write(tmp_path, text), "kind")
    assert_array_equal(X, [[1, 2.5], [-300, 4]])
    assert y.tolist() == ["cat\nfish", "שלום"]
    assert names == ["length", 'a "b", <c>']


@pytest.mark.parametrize("rows", [8192, 5])
def test_csv_without_names_other_delimiters_compression(tmp_path, rows, monkeypatch):
    monkeypatch.setattr(_csv, "BLOCK", 40 * rows)
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
        ('a,b,y\n1,"2,5",x\n', r"line 2, column 'b': '2,5' is not a number. Write decimal points"),
        ("a,b,y\n1,2,x\n1,\x1f4,x\n", r"line 3, column 'b': '.x1f4' is not a number"),
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
    monkeypatch.setattr(_files, "available_memory", lambda: 100)
    path = write(tmp_path, "a,y\n" + "1,2\n" * 20)  # the text fits, its numbers do not
    with pytest.raises(DataError, match="do not fit into memory"):
        read_csv(path, "y")


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    path = write(tmp_path, "a,y\n1,2\n" + "1" * 5000)
    monkeypatch.setattr(_csv, "BLOCK", 1000)
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


@pytest.mark.parametrize("word", ["", "NA", "n/a", "nan", "null", "None", "?", "-nan", "+NaN"])
def test_every_word_for_a_missing_value(tmp_path, word):
    for cells, what in ((f" {word} ,x", "column 'a': the value"), (f"1, {word} ", "column 'y': the label")):
        with pytest.raises(DataError, match=f"line 2, {what} is missing"):
            read_csv(write(tmp_path, f"a,y\n{cells}\n"), "y")


def test_names_of_csv_columns(tmp_path):
    X, y, names = read_csv(write(tmp_path, "2019\t b \t2020\n1\t k \t3\n"), "b")  # a name that is a number is a name
    assert (X.tolist(), y.tolist(), names) == ([[1, 3]], ["k"], ["2019", "2020"])
    assert read_csv(write(tmp_path, "1,\n3,x\n"), 1).y.tolist() == ["x"]  # the target needs no name
    path = write(tmp_path, "1,a,2\n3,4,5\n")
    assert read_csv(path, "2").y.tolist() == [5] and read_csv(path, "1").y.tolist() == [3]  # before the number
    assert read_csv(path, 2).y.tolist() == [5] and read_csv(path, -3).y.tolist() == [3]
    for target in (-4, 3):
        with pytest.raises(DataError, match=f"there is no column {target}; the columns are '1', 'a', '2'"):
            read_csv(path, target)


def test_message_lists_the_first_twenty_columns(tmp_path):
    for n, end in ((20, r"'c19'\."), (21, r"'c19', \.\.\.\.")):
        with pytest.raises(DataError, match=end):
            read_csv(write(tmp_path, ",".join(f"c{i}" for i in range(n)) + "\n"), "y")


def test_lines_are_counted_as_an_editor_does(tmp_path):
    """Quoted line breaks and blank lines count."""
    with pytest.raises(DataError, match="line 6, column 'a': 'x' is not a number"):
        read_csv(write(tmp_path, 'a,y\n1,"two\nlines"\n \n\nx,2\n'), "y")


def test_blank_lines_before_the_names(tmp_path):
    X, y, names = read_csv(write(tmp_path, "\n \r\na;y\n1;k\n"), "y")
    assert (X.tolist(), y.tolist(), names) == ([[1]], ["k"], ["a"])
    with pytest.raises(DataError, match="line 4, column 'a': 'x' is not a number"):
        read_csv(write(tmp_path, "\n\na;y\nx;2\n"), "y")


def test_long_cells_are_cut_in_messages(tmp_path):
    for length, shown in ((40, "x" * 40 + "' is"), (41, "x" * 40 + r"'\.\.\. is")):
        with pytest.raises(TextColumn, match=f"'{shown} not a number"):
            read_csv(write(tmp_path, f"a,y\n{'x' * length},2\n"), "y")


def test_one_long_label_does_not_widen_all(tmp_path):
    text = "a,y\n" + "1,k\n" * 999 + "1," + "k" * 10_000
    y = read_csv(write(tmp_path, text), "y").y
    assert y.nbytes < 10**5 and y[0] == "k" and len(y[-1]) == 10_000


@pytest.mark.parametrize("label", ["1e300", "-inf", str(2**63)])
def test_labels_that_are_no_int64_are_refused(tmp_path, label):
    with pytest.raises(DataError, match=f"the target column 'y' holds the number {label}"):
        read_csv(write(tmp_path, f"a,y\n1,2\n1,{label}\n"), "y")


def test_labels_stay_apart(tmp_path):
    """Numbers beyond 2^53 are not rounded, and what only Python takes for numbers is text."""
    large = [str(2**53), str(2**53 + 1), "-9007199254740993"]
    assert read_csv(write(tmp_path, "a,y\n" + "".join(f"1,{k}\n" for k in large)), "y").y.tolist() == list(
        map(int, large)
    )
    parts = ["1_11", "11_1"]
    assert read_csv(write(tmp_path, "a,y\n" + "".join(f"1,{k}\n" for k in parts)), "y").y.tolist() == parts
    assert read_csv(write(tmp_path, "a,y\n1,1e2\n1,100.0\n1,+100\n"), "y").y.tolist() == [100] * 3


def test_damaged_and_unreadable_files(tmp_path):
    packed = write(tmp_path, gzip.compress(b"a,y\n1,2\n")[:10] + b"\xff" * 20, "data.csv.gz")
    with pytest.raises(DataError, match="damaged or cut off"):
        read_csv(packed, "y")
    with pytest.raises(DataError, match="cannot be read"):
        read_csv(tmp_path, "y")


def test_memory(monkeypatch, tmp_path):
    if os.path.exists("/proc/meminfo"):
        assert 2**20 < _files.available_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(_files, "available_memory", lambda: 2**30)
    with pytest.raises(DataError, match=r"At least 3\.0 GiB more are needed, 1\.0 GiB are free"):
        _files.check_memory("data", 3 * 2**30)
    monkeypatch.setattr(_files, "available_memory", lambda: None)  # a system that does not say
    assert len(read_csv(write(tmp_path, "a,y\n1,2\n"), "y").X) == 1


def test_endings_choose_the_reader(tmp_path):
    for name, content in (
        ("a.v1.CSV", b"a,y\n1,2\n"),
        ("a.csv.v2.tsv", b"a\ty\n1\t2\n"),
        ("a.csv.bz2", bz2.compress(b"a,y\n1,2\n")),
    ):
        data = load_dataset(write(tmp_path, content, name), target="y")
        assert (data.name, data.X.tolist(), data.y.tolist()) == (name, [[1]], [2])
    pq.write_table(pa.table({"a": [1], "y": [2]}), tmp_path / "a.pq")
    assert load_dataset(tmp_path / "a.pq", target="y").y.tolist() == [2]
    data = load_dataset(write(tmp_path, "2 1:1\n", "a.csv.old"), zero_based=True)
    assert data.name == "a.csv.old" and data.zero_based and data.X.toarray().tolist() == [[0, 1]]
    assert load_dataset(tmp_path / "a.csv.old").zero_based is False


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

    def test_large_numbers_and_decimals(self, tmp_path):
        path = self.write(tmp_path, a=[2**60 + 1], b=[Decimal("0.25")], y=[2**60 + 1])
        X, y, _ = read_parquet(path, "y")
        assert X.tolist() == [[2.0**60, 0.25]] and y.tolist() == [2**60 + 1]

    def test_refusals(self, tmp_path):
        for columns, reason in [
            ({"a": [1, None], "y": [0, 1]}, "row 2, column 'a': the value is missing"),
            ({"a": [1, np.nan], "y": [0, 1]}, "row 2, column 'a': the value is missing"),
            ({"a": [np.inf, 1], "y": [0, 1]}, "row 1, column 'a': the value is not finite"),
            ({"a": ["red", "x"], "y": [0, 1]}, "column 'a': holds string, not numbers"),
            ({"a": [1, 2], "y": [0, None]}, "row 2, column 'y': the label is missing"),
            ({"a": [1, 2], "y": [[0], [1]]}, "not labels"),
            ({"a": [1, 2], "y": [0.5, 1]}, "holds the number 0.5"),
            ({"a": [1], "y": pa.array([2**63], "uint64")}, f"holds the number {2**63}"),
            ({"y": [0, 1]}, "no column besides the target"),
            ({"a": pa.array([], "int8"), "y": pa.array([], "int8")}, "no samples"),
        ]:
            with pytest.raises(DataError, match=reason):
                read_parquet(self.write(tmp_path, **columns), "y")
        bad = tmp_path / "bad.parquet"
        bad.write_bytes(b"PAR1 nothing PAR1")
        with pytest.raises(DataError, match="not a sound Parquet file"):
            read_parquet(bad, "y")
        with pytest.raises(DataError, match="no such file"):
            read_parquet(tmp_path / "none.parquet", "y")
        pq.write_table(pa.table([[1], [2], [3]], names=["a", "a", "y"]), bad)
        with pytest.raises(DataError, match="two columns have the same name"):
            read_parquet(bad, "y")
        with pytest.raises(TextColumn):  # it may be the one with the labels
            read_parquet(self.write(tmp_path, a=["red"], y=[1]), "y")

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
