"""Every class that a model file may hold gives the same bits again; what it cannot hold, skops keeps."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils.fixes import parse_version

import skmargin
from skmargin import CrammerSingerSVC
from skmargin.model_files import ModelFileError, load_model, model_classes, save_model

pytestmark = pytest.mark.filterwarnings("ignore:TopKSVC with k=")  # more than there are rivals

X, y = load_iris(return_X_y=True)
X, y = X[::2], y[::2]
WORDS = np.array(["a b", "b c d", "Ä ö"], dtype=object)[y]
GAPS = X.copy()
GAPS[::7, 1] = np.nan
LEVELS = np.array([["u", "x"], ["v", None], ["u", "z"], ["w", "x"], ["u", "x"]] * 15, dtype=object)
TEXTS = np.array(["the cat sat", "a dog ran far away", "le chat est là", "cat and dog"] * 19)[:75]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(kind=LEVELS[:, 0], text=TEXTS)
COUNTS = np.abs(X).round()
TEMPERATURE = parse_version(sklearn.__version__) >= parse_version("1.8")


def classifiers():
    yield from (LogisticRegression(), LogisticRegression(C=0.1, class_weight="balanced"))
    yield from (LinearSVC(), LinearSVC(fit_intercept=False), SVC(), SVC(kernel="poly", decision_function_shape="ovo"))
    yield from (SVC(kernel="linear"), SVC(kernel="sigmoid"), OneVsRestClassifier(LinearSVC()))
    yield from (OneVsRestClassifier(SVC()), OneVsOneClassifier(LinearSVC()), OneVsOneClassifier(SVC()))
    yield OutputCodeClassifier(LinearSVC(), random_state=0)
    yield from (DecisionTreeClassifier(random_state=0), ExtraTreeClassifier(random_state=0))
    yield from (RandomForestClassifier(5, random_state=0), ExtraTreesClassifier(5, random_state=0))
    yield RandomForestClassifier(4, bootstrap=True, oob_score=False, max_depth=2, random_state=0)
    yield HistGradientBoostingClassifier(max_iter=5)
    yield HistGradientBoostingClassifier(max_iter=5, categorical_features=[3], early_stopping=True)
    yield from (KNeighborsClassifier(), KNeighborsClassifier(3, weights="distance", algorithm="brute"))
    yield from (DummyClassifier(), DummyClassifier(strategy="stratified", random_state=0))
    yield DummyClassifier(strategy="constant", constant="a b")
    yield from (CalibratedClassifierCV(LinearSVC()), CalibratedClassifierCV(LinearSVC(), ensemble=False))
    yield CalibratedClassifierCV(CrammerSingerSVC(random_state=0), method="isotonic", cv=StratifiedKFold(3))
    yield CalibratedClassifierCV(KNeighborsClassifier(), cv=3)
    if TEMPERATURE:
        yield CalibratedClassifierCV(CrammerSingerSVC(random_state=0), method="temperature")
        yield CalibratedClassifierCV(RandomForestClassifier(3, random_state=0), method="temperature", ensemble=False)
    yield FrozenEstimator(LinearSVC().fit(X, WORDS))


@pytest.mark.parametrize("model", classifiers(), ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_of_scikit_learn(model, n_classes, tmp_path):
    some = np.flatnonzero(y < n_classes)
    rows = X.copy()
    rows[:, 3] = np.round(rows[:, 3])  # a column that can be categorical
    for scaled in (model, make_pipeline(StandardScaler(), model)):
        if isinstance(model, HistGradientBoostingClassifier) and scaled is not model:
            continue
        scaled.fit(rows[some], WORDS[some])
        save_model(scaled, tmp_path / "m.skm", X=rows)
        again = load_model(tmp_path / "m.skm")
        assert type(again) is type(scaled) and repr(again) == repr(scaled)
        for method in ("predict", "decision_function", "predict_proba"):
            assert hasattr(again, method) == hasattr(scaled, method)
            if hasattr(scaled, method):
                assert_array_equal(getattr(again, method)(rows), getattr(scaled, method)(rows))


@pytest.mark.parametrize("model", [SVC(), KNeighborsClassifier(), LogisticRegression()], ids=str)
def test_classifiers_of_sparse_rows(model, tmp_path):
    model.fit(sparse.csr_matrix(X), y)
    save_model(model, tmp_path / "m.skm")
    assert_array_equal(
        load_model(tmp_path / "m.skm").predict(sparse.csr_matrix(X)), model.predict(sparse.csr_matrix(X))
    )


def transformers():
    yield from (
        (t, X) for t in (StandardScaler(), MinMaxScaler(clip=True), MaxAbsScaler(), RobustScaler(), Normalizer("l1"))
    )
    yield from ((FunctionTransformer(), X), (StandardScaler(with_mean=False), X), (RobustScaler(with_scaling=False), X))
    yield from ((SimpleImputer(add_indicator=True), GAPS), (SimpleImputer(strategy="median"), GAPS))
    yield from ((MissingIndicator(), GAPS), (SimpleImputer(strategy="most_frequent", missing_values=None), LEVELS))
    yield SimpleImputer(strategy="constant", fill_value="none", missing_values=None, add_indicator=True), LEVELS
    yield OneHotEncoder(handle_unknown="ignore"), LEVELS
    yield OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist", drop="if_binary"), LEVELS
    yield OneHotEncoder(drop="first", sparse_output=False, dtype=np.float32), LEVELS
    yield OneHotEncoder(categories=[["u", "v", "w"], ["x", "z", None]]), LEVELS
    yield OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, min_frequency=20), LEVELS
    yield OrdinalEncoder(encoded_missing_value=-2, dtype=np.int32), LEVELS
    yield from ((CountVectorizer(), TEXTS), (TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2)), TEXTS))
    yield TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), stop_words=None, max_features=200), TEXTS
    yield from (
        (TfidfVectorizer(stop_words="english", use_idf=False), TEXTS),
        (HashingVectorizer(n_features=64), TEXTS),
    )
    yield from ((TfidfVectorizer(vocabulary=["cat", "dog"]), TEXTS), (TfidfTransformer(norm="l1"), COUNTS))
    yield FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler()), ("c", "passthrough")]), X
    yield make_pipeline(SimpleImputer(), "passthrough", StandardScaler()), GAPS
    yield make_pipeline(CountVectorizer(), TfidfTransformer()), TEXTS
    yield (
        ColumnTransformer(
            [("n", StandardScaler(), [0, 2]), ("m", MinMaxScaler(), slice(1, 2))], remainder="passthrough"
        ),
        X,
    )
    yield table(), FRAME


def table():
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["c", "a"]),
            ("levels", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
            ("words", TfidfVectorizer(), "text"),
            ("rest", "drop", ["b"]),
        ],
        remainder=MinMaxScaler(),
    )


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


@pytest.mark.parametrize(("model", "rows"), transformers(), ids=lambda value: str(value)[:60])
def test_transformers_of_scikit_learn(model, rows, tmp_path):
    model.fit(rows)
    save_model(model, tmp_path / "m.skm", X=rows)
    again = load_model(tmp_path / "m.skm")
    expected = model.transform(rows)
    found = again.transform(rows)
    assert sparse.issparse(found) == sparse.issparse(expected) and found.dtype == expected.dtype
    assert_array_equal(dense(found), dense(expected))
    if hasattr(model, "get_feature_names_out") and not isinstance(rows, list) and rows.ndim == 2:
        assert_array_equal(again.get_feature_names_out(), model.get_feature_names_out())


def test_label_encoders(tmp_path):
    for model in (LabelEncoder(), LabelBinarizer()):
        model.fit(WORDS)
        save_model(model, tmp_path / "m.skm")
        assert_array_equal(load_model(tmp_path / "m.skm").transform(WORDS), model.transform(WORDS))


def test_a_whole_table_with_a_calibrated_machine(tmp_path):
    selector = make_column_selector(dtype_include=np.number)
    reader = ColumnTransformer([("n", StandardScaler(), selector), ("k", OneHotEncoder(), ["kind"])])
    model = make_pipeline(reader, CalibratedClassifierCV(CrammerSingerSVC(random_state=0), cv=3)).fit(FRAME, WORDS)
    save_model(model, tmp_path / "m.skm", X=FRAME, metadata={"note": "tables"})
    again = load_model(tmp_path / "m.skm")
    assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))
    assert (
        again[0].transformers[0][2].dtype_include is np.number or again[0].transformers[0][2].dtype_include == np.number
    )


def test_set_output_is_kept(tmp_path):
    model = StandardScaler().set_output(transform="pandas").fit(FRAME[list("abcd")])
    save_model(model, tmp_path / "m.skm")
    pd.testing.assert_frame_equal(
        load_model(tmp_path / "m.skm").transform(FRAME[list("abcd")]), model.transform(FRAME[list("abcd")])
    )


def test_large_vocabularies_are_kept_in_arrays(tmp_path):
    texts = [" ".join(f"w{i}é" for i in range(j, j + 50)) for j in range(0, 5000, 50)]
    model = TfidfVectorizer().fit(texts)
    save_model(model, tmp_path / "m.skm")
    assert load_model(tmp_path / "m.skm").vocabulary_ == model.vocabulary_
    assert (tmp_path / "m.skm").stat().st_size < 200_000


def test_boosting_with_an_encoder_of_its_own(tmp_path):
    frame = FRAME.assign(kind=FRAME.kind.astype("category"))[["a", "kind"]]
    model = HistGradientBoostingClassifier(max_iter=5).fit(frame, y)
    save_model(model, tmp_path / "m.skm", X=frame)
    again = load_model(tmp_path / "m.skm")
    assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert_array_equal(again.predict_proba(frame[["kind", "a"]]), model.predict_proba(frame))


# -- what a model file cannot hold ------------------------------------------------------------------------------------


def kept_by_skops(model, path):
    skops.io.dump(model, path)
    return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))


def test_skops_keeps_what_a_model_file_refuses(tmp_path):
    for model in (
        make_pipeline(StandardScaler(), PCA(2), CrammerSingerSVC(random_state=0)),
        MLPClassifier((4,), max_iter=3, random_state=0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, WORDS)
        with pytest.raises(ModelFileError, match=r"or use skops\.io\.dump\.$"):
            save_model(model, tmp_path / "m.skm")
        assert_array_equal(kept_by_skops(model, tmp_path / "m.skops").predict(X), model.predict(X))


@pytest.mark.parametrize("name", skmargin.__all__)
def test_skops_keeps_every_estimator(name, tmp_path):
    cls = getattr(skmargin, name)
    model = cls(CrammerSingerSVC(random_state=0)) if name == "FuzzyPairwiseClassifier" else cls()
    model.fit(X, y)
    again = kept_by_skops(model, tmp_path / "m.skops")
    assert_array_equal(again.decision_function(X), model.decision_function(X))


# -- files of version 0.1.0 -------------------------------------------------------------------------------------------

OLD = Path(__file__).parents[1] / "data" / "skm-0.1.0"
EXPECTED = json.loads((OLD / "expected.json").read_text())


def test_all_old_files_are_tried():
    assert {path.stem for path in OLD.glob("*.skm")} == set(EXPECTED["scores"]) and len(EXPECTED["scores"]) == 13


@pytest.mark.parametrize("name", EXPECTED["scores"])
def test_files_of_version_0_1_0_load_for_ever(name):
    model = load_model(OLD / f"{name}.skm")
    rows = np.array(EXPECTED["rows"], np.float32 if "float32" in name else np.float64)
    if hasattr(model, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    rounding = 1e-5 if "float32" in name else 1e-9
    assert_allclose(model.decision_function(rows), EXPECTED["scores"][name], rtol=rounding, atol=rounding)
    assert model.predict(rows).tolist() == EXPECTED["labels"][name]


def test_an_old_file_can_be_written_again(tmp_path):
    model = load_model(OLD / "crammer_singer_frame.skm")
    save_model(model, tmp_path / "m.skm")
    rows = pd.DataFrame(EXPECTED["rows"], columns=model.feature_names_in_)
    assert_array_equal(load_model(tmp_path / "m.skm").decision_function(rows), model.decision_function(rows))


OTHER = Path(__file__).parents[1] / "data" / "skm-sklearn-1.7"
OTHER_EXPECTED = json.loads((OTHER / "expected.json").read_text())


@pytest.mark.parametrize("name", OTHER_EXPECTED["scores"])
def test_files_written_with_scikit_learn_1_7(name):
    """Its parameters and private attributes are others."""
    model = load_model(OTHER / f"{name}.skm")
    rows = pd.DataFrame(OTHER_EXPECTED["rows"])
    scores = model.predict_proba(rows) if hasattr(model, "predict_proba") else model.decision_function(rows)
    assert_allclose(scores, OTHER_EXPECTED["scores"][name], rtol=1e-9, atol=1e-9)
    assert model.predict(rows).tolist() == OTHER_EXPECTED["labels"][name]


def test_a_scikit_learn_that_reads_attributes_otherwise_is_found_out(tmp_path, sealed):
    read, write = sealed
    path = tmp_path / "m.skm"
    save_model(StandardScaler().fit(X), path)
    document, arrays = read(path)
    attributes = document["estimator"]["attributes"]
    attributes["mean_"], attributes["scale_"] = attributes["scale_"], attributes["mean_"]
    write(path, document, arrays)
    with pytest.raises(ModelFileError, match="does not give the numbers of transform that it gave when it was written"):
        load_model(path)


def test_names_of_classes_are_those_of_version_0_1_0():
    known = {"Pipeline", "StandardScaler", "MinMaxScaler", "MaxAbsScaler"}
    assert known <= {name.removeprefix("sklearn.") for name in model_classes()}
