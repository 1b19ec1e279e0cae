"""Parallel fits for the thread sanitizer: every loop of the core that shares its work, with several threads at once.

``make sanitize-threads`` runs this under a core that is compiled with it; a race ends the process with an exit code.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse

from skmargin import CrammerSingerSVC, LpNormSVC, ODMClassifier, TopKSVC, WestonWatkinsSVC


def rows(n=1500, d=80, k=5, dtype=np.float64):
    """Classes that overlap: passes, checks and steps on the face all have their turn."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    return (rng.standard_normal((k, d))[y] + 3 * rng.standard_normal((n, d))).astype(dtype), y


def main():
    """Fits with several threads of the core each, one after the other and side by side; the same bits every time."""
    X, y = rows()
    data = [X, X.astype(np.float32), sparse.csr_array(X * (np.abs(X) > 3))]
    machines = [
        CrammerSingerSVC(n_jobs=4, random_state=0),
        WestonWatkinsSVC(C=0.1, n_jobs=4, random_state=0),
        TopKSVC(k=2, n_jobs=4, random_state=0),
        LpNormSVC(C=0.1, n_jobs=4, max_iter=50, random_state=0, tol=0.1),
        ODMClassifier(n_jobs=4, max_iter=50, random_state=0, tol=0.1),
        CrammerSingerSVC(kernel="rbf", n_jobs=4, random_state=0),
    ]

    def fit(task):
        machine, rows = task
        model = machine.__class__(**machine.get_params()).fit(rows, y)
        numbers = model.coef_ if hasattr(model, "coef_") else model.dual_coef_
        return model.objective_, numbers.tobytes(), model.intercept_.tobytes()

    tasks = [(machine, part) for machine in machines for part in data]
    alone = [fit(task) for task in tasks]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, tasks))
    assert alone == together, "fits side by side have other bits"
    print(f"{len(tasks)} parallel fits, alone and side by side: the same bits")


if __name__ == "__main__":
    main()
