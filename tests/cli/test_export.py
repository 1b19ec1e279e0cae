"""``skmargin export``: the graph of a model file predicts as the model does."""

import numpy as np
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from skmargin import M3SVC, CrammerSingerSVC
from skmargin.cli._app import app
from skmargin.model_files import load_model, save_model

X, y = load_iris(return_X_y=True, as_frame=True)


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "iris.skm"
    save_model(make_pipeline(StandardScaler(), M3SVC(loss="log_loss")).fit(X, y), path)
    return path


@pytest.mark.parametrize("single", [False, True])
def test_export(model, single, tmp_path):
    out = tmp_path / "iris.onnx"
    result = invoke("export", model, "--onnx", out, *["--float32"] * single)
    assert result.exit_code == 0 and result.stdout == f"ONNX graph: {out} (X -> label, probabilities)\n"
    rows = X.to_numpy().astype(np.float32 if single else np.float64)
    label, probabilities = onnxruntime.InferenceSession(out).run(None, {"X": rows})
    again = load_model(model)
    assert_array_equal(label, again.predict(X))
    assert_allclose(probabilities, again.predict_proba(X), atol=1e-5 if single else 1e-12)
    assert "label, scores" in invoke("export", model, "--onnx", out, "--scores").stdout


def test_what_cannot_be_exported_is_one_sentence(model, tmp_path):
    out = tmp_path / "x.onnx"
    for path, folder, reason in (
        (tmp_path / "none.skm", out, "none.skm: no such file."),
        (model, tmp_path / "nowhere" / "x.onnx", "x.onnx: No such file or directory."),
    ):
        result = invoke("export", path, "--onnx", folder)
        assert result.exit_code == 1 and reason in result.stderr.replace("\n", "") and "Traceback" not in result.output
    save_model(CrammerSingerSVC(kernel="precomputed").fit(X.to_numpy() @ X.to_numpy().T, y), model)
    result = invoke("export", model, "--onnx", out)
    assert result.exit_code == 1 and "kernel=precomputed, of which ONNX knows nothing" in " ".join(
        result.stderr.split()
    )
    assert not out.exists()
