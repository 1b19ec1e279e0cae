"""Raw tables from the file to an ONNX graph, with no option but the target."""

import numpy as np
import onnxruntime
import pytest
from raw_tables import TABLES
from sklearn.calibration import CalibratedClassifierCV
from typer.testing import CliRunner

from skmargin.cli._app import app
from skmargin.datasets import DateParts, ParseNumbers, ParseText
from skmargin.datasets._columns import seconds_of
from skmargin.datasets._load import load_training
from skmargin.model_files import load_model
from skmargin.model_files._columns import reader_of


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def as_read(model, frame):
    """Columns as a graph takes them, by the readers of the model."""
    feed = {}
    for _, part, names in reader_of(model).transformers_:
        reader = reader_of(part)
        for name in names if not isinstance(part, str) else ():
            if isinstance(reader, DateParts):
                feed[name] = seconds_of(frame[name], reader.day_first)[:, None]
            elif isinstance(reader, ParseNumbers):
                feed[name] = ParseNumbers(decimal=reader.decimal).fit_transform(frame[[name]])
            else:
                feed[name] = ParseText().fit_transform(frame[[name]])
    return feed


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize("model", ["weston-watkins", "random-forest"])
def test_every_table_becomes_a_graph(name, model, tmp_path):
    content, target = TABLES[name]()
    path, file, graph = tmp_path / f"{name}.csv", tmp_path / "m.skm", tmp_path / "m.onnx"
    path.write_bytes(content)
    proba = model == "weston-watkins"
    run("fit", path, "--target", target, "--model", model, "--out", file, "--cv", 3, *["--proba"] * proba)
    run("export", file, "--onnx", graph)
    again, frame = load_model(file), load_training(str(path), target=target).X
    assert isinstance(again[-1], CalibratedClassifierCV) == proba
    session = onnxruntime.InferenceSession(graph)
    feed = as_read(again, frame)
    label, probabilities = session.run(None, {i.name: feed[i.name] for i in session.get_inputs()})
    np.testing.assert_allclose(probabilities, again.predict_proba(frame), rtol=0, atol=1e-6)
    assert (label == again.predict(frame)).all()
