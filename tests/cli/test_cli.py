"""The command as a user meets it: what it prints, what it writes, how it ends."""

import _thread
import csv
import gzip
import json
import re
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import skmargin.cli
from skmargin.cli._app import app
from skmargin.cli._terminal import printable, seconds
from skmargin.comparison import Model, models
from skmargin.model_files import load_model

STRANGE = ["[red]fox[/red]", "<script>alert(1)</script>", "שלום 🦊 \"'&"]


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def write_csv(path, X, y, names, target="kind"):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, target])
        writer.writerows([*row, label] for row, label in zip(X.tolist(), y, strict=True))
    return path


@pytest.fixture
def flowers(tmp_path):
    """Iris as a CSV file whose names try to be markup."""
    X, y = load_iris(return_X_y=True)
    names = ["[bold]length[/bold]", "<b>width</b>", "אורך", "🌸"]
    return write_csv(tmp_path / "flowers.csv", X, [STRANGE[code] for code in y], names)


def test_compare_prints_a_plain_ranking_and_writes_a_page(tmp_path):
    page = tmp_path / "report.html"
    result = run("compare", "iris", "--models", "Crammer-Singer,one-vs-rest", "--cv", 3, "--report", page)
    lines = result.stdout.splitlines()
    assert lines[0] == "iris: 150 samples, 4 features, 3 classes (setosa, versicolor, virginica)"
    assert lines[1].split() == [
        "rank", "model", "accuracy", "±", "sd", "balanced", "macro-F1", "p", "against", "first", "fit", "predict"
    ]  # fmt: skip
    assert {line.split()[1] for line in lines[2:4]} == {"crammer-singer", "one-vs-rest"}
    assert lines[4].split()[:2] == ["majority", "class"]
    assert lines[5].startswith("Recall of ") and "setosa 100.0 %" in lines[5]
    assert "over 3 folds" in lines[6]
    assert "\x1b" not in result.output
    assert "1/2 crammer-singer: " in result.stderr
    assert f"--report {page}" in json_of(page)["command"]
    assert [len(model["fold_scores"]) for model in json_of(page)["models"]] == [3, 3]
    assert json_of(page)["models"][0]["hardest"]


def json_of(page):
    text = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    return json.loads(text.group(1))


def test_compare_as_json_prints_nothing_else():
    result = run("compare", "iris", "--models", "top-k,rbf-svm,ecoc", "--cv", 3, "--json")
    found = json.loads(result.stdout)
    assert found["data"]["classes"] == ["setosa", "versicolor", "virginica"]
    means = [model["mean"] for model in found["models"]]
    assert means == sorted(means, reverse=True)
    assert [model["rank"] for model in found["models"]] == [1 + means.index(mean) for mean in means]
    assert {model["model"] for model in found["models"]} == {"top-k", "rbf-svm", "ecoc"}
    for model in found["models"]:
        assert model["mean"] == pytest.approx(np.mean(model["fold_scores"]))
        assert model["deviation"] == pytest.approx(np.std(model["fold_scores"], ddof=1))
        assert len(model["params"]) == 3
        assert model["fit_time"] > 0
    assert found["models"][0]["p_value"] is None
    assert found["failed"] == {}
    assert found["advice"]


def test_many_rows_leave_the_kernel_machines_out_unless_named(monkeypatch):
    monkeypatch.setattr("skmargin.cli._compare.KERNEL_ROWS", 100)
    result = run("compare", "iris", "--cv", 2, "--json")
    found = {model["model"] for model in json.loads(result.stdout)["models"]}
    assert found == {name for name, model in models().items() if model.default and not model.kernel}
    assert "rbf-svm" not in found
    assert "more than 100 samples: left out" in result.stderr
    result = run("compare", "iris", "--cv", 2, "--models", "rbf-svm", "--json")
    assert json.loads(result.stdout)["models"][0]["model"] == "rbf-svm"


def test_compare_shows_bars_on_a_terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("rich.console.detect_legacy_windows", lambda: False)  # else the runner asks Windows
    result = run("compare", "iris", "--models", "one-vs-rest", "--cv", 2)
    assert "━" in result.stderr
    assert "2/2" in result.stderr
    assert "\x1b[" in result.stderr


