"""Serve a model file over HTTP with the standard library: POST rows as JSON to /predict, GET /health shows it is alive.

    python app.py model.skm 8000
    curl -s localhost:8000/predict -d '{"rows": [{"island": "Dream", "bill_length_mm": 45.1, ...}]}'

Rows are objects with the columns of the training table, in any order, or plain lists of numbers for a model that was
fitted without names.  The answer holds a label for each row, and probabilities where the model gives them (--proba).
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from skmargin.model_files import load_model

MAX_BYTES = 1 << 24


def answer(model, request):
    """Predictions for a request such as {"rows": [...]}; ValueError says what is wrong with it."""
    rows = request.get("rows") if isinstance(request, dict) else None
    if not isinstance(rows, list) or not rows:
        raise ValueError('send {"rows": [...]} with at least one row.')
    if all(isinstance(row, dict) for row in rows):
        import pandas as pd

        X = pd.DataFrame.from_records(rows)
    else:
        X = np.asarray(rows, dtype=np.float64)
    found = {"prediction": model.predict(X).tolist()}
    if hasattr(model, "predict_proba"):
        found["classes"], found["probability"] = model.classes_.tolist(), model.predict_proba(X).tolist()
    return found


def make_server(path, port, host="0.0.0.0"):
    """A server that is ready to run; the model is loaded once, and its threads share it."""
    model = load_model(path)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(200 if self.path == "/health" else 404, {"classes": model.classes_.tolist()})

        def do_POST(self):
            size = int(self.headers.get("Content-Length") or 0)
            if self.path != "/predict" or not 0 < size <= MAX_BYTES:
                self.reply(404 if self.path != "/predict" else 413, {"error": "POST up to 16 MiB to /predict."})
                return
            try:
                self.reply(200, answer(model, json.loads(self.rfile.read(size))))
            except (ValueError, TypeError) as error:
                self.reply(400, {"error": str(error)})

        def reply(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    return ThreadingHTTPServer((host, port), Handler)


if __name__ == "__main__":
    make_server(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8000).serve_forever()
