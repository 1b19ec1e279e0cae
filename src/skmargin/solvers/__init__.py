"""Solvers: each states its problem, its dual, what is given and returned, and the paper."""
