"""Raw tables: what each column is taken for, how its cells are read, and that nothing is learnt outside of a fold."""

import datetime as dt
import gzip
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from raw_tables import TABLES
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from skmargin import CrammerSingerSVC
from skmargin.datasets import (
    DataError,
    DateParts,
    ParseNumbers,
    ParseText,
    SoftClip,
    _dialect,
    plan_columns,
    read_csv,
    table_preprocessor,
)
from skmargin.datasets._cells import as_float, as_seconds, as_text
from skmargin.datasets._load import TableOptions, load_training

KINDS = {
    "penguins": {
        "Unnamed: 0": "left out", "island": "category", "bill_length_mm": "number", "bill_depth_mm": "number",
        "flipper_length_mm": "number", "body_mass_g": "number", "sex": "category", "year": "number",
    },
    "titanic": {
        "PassengerId": "left out", "Pclass": "number", "Name": "text", "Sex": "category", "Age": "number",
        "SibSp": "number", "Parch": "number", "Ticket": "text", "Fare": "number", "Cabin": "category",
        "Embarked": "category",
    },
    "diamonds": {
        "carat": "number", "color": "category", "clarity": "category", "depth": "left out", "table": "number",
        "price": "number", "x": "number", "y": "number", "z": "number",
    },
    "weather": {
        "date": "date", "precipitation": "number", "temp_max": "number", "temp_min": "number", "wind": "number"
    },
    "bank": {
        "Buchungstag": "date", "Empfänger": "category", "Vorgang": "category", "Betrag": "number",
        "Währung": "left out", "Unnamed: 6": "left out",
    },
    "churn": {
        "customerID": "left out", "senior": "category", "tenure": "number", "Contract": "category",
        "TotalCharges": "number",
    },
    "reviews": {"when": "date", "review": "text"},
    "census": {"age": "number", "job": "category", "sex": "category", "hours": "number", "notes": "left out"},
}  # fmt: skip


def load(name, tmp_path, **options):
    content, target = TABLES[name]()
    path = tmp_path / f"{name}.csv"
    path.write_bytes(content)
    return load_training(path, target, TableOptions(**options))


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_column_is_taken_for_what_it_is(name, tmp_path):
    data = load(name, tmp_path)
    assert {column.name: column.kind for column in data.columns} == KINDS[name]
    assert list(data.X.columns) == [column for column, kind in KINDS[name].items() if kind != "left out"]
    assert len(data.y) == len(data.X)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_machine_learns_from_every_table(name, tmp_path):
    """Better than the most frequent class by at least a third of what it leaves."""
    data = load(name, tmp_path)
    model = make_pipeline(table_preprocessor(data.X), CrammerSingerSVC(random_state=0))
    found = cross_val_score(model, data.X, data.y, cv=5).mean()
    majority = np.unique(data.y, return_counts=True)[1].max() / len(data.y)
    assert found > majority + (1 - majority) / 3


def test_features_are_bounded_and_named(tmp_path):
    data = load("titanic", tmp_path)
    transformer = table_preprocessor(data.X).fit(data.X)
    X = transformer.transform(data.X)
    assert abs(X).max() <= 1 + 1e-12
    names = transformer.get_feature_names_out()
    assert len(names) == X.shape[1]
    assert {"numbers__Age", "numbers__missingindicator_Age", "categories__Sex_male"} <= set(names)


def test_bank_cells_are_read_exactly(tmp_path):
    data = load("bank", tmp_path)
    text = TABLES["bank"]()[0].decode("latin-1").splitlines()[1:]
    amounts = [float(line.split(";")[3].replace(".", "").replace(",", ".")) for line in text]
    assert_array_equal(ParseNumbers(decimal=",").fit_transform(data.X[["Betrag"]]).ravel(), amounts)
    days = [dt.datetime.strptime(line.split(";")[0], "%d.%m.%Y") for line in text]
    parts = DateParts(day_first=True).fit_transform(data.X[["Buchungstag"]])
    assert_array_equal(parts[:, 0], [(day - dt.datetime(1970, 1, 1)).days for day in days])
    assert_array_equal(parts[:, 5], [day.weekday() >= 5 for day in days])
    assert_allclose(parts[:, 3], [np.sin(2 * np.pi * day.weekday() / 7) for day in days], atol=1e-12)
    turns = [2 * np.pi * (day.timetuple().tm_yday - 1) / 365.25 for day in days]
    for column, turn in ((2, 1), (7, 2), (9, 3)):
        assert_allclose(parts[:, column], np.cos(turn * np.array(turns)), atol=1e-12)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_encodings_and_separators_are_detected(tmp_path, encoding, separator):
    rows = [("größe", "Zürich", "k"), ("1.5", "naïve", "a"), ("2", "x", "b")]
    path = tmp_path / "data.csv"
    path.write_bytes("\n".join(separator.join(row) for row in rows).encode(encoding))
    table = read_csv(path, "k", raw=True)
    assert table.feature_names == ["größe", "Zürich"] and table.X["Zürich"].tolist() == ["naïve", "x"]
    assert table.X["größe"].tolist() == [1.5, 2.0] and table.y.tolist() == ["a", "b"]
    assert read_csv(path, "k", raw=True, encoding=encoding).X["Zürich"].tolist() == ["naïve", "x"]


