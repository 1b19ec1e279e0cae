"""Files with many classes, some of one row only, and classes at test time that no fit has seen."""

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from skmargin.cli._app import app
from skmargin.cli._common import training_data
from skmargin.comparison import models
from skmargin.datasets import DataError


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def of_page(path):
    text = path.read_text(encoding="utf-8")
    start = text.index('type="application/json"')
    return json.loads(text[text.index(">", start) + 1 : text.index("</script>", start)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Class sizes by a power law: of 30 classes half have one or two rows; the test file has a class more."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    size = np.maximum(1, 40 // np.arange(1, 31))
    y = np.repeat(np.arange(30), size)
    X = rng.normal(size=(31, 40))[y] + 0.5 * rng.normal(size=(len(y), 40))
    dump_svmlight_file(X, y, str(folder / "train.svm"), zero_based=False)
    some = np.arange(0, len(y), 3)
    y_test = y[some].copy()
    y_test[:2] = 99
    dump_svmlight_file(X[some], y_test, str(folder / "test.svm"), zero_based=False)
    return folder, y, y_test


def test_fit_predict_and_report(files, tmp_path):
    folder, y, y_test = files
    model, out, page = tmp_path / "m.skm", tmp_path / "out.csv", tmp_path / "page.html"
    shown = run("fit", folder / "train.svm", "--model", "crammer-singer", "--out", model, "--cv", 3)
    rare = np.sum(np.bincount(y) < 3)
    assert f"{rare} of 30 classes have fewer than 3 samples" in shown.stderr and "warning" not in shown.stderr
    run("predict", model, folder / "test.svm", "--out", out)
    predicted = np.array([line.split(",")[0] for line in out.read_text().split()[1:]], dtype=int)
    shown = run("report", model, folder / "test.svm", "--out", page)
    right = np.mean(predicted == y_test)
    assert f"{100 * right:.2f} % of {len(y_test)} samples right" in shown.stdout
    assert "among the five best, macro-F1" in shown.stdout
    assert "2 samples of 1 classes that the model does not know, as '99', count as mistakes." in shown.stderr
    found = of_page(page)["models"][0]
    assert found["unknown"] == 2 and found["test_score"] == pytest.approx(right)
    assert found["test_score"] <= found["top5"] <= 1 - 2 / len(y_test)


def test_compare(files, tmp_path):
    folder, y, _ = files
    page = tmp_path / "page.html"
    words = "compare", folder / "train.svm", "--models", "crammer-singer,logistic", "--cv", 3, "--json"
    found = json.loads(run(*words, "--report", page).stdout)
    assert not found.get("errors") and len(found["models"]) == 2
    for model in of_page(page)["models"]:
        assert model["unknown"] > 0  # of classes whose only row is in the first fold
        assert model["test_score"] <= model["top5"] <= 1 - model["unknown"] / (len(y) / 3 + 1)


def test_probabilities_need_samples_of_every_class(files, tmp_path):
    folder, _, _ = files
    words = "fit", folder / "train.svm", "--model", "crammer-singer", "--proba", "--out", tmp_path / "m.skm", "--cv", 3
    assert "all (--proba) classes need 3 samples each for 3 folds" in run(*words, code=1).stderr


def test_class_vectors_need_no_memory_where_they_are_sparse(tmp_path, monkeypatch):
    path = tmp_path / "wide.svm"
    path.write_text("".join(f"{i} {i + 1}:1 1000000:{i}\n" for i in range(2500)))  # dense: 56 GiB for a solver
    monkeypatch.setattr("skmargin.cli._common.available_memory", lambda: 2**30)
    known = models()
    assert training_data(str(path), None, {}, [known["crammer-singer"], known["lp-norm"]]).X.shape == (2500, 10**6)
    for name in ("odm", "crammer-singer-rbf"):
        with pytest.raises(DataError, match=r"class vectors of 1000000 features need 55\.9 GiB"):
            training_data(str(path), None, {}, [known["crammer-singer"], known[name]])
