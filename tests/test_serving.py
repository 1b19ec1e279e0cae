"""The example that serves a model file over HTTP."""

import importlib.util
import json
import threading
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from raw_tables import TABLES
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline

from skmargin import CrammerSingerSVC
from skmargin.datasets import table_preprocessor
from skmargin.datasets._load import load_training
from skmargin.model_files import save_model

PATH = Path(__file__).parents[1] / "examples" / "serving" / "app.py"
spec = importlib.util.spec_from_file_location("serving_app", PATH)
app = importlib.util.module_from_spec(spec)
spec.loader.exec_module(app)


@pytest.fixture
def served(tmp_path):
    content, target = TABLES["penguins"]()
    (tmp_path / "penguins.csv").write_bytes(content)
    data = load_training(tmp_path / "penguins.csv", target)
    last = CalibratedClassifierCV(CrammerSingerSVC(random_state=0), ensemble=False, cv=3)
    model = make_pipeline(table_preprocessor(data.X), last).fit(data.X, data.y)
    save_model(model, tmp_path / "m.skm")
    server = app.make_server(tmp_path / "m.skm", 0, "127.0.0.1")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", model, data.X
    server.shutdown()
    thread.join()
    server.server_close()


def ask(url, body=None):
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_rows_by_name_in_any_order(served):
    url, model, X = served
    assert ask(f"{url}/health") == (200, {"classes": ["Adelie", "Chinstrap", "Gentoo"]})
    rows = [{name: row[name] for name in reversed(row)} for row in json.loads(X[:5].to_json(orient="records"))]
    status, found = ask(f"{url}/predict", {"rows": rows})
    assert status == 200 and found["prediction"] == model.predict(X[:5]).tolist()
    np.testing.assert_allclose(found["probability"], model.predict_proba(X[:5]))
    status, found = ask(f"{url}/predict", {"rows": [{"island": "Dream"}]})
    assert status == 400 and "bill_length_mm" in found["error"]
    assert ask(f"{url}/predict", {"rows": []})[0] == 400
    assert ask(f"{url}/predict", [1])[0] == 400
    assert ask(f"{url}/elsewhere")[0] == 404
