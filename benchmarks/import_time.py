"""What ``import skmargin`` adds to ``import sklearn.svm``: ``python -m benchmarks.import_time``."""

from __future__ import annotations

import statistics
import subprocess
import sys

STATEMENTS = ["import skmargin", "from skmargin import *"]  # names are loaded on first use; the second loads them all


def seconds(statement: str) -> float:
    """Time of one import in a fresh interpreter that has imported ``sklearn.svm``."""
    code = f"import sklearn.svm, time; start = time.perf_counter()\n{statement}\nprint(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the median of nine interpreters for each statement."""
    for statement in STATEMENTS:
        print(f"{statement:<24} {statistics.median(seconds(statement) for _ in range(9)):.3f} s")


if __name__ == "__main__":
    main()