def test_interrupted_comparison_continues(tmp_path):
    store = tmp_path / "state.json"
    words = ["compare", "wine", "--models", "one-vs-rest,ecoc,one-vs-one,logistic", "--resume", store]

    def interrupt():
        while not store.exists():
            time.sleep(0.01)
        _thread.interrupt_main()

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    result = run(*words, code=130)
    watcher.join()
    assert f"--resume {store} continues" in result.stderr
    before = json.loads(store.read_bytes())["models"]
    assert sum(len(model["folds"]) for model in before.values()) < 20
    found = json.loads(run(*words, "--json").stdout)
    scores = {model["model"]: model["fold_scores"] for model in found["models"]}
    for name, model in before.items():
        old = [fold["score"] for fold in model["folds"]]
        assert scores[name][: len(old)] == old
    assert len(scores) == 4
    assert list(tmp_path.iterdir()) == [store]


def test_names_are_text_on_terminal_and_page(tmp_path, flowers):
    page, model, out = tmp_path / "page.html", tmp_path / "m.skm", tmp_path / "out.csv"
    result = run("compare", flowers, "--target", "kind", "--models", "logistic,m3", "--cv", 2, "--report", page)
    for name in STRANGE:
        assert name in result.stdout
    assert "<script>alert" not in page.read_text("utf-8")
    assert sorted(json_of(page)["dataset"]["classes"]) == sorted(STRANGE)
    assert "[red]fox[/red]" in run("fit", flowers, "--target", "kind", "--model", "top-k", "--out", model).stdout
    result = run("predict", model, flowers, "--target", "kind", "--out", out)
    for name in STRANGE:
        assert name in result.stdout
    run("report", model, flowers, "--target", "kind", "--out", page)
    assert "<script>alert" not in page.read_text("utf-8")


def test_control_characters_cannot_steer_the_terminal(tmp_path):
    X, y = load_iris(return_X_y=True)
    labels = [["\x1b[31mred", "\u202eback", "plain"][code] for code in y]
    path = write_csv(tmp_path / "data.csv", X, labels, "abcd")
    result = run("compare", path, "--target", "kind", "--models", "one-vs-rest", "--cv", 2)
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    assert r"\x1b[31mred" in result.stdout
    assert printable("👩\u200d🚀 a\u0301 [b]") == "👩\u200d🚀 a\u0301 [b]"
    assert printable("\ud800\r\n") == r"\ud800\r\n"


