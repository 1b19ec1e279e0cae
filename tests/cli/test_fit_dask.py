"""``skmargin fit --dask``, with a real cluster."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from typer.testing import CliRunner

from skmargin.cli import _dask
from skmargin.cli._app import app
from skmargin.model_files import load_model

run = CliRunner().invoke


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1500)
    X = rng.normal(size=(1500, 4)) * [1, 10, 100, 0.1] + 3 * np.eye(3, 4)[y] * [1, 10, 100, 0.1]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["u", "v", "w"])[y])
    folder = tmp_path_factory.mktemp("rows")
    for part in range(3):
        frame[500 * part : 500 * (part + 1)].to_parquet(folder / f"{part}.parquet")
    frame.to_csv(folder / "all.csv", index=False)
    return folder, frame


def command(source, out, *more, model="crammer-singer"):
    return ["fit", str(source), "--model", model, "--target", "kind", "--cv", "2", "--out", str(out), *more]


@pytest.fixture(scope="module")
def scheduler():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize(
    ("source", "model", "metric"),
    [("*.parquet", "crammer-singer", "accuracy"), ("all.csv", "weston-watkins", "macro-f1")],
)
def test_files_are_fitted_on_the_workers_of_a_scheduler(folder, scheduler, tmp_path, source, model, metric):
    folder, frame = folder
    out = tmp_path / "model.skm"
    more = ["--dask", scheduler, "--metric", metric]
    result = run(app, command(folder / source, out, *more, "--json", model=model))
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["n_rows"] == len(frame)
    right = (load_model(out).predict(frame[list("abcd")]) == frame["kind"]).mean()
    assert right == pytest.approx(facts["cv_score"], abs=0.03)
    assert run(app, ["predict", str(out), str(folder / "0.parquet"), "--out", str(tmp_path / "p.csv")]).exit_code == 0


def test_local_workers_are_started_and_ended(folder, tmp_path):
    folder, _ = folder
    result = run(app, command(folder / "*.parquet", tmp_path / "model.skm", "--dask", "local", "--jobs", "1"))
    assert result.exit_code == 0, result.output
    assert "1500 rows, read by Dask" in result.stdout and "relative duality gap" in result.stdout
    with pytest.raises(ValueError, match="No clients found"):
        Client.current()


def test_complaints_are_one_sentence(folder, tmp_path, scheduler, monkeypatch):
    folder, frame = folder
    monkeypatch.setattr(_dask, "SECONDS", 1)
    out = tmp_path / "model.skm"
    bad = frame.copy()
    bad.loc[700, "b"] = np.nan
    bad.to_parquet(tmp_path / "bad.parquet", row_group_size=500)
    for words, message in [
        (command(folder / "*.parquet", out, "--dask", "here"), "takes 'local' or the address of a scheduler"),
        (command(folder / "*.parquet", out, "--dask", "tcp://127.0.0.1:1"), "no scheduler answers there"),
        (command(folder / "*.parquet", out, "--dask", scheduler, model="lp-norm"), "needs all rows in memory"),
        (command(folder / "*.parquet", out, "--dask", scheduler, "--proba"), "not for it"),
        (command(folder / "none-*.parquet", out, "--dask", scheduler), "no file has such a name"),
        (command(folder / "rows.libsvm", out, "--dask", scheduler), "--dask reads Parquet and CSV files"),
        (["fit", str(folder / "*.parquet"), "--model", "odm", "--out", str(out), "--dask", scheduler], "--target"),
        (command(tmp_path / "bad.parquet", out, "--dask", scheduler), "X holds NaN or infinity in row"),
    ]:
        result = run(app, words)
        assert result.exit_code == 1, (words, result.output)
        assert message in " ".join(result.stderr.split()), result.stderr
        assert not out.exists()