def test_an_encoding_may_show_late_and_may_be_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,y\n" + b"1,0\n" * 100_000 + b"caf\xe9,1\n")
    assert read_csv(path, "y", raw=True).X["a"].iloc[-1] == "café"
    with pytest.raises(DataError, match="not UTF-8 text"):
        read_csv(path, "y", raw=True, encoding="utf-8")
    path.write_bytes(b"a,y\n" + b"1,0\n" * 100_000 + b"x\x81,1\n")  # which even Windows does not know
    assert read_csv(path, "y", raw=True).X["a"].iloc[-1] == "x\x81"
    path.write_bytes(b"a,y\n1,\x81\n")
    assert read_csv(path, "y").y.tolist() == ["\x81"]
    for option, value, message in (("encoding", "klingon", "is not known"), ("decimal", ";", "must be '.' or ','")):
        with pytest.raises(DataError, match=message):
            read_csv(path, "y", **{option: value})


def test_decimal_commas(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a;b;y\n1,5;2.000,25;x\n-3;1,0;z\n")
    X = read_csv(path, "y", raw=True).X
    assert X["a"].tolist() == [1.5, -3.0]
    (a, b) = plan_columns(X)
    assert (a.kind, b.kind, b.decimal) == ("number", "number", ",")
    assert ParseNumbers(",").fit_transform(X[["b"]]).ravel().tolist() == [2000.25, 1.0]
    path.write_text("1,5;2,5\n3,5;4,5\n")  # no names: numbers in the first line
    assert read_csv(path).X.tolist() == [[1.5, 2.5], [3.5, 4.5]]
    path.write_text("a;y\n1,5;x\n2,5;z\n")
    assert read_csv(path, "y").X.tolist() == [[1.5], [2.5]]
    with pytest.raises(DataError, match="'1,5' is not a number"):
        read_csv(path, "y", decimal=".")


@pytest.mark.parametrize(
    ("cell", "decimal", "number"),
    [
        ("1,234.5", ".", 1234.5), ("1.234,5", ",", 1234.5), ("1 234 567", ".", 1234567), ("1'000.25", ".", 1000.25),
        ("12\u00a0345,6", ",", 12345.6), (" -3 ", ".", -3),
        ("\u22125", ".", -5), ("+.5e2", ".", 50), ("1e3", ",", 1000),
        ("1,5", ".", np.nan), ("1.5", ",", np.nan), ("1_000", ".", np.nan), ("0x10", ".", np.nan),
        ("1,23,4", ".", np.nan),
        ("1e999", ".", np.nan), ("inf", ".", np.nan), ("\x1f4", ".", np.nan), ("٣", ".", np.nan), (None, ".", np.nan),
        (np.inf, ".", np.nan), (True, ".", 1), (np.int8(4), ".", 4), ("five", ".", np.nan), ("NA", ".", np.nan),
    ],
)  # fmt: skip
def test_numbers_of_several_countries(cell, decimal, number):
    assert_array_equal(as_float(cell, decimal), number)


@pytest.mark.parametrize(
    ("cell", "day_first", "expected"),
    [
        ("2024-01-31", False, (2024, 1, 31)), ("2024/1/3", True, (2024, 1, 3)), ("31.1.2024", False, (2024, 1, 31)),
        ("1/2/2024", False, (2024, 1, 2)), ("1/2/2024", True, (2024, 2, 1)), ("13/2/2024", False, (2024, 2, 13)),
        ("2/13/24", True, (2024, 2, 13)), ("3 Mar 1999", False, (1999, 3, 3)), ("March 3, 1999", False, (1999, 3, 3)),
        ("2024-01-31T12:30:15Z", False, (2024, 1, 31, 12, 30, 15)), ("1/2/2024 1:05 PM", False, (2024, 1, 2, 13, 5)),
        ("2024-01-31 23:30+02:00", False, (2024, 1, 31, 21, 30)), ("1 Jan 70", False, (1970, 1, 1)),
        ("2024-02-30", False, None), ("31/31/2024", False, None), ("12", False, None), ("3 Foo 1999", False, None),
        ("2024-01-31 99:00", False, None), (None, False, None), (17.5, False, None),
        (dt.date(2020, 2, 29), False, (2020, 2, 29)), (np.datetime64("2020-02-29"), False, (2020, 2, 29)),
        (dt.datetime(2020, 2, 29, 1, tzinfo=dt.UTC), False, (2020, 2, 29, 1)), (pd.NaT, False, None),
    ],
)  # fmt: skip
def test_dates_in_many_formats(cell, day_first, expected):
    wanted = np.nan if expected is None else (dt.datetime(*expected) - dt.datetime(1970, 1, 1)).total_seconds()
    assert_array_equal(as_seconds(cell, day_first), wanted)


def test_one_level_has_one_text():
    for cells, text in (([1, 1.0, "1", " 1.0 ", np.int8(1)], "1"), ([True, "true", "TRUE", np.True_], "True")):
        assert {as_text(cell) for cell in cells} == {text}
    assert {as_text(cell) for cell in (None, np.nan, pd.NA, pd.NaT, "", " ? ", "N/A", "null")} == {""}
    assert as_text("1.5") == "1.5" and as_text(2**60) == str(2**60) and as_text(" New York ") == "New York"


def test_frames_of_pandas_in_all_their_types():
    stamps = pd.date_range("2024-01-01", periods=30, tz="Europe/Berlin")
    frame = pd.DataFrame({
        "nullable": pd.array([1, None, 3] * 10, dtype="Int64"),
        "flag": pd.array([True, None, False] * 10, dtype="boolean"),
        "level": pd.Categorical(["a", "b", None] * 10), "when": stamps, "object": [1, "1.0", None] * 10,
        "mixed": [1, "two", 3.5] * 10, "short": np.float32(range(30)) ** 2,
    })  # fmt: skip
    plan = {column.name: column.kind for column in plan_columns(frame)}
    assert plan == {
        "nullable": "number", "flag": "category", "level": "category", "when": "date", "object": "number",
        "mixed": "category", "short": "number",
    }  # fmt: skip
    X = table_preprocessor(frame[["nullable", "flag", "level", "when", "mixed"]]).fit_transform(frame)
    assert np.isfinite(np.asarray(X.todense() if hasattr(X, "todense") else X)).all()
    utc = stamps.tz_convert("UTC").tz_localize(None)
    assert_array_equal(DateParts().fit_transform(frame[["when"]])[:, 0], (utc - pd.Timestamp(0)).days)


def test_arrays_have_columns_by_number():
    table = np.array([["1", "red"], ["2", "blue"], ["4", "red"], ["9", "blue"]] * 10, dtype=object)
    assert [(column.name, column.kind) for column in plan_columns(table)] == [(0, "number"), (1, "category")]
    model = make_pipeline(table_preprocessor(table), LogisticRegression()).fit(table, table[:, 1])
    assert model.score(table, table[:, 1]) == 1


def test_columns_that_cannot_be_learnt_from_and_those_that_know_too_much():
    n = 50
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "row": np.arange(n) + 1000, "down": np.arange(n)[::-1], "userId": rng.permutation(n) * 7,
        "time": np.cumsum(rng.random(n)),
        "code": [f"x{i:03d}" for i in range(n)], "same": ["x"] * n, "one": 1.0, "empty": [None] * n, "void": np.nan,
        "almost": [1.0] * (n - 1) + [np.nan], "number": rng.normal(size=n),
    })  # fmt: skip
    plan = {column.name: column for column in plan_columns(frame)}
    whys = {name: column.why for name, column in plan.items() if column.kind == "left out"}
    assert whys == {
        "row": "numbers the rows", "down": "numbers the rows", "userId": "an id", "code": "an id", "same": "constant",
        "one": "constant", "empty": "empty", "void": "empty",
    }  # fmt: skip
    assert {name for name, column in plan.items() if column.warning} == {"row", "down", "userId", "code", "time"}
    assert "rises from row to row" in plan["time"].warning and plan["almost"].kind == "number"
    forced = {
        column.name: column.kind
        for column in plan_columns(frame, number=["row"], categorical=["code"], drop=["number"])
    }
    assert (forced["row"], forced["code"], forced["number"]) == ("number", "category", "left out")
    with pytest.raises(DataError, match="No column is left"):
        table_preprocessor(frame[["same", "empty"]])
    with pytest.raises(
        DataError, match="text names the column 'txt', which is not there; the columns are 'row', 'down'"
    ):
        plan_columns(frame, text=["txt"])
    with pytest.raises(DataError, match="'row' is named twice, as left out and as number"):
        plan_columns(frame, drop=["row"], number=["row"])


