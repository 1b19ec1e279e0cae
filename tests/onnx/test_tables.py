"""Raw tables: the graph reads columns as the preprocessor does, in double precision."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skmargin import CrammerSingerSVC
from skmargin.datasets import DateParts, ParseNumbers, ParseText, SoftClip, table_preprocessor
from skmargin.model_files import load_model, save_model
from skmargin.onnx import to_onnx

rng = np.random.default_rng(0)
N = 150
WORDS = np.array(["the", "Cat", "dog", "RUNS,", "away;", "far", "x", "é", "ab_c", "Straße", "3x", "\tnaïve"])
FRAME = pd.DataFrame({
    "size": rng.standard_normal(N),
    "price": [f"{value:.2f}".replace(".", ",") for value in 1000 * rng.random(N)],
    "kind": rng.choice(["a", "b", "c"], N),
    "name": [f"Mr. {chr(65 + i % 26)}{'aeiouÄ'[i % 6]}{i % 17} Smith" for i in range(N)],
    "when": pd.date_range("1899-11-01", periods=N, freq="8213h").strftime("%d.%m.%Y %H:%M"),
    "ok": rng.choice([True, False], N),
    "long": [" ".join(rng.choice(WORDS, 12)) for _ in range(N)],
})  # fmt: skip
FRAME.loc[3, "size"], FRAME.loc[4, "when"], FRAME.loc[5, "kind"], FRAME.loc[6, "long"] = np.nan, None, None, None
y = rng.integers(0, 3, N)


def run(graph, feed):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {name: feed[name] for name in (i.name for i in session.get_inputs())})


def as_read(frame):
    """The columns as a graph takes them: numbers, seconds since 1970, text without blanks."""
    dates = pd.to_datetime(frame["when"], format="%d.%m.%Y %H:%M")
    seconds = ((dates - pd.Timestamp("1970-01-01")) / pd.Timedelta("1s")).to_numpy(float)
    text = {name: ParseText().fit_transform(frame[[name]]) for name in ("kind", "name", "ok", "long")}
    numbers = {"size": frame[["size"]].to_numpy(), "price": ParseNumbers(decimal=",").fit_transform(frame[["price"]])}
    return {**text, **numbers, "when": seconds[:, None]}


def test_a_raw_table_from_its_file_to_a_graph(tmp_path):
    model = make_pipeline(table_preprocessor(FRAME), CrammerSingerSVC(random_state=0)).fit(FRAME, y)
    save_model(model, tmp_path / "m.skm", X=FRAME)
    again = load_model(tmp_path / "m.skm")
    new = FRAME.sample(frac=1, random_state=0).assign(kind=["never seen", *FRAME["kind"][1:]])
    for graph in (to_onnx(model, FRAME), to_onnx(again)):
        label, scores = run(graph, as_read(new))
        assert_allclose(scores, model.decision_function(new), rtol=0, atol=1e-10)
        assert_array_equal(label, again.predict(new[new.columns[::-1]]))


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrated_around_the_whole_table(ensemble):
    inner = make_pipeline(table_preprocessor(FRAME), CrammerSingerSVC(random_state=0))
    model = CalibratedClassifierCV(inner, cv=3, ensemble=ensemble).fit(FRAME, y)
    label, probabilities = run(to_onnx(model, FRAME), as_read(FRAME))
    assert_allclose(probabilities, model.predict_proba(FRAME), rtol=0, atol=1e-10)
    assert_array_equal(label, model.predict(FRAME))


def transformed(model, feed):
    return run(to_onnx(model), feed)[0]


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else rows


def test_days_of_two_thousand_years():
    days = np.r_[np.arange(-200_000, 60_000, 97), np.arange(11_000, 11_800), [np.nan]]
    seconds = 86400 * days[:, None] + 5000
    stamps = pd.DataFrame({"when": (np.datetime64("1970-01-01", "s") + np.nan_to_num(seconds[:, 0]).astype("m8[s]"))})
    stamps.iloc[-1, 0] = pd.NaT
    for hours in (False, True):
        model = ColumnTransformer([("d", DateParts(hours=hours), ["when"])]).fit(stamps)
        assert_allclose(transformed(model, {"when": seconds}), model.transform(stamps), atol=1e-9)


def test_soft_clip_and_gaps():
    rows = np.c_[rng.standard_normal(40), rng.integers(0, 2, 40), 1e9 * rng.standard_cauchy(40), np.full(40, 7.0)]
    rows[::9, 0], rows[3, 2] = np.nan, np.inf
    frame = pd.DataFrame(rows, columns=list("abcd"))
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    reader = make_pipeline(ParseNumbers(), imputer, SoftClip())
    model = ColumnTransformer([("n", reader, list("abcd"))]).fit(frame)
    frame.loc[0, "c"] = 1e300
    assert_allclose(transformed(model, {n: frame[[n]].to_numpy() for n in frame}), model.transform(frame), atol=1e-14)


@pytest.mark.parametrize("imputer", [SimpleImputer(), SimpleImputer(strategy="constant", fill_value=-1.0)])
def test_gaps_in_an_array(imputer):
    rows = rng.standard_normal((40, 3))
    rows[::5, 1] = np.nan
    for dtype in (np.float32, np.float64):
        model = make_pipeline(imputer, StandardScaler()).fit(rows.astype(dtype))
        graph = to_onnx(model, rows.astype(dtype))
        found = run(graph, {"X": rows.astype(dtype)})[0]
        assert found.dtype == dtype
        assert_allclose(found, model.transform(rows.astype(dtype)), atol=1e-5 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize(
    "params",
    [
        {"handle_unknown": "ignore"},
        {"handle_unknown": "infrequent_if_exist", "min_frequency": 8},
        {"handle_unknown": "infrequent_if_exist", "max_categories": 2},
        {"drop": "first", "handle_unknown": "ignore"},
        {"drop": "if_binary", "handle_unknown": "infrequent_if_exist", "min_frequency": 8},
        {"drop": "first", "handle_unknown": "infrequent_if_exist", "min_frequency": 8},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_levels(params):
    table = pd.DataFrame({"a": np.r_[["x"] * 20, ["y"] * 12, list("pqrs")], "b": ["u", "v"] * 18})
    model = ColumnTransformer([("l", OneHotEncoder(**params), ["a", "b"])]).fit(table)
    new = pd.DataFrame({"a": [*"xypqrs", "", "new"], "b": [*"uvuvuvu", "ü"]})
    assert_array_equal(transformed(model, {n: new[[n]].to_numpy(object) for n in new}), dense(model.transform(new)))


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(), TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", sublinear_tf=True, norm="l1"),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), max_features=100), CountVectorizer(binary=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(4, 5), lowercase=False, norm=None),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), use_idf=False), CountVectorizer(stop_words=["the"]),
    ],
    ids=str,
)  # fmt: skip
def test_terms(vectorizer):
    fitted = FRAME["long"][:100].fillna("")
    model = ColumnTransformer([("t", vectorizer, "long")]).fit(fitted.to_frame())
    texts = [
        *FRAME["long"][100:],
        "",
        "   ",
        "CAT cat  Cat\ncat",
        "категория cat",
        "the_cat the cat's",
        "éa aé cat\u2009dog",
    ]
    new = pd.DataFrame({"long": texts})
    found = transformed(model, {"long": new.to_numpy(object)})
    assert_allclose(found, dense(model.transform(new)), rtol=0, atol=1e-12)
    assert (found != 0).any()
