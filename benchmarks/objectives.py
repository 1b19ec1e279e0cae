"""The primal objectives, computed here from the class vectors and not taken from any solver's word."""

from __future__ import annotations

from typing import Any

import numpy as np


def primal(loss: str, W: np.ndarray, X: Any, y: np.ndarray, C: float) -> float:
    """Objective of the linear machine without intercept, ``W`` of shape (k, d); ``loss`` is "cs" or "ww"."""
    scores = X @ W.T
    rows = np.arange(len(y))
    violation = 1 + scores - scores[rows, y][:, None]
    violation[rows, y] = 0
    hinge = violation.max(axis=1).sum() if loss == "cs" else np.maximum(violation, 0).sum()
    return 0.5 * float(np.vdot(W, W)) + C * float(hinge)