def test_a_hundred_thousand_levels():
    n = 100_000
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame({"name": [f"{'foo' if k else 'bar'} {i}" for i, k in enumerate(y)], "x": rng.normal(size=n)})
    assert plan_columns(frame)[0].kind == "text"
    for options in ({}, {"categorical": ["name"]}):
        X = table_preprocessor(frame, **options).fit_transform(frame)
        assert X.shape[0] == n and X.shape[1] <= 1002
    few = frame.iloc[:2000]
    model = make_pipeline(table_preprocessor(few), LogisticRegression()).fit(few, y[:2000])
    assert model.score(frame, y) == 1


def test_what_is_new_at_prediction_is_tolerated():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": list("xyz") * 20, "c": ["rare", *["often"] * 59]})
    y = frame["b"] == "x"
    model = make_pipeline(table_preprocessor(frame), CrammerSingerSVC(random_state=0)).fit(frame, y)
    new = pd.DataFrame({"c": ["never seen", None], "new": [1, 2], "b": ["?", "x"], "a": [np.nan, "7,000.5"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.predict(new)) == 2
    encoder = model[0].named_transformers_["categories"][-1]
    assert encoder.infrequent_categories_[1].tolist() == ["rare"]
    with pytest.raises(ValueError, match=r"columns are missing: \{'b'\}"):
        model.predict(new[["a", "c"]])


def test_nothing_is_learnt_outside_of_the_training_part():
    """The same transformer fitted on a part gives the medians and levels of that part."""
    frame = pd.DataFrame({"a": [1.0, 2, 3, np.nan, 1000, 1000], "b": list("uuuvwv")})
    transformer = table_preprocessor(frame)
    assert not hasattr(transformer, "transformers_")
    part = frame.iloc[:4]
    fitted = clone(transformer).fit(part)
    numbers = fitted.named_transformers_["numbers"]
    expected = SimpleImputer(strategy="median").fit(part[["a"]]).statistics_
    assert_array_equal(numbers["impute"].statistics_, expected)
    assert "w" not in fitted.named_transformers_["categories"]["encode"].categories_[0]


def test_soft_clip():
    rng = np.random.default_rng(0)
    x = np.c_[rng.normal(size=99), rng.integers(0, 2, 99), np.full(99, 5.0), [0.0] * 90 + [1e9] * 9]
    clip = SoftClip(bound=2.0).fit(x)
    out = clip.transform(x)
    q1, m, q3 = np.quantile(x[:, 0], [0.25, 0.5, 0.75])
    z = (x[:, 0] - m) / (2 * (q3 - q1))
    assert_allclose(out[:, 0], z / np.sqrt(1 + z**2))
    assert_array_equal(out[:, 1], x[:, 1])
    assert_array_equal(out[:, 2], 0)
    assert_allclose(out[[0, -1], 3], [-np.sqrt(0.5), np.sqrt(0.5)])
    assert np.isfinite(clip.transform(np.full((1, 4), 1e300))).all()
    with pytest.raises(ValueError, match="bound"):
        SoftClip(bound=0).fit(x)


def test_readers_of_cells_have_the_manners_of_scikit_learn():
    frame = pd.DataFrame({"p": ["1", "2"], "q": ["3", None]})
    for reader in (ParseNumbers(), ParseText(), DateParts(hours=True)):
        with pytest.raises(ValueError, match="not fitted"):
            reader.transform(frame)
        out = reader.fit(frame).transform(frame)
        assert out.shape == (2, len(reader.get_feature_names_out()))
        assert reader.n_features_in_ == 2 and reader.feature_names_in_.tolist() == ["p", "q"]
        with pytest.raises(ValueError, match="expecting 2 features"):
            clone(reader).fit(frame.to_numpy()).transform(np.array([["1"]], dtype=object))
        assert repr(clone(reader)) == repr(reader)
    assert ParseText(flat=True).fit_transform(frame[["q"]]).tolist() == ["3", ""]
    with pytest.raises(ValueError, match="decimal"):
        ParseNumbers(decimal=";").fit(frame)


def test_newline_bombs_end_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(_dialect, "MAX_BLANK", 1 << 20)
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"\n" * (1 << 22)))
    with pytest.raises(DataError, match="begins with more than 1 MiB of blank lines"):
        read_csv(path, "y")
    path.write_bytes(gzip.compress(b"a,y\n1,2\n" + b"\n" * (1 << 22) + b"3,4\n"))
    assert read_csv(path, "y").X.tolist() == [[1], [3]]
