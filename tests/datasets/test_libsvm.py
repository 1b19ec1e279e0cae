import bz2
import gzip
import lzma

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from skmargin.datasets import DataError, _files, _libsvm, load_dataset, read_libsvm


def write(tmp_path, text, name="data.svm"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def random_file(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((300, 40)) * (rng.random((300, 40)) < 0.2))
    X = sparse.vstack([X, sparse.csr_array((1, 40))], format="csr")  # a zero row
    y = np.random.default_rng(1).integers(-1, 4, size=301)
    path = tmp_path / "random.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    return path


@pytest.mark.parametrize("chunk", [1 << 24, 97])
def test_agrees_with_scikit_learn_whatever_the_chunks(random_file, chunk, monkeypatch):
    monkeypatch.setattr(_files, "CHUNK", chunk)
    X, y, names = read_libsvm(random_file)
    A, b = load_svmlight_file(str(random_file))
    assert names is None and X.format == "csr" and X.has_canonical_format
    assert (X != A).nnz == 0 and X.shape == A.shape
    assert_array_equal(y, b)
    assert y.dtype == np.int64


@pytest.mark.parametrize("module", [gzip, bz2, lzma], ids=["gz", "bz2", "xz"])
def test_compressed_files_by_content(random_file, module, tmp_path):
    packed = write(tmp_path, module.compress(random_file.read_bytes()), "packed.svm.z")
    assert (read_libsvm(packed).X != read_libsvm(random_file).X).nnz == 0
    cut = write(tmp_path, packed.read_bytes()[:-20], "cut.svm")
    with pytest.raises(DataError, match=r"cut.svm: the compressed file is damaged or cut off"):
        read_libsvm(cut)


def test_blanks_comments_line_ends_and_order(tmp_path):
    text = "# head\n\n +1  3:1e-2\t1:.5  # tail\r\n   \n-1\n2 2:-3. \n"
    X, y, _ = read_libsvm(write(tmp_path, text))
    assert_array_equal(X.toarray(), [[0.5, 0, 0.01], [0, 0, 0], [0, -3, 0]])
    assert_array_equal(y, [1, -1, 2])
    assert_array_equal(read_libsvm(write(tmp_path, "1 1:1\n2 1:2")).y, [1, 2])  # no line break at the end


def test_string_labels_and_zero_based_indices(tmp_path):
    X, y, _ = read_libsvm(write(tmp_path, "<b> 0:1 2:3\nψ日本 1:2\n1 0:1\n"))
    assert y.tolist() == ["<b>", "ψ日本", "1"]
    assert_array_equal(X.toarray(), [[1, 0, 3], [0, 2, 0], [1, 0, 0]])
    assert read_libsvm(write(tmp_path, "1 1:1\n"), zero_based=True).X.shape == (1, 2)
    with pytest.raises(DataError, match="index 0 occurs"):
        read_libsvm(write(tmp_path, "1 0:1\n"), zero_based=False)


def test_n_features(tmp_path):
    path = write(tmp_path, "1 2:1\n2 3:1\n")
    assert load_dataset(path, n_features=7).X.shape == (2, 7)
    with pytest.raises(DataError, match="has the feature index 3, but 2 features are expected"):
        read_libsvm(path, n_features=2)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 2", "'2' is not of the form index:value"),
        ("1 2:3:4", "'2:3:4' is not of the form"),
        ("1 a:3", "the index 'a' is not a whole number"),
        ("1 1.5:3", "the index '1.5' is not a whole number"),
        ("1 -2:3", "the index '-2' is not between 0 and"),
        ("1 99999999999:3", "is not between 0 and"),
        ("1 2:x", "feature '2' has the value 'x', which is not a finite number"),
        ("1 2:0x10", "not a finite number"),
        ("1 2:inf", "not a finite number"),
        ("1 2:1e999", "not a finite number"),
        ("1 2:nan", "feature '2' has a missing value"),
        ("1 2:", "feature '2' has a missing value"),
        ("1 1-2:", "the index '1-2' is not a whole number"),
        ("1 2: 3", "missing value"),
        ("1 2:1 2:1", "feature '2' occurs twice"),
        ("1 3:1 2:1 3:1", "feature '3' occurs twice"),
        ("1 qid:1 2:1", "query ids"),
        ("1,2 1:1", "several labels"),
        ("2:1 3:1", "begins with '2:1', not with a label"),
        ("1 2:1\x0b3:4", "control characters"),
        ("1\x00 2:1", "control characters"),
    ],
)
def test_a_broken_line_is_named_with_its_number(tmp_path, line, reason, monkeypatch):
    monkeypatch.setattr(_files, "CHUNK", 16)
    good = "1 1:2 4:5\n" * 30
    path = write(tmp_path, f"{good}# note\n\n{line}\n{good}")
    with pytest.raises(DataError, match=rf"data.svm, line 33: .*{reason}"):
        read_libsvm(path)


def test_files_that_are_not_libsvm(tmp_path):
    for content, reason in [
        (b"", "no samples"),
        (b"\n\n# nothing\n", "no samples"),
        (b"hello\nworld\n", "no index:value entries"),
        (b"\xff\xfe 1:2\n", "line 1: the label .* is not UTF-8"),
        (b"0.5 1:1\n1.5 1:2\n", "holds the number 0.5"),
        (bytes(range(256)) * 20, "line"),
    ]:
        with pytest.raises(DataError, match=reason):
            read_libsvm(write(tmp_path, content))


def test_a_file_larger_than_memory_is_refused_with_a_sentence(random_file, monkeypatch):
    monkeypatch.setattr(_files, "available_memory", lambda: 10_000)
    with pytest.raises(DataError, match=r"random.svm: the data do not fit into memory.*GiB are free"):
        read_libsvm(random_file)


def test_out_of_memory_while_putting_together(random_file, monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(_libsvm.sparse, "csr_array", fail)
    with pytest.raises(DataError, match="do not fit into memory"):
        read_libsvm(random_file)
