"""Graphs give the labels, scores and probabilities of the models, in onnxruntime, on random and on real data."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skl2onnx
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.fixes import parse_version

import skmargin
from skmargin import (
    LSSVC,
    M3SVC,
    CrammerSingerSVC,
    FuzzyPairwiseClassifier,
    LDMClassifier,
    ULDMClassifier,
    WestonWatkinsSVC,
)
from skmargin.model_files import load_model, save_model
from skmargin.onnx import to_onnx

pytestmark = [
    pytest.mark.filterwarnings("ignore:TopKSVC with k="),  # more than there are rivals
    pytest.mark.filterwarnings("ignore:kernel='sigmoid' is not positive semi-definite"),
]

REAL = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
ROUNDING = {np.float32: 2e-5, np.float64: 1e-9}
TEMPERATURE = parse_version(sklearn.__version__) >= parse_version("1.8")
X, y = load_iris(return_X_y=True)
X, y = X[::2], y[::2]


def run(graph, rows):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    if isinstance(rows, pd.DataFrame):
        names = {i.name: i.type for i in session.get_inputs()}
        kinds = {"tensor(double)": np.float64, "tensor(float)": np.float32, "tensor(string)": object}
        feed = {name: rows[[name]].to_numpy().astype(kinds[kind]) for name, kind in names.items()}
    else:
        feed = {"X": rows}
    return dict(zip((o.name for o in session.get_outputs()), session.run(None, feed), strict=True))


def check_same(model, rows, graph=None, rounding=None):
    """Labels are equal where the two best scores differ by more than rounding, which is nearly everywhere."""
    found = run(to_onnx(model, rows) if graph is None else graph, rows)
    probable = hasattr(model, "predict_proba")
    expected = model.predict_proba(rows) if probable else model.decision_function(rows)
    second = found["probabilities" if probable else "scores"]
    dtype = getattr(rows, "dtype", np.dtype(np.float64)).type
    assert second.shape == expected.shape and second.dtype == dtype
    size = np.abs(expected).max()
    atol = (rounding or ROUNDING[dtype]) * max(size, 1.0)
    assert_allclose(second, expected, rtol=0, atol=atol)
    scores = (
        np.sort(expected, axis=1)
        if expected.ndim == 2
        else np.column_stack([np.zeros(len(expected)), np.abs(expected)])
    )
    clear = scores[:, -1] - scores[:, -2] > 4 * atol
    labels = model.predict(rows)
    assert_array_equal(found["label"][clear], labels[clear].astype(found["label"].dtype))
    assert clear.mean() > 0.9


def estimators():
    return [name for name in skmargin.__all__ if name != "FuzzyPairwiseClassifier"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", estimators())
def test_every_estimator(name, n_classes, dtype):
    model = getattr(skmargin, name)()
    some = y < n_classes
    rows = (X - X.mean(axis=0)).astype(dtype)
    model.fit(rows[some], y[some])
    check_same(model, rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("name", [n for n in estimators() if "kernel" in getattr(skmargin, n)().get_params()])
def test_every_kernel(name, kernel, dtype):
    cls = getattr(skmargin, name)
    params = {"coef0": 1.0, "degree": 2} if kernel == "poly" else {}
    if kernel == "sigmoid" and "multi_class" not in cls().get_params():
        params = {"gamma": 1e-3}  # hardly indefinite
    rows = StandardScaler().fit_transform(X).astype(dtype)
    try:
        model = cls(kernel=kernel, **params).fit(rows, y)
    except ValueError as error:
        assert kernel == "sigmoid" and "positive semi-definite" in str(error)
        return
    check_same(model, rows, rounding=1e-6 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("multi_class", ["fuzzy_pairwise", "ovo", "ovr"])
@pytest.mark.parametrize("cls", [ULDMClassifier, LDMClassifier, LSSVC])
def test_pairs_of_classes(cls, multi_class):
    rng = np.random.default_rng(0)
    centres = 3 * rng.standard_normal((5, 6))
    labels = np.arange(100) % 5
    rows = centres[labels] + rng.standard_normal((100, 6))
    for params in ({"kernel": "rbf"}, {"kernel": "linear"}, {"kernel": "rbf", "basis": "random", "n_basis": 20}):
        model = cls(multi_class=multi_class, random_state=0, **params).fit(rows, labels)
        check_same(model, rows + 0.3 * rng.standard_normal(rows.shape), rounding=1e-7)


@pytest.mark.parametrize(
    "inner",
    [
        LinearSVC(), LogisticRegression(), SVC(), SVC(kernel="poly", coef0=1.0), SVC(kernel="linear"), LSSVC(),
        CrammerSingerSVC(kernel="rbf"), M3SVC(), ULDMClassifier(kernel="linear"),
        make_pipeline(MinMaxScaler(), CrammerSingerSVC()), make_pipeline(StandardScaler(), SVC()),
    ],
    ids=str,
)  # fmt: skip
def test_fuzzy_pairs_around_any_classifier(inner):
    for n_classes in (2, 3):
        some = y < n_classes
        check_same(FuzzyPairwiseClassifier(inner).fit(X[some], y[some]), X, rounding=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("data", REAL)
def test_real_data_in_pipelines_with_scalers(data, dtype):
    rows, labels = REAL[data](return_X_y=True)
    rows, labels = rows[:400].astype(dtype), labels[:400]
    for scaler in (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), Normalizer()):
        for machine in (CrammerSingerSVC(random_state=0), WestonWatkinsSVC(kernel="rbf", random_state=0)):
            check_same(make_pipeline(scaler, machine).fit(rows[::2], labels[::2]), rows, rounding=5 * ROUNDING[dtype])


@pytest.mark.parametrize("data", REAL)
def test_labels_of_held_out_rows_are_all_equal(data):
    rows, labels = REAL[data](return_X_y=True)
    for machine in (CrammerSingerSVC(random_state=0), ULDMClassifier(), M3SVC(loss="log_loss")):
        model = make_pipeline(StandardScaler(), machine).fit(rows[:600:2], labels[:600:2])
        assert_array_equal(run(to_onnx(model, rows), rows)["label"], model.predict(rows))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", *["temperature"] * TEMPERATURE])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_calibration(method, n_classes):
    rows, labels = make_classification(
        200, 6, n_informative=5, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    pipeline = make_pipeline(StandardScaler(), CrammerSingerSVC(random_state=0))
    for inner in (
        CrammerSingerSVC(random_state=0),
        pipeline,
        LSSVC(),
        LinearSVC(random_state=0),
        M3SVC(loss="log_loss"),
    ):
        for params in ({"cv": 3}, {"ensemble": False, "cv": 3}):
            model = CalibratedClassifierCV(inner, method=method, **params).fit(rows[::2], labels[::2])
            check_same(model, rows)
            check_same(make_pipeline(MinMaxScaler(), model).fit(rows[::2], labels[::2]), rows)
            found = run(to_onnx(model, rows), rows)
            assert_array_equal(model.classes_[found["probabilities"].argmax(axis=1)], found["label"])
    frozen = FrozenEstimator(pipeline.fit(rows[::2], labels[::2]))
    check_same(CalibratedClassifierCV(frozen, method=method).fit(rows[1::2], labels[1::2]), rows)


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(random_state=0), SVC(), SVC(kernel="poly", coef0=1.0), SVC(kernel="linear", break_ties=True),
        OneVsOneClassifier(LinearSVC(random_state=0)), OneVsRestClassifier(LinearSVC(random_state=0)),
        OneVsRestClassifier(SVC()), OneVsOneClassifier(CrammerSingerSVC()), RandomForestClassifier(20, random_state=0),
        ExtraTreesClassifier(20, random_state=0), DecisionTreeClassifier(random_state=0), DummyClassifier(),
        HistGradientBoostingClassifier(max_iter=10), DummyClassifier(strategy="most_frequent"), KNeighborsClassifier(),
        LogisticRegression(),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_classics_of_scikit_learn(model, n_classes):
    rows, labels = make_classification(
        200, 6, n_informative=5, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    model = make_pipeline(MinMaxScaler(), model).fit(rows[::2], np.array(list("abcd"))[labels[::2]])
    found = run(to_onnx(model, rows), rows)
    probable = hasattr(model, "predict_proba")
    expected = model.predict_proba(rows) if probable else model.decision_function(rows)
    assert_allclose(found["probabilities" if probable else "scores"], expected, rtol=0, atol=1e-6)
    assert_array_equal(found["label"], model.predict(rows))


def test_trees_send_gaps_the_same_way():
    rows, labels = make_classification(300, 5, random_state=0)
    rows[rng_mask(rows.shape)] = np.nan
    for model in (HistGradientBoostingClassifier(max_iter=10), RandomForestClassifier(10, random_state=0)):
        found = run(to_onnx(model.fit(rows[::2], labels[::2]), rows), rows)
        assert_allclose(found["probabilities"], model.predict_proba(rows), rtol=0, atol=1e-6)


def rng_mask(shape):
    return np.random.default_rng(0).random(shape) < 0.1


def test_what_is_left_to_skl2onnx():
    check_same(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), X.astype(np.float32), rounding=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_the_log_loss(n_classes, dtype):
    some = y < n_classes
    for params in ({}, {"kernel": "rbf"}):
        model = M3SVC(loss="log_loss", **params).fit(X[some].astype(dtype), y[some])
        check_same(model, X.astype(dtype))
        scores = run(to_onnx(model, X.astype(dtype), raw_scores=True), X.astype(dtype))["scores"]
        assert_allclose(scores, model.decision_function(X.astype(dtype)), rtol=0, atol=20 * ROUNDING[dtype])


@pytest.mark.parametrize(
    "labels",
    [
        y > 0,
        y.astype(np.float32),
        y + 0.5,
        y.astype(np.int8),
        np.array(["a", "ß", "日本"])[y],
        np.array(list("abc"), object)[y],
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_every_type(labels):
    model = CrammerSingerSVC(random_state=0).fit(X, np.asarray(labels) if labels.dtype != float else labels.astype(str))
    label = run(to_onnx(model, X), X)["label"]
    assert label.tolist() == model.predict(X).tolist()


def test_rows_far_from_the_origin_in_single_precision():
    rows = (StandardScaler().fit_transform(X) + 3000).astype(np.float32)
    check_same(CrammerSingerSVC(kernel="rbf", gamma=0.5, random_state=0).fit(rows, y), rows, rounding=1e-3)


def test_support_vectors_from_sparse_rows():
    model = CrammerSingerSVC(kernel="rbf", random_state=0).fit(sparse.csr_array(X), y)
    assert_allclose(run(to_onnx(model, X), X)["scores"], model.decision_function(X), atol=1e-9)


def test_many_classes():
    rng = np.random.default_rng(0)
    centres = 4 * rng.standard_normal((30, 8))
    labels = np.arange(300) % 30
    rows = centres[labels] + rng.standard_normal((300, 8))
    for model in (LSSVC(), LSSVC(multi_class="ovo"), CrammerSingerSVC(random_state=0)):
        check_same(model.fit(rows, labels), rows, rounding=1e-7)


def test_converters_are_known_to_skl2onnx():
    model = make_pipeline(StandardScaler(), CrammerSingerSVC(random_state=0)).fit(X, y)
    for options in (None, {"zipmap": False}, {id(model): {"zipmap": False}}):
        graph = skl2onnx.to_onnx(model, X[:1].astype(np.float32), options=options)
        assert_array_equal(run(graph, X.astype(np.float32))["label"], model.predict(X))


def test_a_table_by_columns():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["p", "q", "r"])[np.arange(len(y)) % 3])
    frame.loc[3, "b"] = np.nan
    reader = ColumnTransformer([
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b", "d"]),
        ("levels", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["kind"]),
    ])  # fmt: skip
    model = make_pipeline(reader, CrammerSingerSVC(random_state=0)).fit(frame, y)
    graph = to_onnx(model, frame)
    assert [i.name for i in graph.graph.input] == ["a", "b", "d", "kind"]
    frame.loc[5, "kind"] = "new"
    found = run(graph, frame)
    assert_allclose(found["scores"], model.decision_function(frame), atol=1e-5)  # skl2onnx encodes in float32
    assert_array_equal(found["label"], model.predict(frame))


def test_models_from_files(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    save_model(make_pipeline(StandardScaler(), CrammerSingerSVC(random_state=0)).fit(frame, y), tmp_path / "m.skm")
    model = load_model(tmp_path / "m.skm")
    found = run(to_onnx(model), X)
    assert_array_equal(found["label"], model.predict(frame))
    assert run(to_onnx(model, frame.astype(np.float32)), X.astype(np.float32))["scores"].dtype == np.float32
    assert run(to_onnx(model, dtype=np.float32), X.astype(np.float32))["scores"].dtype == np.float32


def test_what_cannot_be_converted_says_why():
    gram = X @ X.T
    for model, rows in ((CrammerSingerSVC(kernel="precomputed"), gram), (M3SVC(kernel=lambda a, b: a @ b.T), X)):
        with pytest.raises(ValueError, match=r"has kernel=(precomputed|a function), of which ONNX knows nothing\.$"):
            to_onnx(model.fit(rows, y), rows)
    with pytest.raises(ValueError, match="FuzzyPairwiseClassifier with a precomputed kernel"):
        to_onnx(FuzzyPairwiseClassifier(SVC(kernel="precomputed")).fit(gram, y), gram)
    model = CrammerSingerSVC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="target_opset must be at least 18, got 12"):
        to_onnx(model, X, target_opset=12)
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        to_onnx(model, X, dtype=np.int32)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        to_onnx(CrammerSingerSVC(), X)
    with pytest.raises(ValueError, match="skl2onnx cannot convert this OutputCodeClassifier"):
        to_onnx(OutputCodeClassifier(LinearSVC(random_state=0), random_state=0).fit(X, y), X)
    with pytest.raises(ValueError, match="HistGradientBoostingClassifier with categories of its own"):
        to_onnx(HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]).fit(X.round(), y), X)
    for opset in (18, 20):
        graph = to_onnx(model, X, target_opset=opset)
        assert_array_equal(run(graph, X)["label"], model.predict(X))
