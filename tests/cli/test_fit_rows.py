"""``skmargin fit`` of files that are read block by block."""

from __future__ import annotations

import json
import re
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from skmargin.cli import _fit_rows, _progress
from skmargin.cli._app import app
from skmargin.model_files import load_model
from skmargin.rows.files import Batch, OpenRows
from skmargin.solvers.blocks import from_rows

run = CliRunner().invoke


def table(n=1500, seed=0, far=3.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) * [1, 10, 100, 0.1] + far * np.eye(3, 4)[y] * [1, 10, 100, 0.1]
    return pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["u", "v", "w"])[y])


@pytest.mark.parametrize("kind", ["file", "folder", "csv"])
def test_large_files_are_fitted_in_blocks_and_the_model_takes_raw_rows(tmp_path, monkeypatch, kind):
    frame = table()
    source = tmp_path / {"file": "rows.parquet", "folder": "rows", "csv": "rows.csv"}[kind]
    if kind == "folder":
        source.mkdir()
        frame[:800].to_parquet(source / "a.parquet")
        frame[800:].to_parquet(source / "b.parquet")
    elif kind == "csv":
        frame.to_csv(source, index=False)
    else:
        frame.to_parquet(source)
    monkeypatch.setattr(_fit_rows, "LARGE_SHARE", 0.0)
    out = tmp_path / "model.skm"
    command = ["fit", str(source), "--model", "crammer-singer", "--target", "kind", "--cv", "3", "--out", str(out)]
    result = run(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["n_rows"] == len(frame)
    model = load_model(out)
    right = (model.predict(frame[list("abcd")]) == frame["kind"]).mean()
    assert right == pytest.approx(facts["cv_score"], abs=0.03)
    result = run(app, command)
    assert result.exit_code == 0, result.output
    assert "read in blocks" in result.stdout
    stages = [line.partition(",")[0] for line in result.stderr.splitlines()]
    assert stages[:5] == ["opening", "scaling", "counting", "tuning", "fitting"]


def test_a_terminal_shows_a_bar_with_passes_and_gap(tmp_path, monkeypatch):
    table(5000, far=1.0).to_parquet(tmp_path / "rows.parquet")
    monkeypatch.setattr(_fit_rows, "LARGE_SHARE", 0.0)
    monkeypatch.setattr(from_rows, "SMALL_BYTES", 0)
    shown = StringIO()
    monkeypatch.setattr(_progress, "console", lambda stderr: Console(file=shown, force_terminal=True, width=100))
    command = ["fit", str(tmp_path / "rows.parquet"), "--model", "crammer-singer", "--target", "kind", "--cv", "3"]
    result = run(app, [*command, "--out", str(tmp_path / "model.skm")])
    assert result.exit_code == 0, result.output
    assert re.search(r"fitting, pass \d+.*relative gap \d\.\de-\d\d", shown.getvalue())
    assert not result.stderr


def test_passes_beyond_the_estimate_never_go_beyond_the_bar():
    seen = []
    watch = _progress.Watch({"scaling": 1, "fitting": 2}, lambda at: seen.append((at.done, at.total)))
    rows = OpenRows("rows", lambda: iter([Batch(np.ones((5, 2)), None, None)] * 2), 2, n_rows=10)
    for stage, passes in (("scaling", 1), ("fitting", 4)):
        watch.begin(stage)
        for _ in range(passes):
            assert len(list(watch.over(rows)())) == 2
    assert watch.passes == 5
    assert seen[1] == (0.5, 3)
    assert all(done <= total for done, total in seen)
    assert seen == sorted(seen)


def test_small_files_and_other_models_are_read_as_before(tmp_path):
    frame = table(300)
    frame.to_parquet(tmp_path / "rows.parquet")
    from skmargin.comparison import models

    assert not _fit_rows.is_large(str(tmp_path / "rows.parquet"), models()["crammer-singer"])
    assert not _fit_rows.is_large(str(tmp_path), models()["lp-norm"])
    assert not _fit_rows.is_large(str(tmp_path), models()["crammer-singer-rbf"])
    assert _fit_rows.is_large(str(tmp_path), models()["crammer-singer"])
