"""What ``import skmargin`` adds to ``import sklearn.svm``: ``python -m benchmarks.import_time``."""

from __future__ import annotations

import statistics
import subprocess
import sys

CODE = "import sklearn.svm, time; start = time.perf_counter(); import skmargin; print(time.perf_counter() - start)"


def main() -> None:
    """Print the median of nine fresh interpreters."""
    runs = [subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True) for _ in range(9)]
    print(f"import skmargin adds {statistics.median(float(run.stdout) for run in runs):.3f} s to import sklearn.svm")


if __name__ == "__main__":
    main()
