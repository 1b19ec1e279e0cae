"""The experiments of the papers, one module a paper, and the comparison over all data."""
