"""
Large data by blocks
====================

Rows that do not fit into memory are given as blocks: from Parquet, CSV or LIBSVM files, from ``.npy`` files, or from a
function that makes them. :func:`~skmargin.datasets.open_rows` opens them, and ``fit`` reads them a few times. The
result is certified as that of rows in memory.
"""

import time
from collections.abc import Callable, Iterator

import matplotlib.pyplot as plt
import numpy as np

from skmargin import CrammerSingerSVC
from skmargin.datasets import open_rows

CENTRES = np.random.default_rng(0).normal(size=(6, 20))


def blocks(n_blocks: int, size: int = 5000) -> Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]:
    """A function that gives the same blocks each time it is called; here they are made, often they are read."""

    def read() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for seed in range(n_blocks):
            rng = np.random.default_rng(seed + 1)
            y = rng.integers(6, size=size)
            yield CENTRES[y] + 1.5 * rng.normal(size=(size, 20)), y

    return read


# %%
# The fit sees one block at a time. Its certificate is that of all rows.

model = CrammerSingerSVC(C=1e-3).fit(open_rows(blocks(20)))
print(f"100,000 rows: gap {model.dual_gap_:.1e}, {model.n_iter_} passes")

# %%
# The same rows in memory give the same machine, to the tolerance of both.

X, y = (np.concatenate(part) for part in zip(*blocks(20)(), strict=True))
whole = CrammerSingerSVC(C=1e-3).fit(X, y)
print(f"objectives differ by {abs(model.objective_ / whole.objective_ - 1):.1e}")

# %%
# Time grows with the number of rows; memory does not.

counts, seconds, scores = [2, 5, 10, 20, 40], [], []
rng = np.random.default_rng(999)
y_test = rng.integers(6, size=5000)
X_test = CENTRES[y_test] + 1.5 * rng.normal(size=(5000, 20))
for count in counts:
    start = time.process_time()
    fitted = CrammerSingerSVC(C=100 / (5000 * count)).fit(open_rows(blocks(count)))
    seconds.append(time.process_time() - start)
    scores.append(fitted.score(X_test, y_test))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
rows = 5000 * np.array(counts)
left.plot(rows, seconds, marker="o")
left.set(xlabel="rows", ylabel="seconds, making of the blocks included", ylim=(0, None))
right.plot(rows, rows * 20 * 8 / 1e6, marker="s", label="all rows")
right.plot(rows, np.full(len(rows), 5000 * 20 * 8 / 1e6), marker="o", label="one block")
right.set(xlabel="rows", ylabel="megabytes")
right.legend()
plt.show()
print(f"test accuracy {scores[0]:.3f} with {rows[0]} rows, {scores[-1]:.3f} with {rows[-1]}")
