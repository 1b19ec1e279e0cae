"""M3SVC against full-batch Adam, the way its authors train the model: 500 epochs, their learning rates, one objective.

    python -m benchmarks.m3_adam --data DIR [--sets vehicle,glass] [--loss log_loss,hinge] [--repeat 3]

DIR holds ``<name>.svm.bz2`` (LIBSVM text; ``usps.train`` and ``usps.test`` are joined).  Both sides get the same 80 %
of the rows, scaled as the authors scale them, and minimise the same function, each on one thread.  The runs are
interleaved; the table gives the median CPU seconds of the 500 epochs, of the whole ``fit``, of ``fit`` until it has
reached Adam's last objective, and both objectives.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skmargin import M3SVC

EPOCHS = 500
DELTA = 1e-2
# name: (learning rate, lambda, p, standardised), the settings published with the paper
SETTINGS = {
    "cornell": (0.1, 0.005, 1.0, False),
    "isolet": (0.001, 0.001, 4.0, False),
    "orl": (0.01, 0.01, 6.0, True),
    "usps": (0.01, 0.001, 4.0, True),
    "vehicle": (0.05, 0.0001, 4.0, True),
    "glass": (0.01, 0.0001, 4.0, True),
    "dermatology": (0.01, 0.1, 6.0, False),
}


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    files = sorted(folder.glob(f"{name}.svm*")) or sorted(folder.glob(f"{name}.t*.svm*"))
    parts = [load_svmlight_file(str(f), zero_based=False) for f in files]
    width = max(X.shape[1] for X, _ in parts)
    X = sparse.vstack([sparse.csr_array((p.data, p.indices, p.indptr), shape=(p.shape[0], width)) for p, _ in parts])
    return X.toarray(), np.unique(np.concatenate([y for _, y in parts]), return_inverse=True)[1]


def adam(
    X: np.ndarray, y: np.ndarray, k: int, lr: float, lam: float, p: float, loss: str
) -> tuple[float, np.ndarray, np.ndarray]:
    """Seconds, weights and intercepts after ``EPOCHS`` full-batch steps in float32."""
    import torch  # here: m3_logistic, which shares the objective, does without

    torch.set_num_threads(1)
    torch.manual_seed(0)
    Xt, yt = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    n = len(y)
    one_hot = torch.nn.functional.one_hot(yt, k).float()
    start = time.process_time()
    layer = torch.nn.Linear(X.shape[1], k)
    optimizer = torch.optim.Adam(layer.parameters(), lr=lr)
    for _ in range(EPOCHS):
        scores = layer(Xt)
        if loss == "log_loss":
            data = -torch.mean(one_hot * torch.log_softmax(scores, dim=1))
        else:
            t = 1 - (scores * one_hot).sum(dim=1, keepdim=True) + scores
            data = torch.mean((1 - one_hot) * (t + torch.sqrt(t * t + DELTA**2)) / 2)
        pairs = torch.norm(layer.weight.unsqueeze(1) - layer.weight.unsqueeze(0), p=2, dim=2).pow(p).sum()
        value = data + lam / n * pairs
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    seconds = time.process_time() - start
    return seconds, layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()


def objective(W: np.ndarray, b: np.ndarray, X: np.ndarray, y: np.ndarray, alpha: float, p: float, loss: str) -> float:
    """The model's objective, written independently of both sides (class vectors are the rows of ``W``)."""
    F = X @ W.T + b
    own = F[np.arange(len(y)), y]
    if loss == "log_loss":
        data = float((np.logaddexp.reduce(F, axis=1) - own).sum())
    else:
        t = 1 - own[:, None] + F
        g = (t + np.sqrt(t * t + DELTA**2)) / 2
        data = float(g.sum() - len(y) * (1 + np.sqrt(1 + DELTA**2)) / 2)
    pairs = sum(float((np.linalg.norm(W[j + 1 :] - W[j], axis=1) ** p).sum()) for j in range(len(W)))
    return data + alpha * pairs


def ours(X: np.ndarray, y: np.ndarray, alpha: float, p: float, loss: str) -> tuple[float, M3SVC]:
    model = M3SVC(alpha=alpha, p=p, loss=loss, delta=DELTA)
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start, model


def seconds_to_reach(target: float, X: np.ndarray, y: np.ndarray, alpha: float, p: float, loss: str) -> float:
    """Seconds of the shortest ``fit`` (by ``max_iter``) whose objective is not above ``target``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        max_iter = 1
        while True:
            model = M3SVC(alpha=alpha, p=p, loss=loss, delta=DELTA, max_iter=max_iter)
            start = time.process_time()
            model.fit(X, y)
            seconds = time.process_time() - start
            if objective(model.coef_, model.intercept_, X, y, alpha, p, loss) <= target or model.n_iter_ < max_iter:
                return seconds
            max_iter += max(1, max_iter // 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the LIBSVM files")
    parser.add_argument("--sets", default=",".join(SETTINGS))
    parser.add_argument("--loss", default="log_loss,hinge")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print(
        f"{'set':8s} {'loss':8s} {'Adam s':>8s} {'fit s':>8s} {'reach s':>8s} {'Adam/fit':>8s} {'Adam/reach':>10s} "
        f"{'Adam objective':>15s} {'our objective':>15s} {'gap':>8s} {'iter':>5s}"
    )
    for name in args.sets.split(","):
        lr, lam, p, standardise = SETTINGS[name]
        X, y = load(args.data, name)
        n_all, k = len(y), int(y.max()) + 1
        if standardise:
            X = StandardScaler().fit_transform(X)
        X, _, y, _ = train_test_split(X, y, test_size=0.2, random_state=42)
        X = np.ascontiguousarray(X)
        # theirs: (1 / (n k)) * loss + (lambda / n_all) * (both orders of each pair); ours: loss + alpha * pairs
        alpha = 2 * k * lam * len(y) / n_all
        for loss in args.loss.split(","):
            times: dict[str, list[float]] = {"adam": [], "fit": [], "reach": []}
            for _ in range(args.repeat):
                seconds, W, b = adam(X, y, k, lr, lam * len(y) / n_all, p, loss)
                times["adam"].append(seconds)
                theirs = objective(W, b, X, y, alpha, p, loss)
                seconds, model = ours(X, y, alpha, p, loss)
                times["fit"].append(seconds)
                times["reach"].append(seconds_to_reach(theirs, X, y, alpha, p, loss))
            median = {key: statistics.median(value) for key, value in times.items()}
            mine = objective(model.coef_, model.intercept_, X, y, alpha, p, loss)
            print(
                f"{name:8s} {loss:8s} {median['adam']:8.3f} {median['fit']:8.3f} {median['reach']:8.3f} "
                f"{median['adam'] / median['fit']:8.1f} {median['adam'] / median['reach']:10.1f} "
                f"{theirs:15.6f} {mine:15.6f} {model.dual_gap_:8.1e} {model.n_iter_:5d}",
                flush=True,
            )


if __name__ == "__main__":
    main()
