"""The picture of an estimator in a notebook: a link to the reference, and what each parameter means."""

import re

import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.utils.fixes import parse_version

import skmargin
from skmargin import CrammerSingerSVC, FuzzyPairwiseClassifier
from skmargin.estimators._links import SITE
from skmargin.model_files import load_model, save_model
from skmargin.model_selection import MarginSearchCV

TOOLTIPS = parse_version(sklearn.__version__) >= parse_version("1.8")


def make(name):
    cls = getattr(skmargin, name)
    return cls(CrammerSingerSVC()) if cls is FuzzyPairwiseClassifier else cls()


@pytest.mark.parametrize("name", skmargin.__all__)
def test_link_and_tooltips(name):
    model = make(name)
    page = model._repr_html_()
    assert f'href="{SITE}/api/generated/skmargin.{name}.html"' in page
    described = dict(re.findall(r"--doc-link-(\w+);\">\s*(\w+: .+?)</span>", page, flags=re.S)) if TOOLTIPS else {}
    for parameter in model.get_params(deep=False) if TOOLTIPS else ():
        assert re.match(rf"{parameter}: .+<br><br>\S.{{8}}", described[parameter], re.S)


def test_the_search_links_to_its_own_page():
    page = MarginSearchCV(CrammerSingerSVC(), {"C": [1.0]})._repr_html_()
    assert f"{SITE}/api/generated/skmargin.model_selection.MarginSearchCV.html" in page
    assert f"{SITE}/api/generated/skmargin.CrammerSingerSVC.html" in page


def test_a_model_from_a_file_has_the_same_picture(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    save_model(CrammerSingerSVC(random_state=0).fit(X, y), tmp_path / "m.skm")
    assert f"{SITE}/api/generated/skmargin.CrammerSingerSVC.html" in load_model(tmp_path / "m.skm")._repr_html_()