def test_fit_predict_report_round_trip(tmp_path, flowers):
    model, out, page = tmp_path / "iris.skm", tmp_path / "out.csv", tmp_path / "page.html"
    facts = json.loads(
        run("fit", flowers, "--target", "kind", "--model", "crammer-singer", "--out", model, "--json").stdout
    )
    assert facts["cv_accuracy"] > 0.9
    assert facts["params"]["C"] in (0.1, 1.0, 10.0, 100.0)
    X, y = load_iris(return_X_y=True)
    expected = load_model(model).predict(X)
    names = ["[bold]length[/bold]", "<b>width</b>", "אורך", "🌸"]
    turned = write_csv(tmp_path / "turned.csv", X[:, ::-1], [STRANGE[code] for code in y], names[::-1])
    found = json.loads(run("predict", model, turned, "--target", "kind", "--out", out, "--json").stdout)
    with open(out, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == expected.tolist()
    assert min(float(row["margin"]) for row in rows) >= 0
    assert found["accuracy"] == pytest.approx(np.mean(expected == [STRANGE[code] for code in y]))
    assert sum(found["predicted"].values()) == 150
    run("report", model, turned, "--target", "kind", "--out", page)
    data = json_of(page)
    assert data["models"][0]["name"] == "crammer-singer"
    assert data["models"][0]["test_score"] == pytest.approx(found["accuracy"], abs=1e-5)
    fewer = write_csv(tmp_path / "fewer.csv", X[:, :3], y, names[:3])
    assert "'🌸', which the model needs, is missing" in run("predict", model, fewer, "--out", out, code=1).stderr


def test_libsvm_files_for_a_model_of_dense_rows(tmp_path, flowers):
    model, out, path = tmp_path / "m.skm", tmp_path / "out.csv", tmp_path / "two.svm"
    run("fit", flowers, "--target", "kind", "--model", "crammer-singer", "--out", model)
    path.write_text("0 1:5.1 2:3.5 3:1.4\n1 1:7 3:4.7\n")
    run("predict", model, path, "--out", out)
    expected = load_model(model).predict([[5.1, 3.5, 1.4, 0], [7, 0, 4.7, 0]])
    with open(out, newline="", encoding="utf-8") as file:
        assert [row["prediction"] for row in csv.DictReader(file)] == expected.tolist()


def test_the_first_index_of_a_libsvm_file_is_that_of_the_training_file(tmp_path):
    X, y = load_iris(return_X_y=True)
    train, test, model, out = (tmp_path / name for name in ("train.svm", "test.svm", "m.skm", "out.csv"))
    dump_svmlight_file(X, y, str(train))  # indices from 0
    X[:, 0] = 0
    dump_svmlight_file(X, y, str(test))  # where the first one does not occur
    run("fit", train, "--model", "crammer-singer", "--out", model)
    run("predict", model, test, "--out", out)
    with open(out, newline="", encoding="utf-8") as file:
        assert [row["prediction"] for row in csv.DictReader(file)] == load_model(model).predict(X).astype(str).tolist()
    dump_svmlight_file(X + 1, y, str(train), zero_based=False)
    dump_svmlight_file(X + 1, y, str(test))
    run("fit", train, "--model", "crammer-singer", "--out", model)
    assert "index 0 occurs" in run("predict", model, test, "--out", out, code=1).stderr


def test_class_vectors_that_do_not_fit_into_memory_are_refused(tmp_path):
    path = tmp_path / "wide.svm"
    path.write_text("".join(f"{i} 1:1 2147483646:{i}\n" for i in range(5000)))  # 5000 classes: 240 TiB
    said = run("fit", path, "--model", "odm", "--out", tmp_path / "m.skm", code=1).stderr
    assert "Is the largest index right?" in said


def test_libsvm_files_stay_sparse_and_may_lack_features_and_classes(tmp_path):
    X, y = load_iris(return_X_y=True)
    lines = [f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row, label in zip(X, y, strict=True)]
    path, part = tmp_path / "iris.svm.gz", tmp_path / "part.svm"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    part.write_text("0 1:5.1 2:3.5\n0 1:4.9\n1 1:7 3:4.7\n")
    model, out, page = tmp_path / "m.skm", tmp_path / "out.csv", tmp_path / "page.html"
    found = json.loads(run("compare", path, "--models", "crammer-singer,ls-svm", "--cv", 2, "--json").stdout)
    assert min(entry["mean"] for entry in found["models"]) > 0.85
    run("fit", path, "--model", "weston-watkins", "--out", model)
    assert type(load_model(model)[0]).__name__ == "MaxAbsScaler"
    run("predict", model, part, "--out", out)
    assert len(out.read_text().splitlines()) == 4
    run("report", model, part, "--out", page)
    assert json_of(page)["dataset"]["class_counts"] == [2, 1, 0]
    part.write_text("0 1:1\n7 1:1\n")
    shown = run("report", model, part, "--out", page)
    assert "1 samples of 1 classes that the model does not know, as '7', count as mistakes." in shown.stderr
    assert "of 2 samples right" in shown.stdout and json_of(page)["models"][0]["unknown"] == 1
    part.write_text("7 1:1\n8 1:1\n")
    assert "does not know the class '7', nor any other" in run("report", model, part, "--out", page, code=1).stderr
    part.write_text("0 9:1\n")
    assert run("predict", model, part, "--out", out, code=1).stderr.startswith("skmargin: ")


def test_a_report_knows_labels_by_their_text(tmp_path):
    X, y = load_iris(return_X_y=True)
    kinds = np.array(["1", "2", "other"])[y]
    whole = write_csv(tmp_path / "whole.csv", X, kinds, "abcd")
    part = write_csv(tmp_path / "part.csv", X[:100], kinds[:100], "abcd")  # only whole numbers: read as such
    model, page = tmp_path / "m.skm", tmp_path / "r.html"
    run("fit", whole, "--target", "kind", "--model", "crammer-singer", "--out", model, "--cv", 2)
    run("report", model, part, "--target", "kind", "--out", page)
    data = json_of(page)
    assert data["dataset"]["classes"] == ["1", "2", "other"] and data["dataset"]["class_counts"] == [50, 50, 0]
    assert data["models"][0]["test_score"] > 0.9


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "x,kind\n1,a\n", (), "say which column holds the labels"),
        ("a.csv", "x,kind\n1,a\n1,\n", ("--target", "kind"), "line 3, column 'kind': the label is missing"),
        ("a.csv", "x,z,kind\n1,2,a\n1,a\n", ("--target", "kind"), "line 3: 2 columns instead of 3"),
        ("a.csv", "x,kind\n1,a\n2,b\n", ("--target", "sort"), "there is no column 'sort'"),
        ("a.csv", "x,kind\n" + "1,a\n2,a\n" * 5, ("--target", "kind"), "only one class, 'a'"),
        ("a.csv", "x,kind\n" + "1,a\n" * 9, ("--target", "kind"), "no column is left to learn from"),
        ("a.csv", "x,kind\n" + "1,a\n" * 9 + "2,[b]\n", ("--target", "kind"), "class '[b]' has only 1 sample"),
        ("a.svm", "1 1:2\n2 1:x\n", (), "line 2: feature '1' has the value 'x'"),
        ("a.svm", "", (), "a.svm"),
    ],
)
def test_broken_data_are_named_in_one_sentence(tmp_path, name, content, options, message):
    path = tmp_path / name
    path.write_text(content)
    result = run("compare", path, *options, code=1)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_what_cannot_work_is_refused_before_the_work(tmp_path):
    nowhere = tmp_path / "no" / "folder" / "out"
    assert "neither a file nor" in run("compare", "irys", code=1).stderr
    assert "does not exist" in run("compare", "iris", "--report", nowhere, code=1).stderr
    assert "is a folder" in run("compare", "iris", "--resume", tmp_path, code=1).stderr
    assert "does not exist" in run("fit", "iris", "--model", "m3", "--out", nowhere, code=1).stderr
    assert "Did you mean crammer-singer?" in run("compare", "iris", "--models", "cramer-singer", code=2).stderr
    assert "names no model" in run("compare", "iris", "--models", ",", code=2).stderr
    assert "--cv" in run("compare", "iris", "--cv", 1, code=2).stderr
    assert "must be one of accuracy, balanced" in run("compare", "iris", "--metric", "auc", code=2).stderr
    assert "must be one of balanced" in run("compare", "iris", "--class-weight", "even", code=2).stderr
    assert "is not a regular file" in run("compare", "iris", "--resume", "/dev/full", code=1).stderr
    assert (
        "at least two classes need 60 samples each"
        in run("fit", "iris", "--model", "m3", "--cv", 60, "--out", tmp_path / "m.skm", code=1).stderr
    )
    assert "no such file" in run("predict", tmp_path / "m.skm", "iris", "--out", tmp_path / "o.csv", code=1).stderr
    (tmp_path / "bad.skm").write_bytes(b"not a model")
    assert (
        "not a skmargin model file" in run("report", tmp_path / "bad.skm", "iris", "--out", nowhere.name, code=1).stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["bad.skm"]


def test_a_model_for_other_features_is_refused(tmp_path):
    model = tmp_path / "m.skm"
    run("fit", "iris", "--model", "crammer-singer", "--out", model)
    path = tmp_path / "plain.csv"
    path.write_text("0,1\n2,3\n")
    assert "is missing" in run("predict", model, path, "--out", tmp_path / "o.csv", code=1).stderr
    assert "is missing" in run("predict", model, "wine", "--out", tmp_path / "o.csv", code=1).stderr


def test_models_that_fail_are_named_and_give_their_own_exit_code(tmp_path, monkeypatch):
    bad = Model("bad", "", LinearSVC(), {"C": (-1.0,)})
    known = {"bad": bad, "one-vs-rest": models()["one-vs-rest"]}
    monkeypatch.setattr("skmargin.cli._compare.models", lambda: known)
    page, words = tmp_path / "page.html", ["compare", "iris", "--cv", 2, "--models", "all", "--report"]
    result = run(*words, page, code=3)
    assert "bad failed: InvalidParameterError: " in result.stderr
    assert "Choose one-vs-rest" in result.stdout
    assert [model["name"] for model in json_of(page)["models"]] == ["one-vs-rest"]
    del known["one-vs-rest"]
    result = run(*words, tmp_path / "none.html", "--json", code=3)
    assert list(json.loads(result.stdout)["failed"]) == ["bad"]
    assert not (tmp_path / "none.html").exists()


def test_rows_at_the_end_of_the_range_make_no_noise(tmp_path):
    X = np.array([[-1e308, 1.0], [1e308, 2.0]] * 10)  # their sum is not a number
    path = write_csv(tmp_path / "data.csv", X, ["a", "b"] * 10, "xy")
    result = run("compare", path, "--target", "kind", "--cv", 2, "--models", "one-vs-rest,m3")
    assert len(result.stderr.splitlines()) == 2


def test_small_mistakes_are_named(tmp_path, flowers):
    name = "m\udcff.skm" if sys.platform == "linux" else "m.skm"  # where a name need not be text
    model, out = tmp_path / name, tmp_path / "out.csv"
    assert (
        "is built in and has its labels"
        in run("fit", "iris", "--target", 2, "--model", "odm", "--out", model, code=1).stderr
    )
    run("fit", flowers, "--target", "kind", "--model", "crammer-singer", "--out", model)
    run("predict", model, flowers, "--out", out)  # a column that the model does not need, here the labels, is ignored
    expected, table = out.read_bytes(), tmp_path / "flowers.parquet"
    pd.read_csv(flowers).to_parquet(table)
    run("predict", model, table, "--out", out)
    assert out.read_bytes() == expected
    assert run("predict", tmp_path, "iris", "--out", out, code=1).stderr.strip().count("damaged") == 0


def test_version():
    assert run("--version").stdout.strip() == f"skmargin {skmargin.__version__}"


def test_datasets_are_listed():
    lines = run("datasets").stdout.splitlines()
    assert lines[3].split()[:4] == ["digits", "1797", "64", "10"]
    assert [row["name"] for row in json.loads(run("datasets", "--json").stdout)] == [
        "iris", "wine", "digits", "breast_cancer",
    ]  # fmt: skip


def test_help_names_models_and_commands():
    text = run("--help").stdout
    for command in ("compare", "fit", "predict", "report", "datasets"):
        assert command in text
    assert "..." not in text.partition("Commands:")[2]  # every summary fits into its line
    assert "crammer-singer" in run("compare", "--help").stdout


def test_extras_that_are_missing_are_named(tmp_path, monkeypatch):
    table = tmp_path / "data.parquet"
    pd.DataFrame({"a": [1.0], "kind": ["x"]}).to_parquet(table)
    for package in ("pyarrow", "matplotlib"):
        monkeypatch.setitem(sys.modules, package, None)
    said = run("compare", table, "--target", "kind", code=1).stderr
    assert said == "skmargin: Parquet files need pyarrow: pip install 'skmargin[data]'.\n"
    said = run("reproduce", "lei", "--quick", "--out", tmp_path / "out", code=1).stderr
    assert "skmargin reproduce requires matplotlib" in said and not (tmp_path / "out").exists()


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "skmargin.cli._app")
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as stop:
        skmargin.cli.main()
    assert stop.value.code == "The skmargin command needs the package typer: pip install 'skmargin[cli]'"


def test_times_have_units():
    assert [seconds(t) for t in (1234.0, 1.5, 0.0123, 2e-6, None)] == ["1234 s", "1.5 s", "12.3 ms", "2 µs", ""]
