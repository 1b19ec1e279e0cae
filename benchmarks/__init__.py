"""Time to accuracy against rivals, in one run: ``python -m benchmarks.run --help``."""
