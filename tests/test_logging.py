"""What is logged beside ``verbose``: fits at DEBUG, searches at INFO, and nothing to whoever did not ask."""

import logging

from sklearn.datasets import load_iris

from skmargin import CrammerSingerSVC
from skmargin.model_selection import MarginSearchCV

X, y = load_iris(return_X_y=True)


def test_fits_and_searches_are_logged(caplog):
    with caplog.at_level(logging.DEBUG, logger="skmargin"):
        model = CrammerSingerSVC(random_state=0).fit(X, y)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("skmargin.fit", "DEBUG")
    words = f"CrammerSingerSVC(random_state=0): objective {model.objective_:.6g}, relative gap {model.dual_gap_:.1e}"
    assert record.getMessage().startswith(words)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="skmargin"):
        search = MarginSearchCV(CrammerSingerSVC(random_state=0), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert [record.getMessage() for record in caplog.records] == [
        "MarginSearchCV: 3 folds for each of 2 candidates",
        f"MarginSearchCV: chose {search.best_params_}",
    ]


def test_nothing_is_said_unasked(caplog, capfd):
    CrammerSingerSVC(random_state=0).fit(X, y)
    assert caplog.records == [] and capfd.readouterr() == ("", "")
