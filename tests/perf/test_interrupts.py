"""How long Ctrl-C takes: from the signal to the exception, in time of the processor, since others may use it too."""

import threading
import time
from _thread import interrupt_main

import numpy as np
import pytest

from skmargin import CrammerSingerSVC, LpNormSVC, MultiMarginSVC, ODMClassifier, WestonWatkinsSVC
from skmargin.model_selection import MarginSearchCV

pytestmark = [pytest.mark.perf, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

ENDLESS = {"tol": 1e-13, "max_iter": 10**9, "random_state": 0}
FITS = {
    "dense": CrammerSingerSVC(C=1e3, **ENDLESS),
    "threads": CrammerSingerSVC(C=1e3, n_jobs=3, **ENDLESS),
    "rbf": CrammerSingerSVC(C=1e3, kernel="rbf", **ENDLESS),
    "sum": WestonWatkinsSVC(C=1e3, **ENDLESS),
    "pairs": MultiMarginSVC(C=1e3, **ENDLESS),
    "block norm": LpNormSVC(C=1e3, p=1.2, **ENDLESS),
    "mm": ODMClassifier(C=1e8, solver="mm", **ENDLESS),
    "newton": ODMClassifier(C=1e8, solver="newton", **ENDLESS),
    "published": ODMClassifier(C=1e8, solver="paper", **ENDLESS),
    "odm rbf": ODMClassifier(C=1e8, kernel="rbf", **ENDLESS),
    "search": MarginSearchCV(CrammerSingerSVC(**ENDLESS), {"C": [1e3, 1e4]}, cv=3),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("after", [0.3, 1.1])
def test_a_quarter_of_a_second(name, after):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 80)), rng.integers(0, 10, 3000)
    sent = []

    def interrupt():
        sent.append(time.process_time())
        interrupt_main()

    timer = threading.Timer(after, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        FITS[name].fit(X, y)
    assert time.process_time() - sent[0] < 0.25
