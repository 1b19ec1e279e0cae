"""Exact, certified and fast multi-class large-margin classifiers for scikit-learn."""

__version__ = "0.1.0"
