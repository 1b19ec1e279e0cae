"""Models from files take frames whose columns are in any order, and say what is wrong with others."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from skmargin import M3SVC, CrammerSingerSVC
from skmargin.datasets import table_preprocessor
from skmargin.model_files import ModelFileError, describe_model, load_model, save_model, without_names

FRAME, y = load_wine(return_X_y=True, as_frame=True)
FRAME, y = FRAME.iloc[::2], np.asarray(y)[::2]
NAMES = list(FRAME.columns)


def other_order(frame, seed=0):
    return frame[list(np.random.default_rng(seed).permutation(frame.columns))]


def saved(model, path, **kwargs):
    save_model(model, path, **kwargs)
    return load_model(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.skm"


@pytest.mark.parametrize("convert", [pl.from_pandas, lambda frame: pl.from_pandas(frame).to_arrow()])
def test_frames_of_other_libraries(convert, path):
    """Polars and Arrow: numbers, text, categories, dates, truth values and missing cells, in any order."""
    raw = FRAME[NAMES[:3]].reset_index(drop=True)
    raw = raw.assign(
        text=np.where(y == 0, "red", "white"),
        level=pd.Categorical(np.where(y == 1, "low", "high")),
        day=pd.date_range("2024-01-01", periods=len(raw)),
        truth=y == 2,
    )
    raw.loc[3, NAMES[0]] = np.nan
    model = make_pipeline(table_preprocessor(raw), CrammerSingerSVC(random_state=0)).fit(raw, y)
    again = saved(model, path)
    assert_array_equal(again.predict(convert(other_order(raw))), model.predict(raw))
    with pytest.raises(ValueError, match="X has no column 'text', which the model needs"):
        again.predict(convert(raw.drop(columns="text")))
    plain = saved(CrammerSingerSVC(random_state=0).fit(FRAME, y), path)
    with pytest.raises(ValueError, match="X has text in the column"):
        plain.predict(convert(FRAME.assign(**{NAMES[2]: "x"})))


@pytest.mark.parametrize("with_names", [True, False])
@pytest.mark.parametrize("scaled", [True, False])
def test_columns_in_another_order_give_the_right_answer(with_names, scaled, path):
    """Also where the model was fitted on an array: scikit-learn would only warn, and take the wrong columns."""
    machine = CrammerSingerSVC(random_state=0)
    model = make_pipeline(MinMaxScaler(), machine) if scaled else machine
    rows = FRAME if with_names else FRAME.to_numpy()
    model.fit(rows, y)
    again = saved(model, path, feature_names=None if with_names else NAMES)
    expected = model.decision_function(rows)
    for frame in (FRAME, other_order(FRAME), other_order(FRAME.assign(more=1.0, text="x"))):
        assert_array_equal(again.decision_function(frame), expected)
        assert_array_equal(again.predict(frame), model.predict(rows))
        assert again.score(frame, y) == model.score(rows, y)
    if not with_names:
        assert_array_equal(again.decision_function(FRAME.to_numpy()), expected)
        assert_array_equal(again.decision_function(pd.DataFrame(FRAME.to_numpy())), expected)  # columns 0, 1, ...


def test_what_is_missing_is_named(path):
    again = saved(CrammerSingerSVC(random_state=0).fit(FRAME, y), path)
    with pytest.raises(ValueError, match=r"^X has no column 'ash', which the model needs\.$"):
        again.predict(FRAME.drop(columns="ash"))
    with pytest.raises(ValueError, match=r"^X has no column 'alcohol' and 1 more, which the model needs\.$"):
        again.decision_function(other_order(FRAME.drop(columns=["hue", "alcohol"])))
    with pytest.raises(ValueError, match=r"^X has more than one column 'hue'\.$"):
        again.predict(pd.concat([FRAME, FRAME[["hue"]]], axis=1))
    assert len(again.predict(pd.concat([FRAME.assign(a=1), pd.DataFrame({"a": y}, FRAME.index)], axis=1))) == len(y)


def test_types_are_kept_and_checked(path):
    again = saved(CrammerSingerSVC(random_state=0).fit(FRAME, y), path, X=FRAME)
    assert describe_model(path)["feature_types"] == ["number"] * len(NAMES)
    wrong = FRAME.assign(hue=FRAME.hue.astype(str) + " units")
    with pytest.raises(
        ValueError, match=r"^X has text in the column 'hue', where the model was fitted with numbers\.$"
    ):
        again.predict(wrong)
    with pytest.raises(ValueError, match=r"^X has dates in the column 'hue', where"):
        again.predict(FRAME.assign(hue=pd.Timestamp("2020-01-01")))
    whole = FRAME.astype({"hue": np.int32, "ash": np.float32, "magnesium": bool})
    assert len(again.predict(whole)) == len(y)


def test_types_of_a_table(path):
    kinds = np.array(["a", "b"])[np.arange(len(y)) % 2]
    dates = pd.date_range("2020-01-01", periods=len(y))
    frame = FRAME[["hue", "ash"]].assign(
        kind=kinds, level=pd.Categorical(kinds), when=dates, mixed=[1, "x"] * 44 + [None]
    )
    parts = [
        ("n", StandardScaler(), ["hue"]),
        ("k", OneHotEncoder(), ["kind", "level"]),
        ("m", "drop", ["when", "ash"]),
    ]
    model = make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(frame, y)
    again = saved(model, path, X=frame)
    about = describe_model(path)
    assert about["feature_names"] == ["hue", "kind", "level"]  # dropped columns are not needed
    assert about["feature_types"] == ["number", "text", "text"]
    shuffled = other_order(frame.drop(columns=["when", "mixed", "ash"]))
    assert_array_equal(again.predict_proba(shuffled), model.predict_proba(frame))
    with pytest.raises(ValueError, match="X has numbers in the column 'kind', where the model was fitted with text"):
        again.predict(frame.assign(kind=1))
    with pytest.raises(ValueError, match="X has no column 'level'"):
        again.predict(frame.drop(columns="level"))
    save_model(model, path)  # without rows, what the readers tell
    assert describe_model(path)["feature_types"] == ["number", "any", "any"]


def test_it_stays_an_estimator_of_its_class(path):
    model = make_pipeline(StandardScaler(), M3SVC(loss="log_loss")).fit(FRAME, y)
    again = saved(model, path)
    assert isinstance(again, Pipeline) and type(again).__name__ == "Pipeline" and repr(again) == repr(model)
    assert again.get_params().keys() == model.get_params().keys() and isinstance(again[-1], M3SVC)
    assert not hasattr(again, "transform") and "Pipeline" in again._repr_html_()
    assert not isinstance(saved(M3SVC().fit(FRAME, y), path), Pipeline)
    expected = model.predict_proba(FRAME)
    for other in (pickle.loads(pickle.dumps(again)), copy.deepcopy(again), copy.copy(again)):
        assert_array_equal(other.predict_proba(other_order(FRAME)), expected)
    plain = without_names(again)
    assert type(plain) is Pipeline and without_names(plain) is plain
    assert_array_equal(plain.predict_proba(FRAME), expected)


def test_a_hinge_has_no_probabilities_from_a_file_either(path):
    again = saved(M3SVC().fit(FRAME, y), path)
    assert not hasattr(again, "predict_proba")
    with pytest.raises(AttributeError):
        again.predict_proba(FRAME)


def test_it_can_be_fitted_again_and_searched(path):
    again = saved(make_pipeline(StandardScaler(), CrammerSingerSVC(random_state=0)).fit(FRAME, y), path)
    small = FRAME[["hue", "ash"]]
    assert cross_val_score(again, small, y, cv=3).min() > 0.3
    assert len(clone(again).fit(small, y).predict(small)) == len(y)
    calibrated = CalibratedClassifierCV(FrozenEstimator(again)).fit(FRAME, y)
    assert calibrated.predict_proba(FRAME).shape == (len(y), 3)
    again.fit(small, y)  # its columns are those of the new rows
    assert again.n_features_in_ == 2 and len(again.predict(small)) == len(y)
    assert_array_equal(saved(again, path).predict(small[["ash", "hue"]]), again.predict(small))


def test_a_loaded_model_can_be_saved_again(path):
    again = saved(CrammerSingerSVC(random_state=0).fit(FRAME.to_numpy(), y), path, feature_names=NAMES)
    before = path.read_bytes()
    save_model(again, path)
    assert path.read_bytes() == before
    assert_array_equal(load_model(path).predict(other_order(FRAME)), again.predict(FRAME))


def test_a_stream_goes_on_in_any_order(path):
    again = saved(M3SVC(random_state=0).fit(FRAME, y), path)
    other = saved(M3SVC(random_state=0).fit(FRAME, y), path)
    assert_array_equal(again.partial_fit(other_order(FRAME), y).coef_, other.partial_fit(FRAME, y).coef_)


def test_names_that_do_not_fit_are_refused(path):
    model = CrammerSingerSVC(random_state=0).fit(FRAME.to_numpy(), y)
    for names in (NAMES[:-1], [*NAMES[:-1], NAMES[0]]):
        with pytest.raises(
            ModelFileError, match=r"feature_names has 1[23] names for 13 features, or one of them twice"
        ):
            save_model(model, path, feature_names=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(saved(model, path).predict(FRAME.to_numpy()), model.predict(FRAME.to_numpy()))
    assert describe_model(path)["feature_names"] is None


def test_the_command_line_of_version_0_1_0_kept_names_elsewhere(path, sealed):
    """They were in the metadata, where only the command line looked."""
    read, write = sealed
    model = CrammerSingerSVC(random_state=0).fit(FRAME.to_numpy(), y)
    save_model(model, path, metadata={"feature_names": NAMES, "zero_based": None})
    document, arrays = read(path)
    del document["feature_types"]
    document["format_version"] = 1
    write(path, document, arrays, version=1)
    assert describe_model(path)["feature_names"] == NAMES
    assert_array_equal(load_model(path).predict(other_order(FRAME)), model.predict(FRAME.to_numpy()))
