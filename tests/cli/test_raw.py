"""The command on raw tables, from the file to probabilities, block by block."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from raw_tables import TABLES
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from skmargin import CrammerSingerSVC
from skmargin.cli import _blocks, _predict
from skmargin.cli._app import app
from skmargin.cli._names import DATASETS, EXPERIMENTS, METRICS, MODELS, models_after_comma
from skmargin.comparison import METRICS as KNOWN_METRICS
from skmargin.comparison import models
from skmargin.datasets import BUILT_IN, _csv
from skmargin.experiments import EXPERIMENTS as KNOWN_EXPERIMENTS
from skmargin.model_files import load_model, save_model


def run(*words, code=0, stdin=None):
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(name, tmp_path):
    content, target = TABLES[name]()
    path = tmp_path / f"{name}.csv"
    path.write_bytes(content)
    return path, target


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_runs_through_all_commands_with_no_option_but_the_target(name, tmp_path):
    path, target = write(name, tmp_path)
    page, model, out = tmp_path / "page.html", tmp_path / "m.skm", tmp_path / "out.csv"
    words = ["compare", path, "--target", target, "--models", "crammer-singer,random-forest", "--cv", 3]
    result = run(*words, "--report", page, "--save", model)
    assert "majority class" in result.stdout and "Recall of" in result.stdout
    assert page.exists() and model.exists()
    run("fit", path, "--target", target, "--model", "weston-watkins", "--out", model, "--cv", 3)
    said = run("predict", model, path, "--target", target, "--out", out).stdout
    found = rows_of(out)
    n = len(TABLES[name]()[0].decode({"bank": "latin-1", "churn": "utf-16"}.get(name, "utf-8-sig")).splitlines()) - 1
    assert len(found) == n
    accuracy = float(said.split(" % agree")[0].split()[-1])
    assert accuracy > 70
    run("export", model, "--onnx", tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size > 100
    said = run("report", model, path, "--target", target, "--out", page).stdout
    assert f"{accuracy:.2f} % of {n} samples right (always " in said


def test_the_command_says_what_it_does_with_each_column(tmp_path):
    path, target = write("census", tmp_path)
    result = run("compare", path, "--target", target, "--models", "logistic", "--cv", 2)
    assert "  hours: number (4 cells that are no numbers, such as ' part time', count as missing)" in result.stdout
    assert "  notes: left out (empty)" in result.stdout
    found = json.loads(run("compare", path, "--target", target, "--models", "logistic", "--cv", 2, "--json").stdout)
    assert found["data"]["columns"]["job"] == "category (3 levels, 42 missing)"
    assert found["baseline"]["says"] == "<=50K" and found["models"][0]["recall"].keys() == {"<=50K", ">50K"}
    options = ["--drop", "job", "--categorical", "hours", "--number", "age", "--text", "sex"]
    result = run("compare", path, "--target", target, "--models", "logistic", "--cv", 2, *options)
    assert "  job: left out (as you say)" in result.stdout and "  sex: text (2 different)" in result.stdout
    assert "  hours: category (" in result.stdout
    said = run("compare", path, "--target", target, "--drop", "jobs", code=1).stderr
    assert "drop names the column 'jobs', which is not there" in said
    assert "for CSV and Parquet files" in run("compare", "iris", "--drop", "a", code=1).stderr


def test_an_id_of_a_sorted_file_is_no_feature(tmp_path):
    y = load_iris().target
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 2)), columns=["a", "b"])
    frame.insert(0, "id", np.arange(150))
    path = tmp_path / "sorted.csv"
    frame.assign(kind=y).to_csv(path, index=False)
    result = run("compare", path, "--target", "kind", "--models", "crammer-singer,random-forest", "--cv", 5)
    assert "warning: column 'id' numbers the rows: left out." in result.stderr
    assert "No model is clearly better than always saying" in result.stdout


def test_a_column_that_gives_the_label_away_is_named(tmp_path):
    X, y = make_classification(200, 4, flip_y=0.4, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(paid=np.where(y, "yes", "no"), kind=y)
    path = tmp_path / "leak.csv"
    frame.to_csv(path, index=False)
    result = run("compare", path, "--target", "kind", "--models", "logistic", "--cv", 3)
    assert "Column 'paid' alone reaches 100.0 %" in result.stdout
    result = run("compare", path, "--target", "kind", "--models", "logistic", "--cv", 3, "--drop", "paid")
    assert "alone reaches" not in result.stdout


def test_rare_classes_by_metric_and_weights(tmp_path):
    """On data whose majority is 95 % the accuracy hides what the other metrics and the recalls show."""
    X, y = make_classification(600, 6, weights=[0.95], class_sep=0.4, flip_y=0.02, random_state=3)
    path = tmp_path / "fraud.csv"
    pd.DataFrame(X).assign(kind=np.where(y, "fraud", "fine")).to_csv(path, index=False)
    words = ["compare", path, "--target", "kind", "--models", "crammer-singer,nearest-neighbours", "--json"]
    plain = json.loads(run(*words).stdout)
    assert any("No model is clearly better than always saying 'fine'" in word for word in plain["advice"])
    weighted = run(*words, "--metric", "balanced-accuracy", "--class-weight", "balanced")
    assert "nearest-neighbours: no class weights." in weighted.stderr
    found = json.loads(weighted.stdout)
    assert found["metric"] == "balanced-accuracy" and found["baseline"]["mean"] == 0.5
    best = found["models"][0]
    assert best["model"] == "crammer-singer" and best["mean"] == best["metrics"]["balanced-accuracy"] > 0.6
    before = next(model for model in plain["models"] if model["model"] == "crammer-singer")
    assert best["recall"]["fraud"] > before["recall"]["fraud"]


@pytest.mark.parametrize("name", ["crammer-singer", "random-forest", "rbf-svm"])
def test_probabilities(tmp_path, name):
    path, target = write("penguins", tmp_path)
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    run("fit", path, "--target", target, "--model", name, "--proba", "--out", model, "--cv", 3)
    run("predict", model, path, "--out", out, "--proba", "--keep", "sex", "--keep", "year")
    rows, estimator = rows_of(out), load_model(model)
    names = [f"probability {label}" for label in ("Adelie", "Chinstrap", "Gentoo")]
    assert list(rows[0]) == ["sex", "year", "prediction", "margin", *names]
    p = np.array([[float(row[column]) for column in names] for row in rows])
    frame = pd.read_csv(path)
    np.testing.assert_allclose(p, estimator.predict_proba(frame), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert [row["prediction"] for row in rows] == estimator.classes_[p.argmax(axis=1)].tolist()
    assert [row["year"] for row in rows] == frame["year"].astype(str).tolist()


def test_scores(tmp_path):
    path, target = write("penguins", tmp_path)
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    run("fit", path, "--target", target, "--model", "odm", "--out", model, "--cv", 2)
    run("predict", model, path, "--out", out, "--scores")
    scores = load_model(model).decision_function(pd.read_csv(path))
    found = pd.read_csv(out)
    np.testing.assert_allclose(found.filter(like="score "), scores, rtol=1e-12)
    ordered = np.sort(scores, axis=1)
    np.testing.assert_allclose(found["margin"], ordered[:, -1] - ordered[:, -2], rtol=1e-9)
    assert "fit it with --proba" in run("predict", model, path, "--out", out, "--proba", code=1).stderr
    run("fit", path, "--target", target, "--model", "random-forest", "--out", model, "--cv", 2)
    assert "gives no scores" in run("predict", model, path, "--out", out, "--scores", code=1).stderr
    run("predict", model, path, "--out", out)
    assert pd.read_csv(out)["margin"].min() >= 0  # of probabilities


def test_standard_input_and_output(tmp_path):
    path, target = write("weather", tmp_path)
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    run("fit", path, "--target", target, "--model", "crammer-singer", "--out", model, "--cv", 2)
    run("predict", model, path, "--out", out)
    result = run("predict", model, "-", "--out", "-", "--target", target, stdin=path.read_bytes())
    assert result.stdout == out.read_text()
    assert "agree with the labels" in result.stderr
    assert "name a file" in run("predict", model, path, "--out", "-", "--json", code=2).stderr
    broken = run("predict", model, "-", "--out", "-", stdin=b"date,wind\n1,2\n", code=1)
    assert "standard input: the column 'precipitation', which the model needs, is missing." in broken.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_blocks_give_what_the_whole_gives(tmp_path, monkeypatch, ending):
    """Also with columns in another order, further ones, and missing cells, in blocks of a few rows."""
    path, target = write("penguins", tmp_path)
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    run("fit", path, "--target", target, "--model", "crammer-singer", "--out", model, "--cv", 2)
    frame = pd.read_csv(path)
    other = tmp_path / f"other.{ending}"
    shuffled = frame[frame.columns[::-1]].assign(more="x")
    shuffled.to_csv(other, index=False) if ending == "csv" else shuffled.to_parquet(other)
    monkeypatch.setattr(_csv, "BLOCK", 1200)
    monkeypatch.setattr(_blocks, "ROWS", 7)
    seen = []
    original = _blocks.Blocks._block
    monkeypatch.setattr(
        _blocks.Blocks,
        "_block",
        lambda self, batch, *rest: (seen.append(batch.num_rows), original(self, batch, *rest))[1],
    )
    run("predict", model, other, "--out", out)
    assert len(seen) > 3 and sum(seen) == len(frame)
    assert [row["prediction"] for row in rows_of(out)] == load_model(model).predict(frame).tolist()


def test_numbers_that_are_text_further_on_are_read_again(tmp_path, monkeypatch):
    path, target = write("weather", tmp_path)
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    run("fit", path, "--target", target, "--model", "crammer-singer", "--out", model, "--cv", 2)
    frame = pd.read_csv(path)
    text = frame.astype({"wind": object})
    text.loc[150, "wind"] = "calm"
    text.loc[151, "wind"] = " n/a "
    text.to_csv(path, index=False)
    monkeypatch.setattr(_csv, "BLOCK", 2000)
    run("predict", model, path, "--out", out)
    frame.loc[[150, 151], "wind"] = np.nan
    assert [row["prediction"] for row in rows_of(out)] == load_model(model).predict(frame).tolist()


def test_bad_rows_at_prediction_are_named(tmp_path):
    model, out, path = tmp_path / "m.skm", tmp_path / "out.csv", tmp_path / "rows.csv"
    run("fit", "iris", "--model", "crammer-singer", "--out", model, "--cv", 2)
    names = ",".join(load_iris().feature_names)
    for line, message in (
        ("1,2,x,4", "line 3, column 'petal length (cm)': 'x' is not a number"),
        ("1,2,,4", "line 3, column 'petal length (cm)': the value is missing"),
        ("1,2,3", "line 3: 3 columns instead of 4"),
        ("1,2,inf,4", "line 3, column 'petal length (cm)': 'inf' is not a finite number"),
    ):
        path.write_text(f"{names}\n1,2,3,4\n{line}\n")
        assert message in run("predict", model, path, "--out", out, code=1).stderr
        assert not out.exists()
    path.write_text(f"{names}\n")
    assert "holds no samples" in run("predict", model, path, "--out", out, code=1).stderr
    path.write_text(f"{names},petal length (cm)\n1,2,3,4,5\n")
    assert (
        "'petal length (cm)', which the model needs, is there twice"
        in run("predict", model, path, "--out", out, code=1).stderr
    )
    path.write_text(f"{names},prediction\n1,2,3,4,5\n")
    assert (
        "two columns 'prediction'" in run("predict", model, path, "--out", out, "--keep", "prediction", code=1).stderr
    )
    assert "no column 'a' to keep" in run("predict", model, "iris", "--out", out, "--keep", "a", code=1).stderr


def test_class_names_with_quotes_are_written_so_that_they_can_be_read(tmp_path):
    X, y = load_iris(return_X_y=True)
    kinds = np.array(['a "b"', "c,d", "e\nf"])[y]
    path, model, out = tmp_path / "x.csv", tmp_path / "m.skm", tmp_path / "out.csv"
    pd.DataFrame(X, columns=list("pqrs")).assign(kind=kinds, note='say "x", y').to_csv(path, index=False)
    run("fit", path, "--target", "kind", "--model", "crammer-singer", "--out", model, "--cv", 2)
    run("predict", model, path, "--out", out, "--keep", "note")
    assert {row["prediction"] for row in rows_of(out)} == set(kinds)
    assert {row["note"] for row in rows_of(out)} == {'say "x", y'}


def test_without_arrow_lines_are_written_by_python(tmp_path, monkeypatch):
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    run("fit", "iris", "--model", "crammer-singer", "--out", model, "--cv", 2)
    run("predict", model, "iris", "--out", out)
    expected = pd.read_csv(out)
    monkeypatch.setattr(_predict, "_arrow", lambda: (None, None))
    run("predict", model, "iris", "--out", out)
    pd.testing.assert_frame_equal(pd.read_csv(out), expected)


def test_names_for_help_are_those_of_the_models():
    assert tuple(models()) == MODELS and tuple(BUILT_IN) == DATASETS and tuple(KNOWN_METRICS) == METRICS
    assert tuple(KNOWN_EXPERIMENTS) == EXPERIMENTS
    assert models_after_comma("m3,one-vs-o") == ["m3,one-vs-one"]


def test_completion_is_there():
    assert "--show-completion" in run("--help").stdout


def test_verbose_logs(tmp_path, caplog):
    run("-v", "fit", "iris", "--model", "crammer-singer", "--out", tmp_path / "m.skm", "--cv", 2)
    assert "tuning crammer-singer" in caplog.text


def test_an_encoding_that_shows_late_is_read_again(tmp_path, monkeypatch):
    path, target = write("weather", tmp_path)
    model, out = tmp_path / "m.skm", tmp_path / "out.csv"
    run("fit", path, "--target", target, "--model", "crammer-singer", "--out", model, "--cv", 2)
    run("predict", model, path, "--out", out)
    expected = [row["prediction"] for row in rows_of(out)]
    lines = path.read_text().splitlines()
    text = "\n".join([lines[0] + ",note", *(f"{line},ok" for line in lines[1:-1]), lines[-1] + ",caf\u00e9"])
    path.write_bytes(text.encode("latin-1"))
    monkeypatch.setattr("skmargin.datasets._dialect.HEAD", 1000)
    run("predict", model, path, "--out", out, "--keep", "note")
    assert [row["prediction"] for row in rows_of(out)] == expected and rows_of(out)[-1]["note"] == "caf\u00e9"
    said = run("predict", model, path, "--out", out, "--keep", "note", "--encoding", "utf-8", code=1).stderr
    assert "not UTF-8 text" in said


def test_a_pipeline_of_the_users_own_predicts_files(tmp_path):
    frame = pd.read_csv(io.BytesIO(TABLES["penguins"]()[0])).dropna()
    X, y = frame[["body_mass_g", "bill_length_mm", "island"]], frame["species"]
    own = ColumnTransformer(
        [("n", StandardScaler(), ["bill_length_mm", "body_mass_g"]), ("c", OneHotEncoder(), ["island"])]
    )
    model = make_pipeline(own, CrammerSingerSVC(random_state=0)).fit(X, y)
    save_model(model, tmp_path / "own.skm", X=X)
    frame.to_csv(tmp_path / "frame.csv", index=False)
    run("predict", tmp_path / "own.skm", tmp_path / "frame.csv", "--out", tmp_path / "out.csv")
    assert [row["prediction"] for row in rows_of(tmp_path / "out.csv")] == model.predict(X).tolist()


def test_lists_can_be_kept(tmp_path):
    run("fit", "iris", "--model", "crammer-singer", "--out", tmp_path / "m.skm", "--cv", 2)
    frame = load_iris(as_frame=True).data[:3].assign(tags=[[1], [2, 3], None])
    frame.to_parquet(tmp_path / "x.parquet")
    run("predict", tmp_path / "m.skm", tmp_path / "x.parquet", "--out", tmp_path / "o.csv", "--keep", "tags")
    assert [row["tags"] for row in rows_of(tmp_path / "o.csv")] == ["[1]", "[2, 3]", ""]
