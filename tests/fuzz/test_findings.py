"""What once broke stays mended: false certificates, numbers that are none, wrong exceptions, slow fits."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from skmargin import LSSVC, M3SVC, CrammerSingerSVC, TopKSVC, WestonWatkinsSVC

from .findings import FINDINGS
from .judge import judge, worth
from .kept import kept_case, kept_names


@pytest.mark.parametrize("name", FINDINGS)
def test_past_findings(name):
    judge(FINDINGS[name]())


@pytest.mark.parametrize("name", kept_names())
def test_kept_cases(name):
    judge(kept_case(name), with_rival=True)


def test_a_column_that_double_precision_cannot_carry_is_named():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.standard_normal(90), "time": 1.7e15 + rng.standard_normal(90)})
    y = (frame["time"] - 1.7e15 > 0).astype(int).to_numpy()
    with pytest.warns(ConvergenceWarning, match="cannot carry column 'time' of X"):
        model = WestonWatkinsSVC(tol=1e-6).fit(frame, y)
    truth = worth(model, frame.to_numpy(), y, np.ones(90)).objective()
    assert truth <= model.objective_ * (1 + model.dual_gap_)


def test_rows_far_from_zero_have_the_machine_of_centred_rows():
    rng = np.random.default_rng(1)
    X, y = rng.integers(-50, 50, (200, 4)).astype(float), rng.integers(0, 3, 200)
    near = CrammerSingerSVC(tol=1e-8, random_state=0).fit(X, y)
    far = CrammerSingerSVC(tol=1e-8, random_state=0).fit(X + 2.0**40, y)  # exact: whole numbers
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-6)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-5)


def test_lapack_prints_nothing(capfd):
    LSSVC(basis="random", kernel="poly", fit_intercept=False).fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert capfd.readouterr() == ("", "")


def test_rows_of_very_different_sizes_take_no_minutes():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 40)) * 10.0 ** rng.integers(-8, 8, (30, 1))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        M3SVC(fit_intercept=False, loss="log_loss").fit(X, rng.integers(0, 3, 30))
    assert time.process_time() - start < 15


def test_more_rivals_than_there_are():
    X = np.random.default_rng(0).standard_normal((9, 2))
    with pytest.warns(UserWarning, match="k=5 has only 2 rivals"):
        TopKSVC(k=5).fit(X, np.arange(9) % 3)


@pytest.mark.parametrize("name", ["predict_proba", "predict_log_proba"])
def test_a_missing_probability_says_what_to_do(name):
    for model in (CrammerSingerSVC(), M3SVC()):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=r"CalibratedClassifierCV, or take M3SVC\(loss='log_loss'\)"):
            getattr(model, name)
    assert hasattr(M3SVC(loss="log_loss"), name)


def test_labels_that_are_one_hot_or_missing():
    X = np.random.default_rng(0).standard_normal((4, 2))
    with pytest.raises(ValueError, match=r"give y\.argmax\(axis=1\)"):
        CrammerSingerSVC().fit(X, np.eye(2)[[0, 1, 0, 1]])
    for dtype in ("string", "category", object):
        with pytest.raises(ValueError, match="the label of row 2 is missing"):
            CrammerSingerSVC().fit(X, pd.Series(["a", "b", pd.NA, "a"], dtype=dtype))
